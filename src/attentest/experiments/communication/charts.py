"""What laypeople guess from the words they are sent, by how many there are (Treviso & Martins 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.style import FAINT, INK, Records, framed, inline, nothing, require
from attentest.experiments.communication.conclude import (
    EMBEDDED,
    JOINT,
    PROJECTIONS,
    RANDOM,
    SILENCE,
    SURROGATE,
    WHOLE,
)
from attentest.statistics.named import Named

# Of each explainer, its name, colour and dashes.
EXPLAINERS: dict[str, tuple[str, str, list[int]]] = {
    "attention": ("attention", "#43406b", [1, 0]),
    "erasure": ("leave-one-out", "#d15a00", [1, 0]),
    "gradient": ("gradients", "#0072b2", [1, 0]),
    SURROGATE: ("surrogate", "#cc79a7", [1, 0]),
    JOINT: ("trained to be understood", "#009e73", [1, 0]),
    RANDOM: ("random words", "#7f7f7f", [4, 3]),
}
COLOURS = {said: colour for said, colour, _ in EXPLAINERS.values()}
MODELS = {"overall": "#43406b", "untrained": "#7f7f7f", "shuffled labels": "#cc79a7"}
MODELS |= dict(zip(PROJECTIONS, ("#56b4e9", "#d15a00", "#0072b2"), strict=True))
RULES = {SILENCE: "hears nothing", WHOLE: "hears the whole text"}
NEVER = "No layperson was taught."
Found = Mapping[tuple[str, str], Mapping[str, Any]]  # by group and measure


class Axes(NamedTuple):
    """Where a chart's points stand, and the colour of their series."""

    x: alt.X
    y: alt.Y
    colour: alt.Color

    @classmethod
    def of(cls, points: Records, colours: Mapping[str, str]) -> Axes:
        """Numbers of words on a logarithmic axis with a tick for each k; no line is bent to fit."""
        sizes = sorted({point["words"] for point in points if point["k"]})
        ends = [point["words"] for point in points]
        across = alt.Scale(type="log", domain=[min(ends) * 0.9, max(ends) * 1.1], nice=False)
        names = [name for name in colours if name in {point["series"] for point in points}]
        return cls(
            alt.X(
                field="words",
                type="quantitative",
                title="words sent of each text",
                scale=across,
                axis=alt.Axis(values=sizes, format="~g", grid=False),
            ),
            alt.Y(
                field="csr",
                type="quantitative",
                title="layperson says what the classifier says",
                scale=alt.Scale(zero=False),
            ),
            alt.Color(
                field="series",
                type="nominal",
                scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
                legend=alt.Legend(title=None, symbolSize=80, columns=5),
            ),
        )


