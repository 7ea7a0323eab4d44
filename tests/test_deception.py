"""Deceptive attention (Pruthi et al. 2020): masses and probes by hand, models that deceive, what is found."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attentest as at
from attentest.bench.plan import Planner
from attentest.bench.work import do
from attentest.claims.claims import Claim
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.deception import conclude as deception
from attentest.experiments.deception.observe import Deception, without
from attentest.experiments.observers import experiment
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.networks.decoder import distribution
from attentest.model.training.building import build
from attentest.refusal import Refusal
from attentest.store.tables import from_parquet
from attentest.studies.recipe import load_study
from tests.findings_rules import CHECKS
from tests.observed import concluded, one, texts
from tests.toys import toy_corpus, toy_model

NAN = math.nan
MODELS = ("trained", "lambda 0.1", "lambda 1", "anonymised", "untrained", "shuffled labels")
PROBES = ("zeroed", "renormalised")

# --- what is asked for


def test_siblings_differ_in_loss_or_texts_alone():
    config = ModelConfig(encoder="identity", seed=3)
    found = Deception(words=" he  she", lambdas="1 0 0.1").siblings(config)
    assert list(found) == ["lambda 0.1", "lambda 1", "anonymised", "untrained", "shuffled labels"]
    assert found["lambda 0.1"] == replace(config, loss="impermissible(0.1, he she)")
    assert found["lambda 1"] == replace(config, loss="impermissible(1, he she)")
    assert found["anonymised"] == replace(config, omit="he she")


def test_defaults_are_the_papers_penalties_on_the_planted_cue():
    assert Deception().siblings(ModelConfig())["lambda 1"].loss == "impermissible(1, <rationale>)"
    assert Deception().penalties == (0.1, 1.0)


@pytest.mark.parametrize("lambdas", ["", "0", "0 0", "one", "-1", "nan", "inf", "0.1, 1"])
def test_penalties_that_are_none_are_refused(lambdas):
    with pytest.raises(Refusal, match="numbers of at least 0, separated by spaces, one of them above 0"):
        Deception(lambdas=lambdas)


def test_no_words_and_models_that_are_penalised_already_are_refused():
    with pytest.raises(Refusal, match="no impermissible words"):
        Deception(words="  ")
    for taken in ({"loss": "log-odds(5)"}, {"omit": "he"}):
        with pytest.raises(Refusal, match="learn their task alone"):
            Deception().siblings(ModelConfig(**taken))
    with pytest.raises(Refusal, match="units of attention are words"):
        Deception().siblings(ModelConfig(encoder="han-bigru"))


# --- what is observed


def in_memory(corpus, step, **settings):
    """Nothing is trained."""
    base = toy_model(corpus, **settings)
    siblings = step.siblings(base.config)
    others = {
        name: build(replace(config, seed=number), corpus, base.vocabulary)
        for number, (name, config) in enumerate(siblings.items(), start=5)
    }
    return InMemory({"trained": base, **others}, siblings)


def observed(corpus, words, **settings):
    step = Deception(words=words)
    held = in_memory(corpus, step, **settings)
    subject = Subject(corpus, held.models["trained"].config, held)
    return pd.DataFrame(step.observe(subject, np.random.default_rng(0))), held


def by_hand(model, corpus, example, words):
    """One text alone, its weights changed word by word."""
    batch = IndexedSplit([example], model.vocabulary, corpus.labels).batch([0])
    with torch.no_grad():
        reading = model.read(batch)
        own = reading.weights[0].tolist()
        kept = [0.0 if token in words else weight for token, weight in zip(example.tokens, own, strict=True)]
        closed = [weight / sum(kept) if sum(kept) else NAN for weight in kept]
        gold = corpus.labels.index(example.label)
        told = {"impermissible": sum(token in words for token in example.tokens)}
        told["mass"] = sum(own) - sum(kept)
        told["mass_left"] = sum(kept)
        for name, weights in (("", own), ("_zeroed", kept), ("_renormalised", closed)):
            probabilities = distribution(model.decide(reading, torch.tensor([weights])))[0]
            told[f"probability{name}"] = float(probabilities[gold])
            told[f"correct{name}"] = float(int(probabilities.argmax()) == gold)
            if probabilities.isnan().any():
                told[f"correct{name}"] = NAN
    return told


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder": "identity"},
        {"encoder": "bilstm"},
        {"encoder": "transformer"},
        {"encoder": "average", "projection": "sparsemax"},
    ],
    ids=lambda settings: settings["encoder"],
)
@pytest.mark.parametrize("kind", [{}, {"query": True, "labels": ("a", "b", "c")}], ids=["plain", "query"])
def test_masses_and_probes_are_those_of_each_text_alone(settings, kind):
    corpus = toy_corpus(**kind)
    words = {"the", "cat", "sat", "far"}
    rows, held = observed(corpus, " ".join(words).upper(), **settings)
    assert set(rows["subject"]) == set(MODELS)
    for name, of_model in rows.groupby("subject"):
        texts = {example.id: example for example in corpus.test}
        assert sorted(of_model["id"]) == sorted(texts)
        for row in of_model.to_dict("records"):
            example = texts[row["id"]]
            if name == "anonymised":
                kept = tuple(token for token in example.tokens if token not in words)
                example = replace(example, tokens=kept or ("<unk>",), sentences=None)
            expected = by_hand(held.models[name], corpus, example, words)
            found = {key: row[key] for key in expected}
            assert found == pytest.approx(expected, abs=1e-6, nan_ok=True)
            assert row["length"] == len(example.tokens)
            assert (row["predicted"] == row["label"]) == (row["correct"] == 1)


def test_texts_without_and_texts_of_nothing_but_impermissible_words():
    """A one-token text is both, by the choice of words."""
    corpus = toy_corpus()
    alone = next(example for example in corpus.test if len(example.tokens) == 1)
    rows, held = observed(corpus, alone.tokens[0], encoder="average")
    trained = rows[rows["subject"] == "trained"].set_index("id")
    silent = trained[trained["impermissible"] == 0]
    assert len(silent) and (silent["mass"] == 0).all()
    for probe in PROBES:
        np.testing.assert_allclose(silent[f"probability_{probe}"], silent["probability"], atol=1e-6)
    all_of_it = trained.loc[alone.id]
    assert (all_of_it["mass"], all_of_it["mass_left"]) == (1, 0)
    assert math.isnan(all_of_it["correct_renormalised"]) and math.isnan(all_of_it["probability_renormalised"])
    bias = distribution(held.models["trained"].decoder.bias[None])[0]  # all that zeroing leaves of the output
    gold = corpus.labels.index(alone.label)
    assert all_of_it["probability_zeroed"] == pytest.approx(float(bias[gold].detach()), abs=1e-6)


def test_rationales_mark_where_they_are_and_a_corpus_without_is_refused():
    corpus = toy_corpus()
    first = {
        split: tuple(replace(e, rationale=(0,)) for e in some) for split, some in corpus.splits().items()
    }
    rows, _ = observed(replace(corpus, **first), "<rationale>", encoder="identity")
    kept = rows[rows["subject"] != "anonymised"]
    assert (kept["impermissible"] == 1).all() and (rows.drop(kept.index)["impermissible"] == 0).all()
    with pytest.raises(Refusal, match="rationale"):
        observed(corpus, "<rationale>", encoder="identity")


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 5), st.booleans()), min_size=1, max_size=9))
def test_taking_attention_away_leaves_the_rest_as_it_was_or_in_proportion(tokens):
    scores, marked = (torch.tensor([column]) for column in zip(*tokens, strict=True))
    weights = scores.to(torch.float64).softmax(-1)
    zeroed, renormalised = without(weights, marked)
    assert torch.equal(zeroed[~marked], weights[~marked]) and (zeroed[marked] == 0).all()
    if marked.all():
        assert renormalised.isnan().all()
    else:
        assert float(renormalised.sum()) == pytest.approx(1)
        torch.testing.assert_close(renormalised * zeroed.sum(), zeroed)


# --- what is found


def told(correct, seed=0, subject="trained", **columns):
    """Rows of the experiment: every text has 12 tokens, 3 of them impermissible, unless told otherwise."""
    rows = texts(len(correct), seed, subject).assign(
        correct=np.asarray(correct, dtype=np.float64), impermissible=3, mass=0.5, mass_left=0.5
    )
    probes = {f"correct_{probe}": rows["correct"] for probe in PROBES}
    return rows.assign(**probes).assign(**columns)


def found(*tables):
    return concluded(pd.concat(tables), deception.conclude)


def said(finding, *names):
    return tuple(finding[name] for name in names)


def test_accuracy_and_its_price_are_paired_by_seed_and_text():
    findings = found(
        told([1, 1, 1, 0], seed=0, label=["a", "a", "a", "b"]),
        told([1, 0, 0, 0], seed=1, label=["a", "a", "a", "b"]),
        told([0, 1, 1, 0], seed=0, subject="lambda 1", label=["a", "a", "a", "b"]).iloc[::-1],
        told([1, 1, 1, 1], seed=1, subject="lambda 1", label=["a", "a", "a", "b"]),
        told([0, 1, 0, 0], seed=0, subject="anonymised", label=["a", "a", "a", "b"], impermissible=0),
        told([0, 0, 0, 0], seed=1, subject="anonymised", label=["a", "a", "a", "b"], impermissible=0),
    )
    assert said(one(findings, "accuracy"), "estimate", "null", "seeds") == pytest.approx((0.5, 0.75, 2))
    drop = one(findings, "accuracy-drop", "lambda 1")
    assert said(drop, "estimate", "null", "n") == pytest.approx(((0.25 - 0.75) / 2, 0, 8))
    assert drop["seed_std"] == pytest.approx(np.std([0.25, -0.75], ddof=1))
    assert one(findings, "accuracy-drop", "anonymised")["estimate"] == pytest.approx(0.375)
    above = one(findings, "accuracy-above-anonymised", "lambda 1")
    assert above["estimate"] == pytest.approx((0.25 + 1.0) / 2)
    asked = set(zip(findings["measure"], findings["group"], strict=True))
    assert ("accuracy-drop", "overall") not in asked, "nobody is compared with itself"
    assert ("accuracy-above-anonymised", "anonymised") not in asked
    assert not any(measure.startswith("mass") for measure, group in asked if group == "anonymised")


def test_the_interval_of_a_price_is_that_of_paired_texts():
    """Both models fail on the same half of the texts: they differ nowhere, and the interval says so."""
    half = [0, 1] * 20
    drop = one(found(told(half), told(half, subject="lambda 1")), "accuracy-drop", "lambda 1")
    assert said(drop, "estimate", "low", "high") == (0, 0, 0)


def test_mass_stands_beside_uniform_attention_and_absent_words_are_counted():
    rows = told(
        [1, 1, 0, 1],
        impermissible=[1, 0, 2, 0],
        length=[4, 5, 8, 2],
        mass=[0.9, 0.0, 0.3, 0.0],
        mass_left=[0.1, 1.0, 0.7, 1.0],
    )
    findings = found(rows)
    assert said(one(findings, "mass"), "estimate", "null", "n", "excluded") == pytest.approx(
        (0.3, 0.125, 4, 0)
    )
    present = one(findings, "mass-where-present")
    assert said(present, "estimate", "null", "n", "excluded") == pytest.approx((0.6, 0.25, 2, 2))
    assert present["why"] == "no impermissible word"
    assert said(one(findings, "mass-left"), "estimate", "null") == pytest.approx((0.7, 0.875))


def test_texts_with_and_without_impermissible_words_are_told_apart():
    """By the original texts: the anonymised model's hold none."""
    findings = found(
        told([1, 0, 1], impermissible=[2, 1, 0]),
        told([0, 0, 1], subject="anonymised", impermissible=0),
    )
    with_any, without_any = (f", {word} impermissible words" for word in ("with", "without"))
    assert one(findings, "accuracy", f"overall{with_any}")["estimate"] == 0.5
    assert one(findings, "accuracy", f"overall{without_any}")["estimate"] == 1
    assert one(findings, "accuracy-drop", f"anonymised{with_any}")["estimate"] == 0.5
    assert one(findings, "accuracy-drop", f"anonymised{without_any}")["estimate"] == 0
    for everywhere in (2, 0):
        groups = found(told([1, 0], impermissible=everywhere))["group"]
        assert set(groups) == {"overall"}


