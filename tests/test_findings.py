"""What every conclude must keep, what a finding is, and permutation worked by hand."""

import functools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from attentest.evidence.importances.names import column
from attentest.experiments.ablation import conclude as ablation
from attentest.experiments.adversary import conclude as adversary
from attentest.experiments.calibration import conclude as calibration
from attentest.experiments.cards import CARDS, card
from attentest.experiments.catalogue import CONCLUSIONS as EVERY_CONCLUSION
from attentest.experiments.communication import conclude as communication
from attentest.experiments.deception import conclude as deception
from attentest.experiments.dispersion import conclude as dispersion
from attentest.experiments.explainers import conclude as explainers
from attentest.experiments.frozen_adversary import conclude as frozen_adversary
from attentest.experiments.guided import conclude as guided
from attentest.experiments.heat_map import conclude as heat_map
from attentest.experiments.importance import conclude as importance
from attentest.experiments.information import conclude as information
from attentest.experiments.information_ablation import conclude as information_ablation
from attentest.experiments.information_sensitivity import conclude as information_sensitivity
from attentest.experiments.log_odds import conclude as log_odds
from attentest.experiments.performance import conclude as performance
from attentest.experiments.permutation import conclude as permutation
from attentest.experiments.removal import conclude as removal
from attentest.experiments.seed_variance import conclude as seed_variance
from attentest.experiments.single_weight import conclude as single_weight
from attentest.experiments.sparsity import conclude as sparsity
from attentest.experiments.trained_adversary import conclude as trained_adversary
from attentest.experiments.uniform_baseline import conclude as uniform_baseline
from attentest.experiments.vectors import conclude as vectors
from attentest.refusal import Refusal
from attentest.statistics.group_means import MOST_CLASSES
from attentest.statistics.record import COLUMNS, Finding, completed, seed_estimates, seeds_as_json, to_frame
from tests.findings_rules import (
    CHECKS,
    check_every_measure_has_a_card,
    check_intervals_and_seeds_say_the_same_as_the_estimate,
    check_it_says_the_same_again_in_any_order_and_leaves_the_rows_alone,
    check_there_is_no_news_without_trained_models,
)
from tests.observed import adversary_rows, concluded, importance_rows, one, texts
from tests.observed_ablation import ablated_rows
from tests.observed_communication import communication_rows
from tests.observed_dispersion import dispersion_rows
from tests.observed_explainers import explainer_rows
from tests.observed_information import ablation_rows, information_rows, sensitivity_rows
from tests.observed_meister import frozen_adversary_rows, sparsity_rows
from tests.observed_removals import removal_rows, single_weight_rows
from tests.observed_vectors import vector_rows
from tests.observed_wiegreffe_pinter import (
    guided_rows,
    seed_variance_rows,
    trained_adversary_rows,
    uniform_baseline_rows,
)

SOUND = Finding(
    experiment="e",
    measure="m",
    group="overall",
    estimate=0.5,
    std=0.1,
    seed_std=math.nan,
    low=0.4,
    high=0.6,
    interval="instances",
    n=10,
    seeds=1,
    excluded=0,
    why="",
    null=0.0,
    mode="corrected",
)


def shuffles(changes, attention=0.5, predicted="yes", seed=0, subject="trained", length=9):
    """Rows of the permutation experiment."""
    n = len(changes)
    return pd.DataFrame(
        {
            "seed": seed,
            "subject": subject,
            "id": [f"t{number:04d}" for number in range(n)],
            "label": "yes",
            "predicted": np.broadcast_to(predicted, n),
            "length": length,
            "max_attention": np.broadcast_to(np.asarray(attention, dtype=np.float64), n),
            "median_change": np.asarray(changes, dtype=np.float64),
            "mean_change": np.asarray(changes, dtype=np.float64),
        }
    )


