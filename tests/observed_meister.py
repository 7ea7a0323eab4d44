"""Rows of the sparsity and frozen-adversary experiments, made by hand."""

import math

import numpy as np
import pandas as pd

from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.sparsity import conclude as sparsity
from attentest.model.training.building import build
from tests.observed import texts
from tests.observed_wiegreffe_pinter import apart
from tests.toys import toy_model

LAMBDAS = (-10.0, 0.0, 0.6)


def in_memory(corpus, step, spoil, **settings):
    """Untrained models that differ in what their configurations say, no more."""
    base = toy_model(corpus, **settings)
    spoil(base)
    models, siblings = {"trained": base}, step.siblings(base.config)
    for name, config in siblings.items():
        start = base.state_dict() if config.start_from else None
        models[name] = build(config, corpus, base.vocabulary, start=start)
        if start is None:
            spoil(models[name])
    return InMemory(models, siblings)


def observed(step, corpus, spoil=lambda model: None, **settings):
    """The rows of an experiment on toys that were all spoilt alike, and the models behind them."""
    held = in_memory(corpus, step, spoil, **settings)
    subject = Subject(corpus, held.models["trained"].config, held)
    return pd.DataFrame(step.observe(subject, np.random.default_rng(0))), held.models


def sparsity_texts(n, seed=0, subject="trained", number=math.nan, **columns):
    """Twelve tokens each, all with weight, everything else a quarter, unless told otherwise."""
    numbers = {**dict.fromkeys(sparsity.NUMBERS, 0.25), "support": 12, "lambda": number}
    return texts(n, seed, subject).assign(**numbers).assign(**columns)


def sparsity_rows():
    """Two seeds of a softmax model, its sweep, their twins and the controls; some texts of one token.

    Dev chose a rate for what was trained.
    """
    rng = np.random.default_rng(0)
    models = {"trained": math.nan, **{f"lambda {number:g}": number for number in LAMBDAS}}
    models |= {f"untrained lambda {number:g}": number for number in LAMBDAS}
    models |= {"untrained": math.nan, "shuffled labels": math.nan}
    tables = []
    for seed in (0, 1):
        for subject, number in models.items():
            rows = sparsity_texts(40, seed, subject, number)
            rows[list(sparsity.NUMBERS)] = rng.uniform(size=(40, len(sparsity.NUMBERS)))
            rows["support"] = rng.integers(2, 13, 40)
            rows.loc[::7, list(sparsity.NUMBERS)] = math.nan
            rows.loc[::7, ["length", "support", "max_attention"]] = 1
            rows.loc[::11, ["tau_gradient_support", "tau_loo_support", "permuted_tau_loo_support"]] = math.nan
            rate = math.nan if subject.startswith("untrained") else 10.0
            tables.append(rows.assign(attention_rate=rate))
    return pd.concat(tables, ignore_index=True)


def frozen_adversary_rows():
    """Two seeds of a base, its adversaries of all three kinds, other seeds and the controls.

    Dev chose a rate for what was trained, and for frozen adversaries a start.
    """
    rng = np.random.default_rng(0)
    models = {"trained": math.nan, "seed 1": math.nan, "untrained": math.nan, "shuffled labels": math.nan}
    for kind in ("frozen", "free", "unfrozen"):
        models |= {f"{kind} lambda {number:g}": number for number in (0.001, 0.01)}
    tables = []
    for seed in (0, 1):
        for subject, number in models.items():
            far = 0.0 if subject == "trained" else 0.69 if number == 0.01 else 0.3
            rows = apart(40, seed, subject, jsd=far, tvd=rng.uniform(size=40), **{"lambda": number})
            rows = rows.assign(length=np.resize([12, 12, 12, 1], 40))
            rows.loc[rows["length"] == 1, "jsd"] = math.nan
            rate = math.nan if subject == "untrained" else 10.0
            start = 100.0 if subject.startswith("frozen") else math.nan
            tables.append(rows.assign(attention_rate=rate, attention_start=start))
    rows = pd.concat(tables, ignore_index=True)
    rows.at[3, "probabilities"] = [math.nan, math.nan]
    return rows
