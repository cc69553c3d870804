"""The set-up script and the packaging, without network: what is cached, what is skipped, what is said."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
in_pinned_environment = pytest.mark.skipif(
    Path(sys.prefix).resolve() != (ROOT / '.venv').resolve(), reason='checks the environment that `make setup` makes'
)


@pytest.fixture
def clone(tmp_path):
    """A clone with what set-up reads, at a path with a space."""
    root = tmp_path / 'my clone'
    for name in ('tools/setup_env.py', 'setup.py', 'pyproject.toml', 'Makefile', 'ebv_mm/__init__.py'):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    shutil.copytree(ROOT / 'requirements', root / 'requirements')
    return root


@pytest.fixture
def setup_env(clone, tmp_path, monkeypatch):
    """The set-up script as a module, with the clone as its root and an empty cache."""
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    for name in ('MMCV_FIND_LINKS', 'CXX', 'CUDA_HOME'):
        monkeypatch.delenv(name, raising=False)
    spec = importlib.util.spec_from_file_location('setup_env', clone / 'tools' / 'setup_env.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def venv(setup_env):
    """An empty environment folder, where commands can be run and logged."""
    setup_env.VENV.mkdir()
    return setup_env.VENV


def run_script(clone, **env):
    """Run the script as `make setup` does; `env` replaces the whole environment."""
    command = [sys.executable, 'tools/setup_env.py']
    return subprocess.run(command, cwd=clone, env=env, text=True, capture_output=True, timeout=60)


def assert_one_sentence(message, *words):
    assert len(message.strip().splitlines()) == 1
    assert 'Traceback' not in message
    for word in words:
        assert word in message


def fake_wheel(path, content='whole'):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, 'w') as file:
        file.writestr('mmcv/version.py', content)
    return path


class TestStamp:
    def test_nothing_is_finished_at_first(self, setup_env):
        assert not setup_env.is_finished()

    def finish(self, setup_env):
        python = setup_env.VENV / 'bin' / 'python'
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        setup_env.STAMP.write_text(setup_env.stamp_text())
        assert setup_env.is_finished()

    def test_finished_is_a_quiet_no_op(self, setup_env, clone):
        self.finish(setup_env)
        begin = time.monotonic()
        result = run_script(clone)  # without even a PATH
        assert (result.returncode, result.stdout, result.stderr) == (0, '', '')
        assert time.monotonic() - begin < 5

    @pytest.mark.parametrize('name', ['requirements/torch.txt', 'requirements/mmcv.txt', 'setup.py'])
    def test_a_changed_requirement_is_work(self, setup_env, clone, name):
        self.finish(setup_env)
        with open(clone / name, 'a') as file:
            file.write('\n# changed\n')
        assert not setup_env.is_finished()

    def test_a_lost_python_is_work(self, setup_env):
        self.finish(setup_env)
        python = setup_env.VENV / 'bin' / 'python'
        python.unlink()
        python.symlink_to('/nowhere/python3.11')
        assert not setup_env.is_finished()

    def test_a_moved_clone_is_work(self, setup_env, tmp_path, monkeypatch):
        self.finish(setup_env)
        shutil.move(str(setup_env.ROOT), str(tmp_path / 'moved'))
        monkeypatch.setattr(setup_env, 'ROOT', tmp_path / 'moved')
        monkeypatch.setattr(setup_env, 'VENV', tmp_path / 'moved' / '.venv')
        monkeypatch.setattr(setup_env, 'STAMP', tmp_path / 'moved' / '.venv' / setup_env.STAMP.name)
        assert setup_env.STAMP.exists()
        assert not setup_env.is_finished()


class TestWheelCache:
    def test_lies_in_the_users_cache(self, setup_env, tmp_path, monkeypatch):
        assert setup_env.wheel_cache() == tmp_path / 'cache' / 'ebv_mm' / 'wheels'
        monkeypatch.delenv('XDG_CACHE_HOME')
        monkeypatch.setenv('HOME', str(tmp_path / 'home'))
        assert setup_env.wheel_cache() == tmp_path / 'home' / '.cache' / 'ebv_mm' / 'wheels'

    def test_key_tells_builds_apart(self, setup_env):
        key = setup_env.wheel_key('2.1.2+cu121', '2.1.0', 'cpu')
        assert key == setup_env.wheel_key('2.1.2+cu121', '2.1.0', 'cpu')
        assert 'cp311' in key
        others = [('2.1.1+cu121', '2.1.0', 'cpu'), ('2.1.2+cu121', '2.0.1', 'cpu'), ('2.1.2+cu121', '2.1.0', 'sm86')]
        assert len({key, *(setup_env.wheel_key(*other) for other in others)}) == 4
        assert Path(key).name == key

    def test_round_trip(self, setup_env, tmp_path):
        folder = tmp_path / 'cache' / 'key'
        assert setup_env.cached_wheel(folder) is None
        built = fake_wheel(tmp_path / 'dist' / 'mmcv-2.1.0-cp311.whl')
        stored = setup_env.store_wheel(built, folder)
        assert setup_env.cached_wheel(folder) == stored
        assert stored.read_bytes() == built.read_bytes()
        assert [path.name for path in folder.iterdir()] == [built.name]

    def test_only_what_is_nowhere_is_compiled(self, setup_env, venv, tmp_path, monkeypatch):
        assert setup_env.will_compile()
        key = setup_env.wheel_key('2.1.2+cu121', '2.1.0', 'cpu')
        setup_env.MMCV_KEY.write_text(key)
        assert not setup_env.will_compile()
        setup_env.MMCV_KEY.write_text(key.replace('2.1.2', '2.0.1'))
        assert setup_env.will_compile()
        wheel = setup_env.store_wheel(fake_wheel(tmp_path / 'mmcv.whl'), setup_env.wheel_cache() / key)
        assert not setup_env.will_compile()
        wheel.unlink()
        monkeypatch.setenv('MMCV_FIND_LINKS', 'wheels')
        assert not setup_env.will_compile()

    def test_interrupted_copy_is_never_seen(self, setup_env, tmp_path, monkeypatch):
        def interrupted(source, target):
            target.write(source.read(10))
            raise KeyboardInterrupt

        monkeypatch.setattr(setup_env.shutil, 'copyfileobj', interrupted)
        folder = tmp_path / 'key'
        with pytest.raises(KeyboardInterrupt):
            setup_env.store_wheel(fake_wheel(tmp_path / 'mmcv.whl'), folder)
        assert list(folder.iterdir()) == []

    def test_torn_wheel_is_compiled_again(self, setup_env, tmp_path):
        folder = tmp_path / 'key'
        wheel = setup_env.store_wheel(fake_wheel(tmp_path / 'mmcv.whl'), folder)
        wheel.write_bytes(wheel.read_bytes()[:20])
        assert setup_env.cached_wheel(folder) is None
        setup_env.store_wheel(tmp_path / 'mmcv.whl', folder)
        assert setup_env.cached_wheel(folder) == wheel

    def test_two_set_ups_compile_one_after_the_other(self, setup_env, tmp_path, capfd):
        events, first_is_in = [], threading.Event()

        def first():
            with setup_env.locked(tmp_path / 'key'):
                first_is_in.set()
                time.sleep(0.3)
                events.append('first')

        thread = threading.Thread(target=first)
        thread.start()
        first_is_in.wait()
        with setup_env.locked(tmp_path / 'key'):
            events.append('second')
        thread.join()
        assert events == ['first', 'second']
        assert 'waiting' in capfd.readouterr().out


class TestSentences:
    """A machine that cannot be set up is told so in one sentence: value, requirement, remedy."""

    @pytest.mark.parametrize('version', [(3, 6, 15), (3, 10, 13), (3, 12, 1)])
    def test_wrong_python(self, setup_env, version):
        with pytest.raises(setup_env.SetupError) as error:
            setup_env.check_python(version, '/usr/bin/python3')
        number = '.'.join(map(str, version))
        assert_one_sentence(str(error.value), '/usr/bin/python3', number, 'needs Python 3.11', 'PYTHON=')

    def test_right_python(self, setup_env):
        setup_env.check_python((3, 11, 2))

    def test_no_python(self, clone):
        if not shutil.which('make'):
            pytest.skip('there is no make')
        command = ['make', 'setup', 'PYTHON=/nowhere/python3.11']
        env = {key: value for key, value in os.environ.items() if not key.startswith('MAKE')}  # not a sub-make
        result = subprocess.run(command, cwd=clone, env=env, text=True, capture_output=True)
        assert result.returncode != 0
        sentence, make = result.stderr.strip().splitlines()
        assert_one_sentence(sentence, '/nowhere/python3.11', 'needs Python 3.11', 'PYTHON=')
        assert make.startswith('make: ***')

    def test_no_venv_module(self, setup_env):
        with pytest.raises(setup_env.SetupError) as error:
            setup_env.check_venv_module(find_spec=lambda name: None if name == 'ensurepip' else name)
        assert_one_sentence(str(error.value), 'venv', 'python3-venv')

    def test_no_compiler(self, setup_env, tmp_path):
        with pytest.raises(setup_env.SetupError) as error:
            setup_env.check_compiler(which=lambda name: None)
        assert_one_sentence(str(error.value), 'compiler', 'mmcv 2.1.0', 'build-essential', 'MMCV_FIND_LINKS')

    def test_no_headers(self, setup_env, tmp_path):
        with pytest.raises(setup_env.SetupError) as error:
            setup_env.check_compiler(which=lambda name: name, include=tmp_path)
        assert_one_sentence(str(error.value), str(tmp_path / 'Python.h'), 'python3-dev', 'MMCV_FIND_LINKS')

    def test_gpu_without_cuda_compiler(self, setup_env):
        setup_env.check_cuda_compiler('cpu', which=lambda name: None)
        with pytest.raises(setup_env.SetupError) as error:
            setup_env.check_cuda_compiler('sm86', which=lambda name: None)
        assert_one_sentence(str(error.value), 'nvcc', 'MMCV_FIND_LINKS', 'CUDA_VISIBLE_DEVICES=')

    def test_full_disk(self, setup_env):
        with pytest.raises(setup_env.SetupError) as error:
            setup_env.check_disk(free=2.1e9, present=0)
        assert_one_sentence(str(error.value), '2.1 GB are free', str(setup_env.ROOT), '9.0 GB')

    def test_what_is_installed_needs_no_space_again(self, setup_env):
        setup_env.check_disk(free=2e9, present=7.5e9)
        with pytest.raises(setup_env.SetupError):
            setup_env.check_disk(free=1e8, present=20e9)

    @pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason='another Python stops earlier')
    def test_script_says_it_and_leaves_nothing_behind(self, clone, tmp_path):
        result = run_script(clone, PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / 'cache'))
        assert result.returncode == 1
        assert_one_sentence(result.stderr, 'error: there is no C++ compiler')
        assert not (clone / '.venv').exists()

    @pytest.mark.parametrize('argument, code, words', [('--help', 0, 'MMCV_FIND_LINKS'), ('twice', 2, 'twice')])
    def test_arguments_start_nothing(self, setup_env, monkeypatch, capsys, argument, code, words):
        monkeypatch.setattr(setup_env, 'set_up', lambda: pytest.fail('it has begun'))
        with pytest.raises(SystemExit) as end:
            setup_env.main([argument])
        assert end.value.code == code
        assert words in ''.join(capsys.readouterr())

    def test_unwritable_file_gives_no_traceback(self, setup_env, monkeypatch):
        def full():
            raise OSError(28, 'No space left on device')

        monkeypatch.setattr(setup_env, 'set_up', full)
        with pytest.raises(SystemExit) as end:
            setup_env.main([])
        assert_one_sentence(end.value.code, 'error:', 'GB are free')


class TestRun:
    def test_output_goes_to_the_log(self, setup_env, venv, capfd):
        setup_env.run('saying hello', [sys.executable, '-c', 'print("hello")'])
        assert 'hello' in setup_env.LOG.read_text()
        assert re.search(r'saying hello: done after 0 min 0\d s', capfd.readouterr().out)

    def test_failure_names_the_log(self, setup_env, venv, capfd):
        with pytest.raises(setup_env.SetupError) as error:
            setup_env.run('trying', [sys.executable, '-c', 'print("because"); raise SystemExit(3)'])
        assert_one_sentence(str(error.value), 'trying failed', str(setup_env.LOG))
        assert 'because' in capfd.readouterr().err

    @pytest.mark.parametrize(
        ('output', 'words'),
        [
            ('OSError: [Errno 28] No space left on device', ['GB are free', '9.0 GB']),
            ('c++: fatal error: Killed signal terminated program cc1plus', ['memory', 'MAX_JOBS=1']),
        ],
    )
    def test_known_failures_have_their_sentence(self, setup_env, venv, output, words):
        with pytest.raises(setup_env.SetupError) as error:
            setup_env.run('trying', [sys.executable, '-c', f'raise SystemExit({output!r})'])
        assert_one_sentence(str(error.value), *words)

    def test_an_earlier_failure_in_the_log_is_not_this_one(self, setup_env, venv):
        setup_env.LOG.write_text('No space left on device\n')
        with pytest.raises(setup_env.SetupError, match='trying failed'):
            setup_env.run('trying', [sys.executable, '-c', 'raise SystemExit(1)'])

    def test_interrupt_ends_the_childrens_children(self, setup_env, venv, tmp_path):
        pid_file = tmp_path / 'pid'
        code = (
            'import subprocess, sys; child = subprocess.Popen(["sleep", "60"]); '
            'open(sys.argv[1], "w").write(str(child.pid)); child.wait()'
        )

        def interrupt_once_started():
            while not (pid_file.exists() and pid_file.read_text()):
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt_once_started).start()
        with pytest.raises(KeyboardInterrupt):
            setup_env.run('sleeping', [sys.executable, '-c', code, pid_file])
        for _ in range(100):
            if not is_running(int(pid_file.read_text())):
                return
            time.sleep(0.05)
        pytest.fail('the grandchild goes on after an interrupt')

    def test_children_use_this_environment_only(self, setup_env, venv, monkeypatch):
        monkeypatch.setenv('PYTHONPATH', '/elsewhere')
        monkeypatch.setenv('PIP_USER', '1')
        env = setup_env.environment()
        assert 'PYTHONPATH' not in env
        assert env['PIP_USER'] == '0'
        assert env['PATH'].startswith(str(venv / 'bin'))
        assert Path(env['TMPDIR']).is_dir()

    @pytest.mark.parametrize(
        ('text', 'expected'),
        [
            ('[1/77] c++ a.cpp\nwarning\n[17/77] c++ b.cpp\n', '[17/77]'),
            ('Collecting torch==2.1.2\n  Downloading torch-2.1.2.whl (670 MB)\n', 'Downloading torch-2.1.2.whl'),
            ('', ''),
        ],
    )
    def test_progress(self, setup_env, text, expected):
        assert setup_env.progress(text) == expected


def is_running(pid):
    """Tell whether a process lives; one that only waits to be reaped does not."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except FileNotFoundError:
        return False


