"""What all figures share: colours, classes, the frame with its counts, and the ways out to a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import altair as alt
import pandas as pd
import vl_convert

from attentest.notebook import harmless
from attentest.refusal import Refusal
from attentest.statistics.density import finite

# The first three are the papers'; the others stay apart from them for colour-blind eyes too.
PALETTE = ("#43406b", "#d15a00", "#27f77d", "#56b4e9", "#cc79a7", "#f0e442", "#0072b2", "#7f7f7f")
LIGHT = {"#27f77d", "#56b4e9", "#cc79a7", "#f0e442"}  # on these, lines must be dark
INK, FAINT, RULE = "#222222", "#6b6b6b", "#d9d9d9"
WIDTH, HEIGHT = 480, 280
MOST_POINTS = 2000  # of a scatter; more would neither be seen nor load
POOLED = "all texts"
CLIP = re.compile(r"""(?:(?<=id=")|(?<=url\(#))clip\d+(?=[")])""")

Records = list[dict[str, Any]]


@final
@dataclass(frozen=True, eq=False)
class Classes:
    """Which group each row belongs to, and the groups in the order of their colours."""

    of: pd.Series
    names: list[str]

    @property
    def colour(self) -> alt.Color:
        """The same colour for the same class in every figure; no legend where there is but one."""
        legend = None if self.names == [POOLED] else alt.Legend(title="predicted", symbolOpacity=1, columns=4)
        scale = alt.Scale(domain=self.names, range=list(PALETTE[: len(self.names)]))
        return alt.Color(field="group", type="nominal", scale=scale, legend=legend)


def classed(rows: pd.DataFrame, classes: Sequence[str] | None, pooled: bool) -> Classes:
    """Rows by predicted class, as in the papers; pooled where asked, or where colours would run out.

    `classes` gives the corpus's order of labels, without which they go by name.
    """
    predicted = rows["predicted"].astype(str).map(harmless)
    found = sorted(set(predicted))
    known = [harmless(str(name)) for name in classes or found]
    names = known + [name for name in found if name not in known]
    if pooled or len(names) > len(PALETTE):
        return Classes(pd.Series(POOLED, index=rows.index), [POOLED])
    return Classes(predicted, names)


def trained(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the model itself, without its controls; rows of several seeds may share an index."""
    return rows[rows["subject"] == "trained"].reset_index(drop=True) if len(rows) else rows


def require(rows: pd.DataFrame, *columns: str) -> None:
    """Refuse rows without these columns; rows that are empty lack nothing."""
    missing = [name for name in columns if name not in rows.columns]
    if missing and len(rows):
        raise Refusal(
            "drawing observed rows",
            got=f"no column {', '.join(missing)}",
            needs=f"one of the columns there are: {', '.join(map(str, rows.columns))}",
            way_out="Ask for a variant and an epsilon that were observed.",
        )


def lacks(texts: pd.DataFrame, column: str) -> bool:
    """Whether there is no number to draw."""
    return texts.empty or not len(finite(texts[column]))


def inline(records: Records) -> pd.DataFrame:
    """Rows that travel inside a chart's specification.

    Six digits are more than a screen can show, and half the size.
    """
    table = pd.DataFrame(records)
    return table.map(lambda value: float(f"{value:.6g}") if isinstance(value, float) else value)


def counted(values: pd.Series, rows: pd.DataFrame) -> str:
    """How many numbers a figure shows, from how many seeds, and how many it leaves out."""
    n, seeds = len(finite(values)), rows["seed"].nunique() if "seed" in rows else 1
    said = f"n = {n:,}" + (f" over {seeds} seeds" if seeds > 1 else "")
    return said + (f"; {len(values) - n:,} undefined and left out" if n < len(values) else "")


def framed(
    layers: Sequence[alt.Chart], title: str, *notes: str, width: int = WIDTH, height: int = HEIGHT
) -> alt.LayerChart:
    """The layers as one figure in the house style."""
    said = [harmless(note) for note in notes if note]
    heading = alt.TitleParams(
        text=harmless(title), subtitle=said, anchor="start", frame="bounds", color=INK, fontSize=14, offset=12
    )
    # All at once: every `configure_...` of a chart would copy it whole, layers and all.
    return alt.LayerChart(
        layer=list(layers), title=heading, config=_house_style(), width=width, height=height
    )


@cache
def _house_style() -> alt.Config:
    """The same for every figure; charts copy what they are given."""
    return alt.Config(
        background="white",
        font="Liberation Sans, Helvetica, Arial, sans-serif",
        view=alt.ViewConfig(stroke=None),
        title=alt.TitleConfig(
            subtitleColor=FAINT, subtitleFontSize=11, subtitlePadding=4, subtitleLineHeight=14
        ),
        axis=alt.AxisConfig(
            gridColor="#eeeeee",
            domainColor="#999999",
            tickColor="#999999",
            labelColor=INK,
            titleColor=INK,
            titleFontWeight="normal",
            titleFontSize=12,
            labelFontSize=11,
            titlePadding=8,
            labelFlush=False,
        ),
        legend=alt.LegendConfig(
            orient="top",
            offset=10,
            titleOrient="left",
            titleFontWeight="normal",
            titleFontSize=11,
            titleColor=FAINT,
            labelColor=INK,
            labelFontSize=11,
            labelLimit=300,
            columnPadding=14,
        ),
    )


def nothing(why: str, title: str, subtitle: str) -> alt.LayerChart:
    """A figure that says why there is nothing to see."""
    said = alt.Chart(inline([{"why": why}])).mark_text(fontSize=13, color=FAINT, lineBreak="\n")
    return framed([said.encode(text=alt.Text(field="why", type="nominal"))], title, subtitle, height=80)


def to_svg(chart: alt.LayerChart) -> str:
    """The figure as an SVG document, the same bytes whatever was drawn before; nothing is fetched."""
    return svg_of(specified(chart))


@contextmanager
def unvalidated() -> Iterator[None]:
    """Charts are not held against the schema of Vega-Lite while they are made, which takes half of the time.

    The tests of the charts hold every chart against it.
    """
    with alt.utils.schemapi.debug_mode(False):
        yield


def specified(chart: alt.LayerChart) -> dict[str, Any]:
    """What Vega-Lite draws a chart from; like `unvalidated`, not held against its schema."""
    written: dict[str, Any] = chart.to_dict(validate=False)
    return written


def svg_of(specification: Mapping[str, Any]) -> str:
    """The same of a chart's specification, which takes longer to write out than to draw."""
    drawn = vl_convert.vegalite_to_svg(json.dumps(specification, sort_keys=True), allowed_base_urls=[])
    # Vega numbers its clip paths through all figures of a process.
    names = {name: f"clip{place}" for place, name in enumerate(dict.fromkeys(CLIP.findall(drawn)))}
    return CLIP.sub(lambda found: names[found[0]], drawn)


def to_png(chart: alt.LayerChart, *, scale: float = 2.0) -> bytes:
    """The figure as a PNG picture, `scale` pixels to the point; nothing is fetched."""
    return vl_convert.vegalite_to_png(chart.to_json(), scale=scale, allowed_base_urls=[])
