"""Figures of a calibration: how well tests tell models apart, and how often criteria are right."""

from __future__ import annotations

import math

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.style import FAINT, PALETTE, RULE, Records, framed, inline, nothing
from attentest.experiments.calibration import AUDITS, FALSE_SUPPORTS, QUESTIONS, TRUE_SUPPORTS, Question
from attentest.experiments.calibration.known_tests import KNOWN, KnownTest
from attentest.experiments.calibration.ranking import about, equal_weights, reference_rows

SHOWN = 5  # tests at each end of a ROC figure
POINTS = 120  # of a curve, at most
LANE = 22  # points of height for a test
COLOURS = (
    *("#43406b", "#d15a00", "#0072b2", "#009e73", "#cc79a7"),
    *("#56b4e9", "#b8860b", "#7f7f7f", "#000000", "#8c564b"),
)
YES, NO = "least power, answer yes", "most false supports, answer no"
KNOB_TITLES = {"texts": "texts of an audit", "strength": "strength of the output"}
KNOB_TITLES |= {"temperature": "temperature of attention", "noise": "noise of attention's scores"}
KNOB_TITLES |= {"classes": "classes", "length": "mean words of a text"}


def chosen(tests: pd.DataFrame) -> pd.DataFrame:
    """The tests of criteria, and of each group the best test on either question."""
    best = [
        of_group[f"auc_{question}"].idxmax()
        for _, of_group in tests.groupby("group")
        for question in QUESTIONS
        if of_group[f"auc_{question}"].notna().any()
    ]
    return tests.loc[sorted({*best, *tests.index[tests["question"].fillna("") != ""]})]


def areas_chart(
    tests: pd.DataFrame, *, title: str = "How well each test tells models apart"
) -> alt.LayerChart:
    """AUC of each test on both questions with intervals; hollow where it restates the question."""
    there = chosen(tests)
    records: Records = [
        {
            "test": line["title"],
            "question": question,
            "auc": line[f"auc_{question}"],
            "low": line[f"auc_{question}_low"],
            "high": line[f"auc_{question}_high"],
            "kind": "by definition" if line["by_definition"] == question else "test",
            "finding": line["test"],
        }
        for line in there.to_dict("records")
        for question in QUESTIONS
        if math.isfinite(line[f"auc_{question}"])
    ]
    if not records:
        return nothing("No test has an AUC.", title, "")
    order = there.sort_values("auc_pointer", ascending=False)["title"].tolist()
    lanes = alt.Y(
        field="test",
        type="ordinal",
        sort=order,
        title=None,
        axis=alt.Axis(grid=True, ticks=False, domain=False, labelLimit=420, labelPadding=8),
    )
    offset = alt.YOffset(field="question", type="nominal", sort=list(QUESTIONS))
    colour = alt.Color(
        field="question",
        type="nominal",
        scale=alt.Scale(domain=list(QUESTIONS), range=list(PALETTE[:2])),
        legend=alt.Legend(title=None, symbolOpacity=1),
    )
    shape = alt.Shape(
        field="kind",
        type="nominal",
        scale=alt.Scale(domain=["test", "by definition"], range=["circle", "diamond"]),
        legend=alt.Legend(title=None),
    )
    scale = alt.Scale(domain=[0, 1])
    base = alt.Chart(inline(records)).encode(y=lanes, yOffset=offset, color=colour)
    chance = alt.Chart(inline([{"at": 0.5}])).mark_rule(color=FAINT, strokeDash=[4, 3])
    layers = [
        chance.encode(x=alt.X(field="at", type="quantitative", scale=scale)),
        base.mark_rule(strokeWidth=2, opacity=0.6).encode(
            x=alt.X(field="low", type="quantitative", scale=scale), x2="high"
        ),
        base.mark_point(size=50, filled=True, opacity=1).encode(
            x=alt.X(field="auc", type="quantitative", title="AUC", scale=scale),
            shape=shape,
            tooltip=["finding:N", "question:N", "auc:Q", "low:Q", "high:Q"],
        ),
    ]
    notes = (
        "the best test of each group on either question, and the tests of criteria; dashed: chance",
        "95 % intervals resample constructions, then audits",
    )
    return framed(layers, title, *notes, height=LANE * len(order))


def roc_points(rows: pd.DataFrame, test: KnownTest, question: Question) -> Records:
    """The ROC curve of one test over the reference audits, every construction weighing the same."""
    own = about(reference_rows(rows), test.name)
    own = own[own["test"] == test.name]
    own = own[np.isfinite(test.effect(own)) & own[question].notna()]
    effects = test.effect(own).to_numpy()
    codes, _ = pd.factorize(own["construction"])
    answers, weights = own[question].to_numpy(dtype=bool), equal_weights(codes)[0]
    cuts, tied = np.unique(-effects, return_inverse=True)
    yes = np.bincount(tied, np.where(answers, weights, 0.0), len(cuts)).cumsum()
    no = np.bincount(tied, np.where(answers, 0.0, weights), len(cuts)).cumsum()
    true, false = np.append(0.0, yes / yes[-1]), np.append(0.0, no / no[-1])
    every = np.unique(np.linspace(0, len(true) - 1, min(POINTS, len(true))).round().astype(int))
    return [{"false": float(false[place]), "true": float(true[place])} for place in every]


