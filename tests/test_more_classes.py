"""tools/add_classes.py: a config and a checkpoint with more classes, from the reserve or with new vectors."""

import importlib.util
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

REPO = Path(__file__).parents[1]


def tool():
    spec = importlib.util.spec_from_file_location('add_classes', REPO / 'tools' / 'add_classes.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(folder: Path, reserve: int, head: str = 'EBVClsHead', structured: bool = False):
    """A small model of mmpretrain with five classes."""
    cfg = Config(
        dict(
            default_scope='mmpretrain',
            custom_imports=dict(imports=['ebv_mm'], allow_failed_imports=False),
            model=dict(
                type='ImageClassifier',
                backbone=dict(type='LeNet5'),
                neck=dict(type='GlobalAveragePooling'),
                head=dict(
                    type=head,
                    num_classes=5,
                    in_channels=120,
                    basis=dict(num_classes=5 + reserve, dim=12, structured=structured),
                    **(dict(reserve=reserve) if reserve else {}),
                ),
            ),
            data_preprocessor=dict(num_classes=5),
        )
    )
    cfg.dump(folder / 'mine.py')
    init_default_scope('mmpretrain')
    model = MODELS.build(cfg.model) if head == 'EBVClsHead' else torch.nn.Linear(1, 1)
    torch.save(dict(state_dict=model.state_dict()), folder / 'mine.pth')
    return model, [str(folder / 'mine.py'), str(folder / 'mine.pth'), '--add', '2', '--out', str(folder / 'out')]


def grown(folder: Path):
    cfg = Config.fromfile(folder / 'out' / 'mine_plus2.py')
    assert cfg.load_from == str(folder / 'out' / 'mine_plus2.pth')
    model = MODELS.build(cfg.model)
    model.load_state_dict(torch.load(cfg.load_from)['state_dict'])
    return cfg, model.eval()


@pytest.mark.parametrize('structured', [False, True])
@pytest.mark.parametrize('reserve, left', [(2, 0), (3, 1)])
def test_reserved_vectors_become_classes(reserve, left, structured, tmp_path, capsys):
    model, arguments = write(tmp_path, reserve, structured=structured)
    tool().main(arguments)
    assert f'head: 5 -> 7 classes, {left} still reserved; every vector was there' in capsys.readouterr().out
    cfg, after = grown(tmp_path)
    assert cfg.model.head.num_classes == 7 and cfg.model.head.reserve == left
    assert cfg.data_preprocessor.num_classes == 7
    for name, value in model.state_dict().items():
        assert torch.equal(after.state_dict()[name], value), name


@pytest.mark.parametrize('reserve', [0, 1])
def test_what_the_reserve_lacks_is_made(reserve, tmp_path, capsys):
    model, arguments = write(tmp_path, reserve)
    tool().main(arguments)
    assert f'{2 - reserve} vectors are new, min angle 90.00: until it is trained on' in capsys.readouterr().out
    _, after = grown(tmp_path)
    before = model.head.fc.basis
    assert torch.equal(after.head.fc.basis[: len(before)], before)
    assert (tmp_path / 'out' / '7x12.safetensors').is_file()
    images = torch.randn(3, 1, 32, 32)
    logits = after.head(after.extract_feat(images))
    assert logits.shape == (3, 7)
    torch.testing.assert_close(logits[:, :5], model.eval().head(model.extract_feat(images)))


@pytest.mark.parametrize(
    'head, told',
    [
        ('EBVBBoxHead', "a box head's last vector is the background's"),
        ('LinearClsHead', 'LinearClsHead does not tell its number of classes'),
    ],
)
def test_heads_that_cannot(head, told, tmp_path, capsys):
    _, arguments = write(tmp_path, 0, head)
    with pytest.raises(SystemExit):
        tool().main(arguments)
    assert told in capsys.readouterr().err and not (tmp_path / 'out').exists()


def test_a_checkpoint_of_another_size(tmp_path, capsys):
    _, arguments = write(tmp_path, 2)
    state = torch.load(arguments[1])['state_dict']
    torch.save({**state, 'head.fc.basis': state['head.fc.basis'][:6]}, arguments[1])
    with pytest.raises(SystemExit):
        tool().main(arguments)
    assert 'has 6 vectors, but model.head has 5 classes and 2 reserved' in capsys.readouterr().err


def test_a_structured_basis_is_not_extended(tmp_path, capsys):
    _, arguments = write(tmp_path, 1, structured=True)
    with pytest.raises(SystemExit):
        tool().main(arguments)
    assert 'its basis is structured, which is not extended' in capsys.readouterr().err
