"""Corpora as cells. They are prepared while planning, because a model's shape depends on their labels."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from attentest.corpus.catalogue import CORPORA, canonical_name, find_source, fingerprint, load_corpus
from attentest.corpus.example import Corpus
from attentest.corpus.files import from_files, to_files
from attentest.corpus.vocabulary import Vocabulary
from attentest.corpus.words import WORDS_VERSION
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.store import Store

CORPUS_VERSION = 1


def check_may_be_stored(name: str) -> None:
    """Refuse a corpus whose texts its holder has promised not to pass on: a store is easily copied."""
    if name in CORPORA and CORPORA[name].restriction == "needs credentials":
        raise Refusal(
            f"corpus {name}",
            got="texts that need credentials, about to be written into a store",
            needs="your word that the store is as private as they are",
            way_out="Add --include-text; then keep the store to yourself, vocabulary and models included.",
        )


def check_is_canonical(name: str) -> None:
    """Refuse another spelling of a corpus's parameters in a study: pages and claims compare names as text."""
    if canonical_name(name) != name:
        raise Refusal(
            f"corpus {name!r}",
            got="a spelling that is not the canonical one",
            needs=f"{canonical_name(name)!r}",
            way_out="Write it so wherever the study names this corpus.",
        )


def corpus_cell(name: str, *, data_dir: str | None = None) -> Cell:
    """The cell of a corpus: its source's fingerprint and its preparation, read off without preparing it."""
    name = canonical_name(name)
    source = find_source(name)
    recipe = source.preparation.record() if source is not None else {"words_version": WORDS_VERSION}
    config = {"name": name, "source": fingerprint(name, data_dir), "preparation": recipe}
    where = {} if data_dir is None else {"data_dir": str(data_dir)}
    return Cell(stage="corpus", version=CORPUS_VERSION, config=config, where=where)


def prepare_corpus(cell: Cell, store: Store) -> None:
    """Load, prepare and store a corpus, whose source must still be the one the cell names."""
    name, data_dir = cell.config["name"], cell.where.get("data_dir")
    if corpus_cell(name, data_dir=data_dir).key != cell.key:
        raise Refusal(
            f"corpus {name}",
            got="another source or preparation than when this was planned",
            needs="the files as they were",
            way_out="Plan again: other texts are another corpus.",
        )
    corpus = load_corpus(name, data_dir=data_dir)
    store.write(cell, to_files(corpus), {})


def traits_of(cell: Cell, store: Store) -> dict[str, Any]:
    """Labels, family and whether there is a query; the corpus is prepared first if it is not yet."""
    if not (store.has(cell.key) and store.holds(cell.key, "corpus.json")):
        prepare_corpus(cell, store)
    return json.loads(store.read(cell.key, "corpus.json"))


@lru_cache(maxsize=2)
def stored_corpus(store: Store, key: str) -> tuple[Corpus, Vocabulary]:
    """A corpus from its cell, with the vocabulary of its training split; the last two stay in memory."""
    corpus = from_files(lambda name: store.read(key, name))
    return corpus, Vocabulary.build(corpus.train, corpus.preparation.get("min_df", 1))
