"""The mathematics of CKA against the definition, written out as loops, and its invariances."""

import gc
import itertools
import math
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
import torch
from torch import nn

from ebv_mm.analysis import MinibatchCKA, choose_layers, cka_of_hsic, gram_matrix, hsic, layer_grams
from ebv_mm.analysis import cka as cka_module


def hsic_by_tuples(K, M) -> float:
    """The U-statistic that HSIC_1 is, over all tuples of distinct indices (Song et al. 2012)."""
    n = len(K)
    pairs = sum(K[i, j] * M[i, j] for i, j in itertools.permutations(range(n), 2))
    triples = sum(K[i, j] * M[i, q] for i, j, q in itertools.permutations(range(n), 3))
    quadruples = sum(K[i, j] * M[q, r] for i, j, q, r in itertools.permutations(range(n), 4))
    return pairs / math.perm(n, 2) - 2 * triples / math.perm(n, 3) + quadruples / math.perm(n, 4)


def hsic_by_formula(X, Y) -> float:
    """The estimator as printed, for features in numpy's float64."""
    n = len(X)
    K, M = X @ X.T, Y @ Y.T
    for i in range(n):
        K[i, i] = M[i, i] = 0
    one = np.ones(n)
    trace = sum(K[i, j] * M[j, i] for i in range(n) for j in range(n))
    products = (one @ K @ one) * (one @ M @ one) / ((n - 1) * (n - 2))
    return (trace + products - 2 / (n - 2) * (one @ K @ M @ one)) / (n * (n - 3))


