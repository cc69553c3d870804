"""The table of runs: what each compares, and from which beginning."""

import json
import os
from pathlib import Path

import histories
import numpy as np
import pytest
import torch
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, DefaultScope
from mmpretrain.structures import DataSample
from studies import BALANCED, DEFAULT, FC, HOST, KAIMING, STUDIES, Run, cifar, resolve, runs_of

from ebv_mm.launch import argument_parser, load_config

REPO = Path(__file__).parents[2]
ALL = runs_of(list(STUDIES))
EIGHT = STUDIES['lt100-8e'].settings


@pytest.fixture(autouse=True)
def _in_the_repo(monkeypatch):
    monkeypatch.chdir(REPO)


def plain(run: Run, *without: str) -> dict:
    config = resolve(run).to_dict()
    for place in without:
        *path, key = place.split('.')
        node = config
        for step in path:
            node = node[step]
        node.pop(key, None)
    return config


def test_names_are_unique_and_configs_exist():
    assert len({run.name for run in ALL}) == len(ALL)
    assert all((REPO / f'{run.config}.py').exists() for run in ALL)


@pytest.mark.parametrize('study', ['lt100', 'lt100-bf16', 'lt100-8e', 'lt10'])
def test_arms_of_the_long_tail_differ_in_the_head_and_seeds_in_the_seed(study):
    settings = STUDIES[study].settings
    for runs in zip(*settings.values(), strict=True):
        first, *others = (plain(run, 'model.head', 'custom_imports') for run in runs)
        assert all(first == other for other in others)
    for runs in settings.values():
        assert [resolve(run).randomness.seed for run in runs] == [0, 1, 2]
        assert all(plain(run, 'randomness') == plain(runs[0], 'randomness') for run in runs)


@pytest.mark.parametrize('run', [runs[0] for runs in EIGHT.values()], ids=lambda run: run.name)
def test_the_arms_can_be_built_and_give_a_loss(run):
    basis = {'model.head.basis': {'_delete_': True, 'num_classes': 10, 'dim': 10}} if '_fc_' not in run.name else {}
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(resolve(run._replace(options={**run.options, **basis})).model)
    losses = model(torch.randn(2, 3, 32, 32), [DataSample().set_gt_label(label) for label in (0, 9)], mode='loss')
    assert losses['loss'].isfinite()


def test_vectors_are_trained_from_the_same_start():
    """Same tau, same projection, same backbone, and vectors that begin as the basis; but these have a gradient."""
    basis = {'model.head.basis': {'_delete_': True, 'num_classes': 10, 'dim': 10}}  # needs no file
    ebv, trained = (
        run._replace(options={**run.options, **basis})
        for (run, *_) in (EIGHT[BALANCED], EIGHT['vectors trained, balanced'])
    )
    first, other = (histories.first_weights(run) for run in (ebv, trained))
    assert set(other) == {*first, 'head.vectors'}
    assert all(torch.equal(first[key], other[key]) for key in first)
    assert torch.equal(other['head.vectors'], first['head.fc.basis'])
    models = [MODELS.build(resolve(run).model) for run in (ebv, trained)]
    for model in models:
        model.load_state_dict(other, strict=False)
    features = (torch.randn(5, 64),)
    logits = [model.head(features) for model in models]
    assert torch.allclose(*logits, atol=1e-4)
    v = features[0].double() @ other['head.fc.weight'].double().T + other['head.fc.bias'].double()
    cosines = v @ other['head.vectors'].double().T / v.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(logits[1].detach(), cosines / 0.07, atol=1e-4)
    logits[1].square().sum().backward()
    assert models[1].head.vectors.grad.norm() > 0


@pytest.mark.parametrize('arm, norm', [(DEFAULT, (10 / 3) ** 0.5), (KAIMING, 20**0.5), (BALANCED, 1 / 0.07)])
def test_beginnings_have_their_norms(arm, norm):
    assert histories.first_weights(EIGHT[arm][0])['head.fc.weight'].norm() == pytest.approx(norm, rel=0.1)


