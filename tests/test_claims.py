"""Claims: rules parsed strictly, verdicts that say why."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from attentest.claims.claims import Claim, verdict
from attentest.claims.judging import Evidence, judged
from attentest.claims.rules import Condition, parse
from attentest.refusal import Refusal

CLAIM = Claim(
    says="Shuffling attention rarely changes the output.",
    statistic="permutation/median-output-change/overall",
    supported_if="estimate < 0.1 and high < 0.2",
    refuted_if="low >= 0.2",
    cite="jain2019attention",
)


def table(**values):
    row = {"experiment": "permutation", "measure": "median-output-change", "group": "overall"}
    numbers = {"estimate": 0.05, "low": 0.04, "high": 0.06, "null": 0.01, "seed_std": 0.0}
    numbers |= {"error": 0.005, "freedom": math.inf}
    return pd.DataFrame([{**row, **numbers, "seeds": 3, "why": "", **values}])


def claim(supported_if, refuted_if="estimate < -9", **changes):
    return Claim(**{**vars(CLAIM), "supported_if": supported_if, "refuted_if": refuted_if, **changes})


@pytest.mark.parametrize(
    "rule, expected",
    [
        ("estimate < 0.1", [("estimate", "<", 0.1)]),
        ("low>=-1e-3", [("low", ">=", -0.001)]),
        ("excess > .5 and null <= +2", [("excess", ">", 0.5), ("null", "<=", 2.0)]),
        ("high < 1. and high > 0 and low > 0", [("high", "<", 1.0), ("high", ">", 0.0), ("low", ">", 0.0)]),
    ],
)
def test_rules_mean_what_they_say(rule, expected):
    assert parse(rule) == tuple(Condition(*one) for one in expected)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "estimate",
        "estimate < ",
        "estimate = 0.1",
        "estimate == 0.1",
        "estimate != 0.1",
        "0.1 > estimate",
        "0 < estimate < 1",
        "estimate < low",
        "estimate < nan",
        "estimate < inf",
        "estimate < 0.1 or low > 0",
        "estimate < 0.1 and",
        "estimate < 0.1 and ",
        " and estimate < 0.1",
        "estimate < 0.1, low > 0",
        "not estimate < 0.1",
        "Estimate < 0.1",
        "p_value < 0.05",
        "estimate < 1_000",
        "estimate < 0x1",
        "estimate < ٣",
        "estimate < 0.1\n",
        "estimate < 0.1; import os",
        "__import__('os').system('true') < 1",
        "(estimate) < 0.1",
        "estimate < 1 + 1",
    ],
)
def test_anything_else_is_refused_with_a_way_out(rule):
    with pytest.raises(Refusal, match=r'Write for example "estimate < 0\.1 and high < 0\.2"'):
        parse(rule)
    with pytest.raises(Refusal):
        claim(rule)
    with pytest.raises(Refusal):
        claim("estimate > 0", refuted_if=rule)


@pytest.mark.parametrize(
    "statistic", ["", "permutation", "permutation/change", "permutation//overall", "/a/b", "a/b/"]
)
def test_a_statistic_has_three_parts(statistic):
    with pytest.raises(Refusal, match="experiment/measure/group"):
        claim("estimate < 1", statistic=statistic)


@pytest.mark.parametrize(
    "values, expected",
    [
        ({}, "supported"),
        ({"estimate": 0.3}, "refuted"),
        ({"estimate": 0.15}, "undecided"),  # between the two rules
        ({"estimate": 0.095}, "undecided"),  # below 0.1, and not surely
        ({"estimate": 0.205}, "undecided"),  # above 0.2, and not surely
        ({"error": 0.04}, "undecided"),
        ({"estimate": 0.1, "error": 0.0}, "undecided"),  # strict: exactly the border does not support
        ({"estimate": 0.2, "error": 0.0}, "refuted"),  # not strict: it does refute
    ],
)
def test_verdicts(values, expected):
    found = verdict(CLAIM, table(**values))
    assert (found.verdict, found.claim) == (expected, CLAIM)


@pytest.mark.parametrize(
    "rule, holds",
    [
        ("estimate < 0.5", False), ("estimate <= 0.5", True),
        ("estimate > 0.5", False), ("estimate >= 0.5", True),
        ("low > 0.49", True), ("high < 0.51", True), ("null < 0.2", True), ("null > 0.2", False),
        ("excess > 0.3", True), ("excess < 0.3", False),
    ],
)  # fmt: skip
def test_each_quantity_and_relation(rule, holds):
    found = verdict(claim(rule), table(estimate=0.5, low=0.25, high=0.75, null=0.125, error=0.0))
    assert (found.verdict == "supported") == holds


def test_bounds_of_an_interval_are_tested_by_what_they_are_bounds_of():
    ps = [
        verdict(claim(rule), table(estimate=0.5, error=0.1, freedom=4.0)).p
        for rule in ("estimate > 0.3", "low > 0.3", "high > 0.3", "excess > 0.29")
    ]
    assert ps == pytest.approx([stats.t.sf(2, 4)] * 4)
    below = verdict(claim("high < 0.3"), table(estimate=0.5, error=0.1, freedom=4.0))
    assert below.p == pytest.approx(1 - ps[0])


def test_the_reason_shows_the_numbers_and_what_was_tested():
    numbers = "estimate 0.05, high 0.06, low 0.04"
    below = "test that the true value is below 0.1 and the true value is below 0.2: p"
    assert verdict(CLAIM, table()).reason == f"estimate < 0.1 and high < 0.2: {numbers}; {below} < 0.001"
    found = verdict(CLAIM, table(estimate=0.095))
    assert found.reason == (
        f"neither rule is shown: {numbers.replace('0.05', '0.095')}; {below} = 0.159;"
        " test that the true value is above 0.2: p = 1"
    )


def test_a_rule_has_the_largest_p_of_its_conditions():
    found = verdict(claim("estimate < 0.06 and excess > 0.03"), table())
    assert found.p == pytest.approx(stats.norm.sf(2), abs=1e-12)
    assert verdict(claim("estimate < 0.06 and excess > 0.035"), table()).p == pytest.approx(stats.norm.sf(1))


def test_the_error_of_an_older_finding_is_read_off_its_interval():
    older = table(estimate=0.05, low=0.03, high=0.07).drop(columns=["error", "freedom"])
    error = 0.04 / 2 / stats.norm.ppf(0.975)
    found = verdict(claim("high < 0.1"), older)
    assert found.p == pytest.approx(stats.t.sf(0.05 / error, 2))
    assert found.reason.endswith(
        "; the error is read off the 95 % interval, since the stored finding has none"
    )
    filled = verdict(claim("high < 0.1"), older.assign(error=math.nan, freedom=math.nan))
    assert (filled.p, filled.reason) == (found.p, found.reason)
    alone = verdict(claim("high < 0.1"), older.assign(seeds=1, seed_std=math.nan))
    assert alone.p == pytest.approx(stats.norm.sf(0.05 / error))
    assert alone.reason.endswith("; over texts of this one training")
    assert "interval" not in verdict(claim("high < 0.1"), table()).reason


def test_nothing_is_decided_by_a_point_estimate():
    bare = table(low=math.nan, high=math.nan, error=math.nan, freedom=math.nan)
    found = verdict(claim("estimate < 0.9", "estimate > 0.9"), bare)
    assert (found.verdict, found.reason) == ("undecided", "no error is known of estimate: estimate 0.05")
    assert math.isnan(found.p) and math.isnan(found.p_refutes)


@pytest.mark.parametrize("measure", ["tau-p", "mcnemar-p-attention", "tau-above-floor-p"])
def test_a_measure_that_is_a_p_value_is_its_own_test_and_refutes_nothing(measure):
    about = claim("estimate < 0.05", "estimate >= 0.05", statistic=f"permutation/{measure}/overall")
    bare = {"low": math.nan, "high": math.nan, "error": math.nan, "freedom": math.nan, "measure": measure}
    found = verdict(about, table(estimate=0.01, **bare))
    assert (found.verdict, found.p) == ("supported", 0.01)
    assert found.reason.endswith("the finding is itself a p-value: p = 0.010")
    # Not even one of seeds that all say the same.
    large = verdict(about, table(estimate=0.9, **bare | {"error": 0.0}))
    assert (large.verdict, large.p) == ("undecided", 0.9) and math.isnan(large.p_refutes)
    assert large.reason.startswith("a p-value that is not small shows nothing: estimate 0.9")
    strict = claim("estimate < 0.01", "estimate >= 0.05", statistic=about.statistic)
    assert verdict(strict, table(estimate=0.02, **bare)).p == pytest.approx(0.1)
    assert math.isnan(verdict(about, table(estimate=math.nan, **bare)).p)


def test_a_missing_statistic_decides_nothing():
    for absent in (table(group="predicted=yes"), table().iloc[:0]):
        found = verdict(CLAIM, absent)
        assert found.verdict == "undecided"
        assert found.reason == "0 findings are about permutation/median-output-change/overall, not one"


def test_two_findings_for_one_statistic_decide_nothing():
    found = verdict(CLAIM, pd.concat([table(), table()]))
    assert found.verdict == "undecided" and found.reason.startswith("2 findings")


def test_other_findings_do_not_matter():
    others = [
        table(group="predicted=yes", low=0.5),
        table(measure="share-unmoved"),
        table(experiment="performance"),
    ]
    assert verdict(CLAIM, pd.concat([*others, table()])).verdict == "supported"


def test_what_is_undefined_meets_no_rule():
    found = verdict(claim("excess > 0", "excess <= 0"), table(null=math.nan))
    assert (found.verdict, found.reason) == ("undecided", "excess undefined: excess nan")
    # An undefined quantity in one rule does not silence the other.
    assert verdict(claim("excess > 0", "estimate < 0.1"), table(null=math.nan)).verdict == "refuted"


def test_rules_that_contradict_each_other_decide_nothing():
    found = verdict(claim("estimate > 0", "estimate < 1"), table())
    assert found.verdict == "undecided" and "contradict" in found.reason
    assert max(found.p, found.p_refutes) < 0.05


def test_a_group_may_contain_slashes():
    about = claim("estimate < 1", statistic="permutation/median-output-change/predicted=and/or")
    assert verdict(about, table(group="predicted=and/or")).verdict == "supported"


POINT = {"corpus": "sst", "encoder": "average", "attention": "additive", "projection": "softmax"}


def test_a_claim_speaks_of_the_grid_points_it_names():
    about = claim("estimate < 1", where={"encoder": ["average", "cnn"]})
    assert about.is_about(POINT) and not about.is_about({**POINT, "encoder": "bilstm"})
    assert claim("estimate < 1").is_about(POINT)


def test_a_model_is_compared_with_another_never_with_itself():
    about = claim("difference > 0.1", against={"encoder": "bilstm"})
    assert about.other(POINT) == {**POINT, "encoder": "bilstm"}
    assert about.is_about(POINT) and not about.is_about({**POINT, "encoder": "bilstm"})


def two_models(ours, theirs):
    """The findings of two models, from the estimates of their seeds."""
    return [
        table(estimate=np.mean(sample), seed_std=np.std(sample, ddof=1), seeds=len(sample))
        for sample in (ours, theirs)
    ]


def beside(supported_if, refuted_if="apart > 99"):
    return claim(supported_if, refuted_if, against={"encoder": "bilstm"})


def test_differences_are_tested_by_welch():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.6, 0.05, 5), rng.normal(0.4, 0.1, 3)
    for border in (0.0, 0.1, 0.3):
        for relation, side in ((">", "greater"), ("<", "less")):
            expected = stats.ttest_ind(ours - border, theirs, equal_var=False, alternative=side).pvalue
            for name in ("difference", "difference_low", "difference_high"):
                found = verdict(beside(f"{name} {relation} {border}"), *two_models(ours, theirs))
                assert found.p == pytest.approx(expected)


def test_bounds_of_differences_are_shown_as_welchs_interval():
    ours, theirs = np.array([0.5, 0.6, 0.61, 0.7]), np.array([0.3, 0.5, 0.55])
    low, high = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    found = verdict(beside("difference_low > 0", "difference_high < 0"), *two_models(ours, theirs))
    assert f"difference_low {low:.3g}, difference_high {high:.3g}" in found.reason


def test_models_that_are_alike_must_be_shown_to_be():
    near, far = [0.50, 0.52, 0.51], [0.70, 0.72, 0.71]
    wide = [0.3, 0.7, 0.53]
    about = beside("apart < 0.1", "apart > 0.1")
    assert verdict(about, *two_models(near, near)).verdict == "supported"
    assert verdict(about, *two_models(near, far)).verdict == "refuted"
    assert verdict(about, *two_models(far, near)).verdict == "refuted"
    assert verdict(about, *two_models(near, wide)).verdict == "undecided", "a point estimate of 0 apart"
    sure = verdict(about, table(estimate=0.25), table(estimate=0.5))
    assert (sure.p, sure.p_refutes) == (1.0, 0.0), "seeds that do not differ have no error"


def test_equivalence_is_two_one_sided_tests_and_its_contrary_has_two_tails():
    ours, theirs = [0.5, 0.56, 0.53, 0.6], [0.52, 0.49, 0.58]
    below = stats.ttest_ind(np.array(ours) - 0.1, theirs, equal_var=False, alternative="less").pvalue
    above = stats.ttest_ind(np.array(ours) + 0.1, theirs, equal_var=False, alternative="greater").pvalue
    found = verdict(beside("apart < 0.1", "apart > 0"), *two_models(ours, theirs))
    assert found.p == pytest.approx(max(below, above))
    both_sides = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
    assert found.p_refutes == pytest.approx(both_sides), "beyond 0 is the two-sided test"
    outside = verdict(beside("apart > 0.01"), *two_models(ours, theirs)).p
    nearer = stats.ttest_ind(np.array(ours) - 0.01, theirs, equal_var=False, alternative="greater").pvalue
    assert nearer < outside < 2 * nearer


def test_a_comparison_without_the_other_model_is_undecided():
    about = claim("difference > 0", against={"encoder": "bilstm"})
    assert verdict(about, table()).verdict == "undecided"
    assert "encoder bilstm" in verdict(about, table()).reason
    nothing = table(seed_std=math.nan, seeds=1)
    alone = verdict(claim("difference_low > -9", against={"encoder": "bilstm"}), nothing, nothing)
    assert alone.verdict == "undecided" and "no error is known of difference_low" in alone.reason
    assert verdict(claim("difference > -9"), table()).verdict == "undecided"


@pytest.mark.parametrize(
    "axes", [{"where": {"colour": ["red"]}}, {"against": {"seed": "1"}}, {"where": {"group": ["overall"]}}]
)
def test_an_axis_that_does_not_exist_is_refused(axes):
    with pytest.raises(Refusal, match="encoder"):
        claim("estimate < 1", **axes)


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(Refusal, match="corrected, as-published"):
        claim("estimate < 1", mode="published")


# --- claims that rest on few seeds


def of_seeds(seeds, why="", **values):
    """The finding, and beside it another that all three seeds have."""
    return pd.concat([table(seeds=seeds, why=why, **values), table(group="predicted=yes", seeds=3)])


@pytest.mark.parametrize("seeds, said", [(1, "1 seed"), (0, "no seed")])
def test_one_seed_of_several_decides_nothing(seeds, said):
    found = verdict(CLAIM, of_seeds(seeds, "no adversary gets so far"))
    assert found.verdict == "undecided"
    assert found.reason == f"it rests on {said} of the 3 (no adversary gets so far)"
    assert verdict(CLAIM, of_seeds(seeds)).reason == f"it rests on {said} of the 3"


def test_two_seeds_of_three_decide_and_so_does_the_only_one_of_a_study():
    assert verdict(CLAIM, of_seeds(2)).verdict == "supported"
    assert verdict(CLAIM, table(seeds=1, seed_std=math.nan)).verdict == "supported"


def test_nor_does_one_seed_of_the_model_it_is_compared_with():
    about = claim("difference > -9", against={"encoder": "bilstm"})
    assert verdict(about, table(), of_seeds(3)).verdict == "supported"
    found = verdict(about, table(), of_seeds(1))
    assert found.verdict == "undecided"
    assert found.reason == "beside encoder bilstm: it rests on 1 seed of the 3"


# --- claims that take something for granted


KEPT = claim("estimate < 0.1", "estimate > 0.1", provided={"tau-p/overall": "estimate < 0.05"})


def test_what_is_not_there_is_neither_kept_nor_lost():
    for estimate in (0.01, 0.5):  # either rule holds
        own = table(estimate=estimate)
        assert verdict(KEPT, pd.concat([own, table(measure="tau-p", estimate=0.01)])).verdict != "undecided"
        found = verdict(KEPT, pd.concat([own, table(measure="tau-p", estimate=0.222)]))
        assert found.verdict == "undecided"
        assert found.reason == "it takes estimate < 0.05 of tau-p/overall for granted: estimate 0.222"


@pytest.mark.parametrize(
    "granted, said",
    [
        (table(measure="tau-p", estimate=math.nan), "estimate nan"),
        (
            table(measure="tau-p", group="untrained"),
            "0 findings are about permutation/tau-p/overall, not one",
        ),
        (table(measure="tau-p", estimate=0.01, seeds=1), "it rests on 1 seed of the 3"),
    ],
    ids=["undefined", "absent", "of one seed"],
)
def test_what_is_unknown_is_not_granted(granted, said):
    found = verdict(KEPT, pd.concat([table(), granted]))
    assert (found.verdict, found.reason.split("for granted: ")[1]) == ("undecided", said)


def test_nothing_is_granted_by_a_difference_to_nobody():
    about = claim("estimate < 1", provided={"median-output-change/overall": "difference < 9"})
    assert verdict(about, table()).reason.endswith("for granted: difference nan")


@pytest.mark.parametrize("granted", ["", "tau-p", "tau-p/", "/overall"])
def test_what_is_granted_is_a_measure_of_a_group_by_a_rule(granted):
    with pytest.raises(Refusal, match="measure/group of the same findings"):
        claim("estimate < 1", provided={granted: "estimate < 1"})
    with pytest.raises(Refusal, match="comparisons of"):
        claim("estimate < 1", provided={"tau-p/overall": "estimate is small"})


# --- claims put to findings


def evidence(estimate, *, texts=None, experiment="permutation", mode="corrected", **changes):
    """One finding cell, with the grid point, settings and parameters that are given."""
    about = {"experiment": experiment, "mode": mode, **POINT, "model": {"epochs": 8}, "parameters": {}}
    found = table(experiment=experiment, estimate=estimate, seed_std=0.0, seeds=3)
    return Evidence({**about, **changes}, texts, found)


def answers(about, **cells):
    """Which cells were asked, and what each said."""
    return {name: said.verdict for name, said in judged([about], cells)}


def test_a_claim_is_put_to_corrected_findings_unless_it_asks_for_others():
    cells = {"published": evidence(0.5, mode="as-published"), "ours": evidence(0.05)}
    assert answers(claim("estimate < 0.1", "estimate > 0.1"), **cells) == {"ours": "supported"}
    asked = claim("estimate < 0.1", "estimate > 0.1", mode="as-published")
    assert answers(asked, **cells) == {"published": "refuted"}
    assert answers(claim("estimate < 0.1"), published=cells["published"]) == {}


def test_a_claim_is_put_to_its_own_experiment_and_grid_points_in_the_order_of_claims():
    first = claim("estimate < 0.1", where={"encoder": ["average"]})
    second = claim("estimate < 0.1", statistic="importance/median-output-change/overall")
    cells = {
        "elsewhere": evidence(0.05, encoder="bilstm"),
        "other": evidence(0.05, experiment="importance", encoder="cnn"),
        "here": evidence(0.05),
        "twice": evidence(0.5, parameters={"permutations": 5}),
    }
    found = [(name, said.claim) for name, said in judged([first, second], cells)]
    assert found == [("here", first), ("twice", first), ("other", second)]


BETTER = claim("difference > 0.1", "difference < 0.1", against={"encoder": "bilstm"})


def test_a_rival_is_of_the_same_mode_texts_and_grid_point():
    own = evidence(0.5, texts="these")
    strangers = {
        "mode": evidence(0.1, texts="these", encoder="bilstm", mode="as-published"),
        "texts": evidence(0.1, texts="those", encoder="bilstm"),
        "corpus": evidence(0.1, texts="these", encoder="bilstm", corpus="imdb"),
        "experiment": evidence(0.1, texts="these", encoder="bilstm", experiment="importance"),
    }
    assert answers(BETTER, own=own, **strangers)["own"] == "undecided", "there is nobody to compare with"
    rival = evidence(0.45, texts="these", encoder="bilstm")
    assert answers(BETTER, own=own, **strangers, rival=rival)["own"] == "refuted"


@pytest.mark.parametrize("part", ["model", "parameters"])
def test_of_several_rivals_the_one_made_most_alike_counts(part):
    own = evidence(0.5, **{part: {"epochs": 8, "hidden": 16}})
    near, as_near = (
        evidence(estimate, encoder="bilstm", **{part: {"epochs": 8, "hidden": 32}}) for estimate in (0.1, 0.5)
    )
    far = evidence(0.5, encoder="bilstm", **{part: {"epochs": 3, "hidden": 32, "clip": 1}})
    for cells in ({"a": near, "b": far}, {"a": far, "b": near}):
        assert answers(BETTER, own=own, **cells) == {"own": "supported"}
    # Of those that are equally alike the name decides, so that every road asks the same one.
    for cells in ({"a": near, "b": as_near}, {"b": as_near, "a": near}):
        assert answers(BETTER, own=own, **cells) == {"own": "supported"}


SHUFFLED = claim("difference > 0.1", "difference < 0.1", against={"group": "shuffled labels"})


def test_a_group_is_compared_with_another_of_the_same_findings():
    own = evidence(0.5)
    control = table(group="shuffled labels", estimate=0.1)
    both = replace(own, table=pd.concat([own.table, control]))
    assert SHUFFLED.is_about(POINT) and SHUFFLED.other(POINT) == POINT
    assert not claim("estimate < 1", against={"group": "overall"}).is_about(POINT), "nor with itself"
    # The name decides between equals elsewhere, but nothing is as near to findings as they themselves.
    twin = replace(own, table=pd.concat([own.table, control.assign(estimate=0.5)]))
    assert answers(SHUFFLED, z=both) == {"z": "supported"}
    assert answers(SHUFFLED, a=twin, z=both) == {"a": "refuted", "z": "supported"}
    alone = dict(judged([SHUFFLED], {"z": own}))["z"]
    assert alone.reason == (
        "beside group shuffled labels:"
        " 0 findings are about permutation/median-output-change/shuffled labels, not one"
    )


# --- claims put to models that have learnt nothing


def scores(accuracy, auc=None, **changes):
    """A performance finding: the lower ends of two intervals, both beside a null of one half."""
    lows = {"accuracy": accuracy, "auc": accuracy if auc is None else auc}
    rows = [{"experiment": "performance", "measure": name, "low": low} for name, low in lows.items()]
    same = {"group": "overall", "estimate": 0.5, "high": 0.9, "null": 0.5, "seed_std": 0.0, "seeds": 3}
    made = evidence(0.5, experiment="performance", **changes)
    return replace(made, table=pd.DataFrame([row | same for row in rows]))


SMALL_CHANGE = claim("estimate < 0.1", "estimate > 0.1")


def test_of_models_at_chance_nothing_is_asked():
    said = dict(judged([SMALL_CHANGE], {"here": evidence(0.05), "scores": scores(0.45)}))["here"]
    assert said.verdict == "undecided"
    one = "0.500 [0.450, 0.900], null 0.500"
    assert said.reason == f"its models are at chance: accuracy {one}; auc {one}"


@pytest.mark.parametrize(
    "beside",
    [
        scores(0.51),
        scores(0.45, auc=0.6),  # few of one class: accuracy alone would hide what was learnt
        scores(math.nan),
        scores(0.45, encoder="bilstm"),
        scores(0.45, model={"epochs": 9}),
        scores(0.45, texts="others"),
    ],
    ids=["learnt", "ranked", "undefined", "another model", "other settings", "other texts"],
)
def test_models_that_have_learnt_are_asked_and_others_do_not_speak_for_them(beside):
    assert answers(SMALL_CHANGE, here=evidence(0.05), scores=beside) == {"here": "supported"}


def test_nor_is_anything_compared_with_a_model_at_chance():
    cells = {"own": evidence(0.5), "rival": evidence(0.05, encoder="bilstm")}
    assert answers(BETTER, **cells) == {"own": "supported"}
    assert answers(BETTER, **cells, scores=scores(0.45, encoder="bilstm")) == {"own": "undecided"}


def test_a_claim_about_scores_is_asked_of_models_at_chance():
    about = claim("low > 0.95", "high < 0.95", statistic="performance/accuracy/overall")
    assert answers(about, scores=scores(0.45)) == {"scores": "refuted"}


# --- claims put to what an experiment made of models, where that has learnt nothing


def sibling(base, own, *, group="lambda 1", called="overall", measure="median-output-change", **more):
    """Findings of a sibling of the model, with the lower ends of both accuracies; their null is one half."""
    asked = evidence(0.05)
    rows = [
        table(group=group, measure=measure),
        *(
            table(group=name, measure="accuracy", estimate=low + 0.05, low=low, high=low + 0.1, null=0.5)
            for name, low in ((called, base), (group, own))
        ),
        *(table(group=name, measure="auc", low=low, null=0.5) for name, low in more.items()),
    ]
    return replace(asked, table=pd.concat(rows))


OF_SIBLING = claim("estimate < 0.1", "estimate > 0.1", statistic="permutation/median-output-change/lambda 1")


@pytest.mark.parametrize("called", ["overall", "trained"])
def test_of_siblings_at_chance_nothing_is_asked(called):
    said = dict(judged([OF_SIBLING], {"here": sibling(0.7, 0.45, called=called)}))["here"]
    assert said.verdict == "undecided"
    assert said.reason == "lambda 1 is at chance: accuracy 0.500 [0.450, 0.550], null 0.500"


@pytest.mark.parametrize(
    "made",
    [
        sibling(0.7, 0.51),
        sibling(0.7, math.nan),
        sibling(0.45, 0.45),
        sibling(0.7, 0.45, **{"overall": 0.8, "lambda 1": 0.6}),
    ],
    ids=["learnt", "undefined", "accuracy cannot tell", "ranked"],
)
def test_siblings_that_have_learnt_or_whose_scores_cannot_tell_are_asked(made):
    assert answers(OF_SIBLING, here=made) == {"here": "supported"}


@pytest.mark.parametrize("measure", ["accuracy-change", "f1-lost", "output-tvd-halved"])
def test_what_chance_is_an_answer_to_is_asked_of_siblings_at_chance(measure):
    about = replace(OF_SIBLING, statistic=f"permutation/{measure}/lambda 1")
    assert answers(about, here=sibling(0.7, 0.45, measure=measure)) == {"here": "supported"}


@pytest.mark.parametrize("control", ["untrained", "shuffled labels"])
def test_a_control_is_asked_although_it_has_learnt_nothing(control):
    about = replace(OF_SIBLING, statistic=f"permutation/median-output-change/{control}")
    assert answers(about, here=sibling(0.7, 0.45, group=control)) == {"here": "supported"}
    beside = sibling(0.7, 0.45, group=control)
    own = replace(beside, table=pd.concat([beside.table, table(estimate=0.5)]))
    assert answers(replace(SHUFFLED, against={"group": control}), here=own) == {"here": "supported"}


def test_nor_is_anything_compared_with_a_sibling_at_chance():
    better = replace(BETTER, statistic=OF_SIBLING.statistic, refuted_if="difference < 0.2")
    own, rival = sibling(0.7, 0.6), sibling(0.7, 0.45)
    rival = replace(rival, config={**rival.config, "encoder": "bilstm"})
    said = dict(judged([better], {"own": own, "rival": rival}))["own"]
    assert said.reason.startswith("lambda 1 is at chance")
