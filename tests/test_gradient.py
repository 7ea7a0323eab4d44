"""Gradient importance against autograd done the long way, finite differences, and closed forms."""

import pytest
import torch

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.traded_importance import traded_gradient, traded_leave_one_out
from attentest.evidence.permutation import orders
from attentest.model.batch import IndexedSplit
from attentest.model.networks.decoder import distribution
from attentest.statistics.comparison import kendall
from tests.toys import in_double, toy_batch, toy_corpus, toy_model

KINDS = [
    ({}, {}),
    ({"encoder": "cnn"}, {}),
    ({"encoder": "average", "projection": "sparsemax"}, {}),
    ({"encoder": "transformer", "attention": "dot"}, {}),
    ({"encoder": "bilstm"}, {"query": True, "labels": ("no", "yes", "maybe")}),
    ({"encoder": "average", "decoder": "affine"}, {"query": True, "labels": ("no", "yes", "maybe")}),
]


def probability(model, reading, given=None):
    logits = model.decide(reading, given)
    return torch.sigmoid(logits[:, 0]) if logits.shape[1] == 1 else distribution(logits).amax(-1)


@pytest.mark.parametrize(("settings", "kind"), KINDS)
def test_one_pass_for_the_batch_is_a_pass_for_each_text(settings, kind):
    corpus = toy_corpus(**kind)
    model = in_double(toy_model(corpus, **settings))
    found = gradients(model, toy_batch(model, corpus), free=True)
    for row, length in enumerate(found.reading.mask.sum(1).tolist()):
        batch = toy_batch(model, corpus, [row])
        embeddings = model.embedding(batch.tokens).detach().requires_grad_()
        reading = model.read(batch, embeddings=embeddings)
        held = torch.autograd.grad(
            probability(model, reading, reading.weights.detach()).sum(), embeddings, retain_graph=True
        )[0][0]
        free = torch.autograd.grad(probability(model, reading).sum(), embeddings)[0][0]
        expected = (held * embeddings.detach()[0]).sum(-1).abs()
        torch.testing.assert_close(found.times_input[row, :length], expected)
        torch.testing.assert_close(found.norm_held[row, :length], held.norm(dim=-1))
        torch.testing.assert_close(found.norm_free[row, :length], free.norm(dim=-1))
        assert not found.times_input[row, length:].any()


def test_the_derivative_is_that_of_the_probability_along_the_word_vector():
    corpus = toy_corpus()
    model = in_double(toy_model(corpus))
    batch = toy_batch(model, corpus, [2])
    found = gradients(model, batch)
    weights, embeddings = found.reading.weights, model.embedding(batch.tokens).detach()
    for token in range(3):
        step = torch.zeros_like(embeddings)
        step[0, token] = 1e-6 * embeddings[0, token]
        ends = [
            probability(model, model.read(batch, embeddings=embeddings + sign * step), weights)
            for sign in (1, -1)
        ]
        assert float((ends[0] - ends[1]).detach().abs() / 2e-6) == pytest.approx(
            float(found.times_input[0, token]), rel=1e-5
        )


def test_held_attention_and_a_linear_model_without_context_follow_attention():
    """Check 2: with a linear head and held attention the gradient of a hidden state is its weight."""
    corpus = toy_corpus()
    model = in_double(toy_model(corpus, encoder="identity"))
    found = gradients(model, toy_batch(model, corpus))
    for row, length in enumerate(found.reading.mask.sum(1).tolist()):
        if length > 1:
            tau, _ = kendall(found.reading.weights[row, :length], found.norm_held[row, :length])
            assert tau == pytest.approx(1.0)


def test_parameters_are_as_they_were_and_have_no_gradient():
    corpus = toy_corpus()
    model = toy_model(corpus)
    model.attention.requires_grad_(False)
    wanted = {name: p.requires_grad for name, p in model.named_parameters()}
    gradients(model, toy_batch(model, corpus))
    assert {name: p.requires_grad for name, p in model.named_parameters()} == wanted
    assert all(p.grad is None for p in model.parameters())


