"""Findings of the importance experiment, worked by hand; the house rules are in test_findings."""

import math

import numpy as np
import pandas as pd
import pytest

from attentest.findings import importance
from attentest.refusal import Refusal
from tests.observed import concluded, importance_rows, importance_texts, one

NAN = math.nan


def found(*tables):
    return concluded(pd.concat(tables), importance.conclude)


def told(finding, *names):
    return tuple(finding[name] for name in names)


@pytest.mark.parametrize("kind", ["gradient", "loo"])
def test_a_correlation_its_significance_and_its_excess_by_hand(kind):
    rows = importance_texts(
        4,
        **{
            f"tau_{kind}": [0.8, 0.2, -0.1, NAN],
            f"p_{kind}": [0.01, 0.05, 0.051, NAN],
            f"null_tau_{kind}": [0.5, 0.4, 0.3, 0.9],
            f"null_significant_{kind}": [1.0, 0.5, 0.0, 0.9],
        },
    )
    findings = found(rows)
    tau = one(findings, f"tau-{kind}")
    assert told(tau, "estimate", "null") == pytest.approx((0.3, 0.4)), "the null is that of the same texts"
    assert tau["std"] == pytest.approx(np.std([0.8, 0.2, -0.1]))
    assert told(tau, "n", "seeds", "excluded", "why") == (3, 1, 1, "constant or NaN vector")
    assert told(one(findings, f"tau-{kind}-significant"), "estimate", "null") == pytest.approx((2 / 3, 0.5))
    assert told(one(findings, f"tau-{kind}-excess"), "estimate", "null") == pytest.approx((-0.1, 0.0))


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
        "tau-gradient-loo-significant": (1 / 3, 0.05),
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


def test_the_reference_seed_is_not_asked_for_a_ceiling():
    rows = [
        importance_texts(
            3, seed, subject, ceiling_loo=NAN if seed == 0 or subject != "trained" else seed / 10
        )
        for seed in (0, 1, 2)
        for subject in ("trained", "untrained")
    ]
    findings = found(*rows)
    ceiling = one(findings, "noise-ceiling-loo")
    assert ceiling["estimate"] == pytest.approx(0.15)
    assert told(ceiling, "null", "n", "seeds", "excluded", "why") == (0.0, 6, 2, 0, "")
    assert set(findings[findings["measure"] == "noise-ceiling-loo"]["group"]) == {"overall"}
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


@pytest.mark.parametrize("column", ["tau_loo", "k", "length", "label", "ceiling_gradient"])
def test_a_missing_column_is_refused(column):
    with pytest.raises(Refusal, match=f"no column {column}"):
        found(importance_texts(3).drop(columns=column))


def test_shown_texts_may_carry_their_vectors():
    shown = importance_rows().assign(weights=None, gradient=None)
    shown["loo"] = [[0.1, 0.2]] * len(shown)
    pd.testing.assert_frame_equal(
        concluded(shown, importance.conclude), concluded(importance_rows(), importance.conclude)
    )
