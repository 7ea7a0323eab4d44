"""One contract for every encoder x attention x projection x query, and proof that it can fail."""

import dataclasses
import itertools

import pytest
import torch

from attentest.model.catalogue import ENCODERS
from attentest.model.networks.attention import ATTENTIONS
from attentest.refusal import Refusal
from tests.grids import pairwise
from tests.toys import in_double, toy_batch, toy_corpus, toy_model

PROJECTIONS = ("softmax", "sparsemax", "entmax15", "sparsegen(0.4)", "gumbel-softmax(0.8)", "uniform")
GRID = [
    (encoder, attention, projection, query)
    for encoder, attention, projection, query in itertools.product(
        ENCODERS, ATTENTIONS, PROJECTIONS, (False, True)
    )
    if (attention != "last-state" or projection == "softmax")
    and not (encoder.startswith("han-") and (query or attention == "log-odds"))
]


@pytest.fixture(params=pairwise(GRID))
def subject(request):
    encoder, attention, projection, query = request.param
    corpus = toy_corpus(query=query)
    return toy_model(corpus, encoder=encoder, attention=attention, projection=projection), corpus


def logits_and_weights(model, batch):
    with torch.no_grad():
        reading = model.read(batch)
        return model.decide(reading), reading


def check_weights_are_on_the_simplex(model, corpus):
    _, reading = logits_and_weights(model, toy_batch(model, corpus))
    assert (reading.weights >= 0).all()
    torch.testing.assert_close(reading.weights.sum(1), torch.ones(len(reading.weights)))


def check_padding_and_markers_get_no_attention(model, corpus):
    _, reading = logits_and_weights(model, toy_batch(model, corpus))
    assert (reading.weights[~reading.mask] == 0).all()
    if model.attention is not None and not model.config.encoder.startswith("han-"):
        # Units are tokens: the markers have no place among them, so none can be attended.
        assert reading.weights.shape == reading.batch.tokens.shape
        assert reading.mask.sum(1).tolist() == [len(e.tokens) for e in corpus.test]


def check_each_example_stands_alone(model, corpus):
    together, _ = logits_and_weights(model, toy_batch(model, corpus))
    alone = torch.cat(
        [logits_and_weights(model, toy_batch(model, corpus, [n]))[0] for n in range(len(together))]
    )
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)


def check_padding_is_silent(model, corpus):
    batch = toy_batch(model, corpus)
    wider = dataclasses.replace(
        batch,
        tokens=torch.nn.functional.pad(batch.tokens, (0, 3)),
        mask=torch.nn.functional.pad(batch.mask, (0, 3)),
        sentences=torch.nn.functional.pad(batch.sentences, (0, 3)),
    )
    torch.testing.assert_close(
        logits_and_weights(model, batch)[0], logits_and_weights(model, wider)[0], atol=1e-5, rtol=1e-4
    )


def check_own_weights_reproduce_the_logits_exactly(model, corpus):
    logits, reading = logits_and_weights(model, toy_batch(model, corpus))
    with torch.no_grad():
        assert torch.equal(model.decide(reading, reading.weights), logits)
        variants = model.decide(reading, torch.stack([reading.weights] * 3, dim=1))
    assert variants.shape == (len(logits), 3, logits.shape[1])
    torch.testing.assert_close(variants, logits[:, None].expand_as(variants))


def check_given_weights_are_taken_as_they_are(model, corpus):
    _, reading = logits_and_weights(model, toy_batch(model, corpus))
    with torch.no_grad():
        halved = model.decide(reading, 0.5 * reading.weights)
        silent = model.decide(reading, reading.weights.masked_fill(~reading.mask, 7.0))
        assert torch.equal(silent, model.decide(reading)), "padding must be zeroed"
        if reading.values is None:
            expected = model.decoder(0.5 * (reading.weights[:, None] @ reading.hidden), reading.query)[:, 0]
        else:
            expected = (0.5 * reading.weights[:, None] @ reading.values)[:, 0] + reading.bias
        torch.testing.assert_close(halved, expected)


def check_both_roads_read_alike(model, corpus):
    batch = toy_batch(model, corpus)
    with torch.no_grad():
        slow, fast = model.read(batch), model.read_distinct(batch)
    assert len(batch.tokens.unique()) < batch.mask.sum(), "no word repeats, so nothing was shared"
    for name in ("embeddings", "hidden", "scores", "weights"):
        real = slow.mask if name not in ("embeddings",) else batch.mask
        torch.testing.assert_close(getattr(fast, name)[real], getattr(slow, name)[real], atol=1e-5, rtol=1e-4)


def check_the_model_is_left_as_found(model, corpus):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    logits_and_weights(model, toy_batch(model, corpus))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


