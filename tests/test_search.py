"""The published search (JW-5): its iterates against autograd, its promises against the exact optimum."""

import math
from dataclasses import replace
from itertools import combinations

import pytest
import torch
from torch.nn import functional

from attentest.evidence.adversary import search, strongest_adversary
from attentest.evidence.adversary.search import PAIR_TERMS, PublishedSearch, road_to_output
from attentest.model.divergence import attainable, jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from tests.toys import in_double, seeded, toy_batch, toy_corpus, toy_model

KINDS = {
    "one logit": ({}, {}, "_Binary"),
    "two logits": ({}, {"decoder": "softmax"}, "_Binary"),
    "three classes": ({"labels": ("a", "b", "c")}, {}, "_Several"),
    "affine answers": (
        {"labels": ("a", "b", "c", "d"), "query": True, "candidates": True},
        {"decoder": "affine"},
        "_Several",
    ),
    "two-layer": ({"query": True, "labels": ("a", "b", "c")}, {}, "_Decided"),
    "two-layer answers": ({"query": True, "labels": ("a", "b", "c"), "candidates": True}, {}, "_Decided"),
}


def made(kind, *, loud=8.0):
    """A toy in double precision whose output listens to attention, and its reading."""
    of_corpus, of_model, road = KINDS[kind]
    corpus = toy_corpus(**of_corpus)
    model = in_double(toy_model(corpus, **of_model))
    with torch.no_grad():
        for weight in model.decoder.parameters():
            weight.mul_(loud)
        reading = model.read(toy_batch(model, corpus))
    assert type(road_to_output(model, reading)).__name__ == road, "this is the road meant to be tested"
    return model, reading


def plain_objective(model, reading, weights, settings):
    """Written as in the paper, with the sign of the penalty put right."""
    own = distribution(model.decide(reading))[:, None]
    change = total_variation(distribution(model.decide(reading, weights)), own)
    far = jensen_shannon(weights, reading.weights[:, None])
    unpunished = 0.01 if reading.query is None else 0.005
    loss = (-far + settings.penalty * functional.relu(change - unpunished)).sum()
    k = weights.shape[1]
    pairs = [jensen_shannon(weights[:, i], weights[:, j]) for i, j in combinations(range(k), 2)]
    if settings.pair == "distinct" and pairs:
        loss = loss - torch.stack(pairs).mean(0).sum()
    if settings.pair == "as-published":
        grid = [jensen_shannon(weights[:, i], weights[:, j]) for i in range(k) for j in range(k)]
        loss = loss - torch.stack(grid).mean(0).sum()
    return loss, change, far


def plain_search(model, reading, start, settings):
    """Autograd and torch's Adam: the scores it ends with, and the best divergence within each epsilon."""
    scores = start.clone().requires_grad_()
    absent = ~reading.mask[:, None]
    adam = torch.optim.Adam([scores], lr=settings.learning_rate, amsgrad=True)
    best = torch.zeros(len(settings.epsilons), len(start)).double()
    for _ in range(settings.steps):
        adam.zero_grad()
        weights = scores.masked_fill(absent, -math.inf).softmax(-1)
        loss, change, far = plain_objective(model, reading, weights, settings)
        for row, epsilon in enumerate(settings.epsilons):
            best[row] = best[row].maximum(far.detach().where(change <= epsilon - search.MARGIN, 0.0).amax(1))
        loss.backward(inputs=[scores])
        adam.step()
    return scores.detach().masked_fill(absent, -math.inf).softmax(-1), best


def both_roads(model, reading, settings):
    start = torch.randn(*reading.mask.shape, settings.candidates, generator=seeded(3)).double() * search.NOISE
    scores = start.masked_fill(~reading.mask[..., None], search.ABSENT).permute(1, 2, 0).contiguous()
    own = reading.weights.T.unsqueeze(1).contiguous()
    kept = search._Kept(own, settings.epsilons)
    with torch.no_grad():
        settings._descend(road_to_output(model, reading), own, scores, kept, reading.query is not None)
    ours = scores.softmax(0).permute(2, 1, 0), kept.divergence
    return ours, plain_search(model, reading, start.transpose(1, 2), settings)


