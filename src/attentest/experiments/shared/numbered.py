"""Models that are named by a kind and a number, as `lambda 0.001` is: read here and nowhere else.

Rows and findings name a model by one string, which is what is stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


def number_in(name: str, kind: str) -> float:
    """The number after the kind; NaN where the name is of another kind, or of a part of such a model."""
    try:
        return float(name.removeprefix(kind)) if name.startswith(kind) else math.nan
    except ValueError:
        return math.nan


def numbered(names: Iterable[str], kind: str) -> dict[str, float]:
    """The names of that kind, each once, in the order of their numbers."""
    found = {name: number_in(name, kind) for name in names}
    return dict(sorted(((n, v) for n, v in found.items() if not math.isnan(v)), key=lambda item: item[1]))
