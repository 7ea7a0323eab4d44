"""Word vectors learnt from the corpus's own training text by gensim, as the papers did for MIMIC."""

from __future__ import annotations

import importlib
import importlib.util
import re
import zlib

import numpy as np

from attentest.corpus.example import Corpus
from attentest.corpus.vocabulary import RESERVED, Vocabulary
from attentest.refusal import Refusal

WINDOW, EPOCHS = 10, 5
WRITTEN = re.compile(r"word2vec(?:\((\d+)\))?")


def width_of(written: str, otherwise: int) -> int:
    """The width in `word2vec(WIDTH)`, or the corpus's own where none is written."""
    match = WRITTEN.fullmatch(written)
    width = int(match[1] or otherwise) if match else 0
    if not 1 <= width <= 10_000:
        raise Refusal(
            "vectors",
            got=repr(written),
            needs="word2vec, or word2vec(WIDTH) with a width from 1 to 10000",
            way_out="For example word2vec(200).",
        )
    return width


def check_gensim() -> None:
    """Refuse before any work is planned, not in the middle of it."""
    if importlib.util.find_spec("gensim") is None:
        raise Refusal(
            "vectors word2vec",
            got="no gensim",
            needs="the package that trains them",
            way_out="pip install 'attentest[vectors]'.",
        )


def train_vectors(corpus: Corpus, vocabulary: Vocabulary, *, width: int, seed: int) -> np.ndarray:
    """Vectors for the vocabulary, from the training split alone; one thread, so the same seed, same bits.

    Words that the text does not hold (the markers) are drawn from N(0, 1), as the published code does for
    word2vec; padding stays zero because the model says so.
    """
    check_gensim()
    texts = [[*example.tokens, *(example.query or ())] for example in corpus.train]
    trained = importlib.import_module("gensim.models").Word2Vec(
        texts,
        vector_size=width,
        window=WINDOW,
        min_count=1,
        workers=1,
        epochs=EPOCHS,
        seed=seed,
        hashfxn=lambda word: zlib.crc32(word.encode()),  # Python's own hash differs between processes
    )
    matrix = np.random.default_rng(seed).normal(size=(len(vocabulary), width)).astype(np.float32)
    for number, word in enumerate(vocabulary.words[len(RESERVED) :], start=len(RESERVED)):
        matrix[number] = trained.wv[word]
    return matrix
