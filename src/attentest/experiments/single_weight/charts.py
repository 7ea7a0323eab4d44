"""One item removed: how large its weight was, against what its removal does to the output (SS-1)."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.flips import flip_tables
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
from attentest.experiments.single_weight.conclude import NOISE

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