# ---------------------------------------------------------------------------------- requirements and packaging


def pins():
    """Every pinned requirement that applies to this machine."""
    lines = [line for file in (ROOT / 'requirements').glob('*.txt') for line in file.read_text().splitlines()]
    requirements = [Requirement(line.split('#')[0]) for line in lines if line.split('#')[0].strip()]
    return [each for each in requirements if each.marker is None or each.marker.evaluate()]


def test_every_requirement_is_pinned_exactly_and_once(setup_env):
    names = [canonicalize_name(pin.name) for pin in pins()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r'==[^*,]+', str(pin.specifier)) for pin in pins())
    assert setup_env.pinned('torch') == '2.1.2'
    assert setup_env.pinned('mmcv') == '2.1.0'


@in_pinned_environment
def test_pins_are_installed_and_complete():
    """`pip check`, except that the headless OpenCV stands in for opencv-python."""
    missing = []
    for pin in pins():
        assert importlib.metadata.version(pin.name) in pin.specifier
        for text in importlib.metadata.requires(pin.name) or []:
            needed = Requirement(text)
            if needed.marker is not None and not needed.marker.evaluate({'extra': ''}):
                continue
            name = {'opencv-python': 'opencv-python-headless'}.get(needed.name, needed.name)
            try:
                fits = importlib.metadata.version(name) in needed.specifier
            except importlib.metadata.PackageNotFoundError:
                fits = False
            if not fits:
                missing.append(f'{pin} requires {text}')
    assert missing == []


