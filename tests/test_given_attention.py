"""Importances under given attention: fast roads against autograd and deletion by hand; partners; nulls."""

import numpy as np
import pytest
import torch

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.given_attention import AttentionPool, GivenAttention
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.gradient_under import gradients_under
from attentest.evidence.importances.value_jacobian import passes_back, value_jacobian
from attentest.model.batch import IndexedSplit
from attentest.model.catalogue import ENCODERS
from attentest.model.networks.decoder import distribution
from tests.toys import in_double, seeded, toy_batch, toy_corpus, toy_model

SEVERAL = ("no", "yes", "maybe")
LENGTHS = (5, 9, 2, 5, 4, 9, 1, 12)
KINDS = {
    "sigmoid": ({}, {}),
    "softmax": ({"decoder": "softmax"}, {"labels": SEVERAL}),
    "affine": ({"decoder": "affine"}, {"query": True, "labels": SEVERAL, "candidates": True}),
    "two-layer": ({"decoder": "two-layer"}, {"query": True, "labels": SEVERAL, "candidates": True}),
}

POSSIBLE = [
    (encoder, kind)
    for encoder in ENCODERS
    for kind in KINDS
    if not (encoder.startswith("han-") and kind in ("affine", "two-layer"))  # hierarchies have no query
]


def made(encoder="bilstm", kind="sigmoid", **settings):
    chosen, of_corpus = KINDS[kind]
    corpus = toy_corpus(lengths=LENGTHS, **of_corpus)
    model = in_double(toy_model(corpus, encoder=encoder, **chosen, **settings))
    with torch.no_grad():
        return model, corpus, model.read(toy_batch(model, corpus))


def given_to(model, corpus, reading, draws=3):
    split = IndexedSplit(corpus.test, model.vocabulary, corpus.labels)
    swapped = AttentionPool.of(model, split).swapped(
        model, reading, np.arange(len(split)), draws, rng=seeded(1)
    )
    return GivenAttention.joined(
        GivenAttention.own(reading), GivenAttention.permuted(reading, draws, rng=seeded()), swapped
    )


@pytest.mark.parametrize(("encoder", "kind"), POSSIBLE)
def test_one_jacobian_serves_all_draws(encoder, kind):
    """The derivative of the probability predicted under each draw, against a pass back for each."""
    model, corpus, reading = made(encoder, kind)
    given = given_to(model, corpus, reading)
    slow = gradients_under(model, reading, given.weights, road="each draw")
    assert slow.road == "each draw"
    if reading.values is None:
        assert gradients_under(model, reading, given.weights).road == "each draw"
        return
    fast = gradients_under(model, reading, given.weights, road="jacobian")
    assert fast.road == "jacobian"
    defined = ~given.weights.isnan().any(-1)
    assert defined.any() and not defined.all()  # the longest text has no partner
    torch.testing.assert_close(fast.times_input[defined], slow.times_input[defined], atol=1e-12, rtol=1e-8)


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "transformer"])
def test_the_own_weights_have_the_gradients_of_jain_and_wallace(encoder):
    model, corpus, reading = made(encoder)
    known = gradients(model, toy_batch(model, corpus)).times_input
    for road in ("jacobian", "each draw"):
        found = gradients_under(model, reading, reading.weights[:, None], road=road).times_input[:, 0]
        torch.testing.assert_close(found, known, atol=1e-12, rtol=1e-8)


@pytest.mark.parametrize(("encoder", "passes"), [("average", 1), ("cnn", 7), ("cnn-wen", 12), ("bilstm", 12)])
def test_a_jacobian_goes_back_once_for_units_that_share_no_word(encoder, passes, monkeypatch):
    model, _, reading = made(encoder)
    assert passes_back(model, reading) == passes
    asked, inner = [], torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *args, **kw: asked.append(1) or inner(*args, **kw))
    found = value_jacobian(model, reading, by_hand=False)
    assert len(asked) == passes
    monkeypatch.setattr("attentest.evidence.importances.value_jacobian.reach", lambda model, units: units)
    torch.testing.assert_close(found, value_jacobian(model, reading, by_hand=False), atol=1e-12, rtol=1e-9)


