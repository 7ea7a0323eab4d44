"""Fleets: every member ends where it would have ended alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from attentest.fleet import trainer as fleet
from attentest.fleet.stack import ATTENTIONS
from attentest.fleet.trainer import Fleet, signature
from attentest.model.catalogue import ENCODERS
from attentest.model.config import ModelConfig
from attentest.model.precision import products_are_fast
from attentest.model.protocol import resolved
from attentest.model.reader import split_logits
from attentest.model.text_rows import text_rows
from attentest.model.training.imitation import said
from tests.fleets import LENGTHS, check_alike, made, trainings
from tests.toys import toy_corpus


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder(encoder):
    check_encoder(encoder, ("no", "yes"))


@pytest.mark.parametrize(
    "encoder", [pytest.param(e, marks=[pytest.mark.slow] * (e not in ("cnn", "han-bigru"))) for e in ENCODERS]
)
def test_every_encoder_of_three_classes(encoder):
    check_encoder(encoder, ("a", "b", "c"))


def check_encoder(encoder, labels):
    corpus = toy_corpus(labels=labels, lengths=LENGTHS)
    check_alike([made(corpus, encoder=encoder, seed=seed) for seed in (0, 1, 2)], corpus)


def test_the_end_is_scored_in_full_precision_and_the_way_there_fast(monkeypatch):
    corpus, fast, real = toy_corpus(labels=("no", "yes"), lengths=LENGTHS), [], fleet.scores
    monkeypatch.setattr(fleet, "scores", lambda *said: (fast.append(products_are_fast()), real(*said))[1])
    Fleet(trainings([made(corpus, encoder="average", projection="sparsemax", epochs=2)], corpus)).run()
    assert fast == [True, True, False, False]


def test_epochs_of_several_passes():
    corpus = toy_corpus(labels=("no", "yes"), lengths=LENGTHS)
    members = check_alike([made(corpus, encoder="bilstm", seed=s, epoch_steps=8) for s in (0, 1)], corpus)
    assert {member.passes for member in members} == {3}


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("encoder", ["bilstm", "average"])
def test_every_attention_with_a_query(encoder, attention):
    corpus = toy_corpus(query=True, labels=("a", "b", "c"), lengths=LENGTHS, candidates=True)
    check_alike([made(corpus, encoder=encoder, attention=attention, seed=s) for s in (3, 4)], corpus)


def test_an_affine_decoder_with_a_query():
    corpus = toy_corpus(query=True, labels=("a", "b", "c"), lengths=LENGTHS)
    check_alike([made(corpus, encoder="cnn", decoder="affine", seed=s) for s in (3, 4)], corpus)


PROJECTIONS = (
    "softmax",
    "sparsemax",
    "entmax15",
    "sparsegen(0.5)",
    "gumbel-softmax(0.8)",
    "tempered-softmax(0.8)",
    "uniform",
)


def test_projections_labels_rates_and_frozen_parts_in_one_fleet():
    """Also out of order: a fleet sorts its members, and nobody is to notice."""
    corpus = toy_corpus(lengths=LENGTHS)
    models = [made(corpus, projection=projection, seed=1) for projection in reversed(PROJECTIONS)]
    models += [
        made(corpus, labels="shuffled", seed=5),
        made(corpus, labels="shuffled-all", seed=1),
        made(corpus, labels="shuffled-all", seed=5),
        made(corpus, attention_rate=10.0),
        made(corpus, attention_start=100.0, freeze=("encoder", "decoder")),
        made(corpus, freeze=("attention",)),
    ]
    assert len({signature(model.config) for model in models}) == 1
    check_alike(models, corpus)


def test_a_fleet_scores_dev_by_the_labels_of_each_member():
    corpus = toy_corpus(lengths=LENGTHS)
    asked = [("shuffled-all", 1), ("gold", 1), ("shuffled-all", 2)]
    models = [made(corpus, encoder="average", labels=labels, seed=seed) for labels, seed in asked]
    told = {tuple(training.dev.labels.tolist()) for training in trainings(models, corpus)}
    assert len(told) == 3
    for training in check_alike(models, corpus):
        split = training.dev
        right = (split_logits(training.model, split)[:, 0] > 0).numpy() == split.labels
        assert training.record.scores["dev"]["accuracy"] == pytest.approx(right.mean())


def test_other_word_vectors_in_one_fleet():
    corpus = toy_corpus(lengths=LENGTHS)
    scales = ((0.1, 1), (1.0, 1), (1.0, 2))
    models = [made(corpus, attention="dot-unscaled", vectors=f"random({s})", seed=n) for s, n in scales]
    assert len({signature(model.config) for model in models}) == 1
    assert len({model.embedding.weight.norm().item() for model in models}) == 3
    check_alike(models, corpus)


def test_frozen_words():
    corpus = toy_corpus(lengths=LENGTHS)
    check_alike([made(corpus, freeze=("embedding", "encoder"), seed=seed) for seed in (0, 1)], corpus)


def test_attention_that_is_looked_up():
    corpus = toy_corpus(lengths=LENGTHS)
    rng = np.random.default_rng(0)
    guides = [
        {e.id: rng.dirichlet(np.ones(len(e.tokens))) for e in (*corpus.train, *corpus.dev, *corpus.test)}
        for _ in range(2)
    ]
    models = [made(corpus, projection="stored", guide=guide, encoder="average") for guide in guides]
    check_alike([models[0], made(corpus, encoder="average"), models[1]], corpus)


@pytest.mark.parametrize("labels", [("no", "yes"), ("a", "b", "c")])
def test_imitations_of_several_strengths_beside_a_model_that_learns_from_labels(labels):
    corpus = toy_corpus(labels=labels, lengths=LENGTHS)
    model = made(corpus, seed=7)
    base = said(
        [row for split in ("train", "dev") for row in text_rows(model, corpus, split, scores=True)], "softmax"
    )
    models = [made(corpus, loss=f"imitate(base, {factor})", seed=7) for factor in (0.0, 1e-3, 0.5)]
    check_alike([*models, made(corpus, seed=8)], corpus, base)


def test_members_leave_at_different_epochs():
    """Patience ends some early; those that stay must not feel it."""
    corpus = toy_corpus(lengths=LENGTHS)
    models = [made(corpus, seed=seed, epochs=12, patience=1, learning_rate=0.05) for seed in range(6)]
    together = check_alike(models, corpus)
    assert len({len(training.record.history) for training in together}) > 1


def test_who_must_go_alone():
    plain = resolved(ModelConfig(), family="classification", classes=2, has_query=False)
    assert signature(plain) is not None
    alone = (
        {"dropout": 0.3},
        {"clip": 1.0},
        {"halving": True},
        {"omit": "cat"},
        {"attention_rates": (1.0, 10.0)},
        {"encoder": "han-conv", "projection": "gumbel-softmax(0.8)"},
        {"encoder": "han-conv", "loss": "imitate(base, 0.1)"},
        {"attention": "log-odds"},
        {"attention": "last-state"},
        {"loss": "impermissible(0.1, cat)"},
        {"epochs": 0},
    )
    assert [change for change in alone if signature(replace(plain, **change)) is not None] == []
    assert signature(replace(plain, seed=3, projection="sparsemax")) == signature(plain)
    assert signature(replace(plain, learning_rate=0.5)) != signature(plain)
    assert signature(replace(plain, freeze=("embedding",))) != signature(plain)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(
    "encoder, hidden",
    [("bilstm", 128), ("bilstm", 32), ("cnn", 20), ("transformer", 16), ("bigru", 50), ("han-bigru", 50)],
)
def test_a_fleet_on_a_gpu_ends_where_trainings_on_a_cpu_do(encoder, hidden):
    """In single precision, kernels and all; a few steps, because rounding grows with every one."""
    corpus = toy_corpus(lengths=LENGTHS)
    models = [
        made(corpus, encoder=encoder, hidden=hidden, seed=seed, epochs=2, learning_rate=1e-3).float()
        for seed in (0, 1, 2)
    ]
    alone = trainings(models, corpus)
    for training in alone:
        training.run()
    together = trainings([copy.deepcopy(model).to("cuda") for model in models], corpus)
    Fleet(together).run()
    for one, other in zip(alone, together, strict=True):
        losses = ([epoch["loss"] for epoch in training.record.history] for training in (one, other))
        assert next(losses) == pytest.approx(next(losses), rel=1e-2)
