"""Rows of calibration audits, from a store: each test of each audit beside its settings and the truth.

The study of a row follows from what it is: a trained model's is `calibration-trained`, a test that trains
other models belongs to `calibration-trained-tests`, the full budget is `calibration-tests`, the reference
settings are `calibration`, and everything else is `calibration-knobs`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from attentest.experiments.calibration import NAME, QUESTIONS, SETTING, labels
from attentest.model.constructions import (
    CONTEXTUAL,
    DEPENDS,
    POINTS,
    WITHOUT_CONTEXT,
    Constructed,
    is_constructed,
)
from attentest.refusal import Refusal

KNOBS = ("strength", "temperature", "noise", "classes", "length", "texts")
COLUMNS = (
    *("study", "construction", "strength", "temperature", "noise", "corpus", "classes", "length", "texts"),
    *("budget", "kind", "pointer", "mechanism", "role", "seed", "test"),
    *("estimate", "error", "freedom", "null", "n", "points", "depends"),
)
REFERENCE = {"strength": 1.0, "temperature": 1.0, "noise": 0.0, "classes": 2, "length": 45, "texts": 200}
AUDIT = (*COLUMNS[:10], "seed")  # what tells one audit from another
BAR, ALL_TESTS, OTHER_KNOBS = "calibration", "calibration-tests", "calibration-knobs"
TRAINED, TRAINING = "calibration-trained", "calibration-trained-tests"
TRAINS = ("trained-adversary/", "guided/")  # experiments that train other models
FULL = "full"
# Encoders whose states hold no word but their own; of all other trained models states have context.
ALONE = frozenset({"average"})
OF_CORPUS = re.compile(r"(classes|length)=(\d+)")
BY_DEFAULT = "bilstm"  # the encoder of a configuration that names none


@runtime_checkable
class Store(Protocol):
    """What is read of a store of cells."""

    def done(self) -> list[str]:
        """The keys of all cells that are done."""
        ...

    def cell(self, key: str) -> Any:
        """What the cell is made from: its stage, config and inputs."""
        ...

    def read(self, key: str, name: str) -> bytes:
        """One of its files."""
        ...


def rows_of(store: Store) -> pd.DataFrame:
    """Every row of the experiment `calibration` that the store holds; none gives an empty table."""
    audits = []
    for key in store.done():
        cell = store.cell(key)
        if cell.stage != "observation" or cell.config["experiment"] != NAME:
            continue
        model, corpus = store.cell(cell.inputs["model"]), store.cell(cell.inputs["corpus"])
        parameters = cell.config["parameters"]
        rows = pd.read_parquet(io.BytesIO(store.read(key, "rows.parquet")))
        about = described(model.config, corpus.config["name"])
        about |= {"texts": parameters["texts"], "budget": parameters["budget"]}
        audits.append(rows.assign(**about, seed=int(model.config.get("seed", 0))))
    return completed(audits)


def described(model: Mapping[str, Any], corpus: str) -> dict[str, Any]:
    """The construction with its knobs and the corpus's; of a trained model how it was made."""
    sizes = {"classes": REFERENCE["classes"], "length": REFERENCE["length"]}
    sizes |= {name: int(value) for name, value in OF_CORPUS.findall(corpus)}
    encoder = str(model.get("encoder", BY_DEFAULT))
    about: dict[str, Any] = {"corpus": corpus, **sizes, "role": "confirming"}
    if not is_constructed(encoder):
        knobs = {name: REFERENCE[name] for name in ("strength", "temperature", "noise")}
        kind = WITHOUT_CONTEXT if encoder in ALONE else CONTEXTUAL
        return about | {"construction": _trained(model), **knobs, "kind": kind}
    made = Constructed.parse(encoder)
    about |= {name: getattr(made.knobs, name) for name in ("strength", "temperature", "noise")}
    about |= {"construction": made.name, "kind": made.kind}
    about |= {"pointer": made.of.pointer, "mechanism": made.of.mechanism}
    return about | {"role": "setting" if made.name in SETTING else "confirming"}


def _trained(model: Mapping[str, Any]) -> str:
    made = ["trained", str(model.get("encoder", BY_DEFAULT))]
    if model.get("projection", "softmax") != "softmax":
        made.append(str(model["projection"]))
    return " ".join([*made, *(["deceptive"] if "impermissible" in str(model.get("loss", "")) else [])])


def completed(audits: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The audits as one table with all columns, in a fixed order; each audit once.

    Of a trained model the answers follow from its own truth, which was found by brute force; one that lies
    between no and yes has no answer.
    """
    parts = [audit.rename(columns={"id": "test"}) for audit in audits]
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    table = pd.concat(parts, ignore_index=True)
    truths = table[["points", "depends"]].drop_duplicates().itertuples(index=False, name=None)
    answers = {truth: labels(*truth) for truth in truths}
    for question in QUESTIONS:
        declared = table.get(question, pd.Series(pd.NA, index=table.index, dtype="object"))
        found = [answers[truth][question] for truth in zip(table["points"], table["depends"], strict=True)]
        table[question] = declared.where(
            declared.notna(), pd.Series(found, index=table.index, dtype="object")
        )
    table["study"] = _studies(table)
    return unique(table)


def _studies(table: pd.DataFrame) -> np.ndarray:
    conditions = {
        TRAINED: table["construction"].str.startswith("trained "),
        TRAINING: table["test"].str.startswith(TRAINS),
        ALL_TESTS: table["budget"] == FULL,
        BAR: at_reference(table),
    }
    return np.select(list(conditions.values()), list(conditions), OTHER_KNOBS)


def unique(table: pd.DataFrame) -> pd.DataFrame:
    """Each test of each audit once, the later one where there are two, in a fixed order."""
    keys = [*AUDIT, "test"]
    found = table.drop_duplicates(keys, keep="last").sort_values(keys, ignore_index=True)
    return found.astype(dict.fromkeys(QUESTIONS, "boolean"))[list(COLUMNS)]


def at_reference(rows: pd.DataFrame) -> pd.Series:
    """Which rows were observed at the reference settings of all knobs."""
    same = pd.Series(True, index=rows.index)
    for name, value in REFERENCE.items():
        same &= rows[name] == value
    return same


def check_truth(rows: pd.DataFrame) -> None:
    """Refuse rows whose truth at the reference settings is not what their construction declares."""
    own = rows[at_reference(rows) & (rows["study"] != TRAINED)]
    means = own.groupby("construction")[["points", "depends", "pointer", "mechanism"]].mean().astype(float)
    wrong = ((means["points"] >= POINTS) != (means["pointer"] > 0)) | (
        (means["depends"] >= DEPENDS) != (means["mechanism"] > 0)
    )
    if wrong.any():
        raise Refusal(
            f"rows of calibration, {', '.join(means.index[wrong])}",
            got="a truth that is not what the construction declares",
            needs=f"tau of at least {POINTS} for a pointer, a change of at least {DEPENDS} for a mechanism",
            way_out="Observe the audits again with this version of the constructions.",
        )
