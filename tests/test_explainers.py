"""Explainers: parts of texts against deletion by hand, each method against its definition the long way."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from attentest.evidence.erasure import leave_one_out as erasure
from attentest.evidence.importances import captum as explainers_captum
from attentest.evidence.importances import integrated_gradients as explainers_path
from attentest.evidence.importances import presence as explainers_presence
from attentest.evidence.importances.catalogue import EXPLAINERS, Effort, attention_of, explain
from attentest.evidence.importances.integrated_gradients import integrated_gradients
from attentest.evidence.importances.lime import PENALTY, WIDTH, drawn_parts, lime, nearness, ridge
from attentest.evidence.importances.presence import answers_to_parts, explained
from attentest.evidence.importances.shapley import over_orders, shapley_values
from attentest.evidence.removal.decisions import predicted
from attentest.model.catalogue import ENCODERS
from attentest.model.networks.decoder import distribution
from attentest.model.networks.projection import Projection
from attentest.refusal import Refusal
from tests.by_hand import by_hand
from tests.toys import in_double, read, seeded, toy_corpus, toy_model

LABELS = ("no", "yes", "maybe")


def parts_of(reading, count=12, seed=0):
    """Random parts, the whole and nothing among them."""
    kept = torch.rand(*reading.mask.shape[:1], count, reading.mask.shape[1], generator=seeded(seed)) < 0.5
    kept[:, 0], kept[:, 1] = True, False
    return kept


@pytest.mark.parametrize("query", [False, True], ids=["plain", "query"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_part_is_the_text_without_the_rest(encoder, query):
    hierarchical = encoder.startswith("han-")
    if query and hierarchical:
        return
    corpus = toy_corpus(query=query, labels=LABELS, candidates=query)
    model = in_double(toy_model(corpus, encoder=encoder))
    reading = read(model, corpus)
    kept = parts_of(reading) & reading.mask[:, None]
    found = answers_to_parts(model, reading, kept)
    own, nothing = predicted(model.decide(reading)), explained(model, reading).unread
    for row, example in enumerate(corpus.test):
        for variant in range(kept.shape[1]):
            there = kept[row, variant].tolist()
            if not any(there):
                assert float(found[row, variant]) == float(nothing[row])
                continue
            expected = by_hand(model, corpus, example, there, hierarchical)[own[row]]
            assert float(found[row, variant]) == pytest.approx(float(expected.detach()), abs=1e-9)


@pytest.mark.parametrize("query", [False, True], ids=["plain", "query"])
@pytest.mark.parametrize("encoder", ["average", "cnn", "bilstm", "transformer"])
def test_nothing_is_answered_as_an_empty_text_is(encoder, query):
    corpus = toy_corpus(query=query, labels=LABELS, candidates=query)
    model = in_double(toy_model(corpus, encoder=encoder))
    reading = read(model, corpus)
    batch = dataclasses.replace(reading.batch, mask=torch.zeros_like(reading.batch.mask))
    with torch.no_grad():
        said = distribution(model.decide(model.read(batch)))
    about = explained(model, reading)
    torch.testing.assert_close(about.unread, said.gather(1, about.predicted[:, None])[:, 0])


@pytest.mark.parametrize("projection", ["softmax", "sparsemax", "entmax15", "uniform", "stored"])
@pytest.mark.parametrize("query", [False, True], ids=["plain", "query"])
@pytest.mark.parametrize("encoder", ["average", "mlp", "identity"])
def test_weighing_again_ends_where_reading_again_does(encoder, query, projection):
    corpus = toy_corpus(query=query, labels=LABELS, candidates=query)
    model = in_double(toy_model(corpus, encoder=encoder, attention="additive"))
    drawn = np.random.default_rng(1)
    model.guide = {e.id: drawn.dirichlet(np.ones(len(e.tokens))) for e in corpus.test}
    model.projection = Projection.parse(projection)
    reading = read(model, corpus)
    kept = parts_of(reading)
    fast, slow = (answers_to_parts(model, reading, kept, road=road) for road in (None, "whole"))
    torch.testing.assert_close(fast, slow, atol=1e-7, rtol=0)
    assert float(fast.std(1).max()) > 1e-4, "nothing moved, so nothing was compared"


def test_chunks_and_repetitions_change_nothing(monkeypatch):
    corpus = toy_corpus(lengths=(9, 1, 4, 7))
    model = in_double(toy_model(corpus))
    reading = read(model, corpus)
    kept = parts_of(reading, 20)
    together = answers_to_parts(model, reading, kept)
    passes = []
    inner = explainers_presence.road_for(model, None)

    def counted(model, reading, texts, parts):
        passes.append(len(texts))
        return inner(model, reading, texts, parts)

    monkeypatch.setattr(explainers_presence, "road_for", lambda model, road: counted)
    monkeypatch.setattr(explainers_presence, "AT_ONCE", 5)
    torch.testing.assert_close(answers_to_parts(model, reading, kept), together)
    assert max(passes) == 5
    once = sum(passes)
    passes.clear()
    torch.testing.assert_close(answers_to_parts(model, reading, kept.repeat(1, 3, 1)), together.repeat(1, 3))
    assert sum(passes) == once, "alike parts were meant to be read once"


def test_a_road_that_is_not_there_is_refused():
    corpus = toy_corpus()
    model = toy_model(corpus)
    with pytest.raises(Refusal, match="token-wise"):
        answers_to_parts(model, read(model, corpus), parts_of(read(model, corpus)), road="token-wise")


@pytest.mark.parametrize(
    ("settings", "near"),  # near no vectors at all, layer normalisation is all but a jump
    [({}, 1e-6), ({"encoder": "transformer", "hidden": 6}, 1e-3), ({"encoder": "average"}, 1e-9)],
)
def test_integrated_gradients_are_complete_as_steps_grow(settings, near):
    corpus = toy_corpus(labels=LABELS)
    model = in_double(toy_model(corpus, **settings))
    reading = read(model, corpus)
    about = explained(model, reading)
    with torch.no_grad():
        empty = model.read(reading.batch, embeddings=torch.zeros_like(reading.embeddings))
        begun = distribution(model.decide(empty)).gather(1, about.predicted[:, None])[:, 0]
    gaps = []
    for steps in (1, 4, 16, 64):
        values = integrated_gradients(model, reading, steps=steps)
        assert not values.masked_fill(reading.mask, 0.0).any()
        gaps.append(float((values.sum(1) - (about.probability - begun)).abs().max()))
    assert gaps[3] < near < gaps[0] and gaps[3] < 0.2 * gaps[0] and gaps[2] < gaps[1] < gaps[0]


def test_integrated_gradients_the_long_way():
    """One text, one step at a time, by the midpoints of 400 intervals."""
    corpus = toy_corpus()
    model = in_double(toy_model(corpus, encoder="average"))
    reading = read(model, corpus, [0])
    own, slope = explained(model, reading), torch.zeros_like(reading.embeddings)
    for share in (np.arange(400) + 0.5) / 400:
        vectors = (share * reading.embeddings).requires_grad_()
        likely = distribution(model.decide(model.read(reading.batch, embeddings=vectors)))
        slope += torch.autograd.grad(likely[0, own.predicted[0]], vectors)[0] / 400
    expected = (slope * reading.embeddings).sum(-1)
    torch.testing.assert_close(integrated_gradients(model, reading), expected, atol=1e-5, rtol=0)


def test_passes_of_few_steps_change_nothing(monkeypatch):
    corpus = toy_corpus()
    model = in_double(toy_model(corpus, encoder="han-bigru"))
    reading = read(model, corpus)
    together = integrated_gradients(model, reading, steps=7)
    assert together.shape == reading.mask.shape
    monkeypatch.setattr(erasure, "FLOATS", 1)
    torch.testing.assert_close(integrated_gradients(model, reading, steps=7), together)


def test_short_texts_do_not_go_the_way_of_long_ones(monkeypatch):
    """What stands on padding costs as much as a word, so texts of alike length go together."""
    corpus = toy_corpus(lengths=(3, 40, 4, 3, 2, 39, 1))
    model = in_double(toy_model(corpus, encoder="transformer", hidden=6))
    reading, places = read(model, corpus), []
    together = integrated_gradients(model, reading, steps=2)
    often = type(model).read

    def counted(self, batch, **more):
        places.append(batch.mask.numel())
        return often(self, batch, **more)

    monkeypatch.setattr(type(model), "read", counted)
    monkeypatch.setattr(erasure, "FLOATS", 2 * explainers_path.floats_of_a_step(model, 40))
    apart = integrated_gradients(model, reading, steps=2)
    torch.testing.assert_close(apart, together, atol=1e-12, rtol=0)
    assert sum(places) < 0.5 * 2 * reading.batch.mask.numel()


def shapley_by_subsets(model, reading, row):
    """The definition: what a unit adds to every subset of the others, weighted by how often it meets it."""
    units = int(reading.mask[row].sum())
    subsets = [s for size in range(units + 1) for s in itertools.combinations(range(units), size)]
    kept = torch.zeros(len(reading.mask), len(subsets), reading.mask.shape[1], dtype=torch.bool)
    for number, subset in enumerate(subsets):
        kept[row, number, list(subset)] = True
    answers = dict(zip(subsets, answers_to_parts(model, reading, kept)[row].tolist(), strict=True))
    values = []
    for unit in range(units):
        total = 0.0
        for subset in subsets:
            if unit not in subset:
                weight = math.factorial(len(subset)) * math.factorial(units - len(subset) - 1)
                total += weight * (answers[tuple(sorted((*subset, unit)))] - answers[subset])
        values.append(total / math.factorial(units))
    return values


@pytest.mark.parametrize("units", [2, 5, 8])
def test_over_all_orders_it_is_the_shapley_value(units):
    corpus = toy_corpus(labels=LABELS, lengths=(units, 2, 1))
    model = in_double(toy_model(corpus, encoder="mlp" if units == 8 else "cnn"))
    reading = read(model, corpus)
    every = torch.tensor([*itertools.permutations(range(units))])
    joining = torch.arange(units).expand(3, len(every), units).clone()
    joining[0] = every
    found = over_orders(model, reading, joining)
    np.testing.assert_allclose(found[0], shapley_by_subsets(model, reading, 0), atol=1e-9)
    assert found[2, 0].isnan() and not found[1:, 2:].any()


@given(seed=st.integers(0, 50), permutations=st.sampled_from([2, 6]))
def test_shapley_values_share_out_the_whole_difference(seed, permutations):
    corpus = toy_corpus(lengths=(5, 1, 9, 2))
    model = in_double(toy_model(corpus, encoder="average", seed=seed % 3))
    reading = read(model, corpus)
    about = explained(model, reading)
    values = shapley_values(model, reading, rng=seeded(seed), permutations=permutations)
    several = reading.mask.sum(1) > 1
    torch.testing.assert_close(
        values.sum(1)[several], (about.probability - about.unread)[several], atol=1e-12, rtol=0
    )
    assert not values.masked_fill(reading.mask, 0.0).any() and values[~several, 0].isnan().all()


def test_drawn_orders_come_near_the_shapley_value_and_pairs_of_units_at_once():
    corpus = toy_corpus(lengths=(6, 2))
    model = in_double(toy_model(corpus, encoder="cnn"))
    reading = read(model, corpus)
    exact = [torch.tensor(shapley_by_subsets(model, reading, row)).double() for row in (0, 1)]
    two = shapley_values(model, reading, rng=seeded(), permutations=2)
    # An order of two and its reverse are all there are.
    torch.testing.assert_close(two[1, :2], exact[1], atol=1e-6, rtol=0)
    many = shapley_values(model, reading, rng=seeded(), permutations=400)
    assert (many[0] - exact[0]).abs().max() < 0.15 * exact[0].abs().max()


def test_ridge_is_that_of_scikit_learn():
    drawn = np.random.default_rng(0)
    presence, answers = drawn.integers(0, 2, (3, 40, 6)) * 1.0, drawn.normal(size=(3, 40))
    weights = drawn.uniform(0.1, 1, (3, 40))
    found = ridge(*map(torch.from_numpy, (presence, answers, weights)))
    for row in range(3):
        line = Ridge(alpha=PENALTY).fit(presence[row], answers[row], sample_weight=weights[row])
        np.testing.assert_allclose(found[row], line.coef_, atol=1e-10)


def test_lime_the_long_way():
    """Part by part and text by text, with the distances of vectors as they are defined."""
    corpus = toy_corpus(lengths=(5, 1, 8))
    model = in_double(toy_model(corpus, encoder="cnn"))
    reading = read(model, corpus)
    found = lime(model, reading, rng=seeded(3), samples=30)
    kept, about = drawn_parts(reading.mask, 30, rng=seeded(3)), explained(model, reading)
    assert found[1, 0].isnan() and not found.masked_fill(reading.mask, 0.0).any()
    for row in (0, 2):
        length = len(corpus.test[row].tokens)
        presence = [np.ones(length), *kept[row, :, :length].numpy()]
        answers, weights = [float(about.probability[row])], []
        for part in presence[1:]:
            said = by_hand(model, corpus, corpus.test[row], part, hierarchical=False)
            answers.append(float(said[about.predicted[row]].detach()))
        for part in presence:
            cosine = part.sum() / np.sqrt(part.sum() * length)
            weights.append(np.exp(-((1 - cosine) ** 2) / WIDTH**2))
        line = Ridge(alpha=PENALTY).fit(np.array(presence, float), answers, sample_weight=weights)
        np.testing.assert_allclose(found[row, :length], line.coef_, atol=1e-9)


def test_parts_of_every_size_are_drawn_and_none_is_empty_or_whole():
    mask = torch.arange(7) < torch.tensor([[7], [2], [1]])
    kept = drawn_parts(mask, 3000, rng=seeded())
    assert not (kept & ~mask[:, None]).any()
    sizes = torch.bincount(kept[0].sum(1), minlength=8)
    assert sizes[0] == sizes[7] == 0 and (sizes[1:7] > 400).all()
    assert (kept[1].sum(1) == 1).all() and kept[1].float().mean(0)[:2].min() > 0.45
    assert (kept[0].float().mean(0) - 0.5).abs().max() < 0.05
    assert float(nearness(mask[:, None], mask)[0, 0]) == 1.0


def test_every_explainer_finds_the_planted_word():
    """A model that adds up what its words say one by one: all must rank them by that."""
    corpus = toy_corpus(lengths=(6, 4))
    model = in_double(toy_model(corpus, encoder="identity", projection="uniform"))
    with torch.no_grad():
        model.embedding.weight.mul_(0.05)
        model.embedding.weight[model.vocabulary.numbers(("sat",))[0]].mul_(100)
    reading = read(model, corpus)
    said = explain(model, reading, rng=seeded(), effort=Effort(samples=60))
    assert list(said) == list(EXPLAINERS)
    place = corpus.test[0].tokens.index("sat")
    for name, values in said.items():
        assert int(values[0].abs().argmax()) == place, name


def test_an_unknown_explainer_is_refused_and_one_can_be_asked_alone():
    corpus = toy_corpus()
    model = toy_model(corpus)
    reading = read(model, corpus)
    assert list(explain(model, reading, rng=seeded(), names=("gradient",))) == ["gradient"]
    assert torch.equal(attention_of(reading), reading.weights)
    with pytest.raises(Refusal, match="explainer"):
        explain(model, reading, rng=seeded(), names=("tea-leaves",))


@pytest.mark.parametrize(
    "ask",
    [
        lambda m, r: integrated_gradients(m, r, steps=0),
        lambda m, r: shapley_values(m, r, rng=seeded(), permutations=3),
        lambda m, r: lime(m, r, rng=seeded(), samples=0),
    ],
)
def test_no_effort_is_refused(ask):
    corpus = toy_corpus()
    model = toy_model(corpus)
    with pytest.raises(Refusal, match="at least"):
        ask(model, read(model, corpus))


@pytest.mark.parametrize("name", ["captum-lime", "captum-kernel-shap"])
def test_without_captum_its_explainers_say_how_to_get_it(name, monkeypatch):
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="average")
    monkeypatch.setattr(explainers_captum.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match=r"pip install 'attentest\[captum\]'"):
        explain(model, read(model, corpus), rng=seeded(), names=(name,))
