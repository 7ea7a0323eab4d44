"""How the fields of a comparison are worded, in whatever format it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from attentest.store.cell import short

Row = dict[str, Any]
DASH = "–"


def decimal(value: float | None, places: int = 3) -> str:
    """A number as a table shows it: sizes whole, the rest to some places, a dash where there is none."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if value == round(value) and abs(value) > 1 else f"{value:,.{places}f}"


def count(value: int | None) -> str:
    """A whole number, or a dash."""
    return DASH if value is None else f"{value:,}"


def published(row: Row) -> str:
    """The printed number, with its standard deviation where one was printed."""
    std = row.get("published_std")
    printed = -int(Decimal(repr(row["published"])).as_tuple().exponent)
    return decimal(row["published"], max(printed, 2)) + ("" if std is None else f" ± {std:.2f}")


def version_a(row: Row) -> str:
    """The number of the earlier of two printed versions; a dash where there is none to show."""
    if row.get("published_a") is None:
        return DASH
    return published({"published": row["published_a"], "published_std": row["published_a_std"]})


def if_equal(row: Row) -> str:
    """P(agrees if equal) to two places; a dash where nothing was judged."""
    return decimal(row.get("p_agrees_if_equal"), 2)


def interval(row: Row, places: int = 3) -> str:
    """The 95 % interval."""
    if row["low"] is None or row["high"] is None:
        return DASH
    return f"{decimal(row['low'], places)} to {decimal(row['high'], places)}"


def epochs(row: Row) -> str:
    """The epochs asked for, and how many were run where training stopped early."""
    if row["epochs"] is None:
        return DASH
    fewest, most = row["epochs_run"] or (row["epochs"], row["epochs"])
    if fewest == most == row["epochs"]:
        return str(most)
    return f"{row['epochs']} (ran {fewest if fewest == most else f'{fewest} to {most}'})"


def vectors(row: Row) -> str:
    """The word vectors; a file's digest is cut as keys are."""
    return re.sub(r"^(file:[0-9a-f]{12})[0-9a-f]+$", r"\1", row["vectors"] or DASH)


def model_of(row: Row) -> str:
    """The model in the paper's words; softmax goes without saying."""
    words = (row["model"], row["attention"], "" if row["projection"] == "softmax" else row["projection"])
    return " + ".join(word for word in words if word) or DASH


def class_of(row: Row) -> str:
    """The class by the paper's number and our name."""
    return " ".join(dict.fromkeys(word for word in (row["class"], row["label"]) if word)) or DASH


def cells(row: Row) -> str:
    """The keys to look the row up by, cut short."""
    return " ".join(map(short, row["cells"]))


def blocks(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows by table and data set, each under its title."""

    def place(row: Row) -> tuple[str, str, str]:
        return row["table"], row["dataset"], row["corpus"]

    order = {key: number for number, key in enumerate(dict.fromkeys(map(place, rows)))}
    for (table, dataset, corpus), some in groupby(sorted(rows, key=lambda r: order[place(r)]), key=place):
        yield f"{table}: {dataset} (here {corpus})", list(some)


SIZES = "Sizes and counts of the corpora, which are not part of the agreement"
SIZE_COLUMNS: dict[str, Callable[[Row], str]] = {
    "table": lambda row: row["table"],
    "data set": lambda row: row["dataset"],
    "corpus": lambda row: row["corpus"],
    "class": class_of,
    "size": lambda row: row["measure"],
    "published": published,
    "ours": lambda row: decimal(row["ours"]),
    "same?": lambda row: row["agrees"],
    "why": lambda row: row["why"] or DASH,
    "cell": cells,
}


def sizes(document: Mapping[str, Any], columns: Sequence[str] = tuple(SIZE_COLUMNS)) -> list[list[str]]:
    """The sizes as words, a row for each."""
    return [[SIZE_COLUMNS[name](row) for name in columns] for row in document.get("sizes", ())]


def counted(summary: Mapping[str, int]) -> str:
    """How many of each verdict, in the order of the verdicts."""
    return ", ".join(f"{number} {said}" for said, number in summary.items()) or "none"


def gaps(missing: Sequence[Row]) -> list[Row]:
    """What is missing, told once for each data set and reason, with how many numbers it concerns."""
    found: dict[tuple[str, str, str], int] = {}
    for row in missing:
        key = row["dataset"], row["reason"], row["way_out"]
        found[key] = found.get(key, 0) + 1
    return [{"dataset": d, "numbers": n, "reason": r, "way out": w} for (d, r, w), n in found.items()]


OVER_SETTINGS = "Over all settings: averages and counts, which are not judged"
OVER_HEADINGS = (
    "measure",
    "data set",
    "model",
    "attention",
    "published",
    "ours",
    "95 % interval",
    "settings",
)


def over_settings(document: Mapping[str, Any]) -> list[list[str]]:
    """What the paper prints of many settings at once, beside ours and of how many settings those are."""
    return [
        [
            row["measure"],
            row["dataset"],
            row["model"],
            row["attention"],
            published(row),
            decimal(row["ours"]),
            interval(row),
            count(row["settings"]),
        ]
        for row in document.get("over_settings", ())
    ]
