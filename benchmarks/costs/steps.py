"""The steps that are compared: each does its work and returns the loss."""

from typing import Callable, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from ebv_mm import EBVLinear, basis_cross_entropy, make_basis

from .measure import Step

FEATURES = 2048
# where the steps compute; large_n.py sets it
device = torch.device('cpu')


def backward(loss: Tensor) -> Tensor:
    loss.backward()
    return loss.detach()


def problem(num_classes: int, dim: int, batch: int) -> tuple:
    v = torch.randn(batch, dim, device=device, requires_grad=True)
    return v, torch.randint(num_classes, (batch,), device=device)


def unit_rows(num_classes: int, dim: int) -> Tensor:
    rows = torch.randn(num_classes, dim, device=device)
    return rows.div_(rows.norm(dim=1, keepdim=True))


def dense_loss(num_classes: int, dim: int, batch: int) -> Step:
    """Logits of a matrix, then F.cross_entropy; backward to the embeddings."""
    vectors = unit_rows(num_classes, dim)
    v, target = problem(num_classes, dim, batch)
    return lambda: backward(functional.cross_entropy(functional.normalize(v, dim=1) @ vectors.T / 0.07, target))


def fused_loss(num_classes: int, dim: int, batch: int) -> Step:
    """The same by torch's own loss without all logits, which torch has from 2.13 on."""
    vectors = unit_rows(num_classes, dim)
    v, target = problem(num_classes, dim, batch)
    options = nn.LinearCrossEntropyOptions()

    def step() -> Tensor:
        z = functional.normalize(v, dim=1) / 0.07
        return backward(functional.linear_cross_entropy(z, vectors, target, options=options))

    return step


def sampled_loss(num_classes: int, dim: int, batch: int) -> Step:
    """A softmax over the classes of the batch and a random tenth of the others: an estimate, as Partial FC's."""
    vectors = unit_rows(num_classes, dim)
    v, target = problem(num_classes, dim, batch)

    def step() -> Tensor:
        present, place = target.unique(return_inverse=True)
        classes = torch.cat([present, torch.randint(num_classes, (num_classes // 10,), device=device)])
        z = functional.normalize(v, dim=1) / 0.07
        return backward(functional.cross_entropy(z @ vectors[classes].T, place))

    return step


def streamed_loss(num_classes: int, dim: int, batch: int, method: Optional[str] = None) -> Step:
    """The loss by basis_cross_entropy, of a structured basis, or of a matrix where there is no method."""
    if method:
        basis = make_basis(num_classes, dim, method=method, structured=True)
    else:
        basis = unit_rows(num_classes, dim)
    v, target = problem(num_classes, dim, batch)
    return lambda: backward(basis_cross_entropy(v, target, basis))


def all_logits(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), target)


def streamed(layer: EBVLinear, x: Tensor, target: Tensor) -> Tensor:
    return basis_cross_entropy(layer.project(x), target, layer.products, layer.tau)


def train_step(model: nn.Module, x: Tensor, num_classes: int, loss: Callable = all_logits) -> Step:
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    target = torch.randint(num_classes, (len(x),), device=device)

    def step() -> Tensor:
        optimizer.zero_grad()
        value = backward(loss(model, x, target))
        optimizer.step()
        return value

    return step


def features(batch: int) -> Tensor:
    return torch.randn(batch, FEATURES, device=device, requires_grad=True)


def fc_step(num_classes: int, dim: int, batch: int) -> Step:
    del dim
    return train_step(nn.Linear(FEATURES, num_classes), features(batch), num_classes)


def ebv_step(num_classes: int, dim: int, batch: int, method: str) -> Step:
    """With many classes the streamed loss of a structured basis; with few, all logits, as any head."""
    if method == 'dense':
        basis = make_basis(num_classes, dim)
    else:
        basis = make_basis(num_classes, dim, method=method, structured=True, rotate=method != 'orthonormal')
    layer = EBVLinear(FEATURES, num_classes, basis=basis)
    return train_step(layer, features(batch), num_classes, streamed if num_classes > dim else all_logits)


def resnet50_step(num_classes: int, dim: int, batch: int, method: Optional[str] = None) -> Step:
    """A training step of the whole ResNet-50; FC where there is no method."""
    from torchvision.models import resnet50

    model = resnet50(num_classes=num_classes)
    if method:
        model.fc = EBVLinear(FEATURES, num_classes, basis=make_basis(num_classes, dim))
    return train_step(model, torch.randn(batch, 3, 224, 224, device=device), num_classes)