def test_a_sentence_has_the_sum_of_its_words():
    corpus = toy_corpus()
    model = in_double(toy_model(corpus, encoder="han-bigru"))
    batch = toy_batch(model, corpus)
    found = gradients(model, batch)
    assert found.times_input.shape == found.reading.weights.shape
    embeddings = model.embedding(batch.tokens).detach().requires_grad_()
    reading = model.read(batch, embeddings=embeddings)
    slope = torch.autograd.grad(probability(model, reading, reading.weights.detach()).sum(), embeddings)[0]
    of_tokens = (slope * embeddings.detach()).sum(-1).abs().masked_fill(~batch.mask, 0)
    for row in range(len(of_tokens)):
        for sentence in range(int(reading.mask[row].sum())):
            inside = batch.mask[row] & (batch.sentences[row] == sentence)
            torch.testing.assert_close(found.times_input[row, sentence], of_tokens[row][inside].sum())


def test_the_null_of_the_gradient_keeps_weights_and_moves_sensitivities():
    weights = torch.tensor([[0.5, 0.3, 0.2, 0.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    gradient = torch.tensor([[1.0, 0.3, 0.6, 0.0], [2.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    order = torch.tensor([[[1, 2, 0, 3]], [[0, 1, 2, 3]]])
    drawn = traded_gradient(weights, gradient, order)
    expected = [[[0.5 * 1.0, 0.3 * 3.0, 0.2 * 2.0, 0.0]], [[2.0, 0.0, 0.0, 0.0]]]
    torch.testing.assert_close(drawn, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(
    ("settings", "kind"),
    [({"encoder": "average"}, {}), ({"encoder": "average"}, {"query": True, "labels": ("a", "b", "c")})],
)
def test_the_null_of_leaving_out_is_leaving_out_where_nothing_moves(settings, kind):
    """Without context, and every value in its own place, the null must be leave-one-out itself."""
    corpus = toy_corpus(**kind)
    model = in_double(toy_model(corpus, **settings))
    reading = model.read_distinct(toy_batch(model, corpus))
    own = torch.arange(reading.mask.shape[1]).expand(len(reading.mask), 1, -1)
    with torch.no_grad():
        drawn = traded_leave_one_out(model, reading, own)[:, 0]
        real = leave_one_out(model, reading).change
    several = reading.mask & (reading.mask.sum(1) > 1)[:, None]
    torch.testing.assert_close(drawn[several], real[several], atol=1e-9, rtol=1e-6)


def test_the_null_agrees_with_attention_though_nothing_is_related():
    """Values independent of attention still agree with it by tau of about a half: the factor a_t."""
    rng = torch.Generator().manual_seed(0)
    weights = torch.randn(300, 18, generator=rng).softmax(-1).double()
    gradient = weights * torch.randn(300, 18, generator=rng).abs()
    drawn = traded_gradient(weights, gradient, orders(torch.ones(300, 18, dtype=torch.bool), 1, rng=rng))
    taus = [kendall(w, d)[0] for w, d in zip(weights.tolist(), drawn[:, 0].tolist(), strict=True)]
    assert 0.45 < sum(taus) / len(taus) < 0.65


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average"])
@pytest.mark.parametrize("hidden", [32, 64])
def test_a_gpu_finds_the_importances_a_cpu_does(encoder, hidden):
    corpus = toy_corpus(lengths=(5, 1, 30, 2, 4, 7))
    model = toy_model(corpus, encoder=encoder, hidden=hidden)
    batch = toy_batch(model, corpus)
    here = gradients(model, batch, free=True)
    loo = leave_one_out(model, here.reading).change
    model.to("cuda")
    there = gradients(model, batch.to("cuda"), free=True)
    torch.testing.assert_close(there.times_input.cpu(), here.times_input, atol=1e-5, rtol=1e-3)
    torch.testing.assert_close(there.norm_free.cpu(), here.norm_free, atol=1e-5, rtol=1e-3)
    change = leave_one_out(model, there.reading).change.cpu()
    torch.testing.assert_close(change, loo, atol=1e-5, rtol=1e-3, equal_nan=True)


def test_split_rows_stay_in_place():
    corpus = toy_corpus()
    model = toy_model(corpus)
    split = IndexedSplit(corpus.test, model.vocabulary, corpus.labels)
    forward = gradients(model, split.batch([0, 2])).times_input
    turned = gradients(model, split.batch([2, 0])).times_input
    torch.testing.assert_close(forward, turned.flip(0))
