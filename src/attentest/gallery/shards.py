"""Data that a page takes with a classic script: from disk no page may fetch, but any may name a script.

A shard is one call, `attentest.take(name, value);`. What it holds comes from anybody's corpus: strings are
cleared of control and direction signs, and everything that could end a script is spelled as an escape, so a
shard may also stand inside a page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import vl_convert

from attentest.notebook import harmless

ESCAPED = {sign: f"\\u{ord(sign):04x}" for sign in "<>&"}
DIGITS = 5  # significant ones; more than any page prints
WHOLE = 1e15  # below it whole numbers are written without a point
VEGA, EMBED = "scripts/vega.js", "window.vegaEmbed = vegaEmbed;"
OWN = (
    *("core", "picture", "charts", "overview", "compare", "figures", "live", "served"),
    *("lanes", "strips", "choosing", "scatter", "texts", "reader", "explored", "explorer", "play"),
)  # in the order they are read


def shard(name: str, value: Any) -> str:
    """The script that hands `value` to the page under `name`."""
    return f"attentest.take({_spelled(name)}, {_spelled(value)});\n"


def scripts() -> dict[str, str]:
    """Our own scripts and the one that draws; no page fetches any from elsewhere."""
    here = resources.files("attentest.gallery") / "scripts"
    own = {f"scripts/{name}.js": (here / f"{name}.js").read_text(encoding="utf-8") for name in OWN}
    return {**own, VEGA: _vega()}


def router() -> str:
    """The script that turns pages where all of them are one file."""
    return (resources.files("attentest.gallery") / "scripts" / "single.js").read_text(encoding="utf-8")


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as installed; a function of its own, since its names are one letter."""
    return f"(function () {{\n{vl_convert.javascript_bundle(EMBED)}\n}})();\n"


def _spelled(value: Any) -> str:
    written = json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)
    for sign, escape in ESCAPED.items():
        written = written.replace(sign, escape)
    return written


def _plain(value: Any) -> Any:
    """As JSON has it: what is not a number is null. Arrays of integers are long, and taken as they are."""
    if isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.integer):
        return value.tolist()
    if isinstance(value, str):
        return value if value.isprintable() else harmless(value)  # most are, and that is fast to see
    if isinstance(value, Mapping):
        return {harmless(str(name)): _plain(each) for name, each in value.items()}
    if isinstance(value, Sequence | np.ndarray):
        return [_plain(each) for each in value]
    return _number(value)


def _number(value: Any) -> Any:
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    number = float(value)
    if not math.isfinite(number):
        return None
    short = float(f"{number:.{DIGITS}g}")
    if not math.isfinite(short):  # rounded beyond the largest there is
        return number
    return int(short) if short.is_integer() and abs(short) < WHOLE else short
