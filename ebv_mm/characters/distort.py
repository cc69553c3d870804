"""Small distortions of a character, as another hand or another press would make them; some 20,000 a second and core."""

import cv2
import numpy as np

_KERNEL = np.ones((3, 3), np.uint8)


def distort(
    image: np.ndarray,
    random: np.random.RandomState,
    *,
    shift: float = 0.04,
    scale: float = 0.06,
    shear: float = 0.06,
    stroke: float = 0.5,
    blur: float = 0.7,
) -> np.ndarray:
    """Shift, scale and shear an image (H, W) of bright ink on black, change its strokes' width, and blur it.

    Args:
        image: uint8.
        random: Where the random numbers come from; ``np.random`` itself will do.
        shift: Standard deviation, as a share of the edge.
        scale: Standard deviation of the logarithm; of height and width apart, a third of it.
        shear: Standard deviation, of rows against columns and of columns against rows.
        stroke: At most so much of the way to the picture that is one pixel bolder, or thinner.
        blur: Largest standard deviation in pixels.
    """
    height, width = image.shape
    normal, uniform = random.standard_normal(6), random.random_sample(2)
    both = scale * normal[0]
    matrix = np.array(
        [
            [np.exp(both + scale / 3 * normal[1]), shear * normal[2], 0],
            [shear * normal[3], np.exp(both - scale / 3 * normal[1]), 0],
        ]
    )
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    matrix[:, 2] = centre - matrix[:, :2] @ centre + shift * normal[4:] * (width, height)
    out = cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_LINEAR)
    if stroke:
        change = stroke * (2 * uniform[0] - 1)
        other = cv2.dilate(out, _KERNEL) if change > 0 else cv2.erode(out, _KERNEL)
        out = cv2.addWeighted(out, 1 - abs(change), other, abs(change), 0)
    if blur * uniform[1] > 0.1:  # less is nothing in 8 bits
        out = cv2.GaussianBlur(out, (3, 3), blur * uniform[1])
    return out
