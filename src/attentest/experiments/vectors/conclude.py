"""What word vectors do to attention, and by which scale of random vectors models do best on dev.

The rule that chooses a scale is here, so that it can be read before anything is run and applied to any store.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.importance.conclude import UNRANKED
from attentest.experiments.vectors import ABOUT
from attentest.refusal import Refusal
from attentest.statistics.card import Card
from attentest.statistics.group_means import Means, Measure, reasons
from attentest.statistics.of_models import Measured, Number, of_models
from attentest.statistics.record import Finding, ordered

EXPERIMENT = "vectors"
WHO = ("seed", "subject", "id", "length", "max_attention")
OF_TEXTS = ("tau_gradient", "tau_loo")
OF_MODEL = ("dev_measure", "dev_score", "dev_accuracy", "dev_majority", "norm_start", "norm_trained")
COLUMNS = (*WHO, *OF_TEXTS, *OF_MODEL)
UNDEFINED = "the number is not defined"
KEPT = 0.1  # the scale that a tie keeps
PAIRED = ("corpus", "encoder", "seed")


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts of agreement and evenness; over seeds of dev scores and of the vectors' lengths."""
    rows = ordered(rows, COLUMNS)
    rows = rows[rows["subject"] == "trained"].reset_index(drop=True)
    if rows.empty:
        return []
    means = Means(experiment=EXPERIMENT, rows=rows, mode=mode, rng=rng)
    models = [_model(of_seed) for _, of_seed in rows.groupby("seed")]
    about = {"experiment": EXPERIMENT, "group": "overall", "mode": mode}
    return [
        *means.of([*_of_texts(rows)], [("overall", rows)]),
        *of_models(models, absent=UNDEFINED, **about),
    ]


def _of_texts(rows: pd.DataFrame) -> Iterator[Measure]:
    why = reasons(rows, UNRANKED)
    for name in OF_TEXTS:
        values = rows[name].astype(np.float64)
        yield Measure(name=name.replace("_", "-"), values=values, null=math.nan, why=why)
    peak = (rows["max_attention"] * rows["length"]).astype(np.float64)
    yield Measure(name="max-weight-times-length", values=peak, null=1.0, why=why)


def _model(rows: pd.DataFrame) -> Measured:
    first = rows.iloc[0]
    chance = 0.5 if first["dev_measure"] == "auc" else float(first["dev_majority"])
    return Measured(
        numbers={
            "dev-score": Number(float(first["dev_score"]), chance),
            "dev-accuracy": Number(float(first["dev_accuracy"]), float(first["dev_majority"])),
            "vector-norm-start": Number(float(first["norm_start"]), math.nan),
            "vector-norm-trained": Number(float(first["norm_trained"]), math.nan),
        },
        texts=len(rows),
        undefined=UNDEFINED,
    )


@final
@dataclass(frozen=True, kw_only=True)
class Choice:
    """The scale of random vectors for one attention, and the numbers it was chosen by."""

    attention: str
    scale: float
    best: float  # the scale with the highest mean
    difference: float  # of that mean to the one at the scale that ties keep
    error: float  # one standard error of the difference, over the pairs
    pairs: int
    means: Mapping[float, float]  # of every scale


def choose_scales(scores: pd.DataFrame) -> list[Choice]:
    """For each attention the scale of random vectors with the highest mean dev score; a tie keeps 0.1.

    `scores` has one row per model: attention, corpus, encoder, seed, scale, score. The mean is over corpora,
    encoders and seeds. The best scale is compared with 0.1 in pairs of the same corpus, encoder and seed: a
    mean difference of less than one standard error, sd / sqrt(pairs), is a tie. Agreement with importances
    has no part in it. Scales that were not all run on the same models are refused.
    """
    return [_choice(str(name), of_one) for name, of_one in scores.groupby("attention", sort=True)]


