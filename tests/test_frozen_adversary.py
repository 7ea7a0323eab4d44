"""Adversaries within a frozen model and without (ME-5): siblings, free weights by brute force, findings."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from attentest.bench.plan import Planner
from attentest.bench.subjects import load_model
from attentest.bench.work import do
from attentest.claims.claims import Claim
from attentest.compare.papers import MEISTER
from attentest.evidence.adversary.free import FreeAdversary
from attentest.experiments.cards import card
from attentest.experiments.dispersion import conclude as dispersion
from attentest.experiments.frozen_adversary import conclude as frozen_adversary
from attentest.experiments.frozen_adversary.conclude import Curve, accuracy_at, change_at
from attentest.experiments.frozen_adversary.observe import FrozenAdversary
from attentest.experiments.observers import experiment
from attentest.experiments.sparsity import conclude as sparsity
from attentest.experiments.trained_adversary.observe import sweep
from attentest.model.config import ModelConfig
from attentest.model.networks.decoder import distribution
from attentest.model.training.building import build
from attentest.model.training.loop import Training
from attentest.refusal import Refusal
from attentest.statistics.comparison import jensen_shannon
from attentest.statistics.estimates import estimates_alone
from attentest.store.tables import from_parquet
from attentest.studies.published import load_published
from attentest.studies.recipe import load_study
from tests.observed import concluded, one
from tests.observed_dispersion import dispersion_rows
from tests.observed_meister import frozen_adversary_rows, observed, sparsity_rows
from tests.observed_wiegreffe_pinter import apart
from tests.toys import toy_batch, toy_corpus, toy_model

NAN = math.nan
QUICK = {"lambdas": "1e-3 1e-2", "others": 1, "starts": 2, "steps": 10}


def test_frozen_models_keep_all_but_their_attention():
    siblings = FrozenAdversary(**QUICK).siblings(ModelConfig(hidden=8, epochs=8))
    assert list(siblings) == [
        *("frozen lambda 0.001", "frozen lambda 0.01", "unfrozen lambda 0.001", "unfrozen lambda 0.01"),
        *("seed 1", "untrained", "shuffled labels"),
    ]
    frozen, unfrozen = siblings["frozen lambda 0.01"], siblings["unfrozen lambda 0.01"]
    assert frozen == replace(
        unfrozen,
        start_from="subject",
        reset=("attention",),
        freeze=("embedding", "encoder", "decoder"),
    )
    assert unfrozen.loss == "imitate(subject, 0.01)" and unfrozen.start_from is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"others": 0}, "0 other seeds"),
        ({"lambdas": "-1"}, "different numbers of at least 0"),
        ({"starts": 0}, "0 starts"),
        ({"steps": 0}, "0 steps"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(Refusal, match=message):
        FrozenAdversary(**wrong)


def test_attention_that_is_not_learnt_cannot_be_an_adversary():
    with pytest.raises(Refusal, match="weights over words that are learnt"):
        FrozenAdversary().siblings(ModelConfig(projection="uniform"))


@pytest.mark.parametrize("reset", [("attention",), ("attention", "decoder"), ("encoder", "embedding")])
def test_what_is_reset_is_the_own_seeds_and_the_rest_anothers(reset):
    corpus = toy_corpus(query=True)
    other, fresh = toy_model(corpus, seed=1), toy_model(corpus, seed=0)
    config = replace(fresh.config, start_from="other", reset=reset)
    mixed = build(config, corpus, fresh.vocabulary, start=other.state_dict()).state_dict()
    for name, tensor in mixed.items():
        part = name.partition(".")[0].removeprefix("query_")
        source = fresh if part in reset else other
        assert torch.equal(tensor, source.state_dict()[name]), name
    assert any(name.startswith("query_encoder.") for name in mixed)


def test_a_start_that_lacks_something_is_not_filled_up_in_silence():
    corpus = toy_corpus()
    model = toy_model(corpus)
    start = {name: tensor for name, tensor in model.state_dict().items() if "decoder" not in name}
    config = replace(model.config, start_from="other", reset=("attention",))
    with pytest.raises(RuntimeError, match="Missing key"):
        build(config, corpus, model.vocabulary, start=start)


def test_reset_is_refused_where_nothing_is_started_from_and_enters_the_key_only_where_said():
    with pytest.raises(Refusal, match="start_from, whose other parts are kept"):
        ModelConfig(reset=("attention",))
    with pytest.raises(Refusal, match="part to reset"):
        ModelConfig(start_from="x", reset=("scorer",))
    assert ModelConfig().spelled() == {}
    said = ModelConfig(start_from="x", reset=("attention",), attention_rate=10.0).spelled()
    assert said == {"start_from": "x", "reset": ["attention"], "attention_rate": 10.0}
    assert ModelConfig.of(said).reset == ("attention",)
    with pytest.raises(Refusal, match="attention_rate"):
        ModelConfig(attention_rate=-1.0)
    for part in ("reset", "freeze"):
        with pytest.raises(Refusal, match=f"{part}: got 3, but needs"):
            ModelConfig.of({"start_from": "x", part: 3})


def test_attention_may_learn_at_a_rate_of_its_own():
    corpus = toy_corpus()
    moved = {}
    for rate in (0.0, 1.0):
        model = toy_model(corpus, attention_rate=rate, epochs=1)
        before = {name: tensor.clone() for name, tensor in model.named_parameters()}
        Training(model, corpus).run()
        for name, tensor in model.named_parameters():
            moved[rate, name] = not torch.equal(tensor, before[name])
    assert {moved[0.0, name] for _, name in moved if name.startswith("attention.")} == {False}
    assert moved[0.0, "decoder.dense.weight"] and moved[1.0, "attention.to_score.weight"]


def loss_of(model, reading, weights, strength):
    """The loss of one text under one attention, the long way."""
    own, other = (
        distribution(model.decide(reading, given=w[None]))[0] for w in (reading.weights[0], weights)
    )
    kept = weights > 0
    moved = (weights[kept] * (weights[kept] / reading.weights[0][kept]).log()).sum()
    return (0.25 * (own - other).abs().sum() - strength * moved).item()


@pytest.mark.parametrize("strength", [0.0, 0.01, 0.5])
def test_free_weights_are_as_good_as_the_best_of_a_fine_grid(strength):
    corpus = toy_corpus(lengths=(3,))
    model = toy_model(corpus, encoder="average", vectors="random(3.0)")
    model.decoder.dense.weight.data.mul_(5)
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
    search = FreeAdversary(strength=strength, starts=20, steps=400)
    found = search.run(model, reading, rng=torch.Generator().manual_seed(0))[0]
    assert found.sum().item() == pytest.approx(1, abs=1e-5) and (found >= 0).all()
    steps = np.linspace(0, 1, 41)
    grid = [(a, b, 1 - a - b) for a, b in itertools.product(steps, steps) if a + b <= 1 + 1e-9]
    best = min(loss_of(model, reading, torch.tensor(each).clamp_min(0).float(), strength) for each in grid)
    assert loss_of(model, reading, found, strength) <= best + 2e-3
    if strength == 0:
        assert torch.equal(found, reading.weights[0]), "nothing is better than to stay"


@pytest.mark.parametrize("projection", ["softmax", "sparsemax"])
def test_free_weights_never_fall_on_padding_and_each_text_stands_alone(projection):
    corpus = toy_corpus()
    model = toy_model(corpus, projection=projection, hidden=5)
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
    found = FreeAdversary(strength=0.01, starts=3, steps=20).run(
        model, reading, rng=torch.Generator().manual_seed(0)
    )
    assert not found[~reading.mask].any()
    torch.testing.assert_close(found.sum(1), torch.ones(len(found)))
    assert found[1, 0] == 1, "one token has no choice"


def test_a_query_and_several_answers_have_free_weights_too():
    rows, _ = observed(FrozenAdversary(**QUICK), toy_corpus(query=True, labels=("a", "b", "c")), hidden=5)
    free = rows[rows["subject"] == "free lambda 0.01"]
    assert len(free) == 6 and (free.loc[free["length"] > 1, "jsd"] > 0).all()


def test_rows_place_every_model_beside_the_base():
    corpus = toy_corpus()
    rows, models = observed(FrozenAdversary(**QUICK), corpus, hidden=5)
    free = {"free lambda 0.001", "free lambda 0.01"}
    assert set(rows["subject"]) == {*models, *free} and (rows.groupby("subject").size() == 6).all()
    numbers = dict(zip(rows["subject"], rows["lambda"], strict=True))
    assert numbers["free lambda 0.01"] == numbers["frozen lambda 0.01"] == 0.01
    assert math.isnan(numbers["seed 1"]) and math.isnan(numbers["trained"])
    with torch.no_grad():
        readings = {
            name: models[name].read(toy_batch(models[name], corpus)) for name in ("trained", "seed 1")
        }
    told = rows[rows["subject"] == "seed 1"].set_index("id")["jsd"]
    for place, example in enumerate(corpus.test):
        pair = [reading.weights[place, : len(example.tokens)] for reading in readings.values()]
        expected = jensen_shannon(*pair) if len(example.tokens) > 1 else NAN
        assert told[example.id] == pytest.approx(expected, abs=1e-6, nan_ok=True)


def nan_attention(model):
    for parameter in model.attention.parameters():
        parameter.data.fill_(NAN)


@pytest.mark.parametrize("lengths", [(1, 1), (5, 4)], ids=["one token", "no numbers"])
def test_what_is_undefined_is_counted_and_nothing_crashes(lengths):
    spoil = nan_attention if lengths == (5, 4) else lambda model: None
    rows, _ = observed(FrozenAdversary(**QUICK), toy_corpus(lengths=lengths), spoil, hidden=5)
    found = concluded(rows.assign(seed=0), frozen_adversary.conclude)
    jsd = one(found, "attention-jsd", "free lambda 0.01")
    assert math.isnan(jsd["estimate"]) and jsd["excluded"] == 2
    curve = one(found, "accuracy-change", "free at 0.62")
    assert math.isnan(curve["estimate"]) and curve["why"] == frozen_adversary.NOT_ON_THE_CURVE


def one_word_each(model):
    for parameter in model.attention.parameters():
        parameter.data.mul_(1e4)


def test_a_base_with_a_support_of_one_and_one_answer_can_be_left():
    def spoil(model):
        one_word_each(model)
        model.decoder.dense.bias.data.fill_(1e3)

    rows, _ = observed(
        FrozenAdversary(**QUICK), toy_corpus(), spoil, hidden=5, projection="sparsemax", attention="dot"
    )
    base = rows[rows["subject"] == "trained"]
    assert (base["max_attention"] == 1).all() and set(base["predicted"]) == {"yes"}
    found = concluded(rows.assign(seed=0), frozen_adversary.conclude)
    free = one(found, "attention-jsd", "free lambda 0.01")
    assert free["excluded"] == 1 and free["estimate"] > 0.5, "a weight of zero is told as a small one (A31)"


def test_a_curve_is_read_off_between_neighbours_and_never_beyond_the_last():
    """Two texts; the base is right on both, adversaries at mean 0.2 and 0.6 on both and on one."""
    sample = Curve(
        np.array(["a", "b"]),
        np.array([[0.0, 0.2, 0.6], [0.0, 0.2, 0.6]]),
        np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]),
    )
    weights = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    assert accuracy_at(0.4)(sample, weights) == pytest.approx([0.75, 0.5, 1.0])
    assert change_at(0.4)(sample, weights) == pytest.approx([-0.25, -0.5, 0.0])
    assert accuracy_at(0.1)(sample, weights) == pytest.approx([1.0, 1.0, 1.0])
    assert accuracy_at(0.6)(sample, weights) == pytest.approx([0.5, 0.0, 1.0])
    assert np.isnan(accuracy_at(0.61)(sample, weights)).all()


def test_a_curve_that_turns_back_is_read_where_it_first_gets_there():
    """The second adversary is nearer to the base than the first, and wrong: nobody would take it."""
    sample = Curve(np.array(["a"]), np.array([[0.0, 0.66, 0.64]]), np.array([[1.0, 1.0, 0.0]]))
    once = np.ones((1, 1))
    assert accuracy_at(0.62)(sample, once) == pytest.approx([1.0])
    assert accuracy_at(0.65)(sample, once) == pytest.approx([1.0])
    idle = Curve(np.array(["a"]), np.array([[0.0, 0.0, 0.5]]), np.array([[1.0, 1.0, 0.0]]))
    assert accuracy_at(0.25)(idle, once) == pytest.approx([0.5]), (
        "an adversary that stays is no division by 0"
    )
    assert accuracy_at(0.0)(idle, once) == pytest.approx([1.0])


def test_findings_by_hand():
    def point(subject, right, seed=0, **columns):
        rows = apart(4, seed, subject, **columns)
        yes = np.where(np.arange(4) < right, rows["gold"], 1 - rows["gold"]) * 0.8 + 0.1
        answers = np.where(yes > 0.5, "yes", "no")
        return rows.assign(probabilities=np.stack([1 - yes, yes], axis=1).tolist(), predicted=answers)

    rows = pd.concat(
        [
            point("trained", 4),
            point("trained", 3, seed=1),
            point("frozen lambda 0.01", 2, jsd=0.67, **{"lambda": 0.01}),
            point("frozen lambda 0.001", 4, jsd=0.57, **{"lambda": 0.001}),
            point("unfrozen lambda 0.01", 4, jsd=0.5, **{"lambda": 0.01}),
            point("seed 1", 3, jsd=0.1),
            point("untrained", 2, jsd=0.3),
        ]
    )
    found = concluded(rows, frozen_adversary.conclude)

    def told(measure, group):
        return tuple(one(found, measure, group)[["estimate", "null"]])

    assert told("attention-jsd", "frozen lambda 0.01") == pytest.approx((0.67, 0.1))
    assert told("accuracy", "frozen lambda 0.01") == pytest.approx((0.5, 0.5))
    assert told("accuracy", "trained") == pytest.approx((0.875, 0.5))
    # Two seeds of the base differ by a quarter.
    assert told("accuracy-change", "frozen lambda 0.01") == pytest.approx((-0.5, -0.25))
    assert told("accuracy-change", "frozen at 0.62") == pytest.approx((-0.25, -0.25))
    assert told("accuracy", "frozen at 0.57") == pytest.approx((1.0, 0.5))
    beyond = one(found, "accuracy-change", "unfrozen at 0.57")
    assert math.isnan(beyond["estimate"]) and beyond["why"] == frozen_adversary.NOT_REACHED
    assert not found["group"].str.startswith("free").any()
    order = [name for name in dict.fromkeys(found["group"]) if name.startswith("frozen lambda")]
    assert order == ["frozen lambda 0.001", "frozen lambda 0.01"]


def test_every_measure_has_a_card():
    for finding in concluded(frozen_adversary_rows(), frozen_adversary.conclude).itertuples():
        low, high = card("frozen-adversary", finding.measure).range
        assert math.isnan(finding.estimate) or low <= finding.estimate <= high


def test_a_whole_run_from_cells(store, monkeypatch):
    """Every kind of adversary attends elsewhere; frozen ones are the base's in all but their attention."""
    monkeypatch.setattr("attentest.experiments.trained_adversary.observe.EPOCHS", 25)
    planner = Planner(store)
    corpus = planner.corpus("planted-keyword")
    small = {"encoder": "average", "hidden": 16, "embedding": 12, "epochs": 8, "batch_size": 1000}
    config, where = planner.resolve(ModelConfig.of({**small, "learning_rate": 0.1}), corpus)
    step = experiment(
        "frozen-adversary", "corrected", {"lambdas": "0.05", "others": 1, "starts": 2, "steps": 50}
    )
    cell = planner.observation(step, config, corpus, where)
    for key, missing in planner.missing([cell]).items():
        store.plan(missing)
        do(key, store, "cpu")
    base, frozen = (
        load_model(store, cell.inputs[role], "cpu").state_dict()
        for role in ("model", "sibling.frozen lambda 0.05")
    )
    same = {name.partition(".")[0]: torch.equal(tensor, frozen[name]) for name, tensor in base.items()}
    assert same == {"embedding": True, "encoder": True, "attention": False, "decoder": True}
    rows = from_parquet(store.read(cell.key, "rows.parquet")).assign(seed=0)
    found = concluded(rows, frozen_adversary.conclude)
    apart = {
        kind: one(found, "attention-jsd", f"{kind} lambda 0.05")["estimate"]
        for kind in ("frozen", "free", "unfrozen")
    }
    assert min(apart["frozen"], apart["unfrozen"]) > 0.4 and apart["free"] > 0.2
    read_off = one(found, "accuracy-change", "frozen at 0.57")["estimate"]
    assert math.isfinite(read_off) == (apart["frozen"] >= 0.57)