def test_probes_by_hand_and_what_is_not_a_number_is_counted():
    rows = told(
        [1, 1, 1, NAN], correct_zeroed=[1, 0, 0, NAN], correct_renormalised=[1, 1, NAN, NAN], label="yes"
    )
    findings = found(rows)
    assert said(one(findings, "accuracy"), "estimate", "n", "excluded", "why") == (
        1,
        3,
        1,
        "the output is not a number",
    )
    assert one(findings, "accuracy-zeroed")["estimate"] == pytest.approx(1 / 3)
    assert one(findings, "zeroed-drop")["estimate"] == pytest.approx(2 / 3)
    closed = one(findings, "renormalised-drop")
    assert said(closed, "estimate", "n", "excluded") == (0, 2, 2)
    assert closed["why"].startswith("no attention left")


def test_models_come_in_the_order_of_their_penalty():
    names = (
        "lambda 1",
        "untrained",
        "lambda 0.1",
        "lambda 10",
        "shuffled labels",
        "anonymised",
        "lambda 1e-05",
    )
    groups = found(told([1, 0]), *(told([1, 0], subject=name) for name in names))["group"]
    assert list(groups.unique()) == [
        "overall",
        *("lambda 1e-05", "lambda 0.1", "lambda 1", "lambda 10"),
        *("anonymised", "untrained", "shuffled labels"),
    ]


