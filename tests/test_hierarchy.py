"""HAN: all sentences of a batch at once, against one sentence at a time."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from attentest.corpus.example import Example
from attentest.model.batch import sentence_numbers
from attentest.model.networks.hierarchy import lay_out
from attentest.model.training.loop import Training
from attentest.model.training.optimiser import shrink
from tests.toys import toy_batch, toy_corpus, toy_model

KINDS = ("han-bigru", "han-conv", "han-identity")


def one_sentence_at_a_time(model, example):
    """The same text, sentence by sentence and without any batching."""
    encoder = model.encoder
    starts = [*example.sentences, len(example.tokens)]
    made, inner = [], []
    for begin, end in pairwise(starts):
        rows = model.embedding(torch.from_numpy(model.vocabulary.numbers(example.tokens[begin:end])))
        present = torch.ones(1, end - begin, dtype=torch.bool)
        hidden = encoder.words(rows, torch.arange(end - begin)[None], present).hidden[0]
        weights = encoder.attention(hidden[None], None)[0].softmax(-1)
        made.append(weights @ hidden)
        inner.append(weights)
    sentences = torch.stack(made)
    present = torch.ones(1, len(made), dtype=torch.bool)
    return encoder.sentences(sentences, torch.arange(len(made))[None], present).hidden[0], torch.cat(inner)


@pytest.mark.parametrize("encoder", KINDS)
def test_all_sentences_at_once_equal_one_at_a_time(encoder):
    corpus = toy_corpus()
    model = toy_model(corpus, encoder=encoder)
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
        for row, example in enumerate(corpus.test):
            hidden, inner = one_sentence_at_a_time(model, example)
            torch.testing.assert_close(reading.hidden[row, : len(hidden)], hidden, atol=1e-6, rtol=1e-5)
            torch.testing.assert_close(reading.inner[row, : len(inner)], inner, atol=1e-6, rtol=1e-5)
            assert reading.mask[row].sum() == len(example.sentences)


def test_a_sentence_is_the_unit_of_attention():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="han-bigru")
    reading = model.read(toy_batch(model, corpus))
    assert reading.weights.shape == (len(corpus.test), max(len(e.sentences) for e in corpus.test))
    within = torch.zeros_like(reading.weights)
    within.scatter_add_(1, reading.batch.sentences, reading.inner * reading.batch.mask)
    torch.testing.assert_close(within[reading.mask], torch.ones(int(reading.mask.sum())))


def test_the_layout_numbers_sentences_through_the_batch():
    sentences = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 2, 0, 0]])
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    layout = lay_out(sentences, mask)
    assert layout.line.tolist() == [0, 0, 1, 1, 1, 2, 3, 4]
    assert layout.within.tolist() == [0, 1, 0, 1, 2, 0, 0, 0]
    assert layout.order.tolist() == [[1, 2, 0], [3, 4, 5]]
    assert (layout.lines, layout.longest) == (5, 3)


@pytest.mark.parametrize(
    ("starts", "expected"),
    [((0, 2), [0, 0, 1, 1]), (None, [0, 0, 0, 0]), ((2,), [0, 0, 1, 1]), ((0, 1, 2, 3), [0, 1, 2, 3])],
)
def test_breaks_become_sentence_numbers(starts, expected):
    example = Example(id="x", tokens=tuple("abcd"), label="no", sentences=starts)
    assert sentence_numbers(example).tolist() == expected


def test_a_text_without_breaks_is_one_sentence():
    corpus = toy_corpus()
    bare = {
        split: tuple(replace(e, sentences=None) for e in texts) for split, texts in corpus.splits().items()
    }
    corpus = replace(corpus, **bare)
    model = toy_model(corpus, encoder="han-conv")
    batch = toy_batch(model, corpus)
    assert batch.sentences is None
    assert model.read(batch).weights.shape == (len(corpus.test), 1)


def test_dropout_of_units_is_dropout_of_the_context():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="average", dropout=0.5)
    batch = toy_batch(model, corpus)
    with torch.no_grad():
        plain, noisy = model.read(batch), model.read(batch, rng=torch.Generator().manual_seed(0))
    assert torch.equal(plain.weights, noisy.weights), "attention is scored before dropout"
    kept = (noisy.hidden != 0).any(1, keepdim=True)
    torch.testing.assert_close(noisy.hidden, 2 * plain.hidden * kept)
    assert 0.3 < float(kept.float().mean()) < 0.7


def test_the_rate_is_halved_after_every_epoch_that_did_not_improve():
    corpus = toy_corpus()
    training = Training(toy_model(corpus, learning_rate=0.8, halving=True), corpus)
    training.record.history = [{"dev": {"auc": score}} for score in (0.5, 0.6, 0.6, 0.55, 0.7, 0.7)]
    assert training.learning_rate == pytest.approx(0.8 / 8)
    training._set_rate()
    assert {group["lr"] for group in training.optimiser.param_groups} == {training.rows.lr} == {0.1}


def test_gradients_are_clipped_row_sparse_ones_included():
    corpus = toy_corpus()
    model = toy_model(corpus)

    def norm():
        slopes = [
            p.grad.to_dense() if p.grad.is_sparse else p.grad
            for p in model.parameters()
            if p.grad is not None
        ]
        return float(torch.stack([slope.norm() for slope in slopes]).norm())

    model.decide(model.read_distinct(toy_batch(model, corpus))).sum().backward()
    before = norm()
    shrink(model, 2 * before)
    assert norm() == pytest.approx(before), "a gradient that is short enough stays"
    shrink(model, before / 4)
    assert norm() == pytest.approx(before / 4, rel=1e-5)
