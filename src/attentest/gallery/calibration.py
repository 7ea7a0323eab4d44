"""The page on calibration: how good the tests and the criteria are on models whose truth is known.

It is made from the calibration audits that the store holds. A store without any has the tables of the
package on that page instead, which come from 200 audits of each construction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, final

import pandas as pd

from attentest.claims.calibrated import CRITERIA, TESTS, margins
from attentest.compare.stored import Stored
from attentest.experiments.calibration import NAME, QUESTIONS
from attentest.experiments.calibration.charts import areas_chart, curves_chart, roc_chart
from attentest.experiments.calibration.known_tests import KNOWN
from attentest.experiments.calibration.ranking import with_ranks
from attentest.experiments.calibration.rows import AUDIT, KNOBS, rows_of
from attentest.experiments.calibration.table import CRITERIA_COLUMNS, TEST_COLUMNS, Calibrated
from attentest.gallery.pictures import Picture, picture
from attentest.store.cell import Cell

ROWS = "rows.parquet"
Files = dict[str, str]


@final
@dataclass(frozen=True, kw_only=True)
class CalibrationPage:
    """The tables and figures, and the audits that they come from."""

    audits: int  # of the store; where 0, the tables are those of the package
    constructions: int
    criteria: Sequence[dict[str, Any]]
    tests: Sequence[dict[str, Any]]
    rates: Sequence[dict[str, Any]]
    areas: Picture
    roc: Sequence[Picture]
    curves: Sequence[Picture]
    downloads: Sequence[str]


@final
@dataclass(frozen=True)
class _Audits:
    """The calibration audits of a store whose descriptions were read already."""

    stored: Stored

    def done(self) -> list[str]:
        """The observations whose rows are here."""
        return [
            key
            for key, cell in self.stored.cells.items()
            if cell.stage == "observation"
            and cell.config["experiment"] == NAME
            and self.stored.store.holds(key, ROWS)
        ]

    def cell(self, key: str) -> Cell:
        """What it was made from."""
        return self.stored.cells[key]

    def read(self, key: str, name: str) -> bytes:
        """One of its files."""
        return self.stored.store.read(key, name)


def calibration_page(stored: Stored) -> tuple[CalibrationPage, Files]:
    """The page, and the files that it leads to."""
    rows = rows_of(_Audits(stored))
    found = Calibrated(rows, committed=margins())
    own = len(rows) > 0 and len(found.tests) > 0  # else no audit is at the reference settings
    tables = _of_rows(found) if own else _packaged()
    drawn = areas_chart(tables["tests"])
    says = "Each AUC with its 95 % interval. Tests whose intervals overlap are not ranked against each other."
    areas = picture("figures/calibration-areas.svg", "How well each test tells models apart", says, drawn)
    roc, along = [*_roc(found)], [*_along(found)]
    downloads = {f"calibration_{name}.csv": table.to_csv(index=False) for name, table in tables.items()}
    page = CalibrationPage(
        audits=len(rows[list(AUDIT)].drop_duplicates()) if own else 0,
        constructions=int(tables["tests"]["constructions"].max()),
        criteria=_records(tables["criteria"]),
        tests=_records(tables["tests"].sort_values("auc_pointer", ascending=False)),
        rates=_records(tables.get("rates", pd.DataFrame())),
        areas=areas,
        roc=roc,
        curves=along,
        downloads=list(downloads),
    )
    return page, downloads | {name: text for one in (areas, *roc, *along) for name, text in one.files.items()}


def _of_rows(found: Calibrated) -> dict[str, pd.DataFrame]:
    shown = [
        "criterion",
        "question",
        "construction",
        "kind",
        "role",
        "answer",
        "audits",
        "supported",
        "rejected",
    ]
    more = ["group", "title", "rank_pointer", "rank_mechanism"]
    return {
        "tests": found.tests[[*TEST_COLUMNS, *more]],
        "criteria": found.criteria[list(CRITERIA_COLUMNS)],
        "rates": found.rates[shown],
    }


def _packaged() -> dict[str, pd.DataFrame]:
    tables = {}
    for name, file in (("tests", TESTS), ("criteria", CRITERIA)):
        with files("attentest.claims").joinpath(file).open(encoding="utf-8") as written:
            tables[name] = pd.read_csv(written)
    tests = tables["tests"]
    tests = tests[tests["test"].isin(KNOWN)].reset_index(drop=True)
    words = {"question": tests["question"].fillna(""), "by_definition": tests["by_definition"].fillna("")}
    named = {name: [getattr(KNOWN[test], name) for test in tests["test"]] for name in ("group", "title")}
    return tables | {"tests": with_ranks(tests.assign(**words, **named))}


def _roc(found: Calibrated) -> Iterator[Picture]:
    for question in QUESTIONS:
        if len(found.tests) and found.tests[f"auc_{question}"].notna().any():
            title = f"ROC curves: {question}"
            yield picture(
                f"figures/calibration-roc-{question}.svg",
                title,
                "The best test of each group, the best and the worst of them. Each construction weighs the"
                " same. Choose a curve in the legend, or several with the shift key.",
                roc_chart(found.rows, found.tests, question, title=title),
            )


def _along(found: Calibrated) -> Iterator[Picture]:
    for knob in KNOBS if len(found.rows) else ():
        if (found.curves["knob"] == knob).any():
            yield picture(
                f"figures/calibration-by-{knob}.svg",
                f"Power and false supports by {knob}",
                "Of the constructions whose answer is yes, the one with the fewest supports; of those whose"
                " answer is no, the one with the most.",
                curves_chart(found.curves, knob),
            )


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in line.items()} for line in table.to_dict("records")]
