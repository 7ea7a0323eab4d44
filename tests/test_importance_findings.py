"""Findings of the importance experiment, worked by hand; the house rules are in test_findings."""

import math

import numpy as np
import pandas as pd
import pytest

from attentest.experiments.importance import conclude as importance
from attentest.refusal import Refusal
from tests.observed import concluded, importance_rows, importance_texts, one

NAN = math.nan


def found(*tables):
    return concluded(pd.concat(tables), importance.conclude)


def told(finding, *names):
    return tuple(finding[name] for name in names)


@pytest.mark.parametrize(("kind", "held"), [("gradient", "gradient"), ("loo", "loo_held")])
@pytest.mark.parametrize(("larger", "smaller"), [("swapped", "permuted"), ("permuted", "swapped")])
def test_a_correlation_its_significance_and_its_excess_by_hand(kind, held, larger, smaller):
    rows = importance_texts(
        4,
        **{
            f"tau_{held}": [0.8, 0.2, -0.1, NAN],
            f"p_{held}": [0.01, 0.05, 0.051, NAN],
            f"{larger}_tau_{kind}": [0.5, 0.4, 0.3, 0.9],
            f"{larger}_significant_{kind}": [1.0, 0.5, 0.0, 0.9],
            f"{smaller}_tau_{kind}": [0.8, 0.1, 0.0, 0.9],
            f"{smaller}_significant_{kind}": 0.1,
        },
    )
    findings, said = found(rows), held.replace("_", "-")
    tau = one(findings, f"tau-{said}")
    assert told(tau, "estimate", "null") == pytest.approx((0.3, 0.4)), "the null is that of the same texts"
    assert tau["std"] == pytest.approx(np.std([0.8, 0.2, -0.1]))
    assert told(tau, "n", "seeds", "excluded", "why") == (3, 1, 1, "constant or NaN vector")
    assert told(one(findings, f"tau-{said}-significant"), "estimate", "null") == pytest.approx((2 / 3, 0.5))
    assert told(one(findings, f"tau-{kind}-excess"), "estimate", "null") == pytest.approx((-0.1, 0.0))


def test_the_larger_null_is_chosen_in_every_group_by_itself():
    rows = importance_texts(
        4,
        predicted=["a", "a", "b", "b"],
        tau_gradient=0.5,
        swapped_tau_gradient=[0.1, 0.1, 0.3, 0.3],
        permuted_tau_gradient=[0.25, 0.25, 0.1, 0.1],
    )
    findings = found(rows, importance_texts(4, 0, "untrained", tau_gradient=0.2, permuted_tau_gradient=0.2))
    wanted = {"predicted=a": 0.25, "predicted=b": 0.3, "overall": 0.2, "untrained": 0.2}
    for group, null in wanted.items():
        assert one(findings, "tau-gradient", group)["null"] == pytest.approx(null)


def test_a_text_without_a_partner_is_left_out_of_the_swapped_null_alone():
    columns = {"tau_gradient": 0.5, "swapped_tau_gradient": [0.3, 0.3, NAN], "permuted_tau_gradient": 0.1}
    findings = found(importance_texts(3, **columns))
    assert one(findings, "tau-gradient")["n"] == 3
    excess = one(findings, "tau-gradient-excess")
    assert told(excess, "n", "excluded", "why") == (2, 1, "no other text is as long")
    columns["permuted_tau_gradient"] = 0.4
    excess = one(found(importance_texts(3, **columns)), "tau-gradient-excess")
    assert told(excess, "n", "excluded") == (3, 0), "the permuted null needs no partner"


def test_gradients_against_leave_one_out_by_hand():
    rows = importance_texts(
        3,
        tau_gradient_loo=[0.6, 0.4, 0.2],
        p_gradient_loo=[0.01, 0.2, 0.3],
        tau_gradient=[0.1, 0.2, 0.3],
        tau_loo=[0.1, 0.1, 0.4],
        tau_norm_held=[1.0, 0.5, 0.0],
        tau_norm_free=[0.2, 0.4, 0.0],
    )
    findings = found(rows)
    expected = {
        "tau-gradient-loo": (0.4, 0.0),
        "gradient-loo-minus-attention-gradient": (0.2, 0.0),
        "gradient-loo-minus-attention-loo": (0.2, 0.0),
        "tau-norm-held": (0.5, NAN),
        "tau-norm-free": (0.2, NAN),
    }
    for measure, pair in expected.items():
        assert told(one(findings, measure), "estimate", "null") == pytest.approx(pair, nan_ok=True), measure


def test_the_top_of_a_text_is_hit_by_chance_as_often_as_it_is_large():
    rows = importance_texts(
        4,
        length=[20, 10, 5, 1],
        k=10,
        overlap_gradient=[0.5, 0.9, 1.0, NAN],
        distance_gradient=[0.4, 0.2, 0.1, NAN],
    )
    findings = found(rows)
    overlap = one(findings, "top-k-overlap-gradient")
    assert told(overlap, "estimate", "null") == pytest.approx((0.8, (0.5 + 1.0 + 1.0) / 3))
    assert told(overlap, "excluded", "why") == (1, "one token")
    distance = one(findings, "top-k-distance-gradient")
    assert distance["estimate"] == pytest.approx(0.7 / 3) and math.isnan(distance["null"])


def test_reasons_are_counted_where_there_are_several():
    rows = importance_texts(5, length=[1, 1, 9, 9, 9], tau_loo=[NAN, NAN, NAN, 0.5, 0.5])
    tau = one(found(rows), "tau-loo")
    assert told(tau, "excluded", "why") == (3, "constant or NaN vector (1); one token (2)")


