"""mmcv, which the package index has as source only: from the cache, prebuilt from its project, or compiled.

Compiling its C++ ops takes many minutes. A compiled wheel is therefore kept outside the clone, in
`$XDG_CACHE_HOME/ebv_mm/wheels` (default `~/.cache`), for every later clone.
"""

import fnmatch
import os
import platform
import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

from environment import FailedError, say
from machine_checks import check_cuda_compiler

# The same rule as in mmcv's setup.py decides whether its CUDA ops are compiled.
PROBE = """
import os, torch
if torch.cuda.is_available():
    device = 'sm%d%d' % torch.cuda.get_device_capability()
else:
    device = 'cuda' if os.getenv('FORCE_CUDA') == '1' else 'cpu'
print(torch.__version__, device)
"""
CHECK_OPS = """
import torch
from mmcv.ops import nms
nms(torch.tensor([[0., 0., 1., 1.]]), torch.ones(1), 0.5)
"""


def installed_key(env):
    """The file that says which mmcv is installed, as `wheel_key` names it."""
    return env.folder / 'mmcv.key'


def install_mmcv(env):
    requirement = env.pin(env.stack.mmcv)
    torch, device = env.run(env.python, '-c', PROBE, capture=True).split()
    key = wheel_key(requirement, torch, device)
    if installed_key(env).exists() and installed_key(env).read_text() == key:
        return
    links, folder = os.environ.get('MMCV_FIND_LINKS'), wheel_cache() / key
    if links:
        unfit = f'there must be a wheel of it with compiled ops, built for torch {torch} and this Python'
        with env.step(f'installing {requirement} from {links}', f'{unfit}: name another place, or none to compile it'):
            install_prebuilt(env, requirement, links)
    elif cached_wheel(folder) is not None or not try_prebuilt(env, requirement):
        if cached_wheel(folder) is None:
            check_cuda_compiler(device)
            store_wheel(compile_mmcv(env, requirement), folder)
        with env.step(f'installing {requirement} from {folder}'):
            install(env, cached_wheel(folder))
    installed_key(env).write_text(key)


def install(env, *arguments):
    # --force-reinstall: pip takes the same version, compiled for another torch, for the same.
    env.pip('install', '--quiet', '--no-deps', '--no-cache-dir', '--force-reinstall', *arguments)


def install_prebuilt(env, requirement, links):
    where = ('--no-index', f'--find-links={links}', '--only-binary=:all:')
    install(env, '--timeout=10', '--retries=0', *where, requirement)
    env.run(env.python, '-W', 'ignore', '-c', CHECK_OPS)


def try_prebuilt(env, requirement):
    """Install what the project of mmcv has published for this torch, if its server answers and the wheel works."""
    say(f'asking {env.stack.prebuilt} for a prebuilt {requirement}, for ten seconds')
    try:
        install_prebuilt(env, requirement, env.stack.prebuilt)
    except FailedError:
        say('it has none that works here')
        return False
    return True


def compile_mmcv(env, requirement):
    """Compile mmcv in a folder that survives an interruption, so that ninja goes on where it was stopped.

    pip would compile in a folder that it deletes, and would also hand out a wheel from its own cache that was
    compiled for another torch. The folder `compiler` makes a file three to four times as fast: each of 77 includes
    torch's headers, and parsing them is most of the work (roi_align.cpp: 8.8 s of CPU time without, 2.8 s with; the
    same object).
    """
    source = env.scratch / requirement
    if not source.exists():
        with env.step(f'downloading {requirement}'):
            options = ('--no-deps', '--no-cache-dir', '--no-build-isolation', f'--no-binary={env.stack.mmcv}')
            env.pip('download', '--quiet', *options, '--dest', env.scratch, requirement)
        shutil.rmtree(str(env.scratch / 'unpacked'), ignore_errors=True)
        shutil.unpack_archive(str(next(env.scratch.glob('*mmcv-*.tar.gz'))), str(env.scratch / 'unpacked'))
        next((env.scratch / 'unpacked').iterdir()).rename(source)
    killed = 'should the compiler have been killed, memory ran out: add MAX_JOBS=1'
    with env.step(f'compiling {requirement}, once per machine: about five minutes of two cores', killed):
        env.run(
            env.python, 'setup.py', '--quiet', 'bdist_wheel', '--dist-dir', env.scratch / 'dist',
            cwd=source,
            path=[Path(__file__).resolve().parent / 'compiler'],
            PRECOMPILED_HEADERS=str(env.scratch / 'headers'),
            # No debug information, which takes time and space, and no warnings. Not in CFLAGS, for which newer
            # setuptools drop Python's own flags, -O2 among them.
            CPPFLAGS=f'{os.environ.get("CPPFLAGS", "")} -g0 -w'.strip(),
            MMCV_WITH_OPS='1',
            MAX_JOBS=os.environ.get('MAX_JOBS') or str(default_jobs()),
        )  # fmt: skip
    return next((env.scratch / 'dist').glob('*.whl'))


def default_jobs():
    memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    return max(1, min(len(os.sched_getaffinity(0)), int(memory / 2e9)))


def will_compile(env):
    """Tell, before torch is there to be asked, whether mmcv is neither installed nor cached nor named."""
    key = wheel_key(env.pin(env.stack.mmcv), env.pin('torch').partition('==')[2] + '*', '*')
    installed = installed_key(env).exists() and fnmatch.fnmatchcase(installed_key(env).read_text(), key)
    return not (installed or list(wheel_cache().glob(f'{key}/*.whl')) or os.environ.get('MMCV_FIND_LINKS'))


def wheel_cache():
    base = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return Path(base) / 'ebv_mm' / 'wheels'


def wheel_key(requirement, torch, device):
    """Name the cache folder of an mmcv wheel after everything that its binary depends on."""
    python = 'cp{}{}'.format(*sys.version_info)
    machine = sysconfig.get_platform().replace('-', '_')
    libc = ''.join(platform.libc_ver()) or 'libc'
    return f'{requirement.replace("==", "")}-torch{torch}-{python}-{machine}-{libc}-{device}'


def cached_wheel(folder):
    """Return the whole wheel in a cache folder, or None."""
    wheels = [path for path in sorted(folder.glob('*.whl')) if zipfile.is_zipfile(str(path))]
    return wheels[-1] if wheels else None


def store_wheel(wheel, folder):
    """Copy a wheel into its cache folder; whoever looks there finds the whole file or none."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f'{wheel.name}.{os.getpid()}.partial'
    try:
        shutil.copyfile(str(wheel), str(partial))
        os.replace(str(partial), str(folder / wheel.name))
    finally:
        if partial.exists():
            partial.unlink()
    return folder / wheel.name
