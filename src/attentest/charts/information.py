"""Information by rank of attention (WE-1), and what becomes of its order in other models (WE-2 to WE-4)."""

from __future__ import annotations

import pandas as pd

from attentest.charts.style import INK, PALETTE

KINDS = {
    "mi": ("told about the output", PALETTE[1]),
    "floor": ("told where outputs are dealt at random", INK),
    "joint": ("told, one codebook for all ranks", PALETTE[6]),
    "dealt": ("told where tokens are dealt to ranks at random", PALETTE[7]),
}
TAUS = {
    "tau": "τ, a codebook for each rank",
    "tau-joint": "τ, one codebook for all ranks",
    "tau-above-floor": "τ, above the floor",
    "tau-knn": "τ, without clusters",
    "tau-scipy": "τ, weighted by rank",
}
OVERALL = {"overall": "the model itself"}


def other_groups(findings: pd.DataFrame) -> dict[str, str]:
    """All groups but the model itself, in the order in which they were concluded."""
    return {group: group for group in dict.fromkeys(findings.get("group", ())) if group != "overall"}
