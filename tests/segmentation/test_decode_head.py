"""EBVDecodeHead over all the decode heads of mmseg, and those that it must refuse."""

import pytest
import torch
from cases import pyramid
from mmengine.registry import MODELS, DefaultScope
from mmengine.structures import PixelData
from mmseg.registry import MODELS as MMSEG_MODELS
from mmseg.structures import SegDataSample

from ebv_mm import EBVConv2d, EBVDecodeHead

pytestmark = pytest.mark.both_stacks


@pytest.fixture(autouse=True)
def _mmseg():
    with DefaultScope.overwrite_default_scope('mmseg'):
        yield


NON_LOCAL = dict(reduction=2, use_scale=True, mode='embedded_gaussian')
HEADS = {
    'ANNHead': dict(
        in_channels=[32, 64], in_index=[2, 3], project_channels=8,
        query_scales=(1,), key_pool_scales=(1, 2),
    ),
    'APCHead': dict(pool_scales=(1, 2)),
    'CCHead': dict(),
    'DAHead': dict(pam_channels=8),
    'DMHead': dict(filter_sizes=(1, 3)),
    'EMAHead': dict(ema_channels=16, num_bases=4, num_stages=2),
    'EncHead': dict(in_channels=[16, 32, 64], in_index=[1, 2, 3], num_codes=4, use_se_loss=False),
    'GCHead': dict(ratio=1 / 4, pooling_type='att', fusion_types=('channel_add',)),
    'ISAHead': dict(isa_channels=8, down_factor=(2, 2)),
    'LightHamHead': dict(
        in_channels=[16, 32, 64], in_index=[1, 2, 3], ham_channels=16, ham_kwargs=dict(MD_R=4),
        norm_cfg=dict(type='GN', num_groups=4),
    ),
    'LRASPPHead': dict(
        in_channels=[8, 16, 64], in_index=[0, 1, 3], branch_channels=(8, 16), input_transform='multiple_select'
    ),
    'NLHead': NON_LOCAL,
    'DepthwiseSeparableASPPHead': dict(dilations=(1, 2), c1_in_channels=8, c1_channels=4),
    'DepthwiseSeparableFCNHead': dict(num_convs=1),
    'SETRUPHead': dict(num_convs=1, norm_cfg=dict(type='BN')),
    'STDCHead': dict(num_convs=1, boundary_threshold=0.1),
}  # fmt: skip


@pytest.mark.parametrize('name', HEADS)
def test_decode_head(name, basis_file):
    arguments = dict(in_channels=64, in_index=3, channels=16, num_classes=5, norm_cfg=dict(type='BN'))
    head = EBVDecodeHead(name, basis=basis_file(5, 6), **{**arguments, **HEADS[name]})
    assert isinstance(head, MMSEG_MODELS.get(name))
    assert isinstance(head.conv_seg, EBVConv2d)
    head.init_weights()
    assert head.conv_seg.weight.std().item() == pytest.approx(0.01, rel=0.4)
    outputs = head(pyramid(2, 400 if name == 'LRASPPHead' else 16))  # it pools over 49 pixels
    outputs = [outputs] if torch.is_tensor(outputs) else [output for output in outputs if output.ndim == 4]
    assert all(output.shape[1] == 5 for output in outputs)
    sum(output.square().sum() for output in outputs).backward()
    assert head.conv_seg.weight.grad.any()


REFUSED = {
    'PointHead': dict(in_channels=[8], in_index=[0], channels=8),
    'SegmenterMaskTransformerHead': dict(
        in_channels=8, channels=8, num_layers=1, num_heads=2, embed_dims=8, in_index=0
    ),
    'Mask2FormerHead': None,
    'IterativeDecodeHead': None,
}


@pytest.mark.parametrize('name', REFUSED)
def test_heads_that_do_not_classify_by_conv_seg_are_refused(name, basis_file, monkeypatch):
    arguments = REFUSED[name]
    if arguments is None:
        # Their constructors need a page of arguments that do not matter here: let them do nothing.
        monkeypatch.setattr(MMSEG_MODELS.get(name), '__init__', lambda self, **_: torch.nn.Module.__init__(self))
        arguments = {}
    with pytest.raises(TypeError, match=rf"cannot use head='{name}', because .*'UPerHead'"):
        EBVDecodeHead(name, basis=basis_file(5, 6), **({'num_classes': 5, **arguments} if arguments else {}))


@pytest.mark.parametrize('name', ['DDRHead', 'PIDHead'])
def test_balanced_init_outlasts_a_head_that_initialises_all_its_layers_itself(name, basis_file):
    arguments = dict(in_channels=16, channels=8, num_classes=5, norm_cfg=dict(type='BN'), basis=basis_file(5, 6))
    head = EBVDecodeHead(name, **arguments, balanced_init=True, tau=0.1)
    head.init_weights()
    assert head.conv_seg.weight.norm().item() == pytest.approx(10, rel=0.5)


def test_binary_segmentation_with_one_output(basis_file):
    head = EBVDecodeHead(
        'FCNHead', basis=basis_file(2, 3), in_channels=8, channels=8, num_classes=2, out_channels=1, in_index=0
    )
    assert head.conv_seg.num_vectors == 1


def test_the_whole_segmentor_learns(basis_file):
    """A few steps on one batch: decode and auxiliary loss both fall."""
    heads = dict(channels=16, num_classes=5, norm_cfg=dict(type='BN'), type='EBVDecodeHead', basis=basis_file(5, 5))
    model = MODELS.build(
        dict(
            type='EncoderDecoder',
            backbone=dict(type='ResNet', depth=18, base_channels=8, norm_cfg=dict(type='BN')),
            decode_head=dict(head='UPerHead', in_channels=[8, 16, 32, 64], in_index=[0, 1, 2, 3], **heads),
            auxiliary_head=dict(head='FCNHead', in_channels=32, in_index=2, num_convs=1, **heads),
        )
    )
    labels = torch.randint(0, 5, (2, 1, 32, 32))
    labels[:, :, :4] = 255
    samples = [SegDataSample(gt_sem_seg=PixelData(data=label), metainfo=dict(img_shape=(32, 32))) for label in labels]
    images = torch.randn(2, 3, 32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    history = []
    for _ in range(8):
        losses = {name: value for name, value in model.loss(images, samples).items() if 'loss' in name}
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
        history.append({name: float(value) for name, value in losses.items()})
    assert set(history[0]) == {'decode.loss_ce', 'aux.loss_ce'}
    for name in history[0]:
        assert history[-1][name] < history[0][name]
