"""The authors' files, and networks of timm and torchvision: the same outputs under mmpretrain's names."""

import pickle

import pytest
import timm
import torch
import torchvision
from mmengine.config import Config
from torch import nn
from torch.nn import functional

from ebv_mm.conversion.__main__ import main
from ebv_mm.conversion.models import build
from ebv_mm.conversion.other_names import mmpretrain_names

TAU = 0.07
RESNET = dict(
    default_scope='mmpretrain',
    model=dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=50, num_stages=4, out_indices=(3,), style='pytorch'),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='EBVClsHead', num_classes=9, in_channels=2048, basis='9x6.safetensors', tau=TAU),
    ),
)
SWIN = dict(
    default_scope='mmpretrain',
    model=dict(
        type='ImageClassifier',
        backbone=dict(type='SwinTransformer', arch='tiny', img_size=224),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=6, in_channels=768),
    ),
)


def randomise(model: nn.Module) -> nn.Module:
    """Running averages, norms and biases, one or zero at first, become random, as after training."""
    for part in model.state_dict().values():
        if part.is_floating_point() and part.ndim == 1:
            part.uniform_(0.5, 1.5)
    return model.eval()


@torch.no_grad()
def logits(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    return model.head(model.extract_feat(images))


def timm_swin(num_classes: int) -> nn.Module:
    return timm.create_model('swin_tiny_patch4_window7_224', num_classes=num_classes)


def torchvision_swin(num_classes: int) -> nn.Module:
    return torchvision.models.swin_t(num_classes=num_classes)


def timm_resnet(num_classes: int) -> nn.Module:
    return timm.create_model('resnet50', num_classes=num_classes)


def torchvision_resnet(num_classes: int) -> nn.Module:
    return torchvision.models.resnet50(num_classes=num_classes)


@pytest.mark.parametrize(
    'make, num_classes, dim',
    [(timm_resnet, 9, 6), (timm_resnet, 6, 9), (torchvision_resnet, 9, 6), (torchvision_swin, 9, 6)],
)
def test_networks_with_an_ebv_classifier(make, num_classes, dim, tmp_path):
    """A network into R^d, as the authors save theirs: its outputs and the basis, both normalised, give the logits."""
    torch.manual_seed(0)
    net = randomise(make(dim))
    raw = torch.randn(num_classes, dim)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = net

    torch.save(nn.DataParallel(Net()).state_dict(), tmp_path / 'authors.pth')
    (tmp_path / 'basis.pkl').write_bytes(pickle.dumps(raw))
    swin = make is torchvision_swin
    cfg = Config(SWIN if swin else RESNET)
    cfg.model.head.update(type='EBVClsHead', num_classes=num_classes, basis=f'{num_classes}x{dim}.safetensors', tau=TAU)
    cfg.dump(str(tmp_path / 'net.py'))
    main([str(tmp_path / name) for name in ('net.py', 'authors.pth')]
         + ['--authors-basis', str(tmp_path / 'basis.pkl'), '--out', str(tmp_path / 'out')])  # fmt: skip
    model = build(cfg)
    model.load_state_dict(torch.load(tmp_path / 'out' / 'net.pth')['state_dict'])
    images = torch.randn(2, 3, *((224, 224) if swin else (64, 64)))
    with torch.no_grad():
        expected = functional.normalize(net(images)) @ functional.normalize(raw).T / TAU
    torch.testing.assert_close(logits(model, images), expected, rtol=1e-4, atol=1e-4)


def test_files_that_do_not_belong_together(tmp_path):
    torch.save(timm.create_model('resnet50', num_classes=6).state_dict(), tmp_path / 'authors.pth')
    Config(RESNET).dump(str(tmp_path / 'resnet50_ebv.py'))
    arguments = [str(tmp_path / 'resnet50_ebv.py'), str(tmp_path / 'authors.pth'), '--out', str(tmp_path / 'out')]
    for shape, message in (((9, 7), 'projects into 6'), ((8, 6), 'has 8 vectors, but')):
        (tmp_path / 'basis.pkl').write_bytes(pickle.dumps(torch.randn(shape)))
        with pytest.raises(SystemExit, match=message):
            main([*arguments, '--authors-basis', str(tmp_path / 'basis.pkl')])
    assert not (tmp_path / 'out' / 'resnet50_ebv.pth').exists()


def old_timm(state: dict) -> dict:
    """Names of timm 0.6, of the authors' Swins: downsampling ends a stage, and the classifier is ``head``."""
    out = {}
    for name, value in state.items():
        if '.downsample.' in name:
            name = f'layers.{int(name.split(".")[1]) - 1}.' + name.split('.', 2)[2]
        out[name.replace('head.fc.', 'head.')] = value
    return out


@pytest.mark.parametrize('make, rename', [(timm_swin, dict), (timm_swin, old_timm), (torchvision_swin, dict)])
def test_swin_with_an_fc_classifier(make, rename):
    torch.manual_seed(0)
    net = randomise(make(6))
    state = mmpretrain_names(rename(net.state_dict()))
    model = build(Config(SWIN))
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all('relative_position_index' in name for name in missing)
    images = torch.randn(1, 3, 224, 224)
    torch.testing.assert_close(logits(model, images), net(images).detach(), rtol=1e-4, atol=1e-4)


def test_resnet_of_torchvision():
    torch.manual_seed(0)
    net = randomise(torchvision.models.resnet18(num_classes=5))
    cfg = Config(RESNET)
    cfg.model.backbone.depth = 18
    cfg.model.head = dict(type='LinearClsHead', num_classes=5, in_channels=512)
    model = build(cfg)
    model.load_state_dict(mmpretrain_names(net.state_dict()))
    images = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(logits(model, images), net(images).detach(), rtol=1e-4, atol=1e-4)


def test_names_of_mmpretrain_stay():
    state = build(Config(SWIN)).state_dict()
    assert mmpretrain_names(state) is state
