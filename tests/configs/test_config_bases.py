"""tools/make_basis.py makes what a config names, and the model built from it has that basis."""

import subprocess
import sys

import pytest
from experiments import REPO, load
from mmengine.registry import MODELS, DefaultScope

from ebv_mm.basis import make_basis, size_in_name
from ebv_mm.config_bases import basis_paths
from ebv_mm.layers import EBVConv2d, EBVLinear


@pytest.mark.parametrize(
    'name',
    [
        'mmpretrain/resnet32_ebv_cifar100-lt-100',
        'mmdet/mask_rcnn_r50_ebv_1x',
        'mmdet/cascade_mask_rcnn_r50_ebv_1x',
        'mmseg/upernet_r18_ebv_80k',
        'mmdet/mask_rcnn_r50_ebv_voc',
    ],
)
def test_config_builds_with_the_basis_that_the_tool_makes(name, tmp_path, monkeypatch):
    tool = [sys.executable, str(REPO / 'tools' / 'make_basis.py'), str(REPO / 'configs' / f'{name}.py')]
    subprocess.run(tool, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    monkeypatch.chdir(tmp_path)
    config = load(name)
    with DefaultScope.overwrite_default_scope(config.default_scope):
        model = MODELS.build(config.model)
    layers = [module for module in model.modules() if isinstance(module, (EBVLinear, EBVConv2d))]
    (file,) = basis_paths(config.model.to_dict())
    assert {(layer.dim, layer.tau, layer.why_no_basis) for layer in layers} == {(size_in_name(file)[1], 0.07, None)}
    for layer in layers:
        # no row of the basis is left over, but for the background that masks do without
        assert size_in_name(file)[0] - layer.num_vectors == (
            1 if isinstance(layer, EBVConv2d) and 'mmdet' in name else 0
        )


@pytest.mark.slow
@pytest.mark.parametrize('dim, authors', [(100, 82.239), (200, 85.410), (300, 86.673), (400, 87.477), (500, 87.993)])
def test_algorithm_1_reaches_the_angles_of_the_authors(dim, authors):
    config = load(f'mmpretrain/resnet50_ebv_a2_d{dim}_alg1')
    options = config.basis_options.to_dict()
    given = {name: options.pop(name) for name in ('method', 'seed', 'alpha')}
    assert given['method'] == 'algorithm1' and size_in_name(config.model.head.basis) == (1000, dim)
    assert make_basis(1000, dim, options=options, **given).min_angle >= authors
