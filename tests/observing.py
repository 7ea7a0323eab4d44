"""The rows of an experiment on a small model."""

import numpy as np
import pandas as pd

from attentest.experiments.contract import Sources, Subject
from tests.toys import toy_model


class Held(Sources):
    """A subject's parts, in hand: the controls are other models of the same shape."""

    def __init__(self, corpus, step, **settings):
        self.trained = toy_model(corpus, **settings)
        self.siblings = step.siblings(self.trained.config)
        self.models = {name: toy_model(corpus, **{**settings, "seed": 7}) for name in self.siblings}

    def model(self, name):
        return self.trained if name == "trained" else self.models[name]

    def readings(self, name):
        raise AssertionError("these experiments ask the model itself")


def observed(step, corpus, **settings):
    held = Held(corpus, step, **settings)
    subject = Subject(corpus, held.trained.config, held)
    return pd.DataFrame(step.observe(subject, np.random.default_rng(0))), held.trained
