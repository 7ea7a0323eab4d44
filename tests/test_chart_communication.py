"""Figures of the communication game: drawn is what the findings say, and nothing where there is nothing."""

import math

import pandas as pd
import pytest

pytest.importorskip("altair")

from attentest.experiments.communication import conclude as communication
from attentest.refusal import Refusal
from tests import every_chart as charts
from tests.observed import concluded, one
from tests.observed_communication import SIZES, communication_rows

BOTH = pytest.mark.parametrize("draw", [charts.communication_curves, charts.communication_models])


@pytest.fixture(scope="module")
def findings():
    return concluded(communication_rows(), communication.conclude)


def drawn(chart):
    """The records of all layers, each once."""
    specification = chart.to_dict()
    return [record for records in specification["datasets"].values() for record in records]


def points(chart, *, k):
    return [record for record in drawn(chart) if record.get("k") is k and "low" in record]


def test_a_line_an_explainer_a_point_a_number_of_words(findings):
    names = {"attention": "attention", "leave-one-out": "erasure", "gradients": "gradient"}
    names |= {"surrogate": "surrogate", "random words": "random", "trained to be understood": "joint"}
    found = points(charts.communication_curves(findings), k=True)
    assert {(point["series"], point["words"]) for point in found} == {(n, k) for n in names for k in SIZES}
    for point in found:
        finding = one(findings, f"csr-{names[point['series']]}@{point['words']:g}")
        assert point["csr"] == pytest.approx(finding["estimate"], rel=1e-5)
        assert (point["low"], point["high"]) == pytest.approx((finding["low"], finding["high"]), rel=1e-5)


def test_silence_and_the_whole_text_are_levels(findings):
    levels = {r["said"]: r["csr"] for r in drawn(charts.communication_curves(findings)) if "said" in r}
    expected = {"hears nothing": "csr-silence", "hears the whole text": "csr-whole"}
    for said, measure in expected.items():
        assert levels[said] == pytest.approx(one(findings, measure)["estimate"], rel=1e-5)


def test_every_classifier_stands_beside_its_own_random_words(findings):
    chart = charts.communication_models(findings)
    groups = {"overall", "entmax15", "sparsemax", "untrained", "shuffled labels"}
    for group in groups:
        own = one(findings, "csr-attention@10", group)
        at_ten = [p["csr"] for p in points(chart, k=True) if (p["series"], p["words"]) == (group, 10)]
        assert pytest.approx(own["estimate"], rel=1e-5) in at_ten
        assert pytest.approx(own["null"], rel=1e-5) in at_ten
        (diamond,) = (point for point in points(chart, k=False) if point["series"] == group)
        assert diamond["words"] == pytest.approx(one(findings, "words-embedded", group)["estimate"], rel=1e-5)
        assert diamond["csr"] == pytest.approx(one(findings, "csr-embedded", group)["estimate"], rel=1e-5)


@BOTH
def test_figures_are_drawn(draw, findings):
    assert charts.to_svg(draw(findings, title="t", subtitle="s")).startswith("<svg")


@BOTH
def test_one_text_has_no_interval_and_is_drawn_all_the_same(draw):
    rows = communication_rows()
    rows = rows[(rows["seed"] == 0) & (rows["id"] == "t0001")]
    found = concluded(rows, communication.conclude)
    assert math.isnan(one(found, "csr-attention@10")["low"])
    assert charts.to_svg(draw(found)).startswith("<svg")


@BOTH
def test_where_nobody_was_taught_the_figure_says_so(draw, findings):
    nothing = findings.assign(estimate=math.nan)
    for none in (nothing, findings.iloc[:0]):
        assert {"why": "No layperson was taught."} in drawn(draw(none))


@BOTH
def test_findings_of_another_kind_are_refused(draw):
    with pytest.raises(Refusal, match="no column group"):
        draw(pd.DataFrame({"measure": ["csr-attention@1"]}))
