"""The texts of one model as a table: what every experiment says of each, and where its words are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd

from attentest.evidence.importances.names import IMPORTANCES, column
from attentest.experiments.ablation.conclude import ASKED, EXPLAINED
from attentest.gallery.rows import PointRows

# What a table of texts may be filtered by: the words of its heading, and the experiment that measures it.
NUMBERS: Mapping[str, tuple[str, str]] = {
    "length": ("length", "counting what is weighed: words, or sentences"),
    "confidence": ("confidence", "performance"),
    "max_attention": ("largest weight", "permutation"),
    **{
        f"tau_{column(name)}": (f"τ of attention and {about.title}", "importance")
        for name, about in IMPORTANCES.items()
    },
    "change": ("output change, permuted", "permutation"),
    "even": ("output change, uniform", "ablation"),
    "jsd": ("ε-max JSD", "adversary"),
    "searched": ("JSD found by the search", "adversary"),
    "flip": ("smallest flip", "removal"),
}
TOLD = ("performance", "importance", "permutation", "adversary", "removal", "ablation")
SHARED = ("label", "predicted", "length", "max_attention")


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


@final
@dataclass(frozen=True, eq=False)
class Examples:
    """The texts of the trained model of one seed, by id, each with label, prediction and numbers."""

    seed: int
    table: pd.DataFrame
    vectors: pd.DataFrame  # by id: weights over words, of the texts that an experiment kept whole
    effects: Mapping[str, Effects]  # by id: what weights that are not the model's own do


def examples(rows: PointRows) -> Iterator[Examples]:
    """Everything the experiments say of each seed's texts, the first seed first; none where no rows are."""
    of = {name: rows.own(name) for name in TOLD}
    for seed in sorted({int(seed) for own in of.values() for seed in own["seed"].unique()}):
        own = {name: some[some["seed"] == seed].set_index("id") for name, some in of.items()}
        yield _of_seed(seed, own, rows.point.tolerance)


def _of_seed(seed: int, own: Mapping[str, pd.DataFrame], tolerance: float) -> Examples:
    ids = pd.Index(dict.fromkeys(each for some in own.values() for each in some.index))
    table = pd.DataFrame(index=ids)
    for name in SHARED:
        there = [some[name] for some in own.values() if name in some]
        table[name] = _first(there, ids)
    table = table.assign(
        **{name: table[name].where(table[name].notna(), "–") for name in ("label", "predicted")}
    )
    found = _measured(own, tolerance)
    for name in NUMBERS:
        if name not in table:
            values = found.get(name, pd.Series(dtype=np.float64))
            table[name] = values.astype(np.float64).reindex(ids)
    return Examples(seed, table, _vectors(own, tolerance), effects(own["ablation"]))


def _first(columns: list[pd.Series], ids: pd.Index) -> pd.Series:
    """The same fact from whichever experiment has it."""
    found = pd.Series(np.nan, index=ids, dtype=object)
    for one in columns:
        found = found.where(found.notna(), one.astype(object).reindex(ids))
    return found


def _measured(own: Mapping[str, pd.DataFrame], tolerance: float) -> dict[str, pd.Series]:
    at = f"{tolerance:g}"
    wanted = {
        **{tau: ("importance", tau) for tau in (f"tau_{column(name)}" for name in IMPORTANCES)},
        "change": ("permutation", "median_change"),
        "jsd": ("adversary", f"exact@{at}"),
        "searched": ("adversary", f"best@{at}"),
        "even": ("ablation", "uniform_change"),
    }
    found = {name: own[where][column] for name, (where, column) in wanted.items() if column in own[where]}
    if "smallest" in own["removal"]:
        smallest = own["removal"]["smallest"].astype(np.float64)
        found["flip"] = smallest.where(smallest > 0)  # 0 says that no removal flips the decision
    if "probabilities" in own["performance"]:
        found["confidence"] = own["performance"]["probabilities"].map(max)
    return found


def _vectors(own: Mapping[str, pd.DataFrame], tolerance: float) -> pd.DataFrame:
    """Importances and other attentions of the texts kept whole; what no search looked for left none."""
    columns = {}
    for name in map(column, IMPORTANCES):
        if name in own["importance"]:
            columns[name] = own["importance"][name]
    adversary = own["adversary"]
    for name, known in (("search", f"best@{tolerance:g}"), ("exact", f"exact@{tolerance:g}")):
        if f"{name}_weights" in adversary:
            columns[name] = adversary[f"{name}_weights"].where(adversary[known].notna())
    if "permuted_weights" in own["ablation"]:
        columns["permuted"] = own["ablation"]["permuted_weights"]
    for where in ("importance", "adversary"):
        if "weights" in own[where] and "own" not in columns:
            columns["own"] = own[where]["weights"]
    return pd.DataFrame(columns).dropna(how="all") if columns else pd.DataFrame()