def test_step_decay_changes_the_schedule_alone():
    for arm in (FC, DEFAULT):
        (step,), (cosine,) = STUDIES['lt100-step'].settings[arm], cifar('lt100', arm)
        places = ('param_scheduler', 'default_hooks')
        assert plain(step, *places) == plain(cosine, *places)
        warm_up, decay = resolve(step).param_scheduler
        assert (warm_up.end, decay.type, decay.milestones) == (5, 'MultiStepLR', [24, 27])


def test_bfloat16_is_of_the_backbone_alone():
    for arm, runs in STUDIES['lt100-bf16'].settings.items():
        assert resolve(runs[0]).model.backbone.bfloat16
        assert plain(runs[0], 'model.backbone.bfloat16') == plain(cifar('lt100', arm)[0], 'model.backbone.bfloat16')


@pytest.mark.parametrize('study', ['voc-det', 'voc-seg', 'voc-seg-long'])
def test_twins_on_voc_differ_in_the_heads(study):
    heads = ['roi_head'] if study == 'voc-det' else ['decode_head', 'auxiliary_head']
    places = ['custom_imports', 'basis', *(f'model.{head}' for head in heads)]
    for fc, *ebv in zip(*STUDIES[study].settings.values(), strict=True):
        assert ebv and all(plain(fc, *places) == plain(run, *places) for run in ebv)
        assert 'EBV' not in json.dumps(plain(fc)) and all('EBV' in json.dumps(plain(run)) for run in ebv)


def test_the_long_segmentation_is_three_times_as_long():
    short, long = (resolve(STUDIES[name].settings[HOST][0]) for name in ('voc-seg', 'voc-seg-long'))
    assert long.train_cfg.max_iters == long.param_scheduler[-1].end == 3 * short.train_cfg.max_iters
    assert short.param_scheduler[-1].end == short.train_cfg.max_iters


@pytest.mark.parametrize('study, key', [('tau', 'tau'), ('d', 'basis')])
def test_a_sweep_changes_one_thing(study, key):
    fc, *ebv = (runs[0] for runs in STUDIES[study].settings.values())
    assert all(plain(run, 'model.head') == plain(fc, 'model.head') for run in ebv)
    for balanced in (False, True):
        runs = [run for run in ebv if resolve(run).model.head.balanced_init == balanced]
        assert len({json.dumps(plain(run, f'model.head.{key}')) for run in runs}) == 1
        assert len({resolve(run).model.head.get(key) for run in runs}) == len(runs) == len(ebv) // 2


def test_eight_epochs_end_their_schedule():
    for run in ALL:
        cfg = resolve(run)
        if run.name.startswith('lt') and 'step' not in run.name:
            assert cfg.param_scheduler[-1].end == cfg.train_cfg.max_epochs
            assert cfg.train_cfg.max_epochs == (8 if run.name.startswith('lt100-8e') else 30)
            assert cfg.train_cfg.max_epochs % cfg.train_cfg.val_interval == 0


def test_a_wide_classifier_and_a_fixed_projection():
    wide, fixed = (
        STUDIES['fixed'].settings[name][0]
        for name in ('FC, from a norm of 14', 'EBV, balanced, projection not trained')
    )
    assert histories.first_weights(wide)['head.fc.weight'].norm() == pytest.approx(1 / 0.07, rel=0.1)
    cfg = resolve(fixed)
    model = MODELS.build(cfg.model)
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    rates = {id(parameter): group['lr'] for group in wrapper.param_groups for parameter in group['params']}
    by_name = {name: rates[id(parameter)] for name, parameter in model.named_parameters()}
    assert [name for name, rate in by_name.items() if rate == 0] == ['head.fc.weight', 'head.fc.bias']
    assert set(by_name.values()) == {0, 0.1}


def test_the_command_line_says_the_same():
    for run in (ALL[0], EIGHT[KAIMING][1], *(runs[0] for runs in STUDIES['fixed'].settings.values())):
        tool, config, resume, *rest = run.train(Path('work'))
        assert (tool, resume) == ('tools/train.py', '--resume')
        cfg = load_config(argument_parser('').parse_args([config, *rest]))
        assert cfg.work_dir == os.path.join('work', run.name)
        expected = resolve(run)
        for place in ('model', 'param_scheduler', 'train_cfg', 'randomness', 'default_hooks', 'optim_wrapper'):
            assert cfg[place] == expected[place]
        assert cfg.train_dataloader == {**cfg.train_dataloader, **expected.train_dataloader}
