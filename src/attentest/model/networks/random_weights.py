"""Weights that mean nothing: drawn once for every text, the same whenever the text is read."""

from __future__ import annotations

import hashlib

import numpy as np
from jaxtyping import Float

from attentest.corpus.anonymised import anonymised
from attentest.corpus.example import Corpus, Example
from attentest.model.config import ModelConfig

RANDOM = "random"  # a guide that is no model's


def drawn_guide(config: ModelConfig, corpus: Corpus) -> dict[str, Float[np.ndarray, " unit"]]:
    """For every text of the corpus a point drawn evenly from the simplex, by the seed and the text's id."""
    read = anonymised(corpus, config.omit)
    return {
        example.id: _drawn(config.seed, example.id, _units(config, example))
        for split in (read.train, read.dev, read.test)
        for example in split
    }


def _units(config: ModelConfig, example: Example) -> int:
    """How many there are to attend to: tokens, or sentences, of which every text has one."""
    return len(example.sentences or (0,)) if config.encoder.startswith("han-") else len(example.tokens)


def _drawn(seed: int, name: str, units: int) -> Float[np.ndarray, " unit"]:
    # Of the text's own, not the next of one long sequence: another text more or less changes nothing.
    digest = hashlib.sha256(name.encode()).digest()
    rng = np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])
    return rng.dirichlet(np.ones(units))