@pytest.fixture(scope="module")
def made():
    """Which findings there are; their intervals are tested elsewhere."""
    with estimates_alone(every_group=True):
        return {
            "dispersion": concluded(dispersion_rows(), dispersion.conclude),
            "sparsity": concluded(sparsity_rows(), sparsity.conclude),
            "frozen-adversary": concluded(frozen_adversary_rows(), frozen_adversary.conclude),
        }


@pytest.mark.parametrize("name", ["meister-2021", "meister-2021-transformer"])
def test_every_claim_of_the_studies_is_about_a_finding_they_make(name, made):
    study = load_study(name)
    strengths = {f"frozen lambda {number:g}" for number in sweep(FrozenAdversary().lambdas)}
    for written in study.claim:
        asked, measure, group = Claim(**written.model_dump()).parts
        assert card(asked, measure) and (group in strengths or len(one(made[asked], measure, group)))
    for step in study.experiment:
        experiment(step.name, step.mode, step.parameters)


def test_the_divergences_read_off_are_those_of_the_published_table():
    for name, encoder in (("meister-2021", "BiLSTM"), ("meister-2021-transformer", "Transformer")):
        reached = [n for n in load_published(name) if n["measure"] == "jsd_attention"]
        assert len(reached) == 6
        for number in reached:
            kind = "unfrozen" if "unfrozen" in number["model"] else "frozen"
            assert number["model"].startswith(encoder) and number.value in frozen_adversary.PUBLISHED_JSD
            told = MEISTER.groups[f"{number['model']} {number['dataset']}"]
            assert told == f"{kind} at {number.value:g}"


def test_an_experiment_may_be_about_some_of_the_grid(store):
    study = load_study("meister-2021")
    small = study.model_copy(
        update={"grid": study.grid.model_copy(update={"corpus": ["planted-keyword"]}), "seeds": 1}
    )
    cells = Planner(store).study(small)
    asked = {(cell.config["experiment"], cell.config["projection"]) for cell in cells}
    both = {(name, each) for name in ("performance", "dispersion") for each in ("softmax", "sparsemax")}
    assert asked == both | {("sparsity", "softmax"), ("frozen-adversary", "softmax")}
