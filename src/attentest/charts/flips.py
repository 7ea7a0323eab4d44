"""Which of two removals flips the decision: Serrano & Smith's table, as tiles (SS-2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import pandas as pd

from attentest.charts.style import INK, Records, framed, nothing, require
from attentest.charts.tiles import Word, plane, tiles, written
from attentest.experiments.single_weight.conclude import RANKINGS

NAMES = {"attention": "by attention", "gradient": "by gradient", "product": "by attention × gradient"}
# Where each cell stands, down and across, and its colour: blue and orange are the paper's.
CELLS = {
    "both-flip": (0, 0, "#7f7f7f"),
    "only-top-flips": (0, 1, "#0072b2"),
    "only-random-flips": (1, 0, "#d15a00"),
    "neither-flips": (1, 1, "#7f7f7f"),
}
ROWS, COLUMNS = ("top flips", "top does not"), ("other flips", "does not")
STEP = 2.3  # from one table to the next, in tiles

Found = Mapping[str, Mapping[str, Any]]


def flip_tables(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Percent of texts whose decision the item on top flips, or another does, a table a ranking (SS-2)."""
    require(findings, "measure", "group", "estimate", "null", "n", "seeds")
    found: Found = {
        row["measure"]: {str(name): value for name, value in row.items()}
        for row in findings.to_dict("records")
        if row["group"] == "overall" and math.isfinite(row["estimate"])
    }
    there = [ranking for ranking in RANKINGS if f"both-flip-{ranking}" in found]
    if not there:
        return nothing("No text has two items to remove one of.", title, subtitle)
    cells: Records = []
    words = [Word(-0.1, row + 0.5, said, align="right") for row, said in enumerate(ROWS)]
    for place, ranking in enumerate(there):
        words += _headings(found, ranking, place * STEP)
        for name, (row, column, colour) in CELLS.items():
            cell, x = found[f"{name}-{ranking}"], place * STEP + column
            cells.append({"x": x, "y": row, "colour": colour, "percent": cell["estimate"]})
            words.append(Word(x + 0.5, row + 0.45, f"{cell['estimate']:.1f} %", 15, colour=INK))
            words.append(Word(x + 0.5, row + 0.76, f"null {cell['null']:.1f} %", colour=INK))
    across, down = plane(-0.85, STEP * (len(RANKINGS) - 1) + 2.05, -1.0, 2.0)
    warmth = alt.Scale(domain=[0, 100], range=[0.12, 0.5])
    ground = tiles(cells, across, down).encode(
        color=alt.Color(field="colour", type="nominal", scale=None),
        opacity=alt.Opacity(field="percent", type="quantitative", scale=warmth, legend=None),
    )
    layers = [ground, *written(words, across, down)]
    return framed(layers, title, subtitle, *_said(found, there[0]), height=200, width=560)


def _headings(found: Found, ranking: str, x: float) -> Iterator[Word]:
    """The ranking, McNemar's p-value, and what the columns are."""
    yield Word(x + 1, -0.84, NAMES[ranking], 12, colour=INK)
    test = found.get(f"mcnemar-p-{ranking}")
    if test is not None:
        p = "p < 0.001" if test["estimate"] < 0.001 else f"p = {test['estimate']:.3f}"
        yield Word(x + 1, -0.53, f"McNemar {p}")
    yield from (Word(x + column + 0.5, -0.15, said) for column, said in enumerate(COLUMNS))


def _said(found: Found, ranking: str) -> Iterator[str]:
    first = found[f"both-flip-{ranking}"]
    n, seeds = int(first["n"]), int(first["seeds"])
    yield f"percent of texts, n = {n:,}" + (f" over {seeds} seeds" if seeds > 1 else "")
    yield "null: the same where hidden states have changed places beneath the weights"