@pytest.mark.parametrize("kind", KINDS)
def test_every_road_takes_the_steps_of_autograd_and_adam(kind):
    model, reading = made(kind)
    settings = PublishedSearch(steps=40, learning_rate=0.05, epsilons=(0.01, 0.2))
    (weights, best), (plain_weights, plain_best) = both_roads(model, reading, settings)
    torch.testing.assert_close(weights, plain_weights, atol=1e-7, rtol=1e-5)
    torch.testing.assert_close(best, plain_best, atol=1e-7, rtol=1e-5)
    assert (best[1] > best[0]).any(), "the output was meant to matter"


@pytest.mark.parametrize("pair", [*PAIR_TERMS, None])
@pytest.mark.parametrize("candidates", [1, 2, 3, 4, 5])
def test_the_pair_term_is_what_its_name_says(pair, candidates):
    model, reading = made("one logit")
    settings = PublishedSearch(steps=15, pair=pair, candidates=candidates)
    (weights, _), (plain, _) = both_roads(model, reading, settings)
    torch.testing.assert_close(weights, plain, atol=1e-7, rtol=1e-5)


def test_the_pair_terms_differ():
    model, reading = made("one logit")
    found = [PublishedSearch(steps=60, pair=pair).run(model, reading, rng=seeded()) for pair in PAIR_TERMS]
    found.append(PublishedSearch(steps=60, pair=None).run(model, reading, rng=seeded()))
    assert len({tuple(each.last.flatten().tolist()) for each in found}) == 3


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["one logit", "two logits"])
def test_the_search_never_beats_the_exact_optimum(kind, precision):
    model, reading = made(kind)
    reading = replace(
        reading,
        **{n: getattr(reading, n).to(precision) for n in ("weights", "values", "bias", "hidden")},
    )
    found = PublishedSearch(steps=200).run(model, reading, rng=seeded())
    assert found.best.dtype == torch.float64
    for epsilon, best in zip(found.epsilons, found.best, strict=True):
        exact = strongest_adversary(reading.weights, reading.values, reading.bias, reading.mask, epsilon)
        assert exact.exact and (exact.divergence >= best - 1e-6).all()
        assert (best[reading.mask.sum(1) > 2] > 0).all(), "it finds something, too"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_returned_keeps_the_output_and_has_the_divergence_it_claims(kind):
    model, reading = made(kind)
    found = PublishedSearch(steps=80, epsilons=(0.05, 0.01, 0.3)).run(model, reading, rng=seeded(1))
    with torch.no_grad():
        own = distribution(model.decide(reading))
        for epsilon, best, weights in zip(found.epsilons, found.best, found.weights, strict=True):
            change = total_variation(distribution(model.decide(reading, weights)), own)
            assert (change <= epsilon + 1e-12).all()
            torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)).double())
            assert (weights.masked_fill(reading.mask, 0.0) == 0).all()
            torch.testing.assert_close(jensen_shannon(weights, reading.weights), best)
    assert (found.best >= found.last).all() and (found.last >= 0).all()
    assert (found.best <= attainable(reading.weights, reading.mask) + 1e-9).all()
    tight, wide, widest = found.best[1], found.best[0], found.best[2]
    assert (tight <= wide).all() and (wide <= widest).all(), "a larger epsilon allows what a smaller does"


def test_the_best_iterate_can_be_better_than_the_last():
    model, reading = made("one logit")
    found = PublishedSearch(steps=150, pair=None).run(model, reading, rng=seeded(2))
    assert (found.best > found.last + 1e-6).any()


def test_one_token_has_nowhere_to_go_and_two_have():
    model, reading = made("one logit", loud=0.0)
    found = PublishedSearch(steps=300).run(model, reading, rng=seeded())
    lengths = reading.mask.sum(1)
    assert (found.best[:, lengths == 1] == 0).all() and (found.last[:, lengths == 1] == 0).all()
    # With an output that hears nothing, most of what is attainable is found.
    two = lengths == 2
    assert (found.best[:, two] > 0.8 * attainable(reading.weights, reading.mask)[two]).all()


