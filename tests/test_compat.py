"""Both stacks and every torch: configs of the hosts resolve, checkpoints load with torch's protection on."""

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.logging import HistoryBuffer
from mmengine.runner.checkpoint import load_checkpoint, save_checkpoint
from torch import nn

from ebv_mm import compat
from ebv_mm.conversion import ConversionError, find_classifiers
from ebv_mm.launch import argument_parser, load_config
from ebv_mm.launch.configs import ConfigError

pytestmark = pytest.mark.both_stacks

CONFIGS = Path(__file__).resolve().parent.parent / 'configs'
protected = pytest.mark.skipif(
    not hasattr(torch.serialization, 'safe_globals'), reason='this torch has no list of trusted types'
)


@pytest.mark.parametrize(
    'config',
    [
        'mmpretrain::resnet/resnet18_8xb32_in1k.py',
        'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py',
        'mmseg::upernet/upernet_r18_4xb4-80k_ade20k-512x512.py',
    ],
)
def test_the_configs_of_every_host_resolve(config, tmp_path):
    (tmp_path / 'mine.py').write_text(f'_base_ = {config!r}')
    assert Config.fromfile(tmp_path / 'mine.py').model.type


@pytest.mark.parametrize('host', ['mmpretrain', 'mmdet', 'mmseg'])
def test_configs_can_be_read(host):
    """Some of each host, on both stacks; tests/configs reads them all."""
    files = sorted(file for file in (CONFIGS / host).rglob('*.py') if '_base_' not in file.parts)
    assert files
    for file in files[::8]:
        assert 'model' in Config.fromfile(file)


@pytest.mark.parametrize('module', ['mmpretrain', 'mmdet', 'mmseg'])
@pytest.mark.parametrize('fork', [False, True])
def test_a_fork_is_found_by_its_module_and_a_release_by_its_distribution(monkeypatch, module, fork):
    release = compat.DISTRIBUTIONS[module][0]
    monkeypatch.setitem(MODULE2PACKAGE, module, release)
    monkeypatch.setattr(compat, '_is_distribution', lambda name: name.startswith('onedl-') == fork)
    compat.find_the_configs_of_forks()
    assert MODULE2PACKAGE[module] == (module if fork else release)


def checkpoint(value) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def history() -> HistoryBuffer:
    buffer = HistoryBuffer()
    for loss in (2.0, 4.0):
        buffer.update(loss)
    return buffer


@protected
def test_what_mmengine_saves_loads_with_the_protection_on():
    kinds = [np.arange(2, dtype=kind) for kind in ('bool', 'uint8', 'int64', 'float16', 'float32', 'float64')]
    saved = dict(log_scalars={'train/loss': history()}, score=np.float64(0.5), seed=np.int64(3), arrays=kinds)
    loaded = torch.load(checkpoint(saved), weights_only=True)
    assert loaded['log_scalars']['train/loss'].mean() == 3 and loaded['score'] == 0.5 and loaded['seed'] == 3
    assert all(np.array_equal(left, right) for left, right in zip(loaded['arrays'], kinds))


@protected
@pytest.mark.parametrize('attribute', ['__init__', '__class__', '__reduce__'])
def test_getattr_is_no_way_around_the_protection(attribute):
    class Sly:
        def __reduce__(self):
            return getattr, (HistoryBuffer, attribute)

    with pytest.raises(Exception, match='only statistics of mmengine are trusted'):
        torch.load(checkpoint(Sly()), weights_only=True)


@protected
def test_other_types_are_refused_as_before():
    with pytest.raises(Exception, match='[Uu]nsupported (global|class)|weights_only|Weights only'):
        torch.load(checkpoint(SimpleNamespace(a=1)), weights_only=True)


def test_mmengine_loads_its_own_checkpoint(tmp_path, capfd):
    model = nn.Linear(3, 2)
    file = tmp_path / 'epoch_1.pth'
    save_checkpoint(dict(state_dict=model.state_dict(), message_hub=dict(log_scalars={'loss': history()})), str(file))
    other = nn.Linear(3, 2)
    loaded = load_checkpoint(other, str(file), map_location='cpu')
    assert torch.equal(other.weight, model.weight)
    assert loaded['message_hub']['log_scalars']['loss'].current() == 4
    assert 'weights_only=False' not in ''.join(capfd.readouterr())


@pytest.mark.parametrize(
    'error, words',
    [
        (ModuleNotFoundError("No module named 'mmdet'", name='mmdet'), ['mmdet is not installed', 'onedl-mmdetection']),
        (ModuleNotFoundError("No module named 'mmcv'", name='mmcv'), ['no mmcv', 'MMCV_WITH_OPS=1']),
        (ModuleNotFoundError("No module named 'mmcv._ext'", name='mmcv._ext'), ['compiled ops', 'MMCV_WITH_OPS=1']),
        (ImportError('undefined symbol', path='/x/mmcv/_ext.cpython-311.so'), ['compiled ops', torch.__version__]),
        (ModuleNotFoundError("No module named 'ftfy'", name='ftfy'), ['needs ftfy', 'pip install ftfy']),
        (ImportError('cannot import name x'), ['importing mmdet fails: cannot import name x']),
    ],
)
def test_why_a_host_cannot_be_imported_is_one_sentence_with_a_remedy(error, words):
    sentence = compat.why_not_imported('mmdet', error)
    assert all(word in sentence for word in words) and '\n' not in sentence


def test_a_host_that_cannot_be_imported_is_named_before_its_registry_is_searched(monkeypatch, tmp_path):
    """mmengine would warn, go on, and miss the first name of the host."""
    (tmp_path / 'mine.py').write_text("default_scope = 'mmdet'\nmodel = dict(type='MaskRCNN')\n")

    def without_mmcv(name):
        raise ModuleNotFoundError("No module named 'mmcv'", name='mmcv')

    monkeypatch.setattr(compat, 'import_module', without_mmcv)
    with pytest.raises(ConfigError, match='one of mmdet: there is no mmcv with compiled ops.*MMCV_WITH_OPS=1'):
        load_config(argument_parser('').parse_args([str(tmp_path / 'mine.py')]))
    with pytest.raises(ConversionError, match='one of mmdet: there is no mmcv with compiled ops'):
        find_classifiers(Config.fromfile(tmp_path / 'mine.py'))
