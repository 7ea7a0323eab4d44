"""The tables of a calibration: how good each test is, and how often each criterion is right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

import pandas as pd

from attentest.experiments.calibration.known_tests import KNOWN
from attentest.experiments.calibration.ranking import DRAWS, PLACES, areas
from attentest.experiments.calibration.rates import bars, curves, margins, rates, verdicts
from attentest.experiments.calibration.rows import ALL_TESTS, BAR, TRAINED, at_reference, rows_of

__all__ = ["CRITERIA_COLUMNS", "TEST_COLUMNS", "Calibrated", "rows_of"]
TEST_COLUMNS = (
    *("test", "question", "margin", "largest_no", "smallest_yes"),
    *("auc_pointer", "auc_pointer_low", "auc_pointer_high"),
    *("auc_mechanism", "auc_mechanism_low", "auc_mechanism_high"),
    *("by_definition", "constructions", "audits"),
)
CRITERIA_COLUMNS = (
    *("criterion", "question", "kind", "yes", "no", "audits"),
    *("worst_false_support", "worst_false_support_of", "worst_power", "worst_power_of", "judged"),
)


@final
@dataclass(frozen=True, eq=False)
class Calibrated:
    """Everything that follows from rows of calibration audits."""

    rows: pd.DataFrame
    draws: int = DRAWS
    committed: Mapping[str, float] | None = None  # margins to judge by, instead of those that the rows set

    @cached_property
    def tests(self) -> pd.DataFrame:
        """One line per test: AUC on both questions with intervals and ranks, and the margin if it has one."""
        found = areas(self.rows, draws=self.draws)
        if found.empty:
            return pd.DataFrame(columns=[*TEST_COLUMNS, "group", "title", "rank_pointer", "rank_mechanism"])
        merged = found.merge(self.margins, on="test", how="left")
        merged["question"] = merged["question"].fillna("")
        return rounded(merged)

    @cached_property
    def margins(self) -> pd.DataFrame:
        """The margin of each test of a criterion, by the rule."""
        return margins(self.rows)

    @cached_property
    def margin_of(self) -> dict[str, float]:
        """The tests that have a margin, with it."""
        if self.committed is not None:
            return dict(self.committed)
        pairs = zip(self.margins["test"], self.margins["margin"], strict=True)
        return {test: number for test, number in pairs if math.isfinite(number)}

    @cached_property
    def _settings(self) -> pd.DataFrame:
        return rates(verdicts(self.rows, self.margin_of))

    @cached_property
    def rates(self) -> pd.DataFrame:
        """Shares supported and rejected by criterion and construction, at the reference settings."""
        own = self._settings[at_reference(self._settings)]
        study = BAR if (own["study"] == BAR).any() else ALL_TESTS
        return rounded(own[own["study"].isin((study, TRAINED))])

    @cached_property
    def criteria(self) -> pd.DataFrame:
        """The bar by criterion and kind of model; of trained models there are too few audits for it."""
        constructed = self.rates[self.rates["study"] != TRAINED]
        return rounded(bars(constructed))[list(CRITERIA_COLUMNS)]

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Shares supported along each knob."""
        return rounded(curves(self._settings))

    @property
    def lacking(self) -> list[str]:
        """The groups of known tests of which no audit has a value."""
        there = set(self.tests["group"])
        return [name for name in dict.fromkeys(test.group for test in KNOWN.values()) if name not in there]


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers as they are printed, so that a table can be compared with the committed one."""
    numbers = table.select_dtypes("float").columns.drop(["margin"], errors="ignore")
    return table.assign(**{name: table[name].round(PLACES) + 0.0 for name in numbers})
