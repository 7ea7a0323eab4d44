"""Does it matter whether attention was learnt, or would a bag of words' do?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch

from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.log_odds import ABOUT
from attentest.model.config import ModelConfig
from attentest.model.networks.attention import LAST_STATE
from attentest.model.networks.decoder import distribution
from attentest.model.networks.log_odds import LOG_ODDS
from attentest.model.reader import readings
from attentest.statistics.comparison import jensen_shannon, kendall

FACTOR = 5  # of the published regulariser
LEARNT = ("trained", "regularised")  # whose attention is their own

Guide = Mapping[str, np.ndarray]  # the log-odds attention of every text, by id


@final
@dataclass(frozen=True, kw_only=True)
class LogOdds(AbstractExperiment):
    """Attention from a bag of words, imposed, trained under or aimed at, beside none at all (JW-6)."""

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """A model trained under the log-odds, one drawn towards them, and one without attention."""
        # What belongs to the subject's own attention does not fit another.
        other = replace(config, projection="softmax", loss="task", guide=None, start_from=None)
        return {
            "log-odds": replace(other, attention=LOG_ODDS),
            "regularised": replace(config, loss=f"{LOG_ODDS}({FACTOR})"),
            "last state": replace(other, attention=LAST_STATE),
        }

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and variant; `imposed` is the trained model under the log-odds attention."""
        labels = subject.labels
        frame = subject.sibling["log-odds"].readings
        guide = dict(zip(frame["id"], map(np.asarray, frame["weights"]), strict=True))
        for each in (subject, *subject.sibling.values()):
            for text in each.readings.to_dict("records"):
                told = _answer(labels, text["label"], np.asarray(text["logits"]))
                apart = _comparison(each.name, np.asarray(text["weights"]), guide[text["id"]])
                yield {"subject": each.name, "id": text["id"], **told, **apart}
        for name, label, logits in impose(subject, guide):
            apart = _comparison("imposed", guide[name], guide[name])
            yield {"subject": "imposed", "id": name, **_answer(labels, label, logits), **apart}


def impose(subject: Subject, guide: Guide) -> Iterator[tuple[str, str, np.ndarray]]:
    """Id, label and logits of every test text where the subject's model decides under the guide's weights."""
    examples = subject.texts.examples
    for rows, reading in readings(subject.model, subject.texts):
        given = torch.zeros_like(reading.weights)
        for place, row in enumerate(rows):
            weights = torch.tensor(guide[examples[row].id])
            given[place, : len(weights)] = weights
        with torch.no_grad():
            logits = subject.model.decide(reading, given).cpu().numpy()
        for place, row in enumerate(rows):
            yield examples[row].id, examples[row].label, logits[place]


def _answer(labels: tuple[str, ...], label: str, logits: np.ndarray) -> Row:
    probabilities = distribution(torch.tensor(logits.astype(np.float64))[None])[0].numpy()
    return {
        "label": label,
        "gold": labels.index(label),
        "predicted": labels[int(probabilities.argmax())],
        "probabilities": probabilities.tolist(),
    }


def _comparison(variant: str, weights: np.ndarray, log_odds: np.ndarray) -> Row:
    """How near a variant's attention is to the log-odds, and how near it would be if it were uniform.

    One token leaves attention no choice, and the last state is not attended: NaN.
    """
    length = len(log_odds)
    jsd = null = tau = math.nan
    if length > 1 and variant != "last state":
        jsd = float(jensen_shannon(weights, log_odds))
        null = float(jensen_shannon(np.full(length, 1 / length), log_odds))
    if variant in LEARNT:
        tau, _ = kendall(weights, log_odds)
    return {"length": length, "jsd": jsd, "null_jsd": null, "tau": tau}
