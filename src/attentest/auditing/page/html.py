"""The pieces of an audit's page: escaped text, tables that a narrow screen can read, folded parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from attentest.notebook import harmless


def safe(text: object) -> str:
    """Somebody's text: no control or direction signs, and nothing that is markup."""
    return escape(harmless(str(text)))


def paragraph(text: str, kind: str = "") -> str:
    """A sentence of its own."""
    return f"<p{f' class={kind!r}' if kind else ''}>{safe(text)}</p>\n"


def chip(verdict: str) -> str:
    """A verdict on its ground."""
    return f'<span class="verdict {verdict.replace(" ", "-")}">{safe(verdict)}</span>'


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[str] = (),
    stacked: bool = False,
) -> str:
    """Rows under headings; a wide one moves sideways, a `stacked` one becomes blocks on a narrow screen.

    A cell that is a pair is a text and a smaller one below it.
    """
    head = "".join(f'<th scope="col"{_number(each, numbers)}>{safe(each)}</th>' for each in headings)
    lines = (
        "".join(
            f"<td{_number(heading, numbers)}{_named(heading) if stacked and place else ''}>{_cell(cell)}</td>"
            for place, (heading, cell) in enumerate(zip(headings, row, strict=True))
        )
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    kind = ' class="stacked"' if stacked else ""
    inside = f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"
    return f'<div class="wide"><table{kind}>{inside}</table></div>\n'


def listed(pairs: Iterable[tuple[str, object]]) -> str:
    """Names with what they stand for."""
    return f"<dl>{''.join(f'<dt>{safe(name)}</dt><dd>{safe(said)}</dd>' for name, said in pairs)}</dl>\n"


def folded(summary: str, inside: str) -> str:
    """A part that opens."""
    return f"<details><summary>{safe(summary)}</summary>\n{inside}</details>\n"


def block(text: str) -> str:
    """Text to copy, as it is."""
    kept = "\n".join(map(safe, text.split("\n")))
    return f"<pre><code>{kept}</code></pre>\n"


def share(rate: float | None) -> str:
    """A rate in per cent, or a dash where there is none."""
    if rate is None or math.isnan(rate):
        return "–"
    return f"{100 * rate:.0f} %" if rate in (0.0, 1.0) or 0.1 <= rate <= 0.99 else f"{100 * rate:.1f} %"


def separation(auc: Mapping[str, Any] | None) -> str:
    """An area under a ROC curve with its interval."""
    return "–" if auc is None else f"{auc['auc']:.2f} [{auc['low']:.2f}, {auc['high']:.2f}]"


def _number(heading: str, numbers: Sequence[str]) -> str:
    return ' class="number"' if heading in numbers else ""


def _named(heading: str) -> str:
    return f' data-of="{safe(heading)}"'


def _cell(cell: object) -> str:
    if isinstance(cell, tuple):
        first, second = cell
        return f"{safe(first)}<small>{safe(second)}</small>" if second else safe(first)
    return safe(cell)
