"""What benchmarks/comparison.py measures while the host trains: a curve over time, the parts of a step, memory."""

import json
import math
import statistics
import time
from pathlib import Path
from typing import Optional

import torch
from comparison_outcome import nearest_means, unknown_scores
from costs.measure import machine, memory
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from torch import Tensor, nn

from ebv_mm.output import whole_file

FILE = 'measured.json'
KEY = 'comparison'
CLOCKS = {'cpu': time.process_time, 'wall': time.perf_counter}
PARTS = ('data', 'backbone', 'head', 'optimizer')
WARM_UP = 3  # steps of each start that are not counted among the parts


@HOOKS.register_module()
class MeasureHook(Hook):
    """Measures a classifier's training, and writes ``measured.json`` into the work dir at its end.

    A step has four parts: reading the batch, the backbone (forward and backward), all behind it, neck and head, and the
    optimizer. Validations and checkpoints do not count. All of it is kept in the checkpoints, so a training that was
    cut off goes on measuring.

    Args:
        clock: 'cpu', the seconds of the process, so that other jobs do not count; 'wall' where nothing else runs.
        unknown: So many characters that nobody was trained on, tested for whether they are told from the known;
            0: none.
        skip: Where they begin.
        means: Classify by the nearest class mean at the end, among the classes of ``test_dataloader``.
        also_means: The same beside the classifier, whose time it is not.
    """

    priority = 'LOWEST'  # after the checkpoint, whose time does not count

    def __init__(
        self, clock: str = 'cpu', unknown: int = 0, skip: int = 0, means: bool = False, also_means: bool = False
    ) -> None:
        self.now, self.clock = CLOCKS[clock], clock
        self.unknown, self.skip, self.means, self.also_means = unknown, skip, means, also_means
        self._handles = []

    # -- a training and its checkpoints

    def before_train(self, runner) -> None:
        fresh = dict(seconds=0.0, curve=[], counted=0, parts=dict.fromkeys(PARTS, 0.0), losses=[])
        hub = runner.message_hub
        self.state = hub.get_info(KEY) if KEY in hub.runtime_info else fresh
        hub.update_info(KEY, self.state)  # by reference: a checkpoint finds it as it is then
        self.images = len(runner.train_dataloader.dataset)
        self.batch = runner.train_dataloader.batch_size
        self._steps = 0
        optimizer = runner.optim_wrapper.optimizer
        self._handles = [
            runner.model.backbone.register_forward_hook(self._features),
            optimizer.register_step_pre_hook(lambda *_: self._mark('optimizer begins')),
            optimizer.register_step_post_hook(lambda *_: self._step()),
        ]
        loop = runner.train_loop
        due = runner.iter and (runner.iter % loop.val_interval == 0 or runner.iter == loop.max_iters)
        if due and runner.val_loop is not None and runner.iter not in [p['iteration'] for p in self.state['curve']]:
            runner.val_loop.run()  # it was cut off between the checkpoint and the end of this validation
        self._begin()

    def _begin(self) -> None:
        self._marks = {'begin': self.now()}

    def _mark(self, name: str) -> None:
        self._marks[name] = self.now()

    def before_train_iter(self, runner, batch_idx: int, data_batch=None) -> None:
        if self._steps == 0:
            self._begin()  # a resumed training has read again what it had seen
        self._mark('data read')

    def _features(self, module: nn.Module, inputs: tuple, outputs: tuple) -> None:
        if module.training:
            self._mark('head begins')
            outputs[-1].register_hook(self._gradient)

    def _gradient(self, gradient: Tensor) -> None:
        self._mark('head ends')

    def _step(self) -> None:
        at, end = self._marks, self.now()
        self._steps += 1
        self.state['seconds'] += end - at['begin']
        if self._steps == WARM_UP:
            self._remember_memory()
        if self._steps > WARM_UP:
            head, optimizer = at['head ends'] - at['head begins'], end - at['optimizer begins']
            backbone = at['optimizer begins'] - at['data read'] - head
            for part, seconds in zip(PARTS, (at['data read'] - at['begin'], backbone, head, optimizer)):
                self.state['parts'][part] += seconds
            self.state['counted'] += 1

    def after_train_iter(self, runner, batch_idx: int, data_batch=None, outputs: Optional[dict] = None) -> None:
        self.state['losses'] = [*self.state['losses'][-49:], outputs['loss'].item()]
        self._begin()

    # -- the curve

    def after_val_epoch(self, runner, metrics: Optional[dict] = None) -> None:
        self._point(runner, metrics['accuracy/top1'], metrics['accuracy/top5'])

    def after_val(self, runner) -> None:
        self._begin()

    def _point(self, runner, top1: float, top5: float) -> None:
        loss = statistics.mean(self.state['losses'])
        self.state['curve'].append(
            dict(
                iteration=runner.iter,
                epoch=round(runner.iter * self.batch / self.images, 3),
                seconds=round(self.state['seconds'], 2),
                loss=round(loss, 4) if math.isfinite(loss) else None,
                top1=round(top1, 2),
                top5=round(top5, 2),
            )
        )

    def _remember_memory(self) -> None:
        """The peak of the process before the first checkpoint, which the host makes in memory; without mapped files."""
        self.state.setdefault('memory', round(memory('VmHWM') - memory('RssFile')))

    # -- the end

    def after_train(self, runner) -> None:
        for handle in self._handles:
            handle.remove()
        self._remember_memory()
        outcome = {}
        if self.means:
            seconds, top1, top5, scores = nearest_means(runner, self.now)
            self.state['seconds'] += seconds
            self._point(runner, top1, top5)
            outcome = scores(self.unknown, self.skip) if self.unknown else {}
        elif self.unknown:
            outcome = unknown_scores(runner, self.unknown, self.skip)
        by_means = None
        if self.also_means:
            seconds, top1, top5, _ = nearest_means(runner, self.now)
            by_means = dict(seconds=round(seconds, 1), top1=round(top1, 2), top5=round(top5, 2))
        state, counted = self.state, max(1, self.state['counted'])
        last = Path(runner.work_dir) / 'last_checkpoint'
        measured = dict(
            clock=self.clock,
            machine=machine(torch.device('cpu')),
            train_images=self.images,
            batch=self.batch,
            iterations=runner.iter,
            seconds=round(state['seconds'], 1),
            parts={part: round(state['parts'][part] / counted, 5) for part in PARTS},
            memory=state['memory'],
            parameters=parameters(runner.model),
            checkpoint=round(Path(last.read_text().strip()).stat().st_size / 1e6, 1) if last.exists() else None,
            curve=state['curve'],
            unknown=outcome,
            by_means=by_means,
        )
        with whole_file(Path(runner.work_dir) / FILE) as part:
            part.write_text(json.dumps(measured) + '\n')


def parameters(model: nn.Module) -> dict:
    """How many numbers are trained in the backbone and behind it; a sample of the classes is not counted twice."""
    counts = dict(backbone=0, head=0)
    for name, parameter in model.named_parameters():
        if not name.startswith('head.sampled.'):
            counts['backbone' if name.startswith('backbone.') else 'head'] += parameter.numel()
    return counts
