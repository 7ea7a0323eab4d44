"""Every corpus by its name: the published ones, those we make, and the user's own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from attentest.corpus import origin
from attentest.corpus.document import Document
from attentest.corpus.example import Corpus
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.origin import Files, Source, data_dir
from attentest.corpus.preparation import prepare
from attentest.corpus.sources import CORPORA
from attentest.corpus.tables.registered import Registration, registrations
from attentest.corpus.tables.table import digest
from attentest.corpus.variants import canonical_name, variant
from attentest.refusal import Refusal, look_up

__all__ = ["CORPORA", "Source", "canonical_name", "data_dir", "find_source", "fingerprint", "load_corpus"]


def find_source(name: str) -> Source | None:
    """The catalogue's entry of that name, with the parameters that the name has; None if there is none."""
    return CORPORA.get(name) or variant(name)


def _entry(name: str, data: Path) -> Source | Registration:
    source = find_source(name)
    if source is not None:
        return source
    known: dict[str, Source | Registration | Refusal] = {**CORPORA, **registrations(data)}
    entry = look_up(name, known, "corpus")
    if isinstance(entry, Refusal):  # somebody spoilt this one; the others are none the worse
        raise entry
    return entry


def _found(name: str, source: Source, files: Files, data: Path) -> Archive:
    archive = files.find(data)
    if archive is None:
        raise Refusal(
            f"corpus {name}",
            got=f"no files of it in {data / files.folder}",
            needs="the publisher's files there, packed as they came or unpacked",
            way_out=f"{source.how_to_get} Or set ATTENTEST_DATA to the folder with {files.folder}/ in it.",
        )
    return archive


def _documents(name: str, source: Source, data: Path) -> Iterator[Document]:
    if isinstance(source.origin, Files):
        return source.origin.reader(_found(name, source, source.origin, data))
    return source.origin.make()


def load_corpus(
    name: str,
    *,
    data_dir: Path | str | None = None,
    mode: str = "corrected",
    tokeniser: str = "words",
    **parameters: Any,
) -> Corpus:
    """The corpus of that name, prepared as its papers prepared it.

    `planted-reviews` has parameters, which may be given here or in the name, as in
    `planted-reviews(classes=5,length=60)`; the corpus's name is then the canonical one with all of them.
    The fingerprint of its source is part of the record, so the record alone says whether two are the same.
    """
    data = origin.data_dir(data_dir)
    name = canonical_name(name, parameters)
    entry = _entry(name, data)
    if isinstance(entry, Registration):
        return entry.read(name, mode=mode, tokeniser=tokeniser)
    preparation = replace(entry.preparation, mode=mode, tokeniser=tokeniser)
    corpus = prepare(name, _documents(name, entry, data), preparation, labels=entry.labels)
    source = {"sha256": fingerprint(name, data)}
    return replace(corpus, family=entry.family, preparation={**corpus.preparation, "source": source})


def fingerprint(name: str, data_dir: Path | str | None = None) -> str:
    """The sha256 of what a corpus is made from, read without preparing it; part of the corpus's key.

    An archive is hashed as the file it is, so the same files unpacked have another fingerprint.
    """
    data = origin.data_dir(data_dir)
    entry = _entry(name, data)
    if isinstance(entry, Registration):
        return hashlib.sha256(f"{digest(Path(entry.file))}\n{entry.to_toml()}".encode()).hexdigest()
    if not isinstance(entry.origin, Files):
        return entry.origin.fingerprint()
    archive = _found(name, entry, entry.origin, data)
    if archive.path.is_file():
        return digest(archive.path)
    lines = sorted(f"{name}\0{sha256}\n" for name, sha256 in archive.digests(entry.origin.members))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
