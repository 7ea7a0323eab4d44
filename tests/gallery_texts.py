"""A store whose texts are worth exploring: hostile, of 4,000 words, with a rationale, in sentences."""

import functools

import numpy as np
import pandas as pd

from attentest.corpus.example import Corpus, Example
from attentest.corpus.files import to_files
from attentest.store.cell import Cell
from tests.gallery import HOSTILE, ROWS, TEXTS, hostile, put, written

LONG = 4000
HUGE = "x" * 10_000
LABELS = ("no", HOSTILE.label)
# What each experiment keeps of a text that is kept whole; its rows are told by the first.
KEPT = (
    ("exact_weights", "search_weights", "weights"),
    ("permuted_weights",),
    ("gradient", "loo", "weights"),
)


def tokens_of(number):
    """Words that would like to be markup, many words, a very long word, and plain ones."""
    if number == 0:
        return (HOSTILE.token, HOSTILE.hidden, HUGE)
    if number == 1:
        return tuple(f"word{n}" for n in range(LONG))
    if number == 4:
        return ("not", "good4", "at all", "fine")
    return ("not", f"good{number}", "at all")


def weighed_units(number):
    """What the weights are of: words, or of one text its two sentences."""
    return 2 if number == 4 else len(tokens_of(number))


def text_id(number):
    return HOSTILE.id if number == 0 else f"t{number:04d}"


def corpus_of_texts(name="mine"):
    test = [
        Example(
            id=text_id(n),
            tokens=tokens_of(n),
            label="no",
            rationale=(1,) if n == 2 else None,
            sentences=(0, 2) if n == 4 else None,
        )
        for n in range(TEXTS)
    ]
    train, dev = (Example(id=part, tokens=("a",), label="no") for part in ("train", "dev"))
    return Corpus(name=name, train=(train,), dev=(dev,), test=tuple(test), labels=LABELS)


def weighed(rows):
    """The rows with weights over the words there are, of the first ten texts of each trained model."""
    rng = np.random.default_rng(7)
    lengths = {text_id(n): weighed_units(n) for n in range(TEXTS)}
    whole = {text_id(n) for n in range(10)}

    def drawn():
        return [
            rng.dirichlet(np.ones(lengths[i])).tolist() if s == "trained" and i in whole else None
            for i, s in zip(rows["id"], rows["subject"], strict=True)
        ]

    wanted = next(names for names in KEPT if names[0] in rows or names is KEPT[-1])
    return rows.assign(**{name: pd.Series(drawn(), dtype=object, index=rows.index) for name in wanted})


WEIGHED = ("importance", "adversary", "ablation")


def put_texts(store, name="mine", encoders=("bilstm", "average"), more=("removal", "ablation")):
    """Grid points with what the explorer shows; the first has smallest flips and effects, too."""
    cell = Cell(stage="corpus", version=1, config={"name": name, "source": "by hand"})
    store.write(cell, to_files(corpus_of_texts(name)), {})
    for encoder in encoders:
        for experiment in ("importance", "adversary", "permutation"):
            put(store, experiment, cell, _files(experiment), encoder=encoder)
    for experiment in more:
        put(store, experiment, cell, _files(experiment), encoder=encoders[0])
    return cell


@functools.cache
def _files(experiment):
    rows = hostile(ROWS[experiment]())
    return written(experiment, "corrected", weighed(rows) if experiment in WEIGHED else rows)


def put_failure(store, error, name="mine", encoder="cnn"):
    """An experiment that was planned and could not be finished."""
    axes = {"corpus": name, "encoder": encoder, "attention": "additive", "projection": "softmax"}
    seen = Cell(stage="observation", version=1, config={"experiment": "importance", "of": encoder})
    about = {**axes, "experiment": "importance"}
    finding = Cell(stage="finding", version=1, config=about, inputs={"seed 0": seen.key})
    for cell in (seen, finding):
        store.plan(cell)
    store.fail(seen.key, error, "traceback")