def test_the_noise_ceiling_is_over_all_pairs_of_seeds():
    """Three seeds, two texts that were stored whole, one that was not."""
    vectors = {
        0: [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], None],
        1: [[1.0, 3.0, 2.0], [1.0, 2.0, 3.0], None],
        2: [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], None],
    }
    rows = [importance_texts(3, seed).assign(loo=of, gradient=None) for seed, of in vectors.items()]
    rows += [importance_texts(3, seed, "untrained").assign(loo=None, gradient=None) for seed in vectors]
    findings = found(*rows)
    ceiling = one(findings, "noise-ceiling-loo")
    first = (1 / 3 + -1.0 + -1 / 3) / 3  # tau of seeds 0 and 1, 0 and 2, 1 and 2
    assert ceiling["estimate"] == pytest.approx((first + 1.0) / 2)
    assert told(ceiling, "null", "n", "seeds", "excluded", "why") == (0.0, 6, 3, 0, "")
    assert set(findings[findings["measure"] == "noise-ceiling-loo"]["group"]) == {"overall"}
    assert not (findings["measure"] == "noise-ceiling-gradient").any()
    alone = found(rows[0])
    assert not alone["measure"].str.startswith("noise-ceiling").any()


def test_groups_and_which_measures_they_have():
    rows = importance_texts(
        6,
        predicted=["a", "b", "a", "b", "a", "a"],
        label=["c", "c", "d", "d", "d", "d"],
        length=[1, 9, 10, 19, 320, 5000],
        tau_gradient=[NAN, 0.1, 0.2, 0.3, 0.4, 0.5],
    )
    findings = found(rows, importance_texts(6, 0, "untrained", tau_gradient=0.7))
    tau = findings[findings["measure"] == "tau-gradient"].set_index("group")
    assert tau["estimate"].to_dict() == pytest.approx(
        {
            "overall": 0.3,
            "untrained": 0.7,
            "predicted=a": 1.1 / 3,
            "predicted=b": 0.2,
            "gold=c": 0.1,
            "gold=d": 0.35,
            "length [0, 10)": 0.1,
            "length [10, 20)": 0.25,
            "length [320, inf)": 0.45,
        }
    )
    assert tau["n"].tolist() == [5, 6, 3, 2, 1, 4, 1, 2, 2]
    everywhere = {measure for measure, of in findings.groupby("measure") if len(of) == len(tau)}
    assert everywhere == {measure for measure in set(findings["measure"]) if measure.startswith("tau-")}
    rest = findings[~findings["measure"].isin(everywhere)]
    assert set(rest["group"]) == {"overall", "untrained"}


def test_controls_have_findings_of_their_own_and_change_no_others():
    rows = importance_rows()
    whole, trained = (
        concluded(some, importance.conclude) for some in (rows, rows[rows["subject"] == "trained"])
    )
    controls = {"untrained", "shuffled labels"}
    assert controls < set(whole["group"]) and not controls & set(trained["group"])
    kept = whole[~whole["group"].isin(controls)].reset_index(drop=True)
    same = ["measure", "group", "estimate", "std", "seed_std", "n", "excluded", "why", "null"]
    pd.testing.assert_frame_equal(kept[same], trained[same])


def test_seeds_count_alike():
    rows = [importance_texts(n, seed, tau_loo=tau) for n, seed, tau in ((9, 0, 0.2), (1, 1, 0.6))]
    tau = one(found(*rows), "tau-loo")
    assert tau["estimate"] == pytest.approx(0.4) and tau["seed_std"] == pytest.approx(0.4 / math.sqrt(2))


def test_nothing_defined_leaves_nothing_but_counts():
    rows = importance_texts(4, **dict.fromkeys(importance.NUMBERS, NAN))
    findings = found(rows)
    assert len(findings) and (findings["n"] == 0).all() and (findings["interval"] == "none").all()
    assert findings[["estimate", "std", "low", "high"]].isna().all(axis=None)
    assert (findings["excluded"] == 4).all() and (findings["why"] == "constant or NaN vector").all()


def test_one_text_has_no_interval():
    tau = one(found(importance_texts(1, tau_loo=0.5)), "tau-loo")
    assert told(tau, "estimate", "interval") == (0.5, "none") and math.isnan(tau["low"])


def test_numbers_that_came_as_objects_are_numbers():
    """A column of nothing but None comes back from a file without a type."""
    rows = importance_texts(3).astype({"tau_norm_free": object}).assign(tau_norm_free=None)
    assert one(found(rows), "tau-norm-free")["excluded"] == 3


@pytest.mark.parametrize("column", ["tau_loo", "k", "length", "label", "swapped_tau_loo"])
def test_a_missing_column_is_refused(column):
    with pytest.raises(Refusal, match=f"no column {column}"):
        found(importance_texts(3).drop(columns=column))


def test_shown_texts_may_carry_their_vectors():
    shown = importance_rows()
    whole, without = (
        concluded(rows, importance.conclude) for rows in (shown, shown.drop(columns=["gradient", "loo"]))
    )
    ceilings = whole["measure"].str.startswith("noise-ceiling")
    assert set(whole[ceilings]["measure"]) == {"noise-ceiling-gradient", "noise-ceiling-loo"}
    same = ["measure", "group", "estimate", "std", "n", "excluded", "null"]
    pd.testing.assert_frame_equal(whole[~ceilings][same].reset_index(drop=True), without[same])
