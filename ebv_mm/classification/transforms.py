"""Transforms for testing: at any resolution by one number, and at ten crops."""

from mmcv.transforms import BaseTransform, CenterCrop, Compose
from mmpretrain.datasets.transforms import ResizeEdge
from mmpretrain.registry import TRANSFORMS


@TRANSFORMS.register_module()
class ResizeCenterCrop(BaseTransform):
    """Resize the short edge to R, then crop R x R from the centre, by the host's ``ResizeEdge`` and ``CenterCrop``.

    With one number in place of two, a checkpoint is tested at another resolution by one option:
    ``--cfg-options test_dataloader.dataset.pipeline.1.size=320``.

    Args:
        size: R.
        backend, interpolation: As in ``ResizeEdge``, but with the defaults of torchvision.
    """

    def __init__(self, size: int, backend: str = 'pillow', interpolation: str = 'bilinear') -> None:
        resize = ResizeEdge(size, edge='short', backend=backend, interpolation=interpolation)
        self.steps = Compose([resize, CenterCrop(size)])

    def transform(self, results: dict) -> dict:
        return self.steps(results)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.steps})'


@TRANSFORMS.register_module()
class PositionCrop(BaseTransform):
    """Crop a square at a corner or at the centre.

    Ten-crop testing (Krizhevsky et al., 2012) is the host's ``TestTimeAug`` over two flips and the five positions,
    with the host's ``AverageClsScoreTTA`` as the model.

    Args:
        crop_size: Edge of the square.
        position: One of ``PositionCrop.POSITIONS``.
    """

    # which part of the free height and width lies before the crop
    POSITIONS = {
        'top_left': (0.0, 0.0),
        'top_right': (0.0, 1.0),
        'bottom_left': (1.0, 0.0),
        'bottom_right': (1.0, 1.0),
        'center': (0.5, 0.5),
    }

    def __init__(self, crop_size: int, position: str) -> None:
        if position not in self.POSITIONS:
            raise ValueError(f'position = {position!r} is unknown; choose from {", ".join(self.POSITIONS)}')
        self.crop_size = crop_size
        self.position = position

    def transform(self, results: dict) -> dict:
        img = results['img']
        free = [edge - self.crop_size for edge in img.shape[:2]]
        if min(free) < 0:
            raise ValueError(
                f'an image of {img.shape[0]} x {img.shape[1]} pixels is smaller than crop_size = {self.crop_size}; '
                'resize it before'
            )
        top, left = (round(part * rest) for part, rest in zip(self.POSITIONS[self.position], free))
        results['img'] = img[top : top + self.crop_size, left : left + self.crop_size]
        results['img_shape'] = results['img'].shape[:2]
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(crop_size={self.crop_size}, position={self.position!r})'
