import pytest
import torch
from mmengine.registry import MODELS

import ebv_mm
from ebv_mm.classification import CIFARResNet
from ebv_mm.classification.resnet import PaddedShortcut


def layers(n: int) -> int:
    """Parameters of 6n + 2 layers without the classifier, counted from the definition (He et al., section 4.2)."""
    widths = [16, 32, 64]
    convolutions = 3 * 16 * 9
    for stage, width in enumerate(widths):
        before = widths[max(stage - 1, 0)]
        convolutions += 9 * width * (before + (2 * n - 1) * width)
    norms = 2 * (16 + sum(2 * n * width for width in widths))
    return convolutions + norms


# Millions, from Table 6 of He et al., with the classifier for ten classes.
@pytest.mark.parametrize(('depth', 'millions'), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)])
def test_sizes_of_the_paper(depth, millions):
    size = sum(p.numel() for p in CIFARResNet(depth).parameters())
    assert size == layers((depth - 2) // 6)
    assert round((size + 650) / 1e6, 1 if millions > 1 else 2) == millions


def test_shapes_and_depth():
    model = MODELS.build(dict(type='CIFARResNet', depth=32))
    assert isinstance(model, CIFARResNet) and ebv_mm.CIFARResNet is CIFARResNet
    convolutions = [m for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
    assert len(convolutions) == 31 and all(m.kernel_size == (3, 3) for m in convolutions)
    (features,) = model(torch.randn(2, 3, 32, 32))
    assert features.shape == (2, 64, 8, 8)


def test_shortcut_passes_what_it_got_and_zeros():
    x = torch.randn(2, 16, 8, 8)
    y = PaddedShortcut(2, 16)(x)
    assert torch.equal(y[:, 8:24], x[:, :, ::2, ::2])
    assert y.shape == (2, 32, 4, 4) and not y[:, :8].any() and not y[:, 24:].any()


def test_wrong_depth_is_said():
    with pytest.raises(ValueError, match='depth = 50, but there are 8, 20, 32, 44, 56, 110'):
        CIFARResNet(50)


def test_channels_last_computes_the_same():
    plain, last = CIFARResNet(20), CIFARResNet(20, channels_last=True)
    last.load_state_dict(plain.state_dict())
    x = torch.randn(4, 3, 32, 32)
    (expected,), (features,) = plain(x), last(x)
    assert features.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-4)


def test_flat_features_keep_their_places():
    small = dict(depth=8, in_channels=1, base_channels=32, strides=(2, 2, 2))
    plain, flat = CIFARResNet(**small), CIFARResNet(**small, channels_last=True, flat=True)
    flat.load_state_dict(plain.state_dict())
    x = torch.randn(2, 1, 32, 32)
    (expected,), (features,) = plain(x), flat(x)
    assert expected.shape == (2, 128, 4, 4)
    torch.testing.assert_close(features, expected.reshape(2, -1), rtol=1e-4, atol=1e-4)


def test_bfloat16_is_that_of_the_backbone_alone():
    """Features are float32 and those of float32 but for bfloat16's rounding; weights stay in float32."""
    torch.manual_seed(0)
    plain, fast = CIFARResNet(20), CIFARResNet(20, bfloat16=True)
    fast.load_state_dict(plain.state_dict())
    x = torch.randn(4, 3, 32, 32)
    plain.eval(), fast.eval()
    (expected,), (found,) = plain(x), fast(x)
    assert found.dtype == torch.float32 and not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=0.1, atol=0.05 * expected.abs().max().item())
    found.sum().backward()
    assert all(parameter.grad.dtype == torch.float32 for parameter in fast.parameters())
