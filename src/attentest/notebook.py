"""What a notebook shows of a result: static HTML, without script, style sheet or network.

Everything in it comes from somebody's corpus, table or model. Each piece of text is cleared of control and
direction signs, cut where nobody would read on, and escaped; whatever calls this hands over plain text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any

LONGEST = 200  # signs of one cell or word
MANY = 200  # words of one text
NUMERIC = ' style="text-align: right; font-variant-numeric: tabular-nums"'
TEXT = ' style="text-align: left; vertical-align: top"'


def harmless(text: str) -> str:
    """The text without what could steer a terminal or turn a page: no controls, no direction marks."""
    if text.isprintable():  # then no sign of it is in a category C
        return text
    return "".join(
        sign if unicodedata.category(sign)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for sign in text
    )


def number(value: float | None) -> str:
    """Three decimals, or a dash where there is no number."""
    return "–" if value is None or math.isnan(value) else f"{value:.3f}"


def word_vectors(name: str | None, width: float | int | None) -> str:
    """Word vectors by name and width; a file by the first digits of its sha256."""
    shown = re.sub(r"^(file:[0-9a-f]{12})[0-9a-f]+$", r"\1", name or "random")
    return shown if width is None or math.isnan(width) else f"{shown}, {width:g} wide"


def vectors_vary(models: Iterable[Mapping[str, Any]]) -> bool:
    """Whether two models of one grid point differ in their word vectors, so that they must be told apart."""
    seen: dict[tuple[Any, ...], str] = {}
    for one in models:
        point = (one["corpus"], one["encoder"], one["attention"], one["projection"])
        made = word_vectors(one.get("vectors"), one.get("embedding"))
        if seen.setdefault(point, made) != made:
            return True
    return False


def plain(value: object) -> str:
    """A value as text: of a number three decimals, of a very long text the beginning and its length."""
    if isinstance(value, float):
        return number(value)
    text = str(value)
    cut = f"{text[:LONGEST]}… ({len(text):,} signs)" if len(text) > LONGEST else text
    return escape(harmless(cut))


def said(text: str) -> str:
    """A sentence about what follows."""
    return f"<p>{plain(text)}</p>\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under headings; numbers stand to the right."""
    top = "".join(f'<th scope="col"{TEXT}>{plain(heading)}</th>' for heading in headings)
    return f"<table>\n<tr>{top}</tr>\n{''.join(map(_line, rows))}</table>\n"


def words(tokens: Sequence[str], marked: Collection[int] = ()) -> str:
    """A text word by word, each apart from the direction of its neighbours; marked ones stand out."""
    shown = [_word(token, place in marked) for place, token in enumerate(tokens[:MANY])]
    rest = f" … ({len(tokens) - MANY:,} more words)" if len(tokens) > MANY else ""
    return f"<p>{' '.join(shown)}{rest}</p>\n"


def _word(token: str, marked: bool) -> str:
    shown = f"<bdi>{plain(token) or '∅'}</bdi>"
    return f"<mark>{shown}</mark>" if marked else shown


def _line(row: Sequence[object]) -> str:
    cells = (f"<td{NUMERIC if isinstance(each, int | float) else TEXT}>{plain(each)}</td>" for each in row)
    return f"<tr>{''.join(cells)}</tr>\n"
