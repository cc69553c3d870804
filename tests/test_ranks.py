"""Bases that differ between ranks stop the training, on the rank that differs."""

import os

import torch
from torch import distributed, nn
from torch.multiprocessing import spawn
from torch.nn.parallel import DistributedDataParallel

from ebv_mm import EBVLinear
from ebv_mm.basis import BasisError, closed_form_basis


def dense(seed: int) -> EBVLinear:
    return EBVLinear(6, 20, basis=closed_form_basis(20, 8, seed=seed))


def structured(seed: int) -> EBVLinear:
    return EBVLinear(6, 20, basis=dict(num_classes=20, dim=8, structured=True, seed=seed))


def resumed(seed: int) -> EBVLinear:
    """Different files, but the checkpoint's basis wins on every rank."""
    layer = dense(seed)
    layer.load_state_dict(dense(5).state_dict())
    return layer


def ends_with(model: nn.Module) -> str:
    try:
        model(torch.ones(2, 6)).sum().backward()
    except BasisError as error:
        return str(error)
    return ''


def one_rank(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group('gloo', init_method=f'file://{folder}/store', rank=rank, world_size=2)
    told = {}
    for make in (dense, structured, resumed):
        for differs in (False, True):
            layer = make(rank if differs else 3)
            wrapped = DistributedDataParallel(layer)
            stops = differs and make is not resumed
            for step in range(2):
                # rank 0 would wait for the gradients of rank 1
                told[make.__name__, differs, step] = ends_with(layer if stops else wrapped)
            assert not [key for key in layer.state_dict() if 'seal' in key]
            distributed.barrier()
    torch.save(told, os.path.join(folder, f'told{rank}'))
    distributed.barrier()  # none leaves while the other still needs it
    # Without destructors: torch's joins gloo's thread while it holds the lock that this thread may be waiting for.
    os._exit(0)


def test_two_ranks(tmp_path):
    spawn(one_rank, (str(tmp_path),), nprocs=2)
    first, second = (torch.load(tmp_path / f'told{rank}') for rank in range(2))
    assert not any(first.values())
    for (make, differs, step), words in second.items():
        expected = 'of rank 1 has other vectors than that of rank 0; give all ranks the same file'
        assert (expected in words) == (differs and make != 'resumed'), (make, differs, step)


def test_one_process_has_no_seal():
    layer = EBVLinear(6, 20, basis=closed_form_basis(20, 8))
    assert layer.seal is None and [name for name, _ in layer.named_buffers()] == ['basis']
