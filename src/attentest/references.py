"""Citation keys as people write them. The entries (`references.bib`) are ours: a field a line."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import final

ENTRY = re.compile(r"^@\w+\{(?P<key>[^,]+),\n(?P<fields>.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\s*(?P<name>\w+) = \{(?P<value>.*)\},?$", re.MULTILINE)
ACCENT = re.compile(r"\{\\(?P<accent>[\"'`^~v])\{?(?P<letter>\w)\}?\}")
COMBINING = {'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", "v": "\u030c"}
MANY = 4  # authors; of more the first is named


@final
@dataclass(frozen=True)
class Reference:
    """Who, when, what, where."""

    authors: tuple[str, ...]  # family names
    year: str
    title: str
    venue: str

    @property
    def brief(self) -> str:
        """As in running text: Jain & Wallace 2019."""
        return f"{self._all if len(self.authors) < 3 else self.authors[0] + ' et al.'} {self.year}"

    @property
    def whole(self) -> str:
        """As in a list of references."""
        who = self._all if len(self.authors) <= MANY else f"{self.authors[0]} et al."
        ended = self.title if self.title.endswith(("?", "!")) else f"{self.title}."
        return f"{who} ({self.year}). {ended}" + (f" {self.venue}." if self.venue else "")

    @property
    def _all(self) -> str:
        *others, last = self.authors
        return f"{', '.join(others)} & {last}" if others else last


@cache
def references() -> dict[str, Reference]:
    """Every entry of the package, by its key."""
    text = files("attentest").joinpath("references.bib").read_text(encoding="utf-8")
    return {found["key"]: _reference(found["fields"]) for found in ENTRY.finditer(text)}


def brief(key: str) -> str:
    """A key in running text; one that is not ours, of somebody's own study, as it is written."""
    return references()[key].brief if key in references() else key


def whole(key: str) -> str:
    """A key as a reference; one that is not ours as it is written."""
    return references()[key].whole if key in references() else key


def _reference(written: str) -> Reference:
    fields = {found["name"]: _plain(found["value"]) for found in FIELD.finditer(written)}
    authors = tuple(name.split(",")[0] for name in fields["author"].split(" and "))
    venue = next((fields[name] for name in ("booktitle", "journal", "howpublished") if name in fields), "")
    return Reference(authors, fields["year"], fields["title"], venue)


def _plain(tex: str) -> str:
    """TeX as text."""
    accented = ACCENT.sub(lambda found: found["letter"] + COMBINING[found["accent"]], tex)
    quoted = accented.replace("``", "\u201c").replace("''", "\u201d")
    return unicodedata.normalize("NFC", re.sub(r"[{}\\]", "", quoted))
