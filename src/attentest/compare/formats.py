"""A comparison as Markdown, LaTeX, CSV or JSON. Names in it are untrusted: each format has its escapes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attentest.compare.pairs import (
    DASH,
    OVER_HEADINGS,
    OVER_SETTINGS,
    SIZE_COLUMNS,
    SIZES,
    blocks,
    cells,
    class_of,
    count,
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
    version_a,
)
from attentest.refusal import Refusal, look_up

Document = dict[str, Any]
Row = dict[str, Any]
Table = tuple[str, Sequence[str], list[list[str]]]  # a title, the headings, the cells

COLUMNS: dict[str, Callable[[Row], str]] = {
    "model": model_of,
    "class": class_of,
    "group": lambda row: row["group"] or DASH,
    "measure": lambda row: row["measure"],
    "published": published,
    "version A": version_a,
    "ours": lambda row: decimal(row["ours"]),
    "95 % interval": interval,
    "seed std": lambda row: decimal(row["seed_std"]),
    "null": lambda row: decimal(row["null"]),
    "n": lambda row: count(row["n"]),
    "excluded": lambda row: count(row["excluded"]),
    "seeds": lambda row: count(row["seeds"]),
    "vectors": vectors,
    "epochs": epochs,
    "decoder": lambda row: row["decoder"] or DASH,
    "differs in": lambda row: row["differs"] or DASH,
    "agrees": lambda row: row["agrees"],
    "P(agrees if equal)": if_equal,
    "why": lambda row: row["why"] or DASH,
    "cell": cells,
}
SOMETIMES = (
    "group",
    "version A",
    "differs in",
    "P(agrees if equal)",
    "why",
)  # left out of a table in which they say nothing
RECALLED = "recalled"  # what `agrees` says of a number that nobody checked against its paper
MARK = "†"
FOOTNOTE = "The published number was recalled, not read in the paper: it is shown and never judged."


def tables(document: Document, columns: Sequence[str] = tuple(COLUMNS)) -> Iterator[Table]:
    """The pairs by table and data set, then averages over settings, sizes and gaps, as words."""
    for title, rows in blocks(document["rows"]):
        table = {name: [COLUMNS[name](row) for row in rows] for name in columns}
        told = {n: column for n, column in table.items() if n not in SOMETIMES or set(column) != {DASH}}
        yield title, tuple(told), [list(row) for row in zip(*told.values(), strict=True)]
    if many := over_settings(document):
        yield OVER_SETTINGS, OVER_HEADINGS, many
    if counts := sizes(document):
        yield SIZES, tuple(SIZE_COLUMNS), counts
    lacking = gaps(document["missing"])
    if lacking:
        yield "Published, and not here", tuple(lacking[0]), [[str(v) for v in g.values()] for g in lacking]


def printable(text: str) -> str:
    """The text on one line and without anything that steers a terminal or an editor."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _written(
    headings: Sequence[str],
    row: Sequence[str],
    escaped: Callable[[str], str],
    doubtful: Callable[[str, str], str],
) -> list[str]:
    """A row in some format; one whose number was recalled is to look less certain than the others."""
    told = [escaped(cell) for cell in row]
    verdicts = [cell for heading, cell in zip(headings, row, strict=True) if heading in ("agrees", "same?")]
    if RECALLED not in verdicts:
        return told
    return [doubtful(heading, cell) for heading, cell in zip(headings, told, strict=True)]


def markdown(document: Document) -> str:
    """One table for each table and data set; what was recalled is in italics, with a mark and a footnote."""
    parts = [f"# {in_markdown(document['title'])}", in_markdown(document["rule"])]
    for title, headings, rows in tables(document):
        written = [_written(headings, row, in_markdown, _in_italics) for row in rows]
        lines = [headings, ["---"] * len(headings), *written]
        parts.append(f"## {in_markdown(title)}")
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    if _any_recalled(document):
        parts.append(f"{MARK} {FOOTNOTE}")
    return "\n\n".join(parts) + "\n"


def _any_recalled(document: Document) -> bool:
    return any(row["recalled"] for name in ("rows", "sizes") for row in document.get(name, ()))


