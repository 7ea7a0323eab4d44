"""Calibration from cells: audits of models whose truth is known, tests that train, truth by brute force."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import kendalltau

from attentest.auditing.run import audited
from attentest.bench.corpora import stored_corpus
from attentest.bench.plan import Planner, spelled
from attentest.bench.subjects import Stored
from attentest.bench.verbs import run_study
from attentest.corpus.example import Example
from attentest.experiments.calibration import COLUMNS, FRESH, labels
from attentest.experiments.calibration.conclude import conclude
from attentest.experiments.calibration.observe import Calibration
from attentest.experiments.calibration.truth import truth_of
from attentest.experiments.importance.observe import Importances
from attentest.experiments.observers import experiment
from attentest.model.config import ModelConfig
from attentest.model.constructions import CONSTRUCTIONS
from attentest.model.networks.decoder import distribution
from attentest.model.protocol import resolved
from attentest.refusal import Refusal
from attentest.statistics.comparison import jensen_shannon, total_variation
from attentest.store.store import Store
from attentest.store.tables import from_parquet
from attentest.studies.recipe import load_study
from tests.observed import concluded, one
from tests.toys import toy_batch, toy_corpus, toy_model

CORPUS = "planted-reviews(cues=4,dev=20,distractors=0,negation=0.0,test=40,train=80)"
QUADRANTS = {  # a construction of each: is attention a pointer, is it a mechanism
    "graded": (True, True),
    "random-word": (False, True),
    "idle-sum": (True, False),
    "idle-random-word": (False, False),
}
STUDY = """
study = "toy-calibration"
title = "One construction of each quadrant"
seeds = 2

[grid]
corpus = ["{corpus}"]
encoder = [{encoders}]
attention = ["dot-unscaled"]