def related(n: int, sizes=(5, 9, 3), seed: int = 0):
    """Features of one batch by several layers that have something in common, with a mean far from zero."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(n, 4, generator=generator, dtype=torch.float64)
    return [
        common @ torch.randn(4, p, generator=generator, dtype=torch.float64)
        + torch.randn(n, p, generator=generator, dtype=torch.float64)
        + 3
        for p in sizes
    ]


def grams_of(layers) -> torch.Tensor:
    return torch.stack([gram_matrix(features) for features in layers])


def cka_of(*batches) -> torch.Tensor:
    similarity = MinibatchCKA()
    for layers in batches:
        similarity.update(grams_of(layers))
    return similarity.cka()


@pytest.mark.parametrize('n', [4, 5, 7])
@pytest.mark.parametrize('seed', [0, 1])
def test_hsic_is_the_mean_over_distinct_tuples(n, seed):
    layers = related(n, seed=seed)
    ours = hsic(grams_of(layers))
    raw = [(features @ features.T).numpy() for features in layers]
    direct = [[hsic_by_tuples(K, M) for M in raw] for K in raw]
    np.testing.assert_allclose(ours.numpy(), direct, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('seed', range(3))
def test_hsic_is_the_printed_formula(seed):
    layers = related(23, seed=seed)
    direct = [[hsic_by_formula(X.numpy(), Y.numpy()) for Y in layers] for X in layers]
    np.testing.assert_allclose(hsic(grams_of(layers)).numpy(), direct, rtol=1e-9)


def test_small_batches_are_unbiased():
    """The mean over all minibatches of four examples is, exactly, the value of the whole."""
    layers = related(9)
    similarity = MinibatchCKA()
    for rows in itertools.combinations(range(9), 4):
        similarity.update(grams_of([features[list(rows)] for features in layers]))
    assert similarity.batches == math.comb(9, 4)
    torch.testing.assert_close(similarity.hsic(), hsic(grams_of(layers)))


def test_the_result_is_the_ratio_of_means_over_batches():
    batches = [related(8, seed=seed) for seed in range(5)]
    mean = np.mean([[[hsic_by_formula(X.numpy(), Y.numpy()) for Y in b] for X in b] for b in batches], axis=0)
    scale = np.sqrt(np.diag(mean))
    np.testing.assert_allclose(cka_of(*batches).numpy(), mean / np.outer(scale, scale), rtol=1e-9)


def test_independent_layers_have_none():
    generator = torch.Generator().manual_seed(0)
    batches = [[torch.randn(16, 200, generator=generator) for _ in range(2)] for _ in range(300)]
    # The biased estimator gives about 0.93 for so many features and so few examples.
    assert abs(cka_of(*batches)[0, 1]) < 0.03


def test_symmetric_one_on_the_diagonal_and_never_above():
    layers = related(12, sizes=(5, 9, 3, 40, 1))
    similarity = cka_of(layers, related(12, sizes=(5, 9, 3, 40, 1), seed=1))
    assert torch.equal(similarity, similarity.T)
    torch.testing.assert_close(similarity.diagonal(), torch.ones(5, dtype=torch.float64))
    assert similarity.abs().max() <= 1 + 1e-12
    torch.testing.assert_close(cka_of([layers[0], layers[0]]), torch.ones(2, 2, dtype=torch.float64))


def test_rotation_scale_and_shift_do_not_matter():
    layers = related(10)
    before = cka_of(layers)
    changed = []
    for factor, features in zip((1e-6, 1.0, 1e5), layers):
        rotation, _ = torch.linalg.qr(torch.randn(features.shape[1], features.shape[1], dtype=torch.float64))
        changed.append(factor * (features @ rotation + torch.randn(features.shape[1], dtype=torch.float64)))
    torch.testing.assert_close(cka_of(changed), before)


def test_a_stretched_axis_does_matter():
    layers = related(10)
    stretched = layers[0] * torch.tensor([10.0, 1, 1, 1, 1], dtype=torch.float64)
    assert cka_of([layers[0], stretched])[0, 1] < 0.98


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_features(dtype):
    # Inner products are beyond 65504, the largest half.
    layers = [(100 * features).to(dtype) for features in related(32, sizes=(64, 300))]
    exact = cka_of([features.double() for features in layers])
    assert max(gram_matrix(features).max() for features in layers) > 65504
    torch.testing.assert_close(cka_of(layers), exact, rtol=1e-5, atol=1e-6)


def test_float32_far_from_zero_loses_no_digits():
    # Multiples of 1/8, so that adding 1e4 is exact in float32: only the computation could lose something.
    layers = [(8 * features).round() / 8 for features in related(16)]
    torch.testing.assert_close(cka_of([(x + 1e4).float() for x in layers]), cka_of(layers), rtol=1e-5, atol=1e-5)


def test_gram_in_slices_is_the_same(monkeypatch):
    features = torch.randn(6, 4, 5, 3, dtype=torch.float64)
    whole = gram_matrix(features)
    flat = (features - features[:1]).reshape(6, -1)
    torch.testing.assert_close(whole, flat @ flat.T)
    for size in (1, 7 * 6, 10**9):
        monkeypatch.setattr(cka_module, 'SLICE', size)
        torch.testing.assert_close(gram_matrix(features), whole)


def test_a_constant_layer_is_undefined_and_spoils_no_other():
    x, y = related(8, sizes=(5, 9))
    similarity = cka_of([x, torch.full((8, 3), 0.1), y])
    assert similarity[1].isnan().all() and similarity[:, 1].isnan().all()
    torch.testing.assert_close(similarity[::2, ::2], cka_of([x, y]))


@pytest.mark.parametrize('n', [0, 1, 3])
def test_too_few_examples(n):
    with pytest.raises(ValueError, match=f'{n} examples.*at least 4'):
        hsic(torch.zeros(2, n, n))


def test_no_batch_and_another_number_of_layers():
    similarity = MinibatchCKA()
    with pytest.raises(ValueError, match='no batch yet'):
        similarity.cka()
    similarity.update(torch.randn(2, 5, 5))
    with pytest.raises(ValueError, match='3 layers.*had 2'):
        similarity.update(torch.randn(3, 5, 5))


def test_cka_of_hsic_leaves_its_argument_alone():
    matrix = torch.tensor([[4.0, 3.0], [3.0, 9.0]])
    torch.testing.assert_close(cka_of_hsic(matrix), torch.tensor([[1.0, 0.5], [0.5, 1.0]]))
    assert matrix.tolist() == [[4.0, 3.0], [3.0, 9.0]]


def bytes_of_tensors() -> int:
    gc.collect()
    return sum(x.numel() * x.element_size() for x in gc.get_objects() if type(x) is torch.Tensor)


def test_memory_does_not_grow_with_the_batches():
    net = nn.Sequential(*(nn.Linear(50, 50) for _ in range(6)))
    layers = choose_layers(net, r'^\d+$')
    similarity = MinibatchCKA()
    used = []
    for _ in range(20):
        similarity.update(layer_grams(layers, lambda: net(torch.randn(8, 50))))
        if similarity.batches in (1, 2, 20):
            used.append(bytes_of_tensors())
    assert len(used) == 3 and len(set(used)) == 1
    assert similarity.batches == 20


def test_features_die_as_soon_as_the_network_has_used_them():
    net = nn.Sequential(*(nn.Linear(10, 10) for _ in range(6)))
    outputs, alive = [], []

    def note(module, args, output):
        alive.append(sum(reference() is not None for reference in outputs))
        outputs.append(weakref.ref(output))

    for layer in net:
        layer.register_forward_hook(note)
    layer_grams(choose_layers(net, r'^\d+$'), lambda: net(torch.randn(8, 10)))
    # When a layer has run only its own input, the output of the one before, may still be there.
    assert len(alive) == 6 and max(alive) <= 1
    assert not any(reference() is not None for reference in outputs)


def test_grams_are_taken_before_an_operation_in_place():
    conv = nn.Conv2d(3, 4, 3)
    images = torch.randn(5, 3, 6, 6)
    grams = layer_grams({'conv': conv}, lambda: nn.ReLU(inplace=True)(conv(images)))
    torch.testing.assert_close(grams[0], gram_matrix(conv(images).detach()))
    assert not grams.requires_grad and not conv._forward_hooks


class Odd(nn.Module):
    """Layers that cannot be compared."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.relu = nn.ReLU()
        self.unused = nn.Linear(4, 4)
        self.pair = nn.LSTM(4, 4)
        self.rows = nn.Flatten(0, 1)
        self.diverged = nn.Threshold(math.inf, math.nan)

    def forward(self, x):
        x = self.relu(self.relu(self.first(x)))
        self.diverged(x)
        self.rows(x[:, None].expand(-1, 2, -1))
        return self.pair(x)


