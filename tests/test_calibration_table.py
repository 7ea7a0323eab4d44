"""From rows of calibration audits to AUCs, margins and error rates; committed tables are what rows make."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from attentest.auditing.cards import audit_card
from attentest.claims.criteria import CRITERIA
from attentest.experiments.calibration import SETTING
from attentest.experiments.calibration.known_tests import KNOWN
from attentest.experiments.calibration.ranking import (
    Area,
    Ranking,
    equal_weights,
    ranks,
    resampled,
    weighted_auc,
)
from attentest.experiments.calibration.rates import KINDS, margin
from attentest.experiments.calibration.rows import COLUMNS, TRAINS, check_truth, completed, described, rows_of
from attentest.experiments.calibration.table import CRITERIA_COLUMNS, TEST_COLUMNS, Calibrated
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.store.tables import to_parquet

ROOT = Path(__file__).parents[1]
CORPUS = "planted-reviews(cues=4,dev=50,distractors=0,negation=0.0,test=2000,train=600)"
QUADRANTS = ("graded", "selector", "random-loud", "random-word", "idle-sum", "idle-blind")
QUADRANTS += ("idle-random-word", "idle-uniform", "several-cues", "smooth")
POINTER, USED = "importance/tau-gradient", "permutation/median-output-change"


def audits(effects, *, texts=200, seeds=6, error=0.01, budget="standard", corpus=CORPUS):
    """Rows of audits: `effects(construction)` gives the estimate of each test."""
    parts = []
    for encoder in QUADRANTS:
        about = described({"encoder": f"constructed({encoder})"}, corpus)
        truth = {"points": float(about["pointer"]), "depends": float(about["mechanism"])}
        for seed in range(seeds):
            found = effects(about)
            rows = pd.DataFrame({"id": list(found), "estimate": list(found.values())})
            numbers = {"error": error, "freedom": texts - 1.0, "null": math.nan, "n": texts}
            parts.append(rows.assign(**numbers, **truth, **about, seed=seed, texts=texts, budget=budget))
    return completed(parts)


def separated(about):
    return {POINTER: 0.9 if about["pointer"] else 0.1, USED: 0.3 if about["mechanism"] else 0.0}


# --- AUC


@pytest.mark.parametrize("ties", [0, 1])
def test_the_auc_is_that_of_sklearn_with_every_construction_weighing_the_same(ties):
    rng = np.random.default_rng(0)
    constructions = np.repeat(np.arange(6), [3, 20, 8, 8, 2, 30])
    answers = np.isin(constructions, (0, 2, 4))
    effects = (rng.normal(size=len(answers)) + 0.5 * answers).round(ties or 9)
    weights = equal_weights(constructions)
    wanted = roc_auc_score(answers, effects, sample_weight=weights[0])
    assert weighted_auc(effects, answers, weights)[0] == pytest.approx(wanted, abs=1e-12)
    assert wanted != pytest.approx(roc_auc_score(answers, effects), abs=1e-6)


def between(constructions, answers, effects):
    drawn = weighted_auc(effects, answers, resampled(constructions, answers, np.random.default_rng(1)))
    return np.ptp(np.quantile(drawn, [0.025, 0.975]))


def test_the_interval_resamples_constructions_and_so_is_wider_than_one_over_audits():
    rng = np.random.default_rng(2)
    constructions = np.repeat(np.arange(10), 50)
    answers = constructions < 5
    effects = rng.normal(size=10)[constructions] + 0.1 * rng.normal(size=500) + 0.5 * answers
    every_audit_its_own = np.arange(500)
    assert between(constructions, answers, effects) > 2 * between(every_audit_its_own, answers, effects)


def test_a_draw_has_as_many_constructions_of_each_answer_as_there_are():
    constructions = np.repeat(np.arange(5), [1, 4, 4, 2, 9])
    answers = constructions < 2
    weights = resampled(constructions, answers, np.random.default_rng(0), draws=50)
    assert np.allclose(weights[:, answers].sum(1), 2) and np.allclose(weights[:, ~answers].sum(1), 3)
    by_construction = np.stack([weights[:, constructions == c].sum(1) for c in range(5)])
    assert np.allclose(by_construction, by_construction.round()) and (by_construction == 0).any()


def test_an_answer_that_no_construction_has_leaves_no_auc():
    rows = audits(separated)
    own = rows[(rows["test"] == POINTER) & rows["pointer"]]
    assert math.isnan(Ranking("pointer").area(own, KNOWN[POINTER]).auc)


def test_tests_whose_intervals_overlap_are_not_ranked_against_each_other():
    areas = [Area(0.95, 0.9, 1.0), Area(0.92, 0.85, 0.95), Area(0.8, 0.7, 0.86), Area(0.5, 0.4, 0.6)]
    assert ranks(areas) == ["1-2", "1-3", "2-3", "4"]


def test_noise_of_the_arithmetic_orders_nothing():
    rows = pd.DataFrame({"estimate": [1e-9, 0.0, -1e-10], "null": [0.0, 0.0, 0.0]})
    assert KNOWN[USED].effect(rows).nunique() == 1


# --- the tests that are known


def test_every_known_test_has_a_card():
    for name in [name for name in KNOWN if not name.startswith(TRAINS)]:  # those are no findings of an audit
        experiment, _, measure = name.partition("/")
        assert audit_card(experiment, measure)


def test_criteria_and_the_table_read_a_test_alike():
    asked = [test for criterion in CRITERIA for test in criterion.tests]
    assert asked
    for test in asked:
        known = KNOWN[test.name]
        assert (known.sign, known.own_null) == (test.sign, test.null is None), test.name


def test_tests_that_restate_a_label_are_not_ranked_for_it():
    tests = Calibrated(audits(separated), draws=20).tests.set_index("test")
    assert tests.loc[USED, "by_definition"] == "mechanism" and tests.loc[USED, "rank_mechanism"] == ""
    assert tests.loc[POINTER, "by_definition"] == "pointer" and tests.loc[POINTER, "rank_pointer"] == ""
    assert tests.loc[USED, "rank_pointer"] == "1" and tests.loc[POINTER, "rank_mechanism"] == "1"
    assert tests.loc[USED, "auc_mechanism"] == 1.0 and tests.loc[POINTER, "auc_pointer"] == 1.0


# --- margins


def shares(*rows):
    """Supported up to a margin, in hundredths, and not beyond."""
    return pd.DataFrame([[float(at < end) for at in range(1, 100)] for end in rows])


def test_the_margin_is_the_middle_of_what_the_bar_allows():
    assert margin(shares(20, 81), np.array([False, True])) == 0.5  # 0.20 to 0.80
    assert margin(shares(0, 3), np.array([False, True])) == 0.01  # 0.01 or 0.02: the smaller
    assert margin(shares(5, 20, 81, 60), np.array([False, False, True, True])) == 0.39


def test_false_supports_count_more_than_power():
    assert margin(shares(50, 30), np.array([False, True])) == 0.5


@pytest.mark.parametrize("answers", [[False, False], [True, True]])
def test_without_both_answers_there_is_no_margin(answers):
    assert math.isnan(margin(shares(20, 80), np.array(answers)))
    assert math.isnan(margin(shares(200, 200), np.array([False, True])))


def test_only_the_setting_constructions_set_the_margin():
    def effects(about):
        far = about["construction"] not in SETTING
        return {POINTER: (0.5 if far else 0.9) if about["pointer"] else (0.45 if far else 0.1)}

    found = Calibrated(audits(effects), draws=20)
    line = found.margins.set_index("test").loc[POINTER]
    assert line[["margin", "largest_no", "smallest_yes"]].to_list() == pytest.approx([0.48, 0.1, 0.9])
    assert found.margin_of == {POINTER: 0.48}


def test_a_test_that_does_not_separate_is_not_judged_by():
    found = Calibrated(audits(lambda about: {POINTER: 0.5}), draws=20)
    assert found.rates.loc[found.rates["answer"], "supported"].max() == 0.0
    assert not found.criteria["judged"].any()


# --- error rates


def test_a_criterion_that_separates_passes_the_bar():
    found = Calibrated(audits(separated), draws=20)
    bars = found.criteria.set_index(["criterion", "kind"])
    own = bars.loc[("agrees with importances", "without context")]
    assert own["judged"] and (own["worst_false_support"], own["worst_power"]) == (0.0, 1.0)
    assert (own["yes"], own["no"], own["audits"]) == (3, 2, 6)
    without_no = bars.loc[("used", "without context")]
    assert without_no["no"] == 0 and without_no["judged"], "no model without context is idle"
    assert not bars.loc[("used", "transformer"), "judged"]
    assert bars.loc[("agrees with importances", "transformer"), "yes"] == 0
    assert set(bars.index.get_level_values("kind")) == set(KINDS)


def test_one_construction_that_is_supported_wrongly_fails_the_bar_and_is_named():
    def effects(about):
        wrong = about["construction"] == "smooth"
        return separated(about) | ({POINTER: 0.9} if wrong else {})

    bars = Calibrated(audits(effects), draws=20).criteria.set_index(["criterion", "kind"])
    own = bars.loc[("agrees with importances", "contextual")]
    assert own["worst_false_support_of"] == "smooth" and own["worst_false_support"] == 1.0
    assert not own["judged"] and bars.loc[("agrees with importances", "without context"), "judged"]


def test_plausibility_is_held_only_against_constructions_whose_words_are_the_marked_ones():
    found = Calibrated(audits(lambda about: {"plausibility/auprc-excess": float(about["pointer"])}), draws=20)
    assert set(found.rates["construction"]) == set(QUADRANTS) - {"random-loud", "idle-blind"}
    assert found.margin_of == {"plausibility/auprc-excess": 0.49}


def test_power_grows_with_texts_and_a_setting_whose_truth_changed_is_no_point():
    few, many = audits(separated, texts=50, error=2.0), audits(separated)
    changed = audits(separated, corpus="planted-reviews(length=120)").assign(points=0.5)
    found = Calibrated(pd.concat([few, many, changed], ignore_index=True), draws=20)
    own = found.curves[(found.curves["criterion"] == "agrees with importances") & found.curves["answer"]]
    assert set(own["knob"]) == {"texts"}
    assert own.groupby("value")["supported"].min().to_dict() == {50.0: 0.0, 200.0: 1.0}


# --- rows


def test_rows_of_a_store_have_the_settings_of_the_model_and_of_the_corpus(tmp_path):
    store = Store(tmp_path)
    corpus = Cell(stage="corpus", version=1, config={"name": "planted-reviews(classes=5,length=120)"})
    encoder = "constructed(idle-sum,strength=4)"
    model = Cell(
        stage="model", version=1, config={"encoder": encoder, "seed": 3}, inputs={"corpus": corpus.key}
    )
    parameters = {"texts": 50, "budget": "standard"}
    seen = Cell(
        stage="observation",
        version=1,
        config={"experiment": "calibration", "parameters": parameters},
        inputs={"model": model.key, "corpus": corpus.key},
    )
    row = {"seed": 3, "subject": "trained", "id": POINTER, "estimate": 0.9, "error": 0.1, "freedom": 49.0}
    row |= {"null": 0.0, "n": 50, "points": 1.0, "depends": 0.0}
    for cell, files in ((corpus, {}), (model, {}), (seen, {"rows.parquet": to_parquet([row])})):
        store.write(cell, files, {})
    rows = rows_of(store)
    assert tuple(rows.columns) == COLUMNS and len(rows) == 1
    wanted = {"study": "calibration-knobs", "construction": "idle-sum", "strength": 4.0, "classes": 5}
    wanted |= {"length": 120, "texts": 50, "kind": "contextual", "pointer": True, "mechanism": False}
    wanted |= {"role": "setting", "seed": 3, "corpus": "planted-reviews(classes=5,length=120)"}
    assert rows.iloc[0][list(wanted)].to_dict() == wanted
    assert rows_of(Store(tmp_path / "empty")).empty


def test_an_audit_that_was_gathered_twice_counts_once():
    rows = audits(separated)
    assert len(completed([rows, rows])) == len(rows)


def test_rows_whose_truth_is_not_what_the_construction_declares_are_refused():
    rows = audits(separated)
    check_truth(rows)
    with pytest.raises(Refusal, match="idle-sum"):
        check_truth(rows.assign(depends=rows["depends"].where(rows["construction"] != "idle-sum", 0.4)))


def trained_rows(points, depends, **settings):
    about = described({"encoder": "bilstm", **settings}, CORPUS)
    row = {"id": POINTER, "estimate": 0.9, "error": 0.1, "freedom": 199.0, "null": math.nan, "n": 200}
    row |= {"points": points, "depends": depends, "seed": 0, "texts": 200, "budget": "full"}
    return completed([pd.DataFrame([row]).assign(**about)])


def test_a_trained_model_is_named_by_how_it_was_made_and_labelled_by_its_own_truth():
    own = trained_rows(0.9, 0.3, projection="entmax15", loss="impermissible(1, <rationale>)").iloc[0]
    assert (
        own["construction"] == "trained bilstm entmax15 deceptive" and own["study"] == "calibration-trained"
    )
    assert (own["pointer"], own["mechanism"], own["kind"]) == (True, True, "contextual")


def test_a_trained_model_between_no_and_yes_counts_as_neither():
    between = trained_rows(0.65, 0.1)
    assert between["pointer"].isna().all() and between["mechanism"].isna().all()
    alone, joined = audits(separated), pd.concat([audits(separated), between], ignore_index=True)
    alone, joined = (Calibrated(rows, draws=20) for rows in (alone, joined))
    assert set(joined.rates["construction"]) == set(alone.rates["construction"])
    columns = ["auc_pointer", "auc_mechanism"]
    pd.testing.assert_frame_equal(joined.tests[columns], alone.tests[columns])


# --- what is committed


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("docs_calibration", ROOT / "docs" / "calibration.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_committed_tables_are_what_the_script_makes_of_the_committed_rows(script):
    pytest.importorskip("altair")
    for path, content in script.made().items():
        assert path.read_text(encoding="utf-8") == content, f"make calibration-tables ({path.name})"


def test_the_committed_rows_are_small_and_hold_what_is_needed(script):
    assert script.GATHERED.stat().st_size < 6e6
    rows = script.read()
    assert tuple(rows.columns) == COLUMNS
    assert len(script.needed(rows)) == len(rows)


def test_gathered_tables_of_another_form_give_the_same_rows(script):
    rows = audits(separated)
    encoders = "constructed(" + rows["construction"] + ")"
    form = rows.rename(columns={"test": "id"})[["id", "estimate", "error", "freedom", "null", "n", "points"]]
    more = {"encoder": encoders, **{c: rows[c] for c in ("depends", "seed", "corpus", "texts", "budget")}}
    pd.testing.assert_frame_equal(script.from_gathered(form.assign(**more)), rows)


def test_a_page_without_a_place_for_a_table_is_noticed(script):
    page = "a\n<!-- table x -->\nold\n<!-- end x -->\nb"
    assert "old" not in script.filled(page, {"x": (["one"], [["two"]])})
    with pytest.raises(AssertionError, match="no place"):
        script.filled("a", {"x": (["one"], [["two"]])})


def test_the_columns_of_the_packaged_tables_are_the_agreed_ones(script):
    found = Calibrated(audits(separated), draws=20)
    made = {path.name: text.splitlines()[0] for path, text in script.csvs(found).items()}
    assert made["calibrated_tests.csv"] == ",".join(TEST_COLUMNS)
    assert made["calibrated_criteria.csv"] == ",".join(CRITERIA_COLUMNS)
    assert ",true" in script.csvs(found)[script.PACKAGED / "calibrated_criteria.csv"]
