"""Where a corpus comes from: a publisher's files under the data directory, or a generator of ours."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, final

from attentest.corpus.document import Document
from attentest.corpus.fetch.archive import Archive, is_packed
from attentest.corpus.preparation import Preparation

Family = Literal["classification", "qa", "nli", "babi", "reviews"]  # how models for it are trained
Restriction = Literal["needs credentials", "not redistributable"]
SAMPLE = 100  # generated documents that stand for all of them in a fingerprint


def data_dir(given: Path | str | None = None) -> Path:
    """Where data is looked for: the argument, else $ATTENTEST_DATA, else the user's data directory."""
    chosen = given or os.environ.get("ATTENTEST_DATA")
    return Path(chosen).expanduser() if chosen else own_dir()


def own_dir() -> Path:
    """The user's data directory, which nobody else writes to."""
    shared = os.environ.get("XDG_DATA_HOME", "")
    # The XDG convention: a path that is not absolute is to be ignored.
    base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".local" / "share"
    return base / "attentest"


@final
@dataclass(frozen=True, kw_only=True)
class Files:
    """A publisher's files in a folder under the data directory, unpacked or in the archive they came in."""

    folder: str
    members: re.Pattern[str]
    reader: Callable[[Archive], Iterator[Document]]

    def find(self, data: Path) -> Archive | None:
        """The archive or folder that holds the files, or None where nothing does."""
        folder = data / self.folder
        if not folder.is_dir():
            return None
        for place in (folder, *sorted(path for path in folder.iterdir() if is_packed(path))):
            archive, empty = Archive.open(place), place.is_file()
            for name in archive.names():
                if self.members.search(name):
                    return archive
                empty = False
            if empty:
                raise archive.lacking(["files at all"])
        return None


@final
@dataclass(frozen=True, kw_only=True)
class Generated:
    """Documents that we make ourselves; the parameters are for the record, `make` has them already."""

    make: Callable[[], Iterator[Document]]
    parameters: Mapping[str, Any]

    def fingerprint(self) -> str:
        """The sha256 of the parameters and of the first documents: a changed generator shows in those."""
        digest = hashlib.sha256(json.dumps(dict(self.parameters), sort_keys=True).encode())
        for document in islice(self.make(), SAMPLE):
            digest.update(json.dumps(asdict(document), sort_keys=True).encode())
        return digest.hexdigest()


@final
@dataclass(frozen=True, kw_only=True)
class Source:
    """One corpus of the catalogue. `size` counts the texts as published, before any filter.

    Where a `restriction` keeps the files from being simply downloaded, `how_to_get` says what to apply for.
    """

    title: str
    cite: str
    licence: str
    size: int
    how_to_get: str
    origin: Files | Generated
    preparation: Preparation
    labels: tuple[str, ...] | None = None  # None: whatever labels there are
    family: Family = "classification"
    restriction: Restriction | None = None

    @property
    def status(self) -> Literal["embedded", "local"] | Restriction:
        """Whether it is there at once, must be fetched, or must first be granted."""
        if not isinstance(self.origin, Files):
            return "embedded"
        return self.restriction or "local"

    @property
    def folder(self) -> str | None:
        """The folder under the data directory, if it needs one."""
        return self.origin.folder if isinstance(self.origin, Files) else None
