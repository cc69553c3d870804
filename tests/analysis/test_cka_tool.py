"""tools/analysis/cka.py as a user calls it, on tiny mmpretrain models with random weights."""

import re
import signal

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from scripts import load_script

from ebv_mm.analysis import MinibatchCKA, choose_layers, gram_matrix

CONFIG = """
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)
default_scope = 'mmpretrain'
model = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet_CIFAR', depth=18, stem_channels=4, base_channels=4),
    neck=dict(type='GlobalAveragePooling'),
    head=dict({head}, num_classes=3, in_channels=32, topk=(1,)),
)
data_preprocessor = dict(num_classes=3, mean=[{mean}] * 3, std=[64] * 3)
test_dataloader = dict(
    batch_size=2,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CustomDataset',
        data_root='{root}',
        ann_file='labels.txt',
        data_prefix='images',
        classes=['a', 'b', 'c'],
        pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')],
    ),
)
"""
HEADS = {'fc': "type='LinearClsHead'", 'ebv': "type='EBVClsHead', basis=dict(num_classes=3, dim=3)"}


@pytest.fixture(scope='module')
def tool():
    return load_script('tools/analysis/cka.py')


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Two configs, their checkpoints, and 26 images sorted by class."""
    from mmpretrain.apis import get_model

    root = tmp_path_factory.mktemp('cka')
    (root / 'images').mkdir()
    rng = np.random.default_rng(0)
    lines = []
    for i in range(26):
        cv2.imwrite(str(root / 'images' / f'{i:02d}.png'), rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
        lines.append(f'{i:02d}.png {i // 9}\n')
    (root / 'labels.txt').write_text(''.join(lines))
    torch.manual_seed(0)
    for name, head in HEADS.items():
        config = root / f'{name}.py'
        config.write_text(CONFIG.format(head=head, root=root, mean=128 if name == 'fc' else 100))
        state = get_model(Config.fromfile(config), pretrained=False).state_dict()
        torch.save(dict(state_dict=state, meta={}), root / f'{name}.pth')
    return root


def arguments(files, out, *more):
    pair = [str(files / name) for name in ('fc.py', 'fc.pth', 'ebv.py', 'ebv.pth')]
    return [*pair, '--out', str(out), '--device', 'cpu', '--batch-size', '8', *more]


def test_end_to_end(tool, files, tmp_path, capsys):
    out = tmp_path / 'new' / 'folder'
    assert tool.main(arguments(files, out)) == 0
    printed = capsys.readouterr()
    assert 'FC: 18 layers, backbone.conv1 to head.fc' in printed.out and 'first tenth' in printed.out
    assert 'batches: 3/3' in printed.err
    assert sorted(path.name for path in out.iterdir()) == ['cka.npz', 'cka.png']
    assert cv2.imread(str(out / 'cka.png')).shape[1] > 1000
    result = np.load(out / 'cka.npz')
    assert list(result['layers_first']) == list(result['layers_second'])
    assert list(result['names']) == ['FC', 'EBV'] and result['batches'] == 3 and result['batch_size'] == 8
    for name in ('first', 'second'):
        np.testing.assert_array_equal(result[name], result[name].T)
        np.testing.assert_allclose(np.diag(result[name]), 1)
    assert result['across'].shape == (18, 18) and np.abs(result['across']).max() < 1


@pytest.mark.parametrize('embedding', [False, True])
def test_against_features_kept_whole(tool, files, tmp_path, embedding):
    """The same images in the same order through both models by hand, all features kept, then CKA."""
    from mmpretrain.apis import get_model

    command = arguments(files, tmp_path, '--layers', r'layer4\.1\.conv|fc$', '--seed', '3')
    assert tool.main(command + ['--embedding'] * embedding) == 0
    result = np.load(tmp_path / 'cka.npz')
    order = torch.randperm(26, generator=torch.Generator().manual_seed(3)).tolist()
    images = np.stack([cv2.imread(str(files / 'images' / f'{i:02d}.png')) for i in order[:24]])
    features = []
    for name, mean in (('fc', 128), ('ebv', 100)):
        model = get_model(Config.fromfile(files / f'{name}.py'), pretrained=False)
        model.load_state_dict(torch.load(files / f'{name}.pth')['state_dict'])
        kept = {}
        for layer in ('backbone.layer4.1.conv1', 'backbone.layer4.1.conv2', 'head.fc'):
            model.get_submodule(layer).register_forward_hook(
                lambda module, args, output, layer=layer, kept=kept: kept.update({layer: output.detach().clone()})
            )
        with torch.no_grad():
            inputs = (torch.from_numpy(images).permute(0, 3, 1, 2).float() - mean) / 64
            model(inputs)
            if embedding and name == 'ebv':
                kept['head.fc'] = model.head.fc.project(model.extract_feat(inputs)[-1])
        features += kept.values()
    similarity = MinibatchCKA()
    for start in (0, 8, 16):
        similarity.update(torch.stack([gram_matrix(feature[start : start + 8]) for feature in features]))
    expected = similarity.cka().numpy()
    np.testing.assert_allclose(result['first'], expected[:3, :3], atol=1e-4)
    np.testing.assert_allclose(result['second'], expected[3:, 3:], atol=1e-4)
    np.testing.assert_allclose(result['across'], expected[:3, 3:], atol=1e-4)


def test_a_model_with_itself(tool, files, tmp_path):
    pair = [str(files / 'ebv.py'), str(files / 'ebv.pth')]
    command = [*pair, *pair, '--out', str(tmp_path), '--batch-size', '13', '--batches', '1', '--names', 'a', 'b']
    assert tool.main(command) == 0
    result = np.load(tmp_path / 'cka.npz')
    np.testing.assert_allclose(result['across'], result['first'], atol=1e-12)
    assert list(result['names']) == ['a', 'b'] and result['batches'] == 1


def test_interrupt_keeps_what_is_there(tool, files, tmp_path, monkeypatch, capsys):
    update = MinibatchCKA.update

    def update_and_press(self, grams):
        update(self, grams)
        if self.batches == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(MinibatchCKA, 'update', update_and_press)
    before = signal.getsignal(signal.SIGINT)
    assert tool.main(arguments(files, tmp_path)) == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert '2 of 3 batches' in capsys.readouterr().err
    assert np.load(tmp_path / 'cka.npz')['batches'] == 2 and (tmp_path / 'cka.png').exists()


@pytest.mark.parametrize(
    'change, message',
    [
        (['--batch-size', '3'], '--batch-size 3, but .* at least 4'),
        (['--batch-size', '27'], '26 test images .* do not fill a batch of 27; give a smaller'),
        (['--batches', '0'], '--batches 0, but at least 1'),
        (['--device', 'cuda:99'], "device = 'cuda:99' cannot be used"),
        (['--batches', '4'], '--batches 4, but the 26 images give 3 batches of 8'),
        (['--layers', 'stages'], "'stages' matches none of the .* layers of ImageClassifier"),
        (['--cfg-options', 'default_scope=mmdet'], "default_scope = 'mmdet', but .* mmpretrain"),
        (['--data', 'nowhere.py'], 'nowhere.py'),
        (['--cfg-options', 'test_dataloader=None'], 'has no test_dataloader.*--data'),
    ],
)
def test_errors_are_one_clear_line(tool, files, tmp_path, capsys, change, message):
    assert tool.main(arguments(files, tmp_path, *change)) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith('error: ')
    assert re.search(message, error), error
    assert not list(tmp_path.iterdir())


def test_a_missing_and_a_foreign_checkpoint(tool, files, tmp_path, capsys):
    command = arguments(files, tmp_path)
    command[1] = 'nowhere.pth'
    assert tool.main(command) == 1
    error = capsys.readouterr().err
    assert "checkpoint 'nowhere.pth' does not exist" in error and f'tools/train.py {files / "fc.py"}' in error
    with pytest.raises(ValueError, match="tools/train.py 'my folder/fc.py'$"):
        tool.check_checkpoint('my folder/fc.py', 'nowhere.pth')
    command[1] = str(files / 'ebv.pth')
    assert tool.main(command) == 1
    error = capsys.readouterr().err
    assert (
        'cannot be loaded into the model of' in error and 'unexpected key in source state_dict: head.fc.basis' in error
    )


@pytest.mark.parametrize('content', [b'', b'notes on the training', b'PK\x03\x04'])
def test_a_file_that_is_no_checkpoint(tool, files, tmp_path, capsys, content):
    command = arguments(files, tmp_path / 'out')
    command[1] = str(tmp_path / 'notes.txt')
    (tmp_path / 'notes.txt').write_bytes(content)
    assert tool.main(command) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith(f"error: checkpoint '{command[1]}' cannot be loaded")


def test_an_unwritable_folder_is_told_before_the_work(tool, files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, 'build_loader', lambda *_: pytest.fail('it has begun'))
    (tmp_path / 'plain').write_text('')
    (tmp_path / 'taken' / 'cka.png').mkdir(parents=True)
    for folder, words in (('plain', 'cannot be written'), ('taken', "cka.png' is a folder")):
        assert tool.main(arguments(files, tmp_path / folder)) == 1
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    'backbone, in_channels, count, first',
    [
        (dict(type='ResNet', depth=50), 2048, 50, 'backbone.conv1'),
        (dict(type='SwinTransformer', arch='tiny'), 768, 13, 'backbone.stages.0.blocks.0'),
        (dict(type='VisionTransformer', arch='deit-tiny'), 192, 13, 'backbone.layers.0'),
    ],
)
def test_the_layers_of_the_papers_figures(backbone, in_channels, count, first):
    from mmpretrain.registry import MODELS

    head = dict(type='EBVClsHead', num_classes=10, in_channels=in_channels, basis=dict(num_classes=10, dim=10))
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(dict(type='ImageClassifier', backbone=backbone, head=head))
    layers = list(choose_layers(model))
    assert (len(layers), layers[0], layers[-1]) == (count, first, 'head.fc')
    assert not any('downsample' in name for name in layers)
