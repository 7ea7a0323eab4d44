"""A user's own table of texts and labels, as a corpus.

Whatever is wrong with its values is said in one sentence that names the row or column, before any training.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex, final, overload

from attentest.corpus.document import Document
from attentest.corpus.example import Corpus, Example, Split
from attentest.corpus.preparation import Preparation, as_given, prepare, raw_tokens
from attentest.corpus.tables.rationale import rationales
from attentest.corpus.tables.rows import rows
from attentest.refusal import Refusal, look_up

MOST_LABELS = 1000
SPLIT_NAMES: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "val": "dev",
    "valid": "dev",
    "validation": "dev",
    "test": "test",
}
WHOLE = re.compile(r"([+-]?\d+)\.0*")  # how a spreadsheet, or a data frame with gaps, writes a whole number
NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")
HALF = re.compile("[\ud800-\udfff]")  # half of a character, which no file can store
# What a user may say of the preparation; the other settings have an argument of their own.
SETTINGS = {setting.name for setting in fields(Preparation)} - {"dev_share", "test_share", "split_seed"}


def _is_missing(value: Any) -> bool:
    """None, NaN (which alone differs from itself) and strings of blanks."""
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def _check_none_missing(where: str, what: str, values: Sequence[Any]) -> None:
    missing = [number for number, value in enumerate(values, start=1) if _is_missing(value)]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise Refusal(
            where,
            got=f"no {what} in row {missing[0]}{more}",
            needs=f"a {what} in every row",
            way_out=f"Fill or remove the {len(missing)} of {len(values)} rows without one.",
        )


def _texts(where: str, what: str, values: Sequence[Any]) -> list[str]:
    """The values as texts: strings, none empty, and not all of them numbers."""
    _check_none_missing(where, what, values)
    wrong = next(((n, v) for n, v in enumerate(values, start=1) if not _is_text(v)), None)
    got = f"a {type(wrong[1]).__name__} ({str(wrong[1])[:20]!a}) in row {wrong[0]}" if wrong else None
    if not wrong and all(NUMBER.fullmatch(value) for value in values):
        got = "nothing but numbers"
    if got:
        raise Refusal(where, got=got, needs="strings", way_out=f"Name the column that holds each {what}.")
    return list(values)


def _is_text(value: Any) -> bool:
    """Whether a value is a string; JSON can smuggle in halves of characters."""
    return isinstance(value, str) and not HALF.search(value)


def _label(value: Any) -> str:
    """A label's name. Numbers are named as people say them, so 5.0 and "5.00" are both "5"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    name = str(value).strip()
    whole = WHOLE.fullmatch(name)
    return whole[1] if whole else name


def _labels(where: str, values: Sequence[Any]) -> list[str]:
    _check_none_missing(where, "label", values)
    names = [_label(value) for value in values]
    different = len(set(names))
    got = None
    if any(isinstance(value, list | dict | bytes) for value in values) or HALF.search("".join(names)):
        got = "values that are neither words nor numbers"
    elif different == 1:
        got = f"one label only ({names[0]!r})"
    elif different > MOST_LABELS:
        got = f"{different} different values in {len(names)} rows"
    elif different == len(names) > 2:
        got = "a different value in every row"
    if got:
        needs = f"from 2 to {MOST_LABELS} labels that occur again and again"
        raise Refusal(where, got=got, needs=needs, way_out="Name the column that holds each label.")
    return names


def _in_order(names: set[str]) -> list[str]:
    """Labels by size if all are numbers, so that ten stars come after nine; else by spelling."""
    by_size = all(NUMBER.fullmatch(name) for name in names)
    return sorted(names, key=lambda name: (float(name) if by_size else 0.0, name))


def _splits(where: str, values: Sequence[Any]) -> list[Split]:
    splits = [SPLIT_NAMES.get(str(value).strip().lower()) for value in values]
    if None in splits:
        row = splits.index(None)
        raise Refusal(
            where,
            got=f"{str(values[row])[:20]!a} in row {row + 1}",
            needs=f"one of {', '.join(SPLIT_NAMES)}",
            way_out="Mend that row, or leave the split to us.",
        )
    return [split for split in splits if split]


