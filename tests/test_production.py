"""docs/production.md: its commands are run on the demo's models; docs/troubleshooting.md: its messages are raised."""

import re
import shlex
import warnings
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from scripts import load_script

from ebv_mm import EBVLinear
from ebv_mm.classification import EBVClsHead
from ebv_mm.launch import check_run
from ebv_mm.launch.data_files import check_data

REPO = Path(__file__).parents[1]
PAGE = (REPO / 'docs' / 'production.md').read_text(encoding='utf-8')
COMMANDS = [line for block in re.findall(r'```bash\n(.*?)```', PAGE, re.DOTALL) for line in block.splitlines()]
TROUBLES = (REPO / 'docs' / 'troubleshooting.md').read_text(encoding='utf-8')
MESSAGES = re.findall(r'^\| `(.+?)`', TROUBLES, re.MULTILINE)
DATA = dict(num_classes=3, dim=3)


@pytest.fixture(scope='module')
def demo(tmp_path_factory):
    """A folder as after `make demo`, but with few images, and with models that have learned nothing."""
    folder = tmp_path_factory.mktemp('clone')
    (folder / 'demo').symlink_to(REPO / 'demo')
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.syspath_prepend(str(REPO / 'demo'))
    import digit_files

    patch.setattr(digit_files, 'NUM_SCENES', dict(train=2, test=17))
    digit_files.ensure_datasets(Path('data/demo'))
    for name, file in dict(re.findall(r'work_dirs/demo/(\w+)_ebv_s0/(\w+.pth)', PAGE)).items():
        cfg = Config.fromfile(f'demo/configs/{name}_ebv.py')
        init_default_scope(cfg.default_scope)
        cfg.model = with_closed_forms(cfg.model)
        path = Path('work_dirs/demo', f'{name}_ebv_s0', file)
        path.parent.mkdir(parents=True)
        torch.manual_seed(0)
        model = MODELS.build(cfg.model)
        torch.save(dict(state_dict=model.state_dict(), meta={}), path)
    yield folder
    patch.undo()


def with_closed_forms(node):
    """The demo's bases, which are closed forms, without their files."""
    if isinstance(node, dict):
        for key, value in node.items():
            node[key] = with_closed_forms(value)
        if isinstance(node.get('basis'), str):
            num_classes, dim = map(int, re.match(r'(\d+)x(\d+)', Path(node['basis']).name).groups())
            node['basis'] = dict(num_classes=num_classes, dim=dim)
    return node


@pytest.mark.parametrize('line', COMMANDS, ids=lambda line: ' '.join(line.split()[1:3] + line.split()[4:]))
def test_command(line, demo, capsys):
    python, script, *arguments = shlex.split(line)
    assert python == 'python'
    load_script(script).main(arguments)
    printed = capsys.readouterr().out
    if '--to fc' not in line and 'export' in line:
        same, of = map(int, re.search(r'16 images: (\d+) of (\d+) classes are the same', printed).groups())
        assert of and same / of > 0.99
    words = [word.rstrip(':,;') for word in printed.split()]
    written = [word for word in words if word.startswith('work_dirs') and Path(word).suffix]
    assert written and all(Path(word).is_file() for word in written)


def out_of_bounds():
    torch.nn.functional.cross_entropy(torch.randn(2, 3), torch.tensor([0, 3]))


def other_basis():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        layer = EBVLinear(4, 3, basis=DATA)
        layer.load_state_dict(EBVLinear(4, 3, basis=dict(DATA, seed=1)).state_dict())


def another_size():
    head = EBVClsHead(3, 4, basis=DATA)
    model = torch.nn.ModuleDict(dict(head=head))
    model.load_state_dict(torch.nn.ModuleDict(dict(head=EBVClsHead(2, 4, basis=DATA))).state_dict())


def dict_over_string(folder):
    (folder / 'base.py').write_text("model = dict(basis='3x3.safetensors')")
    (folder / 'mine.py').write_text("_base_ = 'base.py'\nmodel = dict(basis=dict(num_classes=3, dim=3))")
    Config.fromfile(folder / 'mine.py')


def few_best_classes(folder):
    dataset = dict(type='CIFAR10', data_root=str(folder))
    cfg = dict(
        default_scope='mmpretrain', work_dir=str(folder), test_cfg={}, test_dataloader=dict(dataset=dataset),
        model=dict(head=dict(type='EBVClsHead', basis=DATA, predict_topk=2)),
        test_evaluator=dict(type='Accuracy', topk=(1, 5)),
    )  # fmt: skip
    check_run(Config(cfg), 'mine.py', 'test')


RAISED = {
    'cannot inherit from base': dict_over_string,
    'no checkpoint has brought one': lambda _: EBVLinear(4, 3, basis='3x3.safetensors')(torch.randn(1, 4)),
    'but the layer needs': lambda _: EBVLinear(4, 4, basis=DATA),
    'the data is not there': lambda folder: check_data(
        Config(dict(train_dataloader=dict(dataset=dict(type='x', data_root=str(folder / 'gone'), download=False)))),
        ['train_dataloader'],
    ),
    'is out of bounds': lambda _: out_of_bounds(),
    'differs from the configured': lambda _: other_basis(),
    'size mismatch for head.fc.basis': lambda _: another_size(),
    'needs all logits': lambda _: EBVClsHead(3, 4, basis=DATA, streaming=True, cal_acc=True),
    'asked for top-5': few_best_classes,
}


@pytest.mark.parametrize('part', RAISED)
def test_message(part, tmp_path):
    (message,) = [message for message in MESSAGES if part in message]
    with pytest.raises((Exception, UserWarning)) as caught:
        RAISED[part](tmp_path)
    raised = str(caught.value)
    # the names in quotes, the numbers and the type of the error are an example's
    parts = [words for words in re.split(r"'.*?'|\d+|\.\.\.|^\w+Error: ", message) if words.strip()]
    assert all(words.strip() in raised for words in parts)
