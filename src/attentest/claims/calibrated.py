"""How good each test and each criterion is, from audits of models whose truth is known.

Two committed tables hold it; `docs/calibration.py` makes them from the rows of the study `calibration`. The
margin of a test is such that it is rarely supported for models whose answer is no and, where that is
possible, mostly for models whose answer is yes. A criterion has error rates for every kind of model that
there are constructions of.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import final

from attentest.statistics.card import Card
from attentest.statistics.named import Named

TESTS, CRITERIA = "calibrated_tests.csv", "calibrated_criteria.csv"
TEXTS = 200  # of every audit behind the error rates
UNKNOWN = "Error rates are not known for this kind of model."


@final
@dataclass(frozen=True, kw_only=True)
class Separation:
    """The area under the ROC curve of a test, constructions being what is resampled for its interval."""

    auc: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.auc:.2f} [{self.low:.2f}, {self.high:.2f}]"


@final
@dataclass(frozen=True, kw_only=True)
class CalibratedTest:
    """What is known of one test, by the name of its finding."""

    name: str
    margin: float  # of the effect; NaN where the test is not judged
    largest_no: float  # at most 15 of 200 audits support it above this, of models whose answer is no
    smallest_yes: float  # at least 180 of 200 support it above this, of models whose answer is yes
    pointer: Separation | None
    mechanism: Separation | None
    by_definition: str  # the question whose answer the test restates, if any
    constructions: int

    @property
    def sentence(self) -> str:
        """What a card says of it; empty where nothing is known."""
        said = [
            self._said(question, found)
            for question, found in (("pointer", self.pointer), ("mechanism", self.mechanism))
        ]
        told = ", ".join(one for one in said if one)
        return f"AUC {told} ({self.constructions} models whose truth is known)" if told else ""

    def _said(self, question: str, found: Separation | None) -> str:
        if found is None:
            return ""
        return f"{found} for {question}" + (" (by definition)" if self.by_definition == question else "")


@final
@dataclass(frozen=True, kw_only=True)
class ErrorRates:
    """How often a criterion is supported, of one kind of model: at worst where the answer is no, and yes."""

    kind: str
    yes: int  # constructions whose answer is yes
    no: int
    audits: int  # of each construction
    false_support: float
    false_support_of: str  # the construction with the most
    power: float
    power_of: str
    judged: bool  # whether the criterion meets the bar for this kind

    @property
    def sentence(self) -> str:
        """Both rates in words."""
        said = []
        if self.no:
            of = f" ({self.false_support_of})" if self.false_support_of else ""
            said.append(
                f"supported in at most {_share(self.false_support)} of audits where the answer is no{of}"
            )
        if self.yes:
            of = f" ({self.power_of})" if self.power_of else ""
            first = "" if said else "supported "
            said.append(f"{first}in at least {_share(self.power)} where it is yes{of}")
        if not said:
            return UNKNOWN
        counted = f"{self.audits} audits of {TEXTS} texts for each"
        models = f"{self.yes + self.no} models of this kind ({self.kind}) whose truth is known"
        return f"Of {models}: {', and '.join(said)}; {counted}."


@cache
def calibrated_tests() -> Mapping[str, CalibratedTest]:
    """Every calibrated test by its name, experiment/measure."""
    return {row["test"]: _test(row) for row in _rows(TESTS)}


@cache
def margins() -> Mapping[str, float]:
    """The margins of the tests that have one."""
    return {name: one.margin for name, one in calibrated_tests().items() if math.isfinite(one.margin)}


@cache
def _all_rates() -> Mapping[tuple[str, str], ErrorRates]:
    return {(row["criterion"], row["kind"]): _rates(row) for row in _rows(CRITERIA)}


def error_rates(criterion: str, kind: str | None) -> ErrorRates | None:
    """Those of a criterion for a kind of model; None where there are no constructions of that kind."""
    found = _all_rates().get((criterion, kind or ""))
    return found if found is not None and (found.yes or found.no) else None


def how_good(key: str) -> str:
    """What a card says about its test: `key` is experiment/measure, of all settings behind an @ together."""
    found = [
        (named.setting, one.sentence)
        for named, one in ((Named.of(name), one) for name, one in calibrated_tests().items())
        if named.name == key and one.sentence
    ]
    return "; ".join(f"at {setting}: {said}" if setting else said for setting, said in found)


def calibrated_cards(cards: Mapping[str, Card]) -> dict[str, Card]:
    """The cards, each with how good its test is."""
    return {key: replace(card, how_good=how_good(key)) for key, card in cards.items()}


def _rows(name: str) -> list[dict[str, str]]:
    text = files("attentest.claims").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _test(row: Mapping[str, str]) -> CalibratedTest:
    return CalibratedTest(
        name=row["test"],
        margin=_number(row["margin"]),
        largest_no=_number(row["largest_no"]),
        smallest_yes=_number(row["smallest_yes"]),
        pointer=_separation(row, "auc_pointer"),
        mechanism=_separation(row, "auc_mechanism"),
        by_definition=row["by_definition"],
        constructions=int(row["constructions"]),
    )


def _separation(row: Mapping[str, str], name: str) -> Separation | None:
    auc, low, high = (_number(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return Separation(auc=auc, low=low, high=high) if math.isfinite(auc) else None


def _rates(row: Mapping[str, str]) -> ErrorRates:
    return ErrorRates(
        kind=row["kind"],
        yes=int(row["yes"]),
        no=int(row["no"]),
        audits=int(row["audits"]),
        false_support=_number(row["worst_false_support"]),
        false_support_of=row["worst_false_support_of"],
        power=_number(row["worst_power"]),
        power_of=row["worst_power_of"],
        judged=row["judged"].strip().lower() == "true",
    )


def _number(written: str) -> float:
    return float(written) if written else math.nan


def _share(rate: float) -> str:
    return f"{100 * rate:.0f} %" if rate in (0.0, 1.0) or 0.01 <= rate <= 0.99 else f"{100 * rate:.1f} %"
