"""Trained adversaries (WP-4): the sweep, the points beside it, the curve, and a whole run from cells."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from attentest.bench.plan import Planner
from attentest.bench.work import do
from attentest.claims.claims import Claim
from attentest.experiments.cards import card
from attentest.experiments.guided import conclude as guided
from attentest.experiments.observers import experiment
from attentest.experiments.trained_adversary import conclude as trained_adversary
from attentest.experiments.trained_adversary.conclude import Plane, above_envelope
from attentest.experiments.trained_adversary.observe import TrainedAdversary, sweep
from attentest.model.config import ModelConfig
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from attentest.statistics.comparison import jensen_shannon, total_variation
from attentest.store.tables import from_parquet
from attentest.studies.published import load_published
from attentest.studies.recipe import load_study
from tests.observed import concluded, one
from tests.observed_wiegreffe_pinter import apart, observed, trained_adversary_rows
from tests.toys import toy_batch, toy_corpus

QUICK = {"lambdas": "0 1e-3", "others": 2, "searched": 3, "programmed": 2, "steps": 20}
POINTS = {
    "trained",
    "lambda 0",
    "lambda 0.001",
    "seed 1",
    "seed 2",
    "uniform",
    "untrained",
    "shuffled labels",
}


def test_one_sibling_a_lambda_and_those_of_the_other_experiments():
    siblings = TrainedAdversary().siblings(ModelConfig(seed=1, hidden=8))
    adversaries = [name for name in siblings if name.startswith("lambda ")]
    assert adversaries[4] == "lambda 0.000525" and len(adversaries) == 10
    expected = ModelConfig(seed=1, hidden=8, loss="imitate(subject, 0.000525)", epochs=80, patience=10)
    assert siblings[adversaries[4]] == expected
    assert [name for name in siblings if name.startswith("seed ")] == [f"seed {n}" for n in (0, *range(2, 9))]
    assert siblings["uniform"] == ModelConfig(seed=1, hidden=8, projection="uniform")
    assert siblings["untrained"].epochs == 0 and siblings["shuffled labels"].labels == "shuffled-all"


@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "so", "yes")], ids=["two classes", "three"])
def test_rows_place_every_model_and_every_adversary_of_a_text(labels):
    corpus = toy_corpus(labels=labels)
    rows, models = observed(TrainedAdversary(**QUICK), corpus)
    counts = rows["subject"].value_counts().to_dict()
    solved = 6 if len(labels) == 2 else 2
    assert counts == {**dict.fromkeys(POINTS, 6), "exact": solved, "search": 3}
    numbers = dict(zip(rows["subject"], rows["lambda"], strict=True))
    assert (numbers["lambda 0"], numbers["lambda 0.001"]) == (0, 0.001) and math.isnan(numbers["seed 1"])
    with torch.no_grad():
        batch = toy_batch(models["trained"], corpus)
        readings = {name: models[name].read(batch) for name in ("trained", "lambda 0.001", "uniform")}
        outputs = {n: distribution(models[n].decide(r)).numpy() for n, r in readings.items()}
    for name in ("lambda 0.001", "uniform", "trained"):
        told = rows[rows["subject"] == name].set_index("id")
        for place, example in enumerate(corpus.test):
            pair = [readings[who].weights[place, : len(example.tokens)] for who in ("trained", name)]
            jsd = jensen_shannon(*pair) if len(example.tokens) > 1 else math.nan
            assert told.loc[example.id, "jsd"] == pytest.approx(jsd, abs=1e-6, nan_ok=True)
            tvd = total_variation(outputs["trained"][place], outputs[name][place])
            assert told.loc[example.id, "tvd"] == pytest.approx(tvd, abs=1e-6)
    for name in ("exact", "search"):
        found = rows[(rows["subject"] == name) & (rows["length"] > 1)]
        assert (found["tvd"] <= 0.01 + 1e-6).all() and (found["jsd"] > 0).all()


def test_a_decision_that_is_not_affine_has_no_exact_point_and_nothing_need_be_searched():
    rows, _ = observed(TrainedAdversary(**{**QUICK, "searched": 0}), toy_corpus(query=True))
    assert set(rows["subject"]) == POINTS
    findings = concluded(rows.assign(seed=0), trained_adversary.conclude)
    assert not set(findings["group"]) & {"exact", "search"}


def test_the_modes_differ_in_the_search_alone():
    corpus, step = toy_corpus(), {**QUICK, "steps": 60, "searched": 6}
    (rows, _), (published, _) = (
        observed(TrainedAdversary(**step, mode=mode), corpus) for mode in ("corrected", "as-published")
    )
    searched = rows["subject"] == "search"
    pd.testing.assert_frame_equal(rows[~searched], published[~searched])
    assert not np.allclose(rows[searched]["jsd"], published[searched]["jsd"], equal_nan=True)


def plane(jsd, tvd):
    return Plane(np.arange(len(jsd)).astype(str), np.array(jsd, dtype=float), np.array(tvd, dtype=float))


def test_a_point_is_held_against_the_curve_of_the_means():
    """Two texts, a sweep of means (0.2, 0.1) and (0.4, 0.3), and a point of mean (0.3, 0.05) under it."""
    held = plane([[0.1, 0.3, 0.2], [0.3, 0.5, 0.4]], [[0.0, 0.2, 0.0], [0.2, 0.4, 0.1]])
    weights = np.array([[1.0, 1.0], [2.0, 0.0]])
    assert above_envelope(held, weights) == pytest.approx([0.05 - 0.2, 0.0 - 0.1])


def test_findings_by_hand():
    def point(subject, jsd, tvd, number=math.nan):
        return apart(2, subject=subject, jsd=jsd, tvd=tvd, **{"lambda": number})

    rows = pd.concat(
        [
            point("trained", 0.0, 0.0),
            point("lambda 0.001", [0.3, 0.5], [0.2, 0.4], 0.001),
            point("lambda 0.0001", [0.1, 0.3], [0.0, 0.2], 0.0001),
            point("lambda 0", [0.2, 0.4], [0.5, 0.7], 0.0),
            point("seed 1", [0.0, 0.2], [0.3, 0.3]),
            point("seed 2", [0.2, 0.4], [0.1, 0.5]),
            point("exact", [0.5, math.nan], [0.01, 0.01]),
            point("untrained", 0.6, 0.9),
        ]
    )
    rows.loc[rows["id"] == "t0001", "base_predicted"] = "no"
    findings = concluded(rows, trained_adversary.conclude)

    def told(measure, group):
        return tuple(one(findings, measure, group)[["estimate", "null"]])

    assert told("attention-jsd", "lambda 0.001") == pytest.approx((0.4, 0.2))
    assert told("output-tvd", "lambda 0.001") == pytest.approx((0.3, 0.3))
    assert told("output-tvd-halved", "lambda 0.001") == pytest.approx((0.15, 0.15))
    assert told("attention-jsd", "other seeds") == pytest.approx((0.2, math.nan), nan_ok=True)
    assert told("attention-jsd", "lambda 0.001, predicted=no") == pytest.approx((0.5, 0.3))
    above = {
        "lambda 0": 0.4,  # at 0.3 the others' line is 0.2 high
        "lambda 0.0001": 0.0,
        "lambda 0.001": 0.0,
        "other seeds": 0.2,
        "exact": 0.01 - 0.4,  # the first text alone: from (0.1, 0) to (0.3, 0.2), and on to 0.5
        "untrained": 0.9 - 0.5,
    }
    for group, expected in above.items():
        assert told("tvd-above-envelope", group) == pytest.approx((expected, 0.0), abs=1e-12), group
    exact = one(findings, "tvd-above-envelope", "exact")
    assert (exact["n"], exact["excluded"]) == (1, 1) and exact["why"].startswith("one token, or not numbers")
    order = findings.loc[findings["measure"] == "tvd-above-envelope", "group"].tolist()
    assert order[:4] == ["lambda 0", "lambda 0.0001", "lambda 0.001", "other seeds"]
    assert {"f1", "accuracy"} <= set(findings.loc[findings["group"] == "trained", "measure"])


def test_a_sweep_of_one_lambda_has_no_curve():
    rows = pd.concat(
        [apart(3), apart(3, subject="lambda 0", jsd=0.2, tvd=0.1), apart(3, subject="exact", jsd=0.6)]
    )
    rows.loc[rows["subject"] == "lambda 0", "lambda"] = 0.0
    exact = one(concluded(rows, trained_adversary.conclude), "tvd-above-envelope", "exact")
    assert math.isnan(exact["estimate"]) and exact["excluded"] == 3 and "one lambda" in exact["why"]


def test_rows_of_the_house():
    findings = concluded(trained_adversary_rows(), trained_adversary.conclude)
    overall = findings[~findings["group"].str.contains("predicted=")]
    assert len(overall[overall["measure"] == "attention-jsd"]) == 9


@pytest.mark.parametrize(
    "written", ["", "0 x", "-1", "nan", "inf", "0.1 1e-1", "0,1", "0.1234567 0.12345671"]
)
def test_lambdas_that_cannot_be_read_are_refused(written):
    with pytest.raises(Refusal, match="different numbers of at least 0, separated by spaces"):
        TrainedAdversary(lambdas=written)


def test_other_numbers_that_cannot_be_are_refused():
    for wrong in ({"others": 0}, {"searched": -1}, {"programmed": -1}):
        with pytest.raises(Refusal, match="at least 1 other seed"):
            TrainedAdversary(**wrong)
    with pytest.raises(Refusal, match="at least 1"):
        TrainedAdversary(steps=0)
    with pytest.raises(Refusal, match="a value like"):
        experiment("trained-adversary", "corrected", {"lambdas": [0.1]})
    assert sweep(" 0  1e-3 ") == [0.0, 0.001]


def test_the_study_asks_for_what_is_measured():
    study = load_study("wiegreffe-pinter-2019")
    for written in study.claim:
        claim = Claim(**written.model_dump())
        assert card(*claim.parts[:2]) and set(claim.where.get("corpus", [])) <= set(study.grid.corpus)
    for step in study.experiment:
        experiment(step.name, step.mode, step.parameters)
    numbers = load_published("wiegreffe-pinter-2019")
    assert {number["table"] for number in numbers} == {"Table1", "Table2", "Table3", "Table4", "code_seeds"}
    assert sum(number.source.startswith("recalled") for number in numbers) > 30


def test_two_experiments_share_their_adversary_and_it_looks_elsewhere(store, monkeypatch):
    monkeypatch.setattr("attentest.experiments.trained_adversary.observe.EPOCHS", 25)
    planner = Planner(store)
    corpus = planner.corpus("planted-keyword")
    do_all(planner, store, corpus)
    small = {"encoder": "average", "hidden": 16, "embedding": 12, "epochs": 8, "batch_size": 1000}
    config, where = planner.resolve(ModelConfig.of({**small, "learning_rate": 0.1}), corpus)
    swept = experiment("trained-adversary", "corrected", {**QUICK, "lambdas": "0.05", "others": 1})
    cells = [
        planner.observation(step, config, corpus, where)
        for step in (swept, experiment("guided", "corrected", {"adversary": 0.05}))
    ]
    assert cells[0].inputs["sibling.lambda 0.05"] == cells[1].inputs["sibling.trained adversary"]
    for cell in cells:
        do_all(planner, store, cell)
    sweep_rows, guided_rows = (from_parquet(store.read(c.key, "rows.parquet")).assign(seed=0) for c in cells)
    findings = concluded(sweep_rows, trained_adversary.conclude)
    jsd = one(findings, "attention-jsd", "lambda 0.05")
    assert jsd["estimate"] > 0.4 > 2 * jsd["null"], "further than another seed"
    assert one(findings, "output-tvd", "lambda 0.05")["estimate"] < 0.1
    findings = concluded(guided_rows, guided.conclude)
    assert one(findings, "accuracy", "guided by base")["estimate"] > 0.9
    assert one(findings, "accuracy", "trained")["estimate"] > 0.9


def do_all(planner, store, target):
    for key, cell in planner.missing([target]).items():
        store.plan(cell)
        do(key, store, "cpu")
