"""tools/export.py on a small model of each host: the exported networks predict what the model predicts."""

import copy
import json
import re
from pathlib import Path

import pytest
import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import MODELS, init_default_scope
from scenes import write_bases, write_scenes
from scripts import REPO, load_script

from ebv_mm import EBVLinear
from ebv_mm.export import agreement, networks_of, plugged
from ebv_mm.export.linear import _some, fitted_scale, linear_config, names_of_ours
from ebv_mm.export.models import image_of, load_model
from ebv_mm.export.models import test_batches as first_batches
from ebv_mm.export.pooling import FixedPool

CONFIGS = REPO / 'tests' / 'end_to_end' / 'configs'
FILES = {
    'classification': [''],
    'segmentation': [''],
    'detection': ['.trunk', '.bbox_head', '.mask_head'],
}
HOSTS = pytest.mark.parametrize('name', FILES)


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """A config of the end-to-end tests, and a checkpoint of it with random weights."""
    write_scenes(tmp_path)
    write_bases(tmp_path)
    monkeypatch.chdir(tmp_path)

    def make(name: str):
        file = CONFIGS / f'{name}.py'
        cfg = Config.fromfile(file)
        init_default_scope(cfg.default_scope)
        model = MODELS.build(cfg.model)
        for norm in (module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)):
            norm.running_mean.normal_(0, 0.1)
        torch.save(dict(state_dict=model.state_dict(), meta=dict(dataset_meta=dict(classes='abc'))), 'model.pth')
        return str(file), 'model.pth'

    return make


def agreement_in(printed: str):
    pattern = r'(\d+) of (\d+) classes are the same; largest difference: score (\S+?)[,\n]'
    same, of, largest = re.search(pattern, printed).groups()
    return int(same), int(of), float(largest)


@HOSTS
@pytest.mark.parametrize('kind, suffix', [('onnx', '.onnx'), ('torchscript', '.pt')])
def test_networks_predict_what_the_model_predicts(name, kind, suffix, trained, capsys):
    load_script('tools/export.py').main([*trained(name), '--to', kind, '--out', 'out', '--images', '3', '--traceback'])
    same, of, largest = agreement_in(capsys.readouterr().out)
    assert same == of > 0 and largest < 1e-4
    for part in FILES[name]:
        assert (Path('out') / f'{name}{part}{suffix}').is_file()
    described = json.loads((Path('out') / f'{name}.json').read_text())
    assert described['classes'] == 'abc'
    if name != 'classification':  # whose shrunk config normalises nothing
        assert len(described['mean']) == len(described['std']) == 3 and described['from_bgr_to_rgb']


@HOSTS
def test_fc_is_a_checkpoint_of_the_hosts_own_head(name, trained, capsys):
    load_script('tools/export.py').main([*trained(name), '--to', 'fc', '--out', 'out', '--images', '3', '--traceback'])
    printed = capsys.readouterr().out
    same, of, _ = agreement_in(printed)
    if name == 'classification':
        assert same == of == 3
        assert 'still needs ebv_mm, because it names ResizeCenterCrop' in printed
    else:
        assert 'ebv_mm' not in Path(f'out/{name}_fc.py').read_text()  # it runs where there is none
    cfg = Config.fromfile(f'out/{name}_fc.py')
    assert 'EBV' not in json.dumps(cfg.model.to_dict())
    state = torch.load(f'out/{name}_fc.pth')['state_dict']
    assert not [key for key in state if 'basis' in key]
    MODELS.build(cfg.model).load_state_dict(state)


def test_without_data_the_size_is_told(trained, capsys):
    arguments = [*trained('classification'), '--to', 'onnx', '--out', 'out', '--images', '0']
    with pytest.raises(SystemExit):
        load_script('tools/export.py').main(arguments)
    assert 'give --shape H W' in capsys.readouterr().err
    load_script('tools/export.py').main([*arguments, '--shape', '64', '48'])
    assert 'input (1, 3, 64, 48)' in capsys.readouterr().out


def test_a_head_that_predicts_few_classes_is_compared_in_all(trained):
    config, checkpoint = trained('classification')
    model = load_model(Config.fromfile(config), checkpoint)
    few = copy.deepcopy(model)
    few.head.predict_topk = 1
    batches = list(first_batches(Config.fromfile(config), 2))
    assert agreement(few, model, batches).largest['score'] == 0 and few.head.predict_topk == 1


