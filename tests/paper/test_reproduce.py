"""tools/reproduce.py without training: what it prints, refuses and submits."""

import json
import os
import shlex

import pytest

from ebv_mm.paper import TABLES

REPO_WORDS = ('tools/', 'configs/')


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(printed: str) -> list:
    return [shlex.split(line[2:]) for line in printed.splitlines() if line.startswith('$ ')]


def test_a_dry_run_prints_every_command_and_writes_nothing(reproduce, here, capsys):
    assert reproduce(['inat2018', '--gpus', '8', '--dry-run']) == 0
    told = capsys.readouterr()
    assert 'data/inaturalist2018 lacks train_val2018, train2018.json, val2018.json' in told.err
    lines = commands(told.out)
    bases = [line for line in lines if line[1].endswith('make_basis.py')]
    trains = [line for line in lines if line[0].endswith('dist_train.sh')]
    tests = [line for line in lines if line[0].endswith('dist_test.sh')]
    # FC needs no basis; the plain rows have one test, the others two sizes
    assert (len(bases), len(trains), len(tests)) == (2, 4, 6) and len(lines) == 12
    assert {line[2] for line in trains} == {'8'}
    assert [line[-1] for line in tests[-2:]] == [f'test_dataloader.dataset.pipeline.1.size={n}' for n in (224, 256)]
    assert tests[-1][2] == 'work_dirs/paper/resnet50_ebv_inat2018/best_*_epoch_*.pth'
    assert not list(here.iterdir())


def test_in_the_clone_commands_are_what_a_user_would_type(reproduce, monkeypatch, capsys):
    monkeypatch.chdir(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    assert (
        reproduce(['coco', '--gpus', '8', '--dry-run', '--only', 'mask_rcnn_r50_fc_1x', '--work-dir', 'nowhere']) == 0
    )
    train, test = commands(capsys.readouterr().out)
    folder = 'nowhere/mask_rcnn_r50_fc_1x'
    assert train == ['tools/dist_train.sh', 'configs/mmdet/mask_rcnn_r50_fc_1x.py', '8', '--work-dir', folder]
    assert test[:4] == ['tools/dist_test.sh', 'configs/mmdet/mask_rcnn_r50_fc_1x.py', f'{folder}/epoch_12.pth', '8']


@pytest.mark.parametrize(
    ('table', 'row', 'gpus', 'used', 'scaled'),
    [
        ('cifar-lt', 'resnet32_fc_cifar10-lt-10', 8, 'train.py', False),  # its batch needs one
        ('ade20k', 'upernet_r50_fc_80k', 8, '4', False),
        ('ade20k', 'upernet_r50_fc_80k_8xb4', 8, '8', False),
        ('ade20k', 'upernet_r50_fc_80k_8xb4', 4, '4', True),
        ('coco', 'mask_rcnn_r50_fc_1x', 1, 'train.py', True),
    ],
)
def test_a_model_uses_the_gpus_of_its_batch(table, row, gpus, used, scaled, reproduce, here, capsys):
    assert reproduce([table, '--gpus', str(gpus), '--dry-run', '--only', row]) == 0
    printed = capsys.readouterr().out
    train = next(line for line in commands(printed) if 'train' in line[0] + line[1])
    assert used in (train[2], os.path.basename(train[1]))
    assert ('--auto-scale-lr' in train) == scaled == ('the learning rate shrinks' in printed)


def test_missing_data_are_told_before_anything_starts(reproduce, here, capsys):
    of_each_data_set = ['resnet50_fc_a1', 'mask_rcnn_r50_fc_1x', 'upernet_r18_fc_80k', 'resnet50_fc_inat2018']
    assert reproduce(['all', '--gpus', '8', '--only', *of_each_data_set, 'resnet50_fc_100k']) == 1
    told = capsys.readouterr()
    for root in ('imagenet', 'coco', 'ade/ADEChallengeData2016', 'inaturalist2018', 'inat100k'):
        assert told.err.count(f'missing: data/{root} lacks') == 1
    assert 'tools/list_images.py data/inat100k' in told.err
    assert not told.out and not list(here.iterdir())


@pytest.mark.parametrize(
    ('arguments', 'told'),
    [
        (['coco'], '--gpus N is needed'),
        (['coco', '--gpus', '0'], 'at least 1'),
        (['coco', '--gpus', '2', '--smoke'], 'none with --smoke'),
        (['tables', '--gpus', '8'], 'invalid choice'),
    ],
)
def test_wrong_arguments(arguments, told, reproduce, here, capsys):
    with pytest.raises(SystemExit):
        reproduce(arguments)
    assert told in capsys.readouterr().err


def test_an_unknown_row_is_told_with_those_that_exist(reproduce, here, capsys):
    assert reproduce(['swin', '--gpus', '8', '--dry-run', '--only', 'swin_large']) == 1
    assert 'swin_large' in (error := capsys.readouterr().err) and 'swin_tiny_ebv_a2' in error


def test_too_many_gpus_are_told(reproduce, here, capsys, monkeypatch):
    monkeypatch.setattr('torch.cuda.device_count', lambda: 2)
    assert reproduce(['cifar-lt', '--gpus', '8']) == 1
    assert 'this machine has 2' in capsys.readouterr().err


def test_slurm_gets_a_job_for_each_model(reproduce, here, capsys, monkeypatch):
    program = here / 'bin' / 'sbatch'
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done >> submitted\necho >> submitted\n')
    program.chmod(0o755)
    monkeypatch.setenv('PATH', str(program.parent), prepend=os.pathsep)
    assert reproduce(['cifar-lt', '--gpus', '8', '--slurm', 'long', '--work-dir', 'work']) == 0
    jobs = [job.splitlines() for job in (here / 'submitted').read_text().strip().split('\n\n')]
    assert len(jobs) == 12 == len({row.name for row in TABLES['cifar-lt'].rows})
    options = dict(word.lstrip('-').split('=', 1) for word in jobs[1] if '=' in word)
    assert options['partition'] == 'long' and options['gres'] == 'gpu:1'
    assert options['output'] == 'work/resnet32_ebv_cifar10-lt-100.slurm.txt'
    inner = shlex.split(options['wrap'])
    # what the job runs is this very tool, for one row
    assert os.path.isabs(inner[1]) and inner[1].endswith('tools/reproduce.py')
    assert inner[2:] == ['cifar-lt', '--only', 'resnet32_ebv_cifar10-lt-100', '--work-dir', 'work', '--gpus', '1']
    assert '--report' in capsys.readouterr().out


def test_a_report_of_nothing_has_the_papers_figures(reproduce, here):
    assert reproduce(['imagenet', '--report']) == 0
    content = json.loads((here / 'work_dirs' / 'paper' / 'imagenet.json').read_text())
    figures = {(line['config'].rsplit('/', 1)[-1], line['test']): line for line in content['figures']}
    assert figures['resnet50_ebv_a2', '224']['published'] == 78.14
    assert figures['resnet50_fc_a2_605e', '224']['source'] == 'torchvision'
    assert figures['resnet50_fc_a2_605e', '224']['borrowed'] and not figures['resnet50_ebv_a2', '224']['borrowed']
    assert figures['resnet50_fc_a2_adamw-1e-2', '224']['published'] == 'NaN'
    assert all(line['measured'] is None for line in content['figures'])
    assert {run['seed'] for run in content['runs']} == {42} and content['versions']['torch'] and content['commit']
    page = (here / 'work_dirs' / 'paper' / 'imagenet.md').read_text()
    assert '| 79.51 * | - |' in page and 'torchvision' in page
