"""Texts for models from outside, with and without a second one."""

import numpy as np

from attentest.corpus.example import Example
from tests.families import WORDS


def texts(count=24, *, pairs=False):
    rng = np.random.default_rng(0)

    def words():
        return tuple(rng.choice((*WORDS, "unlikely"), size=rng.integers(2, 7)).tolist())

    return [
        Example(id=f"t{n}", tokens=words(), label="abc"[n % 3], query=words() if pairs else None)
        for n in range(count)
    ]