def test_a_segmentor_that_slides_is_exported_at_the_size_of_its_windows(trained):
    config, checkpoint = trained('segmentation')
    model = load_model(Config.fromfile(config), checkpoint)
    model.test_cfg = ConfigDict(mode='slide', crop_size=(64, 32), stride=(32, 16))
    images = image_of(model, next(iter(first_batches(Config.fromfile(config), 1))))
    (network,) = networks_of(model, images)
    assert network.inputs[0].shape[-2:] == (64, 32)
    windows = plugged(model, [network], {network.name: lambda *x: network.module(*x)})
    torch.testing.assert_close(windows.inference(images, metas(images)), model.inference(images, metas(images)))


def metas(images):
    size = tuple(images.shape[-2:])
    return [dict(ori_shape=size, img_shape=size, pad_shape=size, flip=False)]


def test_a_checkpoint_of_another_model_is_told(trained, capsys):
    config, checkpoint = trained('classification')
    state = torch.load(checkpoint)['state_dict']
    for broken, told in (
        ({key: value for key, value in state.items() if 'fc.weight' not in key}, 'has no head.fc.weight'),
        ({**state, 'neck.fc.basis': torch.eye(3)}, "has neck.fc.basis, of an EBV layer that the config's model lacks"),
        ({**state, 'head.fc.bias': torch.zeros(7)}, "does not fit the config's model (size mismatch for head.fc.bias"),
    ):
        torch.save(broken, checkpoint)
        with pytest.raises(SystemExit):
            load_script('tools/export.py').main([config, checkpoint, '--to', 'onnx', '--images', '1'])
        assert told in capsys.readouterr().err


@pytest.mark.parametrize('size', [(7, 5), 3, (None, 2)])
def test_a_fixed_pool_is_the_adaptive_one(size):
    x = torch.randn(2, 3, 16, 11)
    torch.testing.assert_close(FixedPool(16, 11, size)(x), torch.nn.AdaptiveAvgPool2d(size)(x))


@pytest.mark.parametrize('sigmoid', [False, True])
def test_the_scale_of_products_that_are_scaled_logits_is_found(sigmoid):
    logits = torch.randn(50, 9) * 3
    assert fitted_scale(logits / 17, logits, sigmoid=sigmoid) == pytest.approx(17, rel=1e-2)


def test_features_in_rows_are_each_a_feature():
    layer = EBVLinear(6, 5, basis=dict(num_classes=5, dim=8))
    x = torch.randn(2, 3, 4, 6)
    torch.testing.assert_close(layer(_some(layer, x)), layer(x).view(24, 5))


def test_the_host_s_head_of_a_general_one():
    """EBVHead names a head of its host, or has its whole config; either way that is the plain twin."""
    basis = dict(num_classes=3, dim=3)
    plain = dict(type='VisionTransformerClsHead', num_classes=3, in_channels=4)
    for head in (
        dict(
            type='EBVHead',
            head='VisionTransformerClsHead',
            layer='layers.head',
            basis=basis,
            num_classes=3,
            in_channels=4,
        ),
        dict(type='EBVHead', head=plain, layer='layers.head', basis=basis, tau=0.1),
    ):
        assert linear_config(Config(dict(model=dict(head=head)))).model.head == plain
    with pytest.raises(TypeError, match='EBVOther has no plain twin that is known'):
        linear_config(Config(dict(model=dict(head=dict(type='EBVOther', basis=basis)))))


def test_what_else_of_ours_a_config_names_stays_and_is_told():
    model = dict(backbone=dict(type='CIFARResNet'), head=dict(type='EBVClsHead', basis=dict(num_classes=3, dim=3)))
    hooks = [dict(type='TauHook', start=0.1, stop=0.05, end=9), dict(type='EMAHook')]
    imports = dict(imports=['ebv_mm', 'mine'], allow_failed_imports=False)
    evaluator = [dict(type='StreamingAccuracy')]
    content = dict(model=model, custom_hooks=hooks, custom_imports=imports, test_evaluator=evaluator)
    cfg = linear_config(Config(dict(content, default_hooks=dict(tau=hooks[0], timer=dict(type='IterTimerHook')))))
    assert cfg.custom_hooks == [dict(type='EMAHook')]
    assert cfg.default_hooks == dict(tau=None, timer=dict(type='IterTimerHook'))
    assert names_of_ours(cfg) == ['CIFARResNet', 'StreamingAccuracy'] and cfg.custom_imports == imports
    model = dict(model, backbone=dict(type='ResNet'))
    cfg = linear_config(Config(dict(model=model, custom_imports=imports)))
    assert not names_of_ours(cfg) and cfg.custom_imports.imports == ['mine']
    cfg = linear_config(Config(dict(model=model, custom_imports=dict(imports='ebv_mm'))))
    assert 'custom_imports' not in cfg