def test_an_lstm_walks_back_by_hand():
    model, _, reading = made("bilstm", "softmax")
    by_hand, by_passes = value_jacobian(model, reading), value_jacobian(model, reading, by_hand=False)
    torch.testing.assert_close(by_hand, by_passes, atol=1e-12, rtol=1e-8)


def test_the_cheaper_road_is_taken():
    model, corpus, reading = made("transformer")
    few, many = (given_to(model, corpus, reading, draws).weights for draws in (2, 20))
    assert gradients_under(model, reading, few).road == "each draw"
    assert gradients_under(model, reading, many).road == "jacobian"
    lstm, corpus, reading = made("bilstm")
    assert gradients_under(lstm, reading, given_to(lstm, corpus, reading, 2).weights).road == "jacobian"


def deleted_by_hand(model, corpus, reading, weights, scores, row):
    """One text, every unit deleted in turn; the rest keep their scores, projected again over what remains."""
    length = int(reading.mask[row].sum())
    own = distribution(model.decide(reading, weights))[row]
    changes = []
    for left in range(length):
        rest = [place for place in range(length) if place != left]
        if model.projection.name == "stored":
            remain = weights[row, rest] / weights[row, rest].sum()
        else:
            remain = model.projection(scores[row, rest][None], torch.ones(1, length - 1, dtype=torch.bool))[0]
        batch = toy_batch(model, corpus, [row])
        shorter = batch.__class__(
            ids=batch.ids,
            tokens=batch.tokens[:, rest],
            mask=batch.mask[:, rest],
            labels=batch.labels,
            query=batch.query,
            query_mask=batch.query_mask,
            answers=batch.answers,
        )
        if model.projection.name == "stored":
            model.guide[batch.ids[0]] = np.ones(length - 1)
        answer = distribution(model.decide(model.read(shorter), remain[None]))[0]
        changes.append(float((answer - own).abs().sum() / 2))
    return changes


@pytest.mark.parametrize(
    ("kind", "projection"),
    [*((kind, "softmax") for kind in KINDS), ("sigmoid", "sparsemax"), ("two-layer", "entmax15")],
)
@pytest.mark.parametrize("encoder", ["average", "cnn", "bilstm", "bigru", "transformer"])
@torch.no_grad()
def test_leaving_out_under_given_attention_keeps_the_given_scores(encoder, kind, projection):
    model, corpus, reading = made(encoder, kind, projection=projection)
    given = given_to(model, corpus, reading)
    found = leave_one_out(model, reading, given=given)
    whole = leave_one_out(model, reading, given=given, road="whole")
    torch.testing.assert_close(found.change, leave_one_out(model, reading).change, equal_nan=True)
    torch.testing.assert_close(found.under, whole.under, atol=1e-9, rtol=1e-7, equal_nan=True)
    for row, draw in ((0, 0), (1, 2), (3, 5)):
        wanted = deleted_by_hand(model, corpus, reading, given.weights[:, draw], given.scores[:, draw], row)
        assert found.under[row, draw, : len(wanted)].tolist() == pytest.approx(wanted, abs=1e-9)


@torch.no_grad()
def test_without_context_held_scores_are_the_scores_of_the_shorter_text():
    model, _, reading = made("average", projection="sparsemax")
    found = leave_one_out(model, reading, given=GivenAttention.own(reading))
    torch.testing.assert_close(found.under[:, 0], found.change, equal_nan=True)
    contextual, _, reading = made("bilstm")
    found = leave_one_out(contextual, reading, given=GivenAttention.own(reading))
    several = reading.mask.sum(1) > 1
    assert (found.under[several, 0] - found.change[several]).abs().max() > 1e-6


