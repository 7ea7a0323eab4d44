"""The reading of an audit: margins, Holm's correction, and what each verdict takes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attentest.findings.cards import CARDS
from attentest.findings.cards_audit import AUDIT_CARDS, audit_card
from attentest.findings.criteria import CRITERIA, holm, judged
from attentest.findings.record import Finding, to_frame


def finding(experiment, measure, estimate, *, error=0.01, null=0.0, n=100, group="overall"):
    return Finding(
        experiment=experiment,
        measure=measure,
        group=group,
        estimate=estimate,
        std=math.nan,
        seed_std=math.nan,
        low=estimate - 1.96 * error,
        high=estimate + 1.96 * error,
        interval="instances",
        n=n,
        seeds=1,
        excluded=0,
        why="",
        null=null,
        mode="corrected",
    )


def verdict(name, *findings):
    return next(one for one in judged(to_frame(findings)) if one.criterion.name == name)


@pytest.mark.parametrize(
    ("estimate", "error", "wanted"),
    [
        (0.3, 0.01, "supported"),
        (0.06, 0.02, "undecided"),  # beyond the margin, but not surely
        (0.04, 0.02, "undecided"),
        (0.02, 0.001, "not supported"),  # surely above its null, and surely too little to matter
        (-0.3, 0.01, "not supported"),
    ],
)
def test_an_effect_must_be_larger_than_what_matters(estimate, error, wanted):
    assert (
        verdict("necessary", finding("erasure", "comprehensiveness-excess", estimate, error=error)).verdict
        == wanted
    )


@pytest.mark.parametrize(("estimate", "wanted"), [(-0.3, "supported"), (0.3, "not supported")])
def test_some_findings_must_lie_below_their_null(estimate, wanted):
    assert verdict("sufficient", finding("erasure", "sufficiency-excess", estimate)).verdict == wanted


def test_the_null_of_a_control_counts_where_there_is_one():
    moved = {"experiment": "ablation", "measure": "uniform-output-change", "estimate": 0.2}
    assert verdict("necessary", finding(**moved, null=math.nan)).verdict == "supported"
    assert verdict("necessary", finding(**moved, null=0.01)).verdict == "supported"
    assert verdict("necessary", finding(**moved, null=0.19)).verdict == "not supported"


@pytest.mark.parametrize(
    ("unlearnt", "wanted"), [(0.05, "supported"), (-0.2, "supported"), (0.3, "not supported")]
)
def test_agreement_that_comes_unlearnt_is_no_explanation(unlearnt, wanted):
    """What an untrained model has beyond its weights' factor is asked of the trained one, too."""
    known = {"experiment": "importance", "measure": "tau-gradient-excess"}
    found = verdict(
        "agrees with importances",
        finding(**known, estimate=0.3),
        finding(**known, estimate=unlearnt, group="untrained"),
    )
    assert found.verdict == wanted and found.answers[0].null == max(0.0, unlearnt)


def test_nothing_is_unique_whose_strongest_adversary_is_not_known():
    moved = finding("permutation", "median-output-change", 0.2)
    searched = finding("adversary", "emax-jsd-best@0.01", 0.4, null=math.nan)
    assert verdict("unique", moved, searched).verdict == "undecided"
    for excess, wanted in ((-0.3, "supported"), (-0.07, "undecided"), (0.0, "not supported")):
        assert (
            verdict("unique", moved, finding("adversary", "emax-jsd-exact-excess@0.01", excess)).verdict
            == wanted
        )
    still = finding("permutation", "median-output-change", 0.0)
    assert verdict("unique", still, searched).verdict == "not supported"


def test_one_test_that_fails_fails_the_criterion_and_one_that_wavers_leaves_it_open():
    good, bad = ("erasure", "comprehensiveness-excess"), ("ablation", "uniform-output-change")
    assert verdict("necessary", finding(*good, 0.3), finding(*bad, 0.3)).verdict == "supported"
    assert verdict("necessary", finding(*good, 0.3), finding(*bad, 0.0)).verdict == "not supported"
    assert verdict("necessary", finding(*good, 0.3), finding(*bad, 0.05)).verdict == "undecided"


