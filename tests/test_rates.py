"""Attention's rate, chosen on dev: a cell each, the better copied, the choice named, no old key changed."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest
import torch

from attentest.bench.corpora import stored_corpus
from attentest.bench.plan import Planner
from attentest.bench.subjects import load_model, said_in
from attentest.bench.work import do
from attentest.experiments.frozen_adversary import conclude as frozen_adversary
from attentest.experiments.frozen_adversary.observe import FrozenAdversary
from attentest.experiments.shared.attention_rate import chosen_rate
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.divergence import jensen_shannon
from attentest.model.text_rows import text_rows
from attentest.model.training.building import build
from attentest.model.training.imitation import Imitation, said
from attentest.model.training.loop import Training
from attentest.model.training.train import train
from attentest.model.training.tuning import best, candidates, imitation_loss, merit, named, settled
from attentest.refusal import Refusal
from attentest.store.tables import from_parquet
from attentest.studies.recipe import load_study
from tests.observed import concluded, one
from tests.observed_meister import frozen_adversary_rows
from tests.toys import toy_corpus, toy_model

RATES = (1.0, 10.0)
SMALL = {"encoder": "average", "hidden": 16, "embedding": 12, "epochs": 3, "batch_size": 1000}


@pytest.mark.parametrize(
    "wrong",
    [
        {"attention_rates": (1.0,)},
        {"attention_rates": (1.0, 1.0)},
        {"attention_rates": (1.0, -1.0)},
        {"attention_rates": (1.0, math.nan)},
        {"attention_rates": (1.0, "ten")},
        {"attention_rates": (1.0, 10.0), "attention_rate": 3.0},
        {"attention_starts": (1.0,)},
        {"attention_starts": (1.0, 10.0), "attention_start": 3.0},
    ],
)
def test_choices_that_leave_none_are_refused(wrong):
    with pytest.raises(Refusal, match=r"attention_(rate|start)s|a value of the wrong type"):
        ModelConfig.of(wrong)


def test_a_choice_enters_the_key_only_where_there_is_one():
    assert ModelConfig().spelled() == {}
    said_so = ModelConfig(attention_rates=RATES).spelled()
    assert said_so == {"attention_rates": [1.0, 10.0]}
    assert ModelConfig.of(said_so) == ModelConfig(attention_rates=RATES)


def test_candidates_are_the_models_that_a_single_rate_names():
    config = ModelConfig(attention_rates=RATES, seed=3)
    assert candidates(config) == [ModelConfig(seed=3), ModelConfig(seed=3, attention_rate=10.0)]
    assert candidates(ModelConfig()) == []
    far = candidates(replace(config, attention_starts=(1.0, 100.0)))
    assert far[:2] == candidates(config)
    assert far[2:] == [replace(each, attention_start=100.0) for each in candidates(config)]
    assert [named(each) for each in far] == ["rate 1", "rate 10", "rate 1, start 100", "rate 10, start 100"]


@pytest.mark.parametrize("attention", ["additive", "dot", "last-state"])
def test_a_start_is_as_many_times_what_is_drawn_and_nothing_else_changes(attention):
    corpus = toy_corpus()
    drawn, far = (toy_model(corpus, attention=attention, attention_start=size) for size in (1.0, 100.0))
    for name, tensor in far.state_dict().items():
        own = drawn.state_dict()[name]
        assert torch.equal(tensor, 100.0 * own if name.startswith("attention.") else own)
    other = toy_model(corpus, attention=attention, seed=5)
    config = replace(drawn.config, attention_start=100.0, start_from="x")
    taken = build(config, corpus, drawn.vocabulary, start=other.state_dict()).state_dict()
    assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in taken.items())


@pytest.mark.parametrize(
    "fixed",
    [
        {"epochs": 0},
        {"projection": "uniform"},
        {"projection": "stored", "guide": "random"},
        {"freeze": ("attention",)},
        {"attention": "log-odds"},
    ],
)
def test_attention_that_does_not_learn_has_no_rate_to_choose(fixed):
    assert settled(ModelConfig(attention_rates=RATES, **fixed)) == ModelConfig(**fixed)
    assert settled(ModelConfig(attention_rates=RATES)).attention_rates == RATES


def test_the_first_of_equals_is_kept_and_what_is_no_number_loses():
    assert best([(0.9, 0.8), (0.9, 0.8)]) == 0
    assert best([(0.9, 0.7), (0.9, 0.8), (0.2, 1.0)]) == 1
    model = toy_model(toy_corpus())
    assert merit(model, {"auc": math.nan, "accuracy": 0.5}, toy_corpus()) == (-math.inf, 0.5)
    several = toy_model(toy_corpus(labels=("a", "b", "c")))
    assert merit(several, {"auc": 0.9, "accuracy": 0.5}, toy_corpus()) == (0.5,)


def test_an_adversary_is_worth_its_own_loss_on_dev_text_by_text():
    corpus = toy_corpus()
    base, other = toy_model(corpus, seed=1), toy_model(corpus, loss="imitate(x, 0.3)")
    told = said(text_rows(base, corpus, "dev", scores=True), "softmax")
    split = IndexedSplit(corpus.dev, other.vocabulary, corpus.labels)
    loss = Imitation(0.3, told, [example.id for example in corpus.dev])
    alone = []
    with torch.no_grad():
        for row in range(len(split)):
            reading = other.read(split.batch([row]))
            alone.append(float(loss(reading, other.decide(reading))))
    found = imitation_loss(other, 0.3, corpus, told)
    assert found == pytest.approx(sum(alone) / len(alone), abs=1e-6)
    assert merit(other, {"auc": 1.0, "accuracy": 1.0}, corpus, told) == (-found,)


def test_training_in_python_returns_the_better_of_both():
    corpus = toy_corpus()
    settings = {**SMALL, "batch_size": 2, "vectors": "random(1.0)"}
    alone = [train(corpus, attention_rate=rate, **settings) for rate in (1.0, 300.0)]
    merits = [merit(model, model.record.scores["dev"], corpus) for model in alone]
    assert merits[0] != merits[1], "or nothing is chosen"
    chosen = train(corpus, attention_rates=(1.0, 300.0), **settings)
    expected = alone[merits.index(max(merits))]
    assert chosen.config == expected.config and chosen.record == expected.record
    for name, tensor in chosen.state_dict().items():
        assert torch.equal(tensor, expected.state_dict()[name])


def done(store, planner, targets):
    for key, missing in planner.missing(targets).items():
        store.plan(missing)
        do(key, store, "cpu")


@pytest.mark.usefixtures("few_planted")
def test_a_choice_is_a_cell_beside_the_cells_it_chooses_from(store):
    planner = Planner(store)
    corpus = planner.corpus("planted-keyword")
    config, where = planner.resolve(ModelConfig.of({**SMALL, "attention_rates": [1.0, 10.0]}), corpus)
    cell = planner.model(config, corpus, where)
    alone = [planner.model(each, corpus, where).key for each in candidates(config)]
    assert [cell.inputs["rate 1"], cell.inputs["rate 10"]] == alone and cell.key not in alone
    done(store, planner, [cell])
    records = [json.loads(store.read(key, "training.json")) for key in alone]
    told = json.loads(store.read(cell.key, "training.json"))
    worth = [[record["scores"]["dev"][name] for name in ("auc", "accuracy")] for record in records]
    assert told["rates"] == dict(zip(("rate 1", "rate 10"), worth, strict=True))
    kept = worth.index(max(worth))
    assert told["history"] == records[kept]["history"]
    for name in ("model.safetensors", "config.json", "vocabulary.json"):
        assert store.read(cell.key, name) == store.read(alone[kept], name)
    assert load_model(store, cell.key, "cpu").config.attention_rate == RATES[kept]


@pytest.mark.usefixtures("few_planted")
def test_every_adversary_chooses_its_own_rate_and_rows_name_it(store, monkeypatch):
    monkeypatch.setattr("attentest.experiments.trained_adversary.observe.EPOCHS", 1)
    planner = Planner(store)
    corpus = planner.corpus("planted-keyword")
    config, where = planner.resolve(
        ModelConfig.of({**SMALL, "learning_rate": 0.02, "attention_rates": [1.0, 10.0]}), corpus
    )
    step = FrozenAdversary(lambdas="0.05", others=1, starts=1, steps=2)
    cell = planner.observation(step, config, corpus, where)
    done(store, planner, [cell])
    key = cell.inputs["sibling.frozen lambda 0.05"]
    adversary = store.cell(key)
    base = said_in(store, adversary.inputs["imitated"])
    tried = {role: key for role, key in adversary.inputs.items() if role.startswith("rate ")}
    assert set(tried) == {f"rate {rate}{start}" for start in ("", ", start 100") for rate in (1, 10, 1000)}
    texts = planted(store, cell)
    losses = {
        role: imitation_loss(load_model(store, each, "cpu"), 0.05, texts, base)
        for role, each in tried.items()
    }
    chosen = load_model(store, key, "cpu").config
    assert named(chosen) == min(losses, key=losses.get)
    assert "rate 1" not in store.cell(cell.inputs["sibling.untrained"]).inputs
    rows = from_parquet(store.read(cell.key, "rows.parquet")).assign(seed=0)
    found = concluded(rows, frozen_adversary.conclude)
    for measure, value in (("rate", chosen.attention_rate), ("start", chosen.attention_start)):
        assert one(found, f"attention-{measure}", "frozen lambda 0.05")["estimate"] == value
    started = found[found["measure"] == "attention-start"]
    assert set(started["group"]) == {"frozen lambda 0.05"}
    rated = set(found[found["measure"] == "attention-rate"]["group"])
    assert rated == {"trained", "frozen lambda 0.05", "unfrozen lambda 0.05", "seed 1", "shuffled labels"}


def planted(store, cell):
    return stored_corpus(store, cell.inputs["corpus"])[0]


def test_no_rate_is_named_where_none_was_chosen():
    rows = frozen_adversary_rows()
    named_in = set(concluded(rows, frozen_adversary.conclude)["measure"])
    assert {"attention-rate", "attention-start"} <= named_in
    rows = rows.drop(columns=["attention_rate", "attention_start"])
    assert chosen_rate(rows) == []
    assert "attention-rate" not in set(concluded(rows, frozen_adversary.conclude)["measure"])
    (measure,) = chosen_rate(pd.DataFrame({"attention_rate": [1.0, None, 10.0]}))
    assert measure.values.tolist() == [1.0, 10.0]


@pytest.mark.parametrize("name", ["meister-2021", "meister-2021-transformer"])
def test_the_studies_let_dev_choose(name):
    settings = load_study(name).model
    assert settings["attention_rates"] == [1.0, 10.0]
    assert replace(ModelConfig.of(settings), attention_rates=()).attention_rate == 1.0


def test_a_frozen_adversary_that_starts_flat_stays_at_a_flat_base_and_one_from_afar_is_found(planted):
    """Around the base the output pays for what attention moves, and KL only for its square (A33)."""
    base = toy_model(planted, encoder="average", hidden=8, attention="dot", epochs=0)
    base.decoder.dense.weight.data.mul_(5)  # or no output could move
    of_splits = [text_rows(base, planted, split, scores=True) for split in ("train", "dev")]
    told = said([row for rows in of_splits for row in rows], "softmax")
    adversary = replace(
        base.config,
        loss="imitate(x, 0.5)",
        start_from="x",
        reset=("attention",),
        freeze=("embedding", "encoder", "decoder"),
        epochs=20,
        learning_rate=1e-4,
        seed=1,
    )
    losses, moved = {}, {}
    for each in candidates(replace(adversary, attention_rates=(10.0, 1000.0), attention_starts=(1.0, 100.0))):
        model = build(each, planted, base.vocabulary, start=base.state_dict())
        Training(model, planted, base=told).run()
        losses[named(each)] = imitation_loss(model, 0.5, planted, told)
        moved[named(each)] = divergence(base, model, planted)
    assert moved["rate 10"] < 0.02
    found = min(losses, key=losses.get)
    assert "start 100" in found and losses[found] < 0 and moved[found] > 0.3


def divergence(base, model, corpus):
    split = IndexedSplit(corpus.test, base.vocabulary, corpus.labels)
    with torch.no_grad():
        pairs = [(base.read(split.batch([row])), model.read(split.batch([row]))) for row in range(len(split))]
        apart = [jensen_shannon(one.weights, other.weights).item() for one, other in pairs]
    return sum(apart) / len(apart)
