"""One text for a terminal of 80 columns: tables with bars, then what was measured in sentences."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from attentest.inspection.sentences import AGREEMENT, RECOMPUTED, SHORT, agreement, said
from attentest.notebook import harmless

Document = Mapping[str, Any]
ROWS = 40  # of a table; of a longer text those that weigh most
BAR, NUMBER, COLUMN, NAME = 8, 6, 16, 14
EIGHTHS = " ▏▎▍▌▋▊▉█"


def printed(view: Document) -> str:
    """The whole view."""
    columns = columns_of(view)
    rows = _rows(columns, len(view["tokens"]))
    lines = [harmless(line) for line in said(view)[:1]]
    for begin in range(0, len(columns), 4):
        lines += ["", *_table(view["tokens"], dict(list(columns.items())[begin : begin + 4]), rows)]
    if len(rows) < len(view["tokens"]):
        lines.append(f"{len(rows)} of {len(view['tokens'])} are shown; to_dict() has them all.")
    if agreement(view):
        rows_of_table = (AGREEMENT, *agreement(view))
        lines += ["", *(f"{a:30}{b:>8}{c:>10}  {d}" for a, b, c, d in rows_of_table)]
        lines += _wrapped(RECOMPUTED)
    lines += ["", *(wrapped for line in said(view)[1:] for wrapped in _wrapped(harmless(line)))]
    return "\n".join(lines)


def columns_of(view: Document) -> dict[str, Sequence[float]]:
    """The numbers of every unit by their name, attention first."""
    adversary = view["adversary"]
    columns = {"attention": view["attention"]}
    if adversary is not None:
        columns["adversary"] = adversary["weights"]
    return columns | {name: one["scores"] for name, one in view["importances"].items()}


def signed(name: str) -> bool:
    """Whether numbers of this name may be negative."""
    return name not in ("attention", "adversary")


def largest(name: str, columns: Mapping[str, Sequence[float]]) -> float:
    """What a full bar stands for: attention and its adversary are on one scale."""
    shared = ("attention", "adversary") if not signed(name) else (name,)
    values = [abs(value) for each in shared for value in columns.get(each, ()) if math.isfinite(value)]
    return max(values, default=0.0)


def _rows(columns: Mapping[str, Sequence[float]], units: int) -> list[int]:
    """The units to show, in the order of the text."""
    tops = {name: largest(name, columns) or 1.0 for name in columns}

    def weight(place: int) -> float:
        found = [abs(values[place]) / tops[name] for name, values in columns.items()]
        return max((each for each in found if math.isfinite(each)), default=0.0)

    return sorted(sorted(range(units), key=weight, reverse=True)[:ROWS])


def _table(tokens: Sequence[str], columns: Mapping[str, Sequence[float]], rows: Sequence[int]) -> list[str]:
    head = " " * NAME + "".join(SHORT.get(name, name).ljust(COLUMN) for name in columns)
    lines = [head.rstrip()]
    for place in rows:
        cells = (
            _cell(values[place], largest(name, columns), signed(name)) for name, values in columns.items()
        )
        lines.append((_word(tokens[place]) + "".join(cells)).rstrip())
    return lines


def _word(token: str) -> str:
    shown = harmless(" ".join(token.split()))
    return (shown if len(shown) < NAME else shown[: NAME - 2] + "…").ljust(NAME)


def _cell(value: float, top: float, with_sign: bool) -> str:
    if not math.isfinite(value):
        return "–".rjust(NUMBER).ljust(COLUMN)
    small = 0 < abs(value) < 0.0005
    number = f"{value:{'+' if with_sign and value else ''}{'.0e' if small else '.3f'}}"
    share = min(1.0, abs(value) / top) if top > 0 else 0.0
    if value < 0:
        bar = "░" * round(share * BAR)
    else:
        eighths = round(share * BAR * 8)
        bar = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    return f"{number.rjust(NUMBER)} {bar}".ljust(COLUMN)


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, 79, subsequent_indent="  ") or [""]