def test_few_texts_and_missing_numbers_decide_nothing():
    few = verdict("plausible", finding("plausibility", "auprc-excess", 0.9, n=19))
    assert few.verdict == "undecided" and "fewer than 20" in few.answers[0].reason
    assert verdict("plausible", finding("plausibility", "auprc-excess", 0.9, n=20)).verdict == "supported"
    assert (
        verdict("plausible", finding("plausibility", "auprc-excess", 0.9, error=math.nan)).verdict
        == "undecided"
    )
    assert (
        verdict("plausible", finding("plausibility", "auprc-excess", 0.9, group="untrained")).verdict
        == "undecided"
    )
    assert all(one.verdict == "undecided" and "Nothing" in one.sentence for one in judged(to_frame([])))


def test_an_interval_without_width_is_sure_of_its_side():
    assert (
        verdict("plausible", finding("plausibility", "auprc-excess", 0.9, error=0.0)).verdict == "supported"
    )
    at_the_margin = verdict("plausible", finding("plausibility", "auprc-excess", 0.1, error=0.0))
    assert at_the_margin.verdict == "undecided"


@pytest.mark.parametrize(
    ("tau", "p", "wanted"), [(0.5, 0.001, "supported"), (0.5, 0.3, "undecided"), (-0.5, 0.001, "undecided")]
)
def test_luck_can_only_speak_for(tau, p, wanted):
    found = (
        finding("information", "tau", tau, error=math.nan),
        finding("information", "tau-p", p, error=math.nan),
    )
    assert verdict("informative", *found).verdict == wanted


def test_many_tests_ask_for_more():
    """The p-value of one test is settled by how many others there are."""
    one = finding("plausibility", "auprc-excess", 0.1 + 2.3 * 0.02, error=0.02)
    alone = verdict("plausible", one)
    assert alone.verdict == "supported" and alone.answers[0].p == pytest.approx(
        2 * stats.norm.sf(2.3), rel=1e-3
    )
    open_ones = [finding("agreement", name, 0.1, error=0.1) for name in ("shapley", "lime", "leave-one-out")]
    among = verdict("plausible", one, *open_ones)
    assert among.verdict == "undecided" and among.answers[0].p == pytest.approx(4 * alone.answers[0].p)


@given(st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=12))
def test_holm_is_the_stepwise_procedure(values):
    """Twin: reject the smallest while it is below the level over the number of those left."""
    corrected = holm(np.array(values, dtype=float))
    left = sorted((p, at) for at, p in enumerate(values) if not math.isnan(p))
    for level in (0.01, 0.05, 0.3):
        rejected = set()
        for step, (p, at) in enumerate(left):
            if p * (len(left) - step) > level:
                break
            rejected.add(at)
        assert {at for at in range(len(values)) if corrected[at] <= level} == rejected
    assert [math.isnan(p) for p in corrected] == [math.isnan(p) for p in values]


def test_every_criterion_can_be_quoted_and_every_test_has_a_card():
    assert [one.name for one in CRITERIA] == [
        "agrees with importances",
        "unique",
        "necessary",
        "sufficient",
        "informative",
        "plausible",
    ]
    for criterion in CRITERIA:
        assert set(criterion.says) == {"supported", "not supported", "undecided"}
        for test in criterion.tests:
            assert test.margin and audit_card(test.experiment, test.measure)
    said = verdict("plausible", finding("plausibility", "auprc-excess", 0.9)).sentence
    assert said.startswith(
        "Plausible: supported. Attention is where people marked their reasons."
        " (plausibility/auprc-excess 0.900 ["
    )
    assert not set(AUDIT_CARDS) & set(CARDS)
