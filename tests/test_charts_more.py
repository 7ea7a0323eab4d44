"""Figures of removals, of other seeds and adversaries, of deception: drawn is what rows and findings say."""

import json
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

from attentest.charts.diagram import MADE, WeighedText
from attentest.charts.style import PALETTE
from attentest.experiments.deception import conclude as deception
from attentest.experiments.guided import conclude as guided
from attentest.experiments.removal import conclude as removal
from attentest.experiments.removal.charts import SHARES
from attentest.experiments.single_weight import conclude as single_weight
from attentest.experiments.single_weight.charts import A_SLICE, GAPS, NULL, OWN, SLICES
from attentest.experiments.trained_adversary import conclude as trained_adversary
from attentest.experiments.trained_adversary.charts import SEEDS, SWEPT
from attentest.experiments.uniform_baseline import conclude as uniform
from attentest.refusal import Refusal
from attentest.statistics.envelope import lower_envelope
from tests import every_chart as charts
from tests.drawn import layers, spec, words
from tests.gallery import deception_rows, hostile
from tests.observed import concluded, one
from tests.observed_removals import removal_rows, removal_texts, single_weight_rows, single_weight_texts
from tests.observed_wiegreffe_pinter import (
    apart,
    guided_rows,
    seed_variance_rows,
    trained_adversary_rows,
    uniform_baseline_rows,
)

FROM_ROWS = {
    "djs": (charts.djs_scatter, single_weight_rows),
    "negative": (charts.negative_gaps, single_weight_rows),
    "fraction": (charts.removal_boxes, removal_rows),
    "mass": (partial(charts.removal_boxes, quantity="mass"), removal_rows),
    "published": (partial(charts.removal_boxes, published=True), removal_rows),
    "survival": (charts.survival_curves, removal_rows),
    "seeds": (charts.apart_violins, seed_variance_rows),
    "output": (charts.apart_scatter, seed_variance_rows),
    "beyond": (charts.beyond_seeds, seed_variance_rows),
    "exact": (partial(charts.apart_violins, moved="exact"), trained_adversary_rows),
    "search": (partial(charts.apart_violins, moved="search"), trained_adversary_rows),
    "search-output": (partial(charts.apart_scatter, moved="search"), trained_adversary_rows),
}
FROM_FINDINGS = {
    "flips": (charts.flip_tables, single_weight_rows, single_weight),
    "uniform": (charts.uniform_scores, uniform_baseline_rows, uniform),
    "lost": (charts.uniform_losses, uniform_baseline_rows, uniform),
    "guides": (charts.guide_scores, guided_rows, guided),
    "gains": (charts.guide_gains, guided_rows, guided),
    "deception": (charts.deception_scores, deception_rows, deception),
}


@pytest.fixture(scope="module")
def findings():
    """The findings of all rows made by hand, each concluded once."""
    made = {module: concluded(rows(), module.conclude) for _, rows, module in FROM_FINDINGS.values()}
    return made | {trained_adversary: concluded(trained_adversary_rows(), trained_adversary.conclude)}


@pytest.fixture(params=[*FROM_ROWS, *FROM_FINDINGS, "plane"])
def figure(request, findings):
    """A figure, and a function that draws it of rows and findings, or of none."""
    name = request.param
    if name in FROM_ROWS:
        draw, rows = FROM_ROWS[name]
        table = rows()
    elif name == "plane":
        table = trained_adversary_rows()
        found = findings[trained_adversary]
        return (
            name,
            table,
            lambda rows, **said: charts.adversary_plane(rows, found if len(rows) else found.iloc[:0], **said),
        )
    else:
        draw, _, module = FROM_FINDINGS[name]
        table = findings[module]
    return name, table, draw


# --- all of them


def test_every_figure_becomes_a_picture_with_its_counts_in_which_hostile_names_stay_names(figure):
    name, table, draw = figure
    rows = hostile(table) if name in FROM_ROWS else table
    svg = charts.to_svg(draw(rows, title="\u202e<script>\x1b", subtitle="test split"))
    assert svg.startswith("<svg") and "test split" in svg and "over 2 seeds" in svg
    assert "<script" not in svg and "&lt;script" in svg and "\u202e" not in svg and "\x1b" not in svg


def test_where_there_is_nothing_a_sentence_says_why(figure):
    _, table, draw = figure
    for rows in (pd.DataFrame(), table.iloc[:0]):
        said = words(draw(rows, title="SST", subtitle="test"))
        assert "SST" in said and "No text " in said


