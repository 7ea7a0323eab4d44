"""Figures of information by rank, and what a study's page says over all its settings."""

import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from attentest.charts.information import KINDS
from attentest.charts.rank_groups import MADE, RankedText
from attentest.compare.formats import FORMATS
from attentest.compare.over_settings import OURS, changes, flatness, over_settings, trainings
from attentest.compare.pairs import OVER_SETTINGS
from attentest.compare.points import grid_points
from attentest.compare.stored import Stored
from attentest.compare.table import compare
from attentest.experiments.information import conclude as information
from attentest.experiments.information_ablation import conclude as ablation
from attentest.experiments.information_sensitivity import conclude as sensitivity
from attentest.experiments.shared import orders
from attentest.gallery.study_pictures import study_pictures
from attentest.refusal import Refusal
from attentest.store.store import Store
from attentest.studies.published import PublishedNumber, load_published
from attentest.studies.recipe import load_study
from attentest.terminal.comparisons import WIDTH, show_comparison
from tests import every_chart as charts
from tests.drawn import layers, words
from tests.gallery import put, put_corpus
from tests.observed import concluded, one
from tests.observed_information import (
    ablation_rows,
    ablation_texts,
    information_rows,
    information_texts,
    sensitivity_rows,
)

FROM_FINDINGS = {
    "curves": (charts.information_curves, information_rows, information),
    "orders": (charts.information_orders, information_rows, information),
    "taus": (charts.ablation_taus, ablation_rows, ablation),
    "lost": (charts.ablation_losses, ablation_rows, ablation),
    "apart": (charts.ablation_scores, ablation_rows, ablation),
    "flatness": (charts.ablation_flatness, ablation_rows, ablation),
    "sensitivity": (charts.sensitivity_taus, sensitivity_rows, sensitivity),
}


@pytest.fixture(scope="module")
def findings():
    """The findings of all rows made by hand, each concluded once."""
    modules = {module: rows for _, rows, module in FROM_FINDINGS.values()}
    return {module: concluded(rows(), module.conclude) for module, rows in modules.items()}


@pytest.mark.parametrize("name", FROM_FINDINGS)
def test_every_figure_is_drawn_with_its_counts_and_holds_no_texts(name, findings):
    draw, _, module = FROM_FINDINGS[name]
    chart = draw(findings[module], title="\u202e<script>\x1b", subtitle="test split")
    svg = charts.to_svg(chart)
    assert svg.startswith("<svg") and "test split" in svg and "over 2 seeds" in svg
    assert "<script" not in svg and "&lt;script" in svg and "\u202e" not in svg and "\x1b" not in svg
    assert "t0001" not in words(chart) and len(words(chart)) < 120_000


@pytest.mark.parametrize("name", FROM_FINDINGS)
def test_where_there_is_nothing_a_sentence_says_why_and_other_tables_are_refused(name, findings):
    draw, _, module = FROM_FINDINGS[name]
    for table in (pd.DataFrame(), findings[module].iloc[:0]):
        assert "No text " in words(draw(table, title="SST"))
    with pytest.raises(Refusal, match="no column"):
        draw(pd.DataFrame({"measure": ["tau"]}))


def test_curves_hold_what_each_rank_tells_and_both_nulls(findings):
    found = findings[information]
    drawn = pd.DataFrame(layers(charts.information_curves(found))[0]).set_index(["kind", "rank"])["told"]
    for rank in (1, 2, 3, 4):
        for measure, kinds in (("mi", ("mi", "floor")), ("mi-joint", ("joint", "dealt"))):
            own = one(found, f"{measure}@{rank}")
            for kind, column in zip(kinds, ("estimate", "null"), strict=True):
                assert drawn[KINDS[kind][0], rank] == pytest.approx(own[column], rel=1e-5)
    assert len(drawn) == 16


def test_what_each_sibling_loses_is_drawn_where_it_is(findings):
    found = findings[ablation]
    dots = layers(charts.ablation_losses(found))[-1]
    assert "the model itself" not in {dot["group"] for dot in dots}
    for dot in dots:
        if dot["measure"] == "τ lost":
            assert dot["estimate"] == pytest.approx(
                one(found, "tau-lost", dot["group"])["estimate"], rel=1e-5
            )
    assert len(dots) == 20


def test_the_diagram_puts_the_largest_weight_first():
    chart = charts.rank_groups(title="ranks")
    said = words(chart)
    firsts = [text.by_weight()[0][0] for text in MADE]
    assert firsts == ["great", "dull", "charm"] and all(f'"{word}"' in said for word in firsts)
    assert "mean 0.60" in said  # of 0.6, 0.7 and 0.5
    for text in MADE:
        assert sum(text.weights) == pytest.approx(1)
    evil = [RankedText(("<script>", "\x1b"), (0.4, 0.6), "no")] * 2
    assert "<script" not in charts.to_svg(charts.rank_groups(evil))
    assert RankedText(("a", "b"), (0.5, 0.5), "no").by_weight() == [("a", 0.5), ("b", 0.5)]


