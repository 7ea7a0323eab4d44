"""One text as strips: for a notebook, and as a page that needs nothing beside it. All words are untrusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from attentest.gallery.writing import Formats, as_json
from attentest.inspection.sentences import AGREEMENT, RECOMPUTED, TITLES, agreement, said
from attentest.inspection.terminal import columns_of, largest, signed
from attentest.notebook import harmless, number, plain, table
from attentest.notebook import said as sentence_of

Document = Mapping[str, Any]
FOR, AGAINST = "230, 97, 1", "60, 100, 200"  # orange and blue, over whatever ground there is
STYLE = """
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.6 system-ui, sans-serif;
  color: light-dark(#1f1f26, #e6e6ec); background: light-dark(#fff, #16161b); overflow-wrap: anywhere; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def fragment(view: Document) -> str:
    """What a notebook shows: strips, then sentences; static and escaped."""
    first, *more = said(view)
    strips = "".join(_strips(view))
    told = "".join(f'<p style="margin: .3em 0">{escape(harmless(sentence))}</p>\n' for sentence in more)
    beside = table(AGREEMENT, agreement(view)) + sentence_of(RECOMPUTED) if agreement(view) else ""
    return f"<p><strong>{escape(harmless(first))}</strong></p>\n{strips}{told}{beside}"


def page(view: Document) -> str:
    """The same as one HTML file that runs no script."""
    title = escape(harmless(f"One text in {view['model']}"))
    query = "" if view["query"] is None else f"<p>Second text: {escape(harmless(view['query']))}</p>\n"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1" />\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{query}"
        f"{fragment(view)}<p><small>Made by attentest {escape(view['version'])}.</small></p>\n"
        "</body>\n</html>\n"
    )


def _strips(view: Document) -> Iterator[str]:
    """A strip for every list of numbers, and one of the units that flip the decision."""
    columns = columns_of(view)
    for name, values in columns.items():
        top = largest(name, columns)
        told = f"full colour at {number(top)}" + ("; negative: blue, underlined" if signed(name) else "")
        delta = view["importances"].get(name, {}).get("convergence_delta")
        told += "" if delta is None else f"; convergence delta {delta:.1e}"
        yield _strip(TITLES.get(name, name), told, view["tokens"], values, top)
    flip = view["smallest_flip"]
    if flip is not None:
        gone = set(flip["indices"])
        marks = [float(place in gone) for place in range(len(view["tokens"]))]
        yield _strip("smallest flip", f"then {harmless(flip['label'])}", view["tokens"], marks, 1.0)


def _strip(title: str, told: str, tokens: Sequence[str], values: Sequence[float], top: float) -> str:
    shown = " ".join(_token(*each, top) for each in zip(tokens, values, strict=True))
    head = f'<strong>{escape(title)}</strong> <small style="opacity: .75">{escape(told)}</small>'
    return f'<div style="margin: .6em 0; line-height: 1.8">{head}<br />{shown}</div>\n'


def _token(token: str, value: float, top: float) -> str:
    if not math.isfinite(value):
        return f'<bdi title="not defined" style="text-decoration: underline dotted">{plain(token)}</bdi>'
    share = min(1.0, abs(value) / top) if top > 0 else 0.0
    ground = f"background: rgba({FOR if value >= 0 else AGAINST}, {0.75 * share:.3f})"
    edge = "; text-decoration: underline" if value < 0 and share > 0.02 else ""
    style = f"{ground}; padding: .1em .2em; border-radius: .15em{edge}"
    return f'<bdi title="{value:.4g}" style="{style}">{plain(token) or "∅"}</bdi>'


FORMATS = Formats("file", "view.html", {".html": page, ".json": as_json})