def test_a_figure_holds_no_texts(figure):
    _, table, draw = figure
    said = words(draw(table))
    assert "t0001" not in said and len(said) < 120_000


@pytest.mark.parametrize("name", FROM_ROWS)
def test_numbers_that_are_none_are_left_out_and_said(name):
    draw, rows = FROM_ROWS[name]
    table = rows()
    numbers = [c for c in table if table[c].dtype == float and c not in ("base_max_attention", "items")]
    assert "No text " in words(draw(table.assign(**dict.fromkeys(numbers, math.nan))))


def test_rows_and_findings_of_another_version_are_refused():
    for draw, rows in FROM_ROWS.values():
        with pytest.raises(Refusal, match="no column"):
            draw(rows().drop(columns=["jsd", OWN, "count_random"], errors="ignore"))
    for draw, _, _ in FROM_FINDINGS.values():
        with pytest.raises(Refusal, match="no column"):
            draw(pd.DataFrame({"measure": ["f1"]}))


# --- one weight removed


def test_the_scatter_shows_each_text_at_its_gap_and_its_difference():
    rows = single_weight_texts(3, gap_attention=[0.1, 0.5, 0.9], djs_attention=[-0.04, 0.2, 0.6])
    rows = pd.concat([rows, single_weight_texts(3, subject="untrained", djs_attention=0.3)])
    chart = charts.djs_scatter(rows)
    assert sorted((r["gap"], r["djs"]) for r in layers(chart)[1]) == [(0.1, -0.04), (0.5, 0.2), (0.9, 0.6)]
    dots = spec(chart)["layer"][1]
    assert dots["mark"]["opacity"] == 0.15
    assert dots["encoding"]["x"]["scale"]["domain"] == [0, 1]
    assert dots["encoding"]["y"]["scale"]["domain"] == [-0.05, 0.45]
    assert "1 of them are beyond the axis" in words(chart)


def test_a_large_test_set_is_thinned_evenly_and_always_alike():
    rng = np.random.default_rng(0)
    n = 20_000
    rows = single_weight_texts(n, gap_attention=rng.uniform(0, 1, n), djs_attention=rng.uniform(0, 0.4, n))
    chart = charts.djs_scatter(rows)
    drawn = pd.DataFrame(layers(chart)[1])
    assert len(drawn) == A_SLICE * SLICES and "2,000 of them drawn" in words(chart)
    assert ((drawn["gap"] * SLICES).astype(int).value_counts() <= A_SLICE).all()
    assert words(chart) == words(charts.djs_scatter(rows)) and len(charts.to_svg(chart)) < 600_000
    texts = {(float(f"{gap:.6g}"), float(f"{djs:.6g}")) for gap, djs in rows[[GAPS, OWN]].to_numpy()}
    assert {(r["gap"], r["djs"]) for r in layers(chart)[1]} <= texts


def test_its_lines_are_the_means_in_each_tenth_of_the_axis_with_their_null():
    gaps = [0.05, 0.05, 0.1, 1.0]
    rows = single_weight_texts(
        4,
        gap_attention=gaps,
        djs_attention=[0.1, 0.3, 0.4, 0.2],
        null_djs_attention=[0.0, 0.1, math.nan, 0.3],
    )
    drawn = {(r["kind"].startswith("null"), r["gap"]): r["djs"] for r in layers(charts.djs_scatter(rows))[2]}
    assert drawn == pytest.approx(
        {(False, 0.05): 0.2, (False, 0.15): 0.4, (False, 0.95): 0.2, (True, 0.05): 0.05, (True, 0.95): 0.3}
    )


def test_the_histogram_of_negatives_adds_up_to_their_share_as_does_the_nulls():
    rows = single_weight_rows()
    bars, outline = layers(charts.negative_gaps(rows))
    trained = rows[(rows["subject"] == "trained") & rows[OWN].notna()]
    assert sum(bar["share"] for bar in bars) == pytest.approx((trained[OWN] < 0).mean())
    assert sum(corner["share"] for corner in outline) == pytest.approx((trained[NULL] < 0).mean())
    at = trained.loc[trained[OWN] < 0, GAPS].between(0.3, 0.35, inclusive="left").sum() / len(trained)
    assert {round(b["from"], 2): b["share"] for b in bars}[0.3] == pytest.approx(at, rel=1e-5)
    still = single_weight_texts(5, djs_attention=-1e-14)
    assert sum(bar["share"] for bar in layers(charts.negative_gaps(still))[0]) == 0, "that is rounding"


