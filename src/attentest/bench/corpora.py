"""Corpora as cells. They are prepared while planning, because a model's shape depends on their labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from attentest.corpus.catalogue import CORPORA, canonical_name, find_source, fingerprint, load_corpus
from attentest.corpus.example import Corpus, Example
from attentest.corpus.files import from_files, from_text, to_files, to_text
from attentest.corpus.single import reviews
from attentest.corpus.vocabulary import Vocabulary
from attentest.corpus.words import WORDS_VERSION
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.store import Store

CORPUS_VERSION = 1
OUTSIDE = (
    "outside"  # of an observation: the texts beyond its corpus, by digest in its key, in full in its plan
)


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
    _check_same_source(cell)
    corpus = load_corpus(cell.config["name"], data_dir=cell.where.get("data_dir"))
    store.write(cell, to_files(corpus), {})


def traits_of(cell: Cell, store: Store) -> dict[str, Any]:
    """Labels, family and whether there is a query; the corpus is prepared first if it is not yet."""
    if not (store.has(cell.key) and store.holds(cell.key, "corpus.json")):
        prepare_corpus(cell, store)
    return json.loads(store.read(cell.key, "corpus.json"))


def texts_outside(ids: Sequence[str], cell: Cell, store: Store) -> str:
    """Of these texts, those that the corpus does not hold and its source has, spelled out; empty for none.

    Only IMDB's source is looked into. What it has follows from the corpus's key, which names its files by
    their content; files that are gone or have changed since are refused.
    """
    if cell.config["name"] != "imdb" or not ids:
        return ""
    if not store.is_whole(cell.key):
        prepare_corpus(cell, store)
    corpus, _ = stored_corpus(store, cell.key)
    absent = set(ids) - {example.id for split in corpus.splits().values() for example in split}
    if not absent:
        return ""
    _check_same_source(cell)
    found = reviews(absent, cell.where.get("data_dir"))
    return to_text(found.values()) if found else ""


def digest_of(texts: str) -> str:
    """How a key names texts that were spelled out."""
    return hashlib.sha256(texts.encode()).hexdigest()


def planned_outside(cell: Cell) -> tuple[Example, ...]:
    """The texts beyond its corpus that the plan gives an observation: those that its key means, or none."""
    asked, texts = cell.config.get(OUTSIDE), cell.where.get(OUTSIDE, "")
    if asked is None:
        return ()
    if digest_of(texts) != asked:
        raise Refusal(
            f"observation of {cell.config['experiment']}",
            got="other texts beyond its corpus than its key means" if texts else "a plan without its texts",
            needs="the texts that were there when it was planned",
            way_out="Plan again where the publisher's files are.",
        )
    return from_text(texts)


def _check_same_source(cell: Cell) -> None:
    name = cell.config["name"]
    if corpus_cell(name, data_dir=cell.where.get("data_dir")).key != cell.key:
        raise Refusal(
            f"corpus {name}",
            got="another source or preparation than when this was planned",
            needs="the files as they were",
            way_out="Plan again: other texts are another corpus.",
        )


@lru_cache(maxsize=2)
def stored_corpus(store: Store, key: str) -> tuple[Corpus, Vocabulary]:
    """A corpus from its cell, with the vocabulary of its training split; the last two stay in memory."""
    corpus = from_files(lambda name: store.read(key, name))
    return corpus, Vocabulary.build(corpus.train, corpus.preparation.get("min_df", 1))
