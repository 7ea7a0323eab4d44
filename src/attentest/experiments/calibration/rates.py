"""Margins from the constructions that set them, and how often an audit's criteria are right with them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from attentest.claims.criteria import CRITERIA, Criterion, judged
from attentest.claims.verdict import Verdict
from attentest.experiments.calibration import AUDITS, FALSE_SUPPORTS, TRUE_SUPPORTS
from attentest.experiments.calibration.known_tests import KNOWN
from attentest.experiments.calibration.ranking import about, is_about, reference_rows
from attentest.experiments.calibration.rows import ALL_TESTS, AUDIT, BAR, KNOBS, OTHER_KNOBS, REFERENCE
from attentest.model.constructions import CAUSAL, CONTEXTUAL, DEPENDS, POINTS, TRANSFORMER, WITHOUT_CONTEXT
from attentest.statistics.multiplicity import LEVEL

KINDS = (WITHOUT_CONTEXT, CONTEXTUAL, TRANSFORMER, CAUSAL)
HUNDREDTHS = np.arange(1, 100) / 100
SETTINGS = (*AUDIT[:-1], "kind", "pointer", "mechanism", "role")
ANSWERED = ("criterion", "question", "answer", "verdict")
COUNTED = ("audits", "supported", "rejected")


def tests_of_criteria(*, judged_only: bool = False) -> dict[str, str]:
    """The question of each test of a criterion, shown ones included unless only those that are judged."""
    return {
        test.name: criterion.question
        for criterion in CRITERIA
        for test in criterion.tests
        if not (judged_only and test.shown)
    }


def margin(supported: pd.DataFrame, answers: np.ndarray) -> float:
    """The margin by the rule, from the share of audits that support a test at each hundredth.

    One row of `supported` per setting construction, one column per margin; `answers` says whose answer is
    yes. NaN where one of the answers does not occur, or no margin keeps false supports within the bar.
    """
    no, yes = supported[~answers], supported[answers]
    if not len(no) or not len(yes):
        return math.nan
    right = (no <= FALSE_SUPPORTS / AUDITS).all().to_numpy()
    strong = (yes >= TRUE_SUPPORTS / AUDITS).all().to_numpy()
    if not right.any():
        return math.nan
    lowest = int(right.argmax())
    highest = int(np.flatnonzero(strong)[-1]) if strong.any() else lowest
    return float(HUNDREDTHS[max(lowest, (lowest + highest) // 2)])


def margins(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each judged test of a criterion: its margin, and the two mean effects of setting constructions."""
    setting = reference_rows(rows)
    setting = setting[setting["role"] == "setting"]
    lines = []
    for name, question in tests_of_criteria(judged_only=True).items():
        own = about(setting[setting["test"] == name], name)
        # The budgets differ in the number of draws. The margin belongs to the study that checks the bar.
        own = own[own["study"] == (BAR if (own["study"] == BAR).any() else ALL_TESTS)]
        by = [own["construction"], own[question]]
        effects = KNOWN[name].effect(own)
        means, shares = effects.groupby(by).mean(), _supported(effects, own).groupby(by).mean()
        answers = means.index.get_level_values(1).to_numpy(dtype=bool)
        no, yes = means[~answers], means[answers]
        ends = (float(no.max()), float(yes.min())) if len(no) and len(yes) else (math.nan, math.nan)
        found = {"test": name, "question": question, "margin": margin(shares, answers)}
        lines.append(found | {"largest_no": ends[0], "smallest_yes": ends[1]})
    return pd.DataFrame(lines)


def _supported(effects: pd.Series, rows: pd.DataFrame) -> pd.DataFrame:
    """Whether each audit supports the test at each margin, as if it were the only test."""
    beyond = effects.to_numpy(dtype=float)[:, None] - HUNDREDTHS
    error, freedom = (rows[name].to_numpy(dtype=float)[:, None] for name in ("error", "freedom"))
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = np.where(error > 0, stats.t.sf(beyond / error, freedom), np.where(beyond > 0, 0.0, 1.0))
    return pd.DataFrame(p_values < LEVEL, index=rows.index).astype(float)


def verdicts(rows: pd.DataFrame, margin_of: Mapping[str, float]) -> pd.DataFrame:
    """One line per audit and criterion with a margin: the answer by the truth, and the verdict."""
    own = rows[rows["test"].isin(tests_of_criteria())].reset_index(drop=True)
    findings, settings = as_findings(own), own[[*SETTINGS, "seed", "points", "depends"]].to_dict("records")
    lines = []
    for places in own.groupby(list(AUDIT), sort=False).indices.values():
        first = settings[places[0]]
        for judgement in judged(findings.iloc[places], margins=margin_of):
            criterion = judgement.criterion
            if _has_answer(criterion, first, margin_of):
                answer = bool(first[criterion.question])
                said = (criterion.name, criterion.question, answer, judgement.verdict)
                lines.append(first | dict(zip(ANSWERED, said, strict=True)))
    return pd.DataFrame(lines, columns=[*SETTINGS, "seed", "points", "depends", *ANSWERED])


