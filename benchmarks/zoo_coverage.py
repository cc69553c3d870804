"""How much of the hosts' model zoos becomes EBV: every config converted as text, one model of each structure run.

    python benchmarks/zoo_coverage.py --out work_dirs/coverage.jsonl --table docs/coverage.md

What is in the file already is not done again.
"""

import argparse
import json
import logging
import math
import multiprocessing
import time
import traceback
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Dict, Iterator, List, Optional

import torch
from mmengine.config import Config

from ebv_mm.conversion import ConversionError
from ebv_mm.conversion.classifiers import HOSTS, bare
from ebv_mm.conversion.configs import converted, plan, read_config
from ebv_mm.conversion.trial import run_once
from ebv_mm.output import markdown_table

SECONDS = 900
INTRODUCTION = """# How much of the hosts' model zoos becomes EBV

Written by `python benchmarks/zoo_coverage.py --table docs/coverage.md`, which resumes.

Two shares are given. "Of all" divides by every config file that the host ships. "Of those" divides by the configs with
classes: it leaves out the refused ones in which there is nothing to convert, because they have no model, no head, no
labels, one output, a depth, or texts in place of a classifier. That definition was chosen after the refusals were seen.
The second table counts each kind, so that you can choose another.
"""
# Of the refusals, those of models that tell no fixed set of classes apart: no classifier could be converted.
NO_CLASSES = (
    'no model', 'embeddings of texts', 'without labels', 'one output', 'no head', 'depth', 'no classifier of its own',
    'a projection, not a classifier',
)  # fmt: skip


def zoo(host: str) -> List[Path]:
    """The config files that a host ships, without the parts that only others inherit."""
    folder = Path(find_spec(host).submodule_search_locations[0]) / '.mim' / 'configs'
    return sorted(path for path in folder.rglob('*.py') if '_base_' not in path.parts)


def as_text(host: str, path: Path) -> dict:
    """Convert one config without building anything."""
    record = dict(host=host, config=str(path).split('/.mim/configs/')[1])
    try:
        cfg = read_config(path)
        record['model'] = bare(cfg.model['type']) if cfg.get('model') else ''
        conversion = plan(cfg)
        converted(cfg, conversion)
        classifiers = conversion.found.classifiers
        record['heads'] = sorted({bare(classifier.head) for classifier in classifiers})
        kinds = (
            (c.path[-1] if isinstance(c.path[-1], str) else c.path[-2], bare(c.head), *c.layers, c.sigmoid)
            for c in classifiers
        )
        record['structure'] = ' '.join([host, record['model'], *sorted({'/'.join(map(str, kind)) for kind in kinds})])
        return dict(record, status='converted')
    except ConversionError as error:
        return dict(record, status='refused', reason=str(error))
    except Exception as error:
        return dict(record, status='failed', reason=f'{type(error).__name__}: {error}'[:300])


def trial(host: str, path: Path) -> dict:
    """Build the converted model of a config and train it for one step, in a process of its own."""
    context = multiprocessing.get_context('fork')
    receive, send = context.Pipe(False)
    process = context.Process(target=_try, args=(path, send))
    process.start()
    send.close()
    answer = dict(ran='failed', why=f'no answer within {SECONDS} s')
    try:
        if receive.poll(SECONDS):
            answer = receive.recv()
    except EOFError:
        answer = dict(ran='failed', why='the process died')
    process.kill()
    process.join()
    return answer


def _try(path: Path, send) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter('ignore')
    logging.disable(logging.CRITICAL)
    cfg = read_config(path)
    conversion = plan(cfg)
    answer = _attempt(cfg, converted(cfg, conversion), conversion.found.classifiers)
    if answer['ran'] == 'failed' and _attempt(cfg, cfg, [])['ran'] == 'failed':
        answer['ran'] = 'fails as FC too'
    send.send(answer)


def _attempt(cfg: Config, converted_cfg: Config, classifiers: list) -> dict:
    try:
        return run_once(cfg, converted_cfg, classifiers)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f'{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})'
        return dict(ran='failed', why=' '.join(why.split())[:400])


def measure(out: Path, hosts: List[str], limit: Optional[int], minutes: float = math.inf) -> List[dict]:
    """Do what the file does not hold yet, until the time is up."""
    end = time.time() + 60 * minutes
    out.parent.mkdir(parents=True, exist_ok=True)
    records = read(out)
    done = {(r['host'], r['config']) for r in records if 'status' in r}
    tried = {r['structure'] for r in records if 'ran' in r}
    with open(out, 'a') as file:

        def note(record: dict) -> None:
            records.append(record)
            file.write(json.dumps(record) + '\n')
            file.flush()

        for host in hosts:
            for path in zoo(host)[:limit]:
                if (host, str(path).split('/.mim/configs/')[1]) not in done and time.time() < end:
                    note(as_text(host, path))
        for structure, candidates in structures(records).items():
            if structure in tried or structure.split()[0] not in hosts or time.time() > end:
                continue
            start = time.time()
            for record in candidates[:3]:  # the next where one is too large
                path = next(p for p in zoo(record['host']) if str(p).endswith('/.mim/configs/' + record['config']))
                answer = trial(record['host'], path)
                if answer['ran'] != 'too large':
                    break
            note(dict(structure=structure, tried=record['config'], seconds=round(time.time() - start, 1), **answer))
    return records