[[experiment]]
name = "calibration"
parameters = {{ {parameters} }}
"""
ASKED = "importance permutation ablation erasure plausibility adversary"


def written(folder, encoders, parameters):
    names = ", ".join(f'"constructed({name})"' for name in encoders)
    path = folder / "toy.toml"
    path.write_text(STUDY.format(corpus=CORPUS, encoders=names, parameters=parameters))
    return str(path)


def observations(store):
    """The cells of all audits that are done."""
    return [store.cell(key) for key in store.done() if store.about(key)["stage"] == "observation"]


def observed(store):
    """The rows of every audit, with the construction and the seed that they are about."""
    tables = []
    for cell in observations(store):
        config = store.cell(cell.inputs["model"]).config
        name = config["encoder"].removeprefix("constructed(").removesuffix(")")
        rows = from_parquet(store.read(cell.key, "rows.parquet"))
        tables.append(rows.assign(construction=name, seed=config.get("seed", 0)))
    return pd.concat(tables, ignore_index=True)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """First one seed, then two: what the second run says, and the store."""
    folder = tmp_path_factory.mktemp("calibrated")
    parameters = 'texts = 30, questions = "permutation ablation"'
    path = written(folder, QUADRANTS, parameters)
    url = str(folder / "store")
    first = run_study(path, url, seeds=1, engine="inline", device="cpu")
    assert not first["failed"]
    return path, url, run_study(path, url, engine="inline", device="cpu")


def test_a_study_goes_on_where_it_stopped(calibrated):
    path, url, second = calibrated
    assert not second["failed"]
    assert second["computed"] == 4 * 3  # of every construction the second seed's model and audit, the finding
    third = run_study(path, url, engine="inline", device="cpu")
    assert third["computed"] == 0 and str(third["findings"]) == str(second["findings"])


def test_a_row_is_one_test_of_one_audit_beside_the_truth(calibrated):
    rows = observed(Store(calibrated[1]))
    assert set(rows.columns) == {*COLUMNS, "construction"}
    assert set(rows["subject"]) == {"trained"} and set(rows["seed"]) == {0, 1}
    assert {"permutation/median-output-change", "ablation/uniform-output-change"} <= set(rows["id"])
    assert not rows.duplicated(["construction", "seed", "id"]).any()
    change = rows[rows["id"] == "ablation/uniform-output-change"]
    assert (change["n"] == 30).all() and np.isfinite(change[["error", "freedom"]]).all(axis=None)
    for name, (pointer, mechanism) in QUADRANTS.items():
        of = rows[rows["construction"] == name]
        for points, depends in of[["points", "depends"]].drop_duplicates().to_numpy():
            assert labels(points, depends) == {"pointer": pointer, "mechanism": mechanism}
    moved = change.groupby("construction")["estimate"].min()
    assert moved["graded"] > 0.05 and moved["idle-sum"] < 1e-5


def test_the_two_seeds_are_audits_of_other_texts(calibrated):
    rows = observed(Store(calibrated[1]))
    of = rows[(rows["construction"] == "graded") & (rows["id"] == "ablation/uniform-output-change")]
    assert len(of) == 2 and of["estimate"].nunique() == 2


def test_findings_are_means_over_audits(calibrated):
    _, url, result = calibrated
    findings, rows = pd.DataFrame(result["findings"]), observed(Store(url))
    of = findings[findings["encoder"] == "constructed(graded)"]
    told = of[of["measure"] == "test@ablation:uniform-output-change"].iloc[0]
    known = rows[(rows["construction"] == "graded") & (rows["id"] == "ablation/uniform-output-change")]
    by_seed = known.sort_values("seed")["estimate"].to_numpy()
    assert told["estimate"] == pytest.approx(by_seed.mean()) and told["seeds"] == 2
    assert json.loads(told["by_seed"]) == pytest.approx(by_seed, rel=1e-8)
    assert told["error"] == pytest.approx(by_seed.std(ddof=1) / math.sqrt(2))
    assert of[of["measure"] == "points"].iloc[0]["estimate"] == pytest.approx(1.0, abs=0.05)


def test_conclude_by_hand():
    def row(seed, name, estimate, null=0.0, n=10):
        number = {"estimate": estimate, "error": 0.1, "freedom": 9.0, "null": null, "n": n}
        return {"seed": seed, "subject": "trained", "id": name, **number, "points": 0.9, "depends": 0.3}

    rows = pd.DataFrame([row(0, "a/x", 0.2, 0.1), row(1, "a/x", 0.4, 0.3), row(0, "a/y", 0.5)])
    rows = pd.concat([rows, pd.DataFrame([row(1, "a/y", math.nan)])])
    findings = concluded(rows, conclude)
    assert tuple(one(findings, "test@a:x")[["estimate", "null", "n"]]) == pytest.approx((0.3, 0.2, 20))
    partly = one(findings, "test@a:y")
    assert (partly["estimate"], partly["seeds"], partly["excluded"]) == (0.5, 1, 10) and partly["why"]
    assert (one(findings, "points")["estimate"], one(findings, "depends")["estimate"]) == (0.9, 0.3)
    with pytest.raises(Refusal, match="depends"):
        conclude(rows.drop(columns="depends"), mode="corrected", rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"texts": 1}, "at least 2"),
        ({"questions": "permutation taste"}, "question of an audit 'taste'"),
        ({"budget": "large"}, "budget 'large'"),
        ({"trains": 1}, "a value like False"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong, said):
    with pytest.raises(Refusal, match=said):
        experiment("calibration", "corrected", wrong)


def test_too_few_texts_and_another_corpus_are_refused(calibrated, tmp_path):
    few = written(tmp_path, ["graded"], 'texts = 41, questions = "performance"')
    with pytest.raises(Refusal, match="41 texts of a test split of 40"):
        run_study(few, calibrated[1], seeds=1, engine="inline", device="cpu")
    config = ModelConfig(encoder="constructed(graded)", attention="dot-unscaled")
    with pytest.raises(Refusal, match="Use planted-reviews"):
        resolved(config, family="qa", classes=2, has_query=True)


def test_a_construction_has_no_untrained_twin_and_a_trained_model_has_one(calibrated):
    store = Store(calibrated[1])
    model = Stored(observations(store)[0], store, "cpu").model("trained")
    examples = [Example(id=str(n), tokens=("a", "superb", "film"), label=model.labels[n]) for n in (0, 1)]
    of_construction = audited(model, examples, "quick", questions=["permutation"])
    assert "the untrained control" in of_construction.left_out
    corpus = toy_corpus()
    of_trained = audited(toy_model(corpus), corpus.test, "quick", questions=["permutation"])
    assert "the untrained control" not in of_trained.left_out


# --- keys


def resolved_construction(name="graded"):
    config = ModelConfig(encoder=f"constructed({name})", attention="dot-unscaled")
    return resolved(config, family="classification", classes=2, has_query=False)


def test_cells_keep_the_keys_of_their_version(store):
    """Version 2 of the observation: a younger parameter stays out at its default."""
    planner = Planner(store)
    corpus = planner.corpus(CORPUS)
    config, where = planner.resolve(resolved_construction(), corpus)
    first = planner.observation(Calibration(questions=ASKED, searches=False), config, corpus, where)
    assert first.key.startswith("745edd0dfa211162d2f2a747e8e4a18a24a958ea")
    assert "trains" not in spelled(Calibration())["parameters"]
    trains = planner.observation(Calibration(trains=True, questions=ASKED), config, corpus, where)
    assert trains.config["parameters"]["trains"] is True and trains.key != first.key


# --- tests that train other models


def test_it_trains_nothing_unless_it_is_asked_to():
    assert Calibration().siblings(resolved_construction()) == {}


def test_the_models_that_are_trained_are_written_out_whole():
    siblings = Calibration(trains=True).siblings(replace(resolved_construction(), seed=3))
    assert list(siblings) == ["trained adversary", "guided by base", "guided by uniform"]
    adversary, guided, uniform = siblings.values()
    assert (adversary.encoder, adversary.loss) == ("bilstm", "imitate(subject, 0.001)")
    assert (guided.encoder, guided.projection, guided.guide) == ("average", "stored", "subject")
    assert replace(guided, projection="uniform", guide=None) == uniform
    for config in siblings.values():
        assert resolved(config, family="classification", classes=2, has_query=False) == config
        assert config.seed == 3 and config.embedding == 16 and config.decoder == "sigmoid"


@pytest.mark.parametrize(
    "config",
    [
        resolved_construction("hf-used-pointer"),
        ModelConfig(encoder="han-bigru"),
        ModelConfig(attention="last-state"),
    ],
    ids=["transformer", "hierarchical", "last state"],
)
def test_weights_that_do_not_belong_to_words_are_not_learnt_from(config):
    with pytest.raises(Refusal, match="gives every word a weight"):
        Calibration(trains=True).siblings(config)


@pytest.fixture(scope="module")
def trained(calibrated, tmp_path_factory):
    """One construction with what is trained beside it; an audit of the whole test split of 40 texts."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(calibrated[1], folder / "store")
    path = written(folder, ["graded"], 'texts = 40, questions = "performance", trains = true')
    result = run_study(path, str(folder / "store"), seeds=1, engine="inline", device="cpu")
    assert not result["failed"]
    return Store(str(folder / "store"))


