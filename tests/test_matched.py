"""Peakiness-matched adversaries (JW-5): against all orders, a linear solver, grids, the exact optimum."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from attentest.evidence.adversary.capped_simplex import Slab, allocate_at_edge, best_linear
from attentest.evidence.adversary.matched import best_permutation, capped
from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.model.divergence import jensen_shannon
from attentest.refusal import Refusal
from tests.toys import seeded

BOTH = pytest.mark.parametrize("method", [best_permutation, capped])
EPSILONS = (0.01, 0.05)


def made(texts, tokens, *, seed=0, peaked=1.5, loud=3.0, lengths=None):
    """Random attention and values: weights, values, bias, mask."""
    rng = seeded(seed)
    lengths = torch.full((texts,), tokens) if lengths is None else torch.tensor(lengths)
    mask = torch.arange(tokens) < lengths[:, None]
    scores = peaked * torch.randn(texts, tokens, generator=rng, dtype=torch.float64)
    values = loud * torch.randn(texts, tokens, 1, generator=rng, dtype=torch.float64)
    return scores.masked_fill(~mask, -math.inf).softmax(-1), values, torch.full((1,), 0.3).double(), mask


def change(weights, values, bias, other):
    before, after = ((w[:, None] @ values)[:, 0, 0] + bias for w in (weights, other))
    return (torch.sigmoid(after) - torch.sigmoid(before)).abs()


def best_order(weights, values, bias, epsilon):
    """All permutations of each text: exact."""
    orders = torch.tensor(list(permutations(range(weights.shape[1]))))
    tried = weights[:, orders]
    outputs = torch.sigmoid((tried @ values)[..., 0] + bias)
    own = torch.sigmoid((weights[:, None] @ values)[..., 0] + bias)
    far = jensen_shannon(tried, weights[:, None])
    return far.where((outputs - own).abs() <= epsilon, 0.0).amax(1)


@pytest.mark.parametrize(("peaked", "loud"), [(0.7, 1.0), (1.5, 3.0), (3.0, 6.0)])
@pytest.mark.parametrize("tokens", [2, 3, 5, 6])
def test_the_best_of_all_orders_is_nearly_always_found(tokens, peaked, loud):
    weights, values, bias, mask = made(100, tokens, seed=tokens, peaked=peaked, loud=loud)
    found = best_permutation(weights, values, bias, mask, EPSILONS, rng=seeded())
    for epsilon, divergence in zip(EPSILONS, found.divergence, strict=True):
        best = best_order(weights, values, bias, epsilon)
        assert (divergence <= best + 1e-9).all(), "a lower bound"
        assert (divergence >= best - 1e-9).double().mean() >= (1.0 if tokens < 5 else 0.95)
        assert (best - divergence).mean() < 1e-3


def test_a_permutation_is_one_and_stays_below_the_reversed_order():
    weights, values, bias, mask = made(40, 14, lengths=[14, 9, 2, 1] * 10)
    found = best_permutation(weights, values, bias, mask, EPSILONS, rng=seeded())
    for each in found.weights:
        assert torch.equal(each.sort(-1).values, weights.sort(-1).values)
        assert (each[~mask] == 0).all()
    rank = weights.masked_fill(~mask, 2.0).argsort(-1)
    mirrored = torch.zeros_like(weights).scatter(1, rank, weights.sort(-1, descending=True).values)
    limit = jensen_shannon(mirrored, weights)
    assert (found.divergence <= limit + 1e-9).all()
    silent = best_permutation(weights, 0 * values, bias, mask, EPSILONS, rng=seeded())
    torch.testing.assert_close(silent.divergence, limit.expand(2, -1))  # nothing to keep, nothing to lose


@BOTH
def test_what_is_found_keeps_the_output_and_loses_to_the_strongest(method):
    weights, values, bias, mask = made(60, 20, lengths=[20, 13, 7, 3, 2, 1] * 10)
    found = method(weights, values, bias, mask, EPSILONS, rng=seeded())
    for epsilon, divergence, other in zip(EPSILONS, found.divergence, found.weights, strict=True):
        assert (change(weights, values, bias, other) <= epsilon).all()
        torch.testing.assert_close(jensen_shannon(other, weights), divergence)
        torch.testing.assert_close(other.sum(1), torch.ones(60).double())
        assert (other >= 0).all() and (other[~mask] == 0).all()
        assert (other.amax(1) <= weights.amax(1) + 1e-12).all()
        strongest = strongest_adversary(weights, values, bias, mask, epsilon)
        assert (divergence <= strongest.divergence + 1e-7).all()
    assert (found.divergence[0] <= found.divergence[1]).all()
    assert (found.divergence[:, mask.sum(1) == 1] == 0).all()
    assert (found.divergence[:, mask.sum(1) > 3] > 0).all()


def test_a_permutation_is_capped_so_the_cap_allows_more():
    weights, values, bias, mask = made(80, 18)
    order, under = (
        m(weights, values, bias, mask, EPSILONS, rng=seeded()) for m in (best_permutation, capped)
    )
    assert (under.divergence > order.divergence).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 9), st.floats(0.001, 0.2), st.floats(0.1, 4.0))
def test_a_linear_step_is_what_a_linear_solver_finds(seed, tokens, width, peaked):
    weights, values, _, mask = made(1, tokens + 2, seed=seed, peaked=peaked, lengths=[tokens])
    moves = (values[..., 0] - (weights[:, None] @ values)[:, 0]).masked_fill(~mask, 0.0)
    slopes = torch.randn(1, 3, tokens + 2, generator=seeded(seed), dtype=torch.float64)
    low, high = (torch.full((1, 3), side, dtype=torch.float64) for side in (-width, 2 * width))
    cap = weights.amax(1)
    found = best_linear(slopes, Slab(moves, low, high, mask), cap, weights.sum(1))[0]
    real = mask[0].numpy()
    v = moves[0].numpy()[real]
    for each, slope in zip(found.numpy(), slopes[0].numpy(), strict=True):
        solved = linprog(
            -slope[real],
            A_ub=np.stack([v, -v]),
            b_ub=[2 * width, width],
            A_eq=np.ones((1, tokens)),
            b_eq=[1.0],
            bounds=(0.0, float(cap)),
        )
        assert each @ slope == pytest.approx(-solved.fun, abs=1e-6)
        assert -width - 1e-9 <= each[real] @ v <= 2 * width + 1e-9
        assert each.min() >= 0 and each.max() <= float(cap) + 1e-12 and (each[~real] == 0).all()
        assert each.sum() == pytest.approx(1.0)


def test_portions_are_turned_no_further_than_needed():
    moves = torch.tensor([[2.0, 1.0, -1.0, -2.0]]).double()
    slopes = torch.tensor([[[4.0, 3.0, 2.0, 1.0]]]).double()
    portions = torch.tensor([[[0.6, 0.4, 0.0, 0.0]]], dtype=torch.float64)
    mask = torch.ones(1, 4, dtype=torch.bool)

    def inside(low, high):
        sides = (torch.full((1, 1), float(side)).double() for side in (low, high))
        return allocate_at_edge(portions, slopes, Slab(moves, *sides, mask)).inside[0, 0].tolist()

    assert inside(-9, 9) == [0.6, 0.4, 0.0, 0.0]
    assert inside(-9, -1.5) == [0.0, 0.0, 0.4, 0.6], "the far end of the line"
    assert inside(-math.inf, 1.5) != [0.6, 0.4, 0.0, 0.0]


def grid(tokens, parts):
    """All attentions in steps of 1 / parts."""
    steps = np.stack(np.meshgrid(*[np.arange(parts + 1)] * (tokens - 1), indexing="ij"), -1)
    steps = steps.reshape(-1, tokens - 1)
    steps = steps[steps.sum(1) <= parts]
    return torch.from_numpy(np.column_stack([steps, parts - steps.sum(1)]) / parts)


@pytest.mark.parametrize(("tokens", "parts"), [(2, 2000), (3, 300), (4, 70)])
def test_no_point_of_a_fine_grid_under_the_cap_is_further(tokens, parts):
    weights, values, bias, mask = made(40, tokens, seed=tokens, peaked=0.8, loud=1.0)
    found = capped(weights, values, bias, mask, EPSILONS, rng=seeded())
    points = grid(tokens, parts)
    own = torch.sigmoid((weights[:, None] @ values)[..., 0] + bias)
    outputs = torch.sigmoid((points @ values)[..., 0] + bias)
    under = (points[None] <= weights.amax(1)[:, None, None] + 1e-12).all(-1)
    far = jensen_shannon(points[None], weights[:, None])
    for epsilon, divergence in zip(EPSILONS, found.divergence, strict=True):
        best = far.where(under & ((outputs - own).abs() <= epsilon), 0.0).amax(1)
        assert (best > 0).any() and (divergence >= best - 1e-9).double().mean() >= 0.95
        assert (best - divergence).amax() < 0.02


@BOTH
def test_uniform_attention_leaves_no_other(method):
    _, values, bias, mask = made(5, 8, lengths=[8, 7, 3, 2, 1])
    uniform = mask.double() / mask.sum(1, keepdim=True)
    found = method(uniform, values, bias, mask, EPSILONS, rng=seeded())
    torch.testing.assert_close(found.divergence, torch.zeros(2, 5).double(), atol=1e-9, rtol=0)


@BOTH
def test_two_logits_are_their_difference_and_more_classes_are_unknown(method):
    weights, values, bias, mask = made(10, 9)
    other = torch.randn(10, 9, 1, generator=seeded(5)).double()
    two = torch.cat([other, other + values], dim=2)
    one = method(weights, values, bias, mask, EPSILONS, rng=seeded())
    same = method(weights, two, torch.cat([0 * bias, bias]), mask, EPSILONS, rng=seeded())
    torch.testing.assert_close(same.divergence, one.divergence)
    three = torch.cat([two, other], dim=2)
    unknown = method(weights, three, torch.zeros(3).double(), mask, EPSILONS, rng=seeded())
    assert unknown.divergence.isnan().all() and unknown.divergence.shape == (2, 10)


@BOTH
def test_an_undefined_text_is_not_a_number_and_disturbs_no_other(method):
    weights, values, bias, mask = made(6, 9)
    found = method(weights, values, bias, mask, EPSILONS, rng=seeded())
    weights[1], values[3, 0] = math.nan, math.inf
    spoilt = method(weights, values, bias, mask, EPSILONS, rng=seeded())
    fine = torch.tensor([0, 2, 4, 5])
    assert spoilt.divergence[:, [1, 3]].isnan().all()
    assert torch.equal(spoilt.divergence[:, fine], found.divergence[:, fine])


@BOTH
def test_single_precision_and_sparse_weights_will_do(method):
    weights, values, bias, mask = made(8, 10, lengths=[10, 10, 8, 8, 5, 5, 4, 4])
    weights[:, 1] = 0.0
    weights = (weights / weights.sum(1, keepdim=True)).float()
    found = method(weights, values.float(), bias.float(), mask, EPSILONS, rng=seeded())
    assert (found.weights[:, ~mask] == 0).all() and (found.divergence[:, :4] > 0).all()
    assert (found.weights.amax(2) <= weights.amax(1) + 1e-9).all()


@BOTH
def test_the_same_rng_finds_the_same(method):
    weights, values, bias, mask = made(20, 12)
    once, again, other = (
        method(weights, values, bias, mask, EPSILONS, rng=seeded(seed), draws=4) for seed in (0, 0, 1)
    )
    assert torch.equal(once.weights, again.weights) and not torch.equal(once.weights, other.weights)


@BOTH
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epsilons": (0.0,)}, r"epsilons \[0.0\]"),
        ({"epsilons": (math.nan,)}, r"epsilons \[nan\]"),
        ({"epsilons": (-1.0, 0.1)}, "above 0"),
        ({"epsilons": ()}, r"epsilons \[\]"),
        ({"draws": 0}, "got 0 draws"),
    ],
)
def test_settings_without_a_meaning_are_refused_in_a_sentence(method, wrong, says):
    with pytest.raises(Refusal, match=says):
        method(*made(2, 3), **{"epsilons": EPSILONS, "rng": seeded(), **wrong})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@BOTH
def test_a_gpu_finds_what_a_cpu_does(method):
    texts = made(10, 9)
    here = method(*texts, EPSILONS, rng=seeded())
    there = method(*(each.to("cuda") for each in texts), EPSILONS, rng=seeded())
    # One rounding may turn one swap, and all that follow: what is found is alike, not the same.
    torch.testing.assert_close(there.divergence.cpu(), here.divergence, atol=0.02, rtol=0)
