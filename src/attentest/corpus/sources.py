"""Where each corpus comes from, and how it is prepared: a literal dict of all that can be loaded by name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, final

from attentest.corpus import babi, imdb, newsgroups, sst
from attentest.corpus.archive import Archive, is_packed
from attentest.corpus.document import Document
from attentest.corpus.planted import PLANTINGS
from attentest.corpus.planted import documents as planted_documents
from attentest.corpus.preparation import Preparation
from attentest.corpus.simulated import stories

Family = Literal["classification", "qa", "nli", "babi"]  # how models for it are trained
SAMPLE = 100  # generated documents that stand for all of them in a fingerprint


def data_dir(given: Path | str | None = None) -> Path:
    """Where data is looked for: the argument, else $ATTENTEST_DATA, else the user's data directory."""
    chosen = given or os.environ.get("ATTENTEST_DATA")
    if chosen:
        return Path(chosen).expanduser()
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
            archive = Archive.open(place)
            if any(self.members.search(name) for name in archive.names()):
                return archive
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
    """One corpus of the catalogue. `size` counts the texts as published, before any filter."""

    title: str
    cite: str
    licence: str
    size: int
    how_to_get: str
    origin: Files | Generated
    preparation: Preparation
    labels: tuple[str, ...] | None = None  # None: whatever labels there are
    family: Family = "classification"
    embedding_width: int = 300

    @property
    def status(self) -> Literal["embedded", "local"]:
        """Whether it is there at once, or must be fetched."""
        return "local" if isinstance(self.origin, Files) else "embedded"

    @property
    def folder(self) -> str | None:
        """The folder under the data directory, if it needs one."""
        return self.origin.folder if isinstance(self.origin, Files) else None


BABI = Preparation(dev_share=0.15, keep_sentences=True)
EMBEDDED = "Nothing to get: attentest makes it."


def _babi(task: int, title: str) -> Source:
    return Source(
        title=f"bAbI task {task}: {title}",
        cite="weston2015towards",
        licence="CC BY 3.0",
        size=11_000,
        how_to_get="Download tasks_1-20_v1-2.tar.gz, linked from https://research.facebook.com/downloads/babi/.",
        origin=Files(folder="babi", members=babi.members(task), reader=partial(babi.read, task=task)),
        preparation=BABI,
        family="babi",
        embedding_width=50,
    )


def _simulated_babi(task: int) -> Source:
    sizes = {"train": 10_000, "test": 1_000, "seed": 0}
    return Source(
        title=f"bAbI task {task}, told by a simulator of ours",
        cite="weston2015towards",
        licence="Apache-2.0",
        size=11_000,
        how_to_get=EMBEDDED,
        origin=Generated(make=partial(stories, task, **sizes), parameters={"task": task, **sizes}),
        preparation=BABI,
        family="babi",
        embedding_width=50,
    )


def _planted(name: str, title: str, family: Family = "classification") -> Source:
    planting = PLANTINGS[name]
    return Source(
        title=title,
        cite="attentest",
        licence="Apache-2.0",
        size=planting.train + planting.dev + planting.test,
        how_to_get=EMBEDDED,
        origin=Generated(make=partial(planted_documents, planting), parameters=asdict(planting)),
        preparation=Preparation(),
        family=family,
    )


CORPORA: dict[str, Source] = {
    "sst": Source(
        title="Stanford Sentiment Treebank, sentences that are not neutral",
        cite="socher2013recursive",
        licence="none stated",
        size=11_855,
        how_to_get="Download https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip.",
        origin=Files(folder="sst", members=sst.MEMBERS, reader=sst.read),
        labels=("negative", "positive"),
        preparation=Preparation(digits="qqq", brackets=True, letters_only=True, longer_than=5),
    ),
    "imdb": Source(
        title="IMDB film reviews, positive or negative",
        cite="maas2011learning",
        licence="none stated",
        size=50_000,
        how_to_get="Download https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz.",
        origin=Files(folder="imdb", members=imdb.MEMBERS, reader=imdb.read),
        labels=("negative", "positive"),
        preparation=Preparation(
            digits="qqq",
            min_df=10,
            longer_than=6,
            shorter_than=400,
            dev_share=0.2,
            test_sample=0.2,
            split_seed=1378,
            keep_sentences=True,
        ),
    ),
    "20news": Source(
        title="20 Newsgroups, baseball or hockey, without headers, quotations and signatures",
        cite="lang1995newsweeder",
        licence="none stated",
        size=1_993,
        how_to_get="Download http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz.",
        origin=Files(folder="20news", members=newsgroups.MEMBERS, reader=newsgroups.read),
        labels=("baseball", "hockey"),
        preparation=Preparation(
            digits="qqq",
            min_df=2,
            longer_than=6,
            shorter_than=500,
            pool=True,
            test_share=0.2,
            dev_share=0.2,
            split_seed=13478,
            stratified=True,
            keep_sentences=True,
        ),
    ),
    "babi-1": _babi(1, "one supporting fact"),
    "babi-2": _babi(2, "two supporting facts"),
    "babi-3": _babi(3, "three supporting facts"),
    "babi-1-simulated": _simulated_babi(1),
    "babi-2-simulated": _simulated_babi(2),
    "babi-3-simulated": _simulated_babi(3),
    "planted-keyword": _planted("planted-keyword", "One word decides"),
    "planted-negation": _planted("planted-negation", "One word decides, and a negator turns it round"),
    "planted-majority": _planted("planted-majority", "The majority of several cues decides"),
    "planted-keyvalue": _planted("planted-keyvalue", "The value after the key that is asked for", "qa"),
}
