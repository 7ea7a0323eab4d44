"""LIME and Shapley values to a precision: against all parts of short texts, and against long runs."""

import itertools
import math

import numpy as np
import pytest
import torch

from attentest.evidence.erasure.known import KnownParts
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances import presence
from attentest.evidence.importances.faithfulness import faithfulness, random_scores
from attentest.evidence.importances.integrated_gradients import integrated_gradients
from attentest.evidence.importances.lime import PENALTY, nearness, ridge
from attentest.evidence.importances.nested_integration import integrated_to, nested_rule
from attentest.evidence.importances.presence import answers_to_parts, changes_without, explained
from attentest.evidence.importances.sampled import NOMINAL, Precision, certain_pairs, drawn_pairs, sampled
from attentest.evidence.importances.shapley import over_orders
from attentest.refusal import Refusal
from tests.toys import in_double, read, seeded, toy_corpus, toy_model

ROUGH = Precision(error=1e9, first=8, most=8)


def made(lengths, labels=("no", "yes", "maybe"), **settings):
    corpus = toy_corpus(labels=labels, lengths=lengths)
    model = in_double(toy_model(corpus, **settings))
    return model, read(model, corpus)


def counting(monkeypatch):
    """How many parts are read, by every call."""
    asked, inner = [], presence.road_for

    def counted(model, road):
        def answer(model, reading, texts, parts):
            asked.append(len(texts))
            return inner(model, road)(model, reading, texts, parts)

        return answer

    monkeypatch.setattr(presence, "road_for", counted)
    return asked


def test_a_precision_out_of_reach_is_not_drawn_for():
    model, reading = made((9, 12, 14))
    assert sampled(model, reading, Precision(error=1e-6), rng=seeded()).pairs.tolist() == [8] * 3


def test_short_texts_are_asked_about_in_all_their_parts_and_have_the_shapley_values():
    model, reading = made((2, 3, 4, 5))
    found = sampled(model, reading, Precision(), rng=seeded())
    assert found.pairs.tolist() == [0] * 4 and found.error.tolist() == [0] * 4
    for row, units in enumerate(reading.mask.sum(1).tolist()):
        every = torch.tensor([*itertools.permutations(range(units))])
        padded = torch.cat([every, torch.arange(units, 5).expand(len(every), -1)], dim=1)
        exact = over_orders(model, reading, padded[None].expand(4, -1, -1))[row]
        torch.testing.assert_close(found.shapley[row], exact, atol=1e-6, rtol=1e-5)


def test_short_texts_have_the_slopes_of_lime_over_all_parts():
    model, reading = made((5, 5))
    found = sampled(model, reading, Precision(), rng=seeded())
    parts = [p for p in itertools.product((False, True), repeat=5) if 0 < sum(p) < 5]
    kept = torch.tensor([*parts, (True,) * 5])[None].expand(2, -1, -1)
    shares = torch.tensor([*(NOMINAL / (4 * math.comb(5, sum(p))) for p in parts), 1.0])
    slopes = ridge(
        kept.double(),
        answers_to_parts(model, reading, kept).double(),
        nearness(kept, reading.mask) * shares,
    )
    torch.testing.assert_close(found.lime.double(), slopes, atol=1e-6, rtol=1e-4)
    assert PENALTY and float(slopes.std()) > 1e-5


def test_the_certain_and_the_drawn_pairs_stand_for_all_parts_of_all_sizes():
    _, reading = made((1, 2, 3, 4, 5, 6, 11))
    parts, chance = certain_pairs(reading.mask)
    left = 0.5 - chance.sum(1)
    expected = [(n - 3) / (n - 1) / 2 if n > 5 else 0.0 for n in (2, 3, 4, 5, 6, 11)]
    torch.testing.assert_close(left[1:], torch.tensor(expected, dtype=torch.float64))
    assert not (chance[parts.sum(2) == 0] > 0).any()
    sizes = drawn_pairs(reading.mask, torch.full((7,), 640), rng=seeded()).sum(2)[-1]
    assert torch.unique(sizes, return_counts=True)[1].tolist() == pytest.approx([80] * 8, abs=1)
    assert sizes.min() == 2 and sizes.max() == 9


@pytest.mark.parametrize("encoder", ["average", pytest.param("bilstm", marks=pytest.mark.slow)])
def test_the_error_that_is_stated_is_the_error_against_a_long_run(encoder):
    model, reading = made((9, 12, 14), encoder=encoder)
    long = sampled(model, reading, Precision(error=1e-9, first=2048, most=2048), rng=seeded(99))
    for error in (0.3, 0.1):
        ask = Precision(error=error, most=8192)
        runs = [sampled(model, reading, ask, rng=seeded(n)) for n in range(12)]
        for name in ("shapley", "lime"):
            truth = getattr(long, name)
            off = torch.stack([(getattr(run, name) - truth).square().sum(1) for run in runs]).mean(0)
            middle = truth.sum(1, keepdim=True) / reading.mask.sum(1, keepdim=True)
            spread = ((truth - middle) * reading.mask).square().sum(1)
            assert (off / spread).sqrt().max() < 1.6 * error, name
        assert all((run.error <= error).all() for run in runs)
    assert (long.error < 0.1).all() and (long.pairs == 2048).all()