def test_the_rows_of_trained_models_are_means_over_the_audited_texts(trained):
    cell = next(cell for cell in observations(trained) if "trains" in cell.config["parameters"])
    sources = Stored(cell, trained, "cpu")
    corpus, _ = stored_corpus(trained, cell.inputs["corpus"])
    rows = from_parquet(trained.read(cell.key, "rows.parquet")).set_index("id")
    outputs, weights, right = {}, {}, {}
    for name in ("trained", "trained adversary", "guided by base", "guided by uniform"):
        model = sources.model(name)
        with torch.no_grad():
            batch = toy_batch(model, corpus)
            reading = model.read(batch)
            outputs[name] = distribution(model.decide(reading).double()).numpy()
        weights[name] = [row[mask] for row, mask in zip(reading.weights, reading.mask, strict=True)]
        right[name] = (outputs[name].argmax(1) == batch.labels.numpy()).astype(float)
    for own, guide in zip(weights["trained"], weights["guided by base"], strict=True):
        assert torch.allclose(own, guide)
    both = zip(weights["trained"], weights["trained adversary"], strict=True)
    known = {
        "trained-adversary/jsd": np.array([jensen_shannon(*pair) for pair in both]),
        "trained-adversary/tvd": np.array(
            [total_variation(*pair) for pair in zip(*list(outputs.values())[:2], strict=True)]
        ),
        "guided/accuracy-gain": right["guided by base"] - right["guided by uniform"],
    }
    for name, values in known.items():
        told = rows.loc[name]
        assert told["estimate"] == pytest.approx(values.mean(), abs=1e-6)
        assert told["error"] == pytest.approx(values.std(ddof=1) / math.sqrt(40), abs=1e-6)
        assert (told["n"], told["freedom"], told["points"] > 0.9) == (40, 39, True)
    assert rows.loc["guided/accuracy-gain", "null"] == 0 and math.isnan(
        rows.loc["trained-adversary/jsd", "null"]
    )


# --- the truth about trained models


def softmax(scores):
    grown = np.exp(scores - scores.max())
    return grown / grown.sum()


