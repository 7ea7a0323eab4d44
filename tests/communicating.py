"""A planted game of communication, and its rows."""

import math

import numpy as np
import pandas as pd

from attentest.corpus.batch import IndexedSplit
from attentest.experiments.communication import Communication
from attentest.experiments.contract import Sources, Subject
from attentest.experiments.explained_split import ExplainedSplit
from attentest.experiments.game import Game
from attentest.model.training import Training
from tests.toys import toy_model

QUICK = {"k": "1 3", "draws": 2}  # of draws, so that shares are 0, a half or 1


class Held(Sources):
    """A subject's parts, in hand: siblings are untrained models of their own projection."""

    def __init__(self, corpus, step, **settings):
        self.trained = toy_model(corpus, **settings)
        self.siblings = step.siblings(self.trained.config)
        self.models = {
            name: toy_model(corpus, **{**settings, "seed": 7, "projection": config.projection})
            for name, config in self.siblings.items()
        }

    def model(self, name):
        return self.trained if name == "trained" else self.models[name]

    def readings(self, name):
        raise AssertionError("this experiment asks the model itself")


def observed(corpus, step=None, seed=0, spoil=None, **settings):
    step = Communication(**QUICK) if step is None else step
    held = Held(corpus, step, **settings)
    if spoil is not None:
        spoil(held.trained)
    subject = Subject(corpus, held.trained.config, held)
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
