"""Which texts of a split are kept whole, word by word, for a person to look at."""

from __future__ import annotations

import numpy as np

from attentest.experiments.contract import Subject


def shown(subject: Subject, count: int, ids: str = "") -> set[int]:
    """`count` rows spread over the split, and those of the texts named in `ids`, which spaces separate.

    A vector for every word of every text would fill a store; numbers are kept of all texts, vectors of these.
    """
    examples = subject.texts.examples
    spread = np.linspace(0, len(examples) - 1, min(count, len(examples))).astype(int)
    named = set(ids.split())
    return {*spread.tolist(), *(row for row, example in enumerate(examples) if example.id in named)}
