"""One plain table as Markdown, LaTeX and CSV, for whoever writes about it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from attentest.compare.formats import in_latex, in_markdown, printable

Rows = Sequence[Sequence[str]]


def listings(title: str, headings: Sequence[str], rows: Rows) -> dict[str, str]:
    """The table in each format, by the ending of its file's name."""
    return {
        ".md": _markdown(title, headings, rows),
        ".tex": _latex(title, headings, rows),
        ".csv": _comma_separated(headings, rows),
    }


def _markdown(title: str, headings: Sequence[str], rows: Rows) -> str:
    lines = [headings, ["---"] * len(headings), *([in_markdown(cell) for cell in row] for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"# {in_markdown(title)}\n\n{table}\n"


def _latex(title: str, headings: Sequence[str], rows: Rows) -> str:
    """A plain `tabular`, which needs no package."""
    lines = [" & ".join(map(in_latex, row)) + r" \\" for row in (headings, *rows)]
    begins = rf"\begin{{tabular}}{{{'l' * len(headings)}}}"
    body = "\n".join([begins, r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", r"\end{tabular}"])
    return f"% {printable(title)}\n{body}\n"


def _comma_separated(headings: Sequence[str], rows: Rows) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(
        [headings, *([printable(cell) for cell in row] for row in rows)]
    )
    return out.getvalue()
