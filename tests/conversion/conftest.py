from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from ebv_mm.conversion.models import build

CLASSES = 7
CONFIG = """
default_scope = 'mmpretrain'
data_preprocessor = dict(num_classes=7, mean=[120, 120, 120], std=[60, 60, 60])
model = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18, base_channels=4, stem_channels=4),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=7, in_channels=32, loss=dict(type='CrossEntropyLoss')),
)
"""


@pytest.fixture
def fc_config(tmp_path) -> Path:
    path = tmp_path / 'resnet18.py'
    path.write_text(CONFIG)
    return path


@pytest.fixture
def fc_model(fc_config) -> torch.nn.Module:
    """With running averages that are not those of a new network, and a classifier of some size."""
    torch.manual_seed(0)
    model = build(Config.fromfile(str(fc_config)))
    for name, part in model.state_dict().items():
        if 'running' in name:
            part.uniform_(0.5, 1.5)
    torch.nn.init.normal_(model.head.fc.weight)
    torch.nn.init.normal_(model.head.fc.bias)
    return model


@pytest.fixture
def fc_checkpoint(fc_model, tmp_path) -> Path:
    path = tmp_path / 'epoch_3.pth'
    state = fc_model.state_dict()
    ema = {f'module.{name}': 2 * value if 'fc' in name else value for name, value in state.items()}
    torch.save(
        dict(
            meta=dict(epoch=3, cfg=CONFIG, dataset_meta=dict(classes=list('abcdefg'))),
            state_dict=state,
            optimizer=dict(state={}),
            ema_state_dict=dict(ema, steps=torch.tensor(9)),
        ),
        path,
    )
    return path
