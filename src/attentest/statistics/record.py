"""A Finding is one number a page may print, with what it takes to doubt it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import final

import pandas as pd

from attentest import notebook
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, kw_only=True)
class Finding:
    """One estimate of one measure in one group; the fields are the columns of findings.parquet.

    An interval is `estimate` plus and minus `error` times the 97.5 % point of Student's t with `freedom`
    degrees of freedom. In tables stored before the second edition it is a percentile interval of resamples,
    which need not hold the estimate; those tables have no `error`.
    """

    experiment: str
    measure: str
    group: str
    estimate: float
    std: float  # over instances, population; NaN where the measure is no mean over instances
    seed_std: float  # of the seeds' own estimates, sample (ddof=1): whether another run agrees; NaN for one
    low: float
    high: float
    interval: str  # over what: "seeds, instances", "seeds", "instances" (of one training), or "none"
    n: int  # instances behind the estimate, summed over seeds
    seeds: int
    excluded: int
    why: str  # the reasons for the exclusions; empty where there are none
    null: float  # the same measure where there is nothing to find; its card says how that is made
    mode: str
    error: float = math.nan  # the standard error of the estimate, over what the interval is over
    freedom: float = math.nan  # its degrees of freedom; infinite where the error is known
    by_seed: str = ""  # the estimate of every seed that has one, in the order of seeds: a JSON list

    def __post_init__(self) -> None:
        wrong = self._wrong_numbers() or self._wrong_uncertainty()
        if wrong:
            raise Refusal(
                f"finding {self.experiment}/{self.measure}/{self.group}",
                got=wrong[0],
                needs=wrong[1],
                way_out="The conclude function that made it is at fault; please report it.",
            )

    def _wrong_numbers(self) -> tuple[str, str] | None:
        """What is wrong, and what it should be."""
        if min(self.n, self.seeds, self.excluded) < 0:
            return f"n={self.n}, seeds={self.seeds}, excluded={self.excluded}", "counts of zero or more"
        if self.std < 0 or self.seed_std < 0:
            return f"standard deviations of {self.std:.3g} and {self.seed_std:.3g}", "zero or more"
        if self.seeds < 2 and not math.isnan(self.seed_std):
            return f"a spread over seeds of {self.seed_std:.3g} from {self.seeds}", "NaN below two seeds"
        if self.excluded and not self.why:
            return f"{self.excluded} exclusions without a reason", "the reason for every exclusion"
        return None

    def _wrong_uncertainty(self) -> tuple[str, str] | None:
        """What is wrong, and what it should be."""
        if math.isfinite(self.low) and math.isfinite(self.high) and self.low > self.high:
            return f"the interval [{self.low:.3g}, {self.high:.3g}]", "a lower bound below the upper"
        if self.error < 0 or self.freedom <= 0:
            got = f"a standard error of {self.error:.3g} with {self.freedom:.3g} degrees of freedom"
            return got, "an error of zero or more, and more than no degrees of freedom"
        if self.by_seed and len(seed_estimates(self.by_seed)) != self.seeds:
            return f"the estimates {self.by_seed} by {self.seeds} seeds", "one estimate for each seed"
        return None

    def _repr_html_(self) -> str:
        """The number with what it takes to doubt it."""
        between = f"{notebook.number(self.low)} to {notebook.number(self.high)}"
        named = (self.experiment, self.measure, self.group)
        counts = (self.n, self.seeds, f"{self.excluded} {self.why}".strip())
        row = (*named, self.estimate, between, self.null, *counts)
        note = [notebook.said(f"The interval is {ONE_TRAINING}.")] if self.interval == TEXTS else []
        return "".join([notebook.table(SHOWN, [row]), *note])


TEXTS = "instances"  # what `interval` says where there is one seed
ONE_TRAINING = "over texts of this one training"  # and how that is said to a reader
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


def completed(table: pd.DataFrame) -> pd.DataFrame:
    """A stored table with the columns that it lacks because it was written before they existed."""
    absent = {each.name: each.default for each in fields(Finding) if each.default is not MISSING}
    return table.assign(**{name: value for name, value in absent.items() if name not in table.columns})


def seeds_as_json(estimates: Sequence[float]) -> str:
    """The seeds' own estimates as the column `by_seed` has them: nine significant digits, null for infinity.

    No estimates at all are the empty string, as for a measure that single seeds do not have.
    """
    written = [float(f"{one:.9g}") if math.isfinite(one) else None for one in estimates]
    return json.dumps(written) if written else ""


def seed_estimates(by_seed: str) -> list[float]:
    """The column `by_seed` read again; empty where single seeds have no estimate."""
    return [math.nan if one is None else float(one) for one in json.loads(by_seed or "[]")]


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
