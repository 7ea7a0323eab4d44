"""Parts and texts of alike length share a pass: the same answers as one by one, and little padding."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from attentest.auditing.api import audit
from attentest.auditing.questions import BUDGETS
from attentest.auditing.rankings import agreed, erased
from attentest.auditing.subject import audited_subject, on_the_bench
from attentest.corpus.example import Example
from attentest.evidence.erasure import parts
from attentest.evidence.erasure.drawn_units import drawn_units
from attentest.evidence.erasure.known import KnownParts
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.given_attention import GivenAttention
from attentest.evidence.importances.gradient_under import gradients_under
from attentest.evidence.importances.nested_integration import integrated_to, without_vectors
from attentest.evidence.importances.presence import answers_to_parts, changes_without, explained
from attentest.evidence.importances.sampled import Precision, sampled
from attentest.experiments.importance.observe import Importances
from attentest.foreign.transformer import TransformerModel
from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.reader import readings, together
from tests.families import made, tiny, tokenizer
from tests.toys import seeded

WORDS = ("the", "film", "cat", "unlikely", "sat", "good", "bad", "far")
LENGTHS = (3, 7, 12, 4, 9, 2, 5, 12)
ASKED = Precision(error=1e-6, first=4, most=8, steps=7)


def texts(lengths=LENGTHS):
    return [
        Example(id=str(n), tokens=tuple(WORDS[(n + 3 * word) % 8] for word in range(length)), label="")
        for n, length in enumerate(lengths)
    ]


def read(family="bert", **choice):
    model, _ = made(family, double=True, **choice)
    split = model.split(texts())
    with torch.no_grad():
        return model, model.read(split.batch(range(len(split))))


@pytest.fixture
def passes(monkeypatch):
    """The padded and the real tokens of every pass that is made."""
    seen, inner = [], TransformerModel.read

    def counted(self, batch, **more):
        seen.append((batch.mask.numel(), int(batch.mask.sum())))
        return inner(self, batch, **more)

    monkeypatch.setattr(TransformerModel, "read", counted)
    return seen


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_leaving_out_in_passes_of_alike_length_is_leaving_out_one_by_one(family, monkeypatch, passes):
    monkeypatch.setattr(parts, "OVERHEAD", 2)
    model, reading = read(family)
    given = GivenAttention.permuted(reading, 2, rng=seeded())
    passes.clear()
    found = leave_one_out(model, reading, given=given)
    padded, real = np.array(passes).sum(0)
    assert found.road == "whole" and len(passes) > 5 and padded <= 1.25 * real
    with torch.no_grad():
        own = distribution(model.decide(reading))
        moved = distribution(model.decide(reading, given.weights))
        for text, length in enumerate(LENGTHS):
            for unit in range(length):
                kept = reading.mask[text].clone()
                kept[unit] = False
                alone, again = parts.read_parts(model, reading, torch.tensor([text]), kept[None])
                change = total_variation(distribution(alone.decide(again)), own[text : text + 1])
                torch.testing.assert_close(found.change[text, unit], change[0])
                rest = given.weights[text : text + 1, ..., kept]
                logits = alone.decide(again, rest / rest.sum(-1, keepdim=True))
                change = total_variation(distribution(logits[0]), moved[text])
                torch.testing.assert_close(found.under[text, :, unit], change)
    assert not found.change[~reading.mask].any()


def test_groups_of_alike_length_hold_every_part_once_and_padding_that_is_cheaper_than_a_pass():
    lengths = np.random.default_rng(0).integers(1, 30, size=200)
    order = np.argsort(lengths, kind="stable")
    exact = list(parts.alike(order, lengths, 0))
    assert [set(lengths[group]) for group in exact] == [{length} for length in np.unique(lengths)]
    for most in (5, 48, 10**6):
        groups = list(parts.alike(order, lengths, most))
        assert np.concatenate(groups).tolist() == order.tolist() and len(groups) < len(exact)
        for group, behind in itertools.pairwise(groups):
            assert len(group) * (lengths[behind[0]] - lengths[group[-1]]) > most
        for group in groups:
            steps = np.diff(lengths[group]) * np.arange(1, len(group))
            assert not len(steps) or steps.max() <= most
    assert len(groups) == 1


def test_importances_under_given_attention_take_one_graph_and_are_those_of_each_draw(passes):
    model, reading = read()
    given = GivenAttention.joined(
        GivenAttention.own(reading), GivenAttention.permuted(reading, 2, rng=seeded())
    )
    slow = gradients_under(model, reading, given.weights)
    assert slow.road == "each draw"
    passes.clear()
    found = Importances.of(model, reading.batch, given)
    of_whole_texts = [real for _, real in passes if real == int(reading.batch.mask.sum())]
    assert len(of_whole_texts) == 1, "gradients and draws share one reading"
    np.testing.assert_allclose(found.gradient_under, slow.times_input.numpy(), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.gradient_under[:, 0], found.gradient, rtol=1e-12)


def test_integrated_gradients_of_alike_texts_are_those_of_all_together(monkeypatch, passes):
    model, reading = read()
    monkeypatch.setattr(parts, "OVERHEAD", 10**6)
    whole = integrated_to(model, reading, ASKED)
    before = np.array(passes).sum(0)
    passes.clear()
    monkeypatch.setattr(parts, "OVERHEAD", 0)
    apart = integrated_to(model, reading, ASKED)
    after = np.array(passes).sum(0)
    torch.testing.assert_close(apart.values, whole.values, rtol=1e-6, atol=1e-10)
    assert torch.equal(apart.steps, whole.steps)
    assert after[0] <= 1.06 * after[1] and before[0] > 1.3 * before[1]


@pytest.mark.parametrize("pairs", [False, True])
def test_without_vectors_texts_of_a_length_have_one_answer_unless_a_second_text_tells_them_apart(
    pairs, passes
):
    model, _ = made("bert", double=True)
    second = [("good", "film"), ("cat",), ("bad",)] * 3
    pool = [replace(each, query=second[n] if pairs else None) for n, each in enumerate(texts())]
    split = model.split(pool)
    with torch.no_grad():
        reading = model.read(split.batch(range(len(pool))))
    passes.clear()
    found = without_vectors(model, reading)
    assert [real for _, real in passes] == [int(reading.batch.mask.sum())] or not pairs
    best = explained(model, reading).predicted
    for text in range(len(pool)):
        batch = split.batch([text])
        with torch.no_grad():
            vectors = torch.zeros(1, batch.mask.shape[1], reading.embeddings.shape[2], dtype=torch.float64)
            alone = distribution(model.decide(model.read(batch, embeddings=vectors)))
        torch.testing.assert_close(found[text], alone[0, best[text]])
    assert pairs or passes[0][1] < int(reading.batch.mask.sum())


def test_parts_are_of_all_texts_benchand_rows_are_those_of_texts_read_apart(passes):
    """Texts of at most 5 units, where nothing is drawn."""
    rows = {}
    for alike in (1, 4, 16):
        model, _ = made("bert", double=True)
        subject = audited_subject(on_the_bench(model), texts((2, 3, 5, 4, 5, 1)))
        assert subject.texts.alike == 16 and subject.texts.at_once is None
        subject.texts.at_once = None if alike == 16 else alike
        asked = [*agreed(subject, ASKED, seeded())], [*erased(subject, 1, seeded())]
        rows[alike] = {row["id"]: row for row in asked[0]}, {row["id"]: row for row in asked[1]}
    for name in ("leave-one-out", "shapley", "lime", "integrated-gradients"):
        values = [[rows[alike][0][str(n)][name] for n in range(6)] for alike in rows]
        np.testing.assert_allclose(values[1:], [values[0]] * 2, rtol=1e-6, atol=1e-9)
    values = [[rows[alike][1][str(n)]["comprehensiveness"] for n in range(6)] for alike in rows]
    np.testing.assert_allclose(values[1:], [values[0]] * 2, rtol=1e-6, atol=1e-9)


def test_who_asks_about_parts_reads_more_texts_benchunless_the_user_says_how_many():
    model, _ = made("bert")
    split = model.split(texts(tuple(range(1, 31))))
    split.alike = 16
    assert [len(rows) for rows, _ in readings(model, split)] == [16, 14]
    assert [len(rows) for rows, _ in readings(model, split, parts=True)] == [30]
    split.at_once = 12
    assert together(split) == together(split, parts=True) == 12


def test_draws_are_added_as_the_error_asks_for_and_given_up_where_it_is_out_of_reach():
    precision = Precision(error=0.3, first=4, enough=8, most=32, reach=2.0)
    for error, drawn, wanted in (
        (9.9, 0, 4),  # nothing is known yet
        (0.1, 4, 4),  # small, by too few draws to be believed
        (0.5, 4, 4),  # 11.1 are needed, and twice as many come at a time
        (1.3, 4, 0),  # 75 are needed: more than twice the most
        (0.29, 8, 0),
        (0.35, 8, 3),  # 10.9 are needed
        (0.6, 8, 8),
        (0.35, 24, 8),  # 32.7 are needed, 32 is the most
        (0.35, 32, 0),
    ):
        found = precision.wanted(torch.tensor([error], dtype=torch.float64), torch.tensor([drawn]))
        assert found.tolist() == [wanted], (error, drawn)


def test_of_a_long_text_some_units_are_ranked_and_they_have_the_numbers_that_they_have_among_all(passes):
    """Every question draws the same; gradients and leave-one-out are what they are beside all the others."""
    model, reading = read()
    units = drawn_units(reading, 4)
    assert units.sum(1).tolist() == [min(4, length) for length in LENGTHS]
    assert torch.equal(units, drawn_units(reading, 4)) and not (units & ~reading.mask).any()
    assert drawn_units(reading, 12) is None and drawn_units(reading, None) is None
    given = GivenAttention.joined(
        GivenAttention.own(reading), GivenAttention.permuted(reading, 2, rng=seeded())
    )
    passes.clear()
    some, known = Importances.of(model, reading.batch, given, KnownParts(), units), KnownParts()
    asked = int(units.sum()), sum(real for _, real in passes)
    passes.clear()
    whole = Importances.of(model, reading.batch, given, known)
    assert asked[1] < 0.6 * sum(real for _, real in passes)
    assert some.lengths.tolist() == units.sum(1).tolist() and some.weights.shape[1] == 4
    for name in ("weights", "gradient", "loo", "norm_held", "norm_free", "gradient_under", "loo_under"):
        found, all_of_them = getattr(some, name), getattr(whole, name)
        for text, there in enumerate(units.numpy()):
            count = there.sum()
            np.testing.assert_allclose(found[text, ..., :count], all_of_them[text][..., there], rtol=1e-9)
            assert not found[text, ..., count:].any()
    left = KnownParts()
    leave_one_out(model, reading, known=left, units=units)
    assert len(left) == asked[0], "no other unit was left out"
    torch.testing.assert_close(
        changes_without(model, reading, known=left, units=units),
        changes_without(model, reading, known=known).masked_fill(~units, 0.0),
    )
    assert len(left) == asked[0]


def test_shapley_values_of_drawn_units_are_those_of_a_game_in_which_the_others_stay():
    """Against all orders in which the drawn units of one text may join the others."""
    model, reading = read()
    units = drawn_units(reading, 4)
    found = sampled(model, reading, ASKED, rng=seeded(), units=units)
    for text in (1, 2):
        players, fixed = units[text].nonzero()[:, 0].tolist(), reading.mask[text] & ~units[text]
        assert fixed.any()
        worth = dict.fromkeys(players, 0.0)
        for order in itertools.permutations(players):
            there = fixed.clone()
            for player in order:
                before = answer(model, reading, text, there)
                there[player] = True
                worth[player] += (answer(model, reading, text, there) - before) / 24
        values = torch.tensor([worth[player] for player in players], dtype=torch.float64)
        torch.testing.assert_close(found.shapley[text, players], values, rtol=1e-5, atol=1e-9)
        assert not found.shapley[text, fixed].any() and found.pairs[text] == 0


def answer(model, reading, text, there):
    kept = torch.zeros(len(reading.mask), 1, reading.mask.shape[1], dtype=torch.bool)
    kept[text, 0] = there
    return float(answers_to_parts(model, reading, kept)[text, 0])


def test_an_audit_says_of_how_many_texts_some_words_were_ranked(monkeypatch):
    monkeypatch.setitem(BUDGETS, "quick", replace(BUDGETS["quick"], units=8, searched=2))
    found = audit(tiny(), texts(), tokenizer=tokenizer(), budget="quick")
    assert "3 of 8 texts have more than 8 units" in " ".join(found.said)
    assert found.audit.drawn["agreement"]["units"] == np.mean([min(8, length) for length in LENGTHS])
    monkeypatch.setitem(BUDGETS, "quick", replace(BUDGETS["quick"], units=12))
    short = audit(tiny(), texts(), tokenizer=tokenizer(), budget="quick")
    assert not any("more than" in said for said in short.said)


def test_a_mean_over_heads_is_taken_of_the_reading_with_heads_that_is_held(passes):
    model, _ = made("bert", double=True)
    bench, split = on_the_bench(model), model.split(texts())
    apart = [reading for _, reading in readings(bench, split)]
    split.held = {}
    with_heads = [reading for _, reading in readings(model, split)]
    count = len(passes)
    held = [reading for _, reading in readings(bench, split)]
    assert len(passes) == count and len(held) == len(with_heads) == len(apart)
    for one, other in zip(held, apart, strict=True):
        torch.testing.assert_close(one.weights, other.weights)
        torch.testing.assert_close(bench.decide(one), bench.decide(other))
