"""The numbers of single seeds: what each training, had it been the only one, would have said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from attentest.compare.stored import StoredFinding
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.gallery.lines import is_main, measure_key
from attentest.gallery.rows import PointRows
from attentest.statistics.estimates import OVERALL, estimates_alone
from attentest.store.observed import BY_SEED
from attentest.store.tables import from_parquet

Numbers = dict[str, dict[str, float]]  # by measure and seed
SeedEstimates = dict[tuple[str, str], dict[int, float]]  # by measure and group, then by seed


def by_seed(rows: PointRows) -> Numbers:
    """Each measure's number over all texts by seed, as far as the rows are there.

    The rows of a seed are concluded as those of all seeds were. So it is the same number where the finding
    is a mean over seeds, and the right one where it is not: a correlation over models, the best of rivals.
    """
    found: Numbers = {}
    for finding in _spoken_for(rows):
        for seed, measure, estimate in _estimates(finding, rows):
            if is_main(measure, rows.point.tolerance) and math.isfinite(estimate):
                key = measure_key(finding.cell.config["experiment"], measure)
                found.setdefault(key, {})[seed] = estimate
    return found


def _spoken_for(rows: PointRows) -> Iterator[StoredFinding]:
    """One finding of every experiment that this version can conclude: the one that the overview shows."""
    for experiment in CONCLUSIONS:
        finding = rows.point.of(experiment)
        if finding is not None and (finding.table["group"] == OVERALL).any():
            yield finding


def _estimates(finding: StoredFinding, rows: PointRows) -> Iterator[tuple[str, str, float]]:
    """Seed, measure and number. Of one seed the finding itself says it, and nothing is concluded again."""
    seeds = [*finding.cell.observations]
    if len(seeds) == 1:
        overall = finding.table[finding.table["group"] == OVERALL]
        for measure, estimate in zip(overall["measure"], overall["estimate"], strict=True):
            yield str(seeds[0]), measure, float(estimate)
        return
    for (measure, group), of_seeds in _of_several(finding, rows).items():
        for seed, estimate in of_seeds.items() if group == OVERALL else ():
            yield str(seed), measure, estimate


def _of_several(finding: StoredFinding, rows: PointRows) -> SeedEstimates:
    seen = rows.of(finding)
    if seen is None:
        return imported(finding)
    found: SeedEstimates = {}
    for seed, own in seen.groupby("seed"):
        for key, estimate in concluded(own, finding.cell.config).items():
            found.setdefault(key, {})[int(str(seed))] = estimate
    return found


def concluded(
    rows: pd.DataFrame, config: Mapping[str, str], *, every_group: bool = False
) -> dict[tuple[str, str], float]:
    """Estimates by measure and group. Nulls may be drawn, estimates are not: any randomness will do."""
    with estimates_alone(every_group=every_group):
        found = CONCLUSIONS[config["experiment"]].conclude(
            rows, mode=config["mode"], rng=np.random.default_rng(0)
        )
    return {(one.measure, one.group): one.estimate for one in reversed(found)}


def imported(finding: StoredFinding) -> SeedEstimates:
    """The numbers that came with an imported finding; empty where none did."""
    store, key = finding.stored.store, finding.cell.key
    found: SeedEstimates = {}
    if store.holds(key, BY_SEED):
        for row in from_parquet(store.read(key, BY_SEED)).to_dict("records"):
            found.setdefault((row["measure"], row["group"]), {})[int(row["seed"])] = float(row["estimate"])
    return found
