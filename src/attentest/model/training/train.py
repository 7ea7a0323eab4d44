"""`train` as Python users call it: a corpus in, a trained model out, no store needed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attentest.corpus.example import Corpus
from attentest.corpus.tables.table import read_table
from attentest.corpus.vectors import fingerprint, load_vectors
from attentest.corpus.vocabulary import Vocabulary
from attentest.corpus.word2vec import train_vectors
from attentest.model.network import AttentionModel
from attentest.model.protocol import resolved
from attentest.model.text_rows import text_rows
from attentest.model.training.building import build_network
from attentest.model.training.finite import check_finite
from attentest.model.training.imitation import said
from attentest.model.training.loop import Progress, Training
from attentest.model.training.provenance import config_of, placed
from attentest.model.training.tuning import best, candidates, merit, settled


def train(
    corpus: Any,
    *,
    encoder: str = "bilstm",
    attention: str = "additive",
    projection: str = "softmax",
    seed: int = 0,
    device: str = "cpu",
    guide: Mapping[str, np.ndarray] | None = None,
    imitated: AttentionModel | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    **settings: Any,
) -> AttentionModel:
    """Train by the papers' protocol; `settings` are those of ModelConfig. `model.record` tells how it went.

    `corpus` is a corpus, or whatever `read_table` makes one of: a data frame, a file, a list of pairs.
    Of several `attention_rates` each is trained, and what does best on dev is returned.
    `guide` gives the weights of `projection="stored"`, by text id; `imitated` is the model that
    `loss="imitate(NAME, LAMBDA)"` is about, whatever the name.
    """
    if not isinstance(corpus, Corpus):
        corpus = read_table(corpus)
    grid = {"encoder": encoder, "attention": attention, "projection": projection, "seed": seed}
    config = config_of({**grid, **settings})
    vocabulary = Vocabulary.build(corpus.train, corpus.preparation.get("min_df", 1))
    vectors = None
    if not config.vectors.startswith(("random", "word2vec")):
        path = Path(config.vectors)
        vectors, _ = load_vectors(path, vocabulary)
        config = replace(config, vectors=f"file:{fingerprint(path)}", embedding=vectors.shape[1])
    config = resolved(config, family=corpus.family, classes=len(corpus.labels), has_query=corpus.has_query)
    if config.vectors.startswith("word2vec"):
        assert config.embedding is not None
        vectors = train_vectors(corpus, vocabulary, width=config.embedding, seed=config.seed)
    base = None
    if imitated is not None:
        of_splits = (text_rows(imitated, corpus, split, scores=True) for split in ("train", "dev"))
        base = said(itertools.chain(*of_splits), imitated.config.projection)
    config = placed(settled(config), "cuda" if torch.device(device).type == "cuda" else "cpu")
    models = []
    for each in candidates(config) or [config]:
        model = build_network(each, corpus, vocabulary, vectors=vectors, guide=guide).to(torch.device(device))
        model.record = Training(model, corpus, base=base, on_progress=on_progress).run()
        models.append(model)
    kept = models[best([merit(model, model.record.scores["dev"], corpus, base) for model in models])]
    check_finite(kept, asdict(kept.record))
    return kept