def rows_of_all():
    rng = np.random.default_rng(0)
    tables = []
    for seed in (0, 1):
        for subject in MODELS:
            rows = told(rng.integers(0, 2, 40), seed, subject, label=rng.choice(["no", "yes"], 40))
            mass = rng.uniform(size=40)
            rows = rows.assign(mass=mass, mass_left=1 - mass, impermissible=rng.integers(0, 4, 40))
            rows.loc[::9, "correct_renormalised"] = NAN
            tables.append(rows)
    return pd.concat(tables, ignore_index=True)


def test_the_conclusion_keeps_the_house_rules():
    findings = deception.conclude(rows_of_all(), mode="corrected", rng=np.random.default_rng(0))
    for check in CHECKS:
        check(deception.conclude, rows_of_all(), findings)


def test_rows_of_another_version_are_refused():
    with pytest.raises(Refusal, match="mass_left"):
        found(told([1]).drop(columns="mass_left"))


def test_every_claim_of_the_study_is_about_a_finding():
    findings = concluded(rows_of_all(), deception.conclude)
    there = set("deception/" + findings["measure"] + "/" + findings["group"])
    claims = [Claim(**claim.model_dump()) for claim in load_study("pruthi-2020").claim]
    assert claims and {claim.statistic for claim in claims} <= there


