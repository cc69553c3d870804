"""Training steps of several processes over gloo: what each of them sends, and how long a step takes."""

import os
import statistics
import time
from datetime import timedelta
from typing import Dict, List, NamedTuple, Optional

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ebv_mm import EBVLinear, make_basis

from .steps import all_logits, streamed


class Size(NamedTuple):
    """N classes, so many features, processes, images for each of them a step, and steps."""

    num_classes: int
    features: int
    processes: int
    batch: int
    steps: int


def rows(size: Size, dims: List[int], port: int) -> List[dict]:
    """One row for FC and one for each d of EBV."""
    queue = torch.multiprocessing.get_context('spawn').SimpleQueue()
    torch.multiprocessing.start_processes(_run, (size, dims, port, queue), nprocs=size.processes, start_method='spawn')
    return [queue.get() for _ in range(1 + len(dims))]


def _run(rank: int, size: Size, dims: List[int], port: int, queue) -> None:
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    dist.init_process_group('gloo', rank=rank, world_size=size.processes, timeout=timedelta(minutes=10))
    torch.set_num_threads(1)
    for dim in (None, *dims):
        row = _train(rank, size, dim)
        if rank == 0:
            queue.put(row)
    dist.barrier()  # none leaves while another still needs it
    # Without destructors: torch's joins gloo's thread while it holds the lock that this thread may be waiting for.
    os._exit(0)


def _train(rank: int, size: Size, dim: Optional[int]) -> Dict[str, object]:
    torch.manual_seed(0)
    if dim is None:
        layer, loss = nn.Linear(size.features, size.num_classes), all_logits
    else:
        basis = make_basis(size.num_classes, dim, method='kerdock', structured=True)
        layer, loss = EBVLinear(size.features, size.num_classes, basis=basis), streamed
    model = DistributedDataParallel(_Loss(layer, loss), broadcast_buffers=False)
    # DDP sends the gradient of each parameter once a step; the basis has none, and buffers are not sent
    sent = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(1)
    own = slice(rank * size.batch, (rank + 1) * size.batch)
    x = torch.randn(size.processes * size.batch, size.features, generator=generator)[own]
    target = torch.randint(size.num_classes, (size.processes * size.batch,), generator=generator)[own]
    times = []
    for _ in range(size.steps + 1):
        dist.barrier()
        start = time.perf_counter()
        optimizer.zero_grad()
        value = model(x, target)
        value.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    mean = value.detach().clone()
    dist.all_reduce(mean)
    return {
        'head': 'FC' if dim is None else f'EBV, d = {dim}',
        'processes': size.processes,
        'N': f'{size.num_classes:,}',
        'gradients a step': f'{sent / 1e6:,.1f} MB',
        'step': f'{statistics.median(times[1:]):.2f} s',
        'loss': f'{float(mean) / size.processes:.4f}',
    }


class _Loss(nn.Module):
    """A layer with its loss, so that DDP sees one forward pass."""

    def __init__(self, layer: nn.Module, loss) -> None:
        super().__init__()
        self.layer, self.loss = layer, loss

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.loss(self.layer, x, target)
