"""Influence of words on hidden states, and importance of hidden states: every road against the long way."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances import influence as influence_module
from attentest.evidence.importances import influence_recurrent
from attentest.evidence.importances.hidden_importance import hidden_gradient, hidden_leave_one_out
from attentest.evidence.importances.influence import Positions, influence, jacobian
from attentest.model.catalogue import ENCODERS
from attentest.model.divergence import total_variation
from attentest.model.networks.attention import ATTENTIONS, LAST_STATE
from attentest.model.networks.decoder import distribution
from attentest.model.networks.projection import Projection
from attentest.refusal import Refusal
from attentest.statistics.comparison import kendall
from tests.toys import in_double, read, seeded, toy_batch, toy_corpus, toy_model

ROAD = {"average": "token-wise", "mlp": "token-wise", "identity": "token-wise", "bilstm": "recurrent"}
SPARSE = ("sparsemax", "entmax15", "sparsegen(0.4)")
PROJECTIONS = ("softmax", *SPARSE, "gumbel-softmax(0.8)", "uniform")


def slopes_by_hand(model, corpus, row, unit, of):
    """The gradients of some numbers of one state with respect to each token: one text, one pass a number."""
    batch = toy_batch(model, corpus, [row])
    embeddings = model.embedding(batch.tokens).detach().requires_grad_()
    state = model.read(batch, embeddings=embeddings).hidden[0, unit]
    return [torch.autograd.grad(each, embeddings, retain_graph=True)[0][0] for each in of(state)]


def assert_equals_the_long_way(model, corpus, reading, positions, found):
    for row, length in enumerate(reading.batch.mask.sum(1).tolist()):
        for slot, there in enumerate(positions.there[row].tolist()):
            l2, l1 = found.l2[row, slot], found.l1[row, slot]
            if not there:
                assert not l2.any() and not l1.any()
                continue
            unit = int(positions.places[row, slot])
            (slope,) = slopes_by_hand(model, corpus, row, unit, lambda state: [state.norm()])
            torch.testing.assert_close(l2[:length], slope.norm(dim=1), rtol=1e-5, atol=1e-9)
            torch.testing.assert_close(l1[:length], slope.abs().sum(1), rtol=1e-5, atol=1e-9)
            assert not l2[length:].any() and not l1[length:].any()


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_road_is_a_pass_back_for_each_text_and_state(encoder):
    corpus = toy_corpus()
    model = in_double(toy_model(corpus, encoder=encoder))
    reading = read(model, corpus)
    positions = Positions.sampled(reading.mask, 99, rng=seeded())
    assert positions.there.sum(1).tolist() == reading.mask.sum(1).tolist(), "all of them were asked about"
    found = influence(model, reading, positions)
    assert found.road == ROAD.get(encoder, "whole")
    assert_equals_the_long_way(model, corpus, reading, positions, found)
    again = influence(model, reading, positions, road="whole")
    assert again.road == "whole"
    torch.testing.assert_close(again.l2, found.l2, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("hidden", [5, 64], ids=["torch's LSTM", "our LSTM"])
@pytest.mark.parametrize("query", [False, True], ids=["plain", "query"])
def test_some_states_of_long_texts_in_chunks_and_in_single_precision(query, hidden, monkeypatch):
    monkeypatch.setattr(influence_recurrent, "ROWS", 7)
    corpus = toy_corpus(query=query, lengths=(40, 1, 23, 2, 39))
    model = toy_model(corpus, hidden=hidden)
    reading = read(model, corpus)
    positions = Positions.sampled(reading.mask, 6, rng=seeded(3))
    found, plain = (influence(model, reading, positions, road=road) for road in (None, "whole"))
    assert (found.road, plain.road) == ("recurrent", "whole")
    for fast, slow in ((found.l2, plain.l2), (found.l1, plain.l1)):
        assert fast.dtype == torch.float32 and fast.max() > 1e-3
        torch.testing.assert_close(fast, slow, rtol=1e-3, atol=1e-6)
    exact = in_double(model)
    reading = read(exact, corpus)
    assert_equals_the_long_way(exact, corpus, reading, positions, influence(exact, reading, positions))


def test_a_state_of_size_zero_is_moved_by_nothing():
    corpus = toy_corpus()
    model = toy_model(corpus)
    for parameter in model.encoder.parameters():
        parameter.data.zero_()
    reading = read(model, corpus)
    assert not reading.hidden[reading.mask].any()
    positions = Positions.sampled(reading.mask, rng=seeded())
    for road in (None, "whole"):
        assert not influence(model, reading, positions, road=road).l2.any()


def test_without_context_only_the_own_word_counts():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="identity")
    reading = read(model, corpus)
    positions = Positions.sampled(reading.mask, 99, rng=seeded())
    own = torch.eye(reading.mask.shape[1]) * reading.mask[:, None]
    # The slope of a vector's size is the vector of length one in its direction.
    torch.testing.assert_close(influence(model, reading, positions).l2, own)


def test_the_last_state_depends_on_all_words_of_any_encoder():
    corpus = toy_corpus()
    for encoder in ("bilstm", "average"):
        model = in_double(toy_model(corpus, encoder=encoder, attention=LAST_STATE))
        reading = read(model, corpus)
        positions = Positions.sampled(reading.mask, rng=seeded())
        found = influence(model, reading, positions)
        assert found.road == "whole" and found.l2.shape == (6, 1, 9)
        assert_equals_the_long_way(model, corpus, reading, positions, found)
        assert (found.l2[:, 0] > 0).equal(reading.batch.mask)


@pytest.mark.parametrize("encoder", ["bilstm", "bigru", "cnn", "mlp", "transformer", "han-conv"])
def test_the_frobenius_norm_is_that_of_the_whole_jacobian(encoder, monkeypatch):
    monkeypatch.setattr(influence_recurrent, "ROWS", 200)
    monkeypatch.setattr(influence_module, "FLOATS", 4000)  # a few units at a time
    corpus = toy_corpus(lengths=(5, 1, 6))
    model = in_double(toy_model(corpus, encoder=encoder))
    reading = read(model, corpus)
    positions = Positions.sampled(reading.mask, 3, rng=seeded())
    found = jacobian(model, reading, positions)
    assert found.road == ("recurrent" if encoder == "bilstm" else "whole")
    for row, length in enumerate(reading.batch.mask.sum(1).tolist()):
        for slot in range(int(positions.there[row].sum())):
            slopes = torch.stack(slopes_by_hand(model, corpus, row, int(positions.places[row, slot]), list))
            expected = slopes.square().sum((0, 2)).sqrt()
            torch.testing.assert_close(found.frobenius[row, slot, :length], expected, rtol=1e-5, atol=1e-9)
            assert not found.frobenius[row, slot, length:].any()
        assert not found.frobenius[row, int(positions.there[row].sum()) :].any()


def test_a_road_that_does_not_lead_there_is_refused():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="cnn")
    reading = read(model, corpus)
    positions = Positions.sampled(reading.mask, rng=seeded())
    for ask in (influence, jacobian):
        with pytest.raises(Refusal, match=r"'recurrent'.*needs 'whole'"):
            ask(model, reading, positions, road="recurrent")
    with pytest.raises(Refusal, match="at least 1"):
        Positions.sampled(reading.mask, 0, rng=seeded())


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(1, 14), st.integers(0, 99))
def test_positions_are_distinct_real_in_order_and_as_many_as_there_are(lengths, at_most, seed):
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    positions = Positions.sampled(mask, at_most, rng=seeded(seed))
    for row, length in enumerate(lengths):
        places = positions.places[row, positions.there[row]].tolist()
        assert places == sorted(set(places)) and len(places) == min(length, at_most)
        assert all(place < length for place in places)
        assert not positions.places[row, ~positions.there[row]].any()


def test_every_place_is_drawn_alike_and_the_seed_decides():
    mask = torch.ones(3000, 8, dtype=torch.bool)
    drawn = Positions.sampled(mask, 2, rng=seeded()).places
    assert torch.equal(drawn, Positions.sampled(mask, 2, rng=seeded()).places)
    assert not torch.equal(drawn, Positions.sampled(mask, 2, rng=seeded(1)).places)
    counts = torch.bincount(drawn.flatten(), minlength=8)
    assert (counts - 750).abs().max() < 5 * math.sqrt(750 * 0.75)


MODELS = [
    ({}, {}),
    ({"encoder": "cnn", "decoder": "softmax"}, {"labels": ("no", "yes", "maybe")}),
    ({"encoder": "transformer", "attention": "dot"}, {}),
    ({"encoder": "average"}, {"query": True, "labels": ("no", "yes", "maybe"), "candidates": True}),
    ({"encoder": "han-bigru"}, {}),
]


def under(model, reading, row, hidden):
    """The output of one text whose states are these: attention scores them and sums them up."""
    query = None if reading.query is None else reading.query[row : row + 1]
    scores = model.attention(hidden[None], query)
    weights = model.projection(scores, torch.ones_like(scores, dtype=torch.bool))
    context = weights @ hidden
    logits = model.decoder(context, query) if reading.values is None else model.decoder.dense(context)
    if reading.batch.answers is not None:
        logits = logits.masked_fill(~reading.batch.answers[row : row + 1], -math.inf)
    return distribution(logits)


def probability(model, output):
    return output[0, 1] if model.config.decoder == "sigmoid" else output[0].max()


@pytest.mark.parametrize(
    ("settings", "kind", "projection"), [(*m, p) for m, p in itertools.product(MODELS, PROJECTIONS)]
)
def test_states_matter_as_they_do_one_text_at_a_time(settings, kind, projection):
    corpus = toy_corpus(**kind)
    model = in_double(toy_model(corpus, **settings))
    model.projection = Projection.parse(projection)
    reading = read(model, corpus)
    gradient, loo = hidden_gradient(model, reading), hidden_leave_one_out(model, reading)
    assert not gradient[~reading.mask].any() and not loo[~reading.mask].any()
    for row, length in enumerate(reading.mask.sum(1).tolist()):
        hidden = reading.hidden[row, :length].detach().requires_grad_()
        own = under(model, reading, row, hidden)
        (slope,) = torch.autograd.grad(probability(model, own), hidden)
        torch.testing.assert_close(gradient[row, :length], slope.norm(dim=1))
        assert length > 1 or loo[row, 0].isnan()
        for unit in range(length) if length > 1 else ():
            rest = torch.cat([hidden[:unit], hidden[unit + 1 :]]).detach()
            moved = total_variation(under(model, reading, row, rest), own.detach())[0]
            torch.testing.assert_close(loo[row, unit], moved, atol=1e-9, rtol=1e-6)


def test_dropping_a_state_is_dropping_the_word_where_no_word_sees_another():
    corpus = toy_corpus()
    for projection in PROJECTIONS:
        model = toy_model(corpus, encoder="average", projection=projection)
        reading = read(model, corpus)
        states = hidden_leave_one_out(model, reading)
        assert states.dtype == torch.float64, "small weights must not tie"
        words = leave_one_out(model, reading).change.double()
        torch.testing.assert_close(states, words, equal_nan=True, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("projection", SPARSE)
def test_states_without_weight_do_not_matter(projection):
    corpus = toy_corpus(lengths=(9, 8, 1, 7))
    model = toy_model(corpus, encoder="average", vectors="random(3.0)", projection=projection)
    model.attention.to_score.weight.data.mul_(20)
    reading = read(model, corpus)
    idle = reading.mask & (reading.weights == 0)
    assert idle.any()
    assert (
        not hidden_gradient(model, reading)[idle].any()
        and not hidden_leave_one_out(model, reading)[idle].any()
    )


def test_held_the_gradient_would_be_attention_itself_and_free_it_is_not():
    """Check 2: an affine decision under held attention gives tau = 1, and so it must not be held."""
    corpus = toy_corpus()
    model = in_double(toy_model(corpus, encoder="average"))
    reading = read(model, corpus)
    free = hidden_gradient(model, reading)
    model.attention = None  # nothing to score states with: the weights stay as they are
    held = hidden_gradient(model, reading)
    taus = []
    for row, length in enumerate(reading.mask.sum(1).tolist()):
        if length > 1:
            weights = reading.weights[row, :length]
            assert kendall(weights, held[row, :length])[0] == pytest.approx(1.0)
            taus.append(kendall(weights, free[row, :length])[0])
    assert min(taus) < 1


@pytest.mark.parametrize("attention", [*ATTENTIONS])
def test_every_attention_has_an_answer_and_the_model_stays_as_it_was(attention):
    corpus = toy_corpus()
    model = toy_model(corpus, attention=attention)
    reading = read(model, corpus)
    gradient, loo = hidden_gradient(model, reading), hidden_leave_one_out(model, reading)
    assert gradient.shape == loo.shape == reading.weights.shape
    assert (gradient[reading.mask] > 0).all()
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert not gradient.requires_grad and not loo.requires_grad


def test_stored_weights_do_not_move_with_the_states():
    corpus = toy_corpus()
    model = toy_model(corpus)
    rng = np.random.default_rng(0)
    model.guide = {e.id: rng.dirichlet(np.ones(len(e.tokens))).astype("float32") for e in corpus.test}
    model.projection = Projection.parse("stored")
    reading = read(model, corpus)
    gradient = hidden_gradient(model, reading)
    ratio = (gradient / reading.weights)[reading.mask]
    expected = (gradient.sum(1, keepdim=True).expand_as(gradient))[reading.mask]
    torch.testing.assert_close(ratio, expected, rtol=1e-4, atol=1e-6)
