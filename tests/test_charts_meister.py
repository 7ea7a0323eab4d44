"""Figures of Meister et al.: drawn is what rows and findings say; where there is nothing, a sentence."""

import json
import math
from functools import partial

import pandas as pd
import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from attentest.charts.context import ModelPoint, context_scatter
from attentest.compare.points import grid_points
from attentest.compare.stored import Stored
from attentest.experiments.frozen_adversary import conclude as frozen_adversary
from attentest.experiments.sparsity import conclude as sparsity
from attentest.gallery.studying import across
from attentest.refusal import Refusal
from attentest.studies.recipe import load_study
from tests import every_chart as charts
from tests.drawn import layers, spec
from tests.gallery import put, put_corpus
from tests.observed import concluded, one
from tests.observed_dispersion import dispersion_rows, dispersion_texts
from tests.observed_meister import LAMBDAS, frozen_adversary_rows, sparsity_rows, sparsity_texts

MADE = {"sparsity": (sparsity_rows, sparsity), "frozen": (frozen_adversary_rows, frozen_adversary)}
FIGURES = {
    "states": (charts.inputs_and_states, dispersion_rows, None),
    "states-loo": (partial(charts.inputs_and_states, importance="loo"), dispersion_rows, None),
    "entropies": (charts.sparsity_entropies, sparsity_rows, None),
    "entropies-loo": (partial(charts.sparsity_entropies, importance="loo"), sparsity_rows, None),
    "tau": (charts.agreement_by_lambda, sparsity_rows, "sparsity"),
    "tau-on-support": (partial(charts.agreement_by_lambda, where="-on-support"), sparsity_rows, "sparsity"),
    "realised": (charts.entropy_by_realised, sparsity_rows, "sparsity"),
    "curves": (charts.frozen_curves, frozen_adversary_rows, "frozen"),
}


@pytest.fixture(scope="module")
def findings():
    return {name: concluded(rows(), module.conclude) for name, (rows, module) in MADE.items()}


@pytest.fixture(params=FIGURES)
def figure(request, findings):
    """A function that draws the figure of rows, with their findings where it needs them."""
    draw, rows, found = FIGURES[request.param]
    table = rows()
    if found is None:
        return table, draw
    return table, lambda rows, **said: draw(
        rows, findings[found] if len(rows) else findings[found].iloc[:0], **said
    )


def test_every_figure_becomes_a_picture_with_its_counts(figure):
    table, draw = figure
    svg = charts.to_svg(draw(table, title="\u202e<script>\x1b", subtitle="test split"))
    assert svg.startswith("<svg") and "test split" in svg and "over 2 seeds" in svg
    assert "<script" not in svg and "&lt;script" in svg and "\u202e" not in svg and "\x1b" not in svg
    assert "t0001" not in svg, "no text is named"


def test_where_there_is_nothing_a_sentence_says_why(figure):
    table, draw = figure
    for rows in (pd.DataFrame(), table.iloc[:0]):
        said = json.dumps(spec(draw(rows, title="SST", subtitle="test")))
        assert "SST" in said and "No text " in said


def test_rows_of_another_experiment_are_refused(figure):
    _, draw = figure
    with pytest.raises(Refusal, match="no column"):
        draw(pd.DataFrame({"seed": [0], "id": ["t"]}))


def test_tau_stands_at_its_lambda_within_a_band_of_texts(findings):
    found = findings["sparsity"]
    drawn = layers(charts.agreement_by_lambda(sparsity_rows(), found))[0]
    points = [point for point in drawn if point["importance"] == "gradient importance"]
    assert [point["lambda"] for point in points] == sorted(LAMBDAS)
    for point in points:
        said = one(found, "tau-gradient", f"lambda {point['lambda']:g}")
        assert point["x"] == pytest.approx(-math.log10(1 - point["lambda"]), abs=1e-5)
        assert point["estimate"] == pytest.approx(said["estimate"], rel=1e-5)
        assert point["bottom"] == pytest.approx(max(-1, said["estimate"] - said["std"]), rel=1e-4)
        assert point["null"] == pytest.approx(said["null"], rel=1e-5)


def test_a_subject_that_is_sparse_itself_is_a_point_of_the_sweep():
    rows = pd.concat(
        [
            sparsity_texts(3, number=0.0),
            sparsity_texts(3, subject="softmax"),
            sparsity_texts(3, subject="lambda 0.6", number=0.6),
        ]
    )
    found = concluded(rows, sparsity.conclude)
    drawn = layers(charts.agreement_by_lambda(rows, found))[0]
    assert sorted({point["lambda"] for point in drawn}) == [0.0, 0.6]
    lanes = spec(charts.sparsity_entropies(rows))["layer"][0]["encoding"]["y"]["axis"]["labelExpr"]
    assert lanes.index("softmax") < lanes.index("λ = 0") < lanes.index("λ = 0.6")


