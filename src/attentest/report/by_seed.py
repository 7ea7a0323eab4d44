"""The numbers of single seeds: what each training, had it been the only one, would have said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from attentest.findings.conclusions import CONCLUSIONS
from attentest.findings.estimates import OVERALL, estimates_alone
from attentest.report.lines import is_main, measure_key
from attentest.report.rows import PointRows
from attentest.report.stored import StoredFinding

Numbers = dict[str, dict[str, float]]  # by measure and seed


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
    seeds = [name.removeprefix("seed ") for name in finding.cell.inputs]
    if len(seeds) == 1:
        overall = finding.table[finding.table["group"] == OVERALL]
        for measure, estimate in zip(overall["measure"], overall["estimate"], strict=True):
            yield seeds[0], measure, float(estimate)
        return
    seen = rows.of(finding)
    for seed, own in () if seen is None else seen.groupby("seed"):
        for measure, estimate in _concluded(own, finding.cell.config).items():
            yield str(seed), measure, estimate


def _concluded(rows: pd.DataFrame, config: Mapping[str, str]) -> dict[str, float]:
    """Nulls may be drawn, estimates are not: any randomness will do."""
    with estimates_alone():
        found = CONCLUSIONS[config["experiment"]].conclude(
            rows, mode=config["mode"], rng=np.random.default_rng(0)
        )
    return {one.measure: one.estimate for one in found if one.group == OVERALL}