def by_hand(score, logit, bias):
    """Of a model without context: its output is a mean over words, by weights that are their own scores'."""

    def probability(words, weights):
        return 1 / (
            1 + math.exp(-(sum(w * logit[word] for w, word in zip(weights, words, strict=True)) + bias))
        )

    def truth(words):
        weights = softmax(np.array([score[word] for word in words]))
        own, places = probability(words, weights), range(len(words))
        rests = [words[:place] + words[place + 1 :] for place in places]
        without = [probability(rest, softmax(np.array([score[word] for word in rest]))) for rest in rests]
        tau = kendalltau(weights, [abs(each - own) for each in without]).statistic
        corners = [probability(words, np.eye(len(words))[place]) for place in places]
        return tau, np.mean([abs(each - own) for each in corners])

    return truth


def test_brute_force_is_what_a_sum_over_words_gives():
    corpus = toy_corpus(lengths=(5, 9, 4, 7))
    model = toy_model(corpus, encoder="average")
    with torch.no_grad():  # words one at a time, so that nothing is shared with reading a text
        alone = {
            word: model.read(
                toy_batch(
                    model, replace(corpus, test=(replace(corpus.test[0], tokens=(word,), sentences=None),))
                )
            )
            for example in corpus.test
            for word in example.tokens
        }
    score = {word: float(reading.scores[0, 0]) for word, reading in alone.items()}
    logit = {word: float(reading.values[0, 0, 0]) for word, reading in alone.items()}
    truth = by_hand(score, logit, float(model.decoder.bias.detach()))
    known = np.array([truth(example.tokens) for example in corpus.test])
    found = truth_of(model, corpus.test)
    assert found.points == pytest.approx(known[:, 0].mean(), abs=1e-6)
    assert found.depends == pytest.approx(known[:, 1].mean(), abs=1e-6)


def test_brute_force_of_a_recurrent_model_agrees_with_leave_one_out():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="bilstm").double()
    own = Importances.of(model, toy_batch(model, corpus))
    taus, _ = own.agreement(own.weights, own.loo)
    assert truth_of(model, corpus.test).points == pytest.approx(np.nanmean(taus), abs=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_brute_force_of_a_model_on_a_gpu():
    corpus = toy_corpus()
    model = toy_model(corpus).double()
    here = truth_of(model, corpus.test)
    there = truth_of(model.to("cuda"), corpus.test)
    assert (there.points, there.depends) == pytest.approx((here.points, here.depends), abs=1e-6)


def test_weights_that_are_all_alike_point_nowhere():
    corpus = toy_corpus()
    truth = truth_of(toy_model(corpus, encoder="average", projection="uniform"), corpus.test)
    assert truth.points == 0 and truth.depends > 0
    single = toy_corpus(lengths=(1, 1))
    assert truth_of(toy_model(single), single.test).points == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"encoder": "han-bigru"}, "weights belong to sentences"), ({"attention": "last-state"}, "one unit")],
)
def test_models_whose_weights_are_not_of_words_have_no_brute_force(settings, said):
    corpus = toy_corpus()
    with pytest.raises(Refusal, match=said):
        truth_of(toy_model(corpus, **settings), corpus.test)


def test_between_no_and_yes_there_is_no_label():
    assert labels(0.8, 0.2) == {"pointer": True, "mechanism": True}
    assert labels(0.79, 0.19) == {"pointer": None, "mechanism": None}
    assert labels(0.5, 0.05) == {"pointer": None, "mechanism": None}
    assert labels(0.49, 0.049) == {"pointer": False, "mechanism": False}
    assert labels(-0.7, 0.0) == {"pointer": False, "mechanism": False}
    assert labels(math.nan, math.nan) == {"pointer": None, "mechanism": None}


def test_the_studies_that_train_ask_for_what_there_is():
    tests = load_study("calibration-trained-tests")
    ours = {f"constructed({name})" for name, of in CONSTRUCTIONS.items() if not of.foreign}
    assert set(tests.grid.encoder) == ours - {f"constructed({name})" for name in FRESH}
    for name in ("calibration-trained", "calibration-deception", "calibration-trained-tests"):
        study = load_study(name)
        for encoder in study.grid.encoder:
            grid = {"encoder": encoder, "attention": study.grid.attention[0]}
            config = ModelConfig.of({**study.model, **grid})
            for step in study.experiment:
                experiment(step.name, step.mode, step.parameters).siblings(config)
