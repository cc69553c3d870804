import pytest
from mmengine.registry import MODELS, DefaultScope

import ebv_mm  # noqa: F401, registers the names

pytestmark = pytest.mark.both_stacks

KAIMING = dict(type='Kaiming', layer='Linear', mode='fan_in', distribution='normal')


@pytest.mark.parametrize(
    'arguments, norm',
    [
        ({}, 1 / 0.07),
        (dict(balanced_init=False), (64 / 3) ** 0.5),  # torch's own
        (dict(init_cfg=KAIMING), (2 * 64) ** 0.5),
        (dict(init_cfg=KAIMING, balanced_init=True), 1 / 0.07),
    ],
)
def test_a_head_begins_balanced_unless_told_otherwise(arguments, norm):
    basis = dict(num_classes=64, dim=64)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        head = MODELS.build(dict(type='EBVClsHead', num_classes=64, in_channels=50, basis=basis, **arguments))
    head.init_weights()
    assert head.fc.weight.norm().item() == pytest.approx(norm, rel=0.05)


@pytest.mark.parametrize('loss', [dict(type='CrossEntropyLoss', use_sigmoid=True), dict(type='AsymmetricLoss')])
def test_losses_of_sigmoids_need_a_prior(loss):
    with DefaultScope.overwrite_default_scope('mmpretrain'), pytest.raises(ValueError, match='loss of sigmoids.*prior'):
        MODELS.build(dict(type='EBVClsHead', num_classes=5, in_channels=8, basis=dict(num_classes=5, dim=5), loss=loss))


def test_what_may_not_begin_to_learn_is_told_where_training_begins(recwarn):
    cfg = dict(type='EBVClsHead', num_classes=8, in_channels=6, basis=dict(num_classes=8, dim=4), tau=5.0)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        head = MODELS.build(cfg)
    assert not [warning for warning in recwarn if 'spreads the first logits' in str(warning.message)]
    with pytest.warns(UserWarning, match='tau = 5 at d = 4 spreads the first logits by 0.1'):
        head.init_weights()
