"""The examples of the README and of docs/, run as they stand."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from ebv_mm import make_basis, save_basis

REPO = Path(__file__).parent.parent
README = (REPO / 'README.md').read_text(encoding='utf-8')
DOCS = ''.join(path.read_text(encoding='utf-8') for path in sorted(REPO.glob('docs/*.md')))
PYTHON = re.findall(r'```python\n(.*?)```', README + DOCS, re.DOTALL)
SHELL = [line for block in re.findall(r'```bash\n(.*?)```', README, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize('code', [code for code in PYTHON if '_base_' not in code], ids=lambda code: code[:30])
def test_script(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, 'README.md', 'exec'), {})


@pytest.mark.parametrize('code', [code for code in PYTHON if '_base_' in code], ids=lambda code: code[9:40])
def test_config(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_basis(make_basis(81, 81), 'data/ebv/81x81.safetensors')
    (tmp_path / 'config.py').write_text(code)
    config = Config.fromfile('config.py')
    with DefaultScope.overwrite_default_scope(config.default_scope):
        model = MODELS.build(config.model)
    heads = code.count("type='EBV")
    # a cascade has a head for each of its stages
    assert 0 < heads <= sum(name.endswith('.basis') for name, _ in model.named_buffers())


@pytest.mark.parametrize('line', SHELL)
def test_command(line, tmp_path):
    """Bases and conversions are really made; what other tests do must at least name what exists."""
    program, *arguments = shlex.split(line)
    for word in (program, *arguments):
        if word.startswith(('tools/', 'configs/')):
            assert (REPO / word).exists(), word
    made = {'tools/make_basis.py': 'data/ebv/*.safetensors', 'tools/to_ebv.py': 'converted/*_ebv.py'}
    if program == 'python' and arguments[0] in made:
        (tmp_path / 'tools').symlink_to(REPO / 'tools')
        (tmp_path / 'configs').symlink_to(REPO / 'configs')
        subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True)
        assert list(tmp_path.glob(made[arguments[0]]))
    elif program == 'make':
        assert re.search(rf'^{arguments[0]}:', (REPO / 'Makefile').read_text(), re.MULTILINE)
    else:
        assert program in ('pip', 'tools/dist_train.sh', 'tools/dist_test.sh'), line


@pytest.mark.parametrize(
    'page', ['README.md', 'CONTRIBUTING.md', *sorted(f'docs/{path.name}' for path in REPO.glob('docs/*.md'))]
)
def test_links_lead_somewhere(page):
    text = (REPO / page).read_text(encoding='utf-8')
    for target, anchor in re.findall(r'\]\(([^)#\s]*)#?([^)\s]*)', text):
        file = (REPO / page).parent.joinpath(target) if target else REPO / page
        assert '://' in target or file.exists(), target
        if anchor and file.suffix == '.md':
            assert anchor in anchors(file), f'{target}#{anchor}'


def anchors(page: Path) -> List[str]:
    """Those that are made of the headings of a page."""
    headings = re.findall(r'^#+ (.+)$', page.read_text(encoding='utf-8'), re.MULTILINE)
    return [re.sub(r'[^\w -]', '', heading.lower()).strip().replace(' ', '-') for heading in headings]


def test_the_tree_of_contributing_is_the_real_one():
    """Every room is told of, and every room that is told of exists."""
    table = (REPO / 'CONTRIBUTING.md').read_text(encoding='utf-8').split('## Where things live')[1]
    rooms = set()
    for row in table.splitlines()[5:]:
        folder = ''
        for name in re.findall(r'`([^`]+)`', row.split('|')[1]):
            folder = 'ebv_mm/' if name.startswith('ebv_mm/') else folder
            rooms.add(name if name.startswith('ebv_mm/') else folder + name)
    assert rooms == {room for room in rooms if (REPO / room).exists()}
    package = {f'ebv_mm/{path.name}' for path in (REPO / 'ebv_mm').glob('*.py') if path.name != '__init__.py'}
    package |= {f'ebv_mm/{path.parent.name}/' for path in (REPO / 'ebv_mm').glob('*/__init__.py')}
    assert package == {room for room in rooms if room.startswith('ebv_mm/')}
    tracked = subprocess.run(['git', 'ls-files'], cwd=REPO, capture_output=True, text=True, check=True).stdout.split()
    folders = {f'{name.split("/")[0]}/' for name in tracked if '/' in name and not name.startswith('.')}
    assert folders - {'ebv_mm/'} == {room for room in rooms if not room.startswith('ebv_mm/')}