@pytest.mark.parametrize(
    "texts", [[], [MADE[0], RankedText(("a",), (1.0,), "no")], [RankedText(("a",), (), "no")]]
)
def test_a_diagram_of_uneven_texts_is_refused(texts):
    with pytest.raises(Refusal, match="diagram of ranks"):
        charts.rank_groups(texts)


# --- over settings


def settings(**columns):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        [
            {"corpus": corpus, "encoder": encoder, "attention": attention, "seed": seed}
            for corpus in ("sst", "babi-1")
            for encoder in ("bilstm", "cnn-wen")
            for attention in ("additive", "dot")
            for seed in range(3)
        ]
    )
    entropy = rng.uniform(0.2, 0.9, len(table))
    return table.assign(tau=1 - entropy, entropy=entropy).assign(**columns)


def test_boxes_and_scatter_show_every_training_that_has_a_tau():
    table = settings()
    table.loc[0, "tau"] = math.nan
    boxes = charts.tau_boxes(table, title="b")
    assert len(layers(boxes)[1]) == len(table) - 1 and "1 undefined" in words(boxes)
    finding = flatness(table, np.random.default_rng(0))
    assert finding.estimate == pytest.approx(-1) and finding.excluded == 1
    scatter = charts.flatness_scatter(table, finding)
    assert "ρ = -1.00" in words(scatter) and len(layers(scatter)[1]) == len(table) - 1
    for draw in (charts.tau_boxes, lambda t: charts.flatness_scatter(t, None)):
        assert "No text " in words(draw(settings(tau=math.nan)))
        assert charts.to_svg(draw(settings(corpus="<script>"))).count("<script") == 0
    assert flatness(table.iloc[:0], np.random.default_rng(0)) is None
    lonely = flatness(table[table["encoder"] == "none"].iloc[:0], np.random.default_rng(0))
    assert lonely is None


@pytest.fixture
def store(tmp_path):
    """Two corpora; on one, Gumbel-softmax loses all."""
    kept = Store(str(tmp_path / "store"))
    up, down = (1.0, 0.6, 0.3, 0.0), (0.0, 0.3, 0.6, 1.0)
    for name, gumbel in (("sst", up), ("babi-1", down)):
        corpus = put_corpus(kept, name)
        rows = [information_texts(60, seed, faithful=up) for seed in (0, 1)]
        put(kept, "information", corpus, pd.concat(rows, ignore_index=True))
        rows = [ablation_texts(60, seed, faithful=up) for seed in (0, 1)]
        rows += [ablation_texts(60, seed, "gumbel 0.8", gumbel) for seed in (0, 1)]
        parameters = {"lambdas": "5.25e-4" if name == "sst" else "5e-4"}
        put(kept, "information-ablation", corpus, pd.concat(rows, ignore_index=True), parameters=parameters)
    return str(tmp_path / "store")


def test_trainings_and_changes_come_from_the_store(store):
    study, points = load_study("wen-2022"), grid_points(Stored(Store(store)))
    table = trainings(study, points)
    assert len(table) == 4 and table["tau"].tolist() == pytest.approx([1.0] * 4)
    assert table["entropy"].tolist() == pytest.approx([0.7] * 4)
    lost = changes(study, points).set_index("corpus")["lost"]
    assert lost["sst"] == pytest.approx(0) and lost["babi-1"] == pytest.approx(2)
    assert trainings(load_study("demo"), points).empty


def test_published_averages_and_counts_are_laid_beside_ours(store):
    study, points = load_study("wen-2022"), grid_points(Stored(Store(store)))
    rows = {
        (row.measure, row.dataset, row.model, row.attention): row
        for row in over_settings(study, load_published("wen-2022"), points)
    }
    assert len(rows) == 16 + 7 + 2
    additive = rows["mean_weighted_tau", "all", "all", "additive"]
    assert (additive.published, additive.settings) == (0.8, 2) and additive.ours == pytest.approx(1)
    assert math.isnan(rows["mean_weighted_tau", "all", "all", "dot"].ours)
    assert math.isnan(rows["mean_weighted_tau", "all", "CNN", "additive"].ours)
    assert rows["mean_weighted_tau", "all", "BiLSTM", "additive"].settings == 2
    counted = {
        task: rows["n_settings_tau_not_decreased", task, "all", "all"] for task in ("Classification", "QA")
    }
    assert [(row.ours, row.settings) for row in counted.values()] == [(1, 1), (0, 1)]
    total = rows["n_settings_tau_not_decreased", "Total(printed as Average)", "all", "additive"]
    assert (total.published, total.ours, total.settings) == (31, 1, 2)
    assert rows["mean_abs_tau_diff_between_seeds", "all", "BiLSTM", "additive"].ours == pytest.approx(0)
    document = compare("wen-2022", store, {})
    assert len(document["over_settings"]) == 25 and "NaN" not in json.dumps(document)
    assert compare("jain-wallace-2019", store, {})["over_settings"] == []


