"""What every row of a text begins with: whose it is, which text, what was predicted, how attention looks."""

from __future__ import annotations

import numpy as np
import torch

from attentest.evidence.removal.decisions import explained_class
from attentest.experiments.contract import Row, Subject
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Reading


@torch.no_grad()
def common_columns(subject: Subject, rows: np.ndarray, reading: Reading) -> list[Row]:
    """One row for each text of a reading, in its order; an experiment adds what it measured.

    `predicted` is the class that importances are of: where a reading names none, the likeliest.
    `attention_rate` and `attention_start` are there where dev chose them for this model.
    """
    examples, labels = subject.texts.examples, subject.labels
    predicted = explained_class(reading, distribution(subject.model.decide(reading))).tolist()
    chosen = _chosen(subject)
    lengths, largest = reading.mask.sum(1).tolist(), reading.weights.amax(1).tolist()
    return [
        {
            "subject": subject.name,
            "id": examples[row].id,
            "label": examples[row].label or None,
            "predicted": labels[predicted[place]],
            "length": lengths[place],
            "max_attention": largest[place],
            **chosen,
        }
        for place, row in enumerate(rows)
    ]


def _chosen(subject: Subject) -> Row:
    origin = subject.model.origin
    if origin is None:
        return {}
    names = ("attention_rate", "attention_start")
    return {name: getattr(origin.config, name) for name in names if getattr(subject.config, f"{name}s")}
