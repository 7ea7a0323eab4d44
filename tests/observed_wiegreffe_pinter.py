"""Subjects with toy siblings held in hand, and rows of Wiegreffe & Pinter's experiments made by hand."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from attentest.bench.subjects import reading_rows
from attentest.experiments.contract import InMemory, Subject
from attentest.model.training.building import build
from tests.observed import texts
from tests.toys import toy_model

SUBJECTS = ("trained", "untrained", "shuffled labels")
GUIDES = ("uniform", "own", "base", "adversary", "untrained", "shuffled labels")


def sharpened(model):
    """Fresh attention is nearly uniform, and so alike in every model; here it is not."""
    with torch.no_grad():
        model.attention.to_score.weight *= 20
    return model


def in_memory(corpus, step, **settings):
    """Siblings of the right kind, and every one with numbers of its own."""
    base = sharpened(toy_model(corpus, **settings))
    models, siblings = {"trained": base}, step.siblings(base.config)

    def weights(guide):
        frame = reading_rows(models["trained" if guide == "subject" else guide], corpus, "test")
        return dict(zip(frame["id"], frame["weights"], strict=True))

    for seed, (name, config) in enumerate(siblings.items(), start=100):
        guide = None if config.guide in (None, "random") else weights(config.guide)
        models[name] = sharpened(build(replace(config, seed=seed), corpus, base.vocabulary, guide=guide))
    return InMemory(models, siblings)


def observed(step, corpus, **settings):
    """The rows of an experiment on toys, and the models behind them."""
    held = in_memory(corpus, step, **settings)
    subject = Subject(corpus, held.models["trained"].config, held)
    return pd.DataFrame(step.observe(subject, np.random.default_rng(0))), held.models


def answers(n, seed=0, subject="trained", right=0.8, **columns):
    """Rows that can be scored: labels go round, and the first `right` of the texts are answered rightly."""
    rows = texts(n, seed, subject)
    gold = np.arange(n) % 2
    yes = np.where(np.arange(n) < round(right * n), gold, 1 - gold) * 0.8 + 0.1
    return rows.assign(
        label=np.where(gold, "yes", "no"),
        gold=gold,
        predicted=np.where(yes > 0.5, "yes", "no"),
        probabilities=np.stack([1 - yes, yes], axis=1).tolist(),
    ).assign(**columns)


def scored_rows(subjects):
    """Two seeds of each, and one output that is no number."""
    rng = np.random.default_rng(0)
    rows = pd.concat(
        [answers(40, seed, subject, rng.uniform(0.5, 1)) for seed in (0, 1) for subject in subjects],
        ignore_index=True,
    )
    rows.at[3, "probabilities"] = [math.nan, math.nan]
    return rows


def uniform_baseline_rows():
    return scored_rows(("trained", "uniform", *SUBJECTS[1:]))


def guided_rows():
    return scored_rows(("trained", "trained adversary", *(f"guided by {guide}" for guide in GUIDES)))


def apart(n, seed=0, subject="trained", **columns):
    """Rows of models against a base, in which what is not given is 0."""
    numbers = dict.fromkeys(("jsd", "tvd", "exact", "permuted"), 0.0)
    base = {"base_predicted": "yes", "base_max_attention": 0.5, "attainable": 0.5, "lambda": math.nan}
    return answers(n, seed, subject).assign(**numbers, **base).assign(**columns)


def _drawn(subjects, lambdas=None):
    rng = np.random.default_rng(0)
    tables = []
    for seed in (0, 1):
        for subject in subjects:
            rows = apart(
                40,
                seed,
                subject,
                jsd=rng.uniform(0, 0.5, 40),
                tvd=rng.uniform(0, 1, 40),
                exact=rng.uniform(0, 0.5, 40),
                permuted=rng.uniform(0, 0.5, 40),
                base_predicted=np.resize(["no", "yes", "yes"], 40),
                base_max_attention=np.linspace(0.05, 0.95, 40),
                length=np.resize([12, 12, 12, 1], 40),
            )
            rows.loc[rows["length"] == 1, ["jsd", "exact", "permuted", "attainable"]] = math.nan
            if subject != "trained":
                rows[["exact", "attainable", "permuted"]] = math.nan
            tables.append(rows.assign(**{"lambda": (lambdas or {}).get(subject, math.nan)}))
    return pd.concat(tables, ignore_index=True)


def seed_variance_rows():
    return _drawn(("trained", "seed 2", "seed 3", *SUBJECTS[1:]))


def trained_adversary_rows():
    swept = {f"lambda {number:g}": number for number in (0.0, 5e-4, 0.001)}
    others = ("seed 2", "seed 3", "uniform", *SUBJECTS[1:], "exact", "search")
    return _drawn(("trained", *swept, *others), swept)
