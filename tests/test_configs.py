"""Every config parses, resolves, gets its bases from tools/make_basis.py, and builds."""

import subprocess
import sys
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from ebv_mm.basis import size_in_name
from ebv_mm.basis.files import basis_paths
from ebv_mm.layers import EBVConv2d, EBVLinear

REPO = Path(__file__).parent.parent
CONFIGS = sorted(path for path in (REPO / 'configs').rglob('*.py') if '_base_' not in path.parts)


@pytest.fixture(scope='module')
def bases(tmp_path_factory):
    """A working directory that has every basis the configs name, each made by the tool."""
    folder = tmp_path_factory.mktemp('user')
    for config in CONFIGS:
        if basis_paths(Config.fromfile(config).model.to_dict()):
            tool = [sys.executable, str(REPO / 'tools' / 'make_basis.py'), str(config)]
            subprocess.run(tool, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_config_builds(path, bases, monkeypatch):
    monkeypatch.chdir(bases)
    config = Config.fromfile(path)
    with DefaultScope.overwrite_default_scope(config.default_scope):
        model = MODELS.build(config.model)
    layers = [module for module in model.modules() if isinstance(module, (EBVLinear, EBVConv2d))]
    files = basis_paths(config.model.to_dict())
    assert bool(layers) == bool(files) == ('ebv' in path.stem.split('_'))
    if not files:
        return
    assert config.custom_imports == dict(imports=['ebv_mm'], allow_failed_imports=False)
    assert {(layer.dim, layer.tau) for layer in layers} == {(size_in_name(file)[1], 0.07) for file in files}
    for layer in layers:
        assert layer.missing is None
        # no row of the basis is left over, but for the background that masks do without
        assert size_in_name(files[0])[0] - layer.num_classes in ((0, 1) if path.parent.name == 'mmdet' else (0,))


def differences(a: object, b: object, where: str = '') -> dict:
    """The places at which two nested configs differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        keys = sorted({*a, *b})
        return {k: v for key in keys for k, v in differences(a.get(key), b.get(key), f'{where}.{key}').items()}
    return {} if a == b else {where: (a, b)}


TWINS = {
    'mmpretrain/resnet50_ebv_a2.py': str(REPO / 'configs' / 'mmpretrain' / 'resnet50_fc_a2.py'),
    'mmdet/mask_rcnn_r50_ebv_1x.py': 'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py',
    'mmseg/upernet_r50_ebv_80k.py': 'mmseg::upernet/upernet_r50_4xb4-80k_ade20k-512x512.py',
}
HEAD_KEYS = {'type', 'head', 'basis', 'tau'}


@pytest.mark.parametrize('name', TWINS)
def test_only_the_head_differs_from_the_fc_twin(name, tmp_path):
    # a config that only inherits is the way to read a host's own file by its address
    twin = tmp_path / 'twin.py'
    twin.write_text(f'_base_ = {TWINS[name]!r}\n')
    found = differences(Config.fromfile(REPO / 'configs' / name).to_dict(), Config.fromfile(twin).to_dict())
    model = {place for place in found if place.startswith('.model')}
    assert model and {place.rsplit('.', 1)[1] for place in model} <= HEAD_KEYS
    assert set(found) - model <= {'.custom_imports', '.basis'}