def test_finer_precision_asks_for_more_and_no_more_than_the_most():
    model, reading = made((9, 12, 14))
    rough, fine = (sampled(model, reading, Precision(error=e, most=10**6), rng=seeded()) for e in (0.3, 0.1))
    assert (fine.pairs >= rough.pairs).all() and fine.pairs.sum() > rough.pairs.sum()
    capped = sampled(model, reading, Precision(error=0.1, most=20), rng=seeded())
    assert (capped.pairs <= 20).all() and (capped.error > 0.1).any()
    again = sampled(model, reading, Precision(error=0.3, most=10**6), rng=seeded())
    assert torch.equal(again.shapley, rough.shapley) and torch.equal(again.lime, rough.lime)


def test_a_text_alone_has_the_values_that_it_has_beside_others_as_far_as_nothing_is_drawn():
    model, reading = made((4, 5, 9, 1))
    both = sampled(model, reading, ROUGH, rng=seeded())
    assert both.shapley[3, 0].isnan() and both.lime[3, 0].isnan()
    assert not both.shapley.masked_fill(reading.mask, 0.0).any()
    alone, own = made((4,))
    found = sampled(alone, own, ROUGH, rng=seeded())
    assert found.shapley.shape == (1, 4) and both.pairs.tolist() == [0, 0, 8, 0]


def test_shapley_values_add_up_whatever_was_drawn():
    model, reading = made((6, 9, 13))
    about = explained(model, reading)
    for run in range(3):
        found = sampled(model, reading, ROUGH, rng=seeded(run)).shapley.sum(1)
        torch.testing.assert_close(found, about.probability - about.unread, atol=1e-6, rtol=1e-5)


def test_what_is_known_is_not_asked_again_and_changes_no_number(monkeypatch):
    model, reading = made((7, 9, 1))
    plain = sampled(model, reading, ROUGH, rng=seeded())
    erased = faithfulness(model, reading, random_scores(reading.mask, 2, rng=seeded()).double())
    asked, known = counting(monkeypatch), KnownParts()
    leave_one_out(model, reading, known=known)
    assert len(known) == 16 and not asked
    torch.testing.assert_close(
        changes_without(model, reading, known=known), leave_one_out(model, reading).change, equal_nan=True
    )
    assert not asked, "leave-one-out had asked about all of them"
    shared = sampled(model, reading, ROUGH, rng=seeded(), known=known)
    torch.testing.assert_close(shared.shapley, plain.shapley, equal_nan=True, atol=1e-6, rtol=1e-5)
    first = sum(asked)
    assert first <= 16 + 2 * 8 * 2 and len(known) == 16 + first
    found = faithfulness(model, reading, random_scores(reading.mask, 2, rng=seeded()).double(), known=known)
    torch.testing.assert_close(found.comprehensiveness, erased.comprehensiveness, equal_nan=True)
    assert sum(asked) - first <= 9, "the tops of one unit and the texts without it were known"
    again = KnownParts()
    again.take(known.written(0))
    asked.clear()
    sampled(model, reading, ROUGH, rng=seeded(), known=again)
    assert not asked and len(again) == len(known)


@pytest.mark.parametrize("count", [1, 3, 7, 15, 31])
def test_the_nested_rule_is_exact_for_polynomials_and_holds_the_one_before(count):
    places, shares = nested_rule(count)
    for power in range(count):
        assert (shares * places**power).sum() == pytest.approx(1 / (power + 1), abs=1e-12)
    assert set(nested_rule(count // 2)[0]) <= set(places) or count == 1


@pytest.mark.parametrize("settings", [{}, {"encoder": "average"}, {"encoder": "transformer", "hidden": 6}])
def test_nested_integrated_gradients_are_those_of_many_steps(settings):
    model, reading = made((9, 3, 14, 1), **settings)
    exact = integrated_gradients(model, reading, steps=200)
    middle = exact.sum(1, keepdim=True) / reading.mask.sum(1, keepdim=True)
    spread = ((exact - middle) * reading.mask).norm(dim=1)
    for error in (0.1, 0.01):
        found = integrated_to(model, reading, Precision(error=error, steps=255))
        several = reading.mask.sum(1) > 1
        assert ((found.values - exact).norm(dim=1)[several] <= error * spread[several]).all()
    capped = integrated_to(model, reading, Precision(error=1e-12, steps=7))
    assert capped.steps.tolist() == [7] * 4
    torch.testing.assert_close(
        capped.values, sum_of_rule(model, reading, 7).to(capped.values), atol=1e-9, rtol=1e-6
    )


def sum_of_rule(model, reading, count):
    """The same places one by one, by autograd alone."""
    best, total = explained(model, reading).predicted, 0.0
    for place, share in zip(*nested_rule(count), strict=True):
        vectors = (place * reading.embeddings.detach()).requires_grad_()
        answer = model.decide(model.read(reading.batch, embeddings=vectors)).softmax(-1)
        (slope,) = torch.autograd.grad(answer.gather(1, best[:, None]).sum(), vectors)
        total = total + share * (slope * reading.embeddings.detach()).sum(-1)
    return total


@pytest.mark.parametrize("wrong", [{"error": 0.0}, {"first": 1}, {"most": 3}])
def test_a_precision_that_is_none_is_refused(wrong):
    with pytest.raises(Refusal, match="precision of importances"):
        Precision(**wrong)


def test_chances_are_finite_of_long_texts():
    mask = torch.ones(1, 300, dtype=torch.bool)
    parts, chance = certain_pairs(mask)
    assert np.isfinite(chance.numpy()).all() and parts.shape[2] == 300