@torch.no_grad()
def test_stored_weights_are_renormalised():
    corpus = toy_corpus(lengths=LENGTHS)
    model = in_double(toy_model(corpus, projection="stored", guide="random"))
    rng = np.random.default_rng(0)
    model.guide = {e.id: rng.dirichlet(np.ones(len(e.tokens))) for e in corpus.test}
    reading = model.read(toy_batch(model, corpus))
    given = GivenAttention.own(reading)
    found = leave_one_out(model, reading, given=given).under[0, 0]
    wanted = deleted_by_hand(model, corpus, reading, given.weights[:, 0], given.scores[:, 0], 0)
    assert found[: len(wanted)].tolist() == pytest.approx(wanted, abs=1e-9)


class TestPartners:
    def pool(self, lengths):
        return AttentionPool([torch.full((n,), 1 / n) for n in lengths], [torch.zeros(n) for n in lengths])

    def test_texts_of_the_same_length_lend_to_each_other_and_never_to_themselves(self):
        pool = self.pool((5, 9, 5, 5, 9))
        found = pool.partners(np.arange(5), 400, rng=seeded())
        assert [set(row) for row in found.tolist()] == [{2, 3}, {4}, {0, 3}, {0, 2}, {1}]
        counts = np.bincount(found[0], minlength=5)[[2, 3]]
        assert abs(counts - 200).max() < 50

    def test_a_lone_length_borrows_from_the_nearest_longer_and_the_longest_from_nobody(self):
        found = self.pool((5, 9, 3, 9, 12)).partners(np.array([2, 0, 4]), 300, rng=seeded())
        assert [set(row) for row in found.tolist()] == [{0}, {1, 3}, {-1}]

    def test_borrowed_weights_are_cut_and_renormalised(self):
        model, corpus, reading = made("average")
        split = IndexedSplit(corpus.test, model.vocabulary, corpus.labels)
        pool = AttentionPool.of(model, split)
        given = pool.swapped(model, reading, np.arange(len(split)), 4, rng=seeded(1))
        partners = pool.partners(np.arange(len(split)), 4, rng=seeded(1))
        for row, length in enumerate(reading.mask.sum(1).tolist()):
            for draw, partner in enumerate(partners[row]):
                if partner < 0:
                    assert given.weights[row, draw].isnan().all()
                    continue
                lent = reading.weights[partner, :length]
                torch.testing.assert_close(given.weights[row, draw, :length], lent / lent.sum())
                assert not given.weights[row, draw, length:].any()

    def test_sparse_weights_are_projected_from_the_borrowed_scores(self):
        model, corpus, reading = made("average", projection="sparsemax")
        split = IndexedSplit(corpus.test, model.vocabulary, corpus.labels)
        given = AttentionPool.of(model, split).swapped(
            model, reading, np.arange(len(split)), 4, rng=seeded(1)
        )
        row = 0
        for draw in range(4):
            wanted = model.projection(given.scores[row, draw, :5][None], reading.mask[row : row + 1, :5])[0]
            torch.testing.assert_close(given.weights[row, draw, :5], wanted)

    def test_permuted_weights_take_their_scores_along(self):
        model, _, reading = made("average", projection="sparsemax")
        given = GivenAttention.permuted(reading, 5, rng=seeded())
        for row, length in enumerate(reading.mask.sum(1).tolist()):
            for draw in range(5):
                scores = given.scores[row, draw, :length]
                assert sorted(scores.tolist()) == sorted(reading.scores[row, :length].tolist())
                weights = model.projection(scores[None], torch.ones(1, length, dtype=torch.bool))[0]
                torch.testing.assert_close(given.weights[row, draw, :length], weights)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("projection", ["softmax", "sparsemax"])
@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "transformer"])
def test_a_gpu_finds_what_a_cpu_does_under_given_attention(encoder, projection):
    corpus = toy_corpus(lengths=LENGTHS)
    model = toy_model(corpus, encoder=encoder, projection=projection)
    found = []
    for device in ("cpu", "cuda"):
        model.to(device)
        with torch.no_grad():
            reading = model.read(toy_batch(model, corpus).to(device))
        given = given_to(model, corpus, reading)
        loo = leave_one_out(model, reading, given=given).under
        gradient = gradients_under(model, reading, given.weights).times_input
        found.append((given.weights.cpu(), loo.cpu(), gradient.cpu()))
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(there, here, atol=1e-5, rtol=1e-3, equal_nan=True)
