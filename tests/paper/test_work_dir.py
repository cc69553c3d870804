"""How far a training is, read from folders as interruptions leave them."""

import json

import pytest
import torch
from mmengine.config import Config

from ebv_mm.paper.work_dir import WorkDir


def epochs(save_best=None, **train_cfg) -> Config:
    checkpoint = dict(save_best=save_best) if save_best else {}
    return Config(dict(train_cfg=train_cfg or dict(max_epochs=3), default_hooks=dict(checkpoint=checkpoint)))


def save(folder, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        torch.save({'state_dict': {}}, folder / name)


def cut(file) -> None:
    """What a kill leaves of a file that is written in place."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def record(folder, stamp: str, *records: dict) -> None:
    file = folder / stamp / 'vis_data' / 'scalars.json'
    file.parent.mkdir(parents=True)
    file.write_text(''.join(json.dumps(line) + '\n' for line in records))


def test_an_empty_folder_and_none_at_all(tmp_path):
    for folder in (tmp_path, tmp_path / 'absent'):
        work = WorkDir(folder, epochs())
        assert not work.begun and not work.trained and work.hours == 0
        assert work.progress == 'epoch 0 of 3'


def test_it_goes_on_from_the_newest_whole_checkpoint(tmp_path):
    save(tmp_path, 'epoch_1.pth', 'epoch_2.pth', 'epoch_3.pth')
    work = WorkDir(tmp_path, epochs())
    assert work.trained and work.newest.name == 'epoch_3.pth' == work.to_test.name
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_3.pth'))
    cut(tmp_path / 'epoch_3.pth')
    assert not work.trained and work.begun and work.newest.name == 'epoch_2.pth'
    (tmp_path / 'epoch_2.pth').write_bytes(b'')
    assert work.newest.name == 'epoch_1.pth'


def test_iterations_are_compared_as_numbers(tmp_path):
    save(tmp_path, 'iter_8000.pth', 'iter_16000.pth')
    work = WorkDir(tmp_path, epochs(max_iters=16000))
    assert work.trained and work.newest.name == 'iter_16000.pth'


def test_the_best_checkpoint_is_the_best_of_those_that_are_whole(tmp_path):
    save(tmp_path, 'epoch_3.pth', *(f'best_accuracy_top1_epoch_{epoch}.pth' for epoch in (1, 2, 3)))
    record(tmp_path, '20261117_120000', dict(step=1, top1=50.0), dict(step=7, loss=1.0), dict(step=2, top1=70.0))
    record(tmp_path, '20261117_130000', dict(step=3, top1=60.0))
    work = WorkDir(tmp_path, epochs('top1'))
    assert work.to_test.name == 'best_accuracy_top1_epoch_2.pth' and work.validated
    cut(tmp_path / 'best_accuracy_top1_epoch_2.pth')
    assert work.to_test.name == 'best_accuracy_top1_epoch_3.pth'
    for file in tmp_path.glob('best_*'):
        file.unlink()
    assert work.trained and work.to_test is None


def test_a_training_cut_off_in_its_last_validation_says_so(tmp_path):
    save(tmp_path, 'epoch_3.pth', 'best_accuracy_top1_epoch_2.pth')
    record(tmp_path, '20261117_120000', dict(step=1, top1=50.0), dict(step=2, top1=70.0))
    with (tmp_path / '20261117_120000' / 'vis_data' / 'scalars.json').open('a') as file:
        file.write('{"step": 3, "to')  # half a line
    work = WorkDir(tmp_path, epochs('top1'))
    assert work.trained and not work.validated and work.to_test.name == 'best_accuracy_top1_epoch_2.pth'


def test_hours_are_those_of_all_sessions_without_the_time_between(tmp_path):
    for stamp, first, last in (
        ('20261117_100000', '2026/11/17 10:00:00', '2026/11/17 11:30:00'),
        ('20261118_100000', '2026/11/18 10:00:00', '2026/11/18 10:30:00'),
    ):
        (tmp_path / stamp).mkdir()
        (tmp_path / stamp / f'{stamp}.log').write_text(f'{first} - mmengine - a\nother\n{last} - mmengine - b\ncut o')
    assert WorkDir(tmp_path, epochs()).hours == pytest.approx(2.0)