@pytest.fixture(scope='module')
def metadata(tmp_path_factory):
    """Read what setup.py declares, from a copy of the packaging files."""
    root = tmp_path_factory.mktemp('packaging')
    (root / 'ebv_mm').mkdir()
    for name in ('setup.py', 'pyproject.toml', 'ebv_mm/__init__.py'):
        shutil.copy(ROOT / name, root / name)
    subprocess.run([sys.executable, 'setup.py', '-q', 'egg_info'], cwd=root, check=True, capture_output=True)
    return importlib.metadata.PathDistribution(root / 'ebv_mm.egg-info')


def required(metadata, extra=''):
    requirements = [Requirement(text) for text in metadata.requires]
    return {r.name: r for r in requirements if r.marker is None or r.marker.evaluate({'extra': extra})}


def test_version_is_the_packages(metadata):
    text = (ROOT / 'ebv_mm' / '__init__.py').read_text()
    assert f"__version__ = '{metadata.version}'" in text


def test_extras_name_their_host(metadata):
    base = set(required(metadata))
    assert base == {'mmengine', 'numpy', 'safetensors'}
    assert set(required(metadata, 'cls')) - base == {'mmpretrain'}
    assert set(required(metadata, 'det')) - base == {'mmdet'}
    assert set(required(metadata, 'seg')) - base == {'mmsegmentation', 'ftfy', 'regex'}
    assert set(required(metadata, 'all')) - base == {'mmpretrain', 'mmdet', 'mmsegmentation', 'ftfy', 'regex'}


def test_pinned_versions_are_within_the_declared_ranges(metadata):
    versions = {pin.name: str(pin.specifier).lstrip('=') for pin in pins()}
    for name, requirement in required(metadata, 'all').items():
        assert versions[name] in requirement.specifier


@in_pinned_environment
def test_no_extra_leads_to_torch(metadata):
    """Follow every requirement to the end: installing ebv_mm never installs or replaces torch."""
    reached, todo = set(), list(required(metadata, 'all'))
    while todo:
        name = canonicalize_name(todo.pop())
        if name in reached:
            continue
        reached.add(name)
        installed = {'opencv-python': 'opencv-python-headless'}.get(name, name)
        for text in importlib.metadata.requires(installed) or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({'extra': ''}):
                todo.append(needed.name)
    assert {'mmengine', 'mmdet', 'matplotlib'} <= reached
    assert not reached & {'torch', 'torchvision', 'mmcv'}
