"""The exact adversary (JW-5): against a slow twin, a grid of the simplex, random attention, and by hand."""

import math
from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from attentest.evidence.adversary import slab
from attentest.evidence.adversary import strongest as adversary
from attentest.evidence.adversary.strongest import epsilon_curve, strongest_adversary
from attentest.model.divergence import at_corners, attainable, jensen_shannon
from attentest.refusal import Refusal
from attentest.statistics import comparison
from tests.adversarial import EPSILONS, assert_sound, no_road, simplex_grid, texts


def one_text(weights, moves, bias=0.0):
    """A text of one logit from plain lists."""
    weights, moves, bias = (torch.tensor([given], dtype=torch.float64) for given in (weights, moves, bias))
    return weights, moves[:, :, None], bias, torch.ones(weights.shape, dtype=torch.bool)


def twin(weights, values, bias, epsilon):
    """The largest divergence at a vertex of one text without padding, by looking at every pair."""
    own = expit(weights @ values + bias)
    sides = [s for s in (own - epsilon, own + epsilon) if 0 < s < 1]
    levels = [logit(side) - bias for side in sides]
    vertices = list(np.eye(len(weights)))
    for level, (i, j) in product(levels, combinations(range(len(weights)), 2)):
        if min(values[i], values[j]) < level < max(values[i], values[j]):
            vertex = np.zeros(len(weights))
            vertex[i] = (values[j] - level) / (values[j] - values[i])
            vertex[j] = 1 - vertex[i]
            vertices.append(vertex)
    kept = [v for v in vertices if abs(expit(v @ values + bias) - own) <= epsilon + 1e-12]
    return max(float(comparison.jensen_shannon(v, weights)) for v in kept)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_fast_road_equals_the_slow_twin(epsilon, monkeypatch):
    monkeypatch.setattr(adversary, "furthest_found", no_road)
    lengths = [1, 2, 3, 7, 7, 12, 25, 40]
    given_texts = texts(lengths)
    found = strongest_adversary(*given_texts, epsilon)
    assert found.exact and torch.equal(found.bound, found.divergence)
    assert_sound(found, *given_texts, epsilon)
    weights, values, bias, _ = given_texts
    for row, length in enumerate(lengths):
        own, said = weights[row, :length].numpy(), values[row, :length, 0].numpy()
        expected = twin(own, said, float(bias), epsilon - min(1e-9, epsilon / 1000))
        assert float(found.divergence[row]) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(
    tokens=st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=2, max_size=7),
    bias=st.sampled_from([0.0, -1.0, 3.0, 5.0, -12.0]),
    epsilon=st.sampled_from([*EPSILONS, 1.0]),
)
def test_ties_zeros_and_open_slabs_too(tokens, bias, epsilon):
    shares, said = zip(*tokens, strict=True)
    own = np.array(shares, dtype=float) + (not any(shares))
    given_text = one_text((own / own.sum()).tolist(), list(said), bias)
    found = strongest_adversary(*given_text, epsilon)
    assert found.exact
    assert_sound(found, *given_text, epsilon)
    expected = twin(own / own.sum(), np.array(said, dtype=float), bias, epsilon - min(1e-9, epsilon / 1000))
    assert float(found.divergence) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("tokens", "steps"), [(2, 2000), (3, 150), (4, 36)])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3])
def test_no_point_of_a_grid_beats_it_and_the_grid_comes_as_near_as_it_is_fine(tokens, steps, epsilon):
    weights, values, bias, mask = texts([tokens] * 6, seed=tokens)
    found = strongest_adversary(weights, values, bias, mask, epsilon)
    grid = simplex_grid(tokens, steps)
    for row in range(6):
        said = values[row, :, 0].numpy()
        moved = np.abs(expit(grid @ said + float(bias)) - expit(weights[row].numpy() @ said + float(bias)))
        far = comparison.jensen_shannon(grid, weights[row].numpy()[None])
        assert (far[moved <= epsilon] <= float(found.divergence[row]) + 1e-7).all()
        # Rounding the optimum to the grid moves each weight by at most h: the output by a quarter of the
        # change of the logit, the divergence by the modulus of x ln x.
        h = 1 / steps
        near = moved <= epsilon + 0.25 * tokens * h * np.abs(said).max()
        assert far[near].max() >= float(found.divergence[row]) - tokens * h * (1 - math.log(h))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_random_attention_within_epsilon_never_beats_it(epsilon):
    given_texts = texts([2, 5, 9, 30], seed=5)
    weights, values, _, mask = given_texts
    found = strongest_adversary(*given_texts, epsilon)
    rng = torch.Generator().manual_seed(1)
    for sharpness in (1.0, 5.0, 30.0):
        noise = sharpness * torch.randn(4, 500, 30, generator=rng, dtype=torch.float64)
        other = noise.masked_fill(~mask[:, None], float("-inf")).softmax(-1)
        # Towards the own attention the logit returns to its own, so mixing makes any attention allowed.
        for share in (1.0, 0.5, 0.1, 0.01):
            mixed = share * other + (1 - share) * weights[:, None]
            logits = (mixed @ values)[..., 0] + given_texts[2]
            own = (weights[:, None] @ values)[..., 0] + given_texts[2]
            allowed = (logits.sigmoid() - own.sigmoid()).abs() <= epsilon
            beaten = jensen_shannon(mixed, weights[:, None]) > found.divergence[:, None] + 1e-7
            assert not (allowed & beaten).any()


