"""python -m ebv_mm.conversion: a config and a checkpoint become an EBV config and its checkpoint."""

import os

import pytest
import torch
from mmengine.config import Config

from ebv_mm.conversion.__main__ import main
from ebv_mm.conversion.configs import read_config
from ebv_mm.conversion.models import build, noise


def predictions(model, cfg):
    batches = noise(cfg, 6, 64)
    return [model.test_step(batch)[0].pred_score for batch in batches]


def test_config_and_checkpoint(fc_config, fc_model, fc_checkpoint, tmp_path, capsys):
    out = tmp_path / 'out'
    main([str(fc_config), str(fc_checkpoint), '--out', str(out), '--check'])
    said = capsys.readouterr().out
    assert 'head.fc' in said and '100.00 %' in said and 'images of noise' in said
    assert 'final results that stay: 100.00 % of 8 classes of images' in said
    cfg = Config.fromfile(str(out / 'resnet18_ebv.py'))
    assert cfg.model.head.type == 'EBVClsHead' and cfg.model.backbone.depth == 18
    checkpoint = torch.load(out / 'resnet18_ebv.pth')
    assert cfg.load_from == str(out / 'resnet18_ebv.pth') and set(checkpoint) == {
        'meta',
        'state_dict',
        'ema_state_dict',
    }
    assert f'tau={cfg.model.head.tau}' in checkpoint['meta']['cfg'].replace(' ', '')  # hosts build models of it
    assert checkpoint['meta']['epoch'] == 3 and checkpoint['ema_state_dict']['steps'] == 9
    model = build(cfg)
    model.load_state_dict(checkpoint['state_dict'])
    for ours, theirs in zip(predictions(model, cfg), predictions(fc_model, cfg)):
        assert ours.argmax() == theirs.argmax()
    # twice FC's classifier is twice the projection, and no other class
    a, b = (checkpoint[key] for key in ('state_dict', 'ema_state_dict'))
    torch.testing.assert_close(b['module.head.fc.weight'], 2 * a['head.fc.weight'])
    assert torch.equal(b['module.head.fc.basis'], a['head.fc.basis'])


def test_a_detector(tmp_path, capsys):
    """Scores of boxes change, since |v| does, but their classes do not; masks keep their signs."""
    head = dict(in_channels=16, roi_feat_size=3, fc_out_channels=16)
    cfg = to_small_mask_rcnn(head)
    cfg.dump(str(tmp_path / 'mask_rcnn.py'))
    torch.manual_seed(0)
    model = build(cfg)
    torch.nn.init.normal_(model.roi_head.bbox_head.fc_cls.weight)
    torch.save(model.state_dict(), tmp_path / 'mask_rcnn.pth')
    main([str(tmp_path / 'mask_rcnn.py'), str(tmp_path / 'mask_rcnn.pth'), '--out', str(tmp_path), '--images', '1'])
    said = capsys.readouterr().out
    assert said.count('100.00 %') >= 2 and 'rpn_head (objectness' in said


def to_small_mask_rcnn(head: dict) -> Config:
    cfg = read_config('mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py')
    model = cfg.model
    model.backbone = dict(type='ResNet', depth=18, base_channels=4, norm_cfg=dict(type='BN'))
    model.neck.update(in_channels=[4, 8, 16, 32], out_channels=16)
    model.rpn_head.update(in_channels=16, feat_channels=16)
    model.roi_head.bbox_head.update(num_classes=5, **head)
    model.roi_head.bbox_roi_extractor.update(out_channels=16, roi_layer=dict(type='RoIAlign', output_size=3))
    model.roi_head.mask_roi_extractor.out_channels = 16
    model.roi_head.mask_head.update(num_classes=5, in_channels=16, conv_out_channels=16, num_convs=1)
    return Config(dict(default_scope='mmdet', model=model.to_dict()))


