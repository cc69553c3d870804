"""The pins of both stacks, and what a wheel declares and brings."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ebv_mm.compat import DISTRIBUTIONS

pytestmark = pytest.mark.both_stacks

ROOT = Path(__file__).resolve().parent.parent
STACKS = ('classic', 'modern')
# the stack of the environment that runs the tests, where `make setup` made it
RUNNING = [stack for stack in STACKS if Path(sys.prefix).resolve() == (ROOT / f'.venv-{stack}').resolve()]
HEADLESS = {'opencv-python': 'opencv-python-headless'}
LEFT_OUT = {'huggingface_hub'}  # timm downloads weights with it, and does without it


def pins(stack):
    """Every pinned requirement of a stack that applies to this machine."""
    lines = (ROOT / 'requirements' / f'{stack}.txt').read_text().splitlines()
    requirements = [Requirement(line.split('#')[0]) for line in lines if line.split('#')[0].strip()]
    return [each for each in requirements if each.marker is None or each.marker.evaluate()]


@pytest.mark.parametrize('stack', STACKS)
def test_every_requirement_is_pinned_exactly_and_once(stack):
    names = [canonicalize_name(pin.name) for pin in pins(stack)]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r'==[^*,]+', str(pin.specifier)) for pin in pins(stack))
    column = STACKS.index(stack)
    assert {names[column] for names in DISTRIBUTIONS.values()} <= set(names)


@pytest.mark.parametrize('stack', RUNNING)
def test_pins_are_installed_and_complete(stack):
    """`pip check`, except that the headless OpenCV stands in for opencv-python."""
    missing = []
    for pin in pins(stack):
        assert importlib.metadata.version(pin.name) in pin.specifier
        for text in importlib.metadata.requires(pin.name) or []:
            needed = Requirement(text)
            if needed.name in LEFT_OUT or (needed.marker is not None and not needed.marker.evaluate({'extra': ''})):
                continue
            try:
                fits = importlib.metadata.version(HEADLESS.get(needed.name, needed.name)) in needed.specifier
            except importlib.metadata.PackageNotFoundError:
                fits = False
            if not fits:
                missing.append(f'{pin} requires {text}')
    assert missing == []


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """The wheel of the clone, built from a copy with the setuptools that is installed."""
    root = tmp_path_factory.mktemp('clone')
    for name in ('setup.py', 'pyproject.toml', 'MANIFEST.in', 'model-index.yml', 'README.md', 'CHANGELOG.md'):
        shutil.copy(ROOT / name, root / name)
    for name in ('ebv_mm', 'configs', 'tools'):
        shutil.copytree(ROOT / name, root / name)
    command = [sys.executable, 'setup.py', '-q', 'bdist_wheel']
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return next((root / 'dist').glob('*.whl'))


def test_the_wheel_brings_the_package_the_configs_and_the_tools(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / 'ebv_mm').rglob('*.py')}
    brought = {str(path.relative_to(ROOT)) for path in (ROOT / 'configs').rglob('*.*') if path.suffix != '.pyc'}
    tools = {f'tools/{path.name}' for path in (ROOT / 'tools').iterdir() if path.is_file()}
    assert modules <= names
    assert {f'ebv_mm/.mim/{name}' for name in {*brought, *tools, 'model-index.yml'}} <= names
    assert not [name for name in names if 'setup_env' in name or '__pycache__' in name]
    assert {name.split('/')[0] for name in names if not name.startswith('ebv_mm-')} == {'ebv_mm'}


def test_what_mim_reads_is_there(wheel, tmp_path):
    """model-index.yml leads to a metafile of each host, and each metafile to configs."""
    yaml = pytest.importorskip('yaml')
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    mim = tmp_path / 'ebv_mm' / '.mim'
    metafiles = yaml.safe_load((mim / 'model-index.yml').read_text())['Import']
    configs = [model['Config'] for name in metafiles for model in yaml.safe_load((mim / name).read_text())['Models']]
    assert len(metafiles) == 3 and configs
    assert [name for name in configs if not (mim / name).exists()] == []


def test_installing_the_wheel_changes_nothing_else(wheel):
    """What pip would do, whatever the stack: install ebv_mm if it is not here yet, and leave all else as it is."""
    command = [sys.executable, '-m', 'pip', 'install', '--dry-run', '--quiet', '--report', '-', '--no-index', wheel]
    planned = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['install']
    assert {canonicalize_name(item['metadata']['name']) for item in planned} <= {'ebv-mm'}


def test_the_wheel_names_no_host(wheel):
    """pip would put OpenMMLab's own release over a fork of the same import name, or the other way round."""
    folder = '-'.join(wheel.name.split('-')[:2]) + '.dist-info'
    requires = importlib.metadata.PathDistribution(zipfile.Path(wheel) / folder).requires
    required = {Requirement(text).name for text in requires}
    assert required == {'numpy', 'rich', 'safetensors'}
    assert not required & {name for names in DISTRIBUTIONS.values() for name in names}
