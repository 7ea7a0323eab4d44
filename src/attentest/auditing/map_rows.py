"""How a map ranks words beside their importances: the rows of two experiments, as far as a map has them.

The nulls of both compute importances again under other weights. A map cannot be given to the model, and
nothing is known of what it would agree with by chance but what the untrained twin shows. So they are NaN
here, and so is whatever is about the states that one layer weighs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from attentest.evidence.erasure.drawn_units import drawn_units, only
from attentest.experiments.contract import Row, Subject
from attentest.experiments.dispersion import conclude as dispersion
from attentest.experiments.dispersion.observe import Attended, spreads
from attentest.experiments.importance import conclude as importance
from attentest.experiments.importance.observe import Importances, agreement
from attentest.experiments.shared.common_columns import common_columns
from attentest.model.batch import buckets
from attentest.model.reader import TOKENS, together

NOT_OF_MAPS = {
    "importance": "its null gives the model other weights, and a map cannot be given to the model",
    "dispersion": "it is about the states that one layer weighs, or gives the model other weights",
}


def map_importance(subject: Subject) -> Iterator[Row]:
    """One row a text: how the map agrees with gradient and leave-one-out."""
    k = max(10, int(0.1 * subject.texts.lengths.mean()))  # as the study has it
    for rows, own in _importances(subject):
        columns = dict.fromkeys(importance.NUMBERS, np.full(len(rows), np.nan)) | agreement(own, k)
        for place, row in enumerate(common_columns(subject, rows, own.reading)):
            yield {**row, **{name: float(column[place]) for name, column in columns.items()}, "k": k}


def map_dispersion(subject: Subject) -> Iterator[Row]:
    """One row a text: how spread out the map and the importances of words are, and how they agree."""
    for rows, own in _importances(subject):
        words = {
            "inputs_gradient": torch.from_numpy(own.norm_free).to(own.reading.weights),
            "inputs_loo": torch.from_numpy(own.loo).to(own.reading.weights),
        }
        attended = Attended.of(own.reading.weights, own.reading.mask)
        columns = dict.fromkeys(dispersion.NUMBERS, np.full(len(rows), np.nan)) | spreads(own.reading, words)
        for name, known in words.items():
            taus = attended.taus(known)
            columns |= {f"tau_{name}{where}": tau for where, tau in taus.items()}
        columns["support"] = attended.real.sum(1).cpu().numpy()
        for place, row in enumerate(common_columns(subject, rows, own.reading)):
            numbers = {name: float(column[place]) for name, column in columns.items()}
            yield {**numbers, **row, "frobenius": False}


def _importances(subject: Subject) -> Iterator[tuple[np.ndarray, Importances]]:
    """What the transformer itself says of its words, beside the map in place of its weights."""
    model = subject.model
    answered_by = model.capabilities.answered_by
    assert answered_by is not None, "others are asked by the experiments themselves"
    for rows in buckets(subject.texts.lengths, together(subject.texts), tokens=TOKENS):
        batch = subject.texts.batch(rows).to(model.device)
        with torch.no_grad():
            reading = model.read(batch)
        units = drawn_units(reading, subject.ranked)
        own = Importances.of(answered_by.model, batch, known=subject.known, units=units)
        yield rows, replace(own, reading=reading, weights=only(units, reading.weights).cpu().numpy())