def test_two_tokens_by_hand():
    found = strongest_adversary(*one_text([0.5, 0.5], [-1.0, 1.0]), 0.1)
    share = 0.5 * (1 + math.log(0.6 / 0.4))
    assert found.weights.max().item() == pytest.approx(share, abs=1e-7)
    expected = comparison.jensen_shannon([share, 1 - share], [0.5, 0.5])
    assert found.divergence.item() == pytest.approx(expected, abs=1e-8)
    assert found.output_change.item() == pytest.approx(0.1, abs=1e-8) and found.output_change.item() <= 0.1


def test_a_saturated_output_opens_the_slab_on_one_side():
    weights = [0.7, 0.2, 0.1]
    free = strongest_adversary(*one_text(weights, [0.0, 1.0, 2.0], bias=9.0), 0.01)
    assert free.divergence.item() == pytest.approx(at_corners(torch.tensor(weights).double()).max().item())
    # Upwards anything goes, downwards nothing much: the least attended token would cost the answer.
    half = strongest_adversary(*one_text(weights, [0.0, 1.0, -40.0], bias=9.0), 0.01)
    assert half.output_change.item() <= 0.01 and half.weights[0, 2] < 0.2
    assert half.divergence.item() < free.divergence.item()


def test_a_probability_that_underflows_still_has_its_side():
    found = strongest_adversary(*one_text([0.999, 0.001], [0.0, 2000.0], bias=-802.0), 0.01)
    assert found.exact and found.output_change.item() <= 0.01
    assert found.weights[0, 1].item() == pytest.approx((logit(0.01) + 802) / 2000, abs=1e-6)


def test_equal_values_let_it_reach_whatever_is_attainable():
    weights, values, bias, mask = texts([2, 3, 10, 50])
    found = strongest_adversary(weights, values[:, :1].expand_as(values), bias, mask, 0.01)
    p = weights.masked_fill(~mask, 2.0).amin(1)
    formula = (2 / (1 + p)).log() / 2 + (p * (2 * p / (1 + p)).log() + (1 - p) * math.log(2)) / 2
    torch.testing.assert_close(found.divergence, formula, atol=1e-12, rtol=0)
    torch.testing.assert_close(attainable(weights, mask), formula, atol=1e-12, rtol=0)
    assert (found.output_change < 1e-12).all()


def test_one_token_has_nowhere_to_go():
    for classes in (1, 2, 3):
        weights, values, bias, mask = texts([1, 4], classes=classes, dtype=torch.float32)
        weights[0, 0] = 1 - 1e-6  # a mass that rounding left below one is not a divergence
        found = strongest_adversary(weights, values, bias, mask, 0.01)
        assert found.divergence[0] == 0 and found.bound[0] == 0 and found.output_change[0] == 0


@pytest.mark.parametrize("garbage", [7.0, float("nan"), float("inf")])
def test_padding_may_hold_anything(garbage):
    weights, values, bias, mask = texts([3, 8, 5])
    clean = strongest_adversary(weights, values, bias, mask, 0.05)
    dirty = strongest_adversary(
        weights.masked_fill(~mask, garbage), values.masked_fill(~mask[:, :, None], garbage), bias, mask, 0.05
    )
    assert torch.equal(clean.weights, dirty.weights) and torch.equal(clean.divergence, dirty.divergence)


def test_real_tokens_may_stand_anywhere():
    weights, values, bias, mask = texts([3, 8, 5])
    flipped = strongest_adversary(weights.flip(1), values.flip(1), bias, mask.flip(1), 0.05)
    straight = strongest_adversary(weights, values, bias, mask, 0.05)
    torch.testing.assert_close(flipped.divergence, straight.divergence, atol=1e-12, rtol=0)
    torch.testing.assert_close(flipped.weights.flip(1), straight.weights, atol=1e-12, rtol=0)


