"""Permutation (JW-4): fast and brute-force roads, and the closed form of its moments."""

import numpy as np
import pytest
import torch

from attentest.evidence.permutation import medians, orders, output_changes, permuted
from attentest.experiments.contract import Sources, Subject
from attentest.experiments.permutation import Permutation
from attentest.model.decoder import distribution
from attentest.refusal import Refusal
from tests.toys import toy_batch, toy_corpus, toy_model


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


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


@pytest.mark.parametrize("query", [False, True], ids=["values", "two-layer"])
def test_many_permutations_at_once_equal_one_at_a_time(query):
    corpus = toy_corpus(query=query)
    model = toy_model(corpus)
    reading = reading_of(model, corpus)
    assert (reading.values is None) == query, "both roads of decide are meant to be taken"
    with torch.no_grad():
        together = output_changes(model, reading, 20, rng=seeded(3))
        own = distribution(model.decide(reading))
        orders = permuted(reading.weights, reading.mask, 20, rng=seeded(3))
        alone = [
            0.5 * (distribution(model.decide(reading, orders[:, n].contiguous())) - own).abs().sum(-1)
            for n in range(20)
        ]
    torch.testing.assert_close(together, torch.stack(alone, dim=1), atol=1e-6, rtol=1e-4)


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


class Held(Sources):
    """A subject's parts, in hand."""

    def __init__(self, models, configs):
        self.models, self.siblings = models, configs

    def model(self, name):
        return self.models[name]

    def readings(self, name):
        raise AssertionError("permutation asks the model itself")


def test_rows_tell_every_text_and_one_token_is_not_a_number(rng):
    corpus = toy_corpus()
    step = Permutation(permutations=11)
    model = toy_model(corpus)
    configs = step.siblings(model.config)
    assert configs["untrained"].epochs == 0
    assert configs["shuffled labels"].labels == "shuffled"
    subject = Subject(corpus, model.config, Held(dict.fromkeys(("trained", *configs), model), configs))
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
