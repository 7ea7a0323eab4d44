"""One item removed: how large its weight was, against what its removal does to the output (SS-1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.histograms import histogram
from attentest.charts.style import (
    FAINT,
    INK,
    PALETTE,
    POOLED,
    Classes,
    Records,
    counted,
    framed,
    inline,
    lacks,
    nothing,
    require,
    trained,
)
from attentest.charts.tiles import Word, plane, tiles, written
from attentest.experiments.single_weight.conclude import NOISE, RANKINGS

LOWEST, HIGHEST = -0.05, 0.45  # of the paper's axis
SLICES, A_SLICE = (
    200,
    10,
)  # of the axis of gaps, as the paper thins its points, and how many are drawn of each
TENTHS = np.linspace(0.0, 1.0, 11)
TWENTIETHS = np.linspace(0.0, 1.0, 21)
GAP = "largest attention weight less a random one's"
EXCHANGED = "null: hidden states exchanged beneath the weights"
GAPS, OWN, NULL = "gap_attention", "djs_attention", "null_djs_attention"
MEANS = {"mean of the texts at such a gap": OWN, EXCHANGED: NULL}
NO_GAP = "No text has two items to remove one of."


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
    return framed(layers, title, subtitle, *_counts_said(found, there[0]), height=200, width=560)


def _headings(found: Found, ranking: str, x: float) -> Iterator[Word]:
    """The ranking, McNemar's p-value, and what the columns are."""
    yield Word(x + 1, -0.84, NAMES[ranking], 12, colour=INK)
    test = found.get(f"mcnemar-p-{ranking}")
    if test is not None:
        p = "p < 0.001" if test["estimate"] < 0.001 else f"p = {test['estimate']:.3f}"
        yield Word(x + 1, -0.53, f"McNemar {p}")
    yield from (Word(x + column + 0.5, -0.15, said) for column, said in enumerate(COLUMNS))


def _counts_said(found: Found, ranking: str) -> Iterator[str]:
    first = found[f"both-flip-{ranking}"]
    n, seeds = int(first["n"]), int(first["seeds"])
    yield f"percent of texts, n = {n:,}" + (f" over {seeds} seeds" if seeds > 1 else "")
    yield "null: the same where hidden states have changed places beneath the weights"


