"""The adversary of several classes: the two polytopes hold what they claim, and the search stays between."""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attentest.evidence.adversary import polytopes, strongest_adversary
from attentest.evidence.adversary import strongest as adversary
from attentest.evidence.adversary.polytopes import Text
from attentest.evidence.adversary.slab import slab
from attentest.model.divergence import attainable, jensen_shannon, total_variation
from tests.adversarial import assert_sound, no_road, simplex_grid, texts

GRID = [(3, 3, 2.0, 0.01), (4, 3, 8.0, 0.05), (9, 6, 3.0, 0.05), (20, 4, 1.0, 0.01), (12, 10, 4.0, 0.1)]


def outputs(weights, values, bias):
    return (weights @ values + bias).softmax(-1)


def a_text(tokens, classes, seed):
    """From balanced to saturated: the scale of the values is drawn too."""
    rng = torch.Generator().manual_seed(seed)
    weights = torch.randn(tokens, generator=rng, dtype=torch.float64).softmax(-1)
    scale = float(10 ** (2 * torch.rand(1, generator=rng) - 1))
    values = scale * torch.randn(tokens, classes, generator=rng, dtype=torch.float64)
    moves = values - weights @ values
    return Text(weights=weights, moves=moves, log_output=(weights @ values).log_softmax(-1)), rng


SIZES = {"tokens": st.integers(2, 8), "classes": st.integers(2, 6), "seed": st.integers(0, 10_000)}
EPSILON = st.sampled_from([0.001, 0.01, 0.05, 0.3, 0.9])


@settings(max_examples=60, deadline=None)
@given(**SIZES, epsilon=EPSILON)
def test_all_of_the_inner_polytope_is_within_epsilon_and_its_centre_is_in_it(tokens, classes, seed, epsilon):
    text, rng = a_text(tokens, classes, seed)
    here = text.weights
    for _ in range(3):  # around the own attention, then around corners of what was found there
        polytope = text.around(here, epsilon)
        objectives = torch.randn(4, tokens, generator=rng, dtype=torch.float64)
        ends = torch.stack([polytope.furthest_along(objective) for objective in objectives])
        mixed = torch.randn(50, 4, generator=rng, dtype=torch.float64).softmax(-1) @ ends
        assert text.change(torch.cat([ends, mixed])).max() <= epsilon + 1e-6
        assert ((ends * objectives).sum(1) >= objectives @ here - 1e-6 * objectives.abs().sum(1)).all()
        here = ends[0] if text.change(ends[0]) <= epsilon else here


@settings(max_examples=60, deadline=None)
@given(**SIZES, epsilon=EPSILON)
def test_the_outer_polytope_holds_every_attention_within_epsilon(tokens, classes, seed, epsilon):
    text, rng = a_text(tokens, classes, seed)
    other = (3 * torch.randn(200, tokens, generator=rng, dtype=torch.float64)).softmax(-1)
    for share in (1.0, 0.3, 0.03, 0.003):
        point = share * other + (1 - share) * text.weights
        point = point[text.change(point) <= epsilon]
        moved = (text.log_output + point @ text.moves).logsumexp(-1, keepdim=True)
        rows, low, high, _ = text.outside(epsilon)
        sums = torch.cat([point, moved], dim=1) @ rows.T
        assert (sums >= low - 1e-9).all() and (sums <= high + 1e-9).all()


def test_with_two_classes_the_outer_polytope_is_the_slab_of_the_exact_road():
    for logit, epsilon in product((-9.0, -1.0, 0.0, 2.0, 4.7), (0.01, 0.2)):
        log_output = torch.tensor([0.0, logit]).double().log_softmax(-1)
        text = Text(weights=torch.ones(1).double(), moves=torch.zeros(1, 2).double(), log_output=log_output)
        _, low, high, _ = text.outside(epsilon)
        expected = slab(torch.tensor([logit]).double(), epsilon)
        assert float(high[1] - low[0]) == pytest.approx(float(expected[1]), abs=1e-5)
        assert float(low[1] - high[0]) == pytest.approx(float(expected[0]), abs=1e-5)


@pytest.mark.parametrize(("tokens", "classes", "scale", "epsilon"), GRID)
def test_what_is_found_is_within_epsilon_and_below_the_bound(tokens, classes, scale, epsilon, monkeypatch):
    monkeypatch.setattr(adversary, "furthest", no_road)
    lengths = [tokens, max(2, tokens // 2), tokens]
    given_texts = texts(lengths, classes=classes, scale=scale, seed=tokens)
    weights, values, bias, _ = given_texts
    found = strongest_adversary(*given_texts, epsilon)
    assert not found.exact
    assert_sound(found, *given_texts, epsilon)
    own, after = (outputs(a[:, None], values, bias)[:, 0] for a in (weights, found.weights))
    change = total_variation(after, own)
    assert (change <= epsilon).all()
    torch.testing.assert_close(found.output_change, change, atol=1e-12, rtol=0)


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.4])
def test_against_a_grid_of_the_simplex(epsilon):
    weights, values, bias, mask = texts([3] * 6, classes=3, seed=1)
    found = strongest_adversary(weights, values, bias, mask, epsilon)
    grid = torch.from_numpy(simplex_grid(3, 200))
    far = jensen_shannon(grid, weights[:, None])
    change = total_variation(outputs(grid, values, bias), outputs(weights[:, None], values, bias))
    best = far.masked_fill(change > epsilon, 0.0).amax(1)
    assert (best <= found.bound + 1e-6).all()
    # A search may miss, but on three tokens it must come near what can be seen by looking everywhere.
    assert (found.divergence >= 0.95 * best).all()