def _has_answer(criterion: Criterion, model: Mapping[Hashable, Any], margin_of: Mapping[str, float]) -> bool:
    """Whether the criterion can be judged at all, is about this model, and the right verdict is known."""
    names = [test.name for test in criterion.tests]
    known = not pd.isna(model[criterion.question])
    return known and bool(margin_of.keys() & names) and is_about(names[0], str(model["construction"]))


def as_findings(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows as the findings that criteria are judged by, in the same order."""
    named = rows["test"].str.partition("/")
    half = stats.t.ppf(0.975, rows["freedom"].astype(float)) * rows["error"].astype(float)
    numbers = {name: rows[name].astype(float) for name in ("estimate", "error", "freedom", "null")}
    numbers |= {"low": numbers["estimate"] - half, "high": numbers["estimate"] + half}
    names = {"experiment": named[0], "measure": named[2], "group": "overall", "n": rows["n"].astype(int)}
    return pd.DataFrame(names | numbers)


def rates(judgements: pd.DataFrame) -> pd.DataFrame:
    """Of each criterion and construction at each setting: audits, and the shares supported and rejected."""
    by = [*SETTINGS, "criterion", "question", "answer"]
    return judgements.groupby(by, sort=False, as_index=False, dropna=False).agg(
        audits=("verdict", "size"),
        supported=("verdict", lambda said: (said == Verdict.SUPPORTED).mean()),
        rejected=("verdict", lambda said: (said == Verdict.NOT_SUPPORTED).mean()),
        points=("points", "mean"),
        depends=("depends", "mean"),
    )


def bars(of_constructions: pd.DataFrame) -> pd.DataFrame:
    """Of each criterion and kind of model: its worst false support and worst power, and whether it is judged.

    A criterion is judged where every construction of the kind passes the bar. An answer that does not occur
    sets none: without context, no weights are idle. `audits` is how many there are of the construction with
    the fewest.
    """
    lines = []
    for criterion in CRITERIA:
        for kind in KINDS:
            own = of_constructions[
                (of_constructions["criterion"] == criterion.name) & (of_constructions["kind"] == kind)
            ]
            line = {"criterion": criterion.name, "question": criterion.question, "kind": kind}
            lines.append(line | _bar(own))
    return pd.DataFrame(lines)


def _bar(own: pd.DataFrame) -> dict[str, object]:
    answers = own["answer"].astype(bool)
    yes, no = (own[answers == side].sort_values("supported", kind="stable") for side in (True, False))
    worst_false = float(no["supported"].iloc[-1]) if len(no) else math.nan
    worst_power = float(yes["supported"].iloc[0]) if len(yes) else math.nan
    return {
        "yes": len(yes),
        "no": len(no),
        "audits": int(own["audits"].min()) if len(own) else 0,
        "worst_false_support": worst_false,
        "worst_false_support_of": no["construction"].iloc[-1] if len(no) else "",
        "worst_power": worst_power,
        "worst_power_of": yes["construction"].iloc[0] if len(yes) else "",
        "judged": bool(
            len(yes) and worst_power >= TRUE_SUPPORTS / AUDITS and not worst_false > FALSE_SUPPORTS / AUDITS
        ),
    }


def curves(of_constructions: pd.DataFrame) -> pd.DataFrame:
    """Shares supported, along one knob at a time with all others at their reference.

    A setting whose truth is no longer what the construction declares belongs to no curve.
    """
    columns = ["criterion", "question", "kind", "construction", "answer", "knob", "value", *COUNTED]
    parts = [
        part.assign(knob=knob, value=part[knob].astype(float)) for knob, part in _along(of_constructions)
    ]
    if not parts:
        return pd.DataFrame(columns=columns)
    found = pd.concat(parts, ignore_index=True)
    return found.sort_values(columns[:7], ignore_index=True)[columns]


def _along(of_constructions: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    truth = (of_constructions["pointer"] == (of_constructions["points"] >= POINTS)) & (
        of_constructions["mechanism"] == (of_constructions["depends"] >= DEPENDS)
    )
    standard = of_constructions[truth & of_constructions["study"].isin((BAR, OTHER_KNOBS))]
    for knob in KNOBS:
        others = [name for name in KNOBS if name != knob]
        own = standard[np.all([standard[name] == REFERENCE[name] for name in others], axis=0)]
        turned = own.loc[own[knob] != REFERENCE[knob], "construction"].unique()
        own = own[own["construction"].isin(turned)]
        if len(own):
            yield knob, own
