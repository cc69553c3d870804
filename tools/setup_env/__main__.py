"""Create or complete a virtual environment of the clone: what `make setup`, `make demo` and `make test` do first.

    python3 tools/setup_env classic   OpenMMLab's own last releases (Python 3.10, 3.11)
    python3 tools/setup_env modern    their maintained forks with a current torch (Python 3.11 to 3.14)

A stack is a pinned list of everything, `requirements/<stack>.txt`, and lives in `.venv-<stack>`; `.venv` is a link to
the one that was used last. Steps: check the machine, install what is pinned, install mmcv, install ebv_mm, import it
all, stamp. Every step can be repeated, so an interrupted set-up is simply run again; a stamped one returns at once.

Environment variables:
    MMCV_FIND_LINKS  address or folder of prebuilt mmcv wheels: install from there, compile nothing.
    MAX_JOBS         how many files to compile at once (default: one per core, and per 2 GB of memory).

It runs under the bare system Python: standard library only.
"""

import argparse
import errno
import os
import shutil
import signal
import sys

import machine_checks
from environment import STACKS, Environment, SetupError, dotted, say
from mmcv_wheel import CHECK_OPS, install_mmcv, will_compile

CHECK_HOSTS = """
import cv2, ebv_mm, mmdet.utils, mmpretrain.utils, mmseg.utils
for host in (mmdet, mmpretrain, mmseg):
    host.utils.register_all_modules(init_default_scope=False)
"""


def create(env):
    version = dotted(sys.version_info[:2])
    old = env.root / '.venv'
    if env.name == 'classic' and old.is_dir() and not old.is_symlink() and not env.folder.exists():
        old.rename(env.folder)  # where ebv_mm 0.1 had it; its paths are renewed like those of a moved clone
    if env.folder.exists() and not (env.python.exists() and (env.folder / 'lib' / f'python{version}').exists()):
        say(f'replacing {env.folder.name}, which is no working environment of Python {version}')
        shutil.rmtree(str(env.folder))
    env.folder.mkdir(exist_ok=True)
    with env.step(f'creating {env.folder.name} with Python {dotted(sys.version_info[:3])}'):
        # Without --clear this keeps what is installed and renews the paths of a moved clone.
        env.run(sys.executable, '-m', 'venv', env.folder)
    renew_scripts(env)


def renew_scripts(env):
    """Let the scripts of a moved clone, pip and pytest among them, call the Python where it is now."""
    _, _, before = env.stamp.read_text().strip().rpartition(' python') if env.stamp.exists() else ('', '', '')
    before = before.partition(' ')[2]
    if before and before != str(env.folder):
        for script in (env.folder / 'bin').iterdir():
            if not script.is_symlink() and script.read_bytes().startswith(b'#!'):
                script.write_bytes(script.read_bytes().replace(before.encode(), str(env.folder).encode()))


def install_requirements(env):
    pins = env.pins()
    pins.pop(env.stack.mmcv)
    wanted = env.scratch / 'requirements.txt'
    wanted.write_text('\n'.join(pins.values()))
    remedy = 'mend what pip says above (where it found no connection: the network, or the proxy of `pip config list`)'
    with env.step(f'installing what {env.requirements.relative_to(env.root)} pins', remedy):
        env.pip('install', '--quiet', *(env.pin(name) for name in ('pip', 'setuptools', 'wheel')))
        # The forks are published as source only; without isolation they are built with the pinned setuptools.
        # --no-compile: Python compiles what is imported when it is, which is a small part of these packages.
        env.pip('install', '--no-deps', '--no-compile', '--no-build-isolation', '-r', wanted)


def install_ebv_mm(env):
    with env.step('installing ebv_mm'):
        env.pip('install', '--quiet', '--no-deps', '--no-build-isolation', '--editable', env.root)
    with env.step('importing everything once', f'a package is broken: rm -rf {env.folder.name}'):
        env.run(env.python, '-W', 'ignore', '-c', CHECK_OPS + CHECK_HOSTS)


def point_venv_to(env):
    """Make `.venv` a link to the environment, so that `.venv/bin/python` is what was used last."""
    link = env.root / '.venv'
    if not link.is_symlink() or os.readlink(str(link)) != env.folder.name:
        new = env.root / f'.venv.{os.getpid()}'
        new.symlink_to(env.folder.name)
        os.replace(str(new), str(link))


def set_up(env):
    if not env.is_finished():
        stamp = env.stamp_text()  # of the files as they are now: someone may pull while this runs
        machine_checks.check_python(env)
        machine_checks.check_venv_module()
        if will_compile(env):
            machine_checks.check_compiler(env)
        machine_checks.check_disk(env)
        create(env)
        install_requirements(env)
        install_mmcv(env)
        install_ebv_mm(env)
        env.finish(stamp)
    point_venv_to(env)


def interrupt(*_):
    raise KeyboardInterrupt


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog='setup_env', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('stack', choices=STACKS)
    env = Environment(parser.parse_args(argv).stack)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, interrupt)
    try:
        set_up(env)
    except KeyboardInterrupt:
        sys.exit('interrupted; the same command continues from here')
    except SetupError as error:
        sys.exit(f'error: {error}')
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        sys.exit(f'error: {f"the disk under {env.root} is full; free some space" if full else error}')


if __name__ == '__main__':
    main()
