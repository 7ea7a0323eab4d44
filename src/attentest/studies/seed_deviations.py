"""The committed priors of deviations over seeds, by measure; docs/seed_deviations.py makes the table."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

FILE = "seed_deviations.csv"


class SeedDeviation(NamedTuple):
    """What cells of one measure say about its deviation over seeds; see `attentest.statistics.moderated`."""

    s0: float
    d0: float  # degrees of freedom; may be infinite
    cells: int


@cache
def load_seed_deviations() -> dict[str, SeedDeviation]:
    """The prior of every measure that has one, by `experiment/measure`."""
    return {
        row["measure"]: SeedDeviation(float(row["s0"]), float(row["d0"]), int(row["cells"]))
        for row in _rows()
    }


def table_version() -> int:
    """The version of the table, which every comparison names."""
    [version] = {int(row["version"]) for row in _rows()}
    return version


def _rows() -> list[dict[str, str]]:
    text = files("attentest.studies").joinpath(FILE).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