@pytest.mark.parametrize("chunk", [1, 50, 1 << 16])
def test_texts_of_any_length_together_equal_one_by_one(chunk, monkeypatch):
    lengths = [40, 2, 1, 5, 3, 150, 6, 31, 4, 77]
    weights, values, bias, mask = texts(lengths, seed=8)
    alone = [
        strongest_adversary(weights[n : n + 1, :t], values[n : n + 1, :t], bias, mask[n : n + 1, :t], 0.02)
        for n, t in enumerate(lengths)
    ]
    monkeypatch.setattr(slab, "CHUNK", chunk)
    monkeypatch.setattr(slab, "ROUND", chunk // 16)
    together = strongest_adversary(weights, values, bias, mask, 0.02)
    torch.testing.assert_close(
        together.divergence, torch.cat([a.divergence for a in alone]), atol=1e-12, rtol=0
    )


def test_a_long_text_is_looked_at_in_pieces(monkeypatch):
    seen, gains = [], slab._gains

    def watched(below, above):
        found = gains(below, above)
        seen.append(found.numel())
        return found

    monkeypatch.setattr(slab, "_gains", watched)
    given_texts = texts([4000], seed=2, dtype=torch.float32)
    found = strongest_adversary(*given_texts, 0.01)
    assert sum(seen) >= 4_000_000 and max(seen) <= slab.CHUNK
    assert_sound(found, *given_texts, 0.01)


def test_the_pairs_of_like_texts_are_nearly_all_that_is_looked_at(monkeypatch):
    """Half of all pairs lie on one side of a level; padding must not bring them back."""
    seen, gains = [], slab._gains
    monkeypatch.setattr(slab, "_gains", lambda b, a: seen.append((b, a)) or gains(b, a))
    weights, values, bias, mask = texts([60 + n % 9 for n in range(128)], seed=3)
    strongest_adversary(weights, values, bias, mask, 0.01)
    looked_at = sum(b.weights.shape[0] * b.weights.shape[1] * a.weights.shape[1] for b, a in seen)
    needed = sum(int((b.kept > -1e9).sum(1) @ (a.kept > -1e9).sum(1)) for b, a in seen)
    assert looked_at < 1.6 * needed and len(seen) < 40


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_more_freedom_never_means_less_divergence(classes):
    given_texts = texts([4, 1, 9, 20], classes=classes, seed=4)
    epsilons = [0.05, 0.001, 1.0, 0.01, 0.3]
    curve = epsilon_curve(*given_texts, epsilons)
    assert curve.shape == (5, 4)
    assert (curve[torch.tensor(epsilons).argsort()].diff(dim=0) >= 0).all()
    for epsilon, divergences in zip(epsilons, curve, strict=True):
        alone = strongest_adversary(*given_texts, epsilon).divergence
        assert (divergences >= alone).all()
        if classes < 3:
            torch.testing.assert_close(divergences, alone, atol=1e-12, rtol=0)


def test_two_logits_are_one_logit_of_their_difference():
    weights, values, bias, mask = texts([2, 6, 15], classes=2)
    pair = strongest_adversary(weights, values, bias, mask, 0.03)
    difference = values[..., 1:] - values[..., :1]
    single = strongest_adversary(weights, difference, bias[1:] - bias[:1], mask, 0.03)
    assert pair.exact and single.exact
    torch.testing.assert_close(pair.divergence, single.divergence, atol=1e-10, rtol=0)
    torch.testing.assert_close(pair.weights, single.weights, atol=1e-8, rtol=0)


def test_where_one_of_two_answers_is_impossible_nothing_holds_it_back():
    weights, values, bias, mask = texts([5, 5, 5], classes=2)
    answers = torch.tensor([[True, False], [True, True], [False, False]])
    values[0, :, 1] = float("nan")  # what an impossible answer would say does not matter
    found = strongest_adversary(weights, values, bias, mask, 0.01, answers=answers)
    plain = strongest_adversary(weights[1:2], values[1:2], bias, mask[1:2], 0.01)
    assert found.divergence[0].item() == pytest.approx(attainable(weights, mask)[0].item(), abs=1e-12)
    assert found.divergence[1] == plain.divergence[0] and found.divergence[2].isnan()


def test_single_precision_is_accepted_and_answered_in_double():
    given_texts = texts([3, 20, 40], dtype=torch.float32, scale=20.0)
    found = strongest_adversary(*given_texts, 0.01)
    assert found.weights.dtype == found.divergence.dtype == torch.float64
    assert found.exact
    assert_sound(found, *given_texts, 0.01)


@pytest.mark.parametrize("classes", [1, 2, 3])
@pytest.mark.parametrize("where", ["weights", "values", "mass"])
def test_an_undefined_text_is_nan_and_the_others_are_not(classes, where):
    weights, values, bias, mask = texts([4, 6, 6], classes=classes)
    expected = strongest_adversary(weights, values, bias, mask, 0.05)
    if where == "values":
        values[1, 2, 0] = float("nan")
    else:
        weights[1, 2] = float("nan") if where == "weights" else 3.0
    found = strongest_adversary(weights, values, bias, mask, 0.05)
    for field in ("divergence", "output_change", "bound"):
        got, clean = getattr(found, field), getattr(expected, field)
        assert got[1].isnan() and torch.equal(got[[0, 2]], clean[[0, 2]])
    assert found.weights[1].isnan().all() and torch.equal(found.weights[[0, 2]], expected.weights[[0, 2]])
    assert epsilon_curve(weights, values, bias, mask, [0.01, 0.05])[:, 1].isnan().all()


@pytest.mark.parametrize("epsilon", [0.0, -0.1, float("nan"), 1.5, float("inf")])
def test_an_epsilon_outside_its_range_is_refused(epsilon):
    with pytest.raises(Refusal, match="epsilon"):
        strongest_adversary(*texts([3]), epsilon)
    with pytest.raises(Refusal, match="epsilon"):
        epsilon_curve(*texts([3]), [0.1, epsilon])


def test_an_epsilon_of_one_is_no_limit():
    weights, values, bias, mask = texts([3, 9])
    found = strongest_adversary(weights, values, bias, mask, 1)
    torch.testing.assert_close(found.divergence, attainable(weights, mask), atol=1e-12, rtol=0)


@pytest.mark.parametrize("wrong", ["weights", "values", "bias", "mask", "flat", "answers", "one logit"])
def test_shapes_that_do_not_fit_are_refused(wrong):
    weights, values, bias, mask = texts([3, 4], classes=1 if wrong == "one logit" else 2)
    answers = torch.ones(2, values.shape[2], dtype=torch.bool) if wrong in ("answers", "one logit") else None
    changed = {
        "weights": (weights[:1], values, bias, mask),
        "values": (weights, values[:, :3], bias, mask),
        "bias": (weights, values, bias[:1], mask),
        "mask": (weights, values, bias, mask[:, :2]),
        "flat": (weights, values[..., 0], bias, mask),
    }.get(wrong, (weights, values, bias, mask))
    if wrong == "answers":
        answers = answers[:, :1]
    with pytest.raises(Refusal, match="shapes"):
        strongest_adversary(*changed, 0.1, answers=answers)


def test_a_text_without_tokens_is_refused():
    weights, values, bias, mask = texts([3, 4])
    with pytest.raises(Refusal, match="1 texts without any real token"):
        strongest_adversary(weights, values, bias, mask & torch.tensor([[True], [False]]), 0.1)


def test_the_kernels_are_those_of_the_findings():
    rng = torch.Generator().manual_seed(0)
    p = torch.randn(6, 5, generator=rng).double().softmax(-1)
    q = torch.eye(5).double()[[0, 1, 2, 3, 4, 0]]
    both = torch.stack([jensen_shannon(p, q), jensen_shannon(q, p), jensen_shannon(p, p)])
    expected = [comparison.jensen_shannon(x.numpy(), y.numpy()) for x, y in ((p, q), (q, p), (p, p))]
    np.testing.assert_allclose(both.numpy(), np.stack(expected), atol=1e-15)
    torch.testing.assert_close(jensen_shannon(torch.eye(5).double(), p[:1]), at_corners(p[0]))
    assert jensen_shannon(q[:1], q[1:2]).item() == pytest.approx(math.log(2), abs=1e-15)
    assert jensen_shannon(p * float("nan"), q).isnan().all()


def test_the_divergence_has_gradients_even_beside_zeros():
    p = torch.tensor([0.0, 0.25, 0.75], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([0.5, 0.0, 0.5], dtype=torch.float64)
    jensen_shannon(p, q).backward()
    slope = 0.5 * (2 * p.detach() / (p.detach() + q)).log()
    assert p.grad.isfinite().all()
    torch.testing.assert_close(p.grad[1:], slope[1:])
