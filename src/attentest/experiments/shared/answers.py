"""Rows that can be scored: what a model answered, with all its probabilities."""

from __future__ import annotations

import numpy as np
import torch

from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Reading


@torch.no_grad()
def answered(subject: Subject, rows: np.ndarray, reading: Reading) -> list[Row]:
    """A row begun for each text of a reading, and its `gold` number and `probabilities`.

    Probabilities are taken in double precision, where two logits that differ hardly ever round to a tie,
    and the predicted label is theirs, so that whoever scores the row finds the same answer in both.
    """
    labels = subject.labels
    outputs = distribution(subject.model.decide(reading).double()).cpu().numpy()
    return [
        {
            **row,
            "predicted": labels[int(probabilities.argmax())],
            "gold": labels.index(row["label"]),
            "probabilities": probabilities.tolist(),
        }
        for row, probabilities in zip(common_columns(subject, rows, reading), outputs, strict=True)
    ]
