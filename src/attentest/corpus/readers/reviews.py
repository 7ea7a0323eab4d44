"""Yelp, Amazon, Yahoo Answers and AG News as Zhang et al. (2015) published them: a class and texts a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast, final

from attentest.corpus.document import Document
from attentest.corpus.example import Split
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.tables.records import separated

ESCAPE = re.compile(r'\\(?P<sign>[nr"])|(?P<code>(?:\\u[0-9a-fA-F]{4})+)')
SIGNS = {"n": "\n", "r": "\n", '"': '"'}


def unescaped(text: str) -> str:
    r"""The text that a field stands for: `\n` is a line break; `\"` and `\u00e9` occur in Yelp."""
    return ESCAPE.sub(_character, text)


def _character(found: re.Match[str]) -> str:
    if found["sign"]:
        return SIGNS[found["sign"]]
    # As UTF-16, so that the two halves of one character meet; half a character alone is replaced.
    return bytes.fromhex(found["code"].replace("\\u", "")).decode("utf-16-be", "replace")


def unbroken(text: str) -> str:
    r"""The text of a field of AG News, whose lines were joined by a bare backslash: `dwindling\band`."""
    return text.replace("\\", " ")


@final
@dataclass(frozen=True, kw_only=True)
class Layout:
    """One of the collections: class number n, in the first column, is `labels[n - 1]`."""

    folder: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    spelled: Callable[[str], str] = unescaped

    @property
    def members(self) -> re.Pattern[str]:
        """The two files. The folder is part of the name: every collection calls them train and test."""
        return re.compile(rf"(?:^|/){self.folder}/(?P<split>train|test)\.csv$")

    def read(self, archive: Archive) -> Iterator[Document]:
        """Every row, named by its place; the columns after the class are the text, empty ones left out."""
        missing = {f"{self.folder}/{split}.csv" for split in ("train", "test")}
        numbers = {str(number): label for number, label in enumerate(self.labels, start=1)}
        for found, lines in archive.streams(self.members):
            split = cast(Split, found["split"])
            missing.discard(f"{self.folder}/{split}.csv")
            rows = separated(lines, self.columns, where=f"{archive.path}, {found.string}")
            for number, (line, (label, *texts)) in enumerate(rows, start=1):
                if label not in numbers:
                    raise line.refusal(f"{self.columns[0]} {label!r}", f"a number from 1 to {len(numbers)}")
                text = "\n".join(self.spelled(text) for text in texts if text)
                yield Document(id=f"{split}-{number}", text=text, label=numbers[label], split=split)
        if missing:
            raise archive.lacking(missing)


STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
YELP = Layout(folder="yelp_review_full_csv", columns=("stars", "text"), labels=STARS)
AMAZON = Layout(folder="amazon_review_full_csv", columns=("stars", "title", "text"), labels=STARS)
YAHOO = Layout(
    folder="yahoo_answers_csv",
    columns=("topic", "title", "content", "answer"),
    labels=(
        "society & culture",
        "science & mathematics",
        "health",
        "education & reference",
        "computers & internet",
        "sports",
        "business & finance",
        "entertainment & music",
        "family & relationships",
        "politics & government",
    ),
)
AGNEWS = Layout(
    folder="ag_news_csv",
    columns=("class", "title", "description"),
    labels=("world", "sports", "business", "science & technology"),
    spelled=unbroken,
)
