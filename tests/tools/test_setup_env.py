"""The set-up of the two stacks, without network: what is cached, what is skipped, what is said."""

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

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / 'tools' / 'setup_env'
MODULES = ('environment', 'machine_checks', 'mmcv_wheel')


@pytest.fixture
def clone(tmp_path):
    """A clone with what set-up reads, at a path with a space."""
    root = tmp_path / 'my clone'
    root.mkdir()
    for name in ('setup.py', 'pyproject.toml', 'Makefile'):
        shutil.copy(ROOT / name, root / name)
    for name in ('requirements', 'tools/setup_env'):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns('__pycache__'))
    return root


@pytest.fixture
def tool(monkeypatch, tmp_path):
    """The modules of the tool by name, with an empty cache."""
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    for name in ('MMCV_FIND_LINKS', 'CXX', 'CUDA_HOME'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.syspath_prepend(str(TOOL))
    modules = {name: importlib.import_module(name) for name in MODULES}
    spec = importlib.util.spec_from_file_location('setup_env', TOOL / '__main__.py')
    modules['__main__'] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(modules['__main__'])
    yield modules
    for name in MODULES:
        del sys.modules[name]


@pytest.fixture(params=['classic', 'modern'])
def env(request, tool, clone):
    """The environment of a stack in the clone: its folder, empty."""
    env = tool['environment'].Environment(request.param, clone)
    env.folder.mkdir()
    return env


@pytest.fixture
def fits():
    """The stack of the Python that runs the tests."""
    return 'classic' if sys.version_info < (3, 12) else 'modern'


def run_script(clone, *arguments, **env):
    """Run the tool as `make setup` does; `env` replaces the whole environment."""
    command = [sys.executable, 'tools/setup_env', *arguments]
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
    def finish(self, env):
        env.python.parent.mkdir(parents=True)
        env.python.symlink_to(sys.executable)
        env.finish(env.stamp_text())
        assert env.is_finished()

    def test_nothing_is_finished_at_first(self, env):
        assert not env.is_finished()

    def test_finished_is_a_quiet_no_op_and_both_stand_side_by_side(self, tool, clone, capfd):
        for name in ('classic', 'modern', 'classic'):
            env = tool['environment'].Environment(name, clone)
            if not env.folder.exists():
                env.folder.mkdir()
                self.finish(env)
                capfd.readouterr()
            result = run_script(clone, name)  # without even a PATH
            assert (result.returncode, result.stdout, result.stderr) == (0, '', '')
            assert os.readlink(clone / '.venv') == f'.venv-{name}'

    def test_a_changed_requirement_is_work(self, env, clone):
        for file in (env.requirements, clone / 'setup.py'):
            shutil.rmtree(env.folder)
            env.folder.mkdir()
            self.finish(env)
            with open(file, 'a') as text:
                text.write('\n# changed\n')
            assert not env.is_finished()

    def test_a_lost_python_is_work(self, env):
        self.finish(env)
        env.python.unlink()
        env.python.symlink_to('/nowhere/python3')
        assert not env.is_finished()

    def test_a_moved_clone_is_work(self, env, tool, tmp_path):
        self.finish(env)
        shutil.move(str(env.root), str(tmp_path / 'moved'))
        moved = tool['environment'].Environment(env.name, tmp_path / 'moved')
        assert moved.stamp.exists() and not moved.is_finished()

    def test_the_scripts_of_a_moved_clone_call_its_own_python(self, env, tool, tmp_path):
        self.finish(env)
        script = env.folder / 'bin' / 'pip'
        script.write_text(f'#!/bin/sh\nexec "{env.python}" -m pip "$@"\n')
        shutil.move(str(env.root), str(tmp_path / 'moved'))
        moved = tool['environment'].Environment(env.name, tmp_path / 'moved')
        tool['__main__'].renew_scripts(moved)
        assert (moved.folder / 'bin' / 'pip').read_text() == f'#!/bin/sh\nexec "{moved.python}" -m pip "$@"\n'

    def test_the_environment_of_the_first_release_is_taken_over(self, tool, clone):
        old = clone / '.venv'
        (old / 'lib' / 'python{}.{}'.format(*sys.version_info)).mkdir(parents=True)
        (old / 'bin').mkdir()
        (old / 'bin' / 'python').symlink_to(sys.executable)
        (old / 'installed').touch()
        env = tool['environment'].Environment('classic', clone)
        env.run = lambda *command, **_: None
        tool['__main__'].create(env)
        tool['__main__'].point_venv_to(env)
        assert (clone / '.venv-classic' / 'installed').exists() and (clone / '.venv' / 'installed').exists()
        assert old.is_symlink()

    def test_a_half_built_environment_is_replaced(self, env, tool, capfd):
        (env.folder / 'half').touch()
        env.run = lambda *command, **_: None
        tool['__main__'].create(env)
        assert not (env.folder / 'half').exists()
        assert f'replacing {env.folder.name}' in capfd.readouterr().out


class TestMmcv:
    def test_the_cache_lies_in_the_users_cache(self, tool, tmp_path, monkeypatch):
        wheel_cache = tool['mmcv_wheel'].wheel_cache
        assert wheel_cache() == tmp_path / 'cache' / 'ebv_mm' / 'wheels'
        monkeypatch.delenv('XDG_CACHE_HOME')
        monkeypatch.setenv('HOME', str(tmp_path / 'home'))
        assert wheel_cache() == tmp_path / 'home' / '.cache' / 'ebv_mm' / 'wheels'

    def test_key_tells_builds_apart(self, tool):
        key = tool['mmcv_wheel'].wheel_key
        builds = [
            ('mmcv==2.1.0', '2.1.2+cu121', 'cpu'),
            ('mmcv==2.1.0', '2.1.1+cu121', 'cpu'),
            ('mmcv==2.0.1', '2.1.2+cu121', 'cpu'),
            ('onedl-mmcv==2.1.0', '2.1.2+cu121', 'cpu'),
            ('mmcv==2.1.0', '2.1.2+cu121', 'sm86'),
        ]
        keys = {key(*build) for build in builds}
        assert len(keys) == len(builds)
        assert all('cp{}{}'.format(*sys.version_info) in each and Path(each).name == each for each in keys)

    def test_only_what_is_nowhere_is_compiled(self, env, tool, tmp_path, monkeypatch):
        mmcv_wheel = tool['mmcv_wheel']
        assert mmcv_wheel.will_compile(env)
        torch = env.pin('torch').partition('==')[2]
        key = mmcv_wheel.wheel_key(env.pin(env.stack.mmcv), f'{torch}+cu121', 'cpu')
        mmcv_wheel.installed_key(env).write_text(key)
        assert not mmcv_wheel.will_compile(env)
        mmcv_wheel.installed_key(env).write_text(key.replace(torch, '2.0.1'))
        assert mmcv_wheel.will_compile(env)
        wheel = mmcv_wheel.store_wheel(fake_wheel(tmp_path / 'mmcv.whl'), mmcv_wheel.wheel_cache() / key)
        assert not mmcv_wheel.will_compile(env)
        wheel.unlink()
        monkeypatch.setenv('MMCV_FIND_LINKS', 'wheels')
        assert not mmcv_wheel.will_compile(env)

    def test_round_trip(self, tool, tmp_path):
        mmcv_wheel, folder = tool['mmcv_wheel'], tmp_path / 'cache' / 'key'
        assert mmcv_wheel.cached_wheel(folder) is None
        built = fake_wheel(tmp_path / 'dist' / 'mmcv-2.1.0-cp311.whl')
        stored = mmcv_wheel.store_wheel(built, folder)
        assert mmcv_wheel.cached_wheel(folder) == stored
        assert stored.read_bytes() == built.read_bytes()
        assert [path.name for path in folder.iterdir()] == [built.name]

    def test_interrupted_copy_is_never_seen(self, tool, tmp_path, monkeypatch):
        def interrupted(source, target):
            Path(target).write_bytes(Path(source).read_bytes()[:10])
            raise KeyboardInterrupt

        monkeypatch.setattr(shutil, 'copyfile', interrupted)
        with pytest.raises(KeyboardInterrupt):
            tool['mmcv_wheel'].store_wheel(fake_wheel(tmp_path / 'mmcv.whl'), tmp_path / 'key')
        assert list((tmp_path / 'key').iterdir()) == []

    def test_torn_wheel_is_compiled_again(self, tool, tmp_path):
        mmcv_wheel, folder = tool['mmcv_wheel'], tmp_path / 'key'
        wheel = mmcv_wheel.store_wheel(fake_wheel(tmp_path / 'mmcv.whl'), folder)
        wheel.write_bytes(wheel.read_bytes()[:20])
        assert mmcv_wheel.cached_wheel(folder) is None

    def prebuilt(self, env, tool, monkeypatch, address, works='pass'):
        """Try the wheels at an address with the pip of this Python, into a folder of the test."""
        env.python.parent.mkdir(exist_ok=True)
        # not a link, which would lead to the system's Python; Debian's has no pip
        env.python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        env.python.chmod(0o755)
        env.stack = env.stack._replace(prebuilt=str(address))
        monkeypatch.setenv('PIP_FIND_LINKS', '')
        monkeypatch.setattr(tool['mmcv_wheel'], 'CHECK_OPS', works)
        pip = env.pip
        env.pip = lambda *words: pip(*words, '--target', env.folder / 'site')
        return tool['mmcv_wheel'].try_prebuilt(env, 'mmcv==2.1.0')

    def wheel_in(self, folder):
        name = 'mmcv-2.1.0'
        folder.mkdir()
        with zipfile.ZipFile(folder / f'{name}-py3-none-any.whl', 'w') as file:
            file.writestr('mmcv/__init__.py', '')
            file.writestr(f'{name}.dist-info/METADATA', 'Metadata-Version: 2.1\nName: mmcv\nVersion: 2.1.0\n')
            file.writestr(f'{name}.dist-info/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
            file.writestr(f'{name}.dist-info/RECORD', '')
        return folder

    def test_a_prebuilt_wheel_is_taken_if_it_works(self, env, tool, tmp_path, monkeypatch, capfd):
        folder = self.wheel_in(tmp_path / 'published')
        assert self.prebuilt(env, tool, monkeypatch, folder)
        assert (env.folder / 'site' / 'mmcv').exists()
        assert str(folder) in capfd.readouterr().out

    def test_a_prebuilt_wheel_that_does_not_work_is_not_taken(self, env, tool, tmp_path, monkeypatch, capfd):
        folder = self.wheel_in(tmp_path / 'published')
        assert not self.prebuilt(env, tool, monkeypatch, folder, works='raise SystemExit(1)')
        assert 'none that works here' in capfd.readouterr().out

    def test_a_refused_connection_costs_no_time(self, env, tool, monkeypatch, capfd):
        begin = time.monotonic()
        assert not self.prebuilt(env, tool, monkeypatch, 'http://127.0.0.1:9/index.html')
        assert time.monotonic() - begin < 12
        assert 'none that works here' in capfd.readouterr().out


@pytest.mark.skipif(not shutil.which('c++'), reason='there is no C++ compiler')
class TestCompiler:
    """torch's headers are compiled once for all files; where that fails, every file is compiled as before."""

    @pytest.fixture
    def compile(self, env, tool, tmp_path):
        def run(header, name, text):
            (tmp_path / 'torch').mkdir(exist_ok=True)
            (tmp_path / 'torch' / 'types.h').write_text(header)
            (tmp_path / f'{name}.cpp').write_text(text)
            files = ('-MMD', '-MF', f'{name}.d', '-c', f'{name}.cpp', '-o', f'{name}.o')
            env.run(
                'c++', '-O1', f'-I{tmp_path}', '-H', *files,
                cwd=tmp_path, path=[TOOL / 'compiler'], PRECOMPILED_HEADERS=str(tmp_path / 'headers')
            )  # fmt: skip
            assert (tmp_path / f'{name}.o').stat().st_size and (tmp_path / f'{name}.d').exists()

        return run

    def test_headers_are_precompiled_at_the_first_file_and_used_by_all(self, compile, tmp_path, capfd):
        for name in ('one', 'two'):
            compile(
                '#pragma once\nconstexpr int answer = 42;', name, '#include <torch/types.h>\nint f() { return answer; }'
            )
            assert '! ' in capfd.readouterr().err.splitlines()[0][:2]  # how -H marks a precompiled header in use
        assert sorted(path.name for path in (tmp_path / 'headers').iterdir()) == [
            'lock', 'torch_headers.hpp', 'torch_headers.hpp.gch'
        ]  # fmt: skip

    def test_a_header_that_cannot_be_precompiled_is_no_hindrance(self, compile, tmp_path, capfd):
        for name in ('one', 'two'):
            compile('#error not here', name, 'int f() { return 1; }')
        assert (tmp_path / 'headers' / 'torch_headers.hpp.failed').exists()
        assert 'not here' not in capfd.readouterr().err


class TestSentences:
    """A machine that cannot be set up is told so in one sentence: value, requirement, remedy."""

    def error_of(self, tool, check, *arguments, **settings):
        with pytest.raises(tool['environment'].SetupError) as error:
            getattr(tool['machine_checks'], check)(*arguments, **settings)
        return str(error.value)

    @pytest.mark.parametrize(
        'stack, version, fits',
        [('classic', (3, 8, 18), ''), ('classic', (3, 13, 5), 'STACK=modern'), ('modern', (3, 15, 0), '')],
    )
    def test_wrong_python(self, tool, clone, stack, version, fits):
        env = tool['environment'].Environment(stack, clone)
        message = self.error_of(tool, 'check_python', env, version, '/usr/bin/python3')
        number = '.'.join(map(str, version))
        assert_one_sentence(message, '/usr/bin/python3', number, f'the {stack} stack', 'PYTHON=', fits)
        assert fits or 'STACK=' not in message

    def test_right_python(self, tool, clone):
        for stack, minors in dict(classic=(10, 11), modern=(11, 12, 13, 14)).items():
            for minor in minors:
                env = tool['environment'].Environment(stack, clone)
                tool['machine_checks'].check_python(env, (3, minor, 2))

    @pytest.mark.skipif(not shutil.which('make'), reason='there is no make')
    def test_make_finds_the_stack_of_a_python(self, clone, tmp_path):
        env = {key: value for key, value in os.environ.items() if not key.startswith(('MAKE', 'STACK', 'PYTHON'))}
        for version, stack in [('3.10', 'classic'), ('3.11', 'classic'), ('3.12', 'modern'), ('3.14', 'modern')]:
            python = tmp_path / version / 'python3'
            python.parent.mkdir()
            # a Python that says it has another version
            number = version.replace('.', ', ')
            pretend = f'import sys; sys.version_info = ({number})'
            python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} -c "{pretend}; $2"\n')
            python.chmod(0o755)
            for words in ([f'PYTHON={python}'], []):
                path = f'{python.parent}{os.pathsep}{env["PATH"]}'
                command = ['make', '--dry-run', 'test', *words]
                said = subprocess.run(
                    command, cwd=clone, env={**env, 'PATH': path}, text=True, capture_output=True, check=True
                )
                assert f'.venv-{stack}/bin/python -m pytest' in said.stdout

    @pytest.mark.skipif(not shutil.which('make'), reason='there is no make')
    def test_no_python(self, clone):
        command = ['make', 'setup', 'PYTHON=/nowhere/python3']
        env = {key: value for key, value in os.environ.items() if not key.startswith('MAKE')}  # not a sub-make
        result = subprocess.run(command, cwd=clone, env=env, text=True, capture_output=True)
        assert result.returncode != 0
        sentence, make = result.stderr.strip().splitlines()
        assert_one_sentence(sentence, '/nowhere/python3', 'needs Python 3.10 to 3.14', 'PYTHON=')
        assert make.startswith('make: ***')

    def test_no_venv_module(self, tool):
        message = self.error_of(tool, 'check_venv_module', lambda name: None if name == 'ensurepip' else name)
        assert_one_sentence(message, 'venv', 'python3-venv')

    def test_no_compiler(self, env, tool):
        message = self.error_of(tool, 'check_compiler', env, which=lambda name: None)
        assert_one_sentence(message, 'compiler', env.pin(env.stack.mmcv), 'build-essential', 'MMCV_FIND_LINKS')

    def test_no_headers(self, env, tool, tmp_path):
        message = self.error_of(tool, 'check_compiler', env, which=lambda name: name, include=tmp_path)
        assert_one_sentence(message, str(tmp_path / 'Python.h'), 'python3-dev', 'MMCV_FIND_LINKS')

    def test_gpu_without_cuda_compiler(self, tool):
        tool['machine_checks'].check_cuda_compiler('cpu', which=lambda name: None)
        message = self.error_of(tool, 'check_cuda_compiler', 'sm86', which=lambda name: None)
        assert_one_sentence(message, 'nvcc', 'MMCV_FIND_LINKS', 'CUDA_VISIBLE_DEVICES=')

    def test_full_disk(self, env, tool):
        message = self.error_of(tool, 'check_disk', env, free=3e9, present=0)
        assert_one_sentence(message, '3.0 GB are free', str(env.root), '9.0 GB')

    def test_what_is_installed_needs_no_space_again(self, env, tool):
        tool['machine_checks'].check_disk(env, free=2e9, present=7.5e9)
        self.error_of(tool, 'check_disk', env, free=1e8, present=20e9)

    def test_script_says_it_and_leaves_nothing_behind(self, clone, tmp_path, fits):
        result = run_script(clone, fits, PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / 'cache'))
        assert result.returncode == 1
        assert_one_sentence(result.stderr, 'error: there is no C++ compiler')
        assert not list(clone.glob('.venv*'))

    @pytest.mark.parametrize('argument, code, words', [('--help', 0, 'MMCV_FIND_LINKS'), ('ancient', 2, 'ancient')])
    def test_arguments_start_nothing(self, tool, monkeypatch, capsys, argument, code, words):
        monkeypatch.setattr(tool['__main__'], 'set_up', lambda env: pytest.fail('it has begun'))
        with pytest.raises(SystemExit) as end:
            tool['__main__'].main([argument])
        assert end.value.code == code
        assert words in ''.join(capsys.readouterr())

    def test_a_full_disk_gives_no_traceback(self, tool, monkeypatch):
        def full(env):
            raise OSError(28, 'No space left on device')

        monkeypatch.setattr(tool['__main__'], 'set_up', full)
        with pytest.raises(SystemExit) as end:
            tool['__main__'].main(['modern'])
        assert_one_sentence(end.value.code, 'error:', 'is full')