def test_the_table_has_the_findings_percentages_in_the_papers_colours(findings):
    chart = charts.flip_tables(findings[single_weight])
    tiles = layers(chart)[0]
    assert len(tiles) == 12
    for tile, name in zip(
        tiles, ("both-flip", "only-top-flips", "only-random-flips", "neither-flips"), strict=False
    ):
        assert tile["percent"] == pytest.approx(
            one(findings[single_weight], f"{name}-attention")["estimate"], rel=1e-5
        )
    assert {(t["y"], t["colour"]) for t in tiles} >= {(0, "#0072b2"), (1, "#d15a00")}, "only top, only random"
    by_table = pd.DataFrame(tiles).groupby(lambda place: place // 4)["percent"].sum()
    assert by_table.tolist() == pytest.approx([100.0] * 3, rel=1e-4)
    said = words(chart)
    null = one(findings[single_weight], "neither-flips-product")["null"]
    assert f"null {null:.1f} %" in said and said.count("McNemar p") == 3


# --- many weights removed


def boxes(chart):
    return {box["ranking"]: box for box in layers(chart)[0]}


def test_a_box_has_the_quartiles_and_whiskers_of_the_compared_texts():
    counts = [1.0, 2.0, 3.0, 4.0, 10.0, -1.0]
    rows = removal_texts(
        6, count_attention=counts, smallest=[1, 1, 1, 0, math.nan, 1], null_count_attention=7.0
    )
    chart = charts.removal_boxes(rows)
    box = boxes(chart)["attention"]
    assert (box["low"], box["middle"], box["high"]) == (0.2, 0.3, 0.4)
    assert (box["least"], box["most"], box["beyond"]) == (0.1, 0.4, 1), "a whole text is beyond the whiskers"
    assert box["null"] == 0.7 and box["label"].endswith("n = 5"), "what never flips is compared nowhere"
    assert boxes(chart)["random"]["label"].endswith("n = 5")
    assert boxes(chart)["exact|smallest set"]["label"].endswith("n = 3")
    assert "1 values beyond" in words(chart)
    published = boxes(charts.removal_boxes(rows, published=True))
    assert published["random"]["label"].endswith("n = 6") and published["attention"]["label"].endswith(
        "n = 5"
    )


def test_boxes_agree_with_the_findings():
    rows = removal_rows()
    found = concluded(rows, removal.conclude)
    for quantity in removal.QUANTITIES:
        drawn = boxes(charts.removal_boxes(rows, quantity))
        for ranking, name in zip(removal.RANKINGS, drawn, strict=False):
            n = one(found, f"{quantity}-{ranking}")["n"]
            assert drawn[name]["label"].endswith(f"n = {n}")
    assert len(drawn) == 4, "how much attention the smallest set holds was not observed"


def test_boxes_have_the_papers_two_palettes():
    def colours(quantity):
        scale = spec(charts.removal_boxes(removal_rows(), quantity))["layer"][1]["encoding"]["color"]["scale"]
        return scale["range"][:4]

    assert colours("fraction") == ["#2589cc", "#80d4ff", "#d4f3ff", "#ffffff"]
    assert colours("mass") == ["#a970ff", "#eea8ff", "#ffe0ff", "#ffffff"]


def test_curves_pass_through_the_findings_and_what_never_flips_stays_up():
    rows = removal_rows()
    found = concluded(rows, removal.conclude)
    drawn = {
        (r["ranking"], round(r["removed"], 2)): r["left"]
        for layer in layers(charts.survival_curves(rows))
        for r in layer
    }
    assert len(drawn) == 5 * len(SHARES)
    names = ("random", "attention", "gradient", "attention × gradient")
    for ranking, name in zip(removal.RANKINGS, names, strict=True):
        for share in removal.SURVIVAL:
            assert drawn[name, share] == pytest.approx(
                one(found, f"unflipped-{ranking}@{share:g}")["estimate"], rel=1e-5
            )
        assert drawn[name, 0.0] == 1
        assert drawn[name, 1.0] == pytest.approx(one(found, f"never-flips-{ranking}")["estimate"], rel=1e-5)
    assert drawn["exact smallest set", 1.0] == pytest.approx(one(found, "unflippable")["estimate"], rel=1e-5)
    left = [drawn["attention", round(share, 2)] for share in SHARES]
    assert left == sorted(left, reverse=True)


def test_without_an_affine_decision_there_is_no_smallest_set():
    rows = removal_rows().assign(smallest=math.nan, null_smallest=math.nan)
    assert len(boxes(charts.removal_boxes(rows))) == 4
    assert len(layers(charts.survival_curves(rows))) == 1


def test_the_diagram_zeroes_the_largest_weight_and_renormalises():
    first, zeroed, last = MADE.removed()
    assert first == list(MADE.weights) and sum(first) == pytest.approx(1) == sum(last)
    assert zeroed == [0.0 if w == max(first) else w for w in first]
    assert last == pytest.approx([w / 0.5 for w in zeroed])
    logit = sum(w * s for w, s in zip(last, MADE.says, strict=True))
    assert MADE.output(last) == pytest.approx(1 / (1 + math.exp(-logit)))
    said = words(charts.zero_and_renormalise())
    assert (
        f"yes: p(yes) = {MADE.output(first):.2f}" in said and f"no: p(yes) = {MADE.output(last):.2f}" in said
    )
    evil = WeighedText(("<script>", "\u202e"), (0.75, 0.25), (1.0, -1.0))
    svg = charts.to_svg(charts.zero_and_renormalise(evil))
    assert "<script" not in svg and "\u202e" not in svg
    for tokens, weights in ((("a",), (1.0,)), (("a", "b"), (1.0, 0.0)), (("a", "b"), (0.5,))):
        with pytest.raises(Refusal, match="diagram of a removal"):
            WeighedText(tokens, weights, (1.0,) * len(tokens))


# --- other seeds, adversaries


def test_violins_are_of_the_bases_class_and_largest_weight_with_the_null_beside():
    rows = apart(
        8,
        jsd=[0.1, 0.2, 0.3, 0.4] * 2,
        permuted=0.6,
        base_predicted=["no"] * 4 + ["yes"] * 4,
        base_max_attention=0.9,
        max_attention=0.1,
        predicted="neither",
    )
    chart = charts.apart_violins(rows, classes=["no", "yes"])
    _, body, lines, _, counts, null = layers(chart)
    assert {r["span"] for r in body} == {"[0.75, 1.00]"} and {r["group"] for r in body} == {"no", "yes"}
    assert [r["x"] for r in lines if r["line"] == "median"] == [0.25, 0.25]
    assert [r["said"] for r in counts] == ["n = 4", "n = 4"] and {r["x"] for r in null} == {0.6}
    [scale] = {json.dumps(layer["encoding"]["x"]["scale"]) for layer in spec(chart)["layer"][1:4]}
    assert json.loads(scale)["domain"] == [-0.05, 0.7]


@pytest.mark.parametrize("opponent", ["exact", "search"])
def test_adversaries_are_drawn_from_their_own_rows(opponent):
    rows = trained_adversary_rows()
    of = rows["subject"] == opponent
    others = rows.assign(jsd=rows["jsd"].where(of, 0.123), tvd=rows["tvd"].where(of, 0.123))
    for draw in (charts.apart_violins, charts.apart_scatter):
        assert words(draw(rows, opponent)) == words(draw(others, opponent)) != words(draw(rows, "seeds"))


def test_the_scatter_has_both_axes_of_the_paper_and_every_text():
    rows = seed_variance_rows()
    chart = charts.apart_scatter(rows)
    trained = rows[(rows["subject"] == "trained") & rows["jsd"].notna()]
    drawn = sorted((r["x"], r["y"]) for r in layers(chart)[0])
    assert np.array(drawn) == pytest.approx(
        np.array(sorted(zip(trained["jsd"], trained["tvd"], strict=True))), rel=1e-4
    )
    encoding = spec(chart)["layer"][0]["encoding"]
    assert encoding["x"]["scale"]["domain"] == [-0.05, 0.7]
    assert encoding["y"]["scale"]["domain"] == [-0.05, 1.05]
    assert encoding["color"]["scale"]["range"] == list(PALETTE[:2])
    assert f"{len(trained)} over 2 seeds; 20 undefined" in words(chart)


def test_beyond_seeds_counts_the_texts_above_the_line():
    rows = seed_variance_rows()
    both = rows[rows["subject"] == "trained"].dropna(subset=["exact", "jsd"])
    # Over seeds the mean of their shares.
    share = (both["exact"] > both["jsd"]).groupby(both["seed"]).mean().mean()
    chart = charts.beyond_seeds(rows)
    assert f"{share:.1%} above the line" in words(chart)
    assert np.mean([r["y"] > r["x"] for r in layers(chart)[1]]) == pytest.approx(share)


def test_the_plane_has_every_point_where_the_findings_say(findings):
    rows, found = trained_adversary_rows(), findings[trained_adversary]
    across, up, below, way, signs, labels = layers(charts.adversary_plane(rows, found))
    swept = [f"lambda {number}" for number in ("0", "0.0005", "0.001")]
    places = [
        tuple(one(found, name, group)["estimate"] for name in ("attention-jsd", "output-tvd"))
        for group in swept
    ]
    assert np.array([(r["x"], r["y"]) for r in way]) == pytest.approx(np.array(places), rel=1e-5)
    envelope = lower_envelope([x for x, _ in places], [y for _, y in places])
    assert np.array([(r["x"], r["y"]) for r in below]) == pytest.approx(np.array(envelope), rel=1e-5)
    by_kind = pd.DataFrame(signs).groupby("kind").size().to_dict()
    assert by_kind.pop(SWEPT) == 3 and by_kind.pop(SEEDS) == 4, "two other seeds beside each of two bases"
    assert set(by_kind.values()) == {1} and len(by_kind) == 5
    assert len(across) == len(up) == 3 + 5
    exact = next(r for r in signs if r["kind"].startswith("exact"))
    assert exact["x"] == pytest.approx(one(found, "attention-jsd", "exact")["estimate"], rel=1e-5)
    assert {"λ 0", "λ 0.001"} & {r["label"] for r in labels}


def test_a_triangle_is_the_mean_of_a_pair_of_seeds_over_texts_with_both(findings):
    rows = trained_adversary_rows()
    signs = layers(charts.adversary_plane(rows, findings[trained_adversary]))[4]
    own = rows[(rows["subject"] == "seed 2") & (rows["seed"] == 0) & rows["jsd"].notna()]
    drawn = [(r["x"], r["y"]) for r in signs if r["kind"] == SEEDS]
    assert (pytest.approx(own["jsd"].mean(), rel=1e-5), pytest.approx(own["tvd"].mean(), rel=1e-5)) in drawn


def test_labels_of_a_crowded_sweep_do_not_lie_on_each_other():
    sweep = [(f"lambda {number:g}", 30 * number, number) for number in np.linspace(0, 0.01, 11)]
    found = pd.DataFrame(
        [
            (name, group, at, at, at)
            for group, x, y in sweep
            for name, at in (("attention-jsd", x), ("output-tvd", y))
        ],
        columns=["measure", "group", "estimate", "low", "high"],
    )
    labels = layers(charts.adversary_plane(trained_adversary_rows(), found))[-1]
    assert 2 < len(labels) < len(sweep) and {"λ 0", "λ 0.01"} <= {r["label"] for r in labels}
    assert min(np.diff(sorted(r["x"] for r in labels))) * 480 / 0.7 >= 46


# --- scores


@pytest.mark.parametrize("name", ["uniform", "lost", "guides", "gains", "deception"])
def test_points_are_the_findings_with_interval_and_null(name, findings):
    draw, _, module = FROM_FINDINGS[name]
    points = layers(draw(findings[module]))[-1]
    table = findings[module]
    for point in points:
        near = table[np.isclose(table["estimate"], point["estimate"], rtol=1e-4)]
        assert (np.isclose(near["low"], point["low"], rtol=1e-4, atol=1e-6)).any()
        if point["null"] is None:
            assert near["null"].isna().any()
        else:
            assert np.isclose(near["null"], point["null"], rtol=1e-4, atol=1e-6).any()


def test_every_model_has_a_lane_and_every_measure_a_colour(findings):
    def lanes(draw, module):
        points = pd.DataFrame(layers(draw(findings[module]))[-1])
        return points["group"].nunique(), points["measure"].nunique()

    assert lanes(charts.uniform_scores, uniform) == (4, 3)
    assert lanes(charts.uniform_losses, uniform) == (1, 3)
    assert lanes(charts.guide_scores, guided) == (8, 2)
    assert lanes(charts.guide_gains, guided) == (5, 2)
    assert lanes(charts.deception_scores, deception) == (6, 4)


def test_penalties_come_in_order_and_the_anonymised_model_has_an_accuracy_alone(findings):
    chart = charts.deception_scores(findings[deception])
    order = spec(chart)["layer"][-1]["encoding"]["y"]["sort"]
    assert order[:4] == ["no penalty", "penalty λ = 0.1", "penalty λ = 1", "without the words"]
    points = pd.DataFrame(layers(chart)[-1])
    assert points.loc[points["group"] == "without the words", "measure"].tolist() == ["accuracy"]
    of = points.set_index(["group", "measure"])["estimate"]
    mass = one(findings[deception], "mass", "lambda 1")["estimate"]
    assert of["penalty λ = 1", "attention on the impermissible words"] == pytest.approx(mass, rel=1e-5)