@pytest.mark.parametrize(
    'pattern, message',
    [
        ('unused', "'unused'.*did not run.*choose other layers"),
        ('relu', "'relu' runs more than once"),
        ('pair', "'pair' gives a tuple.*inside it"),
        ('first|rows', "'rows' gives 12 rows and others 6"),
        ('diverged', "'diverged' gives infinite or undefined"),
    ],
)
def test_layers_that_cannot_be_compared_are_named(pattern, message):
    net = Odd()
    with pytest.raises(ValueError, match=message):
        layer_grams(choose_layers(net, pattern), lambda: net(torch.randn(6, 4)))
    assert not any(module._forward_hooks for module in net.modules())


def test_no_layer_matches():
    with pytest.raises(ValueError, match=r"'conv9' matches none of the 6 layers of Odd.*choose among: first, relu"):
        choose_layers(Odd(), 'conv9')
    with pytest.raises(ValueError, match='the default .* matches none'):
        choose_layers(nn.Sequential(nn.Linear(2, 2)))
    with pytest.raises(ValueError, match=r"'\(' is no regular expression"):
        choose_layers(Odd(), '(')


def test_the_mathematics_needs_torch_alone():
    code = """
        import importlib.util, sys, types
        # the room without the house: the package's own __init__ imports mmengine
        package = types.ModuleType('ebv_mm')
        package.__path__ = list(importlib.util.find_spec('ebv_mm').submodule_search_locations)
        sys.modules['ebv_mm'] = package
        import ebv_mm.analysis
        print([name for name in ('mmengine', 'mmpretrain', 'matplotlib') if name in sys.modules])
    """
    done = subprocess.run([sys.executable, '-c', textwrap.dedent(code)], capture_output=True, text=True)
    assert done.stdout.strip() == '[]', done.stderr