def _marks(
    where: str, values: Sequence[Any], texts: Sequence[str], preparation: Preparation
) -> list[tuple[int, ...] | None]:
    """What is marked in every text, counted in the words that the preparation finds there."""
    preparation.check()
    given = [None if _is_missing(value) else value for value in values]
    return rationales(where, given, texts, lambda text: raw_tokens(text, None, preparation)[0])


def digest(path: Path) -> str:
    """The sha256 of a file's bytes."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Refusal(
            f"file {path}", got=f"none ({error.strerror})", needs="a file", way_out="Put it back there."
        ) from error


def _distinct(path: Path, columns: dict[str, str]) -> None:
    twice = [column for column in columns.values() if list(columns.values()).count(column) > 1]
    if twice:
        raise Refusal(
            f"table {path}, column {twice[0]!r}",
            got=f"the same column as {' and as '.join(r for r, c in columns.items() if c == twice[0])}",
            needs="a column for each",
            way_out="Name another column.",
        )


@final
class TableRows(Sequence[Example]):
    """Every row of a table in file order, prepared when one is first asked for: training needs none."""

    def __init__(self, documents: Sequence[Document], preparation: Preparation) -> None:
        self.documents, self.preparation = documents, preparation

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The rows as examples."""
        return tuple(as_given(document, self.preparation) for document in self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    @overload
    def __getitem__(self, place: SupportsIndex) -> Example: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Example, ...]: ...

    def __getitem__(self, place: SupportsIndex | slice) -> Example | tuple[Example, ...]:
        return self.examples[place]


def read_table(
    path: Path | str,
    *,
    text: str,
    label: str,
    query: str | None = None,
    rationale: str | None = None,
    name: str | None = None,
    dev_share: float = 0.15,
    test_share: float = 0.15,
    split: str | None = None,
    seed: int = 0,
    **settings: Any,
) -> Corpus:
    """The corpus in a table, whose columns hold a text, its label, and perhaps a question, marks and a split.

    `settings` are those of Preparation. Without a split column, or where it names no dev or no test rows,
    shares of each label are drawn, so that a rare label is in every split if it can be. The splits are for
    training. An audit takes `rows`: every row in file order, lower-cased only where `lower=True` is said.
    """
    for setting in settings:
        look_up(setting, dict.fromkeys(sorted(SETTINGS)), "setting of the preparation")
    path = Path(path)
    named = {"text": text, "label": label, "query": query, "split": split, "rationale": rationale}
    columns = {role: column for role, column in named.items() if column is not None}
    _distinct(path, columns)
    table = list(rows(path, list(columns.values())))
    if not table:
        raise Refusal(f"table {path}", got="no rows", needs="rows of texts", way_out="Check the file.")
    where = {role: f"table {path}, column {column!r}" for role, column in columns.items()}
    values = dict(zip(columns, zip(*table, strict=True), strict=True))
    texts = _texts(where["text"], "text", values["text"])
    labels = _labels(where["label"], values["label"])
    queries = _texts(where["query"], "query", values["query"]) if query else [None] * len(table)
    splits = _splits(where["split"], values["split"]) if split else [None] * len(table)
    defaults: dict[str, Any] = {"stratified": True, "keep_sentences": True}
    preparation = Preparation(
        **{**defaults, **settings}, dev_share=dev_share, test_share=test_share, split_seed=seed
    )
    marks: list[tuple[int, ...] | None] = [None] * len(table)
    if rationale:
        marks = _marks(where["rationale"], values["rationale"], texts, preparation)
    documents = [
        Document(id=f"row-{number}", text=row[0], label=row[1], query=row[2], split=row[3], rationale=row[4])
        for number, row in enumerate(zip(texts, labels, queries, splits, marks, strict=True), start=1)
    ]
    stem = name or path.name.split(".")[0] or path.name
    corpus = prepare(stem, documents, preparation, labels=_in_order(set(labels)))
    source = {"sha256": digest(path), "columns": columns}
    # A pair of texts with labels of its own is what NLI is; a question whose answer is in the text is not.
    family = "classification" if query is None else "nli"
    untouched = replace(preparation, lower=bool(settings.get("lower", False)))
    return replace(
        corpus,
        family=family,
        preparation={**corpus.preparation, "source": source},
        rows=TableRows(documents, untouched),
    )
