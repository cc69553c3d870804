"""Each EBV config differs from its FC twin in the head alone."""

import pytest
from experiments import CONFIGS, SMALL, is_ebv, load, plain, twin

HEAD_KEYS = {'type', 'head', 'basis', 'tau', 'balanced_init', 'cls_predictor_cfg'}


def differences(a: object, b: object, where: str = '') -> set:
    """The places at which two nested configs differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        return {place for key in {*a, *b} for place in differences(a.get(key), b.get(key), f'{where}.{key}')}
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return {place for k, pair in enumerate(zip(a, b)) for place in differences(*pair, f'{where}.{k}')}
    return set() if a == b else {where}


def test_differences_sees_every_kind():
    a = dict(x=1, y=[dict(z=1), 2], only=0)
    assert differences(a, dict(x=1, y=[dict(z=3), 4])) == {'.y.0.z', '.y.1', '.only'}
    assert differences(a, a) == set() and differences([1], [1, 2], '.l') == {'.l'}


@pytest.mark.parametrize('name', [name for name in CONFIGS + SMALL if is_ebv(name)])
def test_only_the_head_differs_from_the_fc_twin(name):
    found = differences(plain(load(name).to_dict()), plain(load(twin(name)).to_dict()))
    model = {place for place in found if place.startswith('.model.')}
    assert model and {place.rsplit('.', 1)[1] for place in model} <= HEAD_KEYS
    assert all('head' in place for place in model)
    # variables that a config file leaves behind, and that no training reads
    assert found - model <= {'.custom_imports', '.basis', '.basis_options', '.cls_predictor_cfg', '.bbox_head'}


# The host's own files behind our FC twins.
ZOO = {
    'mmdet/mask_rcnn_r50_fc_1x': 'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py',
    'mmdet/mask_rcnn_r50_fc_3x': 'mmdet::mask_rcnn/mask-rcnn_r50_fpn_ms-poly-3x_coco.py',
    'mmdet/mask_rcnn_swin_tiny_fc_1x': 'mmdet::swin/mask-rcnn_swin-t-p4-w7_fpn_1x_coco.py',
    'mmseg/upernet_swin_tiny_fc_160k': (
        'mmseg::swin/swin-tiny-patch4-window7-in1k-pre_upernet_8xb2-160k_ade20k-512x512.py'
    ),
    'mmseg/fpn_r50_fc_160k': 'mmseg::sem_fpn/fpn_r50_4xb4-160k_ade20k-512x512.py',
    **{
        f'mmseg/upernet_{net}_fc_{length}{batch}': f'mmseg::upernet/upernet_{net}_4xb4-{length}_ade20k-512x512.py'
        for net in ('r18', 'r50')
        for length in ('80k', '160k')
        for batch in ('', '_8xb4')
    },
}
ADDED = {'.randomness', '.auto_scale_lr', '.tta_pipeline.1.transforms.0', '.resizes', '.load', '.augment'}
R18 = {'.model.data_preprocessor.size'}  # without which mmseg 1 does not train


def test_every_twin_of_dense_hosts_is_from_the_zoo():
    dense = {name for name in CONFIGS if name.startswith(('mmdet', 'mmseg')) and not is_ebv(name)}
    assert dense == set(ZOO)


@pytest.mark.parametrize('name', ZOO)
def test_an_fc_twin_is_the_zoos_model_with_a_seed_and_the_papers_scales(name):
    found = differences(plain(load(name).to_dict()), plain(load(ZOO[name]).to_dict()))
    found = {next((added for added in ADDED if place.startswith(added)), place) for place in found}
    assert '.randomness' in found and found <= ADDED | (R18 if 'r18' in name else set())


@pytest.mark.parametrize('name', CONFIGS + SMALL)
def test_names_tell_the_head(name):
    model = str(plain(load(name).model.to_dict()))
    assert ("'EBV" in model) == is_ebv(name)
    if is_ebv(name):
        assert load(name).custom_imports == dict(imports=['ebv_mm'], allow_failed_imports=False)


@pytest.mark.parametrize('name', [name for name in CONFIGS if is_ebv(name)])
def test_the_papers_begin_as_the_authors_runs(name):
    """Heads that would begin balanced are told not to."""
    heads = [head for head in (load(name).model.get('head'),) if head and head.type == 'EBVClsHead']
    assert all(head.balanced_init is False for head in heads)
