"""What `attentest corpora` shows: every corpus that can be named, and what is known of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from attentest.corpus.catalogue import CORPORA, canonical_name, data_dir, find_source, load_corpus
from attentest.corpus.example import Corpus
from attentest.corpus.fetch.download import DOWNLOADS
from attentest.corpus.origin import Files, Source
from attentest.corpus.tables.registered import Registration, registrations
from attentest.corpus.variants import parameters_of
from attentest.refusal import Refusal


def _one_line(refusal: Refusal) -> str:
    """The sentence on one line, whatever a path or an unpacker has put into it."""
    return " ".join(str(refusal).split())


def _status(name: str, source: Source, data: Path) -> tuple[str, str | None]:
    """embedded, here, damaged with the reason; or, of what is not here, how it is to be had."""
    if not isinstance(source.origin, Files):
        return "embedded", None
    try:
        if source.origin.find(data) is not None:
            return "here", None
    except Refusal as refusal:
        return "damaged", _one_line(refusal)
    return source.restriction or ("downloadable" if name in DOWNLOADS else "absent"), None


def _published(name: str, source: Source, data: Path) -> dict[str, Any]:
    status, reason = _status(name, source, data)
    return {
        "name": name,
        "status": status,
        "texts": source.size,
        "licence": source.licence,
        "title": source.title,
        "reason": reason,
    }


def _yours(name: str, entry: Registration | Refusal) -> dict[str, Any]:
    about: dict[str, Any] = {"name": name, "texts": None, "licence": "yours"}
    if isinstance(entry, Refusal):
        return about | {"status": "damaged", "title": entry.what, "reason": _one_line(entry)}
    # Not Path.is_file, which raises where a path is too long or leads through a closed folder.
    status = "registered" if os.path.isfile(entry.file) else "absent"
    return about | {"status": status, "title": entry.file, "reason": None}


def entries(data: Path | str | None = None) -> list[dict[str, Any]]:
    """The catalogue in its own order, then the user's tables; what is damaged comes with its `reason`.

    One damaged file is a matter of its own corpus: it must not keep the others from being seen.
    """
    folder = data_dir(data)
    published = [_published(name, source, folder) for name, source in CORPORA.items()]
    return published + [_yours(name, entry) for name, entry in registrations(folder).items()]


def _part(corpus: Corpus, source: Source) -> str:
    """How many of the published texts these files hold; empty where they hold all.

    What may not be passed on is gathered by each user, and what is made here is whole.
    """
    read = sum(map(len, corpus.splits().values())) + sum(corpus.excluded.values())
    if read == source.size or source.restriction or not isinstance(source.origin, Files):
        return ""
    return f"{read:,} of the {source.size:,} texts that were published; if you have cut none, get it again"


def describe(name: str, data: Path | str | None = None) -> dict[str, Any]:
    """Provenance, licence and, where the files are there, counts after preparation."""
    folder = data_dir(data)
    name = canonical_name(name)
    about: dict[str, Any] = {"name": name}
    source = find_source(name)
    if source is not None:
        status, _ = _status(name, source, folder)
        about |= {
            "title": source.title,
            "cite": source.cite,
            "licence": source.licence,
            "status": status,
            "trained as": source.family,
            "how to get": source.how_to_get,
        }
        if isinstance(source.origin, Files):
            about["looked for in"] = str(folder / source.origin.folder)
        if parameters_of(source):
            about["parameters"] = parameters_of(source)
        if status not in ("embedded", "here", "damaged"):
            return about
    corpus = load_corpus(name, data_dir=folder)
    lengths = [len(example.tokens) for examples in corpus.splits().values() for example in examples]
    if source is not None and (part := _part(corpus, source)):
        about["a part"] = part
    return about | {
        "labels": list(corpus.labels),
        "query": corpus.has_query,
        "mean tokens": round(sum(lengths) / len(lengths), 1),
        "counts": corpus.counts(),
        "excluded": dict(corpus.excluded),
        "preparation": dict(corpus.preparation),
    }