def _choice(attention: str, scores: pd.DataFrame) -> Choice:
    table = scores.pivot_table(index=list(PAIRED), columns="scale", values="score", aggfunc="mean")
    twice = scores.duplicated([*PAIRED, "scale"]).any()
    if twice or KEPT not in table.columns or table.isna().any(axis=None) or len(table) < 2:
        raise Refusal(
            f"the scale of random vectors for {attention} attention",
            got=f"{len(scores)} models of scales {', '.join(f'{scale:g}' for scale in table.columns)}",
            needs=f"{KEPT:g} among the scales, and every corpus, encoder and seed once at each of them",
            way_out="Run the whole study `vectors` before asking.",
        )
    averages = table.mean()
    means = dict(zip(map(float, averages.index), map(float, averages), strict=True))
    best = max(means, key=lambda scale: (means[scale], scale == KEPT))
    paired = (table[best] - table[KEPT]).to_numpy(dtype=np.float64)
    difference, error = float(paired.mean()), float(paired.std(ddof=1) / math.sqrt(len(paired)))
    wins = difference > 0 and difference >= error
    return Choice(
        attention=attention,
        scale=best if wins else KEPT,
        best=best,
        difference=difference,
        error=error,
        pairs=len(paired),
        means=means,
    )


def dev_scores(config: Mapping[str, Any], rows: pd.DataFrame) -> pd.DataFrame:
    """What `choose_scales` asks for, from a finding's configuration and its rows; empty for other vectors."""
    name = str(config["model"].get("vectors", ""))
    if not name.startswith("random("):
        return pd.DataFrame()
    models = rows[rows["subject"] == "trained"].groupby("seed", as_index=False).first()
    about = {axis: config[axis] for axis in ("corpus", "encoder", "attention")}
    width = {"embedding": config["model"].get("embedding")}
    scale = float(name.removeprefix("random(").removesuffix(")"))
    return (
        models[["seed", "dev_score"]]
        .rename(columns={"dev_score": "score"})
        .assign(**about, **width, scale=scale)
    )


NO_NULL = "none here: settings are compared with each other; `importance` has the nulls of agreement"


OURS = "ours: the papers use pretrained vectors and do not vary them"


def _tau(importance: str, section: str) -> Card:
    return Card(
        measure=f"Kendall's tau of attention and {importance}",
        formula=f"mean over texts of tau-b of the weights and {importance} of the units",
        range=(-1.0, 1.0),
        direction="higher: attention ranks words as the importance does",
        null=NO_NULL,
        unit="rank correlation",
        paper="jain2019attention",
        section=section,
        undefined_when="the text has one token, or one of the rankings is constant",
    )


def _norm(when: str) -> Card:
    return Card(
        measure=f"Length of the word vectors {when}",
        formula="mean over the words of the vocabulary, which are those of the training texts, of the"
        " Euclidean length of their vectors; words that a vector file lacks start at zero and count",
        range=(0.0, math.inf),
        direction="neither: a dot product grows with it",
        null="none",
        unit="Euclidean length",
        paper="jain2019attention",
        section=OURS,
        undefined_when="never",
    )


CARDS: dict[str, Card] = {
    "vectors/tau-gradient": _tau("gradient times input, attention held,", "4.1, on a sample of the texts"),
    "vectors/tau-loo": _tau("leave-one-out", "4.1, on a sample of the texts"),
    "vectors/max-weight-times-length": Card(
        measure="Largest weight times length",
        formula="mean over texts of max a * T, T being the number of units",
        range=(1.0, math.inf),
        direction="higher: attention is further from uniform",
        null="1: uniform attention",
        unit="multiples of the uniform weight",
        paper="jain2019attention",
        section=OURS,
        undefined_when="never",
    ),
    "vectors/dev-score": Card(
        measure="Dev score that selects the epoch",
        formula="ROC-AUC where there are two classes, accuracy where there are more, on the dev split, of the"
        " epoch that training kept",
        range=(0.0, 1.0),
        direction="higher is better",
        null="0.5 for ROC-AUC; for accuracy the share of dev's commonest label",
        unit="share of pairs, or of texts",
        paper="jain2019attention",
        section=OURS,
        undefined_when="all labels of dev are alike, or an output is not a number",
    ),
    "vectors/dev-accuracy": Card(
        measure="Accuracy on dev",
        formula="share of dev texts whose predicted label is the gold label, of the epoch that training kept",
        range=(0.0, 1.0),
        direction="higher is better",
        null="the share of dev's commonest label",
        unit="share of texts",
        paper="jain2019attention",
        section=OURS,
        undefined_when="an output is not a number",
    ),
    "vectors/vector-norm-start": _norm("before training"),
    "vectors/vector-norm-trained": _norm("after training"),
}


CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