def test_a_setting_counts_once_however_many_seeds_it_has():
    taus = {"sst": [0.0, 0.2, 0.1, 0.1, 0.1], "imdb": [0.9, 0.8, 1.0], "snli": [0.6]}
    rows = [
        (corpus, "bilstm", "dot", seed, tau, 0.5) for corpus in taus for seed, tau in enumerate(taus[corpus])
    ]
    table = pd.DataFrame(rows, columns=["corpus", "encoder", "attention", "seed", "tau", "entropy"])
    ours, low, high = OURS["mean_weighted_tau"](table)
    assert ours == pytest.approx((0.1 + 0.9 + 0.6) / 3)
    error = np.std([0.1, 0.9, 0.6], ddof=1) / np.sqrt(3)  # settings differ far more than seeds, and are three
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 2, ours, error), abs=0.01)
    one_seed = OURS["mean_weighted_tau"](table[table["seed"] == 0])
    assert one_seed[0] == pytest.approx(0.5) and one_seed[1] < 0.3 < 0.7 < one_seed[2]
    assert math.isnan(OURS["mean_weighted_tau"](table[table["corpus"] == "snli"])[1])
    pairs = [0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0, 0, 0], [0.1, 0.1, 0.2]
    mean = OURS["mean_abs_tau_diff_between_seeds"](table)[0]
    assert mean == pytest.approx((np.mean(pairs[0]) + np.mean(pairs[1])) / 2)
    assert OURS["max_tau_diff_between_seeds"](table)[0] == pytest.approx(0.2)


def test_every_number_over_settings_is_shown_and_none_is_compared_twice():
    numbers = load_published("wen-2022")
    printed = {n["measure"] for n in numbers if n["table"] in ("Table5", "text_sec5")}
    shown = {row.measure for row in over_settings(load_study("wen-2022"), numbers, [])}
    assert printed - shown == {"n_settings_total"}  # how many there are stands beside ours anyway


def test_the_page_of_the_study_draws_its_settings(store):
    study, points = load_study("wen-2022"), grid_points(Stored(Store(store)))
    drawn = list(study_pictures(study, points))
    assert [picture.file.rpartition("/")[2] for picture in drawn] == [
        "rank-groups.svg",
        "study-wen-2022-taus-0.svg",
        "study-wen-2022-taus-1.svg",
        "study-wen-2022-flatness.svg",
    ]
    assert all(picture.svg.startswith("<svg") for picture in drawn)
    assert len(list(study_pictures(study, []))) == 1
    assert not list(study_pictures(load_study("jain-wallace-2019"), points))


def test_a_picture_needs_no_draws_to_know_tau():
    rows = information_texts(80, faithful=(0.9, 0.2, 0.6, 0.1))
    assert orders.tau_of(rows) == one(concluded(rows, information.conclude), "tau")["estimate"]
    assert math.isnan(orders.tau_of(rows.assign(output=0)))
    assert math.isnan(orders.tau_of(rows.assign(output=-1)))


def test_a_number_of_another_study_is_not_over_settings():
    words = dict.fromkeys(("paper", "table", "dataset", "model", "attention", "projection", "class"), "x")
    number = PublishedNumber(
        words={**words, "measure": "f1"}, value=1.0, std=math.nan, rounding=0.005, source=""
    )
    assert over_settings(load_study("wen-2022"), [number], []) == []


def test_averages_are_in_every_format(store):
    document = compare("wen-2022", store, {})
    said = "mean_weighted_tau"
    assert f"| {said} | all | all | additive | 0.80 | 1.000 |" in FORMATS["markdown"](document).replace(
        "\\_", "_"
    )
    assert OVER_SETTINGS in FORMATS["latex"](document)
    assert len(json.loads(FORMATS["json"](document))["over_settings"]) == 25
    console = Console(file=io.StringIO(), width=80)
    show_comparison(document, console)
    shown = console.file.getvalue()
    assert "mean_weighted" in shown and OVER_SETTINGS in shown
    assert max(map(len, shown.splitlines())) <= WIDTH