def performance_rows():
    rng = np.random.default_rng(0)
    yes = rng.uniform(size=120)
    return shuffles(np.zeros(120)).assign(
        id=[f"t{number:04d}" for number in range(60)] * 2,
        seed=np.repeat([0, 1], 60),
        label=rng.choice(["no", "yes"], 120),
        gold=lambda rows: (rows["label"] == "yes").astype(np.int64),
        predicted=np.where(yes > 0.5, "yes", "no"),
        probabilities=np.stack([1 - yes, yes], axis=1).tolist(),
    )


def permutation_rows():
    rng = np.random.default_rng(0)
    tables = [
        shuffles(rng.uniform(size=40), rng.uniform(size=40), rng.choice(["no", "yes"], 40), seed, subject)
        for seed in (0, 1)
        for subject in ("trained", "untrained", "shuffled labels")
    ]
    rows = pd.concat(tables, ignore_index=True)
    rows.loc[::17, "median_change"] = math.nan
    return rows


def heat_map_rows():
    columns = {"predicted": "yes", **dict.fromkeys(heat_map.MEASURES.values(), 0.25)}
    texts = [(seed, text) for seed in (0, 1) for text in ("t0000", "t0001")]
    rows = pd.DataFrame([{"seed": seed, "subject": "trained", "id": text, **columns} for seed, text in texts])
    rows.loc[0, "exact_jsd"] = math.nan
    return rows


def log_odds_rows():
    variants = ("trained", "imposed", "log-odds", "regularised", "last state")
    tables = [performance_rows().assign(subject=variant) for variant in variants]
    rows = pd.concat(tables, ignore_index=True)
    return rows.assign(jsd=0.1, null_jsd=0.2, tau=0.3)


def calibration_rows():
    """Three audits of four tests, one without a value in one of them."""
    rng = np.random.default_rng(4)
    numbers = {name: rng.uniform(0.1, 0.9, 12) for name in ("estimate", "error", "null", "points", "depends")}
    numbers["estimate"][5] = np.nan
    ids = [f"t{number:04d}" for number in range(4)] * 3
    about = {"seed": np.repeat([0, 1, 2], 4), "subject": "trained", "id": ids, "freedom": 49.0, "n": 50}
    return pd.DataFrame(about | numbers)


def deception_rows():
    rng = np.random.default_rng(0)
    tables = []
    for subject in ("trained", "lambda 0.1", "lambda 1", "anonymised", "untrained", "shuffled labels"):
        mass, marked = rng.uniform(size=40), rng.integers(0, 4, 40)
        numbers = {name: rng.integers(0, 2, 40) * 1.0 for name in deception.NUMBERS}
        numbers |= {"mass": mass, "mass_left": 1 - mass, "impermissible": marked}
        tables += [texts(40, seed, subject).assign(**numbers) for seed in (0, 1)]
    rows = pd.concat(tables, ignore_index=True)
    rows.loc[::9, "correct_renormalised"] = math.nan
    return rows


def rows_of_every_importance():
    """As if each further importance had been asked for, and said what the gradient says."""
    rows = importance_rows()
    for name in map(column, importance.ALSO):
        like = {f"{quantity}_{name}": rows[f"{quantity}_gradient"] for quantity in importance.QUANTITIES}
        rows = rows.assign(**like, **{name: rows["gradient"]})
    return rows


CONCLUSIONS = {
    "performance": (performance.conclude, performance_rows),
    "permutation": (permutation.conclude, permutation_rows),
    "importance": (importance.conclude, rows_of_every_importance),
    "adversary": (adversary.conclude, adversary_rows),
    "heat-map": (heat_map.conclude, heat_map_rows),
    "log-odds": (log_odds.conclude, log_odds_rows),
    "uniform-baseline": (uniform_baseline.conclude, uniform_baseline_rows),
    "seed-variance": (seed_variance.conclude, seed_variance_rows),
    "guided": (guided.conclude, guided_rows),
    "trained-adversary": (trained_adversary.conclude, trained_adversary_rows),
    "single-weight": (single_weight.conclude, single_weight_rows),
    "removal": (removal.conclude, removal_rows),
    "information": (information.conclude, information_rows),
    "information-ablation": (information_ablation.conclude, ablation_rows),
    "information-sensitivity": (information_sensitivity.conclude, sensitivity_rows),
    "dispersion": (dispersion.conclude, dispersion_rows),
    "sparsity": (sparsity.conclude, sparsity_rows),
    "frozen-adversary": (frozen_adversary.conclude, frozen_adversary_rows),
    "deception": (deception.conclude, deception_rows),
    "communication": (communication.conclude, communication_rows),
    "explainers": (explainers.conclude, explainer_rows),
    "ablation": (ablation.conclude, ablated_rows),
    "vectors": (vectors.conclude, vector_rows),
    "calibration": (calibration.conclude, calibration_rows),
}
every = pytest.mark.parametrize("conclude, make", CONCLUSIONS.values(), ids=CONCLUSIONS)