def _in_italics(heading: str, cell: str) -> str:
    return f"*{cell}*{MARK if heading == 'published' else ''}"


def in_markdown(text: str) -> str:
    """The text without markup.

    Underscores stay: within words they mean nothing, and the papers' measures are full of them.
    """
    return re.sub(r"([\\`*\[\]<>|&~#])", r"\\\1", printable(text))


def latex(document: Document) -> str:
    """One plain `tabular` for each table and data set; needs no package but where something is gray."""
    parts = [f"% {printable(document['title'])}", f"% {document['rule']}"]
    if _any_recalled(document):
        parts.append(rf"% \usepackage{{xcolor}} for what is gray. {FOOTNOTE}")
    for title, headings, rows in tables(document):
        width = len(headings)
        heading = f"\\multicolumn{{{width}}}{{l}}{{\\textbf{{{in_latex(title)}}}}} \\\\"
        written = [_written(headings, row, in_latex, _in_gray) for row in rows]
        lines = [" & ".join(row) + r" \\" for row in ([in_latex(name) for name in headings], *written)]
        parts.append(
            "\n".join(
                [
                    rf"\begin{{tabular}}{{{'l' * width}}}",
                    heading,
                    r"\hline",
                    lines[0],
                    r"\hline",
                    *lines[1:],
                    r"\hline",
                    r"\end{tabular}",
                ]
            )
        )
    return "\n\n".join(parts) + "\n"


def _in_gray(heading: str, cell: str) -> str:
    return rf"\textcolor{{gray}}{{{cell}}}"


LATEX = {
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after a line's end a bracket would be read as a length
    '"': "''",  # some languages make it an active sign
    "±": r"$\pm$",
    DASH: "--",
    "\N{REPLACEMENT CHARACTER}": "?",
}


def in_latex(text: str) -> str:
    """The text with every sign that LaTeX would read as a command spelled out."""
    return "".join(LATEX.get(sign, sign) for sign in printable(text))


CSV_FIELDS = (
    "kind",
    *("paper", "table", "dataset", "corpus", "model", "attention", "projection", "class", "label", "group"),
    *("measure", "published", "published_std", "published_a", "published_a_std", "recalled", "ours"),
    *("low", "high", "seed_std", "std", "null", "n", "excluded", "seeds", "vectors", "epochs", "decoder"),
    *("differs", "agrees", "difference", "margin", "moderated_std", "freedom", "p_agrees_if_equal", "why"),
    "cells",
)


def comma_separated(document: Document) -> str:
    """Every pair on a line, numbers in full; then sizes, then the gaps, which have no number of ours."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, CSV_FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for kind, rows in (("number", document["rows"]), ("size", document.get("sizes", ()))):
        for row in rows:
            ran = epochs(row) if row["epochs"] is not None else None
            writer.writerow(row | _words(row) | {"kind": kind, "cells": cells(row), "epochs": ran})
    for gap in document["missing"]:
        said = {"kind": "missing", "agrees": "missing", "why": f"{gap['reason']}; {gap['way_out']}"}
        writer.writerow(gap | _words(gap) | said)
    return out.getvalue()


def _words(row: Row) -> Row:
    """Truths as JSON spells them, too."""
    return {"recalled": json.dumps(row["recalled"])}


def as_json(document: Document) -> str:
    """The document itself, with whole keys."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


FORMATS: Mapping[str, Callable[[Document], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
    "json": as_json,
}
SUFFIXES = {".md": "markdown", ".tex": "latex", ".csv": "csv", ".json": "json"}


def format_for(named: str | None, out: Path | None) -> str | None:
    """The format asked for by name, or else by the suffix of the file; None where neither is given."""
    if named is not None:
        look_up(named, FORMATS, "format")
        return named
    if out is None:
        return None
    if out.suffix.lower() not in SUFFIXES:
        raise Refusal(
            f"file {out}",
            got=f"the suffix {out.suffix!r}",
            needs=f"one of {', '.join(SUFFIXES)}, or --format",
            way_out="Give for example --out comparison.md.",
        )
    return SUFFIXES[out.suffix.lower()]