def communication_curves(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """CSR over the number of words, a line an explainer; random words are the null."""
    found = _found(findings)
    points = [
        point
        for explainer, (said, _, _) in EXPLAINERS.items()
        for point in _curve(found, "overall", explainer, said)
    ]
    if not points:
        return nothing(NEVER, title, subtitle)
    points += _embedded(found, "overall", EXPLAINERS["attention"][0])
    axes, furthest = Axes.of(points, COLOURS), max(point["words"] for point in points)
    dashes = {said: dash for said, _, dash in EXPLAINERS.values()}
    levels = [
        {"csr": found["overall", f"csr-{name}"]["estimate"], "said": said, "words": furthest}
        for name, said in RULES.items()
        if ("overall", f"csr-{name}") in found
    ]
    layers = [*_levels(levels, axes), *_lines(points, axes, dashes)]
    return framed(layers, title, subtitle, *_said(found, "bars: 95 %; diamond: all words of non-zero weight"))


def communication_models(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """CSR of attention over the number of words, a line a classifier, each beside as many random words."""
    found = _found(findings)
    groups = [group for group in MODELS if any(own == group for own, _ in found)]
    points = [point for group in groups for point in _curve(found, group, "attention", group)]
    if not points:
        return nothing(NEVER, title, subtitle)
    points += [point for group in groups for point in _embedded(found, group, group)]
    axes = Axes.of(points, MODELS)
    nulls = alt.Chart(inline([{**point, "csr": point["null"]} for point in points if point["k"]]))
    ticks = nulls.mark_tick(orient="horizontal", thickness=2, size=14, opacity=0.9)
    layers = [
        ticks.encode(x=axes.x, y=axes.y, color=axes.colour),
        *_lines(points, axes, {name: [1, 0] for name in MODELS}),
    ]
    note = "ticks: as many random words of the same texts; diamonds: all words of non-zero weight"
    return framed(layers, title, subtitle, *_said(found, note))


def _found(findings: pd.DataFrame) -> Found:
    require(findings, "measure", "group", "estimate", "low", "high", "null", "n", "seeds")
    return {
        (row["group"], row["measure"]): {str(name): value for name, value in row.items()}
        for row in findings.to_dict("records")
        if math.isfinite(row["estimate"])
    }


def _curve(found: Found, group: str, explainer: str, series: str) -> Iterable[dict[str, Any]]:
    """A point for each k that was sent, the smallest first."""
    name = f"csr-{explainer}"
    sent = [
        named for own, named in ((own, Named.of(m)) for own, m in found) if own == group and named.setting
    ]
    sizes = sorted((named for named in sent if named.name == name), key=lambda named: int(named.setting))
    return [_point(found[group, str(each)], series, float(each.setting), k=True) for each in sizes]


def _embedded(found: Found, group: str, series: str) -> Records:
    """All words of non-zero weight, at the number there are on average."""
    csr, words = found.get((group, f"csr-{EMBEDDED}")), found.get((group, f"words-{EMBEDDED}"))
    return [] if csr is None or words is None else [_point(csr, series, words["estimate"], k=False)]


def _point(finding: Mapping[str, Any], series: str, words: float, *, k: bool) -> dict[str, Any]:
    return {
        "series": series,
        "words": words,
        "k": k,
        "csr": finding["estimate"],
        **{name: finding[name] if math.isfinite(finding[name]) else None for name in ("low", "high", "null")},
    }


def _lines(points: Records, axes: Axes, dashes: Mapping[str, Sequence[int]]) -> list[alt.Chart]:
    fixed, free = ([point for point in points if point["k"] is by_k] for by_k in (True, False))
    base = alt.Chart(inline(fixed)).encode(x=axes.x, color=axes.colour)
    dash = alt.StrokeDash(
        field="series",
        type="nominal",
        scale=alt.Scale(domain=list(dashes), range=[list(dash) for dash in dashes.values()]),
        legend=None,
    )
    layers = [
        base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(
            y=alt.Y(field="low", type="quantitative"), y2="high"
        ),
        base.mark_line(strokeWidth=2).encode(y=axes.y, strokeDash=dash),
        base.mark_point(filled=True, size=45, opacity=1).encode(y=axes.y),
    ]
    if free:
        diamonds = alt.Chart(inline(free)).mark_point(shape="diamond", filled=True, size=110, opacity=1)
        layers.append(diamonds.encode(x=axes.x, y=axes.y, color=axes.colour))
    return layers


def _levels(levels: Records, axes: Axes) -> list[alt.Chart]:
    """What a layperson says who hears nothing, and who hears everything."""
    if not levels:
        return []
    base = alt.Chart(inline(levels))
    words = base.mark_text(align="right", dy=-6, fontSize=10, color=FAINT)
    return [
        base.mark_rule(color=FAINT, strokeDash=[2, 3]).encode(y=axes.y),
        words.encode(x=axes.x, y=axes.y, text=alt.Text(field="said", type="nominal"), color=alt.value(INK)),
    ]


def _said(found: Found, note: str) -> list[str]:
    first = next(finding for (group, _), finding in found.items() if group == "overall")
    n, seeds = int(first["n"]), int(first["seeds"])
    return [f"n = {n:,}" + (f" over {seeds} seeds" if seeds > 1 else ""), note]


FIGURES: tuple[Figure, ...] = (
    Figure(
        "explainers",
        "What a few words tell about the classifier",
        "How often somebody who hears only the words that an explainer sends says what the classifier"
        " says. Only what lies above random words was told by their choice. The surrogate never looks"
        " into the classifier: where it is best, being understood is no proof of being faithful.",
        lambda rows, view, title: communication_curves(view.findings, title=title, subtitle=view.subtitle),
        redraws="TM: communication success by explainer and words sent",
    ),
    Figure(
        "models",
        "Attention of other projections, and of models that learnt nothing",
        "Each classifier is guessed from its own attention's words. Sparse attention may send fewer than"
        " k, and is held against as few random ones; a model that mostly says the same is guessed by"
        " anybody.",
        lambda rows, view, title: communication_models(view.findings, title=title, subtitle=view.subtitle),
    ),
)
