"""What the experiments hold at their peak, each in a process of its own, on texts of 400 tokens."""

from __future__ import annotations

import multiprocessing
import resource
from typing import Any

import numpy as np

from attentest.bench.subjects import reading_rows
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.observers import EXPERIMENTS
from benchmarks.made import Size, bench, made_corpus

TEXTS = Size(128, 400, 400, 1)
# The first reads stored numbers, the second single texts, and the third learns from the training split, which
# is one text of all words here. The others ask several models, one after another, what `importance`,
# `adversary` and `information` ask one: they take their minutes many times over and hold no more.
LEFT_OUT = (
    "performance",
    "heat-map",
    "communication",
    "sparsity",
    "frozen-adversary",
    "information-ablation",
    "information-sensitivity",
)
# Made texts have no rationales, are fewer than the words of most codebooks, and their Jacobians take long.
SETTINGS: dict[str, dict[str, Any]] = {
    "deception": {"words": "w1 w2"},
    "information": {"clusters": "50"},
    "dispersion": {"frobenius": 2},
    "explainers": {"sample": 4, "permutations": 2},
}


def megabytes(name: str) -> tuple[float, float]:
    """The process's size before and at its peak, after the model and the texts were made."""
    model, _, _ = bench(TEXTS)
    corpus, step = made_corpus(TEXTS), EXPERIMENTS[name](**SETTINGS.get(name, {}))
    siblings = step.siblings(model.config)
    models = dict.fromkeys(("trained", *siblings), model)  # memory does not ask what was learnt
    readings = {"trained": reading_rows(model, corpus, "test")} if step.reads else {}
    subject = Subject(corpus, model.config, InMemory(models, siblings, readings))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in step.observe(subject, np.random.default_rng(0)):
        pass
    return before / 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rows() -> list[tuple[str, float, float]]:
    """Name, size before, size at the peak."""
    names = [name for name in EXPERIMENTS if name not in LEFT_OUT]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return [(name, *pool.apply(megabytes, (name,))) for name in names]
