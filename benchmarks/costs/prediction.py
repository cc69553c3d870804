"""Exact prediction among very many classes: ours against one product with the matrix, and against faiss."""

import io
import time
from typing import Callable, Dict, Iterator, List, Tuple

import torch
from torch.nn import functional

from ebv_mm import EBVLinear, basis_topk, make_basis
from ebv_mm.basis import Basis

from .measure import median_times
from .steps import unit_rows

K = 5


def rows(num_classes: int, dim: int, batch: int, repeats: int, dense: bool) -> List[Dict[str, object]]:
    """Images per second, memory of the vectors and time to be ready, each of the ways to find the best five classes."""
    basis = make_basis(num_classes, dim, method='kerdock', structured=True)
    queries = near_a_class(basis, batch)
    vectors = basis.vectors if dense else None
    best = basis_topk(queries, K, basis)[1][:, 0]
    out = []
    for name, megabytes, build, search in _ways(queries, basis, vectors):
        start = time.perf_counter()
        state = build()
        ready = time.perf_counter() - start
        (seconds,) = median_times([lambda state=state, search=search: search(state)], repeats)
        found = float((search(state).cpu() == best).float().mean())
        out.append({
            'prediction': name, 'N': f'{num_classes:,}', 'd': dim, 'batch': batch,
            'images/s': f'{batch / seconds:,.0f}', 'ms': f'{seconds * 1e3:.2f}', 'vectors': f'{megabytes:,.1f} MB',
            'ready after': f'{ready:.2f} s', 'same top-1': f'{found:.1%}',
        })  # fmt: skip
    return out


def near_a_class(basis: Basis, batch: int) -> torch.Tensor:
    """Embeddings with a cosine of about .5 to a class and random else: as a trained network gives them."""
    products = basis.products.to(torch.device('cpu'), torch.float32)
    vectors = products.rotation(products.rows(torch.randint(basis.num_classes, (batch,))))
    return functional.normalize(vectors + 3**0.5 * unit_rows(batch, basis.dim), dim=1)


def _ways(queries, basis, vectors) -> Iterator[Tuple[str, float, Callable, Callable]]:
    tables = sum(table.numel() * table.element_size() for table in basis.products.tables.values()) / 2**20
    recipe = basis.recipe
    yield 'EBV, structured', tables, recipe.build, lambda ready: basis_topk(queries, K, ready)[1][:, 0]
    if vectors is None:
        return
    whole = vectors.numel() * 4 / 2**20
    yield (
        'dense product',
        whole,
        lambda: vectors.T.contiguous(),
        lambda ready: (queries @ ready).topk(K, 1).indices[:, 0],
    )
    try:
        import faiss
    except ImportError:
        return
    faiss.omp_set_num_threads(torch.get_num_threads())

    def flat() -> object:
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors.numpy())
        return index

    def graph() -> object:
        index = faiss.IndexHNSWFlat(vectors.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
        index.add(vectors.numpy())
        return index

    def search(index: object) -> torch.Tensor:
        return torch.from_numpy(index.search(queries.numpy(), K)[1])[:, 0]

    yield 'faiss, flat (exact)', whole, flat, search
    yield 'faiss, HNSW', whole, graph, search


def server(num_classes: int, dim: int, repeats: int) -> List[Dict[str, object]]:
    """One image at a time, and the start from a checkpoint: a layer with 512 features."""
    layer = EBVLinear(512, num_classes, basis=dict(num_classes=num_classes, dim=dim, structured=True)).eval()
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    start = time.perf_counter()
    file.seek(0)
    ready = EBVLinear(512, num_classes, basis=f'{num_classes}x{dim}.safetensors').eval()
    ready.load_state_dict(torch.load(file))
    x = torch.randn(1, 512)
    with torch.no_grad():
        answer = lambda: basis_topk(ready.project(x), K, ready.products, ready.tau)  # noqa: E731
        answer()
        cold = time.perf_counter() - start
        (seconds,) = median_times([answer], max(repeats, 20))
    return [{
        'one image at a time': 'projection and top-5', 'N': f'{num_classes:,}', 'd': dim, 'ms': f'{seconds * 1e3:.2f}',
        'checkpoint to first answer': f'{cold * 1e3:.0f} ms', 'checkpoint': f'{file.tell() / 2**20:.1f} MB',
    }]  # fmt: skip
