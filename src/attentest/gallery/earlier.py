"""The report that is in a folder already: what it was made from, and which of its pages hold still.

Each page of a grid point is kept with a token: the sha256 of all that the page is made from. A page whose
token is the same is taken from the folder, after its files were compared with their digests. So is the whole
report where its stamp is the same: that of every file that the store has, by name, size and time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any, final

from attentest.compare.points import GridPoint
from attentest.compare.stored import Stored
from attentest.compare.verdicts import Judged
from attentest.gallery.folder import marked
from attentest.store.cell import canonical
from attentest.store.store import Store
from attentest.studies.recipe import Study, names

Files = dict[str, str]
# Whatever draws, counts or writes a page.
DRAWN_BY = ("altair", "jinja2", "numpy", "pandas", "pyarrow", "scipy", "vl-convert-python")


@final
@dataclass(frozen=True, kw_only=True)
class Made:
    """What was made of one grid point: its pages and figures, and what other pages show of it."""

    files: Files
    seeds: dict[str, dict[str, float]]  # the numbers of single seeds
    drawn: list[dict[str, Any]]  # for the album: see `study_figures.told`
    explorer: dict[str, Any]  # the page of its texts, all fields but the point


@final
@dataclass
class Earlier:
    """Pages by their tokens: those that a folder holds, and those of the report that is being made."""

    folder: Path | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    now: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    taken: int = 0
    stamp: str = ""  # of the report in the folder
    stamp_now: str = ""
    unchanged: bool = False  # whether the folder holds what was asked for already

    @classmethod
    def of(cls, folder: Path) -> Earlier:
        """The report in the folder; none of ours, or a damaged one, is as good as none."""
        told = marked(folder)
        digests, pages = told.get("digests"), told.get("pages")
        if not (isinstance(digests, dict) and isinstance(pages, dict)):
            return cls()
        return cls(folder, digests, pages, stamp=str(told.get("stamp", "")))

    def whole(self, stamp: str) -> Files | None:
        """Every file of the report, if it was made from just this and all of it is still there."""
        self.stamp_now = stamp
        if not stamp or stamp != self.stamp:
            return None
        try:
            files = {name: self._read(name) for name in self.digests}
        except (OSError, ValueError):
            return None
        self.now, self.taken, self.unchanged = dict(self.pages), len(self.pages), True
        return files

    def take(self, token: str) -> Made | None:
        """What was made under that token, if all of it is still there."""
        page = self.pages.get(token)
        if page is None:
            return None
        try:
            files = {name: self._read(name) for name in page["files"]}
            others = {name: page[name] for name in ("seeds", "drawn", "explorer")}
            made = Made(files=files, **others)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        self.taken += 1
        return made

    def _read(self, name: str) -> str:
        assert self.folder is not None
        content = (self.folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != self.digests[name]:
            raise ValueError(name)
        return content.decode()

    def keep(self, token: str, made: Made) -> None:
        """For the next report."""
        self.now[token] = {**vars(made), "files": list(made.files)}

    def notes(self, files: Mapping[str, str]) -> dict[str, Any]:
        """What the folder of these files is to remember."""
        digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
        return {"digests": digests, "pages": self.now, "stamp": self.stamp_now}


@cache
def code() -> str:
    """The sha256 of the package, templates and styles included, and the versions of what it draws with."""
    digest = hashlib.sha256()
    top = Path(str(resources.files("attentest")))
    for path in sorted(top.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(f"{path.relative_to(top).as_posix()}\0".encode() + path.read_bytes())
    versions = [f"{name} {metadata.version(name)}" for name in DRAWN_BY]
    return digest.hexdigest() + " ".join(versions)


def spelled(studies: Mapping[str, Study]) -> str:
    """The sha256 of what recipes say; they are many, and the same for every grid point."""
    told = {name: study.model_dump(mode="json") for name, study in studies.items()}
    return hashlib.sha256(canonical(told).encode()).hexdigest()


def stamp_of(store: Store, studies: Mapping[str, Study], asked: Mapping[str, Any]) -> str:
    """What changes when anything does that a report is made from; empty where that cannot be told.

    It cannot of a store elsewhere, of damaged cells, and of published numbers in a file of the user's.
    """
    own = (study for name, study in studies.items() if name not in names())
    if not store.local or store.damaged or store.set_aside() or any(study.published for study in own):
        return ""
    digest = hashlib.sha256(canonical([code(), spelled(studies), dict(asked)]).encode())
    for part in ("cells", "failures", "plans", "studies"):
        for line in _files(store.folder.path(part)):
            digest.update(line.encode())
    return digest.hexdigest()


def _files(folder: str) -> Iterator[str]:
    """The files below a folder, in an order that stays, with their sizes and times."""
    if not os.path.isdir(folder):
        return
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.is_dir():
            yield from _files(entry.path)
        else:
            about = entry.stat()
            yield f"{entry.path}\0{about.st_size} {about.st_mtime_ns}\n"


def token(point: GridPoint, said: Sequence[Judged], studies: str, asked: Mapping[str, Any]) -> str:
    """The sha256 of all that the pages of a grid point are made from; `studies` as they are `spelled`."""
    stored = point.findings[0].stored
    keys = sorted(_made_from(point, stored))
    parts = [
        code(),
        point.file,
        dict(asked),
        [[finding.cell.key, finding.trained_on, finding.corpus_key] for finding in point.findings],
        [[key, stored.about[key], _here(stored, key)] for key in keys],
        [[one.study.study, one.finding.cell.key, repr(asdict(one.verdict))] for one in said],
        studies,
    ]
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def _made_from(point: GridPoint, stored: Stored) -> set[str]:
    """The cells of the point, and all they were made from, as far as the store knows."""
    found: set[str] = set()
    ahead = {finding.cell.key for finding in point.findings}
    ahead |= {key for finding in point.findings if (key := finding.corpus_key) is not None}
    while ahead := {key for key in ahead if key in stored.cells} - found:
        found |= ahead
        ahead = {each for key in ahead for each in stored.cells[key].inputs.values()}
    return found


def _here(stored: Stored, key: str) -> list[str]:
    """Which of its files the store holds: a page says so where it lacks one."""
    return [name for name in stored.about[key]["files"] if stored.store.holds(key, name)]
