"""How well the models predict: the first thing to know before asking whether their attention explains.

The measures themselves are in `statistics.scores`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.performance import ABOUT
from attentest.statistics.card import Card
from attentest.statistics.finding import finding
from attentest.statistics.interval import interval_of_statistic
from attentest.statistics.record import Finding, ordered
from attentest.statistics.scores import (
    MEASURES,
    NOT_A_NUMBER,
    UNDEFINED,
    Predictions,
    is_binary,
    predictions,
    value_of,
)

COLUMNS = ("seed", "subject", "id", "label", "predicted", "gold", "probabilities")


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Accuracy, F1 and AUC of the trained models over all texts, and accuracy by gold label."""
    rows = ordered(rows, COLUMNS)
    rows = rows[rows["subject"] == "trained"]
    if rows.empty:
        return []
    number = dict(zip(rows["label"], rows["gold"], strict=True))
    samples = [_from_rows(of_seed, number) for _, of_seed in rows.groupby("seed")]
    null = _constant_answers(samples)
    findings = [_finding(name, "overall", samples, null[name], mode, rng) for name in MEASURES]
    majority = max(sorted(number.values()), key=lambda index: (rows["gold"] == index).sum())
    for label, index in sorted(number.items(), key=lambda item: item[1]):
        texts = [sample.only(sample.gold == index) for sample in samples]
        findings.append(_finding("accuracy", f"label={label}", texts, float(index == majority), mode, rng))
    return findings


def _finding(
    measure: str,
    group: str,
    samples: Sequence[Predictions],
    null: float,
    mode: str,
    rng: np.random.Generator,
) -> Finding:
    numeric = [sample.only(np.isfinite(sample.probabilities).all(axis=1)) for sample in samples]
    values = [value_of(measure, sample) for sample in numeric]
    used = [sample for sample, value in zip(numeric, values, strict=True) if not math.isnan(value)]
    total, left, n = (sum(len(sample) for sample in some) for some in (samples, numeric, used))
    why = [NOT_A_NUMBER] * (left < total) + [UNDEFINED[measure]] * (n < left)
    interval = interval_of_statistic(used, [sample.ids for sample in used], MEASURES[measure], rng=rng)
    of_seeds = [value for value in values if not math.isnan(value)]
    right = np.concatenate([sample.gold == sample.predicted for sample in used] or [np.empty(0)])
    return finding(
        of_seeds,
        interval=interval,
        std=float(right.std()) if measure == "accuracy" and n else math.nan,
        experiment="performance",
        measure=measure,
        group=group,
        n=n,
        excluded=total - n,
        why="; ".join(why),
        null=null,
        mode=mode,
    )


def _constant_answers(samples: Sequence[Predictions]) -> dict[str, float]:
    """What the best answer that never looks at the text would score.

    For accuracy that is the majority class. For F1 of class 1 it is class 1, always: to answer the
    majority would score 0 whenever class 1 is the rarer, and any model would seem to beat it.
    """
    gold = np.concatenate([sample.gold for sample in samples])
    shares = np.unique(gold, return_counts=True)[1] / len(gold)
    asked = np.array([(gold == 1).mean()]) if is_binary(samples[0]) else shares
    always = 2.0 * asked.max() / (1.0 + asked.max()) / len(asked)
    return {"accuracy": float(shares.max()), "f1": float(always), "auc": 0.5}


def _from_rows(rows: pd.DataFrame, number: dict[str, int]) -> Predictions:
    probabilities = np.array(rows["probabilities"].tolist(), dtype=np.float64)
    sample = predictions(rows["id"].to_numpy(), rows["gold"].to_numpy(), probabilities)
    # The stored answer decides, since probabilities that round to a tie cannot say which logit was larger.
    # A class that is never gold has no number here, and there the probabilities must do.
    named = rows["predicted"].map(number)
    predicted = named.fillna(pd.Series(sample.predicted, index=rows.index)).to_numpy(dtype=np.int64)
    return replace(sample, predicted=predicted)


CARDS: dict[str, Card] = {
    "performance/accuracy": Card(
        measure="Accuracy",
        formula="share of texts whose predicted label is the gold label",
        range=(0.0, 1.0),
        direction="higher is better",
        null="the share of the majority class: what always answering it scores. By gold label, that same"
        " answer scores 1 on the majority label and 0 on the others.",
        unit="share of texts",
        paper="jain2019attention",
        section="Table 1 (question answering)",
        undefined_when="there is no text, or no output is a number",
    ),
    "performance/f1": Card(
        measure="F1",
        formula="2 TP / (2 TP + FP + FN) of class 1 where there are two classes; of more, the plain mean"
        " over the classes that occur as gold or predicted label",
        range=(0.0, 1.0),
        direction="higher is better",
        null="the best constant answer. Two classes: always class 1, which scores 2 s / (1 + s) for its"
        " share s; answering the majority instead would score 0 wherever class 1 is the rarer. More"
        " classes: always the majority.",
        unit="harmonic mean of precision and recall",
        paper="jain2019attention",
        section="Table 1 (classification)",
        undefined_when="two classes, and class 1 is neither gold nor predicted anywhere",
    ),
    "performance/auc": Card(
        measure="ROC-AUC",
        formula="chance that a text of class 1 gets a higher probability of class 1 than a text of class 0,"
        " ties counting half; of more classes, the plain mean of one class against the rest over the"
        " gold classes",
        range=(0.0, 1.0),
        direction="higher is better",
        null="0.5: a probability that ranks at random",
        unit="share of pairs",
        paper="jain2019attention",
        section="not printed; the published code chooses its checkpoint by it",
        undefined_when="all gold labels are alike",
    ),
}

CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