def structures(records: List[dict]) -> Dict[str, List[dict]]:
    """The converted configs of each distinct structure, those of small models first."""
    found: Dict[str, List[dict]] = {}
    for record in records:
        if record.get('status') == 'converted':
            found.setdefault(record['structure'], []).append(record)
    return {key: sorted(group, key=lambda r: _size_hint(r['config'])) for key, group in found.items()}


def _size_hint(config: str) -> tuple:
    small = ('r18', 'tiny', '-t-', '_t_', 'r50', 'small', '-s-', '_s_', 'b0', 'l1')
    return next((rank for rank, mark in enumerate(small) if mark in config), len(small)), len(config)


def read(out: Path) -> List[dict]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def tables(records: List[dict]) -> str:
    """Markdown: by host, by reason, by head type, and what the trials gave."""
    text = [r for r in records if 'status' in r]
    runs = [r for r in records if 'ran' in r]
    parts = [INTRODUCTION, '## By host\n', markdown_table(list(_by_host(text))), '\n## Refused and failed, by reason\n']
    reasons = Counter((r['host'], r['status'], _short(r['reason'])) for r in text if r['status'] != 'converted')
    parts.append(
        markdown_table([dict(host=h, status=s, reason=why, configs=n) for (h, s, why), n in sorted(reasons.items())])
    )
    heads = Counter((r['host'], head) for r in text if r['status'] == 'converted' for head in r['heads'])
    parts += [
        '\n## Converted, by head type\n',
        markdown_table([dict(host=h, head=k, configs=n) for (h, k), n in sorted(heads.items())]),
    ]
    parts += [
        '\n## One model of each structure, built and trained for one step\n',
        markdown_table(list(_by_run(runs, structures(records)))),
    ]
    bad = [dict(structure=r['structure'], config=r['tried'], why=r.get('why')) for r in runs if r['ran'] != 'trained']
    if bad:
        parts += ['', markdown_table(bad)]
    return '\n'.join(parts) + '\n'


def _by_host(text: List[dict]) -> Iterator[dict]:
    for host in HOSTS:
        own = [r for r in text if r['host'] == host]
        count = Counter(r['status'] for r in own)
        classes = len(own) - sum(r['status'] == 'refused' and any(m in r['reason'] for m in NO_CLASSES) for r in own)
        yield {
            'host': host,
            'configs': len(own),
            'converted': count['converted'],
            'refused': count['refused'],
            'failed': count['failed'],
            'of all': f'{100 * count["converted"] / max(len(own), 1):.1f} %',
            'with classes': classes,
            'of those': f'{100 * count["converted"] / max(classes, 1):.1f} %',
        }


def _by_run(runs: List[dict], all_of_them: Dict[str, List[dict]]) -> Iterator[dict]:
    for host in HOSTS:
        own = [r for r in runs if r['structure'].startswith(f'{host} ')]
        count = Counter(r['ran'] for r in own)
        total = sum(key.startswith(f'{host} ') for key in all_of_them)
        kinds = ('trained', 'built', 'too large', 'fails as FC too', 'failed')
        yield {'host': host, 'structures': total, 'run': len(own), **{kind: count[kind] for kind in kinds}}


def _short(reason: str) -> str:
    """The reason without the names of the config."""
    if 'cannot be read' in reason:
        return 'its host cannot read it'
    if 'can become EBV' not in reason:
        return ' '.join(reason.split())[:140]
    inside = reason.split('(', 1)[1].rsplit(')', 1)[0].split('; ')[0]
    return 'no head' if inside.endswith('has no head') else inside.split(': ', 1)[-1]


def main(argv: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=Path, default=Path('work_dirs/coverage.jsonl'), help='results, one a line')
    parser.add_argument('--table', type=Path, help='Markdown file for the tables')
    parser.add_argument('--host', choices=HOSTS, action='append', help='only this host; may be repeated')
    parser.add_argument('--limit', type=int, help='only so many configs of each host')
    parser.add_argument('--minutes', type=float, default=math.inf, help='stop then, to go on another time')
    args = parser.parse_args(argv)
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    text = tables(measure(args.out, args.host or list(HOSTS), args.limit, args.minutes))
    if args.table:
        args.table.write_text(text)
    print(text)


if __name__ == '__main__':
    main()
