"""The nulls of importance on known truth: attention without content over untrained states has no excess.

The weights are made here, so nothing about them can explain the output. What is held against 0 is the
excess as `conclude` reports it. Two mutants show that the test can fail: the first edition's null, which
trades sensitivities as if words did not share states, and a null of permuted weights alone, which breaks
smoothness together with content.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

from attentest.corpus.example import Corpus, Example
from attentest.corpus.vocabulary import Vocabulary
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.importance import conclude as importance
from attentest.experiments.importance.observe import Importance
from attentest.model.config import ModelConfig
from attentest.model.protocol import resolved
from attentest.model.training.building import build
from tests.observed import concluded, one, with_traded_null

ENCODERS = ("bilstm", "cnn")
TEXTS = 160


def random_texts(rng, split):
    words = [f"word{number}" for number in range(300)]
    return tuple(
        Example(id=f"{split}-{n}", tokens=tuple(rng.choice(words, int(rng.integers(14, 19)))), label=label)
        for n, label in enumerate(("no", "yes") * (TEXTS // 2))
    )


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return (weights / weights.sum()).astype(np.float32)


def smooth(rng, length):
    """A random walk seen through a window: neighbours have alike weights, at random places."""
    return np.convolve(rng.normal(size=length + 4), np.ones(5), "valid")


ATTENTION = {
    "i.i.d.": lambda rng, norms: 1.5 * rng.normal(size=len(norms)),
    "smooth": lambda rng, norms: smooth(rng, len(norms)),
    "positional": lambda rng, norms: (
        2 * np.cos(np.arange(len(norms)) / 3) + 0.3 * rng.normal(size=len(norms))
    ),
    "by embedding norm": lambda rng, norms: 1.5 * (norms - norms.mean()) / norms.std(),
}


def untrained_subject(encoder, kind):
    """One model for all three subjects: its states are untrained, its weights are made by hand."""
    rng = np.random.default_rng(7)
    splits = {name: random_texts(rng, name) for name in ("train", "dev", "test")}
    corpus = Corpus(name="random", labels=("no", "yes"), family="classification", **splits)
    config = ModelConfig(
        encoder=encoder,
        projection="stored",
        guide="random",
        vectors="random(1.0)",
        embedding=50,
        hidden=64,
    )
    full = resolved(config, family="classification", classes=2, has_query=False)
    made = build(full, corpus, Vocabulary.build(corpus.train + corpus.test))
    table = made.embedding.weight.detach().norm(dim=1).numpy()
    made.guide = {
        text.id: softmax(ATTENTION[kind](rng, table[made.vocabulary.numbers(text.tokens)]))
        for text in corpus.test
    }
    siblings = Importance().siblings(full)
    return Subject(corpus, made.config, InMemory(dict.fromkeys(("trained", *siblings), made), siblings))


@cache
def rows(encoder, kind):
    subject = untrained_subject(encoder, kind)
    step = Importance(nulls=10, shown=0)
    return pd.DataFrame(step.ask(subject, torch.Generator().manual_seed(3))).assign(seed=0)


@cache
def findings(encoder, kind):
    return concluded(rows(encoder, kind), importance.conclude)


def interval(found, measure):
    said = one(found, measure)
    return said["low"], said["high"]


@pytest.mark.parametrize("kind", ATTENTION)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("measure", ["tau-gradient-excess", "tau-loo-excess"])
def test_attention_without_content_has_no_excess(encoder, kind, measure):
    low, high = interval(findings(encoder, kind), measure)
    assert low <= 0
    if kind == "i.i.d.":
        assert high >= 0, "weights that are exchangeable have none below either"


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("importance_of", ["gradient", "loo"])
def test_the_first_editions_null_fails_on_independent_weights(encoder, importance_of):
    first_edition = with_traded_null(rows(encoder, "i.i.d."), importance_of)
    _, high = interval(concluded(first_edition, importance.conclude), f"tau-{importance_of}-excess")
    assert high < 0, "it takes off what was never there"


@pytest.mark.parametrize("encoder", ENCODERS)
def test_permuted_weights_alone_fail_on_smooth_ones(encoder):
    table = rows(encoder, "smooth")
    mutant = table.assign(swapped_tau_gradient=table["permuted_tau_gradient"])
    low, _ = interval(concluded(mutant, importance.conclude), "tau-gradient-excess")
    assert low > 0
