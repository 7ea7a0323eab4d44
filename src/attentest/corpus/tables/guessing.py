"""Which columns hold texts, labels and ids, by the names that people give them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from attentest.corpus.tables.forms import Columns
from attentest.refusal import Refusal

COMMON: Final = {
    "text": (
        *("text", "texts", "sentence", "sentences", "review", "reviews", "content", "comment", "comments"),
        *("tweet", "document", "body", "utterance"),
    ),
    "label": (
        *(
            "label",
            "labels",
            "target",
            "targets",
            "class",
            "category",
            "sentiment",
            "stars",
            "rating",
            "gold",
        ),
    ),
    "id": ("id", "ids", "idx", "text_id", "uid", "guid"),
}


def guessed(role: str, names: Sequence[str], taken: Collection[str] = ()) -> str | None:
    """The column of this role by its name, in any case; None where no name is a common one."""
    lowered = {name.strip().lower(): name for name in reversed(names) if name not in taken}
    return next((lowered[name] for name in COMMON[role] if name in lowered), None)


def column_of(role: str, columns: Columns, given: str | None, taken: Collection[str] = ()) -> str:
    """The column that was named, or the one that is guessed; refused where neither is there."""
    found = given or guessed(role, columns.names, taken)
    if found is None:
        there = ", ".join(map(repr, columns.names[:20])) + (", ..." if len(columns.names) > 20 else "")
        raise Refusal(
            f"{columns.where}, column of each {role}",
            got=f"the columns {there}, none of which has a common name",
            needs=f"its name, or one such as {', '.join(COMMON[role][:3])}",
            way_out=f"Say which it is: {role}='...'.",
        )
    return found
