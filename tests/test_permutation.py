"""Permutation (JW-4): fast and brute-force roads, and the closed form of its moments."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attentest.evidence.permutation import (
    medians,
    orders,
    output_changes,
    permuted,
    permuted_logits,
    shared_orders,
)
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.permutation.observe import Permutation
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from tests.toys import seeded, toy_batch, toy_corpus, toy_model


def reading_of(model, corpus):
    with torch.no_grad():
        return model.read(toy_batch(model, corpus))


def test_a_permutation_moves_weights_over_real_tokens_only():
    corpus = toy_corpus()
    reading = reading_of(toy_model(corpus), corpus)
    orders = permuted(reading.weights, reading.mask, 50, rng=seeded())
    assert (orders.masked_fill(reading.mask[:, None], 0) == 0).all()
    assert torch.equal(orders.sort(-1).values, reading.weights[:, None].expand_as(orders).sort(-1).values)


def test_every_order_of_three_tokens_is_as_likely_as_the_others():
    weights, mask = torch.tensor([[0.5, 0.3, 0.2, 0.0]]), torch.tensor([[True, True, True, False]])
    drawn = permuted(weights, mask, 6000, rng=seeded())[0, :, :3]
    _, counts = drawn.unique(dim=0, return_counts=True)
    assert len(counts) == 6 and (counts - 1000).abs().max() < 150


def plain_permutations(reading, count, rng):
    """The weights of each text under the shared orders, written out and padded with zeros."""
    given = torch.zeros(len(reading.weights), count, reading.weights.shape[1])
    for texts, order in shared_orders(reading.mask.sum(1), count, rng=rng):
        for text in texts.tolist():
            for variant in range(count):
                given[text, variant, : len(order)] = reading.weights[text][order[:, variant]]
    return given


@pytest.mark.parametrize("query", [False, True], ids=["values", "two-layer"])
def test_many_permutations_at_once_equal_one_at_a_time(query, monkeypatch):
    corpus = toy_corpus(query=query)
    model = toy_model(corpus)
    reading = reading_of(model, corpus)
    assert (reading.values is None) == query, "both roads are meant to be taken"
    given = plain_permutations(reading, 20, seeded(3))
    with torch.no_grad():
        own = distribution(model.decide(reading))
        alone = [
            0.5 * (distribution(model.decide(reading, given[:, n].contiguous())) - own).abs().sum(-1)
            for n in range(20)
        ]
        asked = []
        decide = model.decide
        monkeypatch.setattr(model, "decide", lambda *args: asked.append(len(args)) or decide(*args))
        together = output_changes(model, reading, 20, rng=seeded(3))
    assert asked == ([1, 2] if query else [1]), "an affine decision is not asked again"
    torch.testing.assert_close(together, torch.stack(alone, dim=1), atol=1e-6, rtol=1e-4)


def test_impossible_answers_stay_impossible():
    corpus = toy_corpus(query=True)
    model = toy_model(corpus, decoder="affine")
    batch = toy_batch(model, corpus)
    answers = torch.ones(len(batch.tokens), len(model.labels), dtype=torch.bool)
    answers[:, 0] = False
    with torch.no_grad():
        reading = model.read(replace(batch, answers=answers))
        logits = permuted_logits(model, reading, 5, rng=seeded())
        told = model.decide(reading, plain_permutations(reading, 5, seeded()))
    assert reading.values is not None and torch.isneginf(logits[..., 0]).all()
    torch.testing.assert_close(logits, told, atol=1e-6, rtol=1e-4)


def test_shared_orders_are_uniform_at_every_length():
    """Grown from one length to the next, and independent from one column to the next."""
    lengths = torch.tensor([4, 1, 2, 4, 3])
    seen = {len(order): (texts, order) for texts, order in shared_orders(lengths, 24_000, rng=seeded())}
    assert {size: texts.tolist() for size, (texts, _) in seen.items()} == {1: [1], 2: [2], 3: [4], 4: [0, 3]}
    for size, (_, order) in seen.items():
        kinds, counts = order.unique(dim=1, return_counts=True)
        assert kinds.shape[1] == math.factorial(size), "every order occurs"
        assert (counts / 24_000 * len(counts) - 1).abs().max() < 0.15, "each as often as any other"


def test_chunks_change_nothing_but_memory(monkeypatch):
    corpus = toy_corpus()
    model = toy_model(corpus)
    reading = reading_of(model, corpus)
    with torch.no_grad():
        monkeypatch.setattr("attentest.evidence.permutation.CHUNK", 7 * reading.weights.numel())
        changes = output_changes(model, reading, 20, rng=seeded(5))
    assert changes.shape == (len(reading.weights), 20)
    assert (changes >= 0).all() and (changes <= 1).all()


def test_the_moments_of_a_permuted_logit_have_their_closed_form():
    """Over all permutations: mean(v), and sum((v - mean v)^2)/(T-1) * (sum alpha^2 - 1/T)."""
    torch.manual_seed(0)
    weights, values = torch.rand(1, 8).softmax(-1).double(), torch.randn(8).double()
    orders = permuted(weights, torch.ones(1, 8, dtype=torch.bool), 40_000, rng=seeded())[0]
    logits = orders @ values
    spread = ((values - values.mean()) ** 2).sum() / 7 * ((weights**2).sum() - 1 / 8)
    assert abs(float(logits.mean() - values.mean())) < 4 * float((spread / 40_000).sqrt())
    assert float(logits.var()) == pytest.approx(float(spread), rel=0.05)


def test_uniform_attention_and_equal_states_cannot_be_moved():
    corpus = toy_corpus()
    uniform = toy_model(corpus, projection="uniform")
    alike = toy_model(corpus, encoder="average")
    torch.nn.init.zeros_(alike.encoder.network[0].weight)
    with torch.no_grad():
        for model in (uniform, alike):
            changes = output_changes(model, reading_of(model, corpus), 30, rng=seeded())
            assert changes.max() < 1e-6


def test_rows_tell_every_text_and_one_token_is_not_a_number(rng):
    corpus = toy_corpus()
    step = Permutation(permutations=11)
    model = toy_model(corpus)
    configs = step.siblings(model.config)
    assert configs["untrained"].epochs == 0
    assert configs["shuffled labels"].labels == "shuffled-all"
    subject = Subject(corpus, model.config, InMemory(dict.fromkeys(("trained", *configs), model), configs))
    rows = list(step.observe(subject, rng))
    assert sorted(r["id"] for r in rows if r["subject"] == "trained") == sorted(e.id for e in corpus.test)
    alone = [r for r in rows if r["length"] == 1]
    assert alone and all(np.isnan(r["median_change"]) for r in alone)
    again = list(step.observe(subject, np.random.default_rng(0)))
    assert str(again) == str(rows), "the same rng draws the same permutations"


def test_no_permutations_are_refused():
    with pytest.raises(Refusal, match="at least 1"):
        Permutation(permutations=0)


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_medians_are_numpys(count):
    changes = torch.rand(9, count, generator=seeded())
    np.testing.assert_array_equal(medians(changes), np.median(changes.double().numpy(), axis=1))


@pytest.mark.parametrize("units", [1, 5, 40, 300])
def test_orders_are_those_of_sorted_keys(units):
    """The packed integers are a fast road; the slow one asks for the places of a sort of the same keys."""
    mask = torch.arange(units)[None] < torch.tensor([[units], [max(1, units // 2)]])
    found = orders(mask, 50, rng=seeded())
    keys = torch.rand(2, 50, units, generator=seeded()).masked_fill(~mask[:, None], 2.0)
    assert torch.equal(found, keys.argsort(dim=-1, stable=True))
