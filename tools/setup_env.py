"""Create or complete the clone's virtual environment `.venv`: what `make setup`, `make demo` and `make test` do first.

Steps: check the machine, install the pinned requirements, install mmcv, install ebv_mm, import it all, stamp.
Every step can be repeated, so an interrupted set-up is simply run again; a stamped one returns at once.

mmcv is on the package index as source only, and compiling its C++ ops takes many minutes. The wheel is therefore
kept outside the clone, in `$XDG_CACHE_HOME/ebv_mm/wheels` (default `~/.cache`), for every later clone.

Environment variables:
    MMCV_FIND_LINKS  address or folder of prebuilt mmcv wheels: install from there, compile nothing.
    MAX_JOBS         how many files to compile at once (default: one per core, and per 2 GB of memory).

It runs under the bare system Python: standard library only.
"""

import argparse
import contextlib
import errno
import fcntl
import fnmatch
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / '.venv'
LOG = VENV / 'setup.log'
STAMP = VENV / 'setup.stamp'
MMCV_KEY = VENV / 'mmcv.key'  # which mmcv is installed in .venv, as wheel_key names it
BUILD = VENV / 'mmcv-build'
SCRATCH = VENV / 'tmp'

PYTHON = (3, 11)
# Measured: 5.3 GB in the end, 8.3 GB at the peak, while pip still holds the downloads that it unpacks.
DISK_GB = 9

# The same rule as in mmcv's setup.py decides whether its CUDA ops are compiled.
PROBE = """
import os, sys, torch
if torch.cuda.is_available():
    device = 'sm%d%d' % torch.cuda.get_device_capability()
else:
    device = 'cuda' if os.getenv('FORCE_CUDA') == '1' else 'cpu'
open(sys.argv[1], 'w').write(f'{torch.__version__} {device}')
"""
CHECK = """
import cv2, mmdet.utils, mmpretrain.utils, mmseg.utils, torch
from mmcv.ops import nms
nms(torch.tensor([[0., 0., 1., 1.]]), torch.ones(1), 0.5)
for host in (mmdet, mmpretrain, mmseg):
    host.utils.register_all_modules(init_default_scope=False)
"""


class SetupError(Exception):
    """What stops the set-up, as one sentence: value, requirement, remedy."""


# ---------------------------------------------------------------------------------------------- what is there


def requirement_files():
    return [ROOT / 'requirements' / f'{name}.txt' for name in ('torch', 'hosts', 'dev', 'mmcv')]


def pinned(name):
    """Return the version that the requirement files pin for a distribution."""
    for file in requirement_files():
        match = re.search(rf'^{re.escape(name)}==([^\s;]+)', file.read_text(encoding='utf-8'), re.MULTILINE)
        if match:
            return match.group(1)
    raise KeyError(name)


def stamp_text():
    """Return what the stamp of a finished environment says: it changes when set-up has something to do."""
    digest = hashlib.sha256()
    for file in [*requirement_files(), ROOT / 'setup.py']:
        digest.update(file.read_bytes())
    # A moved clone has to be set up again: activate scripts and the editable install hold its path.
    return f'{digest.hexdigest()} python{PYTHON[0]}.{PYTHON[1]} {VENV}\n'


def is_finished():
    """Tell whether there is nothing to do; false as well where the Python behind .venv has gone."""
    return (VENV / 'bin' / 'python').exists() and STAMP.exists() and STAMP.read_text() == stamp_text()


def wheel_cache():
    base = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return Path(base) / 'ebv_mm' / 'wheels'


def wheel_key(torch, mmcv, device):
    """Name the cache folder of an mmcv wheel after everything that its binary depends on."""
    python = f'cp{PYTHON[0]}{PYTHON[1]}'
    machine = sysconfig.get_platform().replace('-', '_')
    libc = ''.join(platform.libc_ver()) or 'libc'
    return f'mmcv{mmcv}-torch{torch}-{python}-{machine}-{libc}-{device}'


def will_compile():
    """Tell, before torch is there to be asked, whether mmcv is neither installed nor cached nor prebuilt."""
    key = wheel_key(pinned('torch') + '*', pinned('mmcv'), '*')
    installed = MMCV_KEY.exists() and fnmatch.fnmatchcase(MMCV_KEY.read_text(), key)
    return not (installed or list(wheel_cache().glob(f'{key}/*.whl')) or os.environ.get('MMCV_FIND_LINKS'))


