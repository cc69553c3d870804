"""Reading a config: what the tools add to it, and what they say of a broken one."""

from argparse import ArgumentTypeError
from types import SimpleNamespace

import pytest
from mmengine.config import Config

from ebv_mm.config_nodes import nodes
from ebv_mm.launch import ConfigError, argument_parser, existing_checkpoint, load_config


def arguments(config, **settings) -> SimpleNamespace:
    defaults = dict(work_dir=None, cfg_options=None, launcher='none', local_rank=0)
    return SimpleNamespace(config=str(config), **{**defaults, **settings})


def test_load_config(tmp_path):
    file = tmp_path / 'mine.py'
    file.write_text(
        "default_scope = 'mmpretrain'\nmodel = dict()\ntrain_dataloader = dict(num_workers=2, pin_memory=False)\n"
    )
    cfg = load_config(arguments(file, cfg_options={'train_dataloader.num_workers': 4}))
    assert cfg.work_dir == 'work_dirs/mine' and cfg.launcher == 'none'
    # mmpretrain's loaders get the defaults of its own tools, and keep what they say themselves
    assert cfg.train_dataloader == dict(
        num_workers=4, pin_memory=False, persistent_workers=True, collate_fn=dict(type='default_collate')
    )
    loader = load_config(arguments(file, cfg_options={'train_dataloader.num_workers': 0})).train_dataloader
    assert not loader.persistent_workers  # which torch refuses without workers
    file.write_text(
        "default_scope = 'mmdet'\nmodel = dict()\ntrain_dataloader = dict(num_workers=0)\nwork_dir = 'there'\n"
    )
    cfg = load_config(arguments(file))
    assert cfg.work_dir == 'there' and cfg.train_dataloader == dict(num_workers=0)
    assert load_config(arguments(file, work_dir='here')).work_dir == 'here'


def test_a_checkpoint_may_be_an_address(tmp_path):
    for address in ('https://download.openmmlab.com/x.pth', 'torchvision://resnet50'):
        assert existing_checkpoint(address) == address
    with pytest.raises(ArgumentTypeError, match='x.pth.* does not exist'):
        existing_checkpoint(str(tmp_path / 'x.pth'))


BROKEN = {
    'model = dict(\n': "config '.*mine.py' cannot be read .*SyntaxError",
    'model = dict(a=1 / 0)\n': 'ZeroDivisionError: division by zero',
    'raise RuntimeError("no\\nlines")\n': 'RuntimeError: no',
    '_base_ = "gone.py"\n': 'gone.py',
    'custom_imports = dict(imports=["gone"], allow_failed_imports=False)\nmodel = dict()\n': 'gone',
    'work_dir = "x"\n': 'has no model',
}


@pytest.mark.parametrize('text', BROKEN)
def test_a_broken_config_is_told_in_one_sentence(text, tmp_path):
    file = tmp_path / 'mine.py'
    file.write_text(text)
    with pytest.raises(ConfigError, match=BROKEN[text]) as caught:
        load_config(arguments(file))
    assert '\n' not in str(caught.value)


def test_a_dict_over_an_inherited_string_needs_delete(tmp_path):
    (tmp_path / 'base.py').write_text("model = dict(head=dict(basis='10x10.safetensors'))\n")
    file = tmp_path / 'mine.py'
    file.write_text("_base_ = 'base.py'\nmodel = dict(head=dict(basis=dict(num_classes=9, dim=9)))\n")
    with pytest.raises(ConfigError, match='_delete_=True'):
        load_config(arguments(file))


def test_settings_that_do_not_fit_are_told(tmp_path, capsys):
    file = tmp_path / 'mine.py'
    file.write_text('model = dict(heads=[1, 2])\n')
    with pytest.raises(ConfigError, match='--cfg-options model.heads.7 does not fit the config'):
        load_config(arguments(file, cfg_options={'model.heads.7': 1}))
    for bare in ('lr', '=3'):
        with pytest.raises(SystemExit):
            argument_parser('').parse_args([str(file), '--cfg-options', bare])
        assert f'{bare}: a setting is written key=value' in capsys.readouterr().err


def test_a_pure_python_config_gets_the_scope_of_its_model(tmp_path):
    file = tmp_path / 'mine.py'
    file.write_text('from mmpretrain.models import ImageClassifier\nmodel = dict(type=ImageClassifier)\n')
    assert load_config(arguments(file)).default_scope == 'mmpretrain'
    file.write_text("model = dict(type='mmdet.MaskRCNN')\n")
    assert load_config(arguments(file)).default_scope == 'mmdet'


def test_nodes_are_found_in_lists_and_dicts():
    found = dict(nodes(Config(dict(a=[dict(b=1), dict(c=dict(d=2))])).to_dict()))
    assert set(found) == {'', 'a.0', 'a.1', 'a.1.c'}
