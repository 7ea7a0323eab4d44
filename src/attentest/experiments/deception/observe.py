"""Can a model attend elsewhere and go on using the words it must not attend to?

Rows, one a text and model, beyond what every row begins with (`experiments.rows.begun`):

- `impermissible`: how many tokens of the text are; 0 for every text of the anonymised model
- `mass`: the attention that lies on them; `mass_left`: the attention that lies elsewhere
- `probability`, `correct`: of the gold label under the model's own attention; `correct` is 1, 0, or NaN where
  the output is not a number
- `predicted_P`, `probability_P`, `correct_P` for P in `zeroed`, `renormalised`: the same under attention from
  which the impermissible weights were taken
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from attentest.corpus.marks import RATIONALE, marks
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.deception import ABOUT
from attentest.experiments.deception.conclude import ANONYMISED, PENALISED
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import controls
from attentest.model.config import ModelConfig
from attentest.model.losses import IMPERMISSIBLE, TASK
from attentest.model.networks.decoder import distribution
from attentest.model.reader import readings
from attentest.model.seam import Reading
from attentest.refusal import Refusal
from attentest.shapes import Weights

Marked = Bool[Tensor, "batch token"]


@final
@dataclass(frozen=True, kw_only=True)
class Deception(AbstractExperiment):
    """Models trained not to attend to some words, and what they do with them all the same (Pruthi et al.).

    The classification part of the paper; the penalty is on the attention that pools a text's tokens.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    words: str = RATIONALE  # the impermissible ones, or the tokens that decide where a corpus knows them
    lambdas: str = "0 0.1 1"  # 0 is the subject itself

    def __post_init__(self) -> None:
        if not self.words.split():
            raise Refusal(
                "experiment deception",
                got="no impermissible words",
                needs=f"words separated by spaces, or {RATIONALE}",
                way_out='Write for example words = "he she her his him himself herself".',
            )
        if not self.penalties:
            raise Refusal(
                "experiment deception",
                got=f"the lambdas {self.lambdas!r}",
                needs="numbers of at least 0, separated by spaces, one of them above 0",
                way_out='The paper\'s are "0 0.1 1".',
            )

    @property
    def penalties(self) -> tuple[float, ...]:
        """The lambdas that need a model of their own; none if any cannot be read."""
        try:
            given = [float(number) for number in self.lambdas.split()]
        except ValueError:
            return ()
        if not all(0 <= number < math.inf for number in given):
            return ()
        return tuple(sorted({number for number in given if number}))

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """A model for each penalty, one that never sees the words, and the controls."""
        if (config.loss, config.omit) != (TASK, ""):
            raise Refusal(
                "experiment deception",
                got=f"models with loss = {config.loss!r} and omit = {config.omit!r}",
                needs="models that learn their task alone, from whole texts: it makes the others itself",
                way_out="Leave both settings out.",
            )
        words = " ".join(self.words.split())  # the same words, however spaced, are the same model
        penalised = {
            f"{PENALISED}{factor:g}": replace(config, loss=f"{IMPERMISSIBLE}({factor:g}, {words})")
            for factor in self.penalties
        }
        return {**penalised, ANONYMISED: replace(config, omit=words), **controls(config)}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model."""
        for each in (subject, *subject.sibling.values()):
            marked = marks(each.texts.examples, self.words)
            for rows, reading in readings(each.model, each.texts):
                yield from _observed(each, rows, reading, _padded([marked[row] for row in rows], reading))


def _observed(subject: Subject, rows: np.ndarray, reading: Reading, marked: Marked) -> Iterator[Row]:
    zeroed, renormalised = without(reading.weights, marked)
    with torch.no_grad():
        columns = {
            "impermissible": marked.sum(1).tolist(),
            # A float32 softmax may exceed one by its last bit.
            "mass": (reading.weights * marked).sum(1).clamp(max=1).tolist(),
            "mass_left": zeroed.sum(1).clamp(max=1).tolist(),
            **_answers(subject, reading, reading.weights),
            **_answers(subject, reading, zeroed, "_zeroed"),
            **_answers(subject, reading, renormalised, "_renormalised"),
        }
    for place, row in enumerate(common_columns(subject, rows, reading)):
        yield {**row, **{name: column[place] for name, column in columns.items()}}


def without(weights: Weights, marked: Marked) -> tuple[Weights, Weights]:
    """Attention without what lies on impermissible tokens: the gap left open, and closed again.

    Zeroing alone is the published probe. It also makes the context vector shorter, which dividing the rest
    by its sum does not; where there is no rest, that is NaN.
    """
    zeroed = weights.masked_fill(marked, 0.0)
    return zeroed, zeroed / zeroed.sum(1, keepdim=True)


def _answers(subject: Subject, reading: Reading, weights: Weights, probe: str = "") -> dict[str, list[Any]]:
    """What the model says of every text under these weights; whether a NaN is right, nobody knows."""
    probabilities = distribution(subject.model.decide(reading, weights))
    answers, gold = probabilities.argmax(-1), reading.batch.labels
    right = (answers == gold).to(probabilities).masked_fill(probabilities.isnan().any(-1), math.nan)
    return {
        f"predicted{probe}": [subject.labels[number] for number in answers.tolist()],
        f"probability{probe}": probabilities.gather(1, gold[:, None])[:, 0].tolist(),
        f"correct{probe}": right.tolist(),
    }


def _padded(marked: Sequence[np.ndarray], reading: Reading) -> Marked:
    """The marks of a batch's texts, one a token, in the shape of its mask."""
    padded = np.zeros(reading.mask.shape, dtype=bool)
    for row, of_text in zip(padded, marked, strict=True):
        row[: len(of_text)] = of_text
    return torch.from_numpy(padded).to(reading.mask.device)
