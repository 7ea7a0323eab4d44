"""The columns of a table, checked row by row: what a corpus and an audit both begin with."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from attentest.corpus.preparation import Preparation
from attentest.corpus.tables.forms import Columns
from attentest.corpus.tables.values import checked_labels, checked_marks, checked_texts
from attentest.corpus.tables.words_for_nothing import WAYS, kept_rows
from attentest.refusal import Refusal, look_up

Marks = list[tuple[int, ...] | None]
READER = 2  # raise it whenever a table would be read differently: 2 composes its signs (NFC)


@final
@dataclass(frozen=True, eq=False)
class TableColumns:
    """The values of the columns that were asked for, of the rows that count."""

    held: Columns
    columns: Mapping[str, str]  # by role
    values: Mapping[str, Sequence[Any]]
    numbers: tuple[int, ...]  # of these rows in the table, from 1
    dropped: int
    table: list[list[Any]]  # as it was read, all rows

    def where(self, role: str) -> str:
        """What an error calls a column."""
        return f"{self.held.where}, column {self.columns[role]!r}"

    def __len__(self) -> int:
        return len(self.numbers)

    def texts(self, role: str) -> list[Any]:
        """Strings, or as many times None where there is no such column."""
        if role not in self.columns:
            return [None] * len(self)
        return list(checked_texts(self.where(role), role, self.values[role]))

    def labels(self, *, to_learn: bool) -> list[str]:
        """The names of labels; numbers of classes as the data itself names them, where it does."""
        names = self.held.class_names.get(self.columns["label"], ())
        given = self.values["label"]
        if to_learn and all(isinstance(value, int) and 0 <= value < len(names) for value in given):
            given = [names[value] for value in given]
        return checked_labels(self.where("label"), given, to_learn=to_learn)

    def marks(self, texts: Sequence[str], preparation: Preparation) -> Marks:
        """What is marked in every text."""
        if "rationale" not in self.columns:
            return [None] * len(self)
        return checked_marks(self.where("rationale"), self.values["rationale"], texts, preparation)


def checked_columns(held: Columns, columns: Mapping[str, str], missing: str) -> TableColumns:
    """Read them; signs that are written in two parts become one sign, as everybody sees it."""
    look_up(missing, dict.fromkeys(WAYS), "way with labels that may be missing")
    check_distinct(held.where, columns)
    table = held.read(list(columns.values()))
    if not table:
        raise Refusal(held.where, got="no rows", needs="rows of texts", way_out="Check the file.")
    values = {
        role: _composed(list(column)) for role, column in zip(columns, zip(*table, strict=True), strict=True)
    }
    rows = list(range(len(table)))
    if "label" in columns:
        rows = kept_rows(f"{held.where}, column {columns['label']!r}", values["label"], missing)
    if not rows:
        raise Refusal(
            held.where,
            got="no row with a label",
            needs="rows of texts",
            way_out="Leave the label column out.",
        )
    kept = {role: [column[row] for row in rows] for role, column in values.items()}
    return TableColumns(held, columns, kept, tuple(row + 1 for row in rows), len(table) - len(rows), table)


def check_distinct(where: str, columns: Mapping[str, str]) -> None:
    """Refuse one column in two roles."""
    twice = [column for column in columns.values() if list(columns.values()).count(column) > 1]
    if twice:
        raise Refusal(
            f"{where}, column {twice[0]!r}",
            got=f"the same column as {' and as '.join(r for r, c in columns.items() if c == twice[0])}",
            needs="a column for each",
            way_out="Name another column.",
        )


def _composed(value: Any) -> Any:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    return [_composed(each) for each in value] if isinstance(value, list) else value
