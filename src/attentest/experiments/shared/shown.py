"""Which texts of a split are kept whole, word by word, for a person to look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from attentest.experiments.contract import Subject


def shown(subject: Subject, count: int, ids: str = "") -> set[int]:
    """`count` rows spread over the split, and those of the texts named in `ids`, which spaces separate.

    A vector for every word of every text would fill a store; numbers are kept of all texts, vectors of these.
    """
    return nested(subject, (count,), ids)[0]


def nested(subject: Subject, counts: Sequence[int], ids: str = "") -> list[set[int]]:
    """Like `shown` for several counts, each set within the larger ones: a text shown has all its numbers."""
    examples = subject.texts.examples
    names = set(ids.split())
    named = {row for row, example in enumerate(examples) if example.id in names}
    rows, sets = np.arange(len(examples)), {}
    for count in sorted(counts, reverse=True):
        rows = rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(int)]
        sets[count] = {*rows.tolist(), *named}
    return [sets[count] for count in counts]


def places(rows: np.ndarray, wanted: set[int]) -> Tensor:
    """Where in a batch of these rows the wanted ones are."""
    return torch.tensor([place for place, row in enumerate(rows) if row in wanted], dtype=torch.long)