def findings_of(conclude, make):
    return conclude(make(), mode="corrected", rng=np.random.default_rng(0))


once = functools.cache(findings_of)  # only what reads them alone may share them


@every
def test_every_conclusion_keeps_the_house_rules(conclude, make):
    for check in CHECKS:
        check(conclude, make(), once(conclude, make))


def draws_from_nowhere(rows, *, mode, rng):
    null = float(np.random.default_rng().normal())
    return [replace(one, null=null) for one in permutation.conclude(rows, mode=mode, rng=rng)]


def draws_by_position(rows, *, mode, rng):
    return permutation.conclude(rows.assign(id=np.arange(len(rows))), mode=mode, rng=rng)


def invents_a_measure(rows, *, mode, rng):
    return [SOUND]


def forgets_the_seeds(rows, *, mode, rng):
    return [replace(one, by_seed="") for one in permutation.conclude(rows, mode=mode, rng=rng)]


def has_intervals_of_its_own(rows, *, mode, rng):
    return [replace(one, low=one.low - 0.1) for one in permutation.conclude(rows, mode=mode, rng=rng)]


def adds_a_column(rows, *, mode, rng):
    rows["extra"] = 1
    return permutation.conclude(rows, mode=mode, rng=rng)


@pytest.mark.parametrize(
    "check, mutant",
    [
        (check_it_says_the_same_again_in_any_order_and_leaves_the_rows_alone, draws_from_nowhere),
        (check_it_says_the_same_again_in_any_order_and_leaves_the_rows_alone, draws_by_position),
        (check_every_measure_has_a_card, invents_a_measure),
        (check_it_says_the_same_again_in_any_order_and_leaves_the_rows_alone, adds_a_column),
        (check_there_is_no_news_without_trained_models, invents_a_measure),
        (check_intervals_and_seeds_say_the_same_as_the_estimate, forgets_the_seeds),
        (check_intervals_and_seeds_say_the_same_as_the_estimate, has_intervals_of_its_own),
    ],
)
def test_the_house_rules_can_fail(check, mutant):
    with pytest.raises(AssertionError):
        check(mutant, permutation_rows(), findings_of(mutant, permutation_rows))


def test_every_card_is_of_a_measure_that_exists():
    assert set(CONCLUSIONS) == set(EVERY_CONCLUSION)
    emitted = set()
    for conclude, make in CONCLUSIONS.values():
        emitted |= {f"{found.experiment}/{found.measure.partition('@')[0]}" for found in once(conclude, make)}
    assert emitted == set(CARDS)


def test_a_setting_in_a_measures_name_shares_the_card():
    assert card("adversary", "emax-jsd-exact@0.01") is CARDS["adversary/emax-jsd-exact"]
    with pytest.raises(Refusal, match="card 'adversary/emax'"):
        card("adversary", "emax@0.01")


@every
def test_rows_that_cannot_be_read_are_refused(conclude, make):
    rows = make()
    with pytest.raises(Refusal, match="no column subject"):
        conclude(rows.drop(columns="subject"), mode="corrected", rng=np.random.default_rng(0))
    with pytest.raises(Refusal, match="'t0000' twice for seed 0, trained"):
        conclude(pd.concat([rows, rows.iloc[:1]]), mode="corrected", rng=np.random.default_rng(0))


