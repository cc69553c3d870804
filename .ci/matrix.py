"""Run the suite in each environment that is given, and write down what passes: docs/machines.json and its table.

    python .ci/matrix.py .venv-classic/bin/python .venv-modern/bin/python
    python .ci/matrix.py /my/env/bin/python --args '-m both_stacks'

Each interpreter must have the hosts, pytest and what the tests need. An environment replaces its own earlier line, so
that runs on several machines add up to one table: copy docs/machines.json from one to the next.
"""

import argparse
import json
import platform
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / 'docs' / 'machines.json'
PAGE = ROOT / 'docs' / 'machines.md'
BEGIN, END = '<!-- table: written by .ci/matrix.py -->', '<!-- end of table -->'
COLUMNS = ('system', 'python', 'torch', 'hosts', 'tests', 'passed', 'skipped', 'failed', 'minutes', 'date')

DESCRIBE = """
import importlib.metadata, json, platform, torch
def version(*names):
    for name in names:
        try:
            return f'{name} {importlib.metadata.version(name)}'
        except importlib.metadata.PackageNotFoundError:
            pass
    return f'no {names[0]}'
hosts = [('mmcv', 'onedl-mmcv'), ('mmengine', 'onedl-mmengine'), ('mmpretrain', 'onedl-mmpretrain'),
         ('mmdet', 'onedl-mmdetection'), ('mmsegmentation', 'onedl-mmsegmentation')]
print(json.dumps(dict(python=platform.python_version(), torch=torch.__version__,
                      hosts=', '.join(version(*names) for names in hosts))))
"""


def describe(python):
    """Ask an interpreter what it is."""
    command = [python, '-W', 'ignore', '-c', DESCRIBE]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return dict(system=system(), **json.loads(answer.stdout.splitlines()[-1]))


def system():
    try:
        return platform.freedesktop_os_release()['PRETTY_NAME'].replace('GNU/Linux ', '')
    except OSError:
        return platform.system()


def run(python, arguments):
    """Run the suite; return what its report counts."""
    with tempfile.TemporaryDirectory() as folder:
        report, begin = Path(folder) / 'report.xml', time.monotonic()
        command = [python, '-m', 'pytest', '-q', f'--junitxml={report}', *arguments]
        code = subprocess.run(command, cwd=ROOT).returncode
        if code not in (0, 1):  # all passed, some failed
            raise SystemExit(f'{python} did not run the tests to their end; see what pytest says above')
        suite = xml.etree.ElementTree.parse(report).getroot().find('testsuite').attrib
    counts = {name: int(suite[name]) for name in ('tests', 'failures', 'errors', 'skipped')}
    failed = counts['failures'] + counts['errors']
    return dict(
        tests=shlex.join(arguments) or 'whole suite',
        passed=counts['tests'] - failed - counts['skipped'],
        skipped=counts['skipped'],
        failed=failed,
        minutes=round((time.monotonic() - begin) / 60, 1),
        date=date.today().isoformat(),
    )


def table(rows):
    lines = ['| ' + ' | '.join(COLUMNS) + ' |', '|' + '---|' * len(COLUMNS)]
    lines += ['| ' + ' | '.join(str(row[name]) for name in COLUMNS) + ' |' for row in rows]
    return '\n'.join(lines)


def write(rows):
    RESULTS.write_text(json.dumps(rows, indent=1) + '\n')
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f'{before}{BEGIN}\n{table(rows)}\n{END}{rest.split(END)[1]}')


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('pythons', nargs='*', metavar='PYTHON', help='interpreter of an environment')
    parser.add_argument('--args', default='', help='arguments for pytest (default: the whole suite)')
    args = parser.parse_args(argv)
    failed = 0
    for python in args.pythons:
        # The environment's own path, not what it links to: a virtual environment is known by it.
        row = {**describe(str(Path(python).absolute())), **run(str(Path(python).absolute()), shlex.split(args.args))}
        known = ('system', 'python', 'torch', 'hosts', 'tests')
        rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
        rows = [each for each in rows if any(each[name] != row[name] for name in known)] + [row]
        write(sorted(rows, key=lambda each: [each[name] for name in known[1:]]))
        failed += row['failed']
    if not args.pythons:
        write(json.loads(RESULTS.read_text()))
    sys.exit(bool(failed))


if __name__ == '__main__':
    main()
