"""What `attentest corpora` shows: every corpus that can be named, and what is known of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attentest.corpus.catalogue import CORPORA, data_dir, load_corpus
from attentest.corpus.download import DOWNLOADS
from attentest.corpus.origin import Files, Source
from attentest.corpus.registered import registered
from attentest.refusal import Refusal


def _status(name: str, source: Source, data: Path) -> str:
    """embedded, here, damaged; or, of what is not here, how it is to be had."""
    if not isinstance(source.origin, Files):
        return "embedded"
    try:
        if source.origin.find(data) is not None:
            return "here"
    except Refusal:
        return "damaged"
    return source.restriction or ("downloadable" if name in DOWNLOADS else "absent")


def entries(data: Path | str | None = None) -> list[dict[str, Any]]:
    """The catalogue in its own order, then the user's tables."""
    folder = data_dir(data)
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "status": _status(name, source, folder),
            "texts": source.size,
            "licence": source.licence,
            "title": source.title,
        }
        for name, source in CORPORA.items()
    ]
    for name, entry in registered(folder).items():
        status = "registered" if Path(entry.file).is_file() else "absent"
        found.append({"name": name, "status": status, "texts": None, "licence": "yours", "title": entry.file})
    return found


def describe(name: str, data: Path | str | None = None) -> dict[str, Any]:
    """Provenance, licence and, where the files are there, counts after preparation."""
    folder = data_dir(data)
    about: dict[str, Any] = {"name": name}
    if name in CORPORA:
        source = CORPORA[name]
        status = _status(name, source, folder)
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
        if status not in ("embedded", "here", "damaged"):
            return about
    corpus = load_corpus(name, data_dir=folder)
    lengths = [len(example.tokens) for examples in corpus.splits().values() for example in examples]
    return about | {
        "labels": list(corpus.labels),
        "query": corpus.has_query,
        "mean tokens": round(sum(lengths) / len(lengths), 1),
        "counts": corpus.counts(),
        "excluded": dict(corpus.excluded),
        "preparation": dict(corpus.preparation),
    }