def test_permutation_by_hand():
    rows = pd.concat(
        [
            shuffles(
                [0.0, 0.02, 0.1, 0.4, math.nan], [0.1, 0.25, 0.6, 1.0, 1.0], ["no", "yes", "no", "yes", "yes"]
            ),
            shuffles([0.01, 0.03], [0.1, 0.2], ["no", "yes"], subject="untrained"),
            shuffles([0.3, 0.5, math.nan], subject="shuffled labels"),
        ]
    )
    found = concluded(rows, permutation.conclude)
    overall = one(found, "median-output-change")
    assert overall["estimate"] == pytest.approx(0.13) and overall["null"] == pytest.approx(0.02)
    assert overall["std"] == pytest.approx(np.std([0.0, 0.02, 0.1, 0.4]))
    assert (overall["n"], overall["excluded"], overall["why"]) == (4, 1, "one token: nothing to permute")
    unmoved = one(found, "share-unmoved")
    assert (unmoved["estimate"], unmoved["null"], unmoved["n"], unmoved["excluded"]) == (0.5, 1.0, 4, 1)
    expected = {
        "overall": 0.13,
        "predicted=no": 0.05,
        "predicted=yes": 0.21,
        "max attention [0.00, 0.25)": 0.0,
        "max attention [0.25, 0.50)": 0.02,
        "max attention [0.50, 0.75)": 0.1,
        "max attention [0.75, 1.00]": 0.4,
        "predicted=no, max attention [0.00, 0.25)": 0.0,
        "predicted=no, max attention [0.50, 0.75)": 0.1,
        "predicted=yes, max attention [0.25, 0.50)": 0.02,
        "predicted=yes, max attention [0.75, 1.00]": 0.4,
        "untrained": 0.02,
        "shuffled labels": 0.4,
    }
    changes = found[found["measure"] == "median-output-change"].set_index("group")
    assert changes["estimate"].to_dict() == pytest.approx(expected)
    assert changes["null"].dropna().to_dict() == pytest.approx(
        {
            "overall": 0.02,
            "predicted=no": 0.01,
            "predicted=yes": 0.03,
            "max attention [0.00, 0.25)": 0.02,
            "predicted=no, max attention [0.00, 0.25)": 0.01,
            "shuffled labels": 0.02,
        }
    )
    assert one(found, "share-unmoved", "untrained")["estimate"] == 1.0
    shuffled = one(found, "share-unmoved", "shuffled labels")
    assert (shuffled["estimate"], shuffled["null"], shuffled["n"], shuffled["excluded"]) == (0.0, 1.0, 2, 1)


def test_answers_too_many_to_be_classes_are_pooled():
    most = permutation_rows()["id"].nunique()
    assert most > MOST_CLASSES
    for classes, found in ((MOST_CLASSES, True), (MOST_CLASSES + 1, False)):
        rows = shuffles(np.zeros(most), predicted=[f"answer {n % classes}" for n in range(most)])
        assert concluded(rows, permutation.conclude)["group"].str.startswith("predicted").any() == found


def test_bins_are_closed_below_and_the_last_above():
    attention = [0.0, 0.25, 0.5, 0.75, 1.0, np.nextafter(np.float32(1), np.float32(2))]
    found = concluded(shuffles([0.0, 0.1, 0.2, 0.3, 0.5, 0.7], attention), permutation.conclude)
    sizes = found[found["group"].str.startswith("max attention")].set_index("group")["n"]
    assert sizes.tolist() == [1, 1, 1, 3]


def test_a_change_of_exactly_the_threshold_has_moved():
    found = concluded(shuffles([0.05, 0.0499]), permutation.conclude)
    assert one(found, "share-unmoved")["estimate"] == 0.5


def test_seeds_count_alike_in_every_group():
    rows = pd.concat([shuffles([0.2] * 3, seed=0), shuffles([0.8], seed=1), shuffles([math.nan], seed=2)])
    overall = one(concluded(rows, permutation.conclude), "median-output-change")
    assert overall["estimate"] == pytest.approx(0.5)
    assert overall["seed_std"] == pytest.approx(0.6 / math.sqrt(2))
    assert (overall["n"], overall["seeds"], overall["excluded"]) == (4, 2, 1)