def roc_chart(
    rows: pd.DataFrame, tests: pd.DataFrame, question: Question, *, title: str = ""
) -> alt.LayerChart:
    """ROC curves of the best and worst tests on one question; the legend picks curves."""
    heading = title or f"ROC curves: {question}"
    ranked = tests[(tests["by_definition"] != question) & tests[f"auc_{question}"].notna()]
    ranked = ranked.sort_values(f"auc_{question}", ascending=False).drop_duplicates("group")
    ends = ranked if len(ranked) <= 2 * SHOWN else pd.concat([ranked[:SHOWN], ranked[-SHOWN:]])
    names = [f"{line.title} ({getattr(line, f'auc_{question}'):.2f})" for line in ends.itertuples()]
    records: Records = [
        {**point, "test": name, "step": step}
        for name, test in zip(names, ends["test"], strict=True)
        for step, point in enumerate(roc_points(rows, KNOWN[test], question))
    ]
    if not records:
        return nothing("No test has an AUC.", heading, "")
    pick = alt.selection_point(name="pick", fields=["test"], bind="legend")
    ends_of_axis = alt.Scale(domain=[0, 1], nice=False)
    colour = alt.Color(
        field="test",
        type="nominal",
        sort=names,
        scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])),
        legend=alt.Legend(title=None, orient="right", columns=1, symbolOpacity=1, labelLimit=380),
    )
    curves = (
        alt.Chart(inline(records))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                field="false",
                type="quantitative",
                title="false positive rate",
                scale=ends_of_axis,
            ),
            y=alt.Y(
                field="true",
                type="quantitative",
                title="true positive rate",
                scale=ends_of_axis,
            ),
            order=alt.Order(field="step", type="quantitative"),
            color=colour,
            opacity=alt.condition(pick, alt.value(0.95), alt.value(0.08)),
        )
    )
    diagonal = alt.Chart(inline([{"a": 0.0}, {"a": 1.0}])).mark_line(color=RULE, strokeDash=[4, 3])
    layers = [
        diagonal.encode(x=alt.X(field="a", type="quantitative"), y=alt.Y(field="a", type="quantitative")),
        curves.add_params(pick),
    ]
    note = "the best test of each group, AUC in brackets; choose curves in the legend"
    return framed(layers, heading, note, width=380, height=380)


def curves_chart(curves: pd.DataFrame, knob: str = "texts", *, title: str = "") -> alt.LayerChart:
    """The least power and the most false supports over constructions, along one knob, by criterion."""
    heading = title or f"Power and false supports by {KNOB_TITLES[knob]}"
    own = curves[curves["knob"] == knob]
    order = own["supported"].where(own["answer"].astype(bool), -own["supported"]).sort_values(kind="stable")
    worst = own.loc[order.index].drop_duplicates(["criterion", "answer", "value"])
    worst = worst.sort_values(["criterion", "answer", "value"])
    records: Records = [
        {
            "criterion": line["criterion"],
            "of": YES if line["answer"] else NO,
            "value": float(line["value"]),
            "share": float(line["supported"]),
            "construction": line["construction"],
        }
        for line in worst.to_dict("records")
    ]
    if not records:
        return nothing("No audit was observed along this knob.", heading, "")
    note = "each point: the worst construction; dotted: the bar at the reference settings"
    return framed(_curve_layers(records, KNOB_TITLES[knob]), heading, note, width=380)


def _curve_layers(records: Records, across: str) -> list[alt.Chart]:
    criteria = list(dict.fromkeys(record["criterion"] for record in records))
    values = sorted({record["value"] for record in records})
    colour = alt.Color(
        field="criterion",
        type="nominal",
        sort=criteria,
        scale=alt.Scale(domain=criteria, range=list(COLOURS[: len(criteria)])),
        legend=alt.Legend(title=None, orient="right", columns=1, symbolOpacity=1),
    )
    dash = alt.StrokeDash(
        field="of",
        type="nominal",
        scale=alt.Scale(domain=[YES, NO], range=[[1, 0], [5, 4]]),
        legend=alt.Legend(title=None, orient="right", columns=1, symbolType="stroke", symbolSize=300),
    )
    share = alt.Scale(domain=[0, 1])
    pick = alt.selection_point(name="pick", fields=["criterion"], bind="legend")
    lines = alt.Chart(inline(records)).mark_line(strokeWidth=2, point={"filled": True, "size": 45})
    bars = alt.Chart(inline([{"at": FALSE_SUPPORTS / AUDITS}, {"at": TRUE_SUPPORTS / AUDITS}]))
    drawn = lines.encode(
        x=alt.X(field="value", type="ordinal", sort=values, title=across, axis=alt.Axis(labelAngle=0)),
        y=alt.Y(field="share", type="quantitative", title="share of audits supported", scale=share),
        color=colour,
        strokeDash=dash,
        opacity=alt.condition(pick, alt.value(0.85), alt.value(0.08)),
        tooltip=["criterion:N", "construction:N", "share:Q"],
    )
    rule = bars.mark_rule(color=FAINT, strokeDash=[2, 3])
    return [rule.encode(y=alt.Y(field="at", type="quantitative")), drawn.add_params(pick)]