def cached_wheel(folder):
    """Return the whole wheel in a cache folder, or None."""
    wheels = [path for path in sorted(folder.glob('*.whl')) if zipfile.is_zipfile(path)]
    return wheels[-1] if wheels else None


def store_wheel(wheel, folder):
    """Copy a wheel into its cache folder; whoever looks there finds the whole file or none."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f'{wheel.name}.{os.getpid()}.partial'
    try:
        with open(wheel, 'rb') as source, open(partial, 'wb') as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        os.replace(partial, folder / wheel.name)
    finally:
        if partial.exists():
            partial.unlink()
    return folder / wheel.name


@contextlib.contextmanager
def locked(folder):
    """Let one set-up at a time compile for a cache folder; yield a descriptor that holds the lock."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / 'lock', 'w') as file:
        if not try_lock(file):
            status = Status('waiting for another set-up, which is compiling mmcv')
            while not try_lock(file):
                time.sleep(1)
                status.update('')
            status.done('done')
        yield file.fileno()


def try_lock(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Some cluster file systems know no locks. Two clones may then compile at the same time, which costs time
        # only: store_wheel is atomic.
        pass
    return True


# -------------------------------------------------------------------------------------------------- the checks


def check_python(version=tuple(sys.version_info), executable=sys.executable):
    if tuple(version[:2]) != PYTHON:
        raise SetupError(
            f'{executable} is Python {".".join(map(str, version[:3]))}, but the pinned torch {pinned("torch")} '
            f'needs Python {PYTHON[0]}.{PYTHON[1]}; name one with: make setup PYTHON=/path/to/python3.11'
        )


def check_venv_module(find_spec=importlib.util.find_spec):
    # Debian ships python3 without ensurepip, and venv fails half-way without it.
    if not find_spec('venv') or not find_spec('ensurepip'):
        raise SetupError(
            f'{sys.executable} has no venv module, but set-up needs it to create .venv; '
            'install it (Debian: apt install python3-venv)'
        )


def check_compiler(which=shutil.which, include=None):
    compiler = os.environ.get('CXX') or 'c++'
    header = Path(include or sysconfig.get_paths()['include']) / 'Python.h'
    why = f'but mmcv {pinned("mmcv")} has to be compiled'
    instead = 'or take a prebuilt wheel with: make setup MMCV_FIND_LINKS=<address or folder>'
    if not which(compiler.split()[0]):
        raise SetupError(
            f'there is no C++ compiler ({compiler}), {why}; '
            f'install one (Debian: apt install build-essential) {instead}'
        )
    if not header.exists():
        raise SetupError(f'there is no {header}, {why}; install it (Debian: apt install python3-dev) {instead}')


def check_cuda_compiler(device, which=shutil.which):
    if device != 'cpu' and not os.environ.get('CUDA_HOME') and not which('nvcc'):
        raise SetupError(
            'torch sees a GPU but there is no CUDA compiler (nvcc), which mmcv needs for its GPU ops; '
            'install the CUDA toolkit that torch was built with, or take a prebuilt wheel with: '
            'make setup MMCV_FIND_LINKS=<address or folder>, '
            'or compile for the CPU alone with: CUDA_VISIBLE_DEVICES= make setup'
        )


def check_disk(free=None, present=None):
    """Check the space before gigabytes are downloaded; what an earlier run has installed counts."""
    free = shutil.disk_usage(ROOT).free if free is None else free
    present = folder_size(VENV) if present is None else present
    needed = max(DISK_GB * 1e9 - present, 0.5e9)
    if free < needed:
        raise SetupError(disk_full(free, needed))


def disk_full(free=None, needed=None):
    free = shutil.disk_usage(ROOT).free if free is None else free
    needed = DISK_GB * 1e9 if needed is None else needed
    return (
        f'{free / 1e9:.1f} GB are free under {ROOT}, but set-up needs about {needed / 1e9:.1f} GB there; free some '
        'space, or move the clone to a larger disk (PIP_NO_CACHE_DIR=1 keeps pip from storing 3 GB more in its cache)'
    )


def folder_size(folder):
    return sum(os.lstat(os.path.join(root, name)).st_size for root, _, names in os.walk(folder) for name in names)


# --------------------------------------------------------------------------------------------- running commands


class Status:
    """One line about a running step: rewritten in a terminal, repeated now and then elsewhere."""

    def __init__(self, what, every=30.0):
        self.what, self.stream, self.every = what, sys.stdout, every
        self.start = self.shown = time.monotonic()
        self.live = self.stream.isatty()
        self.say(f'{what} ...')

    def elapsed(self):
        minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
        return f'{minutes} min {seconds:02d} s'

    def say(self, text, end='\n'):
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            text, end = f'\r\033[K{text[:width]}', ''
        self.stream.write(text + end)
        self.stream.flush()

    def update(self, progress):
        if self.live or time.monotonic() - self.shown >= self.every:
            self.shown = time.monotonic()
            self.say(f'{self.what}: {self.elapsed()} {progress}'.rstrip())

    def done(self, how):
        self.say(f'{self.what}: {how} after {self.elapsed()}')
        if self.live:
            self.stream.write('\n')


def progress(text):
    """Read from the end of a log how far the step is: ninja's [17/77], or pip's last line."""
    counts = re.findall(r'\[\d+/\d+\]', text)
    if counts:
        return counts[-1]
    lines = re.findall(r'^\s*(Collecting \S+|Downloading \S+|Installing collected packages)', text, re.MULTILINE)
    return lines[-1] if lines else ''


def tail(path, begin, size=256 * 1024):
    """Read the end of a file, but nothing before the position `begin`."""
    with open(path, 'rb') as file:
        file.seek(max(begin, path.stat().st_size - size))
        return file.read().decode('utf-8', 'replace')


def why_failed(text, what):
    """Turn the end of a failed step's log into one sentence."""
    if re.search(r'No space left on device|Disk quota exceeded', text):
        return disk_full()
    if re.search(r'Killed signal terminated program|fatal error: Killed', text):
        return (
            'the compiler was killed, most likely because memory ran out; '
            'compile one file at a time with: make setup MAX_JOBS=1'
        )
    sys.stderr.write(''.join(f'    {line[:200]}\n' for line in text.splitlines()[-12:]))
    return f'{what} failed; see {LOG}, mend it (or begin anew: rm -rf .venv), and run the same command again'


def environment():
    """Return the environment for child processes: this machine's, without what would lead pip elsewhere."""
    # Without bytecode every later process would compile the hosts anew: the check at the end writes it.
    elsewhere = ('PYTHONPATH', 'PYTHONHOME', 'PYTHONDONTWRITEBYTECODE', 'PIP_TARGET', 'PIP_PREFIX', 'PIP_ROOT')
    env = {key: value for key, value in os.environ.items() if key not in elsewhere}
    SCRATCH.mkdir(exist_ok=True)
    env.update(
        PATH=f'{VENV / "bin"}{os.pathsep}{env.get("PATH", os.defpath)}',
        VIRTUAL_ENV=str(VENV),
        TMPDIR=str(SCRATCH),  # /tmp is often too small for the downloads
        LC_ALL='C.UTF-8',  # why_failed reads English
        PIP_USER='0',
        PIP_NO_INPUT='1',
        PIP_DISABLE_PIP_VERSION_CHECK='1',
    )
    return env


def run(what, command, cwd=ROOT, pass_fds=(), **variables):
    """Run a command with its output in the log and its status on one line."""
    status = Status(what)
    with open(LOG, 'ab') as log:
        begin = log.tell()
        child = subprocess.Popen(
            [str(word) for word in command],
            cwd=str(cwd),
            env={**environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=pass_fds,
            start_new_session=True,  # so that its children can be stopped with it
        )
    try:
        while child.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=1)
            status.update(progress(tail(LOG, begin)))
    except BaseException:
        stop(child)
        status.done('stopped')
        raise
    if child.returncode:
        status.done('failed')
        raise SetupError(why_failed(tail(LOG, begin), what))
    status.done('done')


def stop(child):
    """End a child and its children; ninja ends its compilers on SIGTERM."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, sig)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=10)
            return


# ---------------------------------------------------------------------------------------------------- the steps


def pip(*arguments):
    return [VENV / 'bin' / 'python', '-m', 'pip', *arguments]


def create_venv():
    python = VENV / 'bin' / 'python'
    library = VENV / 'lib' / f'python{PYTHON[0]}.{PYTHON[1]}'
    if VENV.exists() and not (python.exists() and library.exists()):
        print(f'replacing .venv, which is no working environment of Python {PYTHON[0]}.{PYTHON[1]}', flush=True)
        shutil.rmtree(str(VENV))
    VENV.mkdir(exist_ok=True)
    # Without --clear this keeps what is installed and renews the paths of a moved clone.
    run('creating .venv', [sys.executable, '-m', 'venv', VENV])


def install_requirements():
    files = [word for file in requirement_files() if file.stem != 'mmcv' for word in ('-r', file)]
    # --no-compile: Python compiles what is imported when it is, which is a small part of these packages.
    command = pip('install', '--no-deps', '--no-compile', '--only-binary', ':all:', *files)
    run('installing the pinned requirements', command)


def install_mmcv():
    torch, device = probe_torch()
    requirement, key = f'mmcv=={pinned("mmcv")}', wheel_key(torch, pinned('mmcv'), device)
    if MMCV_KEY.exists() and MMCV_KEY.read_text() == key:
        return
    # --force-reinstall: pip takes the same version, compiled for another torch, for the same.
    install = pip('install', '--no-deps', '--no-cache-dir', '--force-reinstall')
    links = os.environ.get('MMCV_FIND_LINKS')
    if links:
        run(
            f'installing {requirement} from {links}',
            [*install, '--only-binary', 'mmcv', '--find-links', links, requirement],
        )
    else:
        folder = wheel_cache() / key
        with locked(folder) as lock:
            wheel = cached_wheel(folder)
            if wheel is None:
                check_cuda_compiler(device)
                wheel = store_wheel(compile_mmcv(requirement, lock), folder)
        run(f'installing {requirement} from {folder}', [*install, wheel])
    MMCV_KEY.write_text(key)


def probe_torch():
    """Ask the installed torch for its full version, and for which device mmcv would be compiled."""
    answer = SCRATCH / 'probe'
    run('looking at torch', [VENV / 'bin' / 'python', '-c', PROBE, answer])
    return answer.read_text().split()


def compile_mmcv(requirement, lock):
    """Compile mmcv in a folder that survives an interruption, so that ninja goes on where it was stopped.

    pip would compile in a folder that it deletes, and would also hand out a wheel from its own cache that was
    compiled for another torch.
    """
    source = BUILD / requirement.replace('==', '-')
    if not source.exists():
        shutil.rmtree(str(BUILD), ignore_errors=True)
        download = pip('download', '--no-deps', '--no-cache-dir', '--no-build-isolation', '--no-binary', 'mmcv')
        run(f'downloading {requirement}', [*download, '--dest', BUILD, requirement])
        shutil.unpack_archive(str(next(BUILD.glob('*.tar.gz'))), str(BUILD / 'unpacked'))
        os.rename(str(BUILD / 'unpacked' / source.name), str(source))
    try:
        run(
            f'compiling {requirement} (once per machine)',
            [VENV / 'bin' / 'python', 'setup.py', 'bdist_wheel', '--dist-dir', BUILD / 'dist'],
            cwd=source,
            # Should this process be killed outright, the orphaned compile keeps the lock until it ends.
            pass_fds=(lock,),
            MMCV_WITH_OPS='1',
            MAX_JOBS=os.environ.get('MAX_JOBS') or str(default_jobs()),
        )
    except SetupError:
        shutil.rmtree(str(BUILD))  # interrupted: continue; failed: begin anew
        raise
    return next((BUILD / 'dist').glob('*.whl'))


def default_jobs():
    memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    return max(1, min(len(os.sched_getaffinity(0)), int(memory / 2e9)))


def set_up():
    if is_finished():
        return
    stamp = stamp_text()  # of the files as they are now: someone may pull while this runs
    check_python()
    check_venv_module()
    if will_compile():
        check_compiler()
    check_disk()
    create_venv()
    install_requirements()
    install_mmcv()
    run('installing ebv_mm', pip('install', '--no-deps', '--no-build-isolation', '--editable', ROOT))
    run('importing everything once', [VENV / 'bin' / 'python', '-c', CHECK])
    shutil.rmtree(str(BUILD), ignore_errors=True)
    shutil.rmtree(str(SCRATCH), ignore_errors=True)
    STAMP.write_text(stamp)
    print('.venv is ready', flush=True)


def interrupt(*_):
    raise KeyboardInterrupt


def main(argv=None):
    # It takes no arguments; this answers --help and refuses all else, before gigabytes are downloaded.
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, interrupt)
    try:
        set_up()
    except KeyboardInterrupt:
        sys.exit('interrupted; the same command continues from here')
    except SetupError as error:
        sys.exit(f'error: {error}')
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        sys.exit(f'error: {disk_full() if full else error}')


if __name__ == '__main__':
    main()
