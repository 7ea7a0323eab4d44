"""A Finding is one number a page may print, with what it takes to doubt it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import pandas as pd

from attentest import notebook
from attentest.refusal import Refusal


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One estimate of one measure in one group; the fields are the columns of findings.parquet.

    The estimate need not lie inside its interval: a plug-in statistic of a resample is biased, so the
    percentile interval of mutual information may miss it, and that is no error.
    """

    experiment: str
    measure: str
    group: str
    estimate: float
    std: float  # over instances, population; NaN where the measure is no mean over instances
    seed_std: float  # of the seeds' own estimates, sample (ddof=1): whether another run agrees; NaN for one
    low: float
    high: float
    interval: str  # what was resampled: "instances", "seeds, instances", or "none"
    n: int  # instances behind the estimate, summed over seeds
    seeds: int
    excluded: int
    why: str  # the reasons for the exclusions; empty where there are none
    null: float  # the same measure where there is nothing to find; its card says how that is made
    mode: str

    def __post_init__(self) -> None:
        wrong = None
        if min(self.n, self.seeds, self.excluded) < 0:
            wrong = f"n={self.n}, seeds={self.seeds}, excluded={self.excluded}", "counts of zero or more"
        elif self.std < 0 or self.seed_std < 0:
            wrong = f"standard deviations of {self.std:.3g} and {self.seed_std:.3g}", "zero or more"
        elif self.seeds < 2 and not math.isnan(self.seed_std):
            wrong = f"a spread over seeds of {self.seed_std:.3g} from {self.seeds}", "NaN below two seeds"
        elif math.isfinite(self.low) and math.isfinite(self.high) and self.low > self.high:
            wrong = f"the interval [{self.low:.3g}, {self.high:.3g}]", "a lower bound below the upper"
        elif self.excluded and not self.why:
            wrong = f"{self.excluded} exclusions without a reason", "the reason for every exclusion"
        if wrong:
            raise Refusal(
                f"finding {self.experiment}/{self.measure}/{self.group}",
                got=wrong[0],
                needs=wrong[1],
                way_out="The conclude function that made it is at fault; please report it.",
            )

    def _repr_html_(self) -> str:
        """The number with what it takes to doubt it."""
        between = f"{notebook.number(self.low)} to {notebook.number(self.high)}"
        named = (self.experiment, self.measure, self.group)
        counts = (self.n, self.seeds, f"{self.excluded} {self.why}".strip())
        row = (*named, self.estimate, between, self.null, *counts)
        return notebook.table(SHOWN, [row])


SHOWN = (
    *("experiment", "measure", "group", "estimate", "95 % interval", "null"),
    *("n", "seeds", "left out"),
)
DTYPES = {"str": "str", "float": "float64", "int": "int64"}
COLUMNS = {field.name: DTYPES[str(field.type)] for field in fields(Finding)}


def to_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """Findings as a table; its columns and types are the same even if there are no findings."""
    rows = [asdict(finding) for finding in findings]
    return pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype=dtype) for name, dtype in COLUMNS.items()}
    )


def ordered(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Observed rows in one order whatever order they came in, so that the same draws meet the same texts."""
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise Refusal(
            "observed rows",
            got=f"no column {', '.join(missing)}",
            needs=f"the columns {', '.join(columns)}",
            way_out="Observe again: these rows were made by another version.",
        )
    who = ["seed", "subject", "id"]
    if rows.duplicated(who).any():
        twice = rows.loc[rows.duplicated(who), who].iloc[0]
        raise Refusal(
            "observed rows",
            got=f"text {twice['id']!r} twice for seed {twice['seed']}, {twice['subject']}",
            needs="one row for each seed, subject and text",
            way_out="Give each text its own id.",
        )
    return rows.sort_values(who, ignore_index=True)
