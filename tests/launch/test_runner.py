"""The runner: checkpoints are there whole, or as before."""

import pytest
import torch
from mmengine.hooks import CheckpointHook
from mmengine.runner import save_checkpoint

from ebv_mm.launch.runner import WHOLE_FILES, _write_whole


def test_a_kill_while_writing_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    file = str(tmp_path / 'epoch_1.pth')
    save = dict(backend_args=dict(backend=WHOLE_FILES))
    save_checkpoint(dict(epoch=1), file, **save)

    def killed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr('os.replace', killed)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(dict(epoch=2), file, **save)
    assert torch.load(file) == dict(epoch=1) and [path.name for path in tmp_path.iterdir()] == ['epoch_1.pth']


def test_checkpoint_hooks_write_whole_files(tmp_path):
    hook = CheckpointHook()
    _write_whole(hook, str(tmp_path))
    assert hook.backend_args == dict(backend=WHOLE_FILES)
    for other in (CheckpointHook(backend_args=dict(backend='petrel')), CheckpointHook(out_dir='s3://bucket')):
        before = other.backend_args
        _write_whole(other, str(tmp_path))
        assert other.backend_args == before
