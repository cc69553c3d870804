"""What the paper, its authors' logs and those whom it quotes say about every config, in their words.

A config's name is an address: each part of it that a pattern finds changes some facts. What a fact is in a config,
``readings.py`` knows.
"""

import re

A1 = dict(
    images='ImageNet',
    classes=1000,
    network='ResNet-50',
    pretrained=None,
    optimizer='SGD',
    rate=0.5,
    momentum=0.9,
    decay=2e-5,
    decay_of_norms=2e-5,
    batch=1024,
    epochs=105,
    mixed_precision=True,
    crop=224,
    flip=0.5,
    trivial_augment=True,
    erasing=0.1,
    smoothing=0.0,
    mixes={},
    own_initialisation=False,  # torch's
    averaged_weights=False,
    best_epoch=True,
    seed=42,
    ranks_draw_apart=True,
    test_size=(256, 256),  # short edge, crop
    head=None,
)
A2 = dict(smoothing=0.1, mixes=dict(Mixup=0.2, CutMix=1.0))
PLAIN = dict(trivial_augment=False, erasing=0.0)
# He et al.: 600,000 iterations at batch 256, with the host's initialisation and without mixed precision.
A0 = dict(
    PLAIN,
    rate=0.1,
    decay=1e-4,
    decay_of_norms=1e-4,
    batch=256,
    epochs=None,
    iterations=600_000,
    mixed_precision=False,
    own_initialisation=True,
    ranks_draw_apart=False,
    test_size=(256, 224),
)
SWIN = dict(
    network='Swin-T', optimizer='AdamW', rate=0.001, momentum=None, test_size=(224, 224), own_initialisation=None
)
CIFAR = dict(
    PLAIN,
    network='ResNet-32',
    rate=0.1,
    decay=5e-4,
    decay_of_norms=5e-4,
    batch=128,
    epochs=200,
    mixed_precision=False,
    crop=32,
    seed=0,
    ranks_draw_apart=False,
    test_size=None,  # the images as they are
)
# torchvision's published steps: weight decay 1e-4, and 224 pixels out of 256 to test.
TORCHVISION = dict(decay=1e-4, decay_of_norms=1e-4, test_size=(256, 224))
KANG = dict(PLAIN, rate=0.2, decay=1e-4, decay_of_norms=1e-4, batch=512, epochs=90, test_size=(256, 224))

CLASSIFICATION = [
    (r'_a0$', A0),
    (r'swin_tiny', SWIN),
    (r'_a2|tv_600e', A2),
    (r'adamw-1e-2', dict(optimizer='AdamW', rate=0.01, momentum=None)),
    (r'adamw-1e-3', dict(optimizer='AdamW', rate=0.001, momentum=None)),
    (r'_305e', dict(epochs=305)),
    (r'_605e', dict(epochs=605)),
    (r'_lr', PLAIN),
    (r'_lr_ta', dict(trivial_augment=True)),
    (r'_a1_ls', dict(smoothing=0.1)),
    (r'_ls_mixup', dict(mixes=dict(Mixup=0.2))),
    (r'_tv_', TORCHVISION),
    (r'tv_.*90e', dict(epochs=90)),
    (r'tv_600e', dict(epochs=600)),
    (r'tv_600e_decay', dict(decay=2e-5, decay_of_norms=0.0)),
    (r'_inat2018', dict(images='INaturalist2018', classes=8142, epochs=200)),
    (r'_inat2018_plain', KANG),
    (r'_100k', dict(images='CustomDataset', classes=100_000, pretrained='torchvision://resnet50')),
    (r'cifar10-lt', dict(CIFAR, images='LongTailCIFAR10', classes=10)),
    (r'cifar100-lt', dict(CIFAR, images='LongTailCIFAR100', classes=100)),
    (r'_ebv_', dict(head=(1000, 1000, 0.07))),
    *((rf'ebv_a2_d{d}(_|$)', dict(head=(1000, d, 0.07))) for d in (100, 200, 300, 400, 500, 2000)),
    (r'ebv_inat2018', dict(head=(8142, 8142, 0.02))),
    (r'ebv_100k', dict(head=(100_000, 5000, 0.007))),
    (r'ebv_cifar10-', dict(head=(10, 10, 0.07))),
    (r'ebv_cifar100-', dict(head=(100, 100, 0.07))),
]

COCO = dict(
    classes=80,
    optimizer='SGD',
    rate=0.02,
    momentum=0.9,
    decay=1e-4,
    decay_of_norms=1e-4,
    batch=16,
    epochs=12,
    repeated=1,
    short_edges=(800, 800),
    long_edge=1333,
    polygons=False,
    flip=0.5,
    test_scale=(1333, 800),
    seed=0,
    heads=None,
    mask_heads=None,
)
DETECTION = [
    (r'swin', dict(optimizer='AdamW', rate=1e-4, momentum=None, decay=0.05, decay_of_norms=0.0)),
    (r'_3x', dict(repeated=3, short_edges=(640, 800), polygons=True)),
    (r'_ebv_', dict(heads=(81, 81, 0.07), mask_heads=(81, 81, 0.07))),  # the masks take the first 80
    # beyond the paper
    (r'cascade', dict(mask_heads=None, seed=None)),
    (r'lvis', dict(classes=1203, heads=(1204, 1204, 0.07), mask_heads=None, seed=None, short_edges=(640, 800))),
]

ADE20K = dict(
    classes=150,
    optimizer='SGD',
    rate=0.01,
    momentum=0.9,
    decay=5e-4,
    decay_of_norms=5e-4,
    batch=16,
    iterations=160_000,
    scale=(2048, 512),
    ratios=(0.5, 2.0),
    crop=512,
    flip=0.5,
    auxiliary_weight=0.4,
    ignored=255,
    sliding=False,
    seed=0,
    heads=set(),
)
SEGMENTATION = [
    (r'_80k', dict(iterations=80_000)),
    (r'8xb4', dict(batch=32)),
    (r'swin', dict(optimizer='AdamW', rate=6e-5, momentum=None, decay=0.01, decay_of_norms=0.0)),
    (r'r18_\w+_80k|swin', dict(seed=271822148)),
    (r'fpn', dict(auxiliary_weight=None)),
    (r'_ebv_', dict(heads={(150, 150, 0.07)})),
]

HOSTS = {'mmpretrain': (A1, CLASSIFICATION), 'mmdet': (COCO, DETECTION), 'mmseg': (ADE20K, SEGMENTATION)}


def facts(name: str) -> dict:
    """The facts of a config."""
    found, changes = HOSTS[name.split('/')[0]]
    for pattern, change in changes:
        if re.search(pattern, name):
            found = {**found, **change}
    return found
