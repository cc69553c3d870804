"""Pictures of what the models predict beside the truth, and of the angles between class vectors."""

import warnings
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Dict, List, Sequence

import matplotlib
import numpy as np
import torch
from digits import CLASSES
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, MODELS, DefaultScope
from mmengine.runner import load_checkpoint
from torchvision.ops import nms

from ebv_mm.output import new_figure, save_figure

COLOURS = matplotlib.colormaps['tab10'].colors
RIGHT, WRONG = '#1a7f37', '#cf222e'
NUM_SCENES = 6
NUM_DIGITS = 48
MAX_MISTAKES = 24
MIN_SCORE = 0.5
MAX_OVERLAP = 0.5


def predict(config: Path, checkpoint: str, indices: Sequence[int] = ()) -> List:
    """Run a trained model of any host on test images (on all of them, unless told which); returns data samples."""
    cfg = Config.fromfile(config)
    with ExitStack() as stack:
        stack.enter_context(DefaultScope.overwrite_default_scope(cfg.default_scope))
        stack.enter_context(torch.no_grad())
        # The hosts print and warn while they are built.
        stack.enter_context(redirect_stdout(StringIO()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter('ignore')
        dataset = DATASETS.build(cfg.test_dataloader.dataset)
        model = MODELS.build(cfg.model).eval()
        load_checkpoint(model, checkpoint, map_location='cpu', logger='silent')
        return model.test_step(pseudo_collate([dataset[i] for i in indices or range(len(dataset))]))


def draw_classification(samples: List, path: Path) -> None:
    """The first test digits with their predictions, and below them the mistakes."""
    mistakes = [sample for sample in samples if sample.pred_label != sample.gt_label]
    shown = samples[:NUM_DIGITS], mistakes[:MAX_MISTAKES]
    columns = 12
    rows = [-(-len(part) // columns) for part in shown]
    figure = new_figure(columns * 0.85, sum(rows) * 1.15 + 1.2)
    parts = figure.subfigures(2, 1, height_ratios=[max(rows[0], 1) * 1.15 + 0.4, max(rows[1], 1) * 1.15 + 0.4])
    titles = (
        f'The first {len(shown[0])} of {len(samples)} test digits, each with its prediction',
        f'{len(shown[1])} of {len(mistakes)} mistakes: prediction (truth)' if mistakes else 'No mistakes',
    )
    for part, some, title, count in zip(parts, shown, titles, rows):
        part.suptitle(title, fontsize=11)
        axes = part.subplots(max(count, 1), columns, squeeze=False).ravel()
        for axis in axes:
            axis.axis('off')
        for axis, sample in zip(axes, some):
            truth, guess = int(sample.gt_label), int(sample.pred_label)
            axis.imshow(_read(sample.img_path), cmap='gray_r')
            text = str(guess) if guess == truth else f'{guess} ({truth})'
            axis.set_title(text, color=RIGHT if guess == truth else WRONG, fontsize=11, pad=2)
    save_figure(figure, path, dpi=130)


def draw_detection(samples: List, path: Path) -> None:
    """Boxes and masks, the truth above the prediction."""
    figure = new_figure(len(samples) * 2.3, 5.2)
    axes = figure.subplots(2, len(samples))
    for (above, below), sample in zip(axes.T, samples):
        image = _read(sample.img_path)
        truth, guess = sample.gt_instances, sample.pred_instances
        guess = guess[guess.scores >= MIN_SCORE]
        # The host suppresses duplicates within a class only; show the most certain class of each digit.
        guess = guess[nms(guess.bboxes, guess.scores, MAX_OVERLAP)]
        _draw_instances(above, image, truth.labels, truth.bboxes, truth.masks.masks)
        _draw_instances(below, image, guess.labels, guess.bboxes, guess.masks, guess.scores)
    _name_rows(axes, ['truth', f'prediction (score ≥ {MIN_SCORE})'])
    save_figure(figure, path, dpi=130)


def draw_segmentation(samples: List, path: Path) -> None:
    """Scenes, their true classes and the predicted ones."""
    figure = new_figure(len(samples) * 2.1, 7.2)
    axes = figure.subplots(3, len(samples))
    palette = ListedColormap([(0.12, 0.12, 0.12), *COLOURS])
    for column, sample in zip(axes.T, samples):
        column[0].imshow(_read(sample.img_path))
        for axis, labels in zip(column[1:], (sample.gt_sem_seg.data, sample.pred_sem_seg.data)):
            axis.imshow(labels[0], cmap=palette, vmin=-0.5, vmax=10.5, interpolation='nearest')
    _name_rows(axes, ['scene', 'truth', 'prediction'])
    patches = [Patch(color=colour, label=name) for colour, name in zip(COLOURS, CLASSES)]
    figure.legend(handles=patches, ncols=len(patches), loc='outside lower center', frameon=False)
    save_figure(figure, path, dpi=130)


def draw_angles(vectors: Dict[str, Dict[str, torch.Tensor]], path: Path) -> None:
    """For each task, how the angles between the class vectors of EBV (fixed) and of FC (learned) are spread."""
    figure = new_figure(len(vectors) * 4, 3.4)
    axes = figure.subplots(1, len(vectors), sharex=True)
    spreads = {task: {kind: angles(rows) for kind, rows in kinds.items()} for task, kinds in vectors.items()}
    everything = np.concatenate([angle for kinds in spreads.values() for angle in kinds.values()])
    bins = np.arange(np.floor(everything.min() / 2) * 2 - 1, everything.max() + 2, 2)
    for axis, (task, kinds) in zip(axes, spreads.items()):
        for (kind, angle), colour in zip(kinds.items(), (COLOURS[0], COLOURS[1])):
            count, dim = vectors[task][kind].shape
            axis.hist(angle, bins, color=colour, alpha=0.75, label=f'{kind}: {count} vectors in R^{dim}')
        axis.set(title=task, xlabel='angle between two class vectors (degrees)')
        # Room for the legend above the bars.
        axis.margins(y=0.3)
        axis.legend(frameon=False, fontsize=9, loc='upper left')
    axes[0].set_ylabel('pairs')
    save_figure(figure, path, dpi=130)


def angles(vectors: torch.Tensor) -> np.ndarray:
    """The angles between all pairs of rows, in degrees."""
    unit = torch.nn.functional.normalize(vectors.double(), dim=1)
    first, second = torch.triu_indices(len(unit), len(unit), 1)
    return torch.rad2deg(torch.acos((unit @ unit.T)[first, second].clamp(-1, 1))).numpy()


def class_vectors(checkpoint: str, layer: str) -> torch.Tensor:
    """The class vectors of a trained classifier: its fixed basis if it has one, else the rows of its weight."""
    state = torch.load(checkpoint, map_location='cpu')['state_dict']
    return state.get(f'{layer}.basis', state[f'{layer}.weight'].flatten(1))


def _draw_instances(axis, image, labels, boxes, masks, scores=None) -> None:
    shade = np.zeros((*image.shape[:2], 4))
    for i, (label, (left, top, right, bottom)) in enumerate(zip(labels.tolist(), _numpy(boxes))):
        shade[_numpy(masks)[i].astype(bool)] = (*COLOURS[label], 0.6)
        axis.add_patch(
            Rectangle((left - 0.5, top - 0.5), right - left, bottom - top, fill=False, ec=COLOURS[label], lw=1.5)
        )
        # Above the box, or in it where the scene ends.
        bottom_of_text = max(top - 1, 8)
        text = CLASSES[label] if scores is None else f'{CLASSES[label]} {100 * scores[i]:.0f}%'
        axis.text(
            left, bottom_of_text, text, color='white', fontsize=8, va='bottom', weight='bold', clip_on=True,
            bbox=dict(facecolor=COLOURS[label], edgecolor='none', pad=0.8),
        )  # fmt: skip
    axis.imshow(image)
    axis.imshow(shade)


def _name_rows(axes, names: Sequence[str]) -> None:
    for axis in axes.ravel():
        axis.set(xticks=[], yticks=[])
    for axis, name in zip(axes[:, 0], names):
        axis.set_ylabel(name, fontsize=11)


def _read(path: str) -> np.ndarray:
    return matplotlib.image.imread(path)


def _numpy(values) -> np.ndarray:
    return np.asarray(getattr(values, 'tensor', values))
