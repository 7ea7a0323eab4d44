"""The rows behind a grid point, read once for everything its pages show of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import pandas as pd

from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredFinding


@final
@dataclass(frozen=True, eq=False)
class PointRows:
    """What was observed at one grid point, by finding; dropped with its page, since rows are large."""

    point: GridPoint
    read: dict[str, pd.DataFrame | None] = field(default_factory=dict)

    def of(self, finding: StoredFinding) -> pd.DataFrame | None:
        """All rows of the finding, or None where the store holds no more than its numbers."""
        key = finding.cell.key
        if key not in self.read:
            self.read[key] = finding.rows()
        return self.read[key]

    def own(self, experiment: str) -> pd.DataFrame:
        """The rows of the trained model in the experiment, all seeds; empty where there are none."""
        finding = self.point.of(experiment)
        rows = None if finding is None else self.of(finding)
        if rows is None or rows.empty:
            return pd.DataFrame({"seed": [], "id": []})
        return rows[rows["subject"] == "trained"]