def test_importance_is_drawn_against_the_sparsity_there_is(findings):
    found = findings["sparsity"]
    drawn = layers(charts.entropy_by_realised(sparsity_rows(), found))[0]
    trained = [point for point in drawn if point["kind"] == "trained"]
    assert len(trained) == len(drawn) / 2 == 2 * len(LAMBDAS)
    place = next(p for p in trained if p["label"] == "λ 0.6" and p["importance"].startswith("leave"))
    assert place["x"] == pytest.approx(one(found, "support-share", "lambda 0.6")["estimate"], rel=1e-5)
    assert place["y"] == pytest.approx(one(found, "entropy-loo", "lambda 0.6")["estimate"], rel=1e-5)


def test_frozen_curves_start_at_the_base_and_go_along_lambda(findings):
    found = findings["frozen"]
    drawn = layers(charts.frozen_curves(frozen_adversary_rows(), found))
    points = [point for point in drawn[1] if point["kind"] == "attention alone is trained"]
    assert [point["lambda"] for point in points] == [-1.0, 0.001, 0.01] and points[0]["x"] == 0
    assert points[2]["x"] == pytest.approx(0.69)
    luck = one(found, "accuracy-change", "frozen lambda 0.01")["null"]
    assert drawn[0] == [{"y": pytest.approx(luck, abs=1e-6)}]


def test_a_lane_of_equal_values_has_a_median_and_no_shape():
    rows = dispersion_texts(4, tau_inputs_gradient=[0.1, 0.2, 0.3, math.nan])
    whole = json.dumps(spec(charts.inputs_and_states(rows)), ensure_ascii=False)
    assert "hidden states, where attention has weight" in whole and "1 undefined and left out" in whole
    assert charts.to_svg(charts.inputs_and_states(dispersion_texts(3))).startswith("<svg")


def model(spread, excess, name="bilstm + additive", corpus="sst"):
    return ModelPoint(
        corpus=corpus, model=name, spread=spread, excess=excess, low=excess - 0.1, high=math.nan
    )


def test_models_are_points_with_their_correlation():
    models = [model(0.9, 0.1), model(0.5, 0.3, "<b>"), model(0.1, 0.2, corpus="imdb"), model(math.nan, 0.5)]
    chart = context_scatter(models, title="T", subtitle="S")
    assert [(p["x"], p["y"], p["low"], p["high"]) for p in layers(chart)[1]] == [
        (0.9, 0.1, 0.0, 0.1),
        (0.5, 0.3, 0.2, 0.3),
        (0.1, 0.2, 0.1, 0.2),
    ]
    assert "3 models; Spearman's ρ = -0.50" in json.dumps(spec(chart), ensure_ascii=False)
    assert "<b>" not in charts.to_svg(chart)
    for few in ([], [model(math.nan, 1.0)]):
        assert "No model has both numbers." in json.dumps(spec(context_scatter(few)))
    assert "Spearman" not in json.dumps(spec(context_scatter([model(0.5, 0.1), model(0.5, 0.2)])))


def test_the_page_of_a_study_places_every_model_that_was_asked(store):
    corpus = put_corpus(store)
    cells = [put(store, "dispersion", corpus, encoder=encoder) for encoder in ("bilstm", "cnn")]
    put(store, "permutation", corpus, encoder="average")
    points = grid_points(Stored(store))
    (picture,) = across(load_study("meister-2021"), points)
    drawn = next(rows for rows in picture.spec["datasets"].values() if rows and "model" in rows[0])
    assert [row["model"] for row in drawn] == ["bilstm + additive", "cnn + additive"]
    table = next(f.table for f in Stored(store).every if f.cell.key == cells[0].key)
    tau, spread = one(table, "tau-inputs-gradient"), one(table, "entropy-influence")
    assert drawn[0]["x"] == pytest.approx(spread["estimate"], rel=1e-5)
    assert drawn[0]["y"] == pytest.approx(tau["estimate"] - tau["null"], rel=1e-4)
    assert set(picture.files) == {"figures/across-context.svg", "data/figures-across-context.js"}
    assert not [*across(load_study("demo"), points)], "it does not ask for dispersion"
    asked_nothing = [point for point in points if point.of("dispersion") is None]
    assert asked_nothing and not [*across(load_study("meister-2021"), asked_nothing)]
