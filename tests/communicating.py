"""A planted game of communication, and its rows."""

import math

import numpy as np
import pandas as pd

from attentest.experiments.communication.game import Game
from attentest.experiments.communication.observe import Communication
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.shared.explained_split import ExplainedSplit
from attentest.model.batch import IndexedSplit
from attentest.model.training.loop import Training
from tests.toys import toy_model

QUICK = {"k": "1 3", "draws": 2}  # of draws, so that shares are 0, a half or 1


def in_memory(corpus, step, **settings):
    """Siblings are untrained models of their own projection."""
    trained = toy_model(corpus, **settings)
    siblings = step.siblings(trained.config)
    others = {
        name: toy_model(corpus, **{**settings, "seed": 7, "projection": config.projection})
        for name, config in siblings.items()
    }
    return InMemory({"trained": trained, **others}, siblings)


def observed(corpus, step=None, seed=0, spoil=None, **settings):
    step = Communication(**QUICK) if step is None else step
    held = in_memory(corpus, step, **settings)
    if spoil is not None:
        spoil(held.models["trained"])
    subject = Subject(corpus, held.models["trained"].config, held)
    return pd.DataFrame(step.observe(subject, np.random.default_rng(seed)))


def columns_of(sizes):
    by_k = ("random", "erasure", "gradient", "attention", "surrogate", "chance-attention")
    names = ["silence", "whole", "embedded", "chance-embedded", *(f"{n}@{k}" for n in by_k for k in sizes)]
    return {f"{what}_{name}" for what in ("agrees", "right") for name in names}


def planted_game(planted):
    """A model that found the word that decides, and the game about it."""
    model = toy_model(planted, encoder="average", hidden=32, embedding=32, epochs=20)
    Training(model, planted).run()
    splits = {
        name: ExplainedSplit.of(model, IndexedSplit(examples, model.vocabulary, planted.labels))
        for name, examples in planted.splits().items()
    }
    game = Game(**splits, vocabulary=len(model.vocabulary), classes=2)
    return model, game


def say_one(model):
    model.decoder.dense.bias.data.fill_(1e3)


def be_nan(model):
    model.decoder.dense.bias.data.fill_(math.nan)