CHECKS = [
    check_weights_are_on_the_simplex,
    check_padding_and_markers_get_no_attention,
    check_each_example_stands_alone,
    check_padding_is_silent,
    check_own_weights_reproduce_the_logits_exactly,
    check_given_weights_are_taken_as_they_are,
    check_both_roads_read_alike,
    check_the_model_is_left_as_found,
]


def test_every_model_keeps_the_contract(subject):
    for check in CHECKS:
        check(*subject)


def leaks_padding(model):
    model._weigh = lambda scores, mask, ids, rng: scores.softmax(-1)


def reads_the_batch(model):
    plain = model.attention.forward
    model.attention.forward = lambda hidden, query: plain(hidden - hidden.mean(0, keepdim=True), query)


def renormalises(model):
    plain = type(model).decide

    def decide(reading, given=None):
        if given is not None:
            given = given / given.sum(-1, keepdim=True).clamp_min(1e-9)
        return plain(model, reading, given)

    model.decide = decide


def ignores_what_is_given(model):
    plain = type(model).decide
    model.decide = lambda reading, given=None: plain(model, reading)


def drifts(model):
    plain = type(model).read

    def read(batch, **kwargs):
        with torch.no_grad():
            model.decoder.dense.bias += 1
        return plain(model, batch, **kwargs)

    model.read = read


def forgets_to_share(model):
    plain = type(model).read_distinct

    def read_distinct(batch, **kwargs):
        reading = plain(model, batch, **kwargs)
        return dataclasses.replace(reading, hidden=reading.hidden.roll(1, dims=1))

    model.read_distinct = read_distinct


def attends_twice(model):
    plain = type(model)._weigh
    model._weigh = lambda scores, mask, ids, rng: 2 * plain(model, scores, mask, ids, rng)


@pytest.mark.parametrize(
    ("check", "spoil"),
    [
        (check_weights_are_on_the_simplex, attends_twice),
        (check_padding_and_markers_get_no_attention, leaks_padding),
        (check_padding_is_silent, leaks_padding),
        (check_each_example_stands_alone, reads_the_batch),
        (check_given_weights_are_taken_as_they_are, renormalises),
        (check_given_weights_are_taken_as_they_are, ignores_what_is_given),
        (check_own_weights_reproduce_the_logits_exactly, lambda model: ignores_variants(model)),
        (check_both_roads_read_alike, forgets_to_share),
        (check_the_model_is_left_as_found, drifts),
    ],
)
def test_the_contract_can_fail(check, spoil):
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="average")
    check(model, corpus)
    spoil(model)
    with pytest.raises((AssertionError, RuntimeError)):
        check(model, corpus)


def ignores_variants(model):
    plain = type(model).decide

    def decide(reading, given=None):
        if given is not None and given.ndim == 3:
            given = given.flip(2)
        return plain(model, reading, given)

    model.decide = decide


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("query", [False, True], ids=["plain", "query"])
def test_gradients_with_respect_to_embeddings_are_right_in_double_precision(encoder, query):
    if query and encoder.startswith("han-"):
        with pytest.raises(Refusal):
            toy_model(toy_corpus(query=True), encoder=encoder)
        return
    corpus = toy_corpus(query=query, lengths=(3, 1, 2))
    model = in_double(toy_model(corpus, encoder=encoder, hidden=6, embedding=4))
    batch = toy_batch(model, corpus)

    def output(embeddings):
        return model.decide(model.read(batch, embeddings=embeddings))

    torch.manual_seed(0)
    start = model.embedding(batch.tokens).detach() + 0.1 * torch.randn(3, 3, 4, dtype=torch.float64)
    assert torch.autograd.gradcheck(output, start.requires_grad_(), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("attention", [name for name in ATTENTIONS if name != "last-state"])
def test_gradients_with_respect_to_given_attention_are_the_values(attention, projection):
    corpus = toy_corpus()
    model = in_double(toy_model(corpus, attention=attention, projection=projection))
    reading = model.read(toy_batch(model, corpus))
    given = reading.weights.detach().requires_grad_()
    (slope,) = torch.autograd.grad(model.decide(reading, given).sum(), given)
    torch.testing.assert_close(slope, (reading.values.sum(-1) * reading.mask).detach())


@pytest.mark.parametrize("encoder", ENCODERS)
def test_gradients_reach_the_embeddings_of_a_reading(encoder):
    corpus = toy_corpus()
    model = toy_model(corpus, encoder=encoder)
    reading = model.read(toy_batch(model, corpus))
    (slope,) = torch.autograd.grad(model.decide(reading).sum(), reading.embeddings)
    assert (slope[reading.batch.mask].abs().sum(-1) > 0).all()
    assert (slope[~reading.batch.mask] == 0).all()
