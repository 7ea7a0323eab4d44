"""How far does each output move under weights that attention did not choose?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from torch import Tensor

from attentest.evidence.ablation import Moved, moved, moved_by_uniform, shares
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.permutation import permuted
from attentest.experiments.ablation import ABOUT
from attentest.experiments.ablation.conclude import ASKED, EXPLAINED
from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.experiments.shared.shown import shown
from attentest.model.reader import readings
from attentest.model.seam import Reading
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, kw_only=True)
class Ablation(AbstractBesideControls):
    """The output under uniform weights and under one permutation of the own, beside the controls'.

    Of the texts kept whole also under their importances and the words that people marked, as if those were
    the attention: what a reader sees of a text then has its effect beside it.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    shown: int = 50
    texts: str = ""  # ids of further texts to keep whole

    def __post_init__(self) -> None:
        if self.shown < 0:
            raise Refusal(
                "experiment ablation",
                got=f"{self.shown} texts to show",
                needs="0 texts or more",
                way_out="50 texts are the default.",
            )

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """One row a text."""
        whole = shown(subject, self.shown, self.texts) if subject.name == "trained" else set()
        explained = dict(_explained(subject, whole))
        for rows, reading in readings(subject.model, subject.texts):
            other = permuted(reading.weights, reading.mask, 1, rng=rng)[:, 0]
            found = (moved_by_uniform(subject.model, reading), moved(subject.model, reading, other))
            columns = [_told(subject, name, each) for name, each in zip(ASKED, found, strict=True)]
            for place, row in enumerate(common_columns(subject, rows, reading)):
                at = int(rows[place])
                kept = other[place, : row["length"]].tolist() if at in whole else None
                yield {
                    **row,
                    **{name: value for column in columns for name, value in column[place].items()},
                    "permuted_weights": kept,
                    **explained.get(at, NOT_ASKED),
                }


def _explained(subject: Subject, whole: set[int]) -> Iterator[tuple[int, Row]]:
    """The outputs of some texts under what explains them, by row."""
    model = subject.model
    for rows, reading in readings(model, subject.texts, whole):
        found = gradients(model, reading.batch)
        given = {
            "gradient": shares(found.times_input, reading.mask),
            "loo": shares(leave_one_out(model, found.reading).change, reading.mask),
            "rationale": shares(_marked(subject, rows, reading), reading.mask),
        }
        columns = [_told(subject, name, moved(model, reading, given[name])) for name in EXPLAINED]
        for at, told in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
            yield at, {name: value for one in told for name, value in one.items()}


def _marked(subject: Subject, rows: np.ndarray, reading: Reading) -> Tensor:
    """1 at the words that somebody marked; 0 everywhere where nobody did, or where units are not words."""
    marks = torch.zeros_like(reading.weights)
    for place, row in enumerate(rows):
        example = subject.texts.examples[row]
        if example.rationale and len(example.tokens) == int(reading.mask[place].sum()):
            marks[place, list(example.rationale)] = 1.0
    return marks


def _told(subject: Subject, name: str, found: Moved) -> list[Row]:
    """The change and the new prediction of each text; no prediction where there is no change to speak of."""
    changes, classes, labels = found.change.tolist(), found.likeliest.tolist(), subject.labels
    return [
        {f"{name}_change": change, f"{name}_predicted": None if math.isnan(change) else labels[most]}
        for change, most in zip(changes, classes, strict=True)
    ]


# What a row has of an attention that the model was not asked about.
NOT_ASKED: Row = {
    **{f"{name}_change": math.nan for name in EXPLAINED},
    **{f"{name}_predicted": None for name in EXPLAINED},
}
