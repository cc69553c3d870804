"""Layers, losses and heads on the device of the fixture, and what only a GPU shows: `make test-gpu`."""

import copy
import os
import socket

import pytest
import torch
from cases import CASES, CLASSES
from torch import nn
from torch.nn import functional

from ebv_mm import EBVConv2d, EBVLinear, basis_cross_entropy, basis_topk, make_basis

pytestmark = pytest.mark.both_stacks
TWO_GPUS = pytest.mark.skipif(torch.cuda.device_count() < 2, reason='there are no two GPUs')


def moved(inputs, device):
    if isinstance(inputs, (list, tuple)):
        return type(inputs)(moved(each, device) for each in inputs)
    return inputs.to(device)


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)
def test_logits_and_gradients_are_those_of_the_cpu(case, device, basis_file):
    reference = case.build(basis_file(case.rows, 9)).eval()
    module = copy.deepcopy(reference).to(device)
    assert case.layer(module).basis.device.type == device.type
    inputs, results = case.inputs(2), []
    for each, where in ((reference, 'cpu'), (module, device)):
        outputs = each(moved(inputs, where))
        (outputs[0] if isinstance(outputs, tuple) else outputs).square().mean().backward()
        logits = (outputs[0] if isinstance(outputs, tuple) else outputs).detach().cpu()
        results.append((logits, case.layer(each).weight.grad.cpu()))
    for expected, found in zip(*results):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize('structured', [False, True])
def test_streamed_losses_are_those_of_the_cpu(device, structured):
    basis = make_basis(256, 16, structured=structured)
    v, target = torch.randn(8, 16), torch.randint(256, (8,))
    expected = functional.cross_entropy(functional.normalize(v) @ basis.vectors.T.float() / 0.07, target)
    torch.testing.assert_close(basis_cross_entropy(v.to(device), target.to(device), basis).cpu(), expected)
    scores, classes = basis_topk(v.to(device), 3, basis)
    assert scores.device.type == device.type and classes.shape == (8, 3)


def classifier(device):
    basis = dict(num_classes=CLASSES, dim=6)
    convolution = EBVConv2d(8, CLASSES, 1, basis=basis)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), convolution).to(device)


def test_mixed_precision_with_a_scaler_trains(device):
    model, x = classifier(device), torch.randn(4, 3, 6, 6, device=device)
    target = torch.randint(CLASSES, (4, 4, 4), device=device)
    basis = model[3].basis.clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.cuda.amp.GradScaler(enabled=device.type == 'cuda', init_scale=2.0**10)
    losses = []
    for _ in range(20):
        with torch.autocast(device.type, torch.float16 if device.type == 'cuda' else torch.bfloat16):
            logits = model(x)
            assert logits.dtype == torch.float32
            loss = functional.cross_entropy(logits, target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert torch.equal(model[3].basis, basis)


def test_channels_last_gives_the_same_logits(device):
    model, x = classifier(device).eval(), torch.randn(4, 3, 6, 6, device=device)
    expected = model(x)
    found = copy.deepcopy(model).to(memory_format=torch.channels_last)(x.to(memory_format=torch.channels_last))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('backend', ['gloo', pytest.param('nccl', marks=[pytest.mark.gpu, TWO_GPUS])])
def test_two_processes_have_the_gradients_of_one(backend, tmp_path):
    """Each process sees half of the batch; processes are spawned, as Python 3.14 no longer forks by itself."""
    torch.multiprocessing.spawn(_rank, args=(backend, free_port(), str(tmp_path), False), nprocs=2)
    model, x, target = _problem()
    functional.cross_entropy(model(x), target).backward()
    for rank in range(2):
        found = torch.load(tmp_path / f'{rank}.pt')
        torch.testing.assert_close(found['gradient'], model[2].weight.grad, rtol=1e-4, atol=1e-5)
        assert torch.equal(found['basis'], model[2].basis)


@pytest.mark.gpu
@TWO_GPUS
def test_sync_bn_on_two_gpus_has_the_gradients_of_one_process(tmp_path):
    torch.multiprocessing.spawn(_rank, args=('nccl', free_port(), str(tmp_path), True), nprocs=2)
    model, x, target = _problem(batch_norm=True)
    functional.cross_entropy(model(x), target).backward()
    for rank in range(2):
        found = torch.load(tmp_path / f'{rank}.pt')
        torch.testing.assert_close(found['gradient'], model[2].weight.grad, rtol=1e-3, atol=1e-4)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def _problem(batch_norm=False):
    torch.manual_seed(0)
    middle = nn.BatchNorm1d(6) if batch_norm else nn.ReLU()
    model = nn.Sequential(nn.Linear(5, 6), middle, EBVLinear(6, CLASSES, basis=dict(num_classes=CLASSES, dim=4)))
    return model, torch.randn(8, 5), torch.randint(CLASSES, (8,))


def _rank(rank, backend, port, folder, batch_norm):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    torch.distributed.init_process_group(backend, rank=rank, world_size=2)
    device = torch.device('cuda', rank) if backend == 'nccl' else torch.device('cpu')
    model, x, target = _problem(batch_norm)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model) if batch_norm else model
    wrapped = nn.parallel.DistributedDataParallel(model.to(device))
    half = slice(4 * rank, 4 * rank + 4)
    functional.cross_entropy(wrapped(x[half].to(device)), target[half].to(device)).backward()
    result = dict(gradient=model[2].weight.grad.cpu(), basis=model[2].basis.cpu())
    torch.save(result, os.path.join(folder, f'{rank}.pt'))
    torch.distributed.barrier()  # none leaves while the other still needs it
    # Without destructors: torch's joins gloo's thread while it holds the lock that this thread may be waiting for.
    os._exit(0)
