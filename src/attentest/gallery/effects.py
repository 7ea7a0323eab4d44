"""What each weighting of a text does to its prediction, where a model was asked."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from attentest.experiments.ablation.conclude import ASKED, EXPLAINED

Effects = dict[str, tuple[float, str]]  # by weighting: how far the output moves, and what is said then


def effects(ablated: pd.DataFrame) -> Mapping[str, Effects]:
    """By id what the ablation rows of one model say; empty where there are none, or of an older kind."""
    names = [name for name in (*ASKED, *EXPLAINED) if f"{name}_change" in ablated]
    told: dict[str, Effects] = {str(each): {} for each in ablated.index}
    for name in names:
        columns = (ablated[f"{name}_{what}"].tolist() for what in ("change", "predicted"))
        for of_text, change, predicted in zip(told.values(), *columns, strict=True):
            if not math.isnan(change):
                of_text[name] = change, predicted
    return told
