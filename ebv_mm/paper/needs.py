"""What a config needs and cannot make: its data, and where to put them."""

from pathlib import Path
from typing import Dict, Iterable, Iterator, List, NamedTuple, Tuple

from mmengine.config import Config


class Data(NamedTuple):
    """A data set as its configs expect it.

    Args:
        title: What it is, and where it is to be had.
        paths: What must be there, below the folder that names it.
    """

    title: str
    paths: Tuple[str, ...]


# By the data_root of the configs. CIFAR is not here: its host downloads it.
DATA: Dict[str, Data] = {
    'data/imagenet': Data('ImageNet-1K from image-net.org, unpacked', ('train', 'val')),
    'data/inaturalist2018': Data(
        'iNaturalist 2018 from github.com/visipedia/inat_comp, unpacked',
        ('train_val2018', 'train2018.json', 'val2018.json'),
    ),
    'data/inat100k': Data(
        "10w_classes.zip, a release of the authors' repository aassxun/Equiangular-Basis-Vectors, unpacked; then "
        'python tools/list_images.py data/inat100k writes the lists',
        ('train.txt', 'val.txt'),
    ),
    'data/coco': Data(
        'COCO 2017 from cocodataset.org, unpacked',
        (
            'train2017',
            'val2017',
            'annotations/instances_train2017.json',
            'annotations/instances_val2017.json',
        ),
    ),
    'data/ade/ADEChallengeData2016': Data(
        'ADE20K (ADEChallengeData2016.zip) from data.csail.mit.edu/places/ADEchallenge, unpacked',
        ('images/training', 'images/validation', 'annotations/training', 'annotations/validation'),
    ),
}


def missing_data(configs: Iterable[Config]) -> List[str]:
    """A sentence for each data set that is not complete."""
    roots = dict.fromkeys(root for cfg in configs for root in data_roots(cfg) if root in DATA)
    sentences = []
    for root in roots:
        absent = [path for path in DATA[root].paths if not (Path(root) / path).exists()]
        if absent:
            sentences.append(f'{root} lacks {", ".join(absent)}; put there: {DATA[root].title}')
    return sentences


def data_roots(cfg: Config) -> Iterator[str]:
    """The folders of the data sets of a config, also of one that repeats another."""
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        dataset = (cfg.get(name) or {}).get('dataset') or {}
        while 'dataset' in dataset:
            dataset = dataset['dataset']
        if 'data_root' in dataset:
            yield str(Path(dataset['data_root']))


def weights(cfg: Config) -> List[str]:
    """The pretrained weights that the host downloads for a config, where its cache does not have them."""
    backbone = cfg.model.get('backbone', {})
    named = [cfg.model.get('pretrained'), (backbone.get('init_cfg') or {}).get('checkpoint')]
    return [address for address in named if address]