def test_fewer_dimensions_make_a_basis_file(fc_config, fc_checkpoint, tmp_path, capsys):
    main([str(fc_config), str(fc_checkpoint), '--out', str(tmp_path / 'out'), '--dim', '4', '--tau', '0.1'])
    said = capsys.readouterr().out
    assert 'needs fine-tuning' in said and (tmp_path / 'out' / '7x4.safetensors').exists()
    cfg = Config.fromfile(str(tmp_path / 'out' / 'resnet18_ebv.py'))
    assert build(cfg).head.fc.dim == 4 and cfg.model.head.tau == 0.1


def error(capsys, *arguments) -> str:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    message = str(stop.value)
    assert message.startswith('error: ') and '\n' not in message
    return message


def test_errors_are_one_sentence_and_leave_no_files(fc_config, fc_checkpoint, fc_model, tmp_path, capsys):
    out = tmp_path / 'out'
    whole = [fc_config, fc_checkpoint, '--out', out]
    assert 'does not exist' in error(capsys, tmp_path / 'none.py', '--out', out)
    assert 'cannot be read' in error(capsys, 'mmpretrain::none/none.py', '--out', out)
    assert 'at least 2' in error(capsys, *whole, '--dim', 1)
    torch.save(dict(state_dict={'backbone.x': torch.ones(3)}), tmp_path / 'other.pth')
    assert 'lacks' in error(capsys, fc_config, tmp_path / 'other.pth', '--out', out)
    state = dict(fc_model.state_dict(), **{'head.fc.weight': torch.ones(5, 32), 'head.fc.bias': torch.ones(5)})
    torch.save(state, tmp_path / 'five.pth')
    assert '5 outputs in head.fc.weight, but the config has 7' in error(
        capsys, fc_config, tmp_path / 'five.pth', '--out', out
    )
    (tmp_path / 'short.pth').write_bytes(fc_checkpoint.read_bytes()[:1000])
    assert 'cannot be read' in error(capsys, fc_config, tmp_path / 'short.pth', '--out', out)
    torch.save(dict(fc_model.state_dict(), **{'head.fc.basis': torch.eye(7)}), tmp_path / 'ebv.pth')
    assert 'EBV model already' in error(capsys, fc_config, tmp_path / 'ebv.pth', '--out', out)
    torch.save(dict(fc_model.state_dict(), **{'backbone.layer3.9.conv1.weight': torch.ones(3)}), tmp_path / 'more.pth')
    assert 'has 1 weights that the model has not, such as backbone.layer3.9' in error(
        capsys, fc_config, tmp_path / 'more.pth', '--out', out, '--dim', 4
    )
    torch.save(torch.ones(3), tmp_path / 'tensor.pth')
    assert 'holds a Tensor' in error(capsys, fc_config, tmp_path / 'tensor.pth', '--out', out)
    assert 'cannot be read' in error(capsys, fc_config, tmp_path / 'none.pth', '--out', out)
    assert not out.exists() or not list(out.iterdir())
    (tmp_path / 'file').write_text('')
    assert 'cannot be written' in error(capsys, fc_config, '--out', tmp_path / 'file' / 'out')


def test_what_is_ebv_already_is_not_converted(fc_config, tmp_path, capsys):
    main([str(fc_config), '--out', str(tmp_path / 'out')])
    assert 'EBVClsHead already' in error(capsys, tmp_path / 'out' / 'resnet18_ebv.py', '--out', tmp_path / 'again')
    assert os.listdir(tmp_path / 'out') == ['resnet18_ebv.py']


def test_fc_weights_in_an_ebv_head_are_named(fc_config, fc_model, tmp_path):
    main([str(fc_config), '--out', str(tmp_path / 'out')])
    model = build(Config.fromfile(str(tmp_path / 'out' / 'resnet18_ebv.py')))
    with pytest.warns(UserWarning, match="'head.fc.weight', but no basis.*python -m ebv_mm.conversion"):
        model.load_state_dict(fc_model.state_dict(), strict=False)
