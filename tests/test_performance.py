"""Accuracy, F1 and AUC against scikit-learn and tables worked by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from attentest.experiments.performance import conclude as performance
from attentest.statistics.record import to_frame
from attentest.statistics.scores import predictions, scores


def concluded(rows):
    return to_frame(performance.conclude(rows, mode="corrected", rng=np.random.default_rng(0)))


def one(findings, measure, group="overall"):
    found = findings[(findings["measure"] == measure) & (findings["group"] == group)]
    assert len(found) == 1
    return found.iloc[0]


def answers(gold, probabilities, seed=0, subject="trained", names=("no", "yes", "maybe")):
    """Rows of the performance experiment."""
    probabilities = np.asarray(probabilities, dtype=np.float64)
    return pd.DataFrame(
        {
            "seed": seed,
            "subject": subject,
            "id": [f"t{number:04d}" for number in range(len(gold))],
            "label": [names[index] for index in gold],
            "predicted": [names[index] for index in probabilities.argmax(axis=1)],
            "gold": np.asarray(gold, dtype=np.int64),
            "probabilities": probabilities.tolist(),
        }
    )


def simulated_answers(n, classes, seed):
    rng = np.random.default_rng(seed)
    gold = rng.integers(classes, size=n)
    probabilities = rng.dirichlet(np.ones(classes), size=n) + 0.5 * np.eye(classes)[gold]
    probabilities = np.round(probabilities / probabilities.sum(axis=1, keepdims=True), 1)  # makes ties
    return gold, probabilities


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_scores_are_scikit_learns(classes, seed):
    gold, probabilities = simulated_answers(80, classes, seed)
    predicted = probabilities.argmax(axis=1)
    ranked = probabilities[:, 1] if classes == 2 else None
    expected = {
        "accuracy": metrics.accuracy_score(gold, predicted),
        "f1": metrics.f1_score(gold, predicted, average="binary" if classes == 2 else "macro"),
        "auc": metrics.roc_auc_score(gold, ranked)
        if classes == 2
        else np.mean([metrics.roc_auc_score(gold == c, probabilities[:, c]) for c in range(classes)]),
    }
    assert scores(gold, probabilities) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_mean_repetition(classes):
    rng = np.random.default_rng(0)
    gold, probabilities = simulated_answers(30, classes, 0)
    sample = predictions(np.arange(30), gold, probabilities)
    weights = rng.integers(4, size=(20, 30)).astype(np.float64)
    for name, measure in performance.MEASURES.items():
        repeated = [
            scores(gold.repeat(row.astype(int)), probabilities.repeat(row.astype(int), axis=0))[name]
            for row in weights
        ]
        np.testing.assert_allclose(measure(sample, weights), repeated, atol=1e-12)


def test_a_sigmoid_output_is_two_classes():
    gold, probabilities = simulated_answers(50, 2, 0)
    assert scores(gold, probabilities[:, 1:]) == scores(
        gold, np.hstack([1 - probabilities[:, 1:], probabilities[:, 1:]])
    )


def test_scores_that_mean_nothing_are_nan():
    assert all(math.isnan(value) for value in scores(np.empty(0, dtype=int), np.empty((0, 2))).values())
    diverged = scores(np.array([0, 1]), np.array([[0.5, 0.5], [math.nan, math.nan]]))
    assert all(math.isnan(value) for value in diverged.values())
    alike = scores(np.array([0, 0]), np.array([[0.9, 0.1], [0.8, 0.2]]))
    assert alike["accuracy"] == 1 and math.isnan(alike["f1"]) and math.isnan(alike["auc"])


def test_performance_by_hand():
    # gold      no   no   no   yes  yes       answers: 2 of 3 "no", 1 of 2 "yes"
    yes = [0.1, 0.2, 0.6, 0.9, 0.4]
    found = concluded(answers([0, 0, 0, 1, 1], [[1 - y, y] for y in yes]))
    overall = one(found, "accuracy")
    assert overall["estimate"] == pytest.approx(0.6) and overall["null"] == pytest.approx(0.6)
    assert overall["std"] == pytest.approx(math.sqrt(0.6 * 0.4))
    assert (overall["n"], overall["seeds"], overall["excluded"], overall["why"]) == (5, 1, 0, "")
    assert one(found, "f1")["estimate"] == pytest.approx(0.5)  # TP 1, FP 1, FN 1
    assert one(found, "f1")["null"] == pytest.approx(0.8 / 1.4)  # always "yes": precision .4, recall 1
    assert one(found, "auc")["estimate"] == pytest.approx(5 / 6) and one(found, "auc")["null"] == 0.5
    assert math.isnan(one(found, "f1")["std"]) and math.isnan(one(found, "auc")["std"])
    no, yes = (one(found, "accuracy", f"label={name}") for name in ("no", "yes"))
    assert (no["estimate"], no["null"], no["n"]) == (pytest.approx(2 / 3), 1.0, 3)
    assert (yes["estimate"], yes["null"], yes["n"]) == (pytest.approx(1 / 2), 0.0, 2)
    assert (found["interval"] == "instances").all() and (found["mode"] == "corrected").all()
    assert found["seed_std"].isna().all()
    assert (found["low"] <= found["estimate"]).all() and (found["estimate"] <= found["high"]).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_null_is_the_best_constant_answer(classes):
    gold, probabilities = simulated_answers(50, classes, 3)
    found = concluded(answers(gold, probabilities))
    average = "binary" if classes == 2 else "macro"
    constant = [np.full(50, index) for index in range(classes)]
    best = max(metrics.f1_score(gold, answer, average=average, zero_division=0) for answer in constant)
    assert one(found, "f1")["null"] == pytest.approx(best)
    assert one(found, "accuracy")["null"] == max(metrics.accuracy_score(gold, answer) for answer in constant)


def test_the_estimate_is_the_mean_over_trained_seeds_only():
    rows = pd.concat(
        [
            answers(*simulated_answers(60, 2, 0), seed=0),
            answers(*simulated_answers(60, 2, 1), seed=1),
            answers(*simulated_answers(60, 2, 9), subject="untrained"),
        ],
        ignore_index=True,
    )
    found = concluded(rows)
    for measure in performance.MEASURES:
        each = [scores(*simulated_answers(60, 2, seed))[measure] for seed in (0, 1)]
        assert one(found, measure)["estimate"] == pytest.approx(np.mean(each))
        assert one(found, measure)["seed_std"] == pytest.approx(abs(each[0] - each[1]) / math.sqrt(2))
    assert (found["interval"] == "seeds, instances").all() and (found["seeds"] == 2).all()
    pd.testing.assert_frame_equal(found, concluded(rows[rows["subject"] == "trained"]))


def test_seeds_that_answer_alike_tell_no_more_than_one():
    rows = answers(*simulated_answers(60, 2, 0))
    alike = concluded(pd.concat([rows.assign(seed=seed) for seed in range(8)]))
    alone = concluded(rows)
    np.testing.assert_allclose(alike["estimate"], alone["estimate"])
    np.testing.assert_allclose(alike["seed_std"], 0, atol=1e-12)
    # Were texts drawn anew for each seed, eight seeds would shrink the width to about half.
    np.testing.assert_allclose(alike["high"] - alike["low"], alone["high"] - alone["low"], rtol=0.15)


def test_one_gold_class_leaves_auc_undefined_and_says_so():
    found = concluded(answers([0, 0], [[0.9, 0.1], [0.2, 0.8]]))
    auc = one(found, "auc")
    assert math.isnan(auc["estimate"]) and math.isnan(auc["low"]) and auc["n"] == 0
    assert (auc["excluded"], auc["why"]) == (2, "all gold labels alike: nothing to rank")
    assert one(found, "f1")["estimate"] == 0  # "yes" was predicted, never right
    assert one(found, "accuracy")["estimate"] == 0.5


def test_outputs_that_are_not_numbers_are_counted():
    found = concluded(
        answers([0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [math.nan, math.nan], [0.3, 0.7]]),
    )
    overall = one(found, "accuracy")
    assert overall["estimate"] == pytest.approx(2 / 3) and overall["n"] == 3
    assert (overall["excluded"], overall["why"]) == (1, "the output is not a number")


def test_the_stored_answer_decides_where_probabilities_tie():
    rows = answers([0, 1, 1], [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    rows.loc[1, "predicted"] = "yes"
    assert one(concluded(rows), "accuracy")["estimate"] == 1


def test_an_answer_that_is_never_gold_is_still_an_answer():
    rows = answers([0, 0, 1, 1], [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.1, 0.8, 0.1], [0.2, 0.7, 0.1]])
    gold, predicted = [0, 0, 1, 1], [0, 2, 1, 1]
    expected = metrics.f1_score(gold, predicted, average="macro", labels=[0, 1, 2], zero_division=0)
    assert one(concluded(rows), "f1")["estimate"] == pytest.approx(expected)
