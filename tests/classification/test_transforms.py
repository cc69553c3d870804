from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision.transforms.functional as reference
from mmengine.dataset import Compose, default_collate
from mmengine.registry import MODELS, TRANSFORMS, DefaultScope
from mmpretrain.datasets.transforms import ResizeEdge
from PIL import Image
from torch import nn

import ebv_mm  # noqa: F401, registers the names
from ebv_mm.classification import PositionCrop, ResizeCenterCrop

REPO = Path(__file__).parents[2]
SHAPES = [(375, 500), (500, 333), (64, 64), (300, 300), (97, 1000)]


def picture(shape, seed: int = 0) -> np.ndarray:
    """A smooth image, as resizing noise would compare nothing but rounding."""
    small = np.random.RandomState(seed).randint(0, 256, (8, 8, 3), dtype=np.uint8)
    return np.array(Image.fromarray(small).resize(shape[::-1], Image.BILINEAR))


@pytest.mark.parametrize('size', [224, 256, 320])
@pytest.mark.parametrize('shape', SHAPES)
def test_resize_center_crop_is_that_of_torchvision(shape, size):
    image = picture(shape)
    result = ResizeCenterCrop(size)(dict(img=image))
    expected = reference.center_crop(reference.resize(Image.fromarray(image), size), size)
    assert result['img'].shape == (size, size, 3) and result['img_shape'] == (size, size)
    assert np.array_equal(result['img'], np.array(expected))


@pytest.mark.parametrize('shape', SHAPES)
def test_ten_crops_are_those_of_torchvision(shape):
    image = ResizeEdge(256)(dict(img=picture(shape)))['img']
    flipped = image[:, ::-1]
    crops = [PositionCrop(224, p)(dict(img=i))['img'] for i in (image, flipped) for p in PositionCrop.POSITIONS]
    expected = reference.ten_crop(torch.tensor(image.copy()).permute(2, 0, 1), 224)
    for crop, other in zip(crops, expected):
        assert np.array_equal(crop, other.permute(1, 2, 0).numpy())


def test_wrong_uses_say_so():
    with pytest.raises(ValueError, match="position = 'middle' is unknown; choose from top_left"):
        PositionCrop(224, 'middle')
    with pytest.raises(ValueError, match='100 x 300 pixels is smaller than crop_size = 224'):
        PositionCrop(224, 'center')(dict(img=np.zeros((100, 300, 3))))


def test_ten_crop_testing_averages_the_scores():
    """The whole way: pipeline of setting A0, collation, model; against a loop over the crops."""
    from mmengine.config import Config
    from mmpretrain.models import ImageClassifier

    config = Config.fromfile(REPO / 'configs/mmpretrain/resnet50_fc_a0.py')
    images = [picture((300, 400), seed) for seed in range(3)]
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        pipeline = Compose([TRANSFORMS.build(step) for step in config.tta_pipeline[1:]])  # all but the loading
        batch = default_collate([pipeline(dict(img=image, gt_label=k)) for k, image in enumerate(images)])
        model = ImageClassifier(
            backbone=dict(type='ResNet', depth=18),
            neck=dict(type='GlobalAveragePooling'),
            head=dict(type='LinearClsHead', num_classes=5, in_channels=512),
            data_preprocessor=dict(mean=[127.0] * 3, std=[50.0] * 3),
        )
        nn.init.normal_(model.head.fc.weight)
        tta = MODELS.build(dict(config.tta_model, module=model)).eval()
        merged = tta.test_step(batch)
        for k, image in enumerate(images):
            resized = ResizeEdge(256, backend='pillow')(dict(img=image))['img']
            crops = torch.stack(reference.ten_crop(torch.tensor(resized.copy()).permute(2, 0, 1), 224)).float()
            with torch.no_grad():
                scores = model((crops - 127) / 50).softmax(-1)
            assert torch.allclose(merged[k].pred_score, scores.mean(0), atol=1e-5)
            assert merged[k].gt_label.item() == k