def test_seeds_that_answer_alike_tell_no_more_than_one_in_any_group():
    changes = np.linspace(0, 1, 200)
    classes = np.where(np.arange(200) % 3 > 0, "yes", "no")
    rows = pd.concat([shuffles(changes, predicted=classes, seed=seed) for seed in range(8)])
    alone = rows[rows["seed"] == 0]
    for group in ("overall", "predicted=yes", "predicted=no"):
        many, few = (
            one(concluded(some, permutation.conclude), "median-output-change", group)
            for some in (rows, alone)
        )
        assert many["high"] - many["low"] == pytest.approx(few["high"] - few["low"], rel=0.15)
        assert many["seed_std"] == pytest.approx(0, abs=1e-12) and math.isnan(few["seed_std"])


def test_texts_of_one_token_only_leave_nothing_but_the_count():
    overall = one(concluded(shuffles([math.nan, math.nan]), permutation.conclude), "median-output-change")
    assert math.isnan(overall["estimate"]) and math.isnan(overall["std"]) and math.isnan(overall["null"])
    assert (overall["n"], overall["seeds"], overall["excluded"], overall["interval"]) == (0, 0, 2, "none")


def test_the_table_has_the_same_columns_and_types_with_and_without_findings(tmp_path):
    order = "experiment measure group estimate std seed_std low high interval n seeds excluded why null mode"
    assert " ".join(COLUMNS) == order + " error freedom by_seed"
    full, empty = to_frame([SOUND]), to_frame([])
    pd.testing.assert_series_equal(full.dtypes, empty.dtypes)
    assert full["n"].dtype == np.int64 and full["estimate"].dtype == np.float64
    full.to_parquet(tmp_path / "findings.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "findings.parquet"), full)


def test_a_table_from_before_gets_the_columns_it_lacks():
    table = to_frame([SOUND])
    before = table.drop(columns=["error", "freedom", "by_seed"])
    pd.testing.assert_frame_equal(completed(before), table)
    full = to_frame([replace(SOUND, error=0.05, freedom=9.0, by_seed="[0.5]")])
    pd.testing.assert_frame_equal(completed(full), full)


def test_the_estimates_of_seeds_are_written_with_nine_digits_and_read_again():
    assert seeds_as_json([1 / 3, 1e-12, math.inf]) == "[0.333333333, 1e-12, null]"
    assert seed_estimates("[0.5, 1]") == [0.5, 1.0] and math.isnan(seed_estimates("[null]")[0])
    assert seeds_as_json([]) == "" and seed_estimates("") == []


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"n": -1}, "n=-1"),
        ({"excluded": -1}, "excluded=-1"),
        ({"seeds": -1}, "seeds=-1"),
        ({"low": 0.7}, r"interval \[0.7, 0.6\]"),
        ({"std": -0.1}, "deviations of -0.1 and nan"),
        ({"seeds": 2, "seed_std": -0.1}, "deviations of 0.1 and -0.1"),
        ({"seed_std": 0.1}, "a spread over seeds of 0.1 from 1"),
        ({"excluded": 2}, "2 exclusions without a reason"),
        ({"error": -0.1, "freedom": 3.0}, "a standard error of -0.1"),
        ({"error": 0.1, "freedom": 0.0}, "with 0 degrees of freedom"),
        ({"by_seed": "[0.4, 0.6]"}, "by 1 seeds"),
    ],
)
def test_a_finding_refuses_nonsense(wrong, message):
    with pytest.raises(Refusal, match=message):
        Finding(**{**vars(SOUND), **wrong})


def test_a_finding_may_be_unknown_or_outside_its_interval():
    Finding(**{**vars(SOUND), "estimate": 0.9})
    Finding(**{**vars(SOUND), "low": math.nan, "high": math.nan, "estimate": math.nan, "std": math.nan})