def test_random_attention_within_epsilon_never_passes_the_bound():
    weights, values, bias, mask = texts([8] * 5, classes=4, seed=3, scale=1.0)
    found = strongest_adversary(weights, values, bias, mask, 0.1)
    rng = torch.Generator().manual_seed(1)
    other = (4 * torch.randn(5, 2000, 8, generator=rng, dtype=torch.float64)).softmax(-1)
    for share in (1.0, 0.3, 0.05):
        mixed = share * other + (1 - share) * weights[:, None]
        change = total_variation(outputs(mixed, values, bias), outputs(weights[:, None], values, bias))
        far = jensen_shannon(mixed, weights[:, None]).masked_fill(change > 0.1, 0.0)
        assert (far <= found.bound[:, None] + 1e-6).all()
        beating = (far > found.divergence[:, None]).double().mean(1)
        assert (beating < 0.01).all(), "a search that chance outdoes would not be one"


def test_a_class_that_says_nothing_leaves_the_exact_answer_nearly_reached():
    """Two live classes and one that is never likely: the binary optimum is known."""
    weights, values, bias, mask = texts([6, 12, 12], classes=2, seed=6)
    exact = strongest_adversary(weights, values, bias, mask, 0.05)
    third = torch.zeros(*mask.shape, 1).double()
    bias = torch.cat([bias, torch.tensor([-60.0]).double()])
    found = strongest_adversary(weights, torch.cat([values, third], dim=2), bias, mask, 0.05)
    assert (found.divergence <= exact.divergence + 1e-7).all()
    assert (found.divergence >= 0.97 * exact.divergence).all()
    assert (found.bound >= exact.divergence - 1e-7).all()


def test_impossible_answers_are_simply_not_there():
    weights, values, bias, mask = texts([5, 9], classes=5, seed=2)
    answers = torch.tensor([[True, False, True, False, True]] * 2)
    values[:, :, 1], bias[3] = float("nan"), float("inf")
    among = strongest_adversary(weights, values, bias, mask, 0.05, answers=answers)
    without = strongest_adversary(weights, values[:, :, ::2], bias[::2], mask, 0.05)
    assert torch.equal(among.weights, without.weights) and torch.equal(among.bound, without.bound)


def test_one_possible_answer_lets_attention_go_anywhere_and_none_is_undefined():
    weights, values, bias, mask = texts([5, 9, 4], classes=3)
    answers = torch.tensor([[False, True, False], [True, True, True], [False, False, False]])
    found = strongest_adversary(weights, values, bias, mask, 0.001, answers=answers)
    limit = attainable(weights, mask)
    assert found.divergence[0].item() == pytest.approx(limit[0].item(), abs=1e-12)
    assert found.divergence[1] < limit[1] and found.divergence[2].isnan() and found.bound[2].isnan()


def test_equal_values_and_an_epsilon_of_one_reach_whatever_is_attainable():
    weights, values, bias, mask = texts([5, 9], classes=3)
    equal = strongest_adversary(weights, values[:, :1].expand_as(values), bias, mask, 0.001)
    free = strongest_adversary(weights, values, bias, mask, 1.0)
    for found in (equal, free):
        torch.testing.assert_close(found.divergence, attainable(weights, mask), atol=1e-12, rtol=0)
        torch.testing.assert_close(found.bound, found.divergence, atol=1e-12, rtol=0)


def test_a_batch_equals_its_texts_and_every_run_the_last():
    weights, values, bias, mask = texts([3, 9, 6], classes=4, seed=9)
    together = strongest_adversary(weights, values, bias, mask, 0.05)
    again = strongest_adversary(weights, values.masked_fill(~mask[:, :, None], math.nan), bias, mask, 0.05)
    assert torch.equal(together.weights, again.weights)
    for n, t in enumerate((3, 9, 6)):
        one = slice(n, n + 1)
        alone = strongest_adversary(weights[one, :t], values[one, :t], bias, mask[one, :t], 0.05)
        assert alone.divergence.item() == pytest.approx(together.divergence[n].item(), abs=1e-9)
        assert alone.bound.item() == pytest.approx(together.bound[n].item(), abs=1e-9)


def test_when_the_solver_gives_up_the_own_attention_is_left(monkeypatch):
    weights, values, bias, mask = texts([6, 8], classes=3)
    assert (strongest_adversary(weights, values, bias, mask, 0.001).divergence > 0).all()
    monkeypatch.setattr(polytopes, "milp", lambda *_, **__: SimpleNamespace(success=False, x=None))
    found = strongest_adversary(weights, values, bias, mask, 0.001)
    assert torch.equal(found.weights, weights) and (found.divergence == 0).all()
    torch.testing.assert_close(found.bound, attainable(weights, mask))


def test_what_the_solver_says_is_not_believed_before_the_output_agrees(monkeypatch):
    """A solver that goes wrong, at once or later, neither passes epsilon nor spoils what was found."""
    weights, values, bias, mask = texts([6, 8], classes=3)
    solve, furthest = polytopes.milp, torch.where(mask, weights, 2.0).argmin(1)

    def wrong(after):
        asked = []

        def solver(objective, **limits):
            asked.append(objective)
            if len(asked) <= after:
                return solve(objective, **limits)
            return SimpleNamespace(success=True, x=np.eye(len(objective))[furthest[0]])

        return solver

    for after in (0, 1):
        monkeypatch.setattr(polytopes, "milp", wrong(after))
        found = strongest_adversary(weights[:1], values[:1], bias, mask[:1], 0.001)
        assert found.output_change.item() <= 0.001 and (found.divergence.item() > 0) == bool(after)


def test_many_classes_and_a_long_text():
    given_texts = texts([120], classes=30, scale=6.0, dtype=torch.float32)
    found = strongest_adversary(*given_texts, 0.05)
    assert_sound(found, *given_texts, 0.05)
    assert found.divergence.item() > 0.5 * found.bound.item()