def test_the_same_rng_finds_the_same_and_another_something_else():
    model, reading = made("one logit")
    once, again, other = (PublishedSearch(steps=20).run(model, reading, rng=seeded(s)) for s in (0, 0, 1))
    assert torch.equal(once.weights, again.weights) and not torch.equal(once.weights, other.weights)


@pytest.mark.parametrize("kind", ["one logit", "three classes", "two-layer"])
def test_neither_padding_nor_chunks_matter(kind, monkeypatch):
    model, reading = made(kind)
    settings = PublishedSearch(steps=30)
    found = settings.run(model, reading, rng=seeded())
    wide = {n: functional.pad(getattr(reading, n), (0, 3)) for n in ("mask", "weights", "scores")}
    for name in ("hidden", "values"):
        if getattr(reading, name) is not None:  # what stands on padding is nobody's business
            wide[name] = functional.pad(getattr(reading, name), (0, 0, 0, 3), value=7.0)
    padded = settings.run(model, replace(reading, **wide), rng=seeded())
    monkeypatch.setattr(search, "CHUNK", 2 * 5 * reading.mask.shape[1])
    chunked = settings.run(model, reading, rng=seeded())
    for other in (padded, chunked):
        torch.testing.assert_close(other.best, found.best)
        torch.testing.assert_close(other.last, found.last)
    assert (padded.weights[..., -3:] == 0).all()


@pytest.mark.parametrize("kind", ["one logit", "two-layer"])
def test_no_parameter_gets_a_gradient_and_nothing_is_encoded(kind, monkeypatch):
    model, reading = made(kind)
    with_graph = model.read(reading.batch)
    monkeypatch.setattr(model, "read", None)
    found = PublishedSearch(steps=5).run(model, with_graph, rng=seeded())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not found.weights.requires_grad


def test_an_undefined_text_is_not_a_number_and_disturbs_no_other():
    model, reading = made("one logit")
    settings = PublishedSearch(steps=20)
    found = settings.run(model, reading, rng=seeded())
    values = reading.values.clone()
    values[2] = math.nan
    spoilt = settings.run(model, replace(reading, values=values), rng=seeded())
    others = torch.arange(len(values)) != 2
    assert spoilt.best[:, 2].isnan().all() and spoilt.last[:, 2].isnan().all()
    assert torch.equal(spoilt.best[:, others], found.best[:, others])


def test_the_tolerance_of_the_optimiser_halves_with_a_query(monkeypatch):
    """The published code holds twice the total variation against 0.01 there (A2)."""
    for kind, published in (("one logit", 0.01), ("two-layer", 0.005)):
        model, reading = made(kind)
        default, said, other = (
            PublishedSearch(steps=40, optimised_at=at).run(model, reading, rng=seeded())
            for at in (None, published, 0.02)
        )
        assert torch.equal(default.last, said.last) and not torch.equal(default.weights, other.weights)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"steps": 0}, "got 0 steps, but needs at least 1"),
        ({"candidates": 0}, "got 0 candidates, but needs at least 1"),
        ({"epsilons": ()}, "got no epsilon"),
        ({"epsilons": (0.01, 0.0)}, "got epsilon 0.0, but needs a total variation above 0"),
        ({"epsilons": (-0.1,)}, "got epsilon -0.1"),
        ({"epsilons": (math.nan,)}, "got epsilon nan"),
        ({"epsilons": (1.5,)}, "at most 1"),
        ({"optimised_at": 0.0}, "got epsilon 0.0"),
        ({"penalty": math.nan}, "got penalty nan"),
        ({"learning_rate": 0.0}, "got learning_rate 0.0"),
        ({"pair": "triples"}, "one of distinct, as-published"),
    ],
)
def test_settings_without_a_meaning_are_refused_in_a_sentence(settings, says):
    with pytest.raises(Refusal, match=says):
        PublishedSearch(**settings)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_finds_what_a_cpu_does(kind):
    model, reading = made(kind)
    here = PublishedSearch(steps=40).run(model, reading, rng=seeded())
    model = model.to("cuda")
    with torch.no_grad():
        there = model.read(reading.batch.to("cuda"))
    found = PublishedSearch(steps=40).run(model, there, rng=seeded())
    torch.testing.assert_close(found.best.cpu(), here.best, atol=1e-6, rtol=1e-5)
