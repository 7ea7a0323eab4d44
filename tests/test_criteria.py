"""The reading of an audit: margins, Holm's correction, what each verdict takes, and how it is said."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attentest.auditing.cards import AUDIT_CARDS, audit_card
from attentest.claims import calibrated, criteria
from attentest.claims.calibrated import UNKNOWN, ErrorRates, calibrated_tests, error_rates
from attentest.claims.criteria import CRITERIA, Asked, judged, one_sided
from attentest.claims.criterion import QUESTIONS
from attentest.experiments.cards import CARDS
from attentest.statistics.multiplicity import holm
from attentest.statistics.record import Finding, to_frame

KINDS = ("without context", "contextual", "transformer")
NECESSARY, SUFFICIENT = ("erasure", "comprehensiveness-excess"), ("erasure", "sufficiency-excess")
PERMUTED, UNIFORM = ("permutation", "median-output-change"), ("ablation", "uniform-output-change")
PLAUSIBLE = ("plausibility", "auprc-excess")
MARGINS = {"/".join(test): 0.1 for test in (NECESSARY, SUFFICIENT, PERMUTED, UNIFORM, PLAUSIBLE)}


def finding(experiment, measure, estimate, *, error=0.01, freedom=99.0, null=0.0, n=100, group="overall"):
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
        error=error,
        freedom=freedom,
    )


def verdict(name, *findings, margins=MARGINS, **more):
    found = judged(to_frame(findings), margins=margins, **more)
    return next(one for one in found if one.criterion.name == name)


@pytest.mark.parametrize(
    ("estimate", "error", "wanted"),
    [
        (0.3, 0.01, "supported"),
        (0.12, 0.02, "undecided"),  # beyond the margin, but not surely
        (0.08, 0.02, "undecided"),
        (0.05, 0.001, "not supported"),  # surely above 0, and surely too little to matter
        (-0.3, 0.01, "not supported"),
    ],
)
def test_an_effect_must_be_larger_than_its_margin(estimate, error, wanted):
    assert verdict("necessary", finding(*NECESSARY, estimate, error=error)).verdict == wanted


@pytest.mark.parametrize(("estimate", "wanted"), [(-0.3, "supported"), (0.3, "not supported")])
def test_some_findings_must_lie_below_their_null(estimate, wanted):
    assert verdict("sufficient", finding(*SUFFICIENT, estimate)).verdict == wanted


def test_an_effect_is_measured_from_a_fixed_null_or_from_the_findings_own():
    row = finding("information", "tau", 0.5, null=0.2)
    assert Asked("information", "tau").effect(row) == 0.5
    assert Asked("information", "tau", null=None).effect(row) == pytest.approx(0.3)
    assert Asked("information", "tau", sign=-1.0, null=0.1).effect(row) == pytest.approx(-0.4)
    # What an untrained twin has is shown and is no null: a model may be a mechanism before it is trained.
    assert verdict("used", finding(*PERMUTED, 0.3, null=0.29), finding(*UNIFORM, 0.3)).verdict == "supported"


def test_necessary_is_about_words_and_used_is_about_weights():
    """Words that matter are necessary even where uniform weights would do, and the other way round."""
    idle = (finding(*NECESSARY, 0.36), finding(*PERMUTED, 0.0), finding(*UNIFORM, 0.0))
    assert verdict("necessary", *idle).verdict == "supported"
    assert verdict("used", *idle).verdict == "not supported"
    elsewhere = (finding(*NECESSARY, 0.0), finding(*PERMUTED, 0.3), finding(*UNIFORM, 0.3))
    assert verdict("necessary", *elsewhere).verdict == "not supported"
    assert verdict("used", *elsewhere).verdict == "supported"


@pytest.mark.parametrize(
    ("permuted", "uniform", "wanted"),
    [(0.3, 0.3, "supported"), (0.3, 0.0, "not supported"), (0.3, 0.1, "undecided")],
)
def test_all_tests_must_support_and_one_suffices_against(permuted, uniform, wanted):
    assert verdict("used", finding(*PERMUTED, permuted), finding(*UNIFORM, uniform)).verdict == wanted


@pytest.mark.parametrize(("permuted", "wanted"), [(0.3, "undecided"), (0.0, "not supported")])
def test_a_test_that_is_lacking_leaves_support_open_but_not_rejection(permuted, wanted):
    found = verdict("used", finding(*PERMUTED, permuted), absent={"ablation": "no weights"})
    assert found.verdict == wanted
    assert found.lacking == "ablation/uniform-output-change (no weights)" and found.lacking in found.sentence


def test_not_measured_not_applicable_and_not_judged_are_different_things():
    absent = {"erasure": "the budget", "adversary/emax-jsd-exact-excess@0.01": "it is not affine"}
    absent |= {"permutation": "a map", "ablation": "a map", "plausibility": "no rationales"}
    skipped = {"erasure": "the budget", "plausibility": "no rationales"}
    shown = finding("information", "tau", 0.4, null=0.1)
    found = {
        one.criterion.name: one
        for one in judged(to_frame([shown]), absent=absent, skipped=skipped, margins=MARGINS)
    }
    assert {name: one.verdict for name, one in found.items()} == {
        "agrees with importances": "not measured",
        "necessary": "not measured",
        "sufficient": "not measured",
        "plausible": "not measured",
        "informative": "not judged",
        "used": "not applicable",
        "unique": "not applicable",
    }
    assert "erasure/comprehensiveness-excess (the budget)" in found["necessary"].sentence
    assert "permutation/median-output-change, ablation/uniform-output-change (a map)" in found["used"].lacking
    assert "not affine" in found["unique"].sentence and "no rationales" in found["plausible"].sentence
    told = found["informative"]
    assert "information/tau 0.400" in told.sentence and "null 0.100" in told.sentence
    assert "p " not in told.sentence.partition("(")[2] and told.answers[0].p_tests == ""
    assert "not been shown" in told.sentence and told.rates == "It is not judged for any kind of model."


def test_a_criterion_rests_on_its_tests_with_a_margin():
    taus = [finding("importance", name, 0.0) for name in ("tau-gradient-excess", "tau-loo", "tau-loo-excess")]
    margins = dict.fromkeys(("importance/tau-gradient", "importance/tau-loo"), 0.64)
    agrees, own = "agrees with importances", finding("importance", "tau-gradient", 0.9)
    found = verdict(agrees, own, *taus, margins=margins)
    assert found.verdict == "supported"
    assert [answer.verdict for answer in found.answers] == ["supported", *["not judged"] * 3]
    assert [answer.test.measure for answer in found.rests_on] == ["tau-gradient"]
    assert "tau-loo" not in found.sentence, "it is in the table of tests"
    alone = verdict(agrees, *taus, margins=margins)
    assert alone.verdict == "not measured" and "importance/tau-gradient (it was not asked)" in alone.lacking


def test_few_texts_and_missing_numbers_decide_nothing():
    few = verdict("plausible", finding(*PLAUSIBLE, 0.9, n=19))
    assert few.verdict == "undecided" and "fewer than 20" in few.answers[0].reason
    assert verdict("plausible", finding(*PLAUSIBLE, 0.9, n=20)).verdict == "supported"
    for missing in ({"error": math.nan}, {"freedom": math.nan}):
        found = verdict("plausible", finding(*PLAUSIBLE, 0.9, **missing))
        assert found.verdict == "undecided" and "no standard error" in found.answers[0].reason
    assert verdict("plausible", finding(*PLAUSIBLE, 0.9, group="untrained")).verdict == "not measured"
    assert {one.verdict for one in judged(to_frame([]))} == {"not measured"}


def test_without_an_error_the_side_is_sure():
    assert verdict("plausible", finding(*PLAUSIBLE, 0.9, error=0.0)).verdict == "supported"
    assert verdict("plausible", finding(*PLAUSIBLE, 0.05, error=0.0)).verdict == "not supported"
    assert verdict("plausible", finding(*PLAUSIBLE, 0.1, error=0.0)).verdict == "undecided"


@pytest.mark.parametrize("freedom", [3.0, 99.0, math.inf])
def test_p_values_are_one_sided_and_of_the_t_distribution(freedom):
    at_most, at_least = one_sided(0.05, 0.02, freedom)
    assert at_most == pytest.approx(stats.t.sf(2.5, freedom)) and at_least == pytest.approx(1 - at_most)
    alone = verdict("plausible", finding(*PLAUSIBLE, 0.15, error=0.02, freedom=freedom))
    assert alone.answers[0].p == pytest.approx(at_most)
    assert alone.verdict == ("supported" if at_most < 0.05 else "undecided")


def test_many_judged_tests_ask_for_more_in_their_own_direction():
    """Holm counts the tests that are judged, whatever their side; those that are only shown do not count."""
    one = finding(*PLAUSIBLE, 0.1 + 2 * 0.02, error=0.02)
    alone = verdict("plausible", one)
    assert alone.verdict == "supported" and alone.answers[0].p == pytest.approx(stats.t.sf(2, 99))
    shown = [finding("importance", name, 0.9) for name in ("tau-gradient", "tau-loo")]
    assert verdict("plausible", one, *shown).answers[0].p == alone.answers[0].p
    few = finding(*SUFFICIENT, 0.1, n=19)
    assert verdict("plausible", one, few).answers[0].p == alone.answers[0].p
    others = [finding(*test, 0.1, error=0.1) for test in (NECESSARY, PERMUTED, UNIFORM)]
    among = verdict("plausible", one, *others)
    assert among.verdict == "undecided" and among.answers[0].p == pytest.approx(4 * alone.answers[0].p)
    # A test that is surely not supported does not make support of another one easier.
    refuted = [finding(*test, -0.9) for test in (NECESSARY, PERMUTED, UNIFORM)]
    assert verdict("plausible", one, *refuted).answers[0].p == pytest.approx(4 * alone.answers[0].p)


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


@pytest.mark.parametrize(
    ("name", "test", "estimate", "tests"),
    [
        ("necessary", NECESSARY, 0.3, "comprehensiveness-excess is at most 0.1"),
        ("necessary", NECESSARY, 0.0, "comprehensiveness-excess is at least 0.1"),
        ("sufficient", SUFFICIENT, -0.3, "sufficiency-excess is at least -0.1"),
        ("sufficient", SUFFICIENT, 0.0, "sufficiency-excess is at most -0.1"),
    ],
)
def test_every_p_value_says_what_it_is_of(name, test, estimate, tests):
    found = verdict(name, finding(*test, estimate))
    (answer,) = found.answers
    assert answer.p < 0.001 and answer.p_tests == f"the hypothesis that {tests}"
    assert f"p < 0.001 for the hypothesis that {tests})" in found.sentence
    assert found.document["tests"][0]["p_tests"] == answer.p_tests


def test_an_undecided_test_quotes_the_smaller_p_value():
    over, under = (verdict("necessary", finding(*NECESSARY, e, error=0.05)) for e in (0.12, 0.08))
    assert over.verdict == under.verdict == "undecided"
    assert "at most" in over.answers[0].p_tests and "at least" in under.answers[0].p_tests
    for found in (over, under):
        assert found.answers[0].p == pytest.approx(stats.t.sf(0.4, 99))


def rates(**more):
    known = {"kind": "contextual", "yes": 4, "no": 10, "audits": 200, "judged": True}
    known |= {"false_support": 0.03, "false_support_of": "random-loud", "power": 0.94, "power_of": "soft"}
    return ErrorRates(**{**known, **more})


@pytest.mark.parametrize(("judges", "wanted"), [(True, "supported"), (False, "not judged")])
def test_what_misses_the_bar_for_a_kind_of_model_is_shown_and_not_judged(monkeypatch, judges, wanted):
    monkeypatch.setattr(criteria.calibrated, "error_rates", lambda name, kind: rates(judged=judges))
    found = verdict("necessary", finding(*NECESSARY, 0.3), kind="contextual")
    assert found.verdict == wanted and "0.300" in found.sentence
    assert ("miss the bar" in found.sentence) is not judges and math.isnan(found.answers[0].p) is not judges


def test_error_rates_are_said_in_words():
    said = rates().sentence
    assert "supported in at most 3 % of audits where the answer is no (random-loud)" in said
    assert "and in at least 94 % where it is yes (soft); 200 audits of 200 texts for each." in said
    assert "where the answer is no" not in rates(no=0).sentence
    assert "supported in at least 94 % where it is yes" in rates(no=0).sentence
    assert rates(yes=0, no=0).sentence == UNKNOWN
    assert "at most 0.5 %" in rates(false_support=0.005).sentence
    unknown = verdict("necessary", finding(*NECESSARY, 0.3), kind=None)
    assert (
        unknown.verdict == "supported" and unknown.rates == UNKNOWN and unknown.document["rates"] == UNKNOWN
    )


def test_the_committed_tables_are_about_these_tests_and_criteria():
    named = {test.name: criterion for criterion in CRITERIA for test in criterion.tests}
    margins = calibrated.margins()
    assert margins and set(margins) <= set(named)
    assert all(0 < margin < 1 for margin in margins.values())
    for criterion in CRITERIA:
        judges = any(test.name in margins and not test.shown for test in criterion.tests)
        for kind in KINDS:
            known = error_rates(criterion.name, kind)
            if known is not None:
                assert judges or not known.judged, "what has no margin cannot meet the bar"
                assert known.audits > 0 and not known.false_support > 1 and not known.power > 1
        assert error_rates(criterion.name, None) is None
    for name, test in calibrated_tests().items():
        if not name.startswith(("trained-adversary/", "guided/")):  # those train models: no part of an audit
            assert audit_card(*name.split("/")), name
        for found in (test.pointer, test.mechanism):
            assert found is None or 0 <= found.low <= found.high <= 1


def test_a_card_says_how_good_its_test_is():
    told = audit_card(*NECESSARY).how_good
    assert told.startswith("AUC ") and " for pointer" in told and "whose truth is known" in told
    assert "how good it is" in audit_card(*NECESSARY)._repr_html_()
    assert CARDS["permutation/median-output-change"].how_good
    assert not CARDS["performance/accuracy"].how_good
    assert "how good" not in CARDS["performance/accuracy"]._repr_html_()
    settings = AUDIT_CARDS.keys() | CARDS.keys()
    assert all("@" not in key for key in settings)
    assert "at 0.01: AUC" in CARDS["adversary/emax-jsd-exact-excess"].how_good


def test_every_criterion_can_be_quoted_and_every_test_has_a_card():
    questions = {one.name: one.question for one in CRITERIA}
    assert questions == {
        "agrees with importances": "pointer",
        "necessary": "pointer",
        "sufficient": "pointer",
        "plausible": "pointer",
        "informative": "pointer",
        "used": "mechanism",
        "unique": "mechanism",
    }
    assert set(questions.values()) == set(QUESTIONS)
    for criterion in CRITERIA:
        assert criterion.asks.endswith("?") and all(criterion.says)
        for test in criterion.tests:
            assert audit_card(test.experiment, test.measure)
    found = verdict("plausible", finding(*PLAUSIBLE, 0.9))
    assert found.sentence.startswith(
        "Plausible: supported. Attention is where people marked their reasons."
        " (plausibility/auprc-excess 0.900 [0.880, 0.920], p < 0.001 for the hypothesis that"
    )
    assert {"criterion", "question", "asks", "verdict", "sentence", "rates", "tests"} == set(found.document)
    assert not set(AUDIT_CARDS) & set(CARDS)
