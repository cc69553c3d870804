"""Importing ebv_mm registers every name and no host; a missing host is said by name. Each in a fresh process."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.both_stacks

# and where to get them: OpenMMLab's own releases
HOSTS = {'mmpretrain': 'mmpretrain', 'mmdet': 'mmdet', 'mmseg': 'mmsegmentation'}
HEADS = {'EBVClsHead': 'mmpretrain', 'EBVBBoxHead': 'mmdet', 'EBVMaskHead': 'mmdet', 'EBVDecodeHead': 'mmseg'}

BLOCK = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in BLOCKED:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)

BLOCKED = %r
sys.meta_path.insert(0, Block())
"""


def python(code: str, blocked=()) -> str:
    """Run code in a new interpreter in which some packages cannot be imported; return what it prints."""
    script = BLOCK % (tuple(blocked),) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_works_without_any_host_and_registers_everything():
    printed = python(
        """
        import ebv_mm
        from ebv_mm import *
        from mmengine.registry import MODELS
        print(all(MODELS.get(name) for name in ('EBVLinear', 'EBVConv2d', *ebv_mm.lazy.LAZY)))
        print(set(ebv_mm.lazy.LAZY) <= set(dir(ebv_mm)))
        """,
        blocked=[*HOSTS, 'mmcv'],
    )
    assert printed.split() == ['True', 'True']


def test_the_basis_room_needs_torch_alone():
    printed = python(
        """
        import importlib.util, sys, types
        # the room without the house: the package's own __init__ imports mmengine
        package = types.ModuleType('ebv_mm')
        package.__path__ = list(importlib.util.find_spec('ebv_mm').submodule_search_locations)
        sys.modules['ebv_mm'] = package
        from ebv_mm.basis import make_basis
        print(make_basis(3, 4).coherence < 1e-6)
        """,
        blocked=[*HOSTS, 'mmcv', 'mmengine'],
    )
    assert printed == 'True'


@pytest.mark.parametrize('host', HOSTS)
def test_a_head_imports_its_own_host_only(host):
    heads = [head for head in HEADS if HEADS[head] == host]
    others = [other for other in HOSTS if other != host]
    # mmseg imports mmdet for Mask2Former where it can, and does without it where it cannot
    printed = python(
        f"""
        import sys
        from ebv_mm import {', '.join(heads)}
        print([head.__name__ for head in [{', '.join(heads)}]] == {heads})
        print({host!r} in sys.modules, any(other in sys.modules for other in {others}))
        """,
        blocked=others,
    )
    # the forks of the hosts say on the way which of their own extras they miss
    assert printed.split()[-3:] == ['True', 'True', 'False']


def test_a_missing_host_is_named_with_the_remedy():
    printed = python(
        f"""
        from mmengine.registry import MODELS
        import ebv_mm
        for head in {list(HEADS)}:
            for ask in (lambda: getattr(ebv_mm, head), lambda: MODELS.build(dict(type=head))):
                try:
                    ask()
                except ImportError as error:
                    print(error)
        """,
        blocked=HOSTS,
    )
    lines = printed.splitlines()
    assert len(lines) == 2 * len(HEADS)
    for line, head in zip(lines, (head for head in HEADS for _ in range(2))):
        host = HEADS[head]
        assert line.startswith(f'{head} needs {host}') and f'pip install {HOSTS[host]} ' in line


def test_an_unknown_name_is_an_attribute_error():
    import ebv_mm

    with pytest.raises(AttributeError, match="'ebv_mm' has no attribute 'EBVNeck'"):
        ebv_mm.EBVNeck  # noqa: B018
