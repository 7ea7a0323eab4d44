"""Labels that look as if there were none: `nan`, `NA`, `inf`, signs that nobody can see."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from attentest.refusal import Refusal

CLASS, DROP, REFUSE = "class", "drop", "refuse"
WAYS: Final = (CLASS, DROP, REFUSE)
IN_ANY_CASE: Final = frozenset(
    {"nan", "na", "n/a", "#n/a", "<na>", "nat", "null", "inf", "+inf", "-inf", "infinity", "-infinity"}
)
UNSEEN: Final = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})  # blanks, line ends, controls, no width
AS_WRITTEN: Final = frozenset({"None"})  # Python's; "none" is a class as often as not


def is_missing(value: Any) -> bool:
    """None, NaN (which alone differs from itself), and strings of blanks, controls or signs of no width."""
    if isinstance(value, str):
        return all(unicodedata.category(sign) in UNSEEN for sign in value)
    return value is None or value != value


def reads_as_nothing(value: Any) -> bool:
    """Whether a label is a word that programs write where there is no value, or an infinite number."""
    if not isinstance(value, str | float):
        return False
    word = str(value).strip()
    return word in AS_WRITTEN or word.lower() in IN_ANY_CASE


def kept_rows(where: str, values: Sequence[Any], missing: str) -> list[int]:
    """The rows whose label counts.

    With "refuse", a label in doubt is a sentence that says what was found. "drop" leaves out such rows, and
    those without a label. "class" takes the word for a class; a row without any label stays an error.
    """
    doubted = [row for row, value in enumerate(values) if not is_missing(value) and reads_as_nothing(value)]
    if doubted and missing == REFUSE:
        raise _in_doubt(where, Counter(str(values[row]).strip() for row in doubted))
    if missing != DROP:
        return list(range(len(values)))
    out = {*doubted, *(row for row, value in enumerate(values) if is_missing(value))}
    return [row for row in range(len(values)) if row not in out]


def _in_doubt(where: str, found: Counter[str]) -> Refusal:
    rows = [f"{word!r} in {count} row{'s' if count > 1 else ''}" for word, count in found.items()]
    return Refusal(
        where,
        got=f"labels {' and '.join(rows)}: a class, or missing?",
        needs="to be told which",
        way_out="Say missing='class' for a class of that name, or missing='drop' to leave these rows out.",
    )
