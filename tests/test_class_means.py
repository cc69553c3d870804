"""tools/class_means.py: a trained classifier that classifies all classes, trained or not, by their means."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import Runner
from mmpretrain.models.heads import ArcFaceClsHead
from scripts import load_script

from ebv_mm.basis import load_basis
from ebv_mm.class_means import check_classifier
from ebv_mm.export.models import load_model
from ebv_mm.launch import ConfigError

TRAINED, ALL, IMAGES = 4, 6, 40
PACK = dict(type='PackInputs')


def loader(flip: float, seed: int) -> dict:
    pipeline = [dict(type='RandomFlip', prob=flip), PACK]
    return dict(
        batch_size=16,
        num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=False),
        collate_fn=dict(type='default_collate'),
        dataset=dict(type='RandomImages', num_images=IMAGES, num_classes=ALL, size=8, seed=seed, pipeline=pipeline),
    )


def config(head: dict) -> Config:
    test = loader(0.0, seed=1)
    neck = dict(type='LinearNeck', in_channels=64, out_channels=5, gap_dim=2, act_cfg=None)
    return Config(
        dict(
            default_scope='mmpretrain',
            custom_imports=dict(imports=['ebv_mm'], allow_failed_imports=False),
            model=dict(type='ImageClassifier', backbone=dict(type='CIFARResNet', depth=8), neck=neck, head=head),
            data_preprocessor=dict(num_classes=TRAINED, mean=[128.0] * 3, std=[64.0] * 3),
            train_dataloader=loader(1.0, seed=0),
            train_cfg=dict(by_epoch=True, max_epochs=1),
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
            val_dataloader=test,
            val_cfg=dict(),
            val_evaluator=dict(type='StreamingAccuracy', topk=(1, 2)),
            test_dataloader=test,
            test_cfg=dict(),
            test_evaluator=dict(type='StreamingAccuracy', topk=(1, 2)),
        )
    )


LINEAR = dict(type='LinearClsHead', num_classes=TRAINED, in_channels=5)
ARCFACE = dict(LINEAR, type='ArcFaceClsHead')
FIXED = dict(LINEAR, type='EBVClsHead', basis=dict(num_classes=TRAINED, dim=TRAINED), predict_topk=2)


@pytest.fixture
def run(tmp_path):
    """Write a model of four classes, and make one of all by their means; returns both models and the new config."""

    def run(head: dict = FIXED, num_classes: int = ALL, **changes):
        cfg = config(head)
        cfg.merge_from_dict(changes)
        cfg.dump(tmp_path / 'mine-1.6gf.py')
        init_default_scope('mmpretrain')
        torch.manual_seed(0)
        model = MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor)).eval()
        torch.save(dict(state_dict=model.state_dict()), tmp_path / 'mine.pth')
        files = [str(tmp_path / 'mine-1.6gf.py'), str(tmp_path / 'mine.pth')]
        out = tmp_path / 'out'
        load_script('tools/class_means.py').main([*files, '--num-classes', str(num_classes), '--out', str(out)])
        cfg = Config.fromfile(out / 'mine-1.6gf_means.py')
        return model, load_model(cfg, str(out / 'mine-1.6gf_means.pth')), cfg

    return run


def embedded(model, cfg: dict):
    """Unit vectors behind the neck, and labels, computed image by image."""
    dataset = Runner.build_dataloader(cfg).dataset
    vectors, labels = [], []
    for sample in (dataset[index] for index in range(len(dataset))):
        image = (sample['inputs'][None].float() - 128) / 64
        with torch.no_grad():
            (feature,) = model.neck(model.backbone(image))
        vectors.append(feature[0] / feature[0].norm())
        labels.append(int(sample['data_samples'].gt_label))
    return torch.stack(vectors), torch.tensor(labels)


@pytest.mark.parametrize('head', [LINEAR, ARCFACE, FIXED], ids=['linear', 'arcface', 'ebv'])
def test_the_nearest_mean_of_undistorted_images_wins(head, run, tmp_path, recwarn):
    before, after, cfg = run(head)
    # six classes in five dimensions with tau = .07 would be told where training begins
    assert not [warning for warning in recwarn if 'spreads the first logits' in str(warning.message)]
    vectors, labels = embedded(before, loader(0.0, seed=0))  # training images, not flipped
    means = torch.stack([vectors[labels == label].mean(0) for label in range(ALL)])
    means = means / means.norm(dim=1, keepdim=True)
    torch.testing.assert_close(after.head.fc.basis, means, rtol=0, atol=1e-5)
    torch.testing.assert_close(load_basis(cfg.model.head.basis).vectors, after.head.fc.basis, rtol=0, atol=0)
    unseen, truth = embedded(before, loader(0.0, seed=1))
    cosines = unseen @ means.T
    with torch.no_grad():
        batch = torch.stack([data['inputs'] for data in Runner.build_dataloader(loader(0.0, seed=1)).dataset])
        logits = after((batch.float() - 128) / 64, mode='tensor')
    torch.testing.assert_close(logits * after.head.fc.tau, cosines, rtol=0, atol=1e-4)
    # by the host's own test, from config and checkpoint
    Path(cfg.model.head.basis).unlink()  # a trained model runs without the file
    cfg.load_from, cfg.work_dir = str(tmp_path / 'out' / 'mine-1.6gf_means.pth'), str(tmp_path)
    found = Runner.from_cfg(cfg).test()['accuracy/top1']
    assert found == pytest.approx(100 * (cosines.argmax(1) == truth).double().mean().item())


def test_the_config_is_one_of_all_classes_and_cannot_train(run):
    """Whatever the training was: with mixup, whose labels are of the classes that were trained, and resumed."""
    mixup = dict(train_cfg=dict(augments=[dict(type='Mixup', alpha=0.2)]))
    _, after, cfg = run(model=mixup, resume=True, load_from='elsewhere.pth')
    assert cfg.model.head.num_classes == cfg.data_preprocessor.num_classes == ALL and cfg.model.head.predict_topk == 2
    assert torch.equal(after.head.fc.weight, torch.eye(5)) and not after.head.fc.bias.any()
    gone = ('train_dataloader', 'train_cfg', 'optim_wrapper', 'resume', 'load_from', 'work_dir')
    assert not [name for name in gone if name in cfg] and 'train_cfg' not in cfg.model
    assert not after.data_preprocessor.to_onehot and after.data_preprocessor.batch_augments is None


def test_a_wrapped_data_set_is_prepared_as_the_test(run):
    plain, _, _ = run()
    wrapped = {
        name: dict(dataset=dict(_delete_=True, type='RepeatDataset', times=1, dataset=loader(flip, seed)['dataset']))
        for name, flip, seed in (('train_dataloader', 1.0, 0), ('test_dataloader', 0.0, 1))
    }
    _, after, _ = run(**wrapped)
    vectors, labels = embedded(plain, loader(0.0, seed=0))
    means = torch.stack([vectors[labels == label].mean(0) for label in range(ALL)])
    torch.testing.assert_close(after.head.fc.basis, means / means.norm(dim=1, keepdim=True), rtol=0, atol=1e-5)


def test_of_very_many_classes_only_the_best_are_predicted(run, monkeypatch):
    monkeypatch.setattr('ebv_mm.class_means.MANY_CLASSES', ALL)
    _, after, _ = run(LINEAR)
    assert after.head.predict_topk == 5
    _, after, _ = run(FIXED)
    assert after.head.predict_topk == 2


@pytest.mark.parametrize(
    'settings, told',
    [
        (dict(num_classes=5), 'has the label 5, but there are 5 classes'),
        (dict(num_classes=8), '2 of 8 classes have no training image, class 6 the first'),
        (dict(head=dict(FIXED, predict_topk=4), num_classes=3), 'predict_topk = 4, but there are 3 classes'),
        (dict(test_dataloader=dict(dataset=dict(pipeline=None))), 'the test data has 0 pipelines'),
        (dict(train_dataloader=None), 'the config has no train_dataloader, but class means'),
        (dict(num_classes=1), '--num-classes 1: give 2 or more'),
        (
            dict(head=dict(LINEAR, type='StackedLinearClsHead', mid_channels=[3])),
            'its head of type StackedLinearClsHead, but class means',
        ),
    ],
)
def test_what_cannot_be(settings, told, run, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(**settings)
    assert told in capsys.readouterr().err and not list(tmp_path.glob('out/*'))


def test_a_model_that_does_not_ask_its_head_is_refused():
    class Retriever(torch.nn.Module):
        head = ArcFaceClsHead(TRAINED, 5)

    with pytest.raises(ConfigError, match='type Retriever and its head of type ArcFaceClsHead.*give such a model'):
        check_classifier(Retriever(), ALL)


def test_what_cannot_be_written_is_told_before_the_images_are_read(run, tmp_path, monkeypatch, capsys):
    (tmp_path / 'out').write_text('a file')
    monkeypatch.setattr('ebv_mm.class_means.class_means', None)
    with pytest.raises(SystemExit):
        run()
    assert f"'{tmp_path / 'out'}" in capsys.readouterr().err
