"""Items removed until the decision flips: how many, and how many texts are left (SS-3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.style import INK, Records, framed, inline, nothing, require, trained
from attentest.experiments.removal.conclude import COLUMNS, RANKINGS, Flips
from attentest.statistics.density import finite

Quantity = Literal["fraction", "mass"]
NAMES = {
    "random": "random",
    "attention": "attention",
    "gradient": "gradient",
    "product": "attention|× gradient",
    "smallest": "exact|smallest set",
}
# The paper's two palettes; the smallest set is ours.
BOXES = {
    "fraction": ("#2589cc", "#80d4ff", "#d4f3ff", "#ffffff", "#d15a00"),
    "mass": ("#a970ff", "#eea8ff", "#ffe0ff", "#ffffff"),
}
# As lines on white, the paper's pale colours could not be seen.
LINES: dict[str, tuple[str, list[float]]] = {
    "smallest": ("#f3c6a5", [1, 0]),
    "random": ("#7f7f7f", [4, 2]),
    "attention": ("#43406b", [1, 0]),
    "gradient": ("#d15a00", [1, 0]),
    "product": ("#0072b2", [1, 0]),
}
AXES = {
    "fraction": "fraction of items removed at the first flip",
    "mass": "attention removed at the first flip",
}
REACH = 1.5  # of whiskers, in heights of the box
SHARES = np.linspace(0.0, 1.0, 101)
NEVER = "No text flips its decision under every ranking."


def removal_boxes(
    rows: pd.DataFrame,
    quantity: Quantity = "fraction",
    *,
    published: bool = False,
    title: str = "",
    subtitle: str = "",
) -> alt.LayerChart:
    """How much is gone when the decision flips, a box a ranking, the smallest possible beside (SS-3).

    Rankings are compared on the texts that all of them flip; as published, each has its own.
    """
    texts = trained(rows)
    require(texts, *COLUMNS)
    if texts.empty:
        return nothing(NEVER, title, subtitle)
    flips = Flips(texts, published=published)
    boxes = [
        _box(name, own, null) for name, (own, null) in _removed(flips, quantity).items() if len(finite(own))
    ]
    if not boxes:
        return nothing(NEVER, title, subtitle)
    layers = _boxes(boxes, AXES[quantity], dict(zip(NAMES.values(), BOXES[quantity], strict=False)))
    return framed(layers, title, subtitle, *_said(texts, flips, boxes), height=320)


def _removed(flips: Flips, quantity: Quantity) -> dict[str, list[pd.Series]]:
    """What is gone at the first flip under each ranking, and the same under the null."""
    kinds = ("", "null_")
    found = {ranking: [flips.removed(quantity, ranking, kind) for kind in kinds] for ranking in RANKINGS}
    if quantity == "fraction":
        found["smallest"] = [_smallest(flips, kind) for kind in kinds]
    return found


def _smallest(flips: Flips, null: str) -> pd.Series:
    """The exact smallest flip, of the texts that the rankings are compared on."""
    counts = flips.numbers[f"{null}smallest"]
    compared = flips.asked if flips.published else flips.compared("random", null)
    return (counts / flips.numbers["items"]).where(compared & (counts > 0))


def _box(name: str, own: pd.Series, null: pd.Series) -> dict[str, Any]:
    """Quartiles, and whiskers to the outermost values within their reach."""
    numbers, beside = finite(own), finite(null)
    low, middle, high = np.quantile(numbers, (0.25, 0.5, 0.75)).tolist()
    reach = REACH * (high - low)
    near = numbers[(numbers >= low - reach) & (numbers <= high + reach)]
    return {
        "ranking": NAMES[name],
        "label": f"{NAMES[name]}|n = {len(numbers):,}",
        "low": low,
        "middle": middle,
        "high": high,
        "least": float(near.min()),
        "most": float(near.max()),
        "beyond": len(numbers) - len(near),
        "null": float(np.median(beside)) if len(beside) else None,
    }


def _boxes(boxes: Records, axis: str, colours: dict[str, str]) -> list[alt.Chart]:
    x = alt.X(
        field="label",
        type="ordinal",
        sort=[box["label"] for box in boxes],
        title=None,
        axis=alt.Axis(labelAngle=0, labelExpr="split(datum.label, '|')", ticks=False, labelPadding=6),
    )
    scale = alt.Scale(domain=[0, 1], nice=False)
    low, middle, least, null = (
        alt.Y(field=name, type="quantitative", title=axis, scale=scale)
        for name in ("low", "middle", "least", "null")
    )
    fill = alt.Scale(domain=list(colours), range=list(colours.values()))
    base = alt.Chart(inline(boxes)).encode(x=x)
    whiskers, body = base.mark_rule(color=INK), base.mark_bar(size=44, stroke=INK, strokeWidth=1)
    diamonds = base.mark_point(
        shape="diamond", filled=True, size=70, opacity=1, color=INK, stroke="white", strokeWidth=1
    )
    return [
        whiskers.encode(y=least, y2="most"),
        body.encode(
            y=low, y2="high", color=alt.Color(field="ranking", type="nominal", scale=fill, legend=None)
        ),
        base.mark_tick(color=INK, thickness=2.5, size=44).encode(y=middle),
        diamonds.encode(y=null),
    ]


def _said(texts: pd.DataFrame, flips: Flips, boxes: Records) -> Iterator[str]:
    seeds = texts["seed"].nunique()
    of = f"of {int(flips.asked.sum()):,} texts" + (f" over {seeds} seeds" if seeds > 1 else "")
    yield f"{of}, those that flip under {'this ranking' if flips.published else 'every ranking'}"
    beyond = sum(box["beyond"] for box in boxes)
    yield f"whiskers: {REACH} heights of the box" + (f", {beyond:,} values beyond" if beyond else "")
    yield "diamonds: the null's medians, hidden states exchanged beneath the weights"


def survival_curves(
    rows: pd.DataFrame, *, published: bool = False, title: str = "", subtitle: str = ""
) -> alt.LayerChart:
    """The share of texts not yet flipped as more is removed; those that never flip stay (SS-3)."""
    texts = trained(rows)
    require(texts, *COLUMNS)
    flips = Flips(texts, published=published) if len(texts) else None
    if flips is None or not flips.asked.any():
        return nothing("No text has two items to remove one of.", title, subtitle)
    curves = dict(_left(flips))
    broad = {name: lefts for name, lefts in curves.items() if name == "smallest"}
    narrow = {name: lefts for name, lefts in curves.items() if name not in broad}
    # Beneath the others: where a ranking is as good as can be, it would hide the smallest set.
    layers = [_curves(some, list(curves), width) for some, width in ((broad, 7.0), (narrow, 2.0)) if some]
    seeds = texts["seed"].nunique()
    n = f"n = {int(flips.asked.sum()):,}" + (f" over {seeds} seeds" if seeds > 1 else "")
    note = "random is the null; what is left at the right never flips"
    return framed(layers, title, subtitle, f"{n}; {note}", height=320)


def _curves(curves: Mapping[str, Sequence[float]], names: Sequence[str], width: float) -> alt.Chart:
    points: Records = [
        {"ranking": NAMES[name].replace("|", " "), "removed": share, "left": left}
        for name, lefts in curves.items()
        for share, left in zip(SHARES.tolist(), lefts, strict=True)
    ]
    said = [NAMES[name].replace("|", " ") for name in names]
    colours, dashes = (list(of) for of in zip(*(LINES[name] for name in names), strict=True))
    legend = alt.Legend(title=None, symbolSize=200, symbolStrokeWidth=3, columns=3)
    ends = alt.Scale(domain=[0, 1], nice=False)
    line = alt.Chart(inline(points)).mark_line(interpolate="step-after", strokeWidth=width)
    return line.encode(
        x=alt.X(field="removed", type="quantitative", title="fraction of items removed", scale=ends),
        y=alt.Y(field="left", type="quantitative", title="share of texts not yet flipped", scale=ends),
        color=alt.Color(
            field="ranking", type="nominal", scale=alt.Scale(domain=said, range=colours), legend=legend
        ),
        strokeDash=alt.StrokeDash(
            field="ranking", type="nominal", scale=alt.Scale(domain=said, range=dashes), legend=legend
        ),
    )


def _left(flips: Flips) -> Iterator[tuple[str, list[float]]]:
    """Of each ranking, the mean over texts at every share removed; random orders of a text count as one."""
    items, smallest = flips.numbers["items"].to_numpy()[:, None], flips.numbers["smallest"]
    if (smallest.notna() & flips.asked).any():
        counts, known = smallest.to_numpy()[:, None], smallest.notna()
        yield "smallest", [_mean(flips, (counts == 0) | (counts > share * items), known) for share in SHARES]
    for ranking in RANKINGS:
        counts = flips.counts(ranking)
        yield ranking, [_mean(flips, (counts < 0) | (counts > share * items)) for share in SHARES]


def _mean(flips: Flips, alive: np.ndarray, known: pd.Series | bool = True) -> float:
    """Over the texts of each seed, then over the seeds, as findings are."""
    left = flips.share(alive, flips.asked & known)
    return float(left.groupby(flips.rows["seed"]).mean().mean())


FIGURES: tuple[Figure, ...] = (
    Figure(
        "fraction",
        "How many items must go",
        "From the top of each ranking until the decision flips: the fewer, the better the ranking knows"
        " what decides. Orange: no ranking can do with less. With one logit, attention × gradient is"
        " nearly that by construction.",
        lambda rows, view, title: removal_boxes(
            rows, "fraction", published=view.published, title=title, subtitle=view.subtitle
        ),
        redraws="SS-3: boxes of the share removed until the decision flips",
    ),
    Figure(
        "mass",
        "How much attention goes with them",
        "The same in shares of all attention.",
        lambda rows, view, title: removal_boxes(
            rows, "mass", published=view.published, title=title, subtitle=view.subtitle
        ),
        redraws="SS-3: boxes of the attention removed until the decision flips",
    ),
    Figure(
        "survival",
        "How many texts have not flipped yet",
        "All texts, also those that never flip: the sooner a curve falls, the better its ranking. At the"
        " very right everything is gone, and the bias alone decides.",
        lambda rows, view, title: survival_curves(
            rows, published=view.published, title=title, subtitle=view.subtitle
        ),
    ),
)
