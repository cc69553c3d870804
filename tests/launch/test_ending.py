"""How the tools end: one sentence, by rank 0, and the traceback for who asks for it."""

import json
import re

import pytest
from mmengine.registry import MODELS

from ebv_mm.basis import BasisError
from ebv_mm.launch import ConfigError, one_sentence
from ebv_mm.launch.ending import sentence


def test_one_sentence_and_its_exit_code(capsys):
    with pytest.raises(SystemExit) as ended, one_sentence():
        raise ConfigError('lr is wrong; mend it')
    assert ended.value.code == 1
    assert capsys.readouterr().err == 'error: lr is wrong; mend it\n'


def test_the_traceback_for_who_asks():
    with pytest.raises(ZeroDivisionError), one_sentence(traceback=True):
        raise ZeroDivisionError


def test_our_messages_stay_and_others_get_their_kind():
    with pytest.raises(BasisError) as caught:
        MODELS.build(dict(type='EBVLinear', in_features=4, out_features=9, basis=dict(num_classes=5, dim=5)))
    assert sentence(caught.value) == str(caught.value)
    with pytest.raises(TypeError) as caught:
        MODELS.build(dict(type='EBVLinear', in_features=4))
    assert re.match("TypeError: .*'out_features'.*(--traceback shows where)", sentence(caught.value))


def test_an_mmcv_without_ops_is_named_with_its_remedy():
    error = ModuleNotFoundError("No module named 'mmcv._ext'", name='mmcv._ext')
    assert re.match(r'there is no mmcv with compiled ops that fit torch .*; .*MMCV_WITH_OPS=1 pip', sentence(error))


def test_other_ranks_leave_the_word_to_rank_0(monkeypatch, tmp_path, capsys):
    waited = []
    monkeypatch.setattr('time.sleep', waited.append)
    monkeypatch.setenv('RANK', '3')
    monkeypatch.setenv('TORCHELASTIC_ERROR_FILE', str(tmp_path / 'error.json'))
    with pytest.raises(SystemExit), one_sentence():
        raise ConfigError('lr is wrong; mend it')
    assert waited and capsys.readouterr().err == 'error: rank 3: lr is wrong; mend it\n'
    assert 'lr is wrong' in json.loads((tmp_path / 'error.json').read_text())['message']['message']