class TestRun:
    def test_failure_is_one_sentence_after_what_the_command_said(self, env, tool, capfd):
        with pytest.raises(tool['environment'].SetupError) as error, env.step('trying'):
            env.run(sys.executable, '-c', 'print("because"); raise SystemExit(3)')
        assert_one_sentence(str(error.value), 'trying failed', f'rm -rf {env.folder.name}', 'same command again')
        assert re.search('--- trying\n.*because', capfd.readouterr().out, re.DOTALL)

    def test_interrupt_ends_the_childrens_children(self, env, tmp_path, monkeypatch):
        # A shell that starts the tests in the background has them ignore this signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
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
        try:
            with pytest.raises(KeyboardInterrupt):
                env.run(sys.executable, '-c', code, pid_file)
        finally:
            signal.signal(signal.SIGINT, before)
        for _ in range(100):
            if not is_running(int(pid_file.read_text())):
                return
            time.sleep(0.05)
        pytest.fail('the grandchild goes on after an interrupt')

    def test_children_use_this_environment_only(self, env, monkeypatch):
        monkeypatch.setenv('PYTHONPATH', '/elsewhere')
        monkeypatch.setenv('PIP_USER', '1')
        names = ('PYTHONPATH', 'PIP_USER', 'PATH', 'TMPDIR')
        code = f'import os; print(*(os.environ.get(name) for name in {names}), sep="\\n")'
        pythonpath, user, path, scratch = env.run(sys.executable, '-c', code, capture=True).splitlines()
        assert (pythonpath, user) == ('None', '0')
        assert path.startswith(str(env.folder / 'bin'))
        assert Path(scratch).is_dir()


def is_running(pid):
    """Tell whether a process lives; one that only waits to be reaped does not."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except FileNotFoundError:
        return False