def djs_scatter(rows: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """What removing the largest weight does beyond removing another, against how much larger it is (SS-1)."""
    texts = trained(rows)
    if _lacks_gaps(texts):
        return nothing(NO_GAP, title, subtitle)
    numbers = _numbers(texts)
    drawn = _thinned(numbers)
    x = alt.X(field="gap", type="quantitative", title=GAP, scale=alt.Scale(domain=[0, 1], nice=False))
    y = alt.Y(
        field="djs",
        type="quantitative",
        title="ΔJS: removing the largest less removing the other",
        scale=alt.Scale(domain=[LOWEST, HIGHEST], nice=False),
    )
    shown: Records = [{"gap": gap, "djs": djs} for gap, djs in drawn[[GAPS, OWN]].to_numpy().tolist()]
    dots = alt.Chart(inline(shown)).mark_circle(
        size=22, opacity=0.15, color=PALETTE[0], clip=True, aria=False
    )
    zero = alt.Chart(inline([{"djs": 0.0}])).mark_rule(color=FAINT, strokeDash=[2, 3]).encode(y=y)
    layers = [zero, dots.encode(x=x, y=y), _means(numbers, x, y)]
    return framed(layers, title, subtitle, *_said(texts, numbers[OWN], len(drawn)), height=320)


def _lacks_gaps(texts: pd.DataFrame) -> bool:
    require(texts, GAPS, OWN, NULL)
    return lacks(texts, OWN) or lacks(texts, GAPS)


def _numbers(texts: pd.DataFrame) -> pd.DataFrame:
    """Gap and both differences of the texts that have them."""
    return texts[[GAPS, OWN, NULL]].apply(pd.to_numeric, errors="coerce").dropna(subset=[GAPS, OWN])


def _thinned(points: pd.DataFrame) -> pd.DataFrame:
    """As many of each slice of the axis as can be told apart; which, is chance, and the same each time."""
    mixed = points.sample(frac=1.0, random_state=0)
    return mixed.groupby((mixed[GAPS] * SLICES).astype(int)).head(A_SLICE)


def _means(numbers: pd.DataFrame, x: alt.X, y: alt.Y) -> alt.Chart:
    """The mean in each tenth of the axis, beside the null's."""
    spans, middles = np.digitize(numbers[GAPS], TENTHS[1:-1]), (TENTHS[:-1] + TENTHS[1:]) / 2
    of_spans: Records = [
        {"kind": kind, "gap": middle, "djs": float(values.mean())}
        for kind, column in MEANS.items()
        for middle, values in numbers[column].groupby(middles[spans])
        if values.notna().any()
    ]
    names, legend = list(MEANS), alt.Legend(title=None, symbolType="stroke", symbolSize=300, columns=1)
    colour, dash = alt.Scale(domain=names, range=[PALETTE[1], INK]), [[1, 0], [4, 2]]
    return (
        alt.Chart(inline(of_spans))
        .mark_line(strokeWidth=2, clip=True, point=alt.OverlayMarkDef(size=36, filled=True))
        .encode(
            x=x,
            y=y,
            color=alt.Color(field="kind", type="nominal", scale=colour, legend=legend),
            strokeDash=alt.StrokeDash(
                field="kind", type="nominal", scale=alt.Scale(domain=names, range=dash), legend=legend
            ),
        )
    )


def _said(texts: pd.DataFrame, values: pd.Series, drawn: int) -> Iterator[str]:
    yield counted(texts[OWN], texts)
    if drawn < len(values):
        yield f"{drawn:,} of them drawn, at most {A_SLICE} in each 1/{SLICES} of the axis"
    beyond = int(((values < LOWEST) | (values > HIGHEST)).sum())
    if beyond:
        yield f"{beyond:,} of them are beyond the axis"


def negative_gaps(rows: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """How much larger the largest weight was where removing another did more (SS-1)."""
    texts = trained(rows)
    if _lacks_gaps(texts):
        return nothing(NO_GAP, title, subtitle)
    numbers = _numbers(texts)
    own, null = (_bins(numbers[GAPS], numbers[column]) for column in (OWN, NULL))
    x = alt.X(
        field="from",
        type="quantitative",
        title=GAP,
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(tickCount=10),
    )
    groups = Classes(pd.Series(POOLED, index=numbers.index), [POOLED])
    n, of = int((numbers[OWN] < -NOISE).sum()), len(numbers)
    note = f"{counted(texts[OWN], texts)}; in {n:,} of them ({n / of:.1%}) removing another did more"
    return framed(histogram(own, null, groups, x, EXCHANGED), title, subtitle, note)


def _bins(gaps: pd.Series, djs: pd.Series) -> Records:
    """Of all texts, the share in each bin that has a negative difference: the bars add up to all of these."""
    counts, _ = np.histogram(gaps[djs < -NOISE].clip(0, 1), bins=TWENTIETHS)
    spans = zip(TWENTIETHS[:-1], TWENTIETHS[1:], counts / max(int(djs.notna().sum()), 1), strict=True)
    return [{"group": POOLED, "from": low, "to": high, "share": share} for low, high, share in spans]


FIGURES: tuple[Figure, ...] = (
    Figure(
        "djs",
        "The largest weight removed, or another",
        "Each dot a text: above zero, the output changes more without the item of the largest weight than"
        " without a random other one. A large weight does more wherever it lies (dashed), so what counts"
        " is the distance between the two lines.",
        lambda rows, view, title: djs_scatter(rows, title=title, subtitle=view.subtitle),
        redraws="SS-1: scatter of ΔJS against the gap of weights",
    ),
    Figure(
        "negative",
        "Where another item mattered more",
        "The texts below zero, by how much larger the largest weight was: attention is wrong where they"
        " lie far to the right.",
        lambda rows, view, title: negative_gaps(rows, title=title, subtitle=view.subtitle),
        redraws="SS-1: histogram of the gaps where ΔJS is negative",
    ),
    Figure(
        "flips",
        "Which of the two flips the decision",
        "Blue: only the item on top of the ranking does; orange: only the random one. Where attention"
        " says what decides, blue outweighs orange, and its null.",
        lambda rows, view, title: flip_tables(view.findings, title=title, subtitle=view.subtitle),
        redraws="SS-2: which of two removals flips the decision",
    ),
)
