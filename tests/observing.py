"""The rows of an experiment on a small model."""

import numpy as np
import pandas as pd

from attentest.experiments.contract import InMemory, Subject
from tests.toys import toy_model


def in_memory(corpus, step, **settings):
    """The controls are other models of the same shape."""
    trained = toy_model(corpus, **settings)
    siblings = step.siblings(trained.config)
    controls = {name: toy_model(corpus, **{**settings, "seed": 7}) for name in siblings}
    return InMemory({"trained": trained, **controls}, siblings)


def observed(step, corpus, **settings):
    held = in_memory(corpus, step, **settings)
    subject = Subject(corpus, held.models["trained"].config, held)
    return pd.DataFrame(step.observe(subject, np.random.default_rng(0))), held.models["trained"]
