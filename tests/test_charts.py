"""The figures: what they draw is what the rows say, and there is always a picture."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from attentest.charts.style import MOST_POINTS, PALETTE, POOLED
from attentest.experiments.adversary.charts import EPSILONS
from attentest.refusal import Refusal
from tests import every_chart as charts
from tests.drawn import layers, spec, words

FIGURES = {
    "tau": charts.tau_histogram,
    "tau-loo": partial(charts.tau_histogram, importance="loo"),
    "permutation": charts.permutation_violins,
    "adversary": charts.adversary_violins,
    "jsd": charts.jsd_histogram,
    "jsd-last": partial(charts.jsd_histogram, variant="last", epsilon=0.05),
    "epsilon": charts.epsilon_curve,
    "differences": charts.tau_differences,
    "search": charts.search_against_exact,
    "length": charts.tau_by_length,
}
EVERY = pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
NUMBERS = [
    "tau_gradient",
    "swapped_tau_gradient",
    "permuted_tau_gradient",
    "tau_loo",
    "swapped_tau_loo",
    "permuted_tau_loo",
    "tau_gradient_loo",
    "median_change",
]
NUMBERS += [f"exact@{epsilon:g}" for epsilon in EPSILONS]
NUMBERS += [f"{name}@{e:g}" for e in (0.01, 0.05) for name in ("shuffled", "last", "best", "unpaired")]


def observed(n=60, labels=("bad", "good"), seeds=2, seed=0):
    """Rows as the experiments yield them: each text with everything, and the indices repeat."""
    rng = np.random.default_rng(seed)
    parts = []
    for subject in ("trained", "untrained", "shuffled labels"):
        for run in range(seeds):
            part = pd.DataFrame({name: rng.uniform(0, 0.69, n) for name in NUMBERS})
            part["predicted"] = rng.choice(labels, n)
            part["max_attention"], part["length"] = rng.uniform(0, 1, n), rng.integers(1, 400, n)
            parts.append(part.assign(seed=run, subject=subject, id=[f"t{k}" for k in range(n)], proved=True))
    return pd.concat(parts)


@EVERY
def test_every_figure_becomes_a_picture_with_its_title(figure):
    chart = figure(observed(), title="SST: BiLSTM", subtitle="test split")
    svg = charts.to_svg(chart)
    assert svg.startswith("<svg") and "SST: BiLSTM" in svg and "test split" in svg and "over 2 seeds" in svg


def test_a_picture_is_as_large_as_asked_for():
    chart = charts.tau_histogram(observed())
    small, large = charts.to_png(chart, scale=1.0), charts.to_png(chart)
    assert small.startswith(b"\x89PNG")
    width = [int.from_bytes(picture[16:20]) for picture in (small, large)]
    assert width[0] > 480 and width[1] == pytest.approx(2 * width[0], abs=2)


@EVERY
@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame(),
        observed().iloc[:0],
        observed().assign(**dict.fromkeys(NUMBERS, np.nan)),
        observed().assign(**dict.fromkeys(NUMBERS, None)),
        observed()[lambda rows: rows["subject"] == "nobody"],
    ],
    ids=["nothing", "no-rows", "all-nan", "all-none", "no-subject"],
)
def test_where_there_is_nothing_a_sentence_says_why(figure, rows):
    said = words(figure(rows, title="SST", subtitle="test"))
    assert "SST" in said and ("No text " in said or "Fewer than two texts" in said)


def test_the_sentence_is_drawn():
    svg = charts.to_svg(charts.tau_histogram(pd.DataFrame(), title="SST"))
    assert "No text has a Kendall" in svg and "SST" in svg


@EVERY
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_texts_is_drawn(figure, n):
    assert "n = " in words(figure(observed(n, seeds=1))) or (n == 1 and figure is charts.tau_differences)


@EVERY
def test_a_figure_holds_no_texts(figure):
    chart = words(figure(observed(3000, seeds=1)))
    assert len(chart) < 250_000 and '"t17"' not in chart


@pytest.mark.parametrize(
    "figure", [charts.tau_histogram, charts.permutation_violins, charts.search_against_exact]
)
def test_names_are_words_not_markup_or_commands(figure):
    evil = ("<script>alert(1)</script>", "\u202eevil\x1b[2J", "a'+datum.b+\"", "x" * 400)
    svg = charts.to_svg(figure(observed(labels=evil), title=evil[0], subtitle=evil[1]))
    assert "<script" not in svg and "\u202e" not in svg and "\x1b" not in svg and "&lt;script" in svg


@pytest.mark.parametrize("figure", [charts.jsd_histogram, charts.adversary_violins])
@pytest.mark.parametrize("asked", [{"variant": "exat"}, {"variant": "last", "epsilon": 0.02}])
def test_a_column_nobody_observed_is_refused(figure, asked):
    with pytest.raises(Refusal, match="no column"):
        figure(observed(), **asked)


# --- what is drawn


def bars(chart, group):
    return {round(r["from"], 3): r["share"] for r in layers(chart)[0] if r["group"] == group}


def test_histograms_are_normalised_within_the_predicted_class():
    rows = observed(4, seeds=1)
    rows["predicted"] = ["bad", "good", "good", "good"] * 3
    rows["tau_gradient"] = [0.51, 0.51, -1.0, 1.0] * 3
    chart = charts.tau_histogram(rows)
    bad, good = bars(chart, "bad"), bars(chart, "good")
    assert len(bad) == len(good) == 30 and sum(bad.values()) == pytest.approx(1)
    assert bad[0.467] == 1 and good[0.467] == good[-1.0] == good[0.933] == pytest.approx(1 / 3)


def test_the_null_is_an_outline_that_begins_and_ends_on_the_axis():
    rows = observed(50, labels=("one",), seeds=1).assign(permuted_tau_gradient=0.01, swapped_tau_gradient=0.0)
    corners = sorted(layers(charts.tau_histogram(rows))[1], key=lambda r: r["corner"])
    assert corners[0]["share"] == corners[-1]["share"] == 0 and (corners[0]["from"], corners[-1]["from"]) == (
        -1,
        1,
    )
    assert [r["from"] for r in corners if r["share"]] == [0] and max(r["share"] for r in corners) == 1


def test_jsd_has_forty_bins_up_to_its_end_and_no_null_where_none_was_shuffled():
    assert len(bars(charts.jsd_histogram(observed()), "bad")) == 40
    assert len(layers(charts.jsd_histogram(observed()))) == 2
    assert len(layers(charts.jsd_histogram(observed(), "exact", 0.1))) == 1


def colours(chart):
    for layer in spec(chart)["layer"]:
        scale = layer.get("encoding", {}).get("color", {}).get("scale")
        if scale:
            return dict(zip(scale["domain"], scale["range"], strict=True))
    return None


@pytest.mark.parametrize(
    "figure", [charts.tau_histogram, charts.permutation_violins, charts.search_against_exact]
)
def test_classes_have_the_papers_colours_in_the_order_of_the_corpus(figure):
    rows = observed(labels=("a", "b", "c"))
    assert colours(figure(rows)) == {"a": "#43406b", "b": "#d15a00", "c": "#27f77d"}
    assert list(colours(figure(rows, classes=("c", "b", "a")))) == ["c", "b", "a"]
    assert list(colours(figure(rows, pooled=True))) == [POOLED]
    many = observed(labels=[f"answer {n}" for n in range(len(PALETTE) + 1)])
    assert list(colours(figure(many))) == [POOLED], "there are no more colours"


def test_only_the_trained_model_is_drawn():
    rows = observed(20)
    others = rows["subject"] != "trained"
    changed = rows.assign(**{name: rows[name].mask(others, 0.01) for name in NUMBERS})
    for name in set(FIGURES) - {"epsilon"}:
        assert words(FIGURES[name](rows)) == words(FIGURES[name](changed))
    assert words(charts.epsilon_curve(rows)) != words(charts.epsilon_curve(changed))


def test_violins_stay_in_their_lanes_and_are_as_thick_as_each_other():
    body = pd.DataFrame(layers(charts.permutation_violins(observed(400)))[1])
    thickest = (body["y2"] - body["y"]).groupby([body["span"], body["group"]]).max()
    assert len(thickest) == 8 and thickest.to_numpy() == pytest.approx(thickest.iloc[0])
    lanes = body.groupby(["span", "group"]).agg(low=("y", "min"), high=("y2", "max")).sort_values("low")
    assert (lanes["high"].to_numpy()[:-1] < lanes["low"].to_numpy()[1:]).all()
    assert lanes["low"].min() > 0 and lanes["high"].max() < 4


def test_quartiles_lie_where_the_texts_have_them_and_lone_texts_are_points():
    rows = observed(9, labels=("one",), seeds=1).assign(max_attention=0.1)
    rows["median_change"] = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8] * 3
    rows.loc[rows.index == 8, "max_attention"] = 0.9
    _, body, lines, points, counts = layers(charts.permutation_violins(rows))
    assert {r["line"]: r["x"] for r in lines} == pytest.approx(
        {"lower quartile": 0.175, "median": 0.35, "upper quartile": 0.525}
    )
    assert [r["x"] for r in points] == [0.8] and {r["span"] for r in body} == {"[0.00, 0.25)"}
    assert [r["said"] for r in counts] == ["n = 8", "n = 1"]


def test_what_is_left_out_is_counted():
    rows = observed(60, seeds=1)
    rows.loc[rows.index < 7, ["median_change", "tau_gradient"]] = np.nan
    for figure in (charts.permutation_violins, charts.tau_histogram):
        assert "n = 53; 7 undefined and left out" in words(figure(rows))
    assert "8 undefined" in words(
        charts.permutation_violins(rows.assign(max_attention=rows["max_attention"].mask(rows.index == 9)))
    )


def test_the_curve_is_the_mean_of_each_subject():
    rows = observed()
    drawn = {(r["subject"], r["epsilon"]): r["mean"] for r in layers(charts.epsilon_curve(rows))[2]}
    for subject, texts in rows.groupby("subject"):
        for epsilon in EPSILONS:
            assert drawn.pop((subject, epsilon)) == pytest.approx(
                texts[f"exact@{epsilon:g}"].mean(), rel=1e-5
            )
    mine = rows[rows["subject"] == "trained"]
    null = {("weights shuffled over the tokens", e): mine[f"shuffled@{e:g}"].mean() for e in (0.01, 0.05)}
    assert drawn == pytest.approx(null, rel=1e-5)


def test_differences_are_taken_text_by_text():
    rows = observed(200, seeds=1)
    rows["tau_loo"] = rows["tau_gradient_loo"] - 0.25 - 0.01 * rows["tau_gradient"]
    curves = pd.DataFrame(layers(charts.tau_differences(rows))[1])
    less_loo = curves[curves["curve"].str.contains("attention, leave-one-out")]
    assert less_loo["at"].between(0.2, 0.3).all() and curves["curve"].nunique() == 3


def test_the_scatter_takes_the_best_search_and_a_fixed_sample():
    rows = observed(40, seeds=1)
    rows.loc[rows.index < 5, ["last@0.01", "best@0.01"]] = np.nan
    rows.loc[rows.index == 0, "unpaired@0.01"] = np.nan
    drawn = [(r["exact"], r["search"]) for r in layers(charts.search_against_exact(rows))[1]]
    mine = rows[rows["subject"] == "trained"].iloc[1:]
    best = mine[["last@0.01", "best@0.01", "unpaired@0.01"]].max(axis=1)
    expected = sorted(zip(mine["exact@0.01"], best, strict=True))
    assert np.array(sorted(drawn)) == pytest.approx(np.array(expected), rel=1e-5)
    many = observed(1500)
    assert len(layers(charts.search_against_exact(many))[1]) == MOST_POINTS
    said = words(charts.search_against_exact(many.assign(proved=False)))
    assert "n = 3,000 over 2 seeds, 2,000 of them drawn" in said and "3,000 optima are the best known" in said


def test_taus_by_length_are_means_with_their_null():
    rows = observed(4, seeds=1)
    rows["length"], rows["tau_gradient"] = [9, 10, 19, 320] * 3, [0.1, 0.2, 0.4, np.nan] * 3
    rows["swapped_tau_gradient"] = [0.0, 0.5, 0.7, 0.3] * 3
    rows["permuted_tau_gradient"] = 0.0
    drawn = {(r["length"], "null" in r["kind"]): r["mean"] for r in layers(charts.tau_by_length(rows))[1]}
    assert drawn == pytest.approx(
        {
            ("below 10|n = 1", False): 0.1,
            ("below 10|n = 1", True): 0.0,
            ("10–19|n = 2", False): 0.3,
            ("10–19|n = 2", True): 0.6,
            ("from 320|n = 1", True): 0.3,
        }
    )
