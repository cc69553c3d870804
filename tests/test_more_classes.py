"""tools/add_classes.py: a config and a checkpoint with more classes, from the reserve or with new vectors."""

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from scripts import load_script
from small_models import lenet

from ebv_mm import EBVLinear
from ebv_mm.more_classes import add_classes


@pytest.fixture
def run(tmp_path):
    """Write a model of five classes, add two by the tool; returns the models before and after, and the config after."""

    def run(reserve: int = 0, change=None, **head):
        if reserve:
            head['reserve'] = reserve
        head = dict(dict(num_classes=5, basis=dict(num_classes=5 + reserve, dim=12)), **head)
        cfg = Config(
            dict(
                default_scope='mmpretrain',
                custom_imports=dict(imports=['ebv_mm'], allow_failed_imports=False),
                model=lenet(head),
                data_preprocessor=dict(num_classes=5),
            )
        )
        cfg.dump(tmp_path / 'mine-1.6gf.py')
        init_default_scope('mmpretrain')
        model = MODELS.build(cfg.model)
        state = model.state_dict()
        torch.save(dict(state_dict=change(state) if change else state), tmp_path / 'mine.pth')
        files = [str(tmp_path / 'mine-1.6gf.py'), str(tmp_path / 'mine.pth')]
        load_script('tools/add_classes.py').main([*files, '--add', '2', '--out', str(tmp_path / 'out')])
        cfg = Config.fromfile(tmp_path / 'out' / 'mine-1.6gf_plus2.py')
        assert cfg.load_from == str(tmp_path / 'out' / 'mine-1.6gf_plus2.pth')
        after = MODELS.build(cfg.model)
        after.load_state_dict(torch.load(cfg.load_from)['state_dict'])
        return model.eval(), after.eval(), cfg

    return run


@pytest.mark.parametrize('structured', [False, True])
@pytest.mark.parametrize('reserve, left', [(2, 0), (3, 1)])
def test_reserved_vectors_become_classes(reserve, left, structured, run, capsys):
    before, after, cfg = run(reserve, basis=dict(num_classes=5 + reserve, dim=12, structured=structured))
    assert f'head: 5 -> 7 classes, {left} still reserved; every vector was there' in capsys.readouterr().out
    assert cfg.model.head.num_classes == 7 and cfg.model.head.reserve == left
    assert cfg.data_preprocessor.num_classes == 7
    for name, value in before.state_dict().items():
        assert torch.equal(after.state_dict()[name], value), name


@pytest.mark.parametrize('reserve', [0, 1])
def test_what_the_reserve_lacks_is_made(reserve, run, tmp_path, capsys):
    before, after, _ = run(reserve)
    made = 2 - reserve
    assert f'{made} vectors are new, each in a dimension of its own' in capsys.readouterr().out
    old, new = before.head.fc.basis, after.head.fc.basis
    assert torch.equal(new[: len(old), :12], old)
    torch.testing.assert_close(new @ new.T, torch.eye(7), rtol=0, atol=1e-6)
    assert (tmp_path / 'out' / f'7x{12 + made}_head.safetensors').is_file()
    images = torch.randn(3, 1, 32, 32)
    logits = after.head(after.extract_feat(images))
    torch.testing.assert_close(logits[:, :5], before.head(before.extract_feat(images)))
    assert (logits[:, 7 - made :] == 0).all()


def test_the_general_head(tmp_path):
    head = dict(type='EBVHead', head='LinearClsHead', layer='fc', num_classes=5, in_channels=4, reserve=1)
    for config in (head, dict(head, head=dict(type='LinearClsHead', num_classes=5, in_channels=4))):
        config = dict(config, basis=dict(num_classes=6, dim=8))
        cfg = Config(dict(model=dict(head=config)))
        state = {
            f'head.fc.{key}': value
            for key, value in EBVLinear(4, 5, basis=config['basis'], reserve=1).state_dict().items()
        }
        (change,) = add_classes(cfg, state, 2, tmp_path)
        owner = cfg.model.head if isinstance(cfg.model.head.head, str) else cfg.model.head.head
        assert owner.num_classes == 7 and cfg.model.head.reserve == 0 and change.made == 1
        assert state['head.fc.basis'].shape == (7, 9) and state['head.fc.weight'].shape == (9, 4)


def test_what_counts_classes_follows(tmp_path):
    loss = dict(type='CrossEntropyLoss', class_weight=[2.0] * 6)
    head = dict(type='EBVClsHead', num_classes=5, reserve=1, basis=dict(num_classes=6, dim=8), loss=loss)
    cfg = Config(
        dict(
            model=dict(head=head, auxiliary_head=dict(type='LinearClsHead', num_classes=5)),
            data_preprocessor=dict(num_classes=6),
        )
    )
    layer = EBVLinear(4, 5, basis=dict(num_classes=6, dim=8), reserve=1)
    with pytest.warns(UserWarning, match='auxiliary_head has no EBV layer: its classifier begins anew'):
        add_classes(cfg, {f'head.fc.{key}': value for key, value in layer.state_dict().items()}, 3, tmp_path)
    assert cfg.model.head.num_classes == cfg.model.auxiliary_head.num_classes == 8
    assert cfg.data_preprocessor.num_classes == 8 and cfg.model.head.loss.class_weight == [2.0] * 6 + [1.0] * 2


@pytest.mark.parametrize(
    'head, told',
    [
        (dict(type='EBVBBoxHead'), "a box head's last vector is the background's"),
        (dict(type='LinearClsHead'), 'LinearClsHead does not tell its number of classes'),
        (dict(type='EBVHead', head='Many', layer='branches.*', num_classes=5), 'its one classifier'),
    ],
)
def test_heads_that_cannot(head, told, tmp_path):
    with pytest.raises(ValueError, match=told):
        add_classes(Config(dict(model=dict(head=dict(head, basis={})))), {}, 2, tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    'settings, told',
    [
        (
            dict(reserve=2, change=lambda state: {**state, 'head.fc.basis': state['head.fc.basis'][:6]}),
            'has 6 vectors, but model.head has 5 classes and 2 reserved',
        ),
        (
            dict(reserve=1, basis=dict(num_classes=6, dim=12, structured=True)),
            'its basis is structured, which is not extended',
        ),
        (dict(norm_cfg=dict(type='BN1d', affine=False)), 'has a norm of its embedding'),
    ],
)
def test_checkpoints_that_cannot(settings, told, run, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(**settings)
    assert told in capsys.readouterr().err and not (tmp_path / 'out').exists()
