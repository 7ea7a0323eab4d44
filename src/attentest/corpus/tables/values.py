"""The values of a table's columns, checked: whatever is wrong with one is said by its row."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Any

from attentest.corpus.example import Split
from attentest.corpus.preparation import Preparation, raw_tokens
from attentest.corpus.tables.rationale import rationales
from attentest.corpus.tables.words_for_nothing import is_missing
from attentest.refusal import Refusal

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
# How people, spreadsheets and data frames with gaps write a whole number: 5, +5, 5.0, 5e0.
WHOLE = re.compile(r"[+-]?(?:0|[1-9]\d{0,30})(?:\.0*)?(?:[eE]\+?\d)?")
NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")
HALF = re.compile("[\ud800-\udfff]")  # half of a character, which no file can store


def check_none_missing(where: str, what: str, values: Sequence[Any]) -> None:
    """Refuse a column with a gap, by the row of the first."""
    missing = [number for number, value in enumerate(values, start=1) if is_missing(value)]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise Refusal(
            where,
            got=f"no {what} in row {missing[0]}{more}",
            needs=f"a {what} in every row",
            way_out=f"Fill or remove the {len(missing)} of {len(values)} rows without one.",
        )


def checked_texts(where: str, what: str, values: Sequence[Any]) -> list[str]:
    """The values as texts: strings, none empty, and not all of them numbers."""
    check_none_missing(where, what, values)
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
    """A label's name. Whole numbers are named as people say them: 5.0, "+5" and "5e0" are all "5"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    name = str(value).strip()
    return str(int(Decimal(name))) if WHOLE.fullmatch(name) else name


def _check_spellings(where: str, names: Collection[str]) -> None:
    """Refuse one number in two spellings, where nobody can know whether they are two classes."""
    known: dict[Decimal, str] = {}
    for name in names:
        if NUMBER.fullmatch(name) and known.setdefault(Decimal(name), name) != name:
            raise Refusal(
                where,
                got=f"labels {known[Decimal(name)]!r} and {name!r}, which are one number",
                needs="one spelling of each class",
                way_out="Spell them alike if they are one class; else put a letter before each.",
            )


def checked_labels(where: str, values: Sequence[Any], *, to_learn: bool = True) -> list[str]:
    """The values as names of labels; `to_learn` needs several, and each of them again and again."""
    check_none_missing(where, "label", values)
    names = [_label(value) for value in values]
    different = len(set(names))
    got = None
    if any(isinstance(value, list | dict | bytes) for value in values) or HALF.search("".join(names)):
        got = "values that are neither words nor numbers"
    elif to_learn and different == 1:
        got = f"one label only ({names[0]!r})"
    elif to_learn and different > MOST_LABELS:
        got = f"{different} different values in {len(names)} rows"
    elif to_learn and different == len(names) > 2:
        got = "a different value in every row"
    if got:
        needs = f"from 2 to {MOST_LABELS} labels that occur again and again"
        raise Refusal(where, got=got, needs=needs, way_out="Name the column that holds each label.")
    _check_spellings(where, dict.fromkeys(names))
    return names


def in_order(names: set[str]) -> list[str]:
    """Labels by size if all are numbers, so that ten stars come after nine; else by spelling."""
    by_size = all(NUMBER.fullmatch(name) for name in names)
    return sorted(names, key=lambda name: (float(name) if by_size else 0.0, name))


def checked_splits(where: str, values: Sequence[Any]) -> list[Split]:
    """The split of every row."""
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


def checked_marks(
    where: str, values: Sequence[Any], texts: Sequence[str], preparation: Preparation
) -> list[tuple[int, ...] | None]:
    """What is marked in every text, counted in the words that the preparation finds there."""
    preparation.check()
    given = [None if is_missing(value) else value for value in values]
    return rationales(where, given, texts, lambda text: raw_tokens(text, None, preparation)[0])
