"""Published numbers beside ours, as a person sees them in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attentest.compare.pairs import (
    OVER_HEADINGS,
    OVER_SETTINGS,
    SIZES,
    blocks,
    cells,
    count,
    counted,
    decimal,
    epochs,
    gaps,
    if_equal,
    interval,
    model_of,
    over_settings,
    published,
    sizes,
    vectors,
)
from attentest.notebook import harmless
from attentest.terminal.tables import plain_table

Document = dict[str, Any]
Row = dict[str, Any]
STYLE = {"agrees": "green", "differs": "red", "not comparable": "dim", "recalled": "dim"}
WIDTH = 112  # what a row needs
HEADINGS = ("class", "published", "(A)", "ours", "95 %", "null", "n", "seeds", "agrees", "P")
SIZE_HEADINGS = ("data set", "corpus", "class", "size", "published", "ours", "same?", "why")


def show_comparison(document: Document, console: Console) -> None:
    """Block by block, then what is missing, then the rule."""
    # A pipe says that it is eighty columns wide; a line too long is better than a verdict cut off.
    console.width = max(console.width, WIDTH)
    console.print(Text(harmless(document["title"]), style="bold"))
    for title, rows in blocks(document["rows"]):
        console.print()
        console.print(Text(harmless(title), style="bold"))
        for heading, some in _by_model(rows):
            console.print(_indented(heading, 2))
            console.print(_table(some))
            for note in _notes(some):
                console.print(_indented(note, 4))
    if many := over_settings(document):
        console.print()
        console.print(Text(OVER_SETTINGS, style="bold"))
        console.print(plain_table(OVER_HEADINGS, many))
    if counts := sizes(document, SIZE_HEADINGS):
        console.print()
        console.print(Text(SIZES, style="bold"))
        console.print(plain_table(SIZE_HEADINGS, counts))
    _show_gaps(document["missing"], console)
    console.print()
    console.print(f"{len(document['rows'])} pairs: {counted(document['summary'])}.", highlight=False)
    if counts:
        said = f"{len(counts)} sizes and counts, apart: {counted(document['sizes_summary'])}."
        console.print(said, highlight=False)
    console.print(Text("(A): the earlier printed version. P: P(agrees if equal).", style="dim"))
    console.print(Text(document["rule"], style="dim"))


def _indented(text: str, by: int) -> Padding:
    return Padding(Text(harmless(text), style="dim"), (0, 0, 0, by))


def show_written(document: Document, console: Console) -> None:
    """Where the comparison went."""
    said = f"{document['out']}: {len(document['rows'])} pairs, {len(document['missing'])} numbers missing."
    console.print(said, markup=False, highlight=False, soft_wrap=True)


def _by_model(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of one way of making a model together, in the order of the first of each."""
    headings = [_heading(row) for row in rows]
    order = {heading: number for number, heading in enumerate(dict.fromkeys(headings))}
    pairs = sorted(zip(headings, rows, strict=True), key=lambda pair: order[pair[0]])
    for heading, some in groupby(pairs, key=lambda pair: pair[0]):
        of_model = [row for _, row in some]
        keys = dict.fromkeys(cells(row) for row in of_model)
        yield f"{heading}; cells {', '.join(keys)}", of_model


def _heading(row: Row) -> str:
    made = f"vectors {vectors(row)}, decoder {row['decoder']}, epochs {epochs(row)}"
    return f"{model_of(row)}: {made}" + (f", {row['differs']}" if row["differs"] else "")


def _table(rows: list[Row]) -> Table:
    table = Table(header_style="dim", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", min_width=19, overflow="fold")
    for heading in HEADINGS:
        words = heading in ("class", "agrees")
        table.add_column(heading, justify="left" if words else "right", overflow="fold")
    for row in rows:
        agrees = Text(harmless(row["agrees"]), style=STYLE.get(row["agrees"], "yellow"))
        table.add_row(
            f"  {harmless(_measure(row))}",
            harmless(row["group"] or row["label"] or row["class"]),
            published(row).replace(" ", ""),  # the longest row of the tables has just room so
            decimal(row["published_a"], 2),
            decimal(row["ours"]),
            interval(row, 2).replace(" to ", ".."),
            decimal(row["null"]),
            count(row["n"]),
            count(row["seeds"]),
            agrees,
            if_equal(row),
            style="dim" if row["recalled"] else "",
        )
    return table


def _measure(row: Row) -> str:
    """Our name of it, short enough for a line; the paper's is in every other format."""
    name = row["statistic"].rpartition("/")[2].replace("-significant", " sig.")
    return name.replace("-", " ").replace("_", " ")


def _notes(rows: list[Row]) -> Iterator[str]:
    """Why a pair is not judged, and what was left out; of what was recalled the rule below speaks.

    Where the rule was asked and cannot tell, the reason is its interval, which other formats have.
    """
    said = []
    for row in rows:
        if row["agrees"] in ("cannot tell", "not comparable") and row["moderated_std"] is None:
            said.append(f"{row['agrees']}: {row['why']}")
        if row["excluded"]:
            texts = row["excluded"] + row["n"]
            said.append(f"{row['excluded']:,} of {texts:,} texts left out ({row['excluded_why']})")
    yield from dict.fromkeys(said)


def _show_gaps(missing: list[Row], console: Console) -> None:
    if missing:
        console.print()
        console.print(Text("Published, and not here", style="bold"))
        headings = ("  data set", "numbers", "why", "what to do")
        rows = [(f"  {gap['dataset']}", *list(gap.values())[1:]) for gap in gaps(missing)]
        console.print(plain_table(headings, rows))
