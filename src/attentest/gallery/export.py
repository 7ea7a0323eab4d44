"""`attentest store export`: the findings of a store, and where they come from, as one file without texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

from attentest.compare.stored import LISTED, Stored, StoredFinding
from attentest.compare.verdicts import asks_for
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.gallery.by_seed import SeedEstimates, concluded, imported
from attentest.gallery.writing import write
from attentest.refusal import Refusal
from attentest.store.cell import canonical
from attentest.store.checking import named, without_damaged
from attentest.store.descriptions import ORIGIN, Description, describe, origin
from attentest.store.findings_file import COLUMNS, ROW, CellRows, encode
from attentest.store.importing import AXES, checksum
from attentest.store.store import Store
from attentest.store.studies import name_or_path
from attentest.studies.recipe import load_study

Watch = Callable[[int, int], None]  # how many findings are ready, of how many
CONFIG = {"experiment", "mode", "parameters", *AXES, "model"}
OF_SINGLE_TEXTS = ("heat-map",)  # experiments whose groups are the ids of texts
SIZES = (*LISTED, "vocab_size")  # of a corpus, which only its texts and the models' vocabulary tell


def export_findings(
    store_url: str,
    file: Path,
    *,
    study: str | None = None,
    watch: Watch = lambda done, of: None,
) -> dict[str, Any]:
    """Write the findings that pages show, or those that a study asks for, and say what was left out.

    Of findings that differ in nothing but seeds and versions pages show the newest, so that is exported.
    """
    store = Store(store_url).existing()
    return without_damaged(store, lambda store: _exported(Stored(store), file, study, watch))


def _exported(stored: Stored, file: Path, study: str | None, watch: Watch) -> dict[str, Any]:
    recipe = None if study is None else load_study(name_or_path(stored.store, study))
    asked = [finding for finding in stored.every if recipe is None or asks_for(recipe, finding)]
    left_out = {finding.cell.key: why for finding in asked if (why := _unfit(finding))}
    chosen = sorted((f for f in asked if f.cell.key not in left_out), key=_order)
    if not chosen:
        raise Refusal(
            f"store {stored.store.url}",
            got="no findings to export" if study is None else f"no findings that {study} asks for",
            needs="at least one experiment that was concluded",
            way_out="Run `attentest study NAME` first, or give another --store or --study.",
        )
    exporter = _Exporter(stored)
    cells = []
    for done, finding in enumerate(chosen):
        watch(done, len(chosen))
        cells.append(exporter.rows(finding))
    content = encode(cells)
    write(content, file, option="--findings")
    return {
        "file": str(file),
        "store": stored.store.url,
        "findings": sum(map(len, cells)),
        "cells": len(cells),
        "bytes": len(content),
        "left_out": [{"cell": key, "reason": why} for key, why in left_out.items()],
        "damaged": named(stored.store),
    }


def _unfit(finding: StoredFinding) -> str:
    """Why the finding stays here."""
    cell, table = finding.cell, finding.whole_table
    if cell.config["experiment"] in OF_SINGLE_TEXTS:
        return "it is about single texts, and their ids are not exported"
    by_seed = len(cell.observations) == len(cell.inputs)
    if cell.config.keys() != CONFIG or [*table.columns] != [*COLUMNS] or not by_seed:
        return "it was made by another version, with other settings or columns"
    if table.empty:
        return "it has no findings"
    same = {name: set(table[name]) == {cell.config[name]} for name in ("experiment", "mode")}
    return "" if all(same.values()) else "its rows are of another experiment"


def _order(finding: StoredFinding) -> tuple[str, ...]:
    """Findings of the same models side by side, so that their descriptions are written once."""
    config = finding.cell.config
    point = [config[axis] for axis in AXES]
    return (*point, canonical(config["model"]), config["experiment"], config["mode"], finding.cell.key)


@final
class _Exporter:
    """Describes each cell once, however many findings rest on it."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.release = version("attentest")
        self.known: dict[str, Description] = {}

    def rows(self, finding: StoredFinding) -> CellRows:
        """The finding cell as rows of the file."""
        cell, table = finding.cell, finding.whole_table
        seeds = sorted(cell.observations)
        estimates, reason = seed_estimates(finding, seeds)
        named = zip(table["measure"], table["group"], strict=True)
        rows = {name: table[name].tolist() for name in ROW if name in table}
        rows["seed_estimate"] = [
            [estimates.get(one, {}).get(seed, math.nan) for seed in seeds] for one in named
        ]
        shared: dict[str, Any] = {name: cell.config[name] for name in ("experiment", "mode", *AXES)}
        shared |= {name: canonical(cell.config[name]) for name in ("parameters", "model")}
        shared |= {"cell": cell.key, "version": cell.version, "attentest": self.release, "checksum": ""}
        shared |= {"seed": seeds, "seed_reason": reason}
        shared |= self._made_from(finding, [cell.observations[seed] for seed in seeds])
        made = CellRows(shared, rows)
        return replace(made, shared=shared | {"checksum": checksum(made)})

    def _made_from(self, finding: StoredFinding, keys: Sequence[str]) -> dict[str, Any]:
        observations = [self._described(key) for key in keys]
        inputs = [{} if seen is None else seen.cell.inputs for seen in observations]
        trained = [of_seed.get("model", "") for of_seed in inputs]
        models = [self._described(key) for key in trained]
        corpora = {of_seed.get("corpus", "") for of_seed in inputs}
        corpus = self._described(finding.corpus_key or "") if len(corpora) == 1 else None
        origins = [origin(*pair) for pair in zip(models, observations, strict=True)]
        return {
            "observation": list(keys),
            "trained_model": trained,
            **{name: [one[name] for one in origins] for name in ORIGIN},
            "described_observations": [*map(_spelled, observations)],
            "described_models": [*map(_spelled, models)],
            "described_corpus": _spelled(corpus),
        }

    def _described(self, key: str) -> Description | None:
        """The cell without its data; None where the store does not know it."""
        if key not in self.stored.cells:
            return None
        if key not in self.known:
            self.known[key] = describe(self.stored.store, key, self._notes(key))
        return self.known[key]

    def _notes(self, key: str) -> dict[str, Any]:
        """What only files tell that stay here."""
        stage = self.stored.cells[key].stage
        if stage == "model" and (epochs := self.stored.epochs(key)) is not None:
            return {"epochs": epochs}
        corpus = self.stored.corpus(key) if stage == "corpus" else None
        sizes = {} if corpus is None else {name: corpus.size(name, "") for name in SIZES}
        known = {name: size for name, size in sizes.items() if size is not None}
        return {"sizes": known} if known else {}


def _spelled(description: Description | None) -> str:
    return "" if description is None else description.as_json()


def seed_estimates(finding: StoredFinding, seeds: Sequence[int]) -> tuple[SeedEstimates, str]:
    """What each seed says by itself, for every measure and group, or why that is not known.

    The rows of a seed are concluded as those of all seeds were.
    """
    if len(seeds) == 1:
        return {key: {seeds[0]: row["estimate"]} for key, row in _named(finding).items()}, ""
    config = finding.cell.config
    if brought := imported(finding):
        return brought, ""
    conclusion = CONCLUSIONS.get(config["experiment"])
    if conclusion is None or conclusion.version != finding.cell.version:
        return {}, "it was concluded by another version, which this one cannot repeat"
    rows = finding.rows()
    if rows is None:
        return {}, "the store no longer has the rows of every seed"
    found: SeedEstimates = {}
    try:
        for seed in seeds:
            for key, estimate in concluded(rows[rows["seed"] == seed], config, every_group=True).items():
                found.setdefault(key, {})[seed] = estimate
    except Refusal as refusal:
        return {}, f"the rows of one seed cannot be concluded alone ({refusal})"
    return found, ""


def _named(finding: StoredFinding) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["measure"], row["group"]): row for row in reversed(finding.records)}