# --- models that deceive

SMALL = {"hidden": 16, "embedding": 12, "epochs": 8, "learning_rate": 0.01}


def mass_of(model, corpus):
    """The mean attention on the planted cues."""
    split = IndexedSplit(corpus.test, model.vocabulary, corpus.labels)
    with torch.no_grad():
        weights = model.read(split.batch(range(len(split)))).weights
    cues = [weights[row, list(example.rationale)].sum() for row, example in enumerate(corpus.test)]
    return float(torch.stack(cues).mean())


@pytest.mark.parametrize(("encoder", "penalty"), [("identity", 0.1), ("bilstm", 1)])
def test_a_penalised_model_attends_elsewhere_and_answers_as_before(planted, encoder, penalty):
    free, penalised = (
        at.train(planted, encoder=encoder, loss=loss, **SMALL)
        for loss in ("task", f"impermissible({penalty}, <rationale>)")
    )
    assert min(model.record.scores["test"]["accuracy"] for model in (free, penalised)) > 0.85
    assert mass_of(penalised, planted) < 0.6 * mass_of(free, planted)


def do_all(planner, store, target):
    for key, cell in planner.missing([target]).items():
        store.plan(cell)
        do(key, store, "cpu")


def test_the_experiment_runs_from_cells(store):
    planner = Planner(store)
    corpus = planner.corpus("planted-keyword")
    do_all(planner, store, corpus)
    quick = {"encoder": "average", "hidden": 16, "embedding": 12, "epochs": 2, "learning_rate": 0.05}
    config, where = planner.resolve(ModelConfig.of({**quick, "batch_size": 100}), corpus)
    step = experiment("deception", "corrected", {"lambdas": "0.1"})
    cell = planner.observation(step, config, corpus, where)
    do_all(planner, store, cell)
    rows = from_parquet(store.read(cell.key, "rows.parquet"))
    findings = concluded(rows.assign(seed=0), deception.conclude)
    assert (rows.loc[rows["subject"] != "anonymised", "impermissible"] == 1).all()
    assert one(findings, "accuracy")["estimate"] > 0.9
    assert one(findings, "mass", "lambda 0.1")["estimate"] < one(findings, "mass")["estimate"]
    without_cues = one(findings, "accuracy", "anonymised")
    assert abs(without_cues["estimate"] - without_cues["null"]) < 0.1, "nothing else tells of the label"
    # Zeroed weights still tell what was taken away by how little they sum to; renormalised ones do not.
    silenced = one(findings, "accuracy-renormalised", "lambda 0.1")
    assert abs(silenced["estimate"] - silenced["null"]) < 0.1, "no other token's state knows of the cue"
