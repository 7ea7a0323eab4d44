"""Imitation (WP-4): the loss against plain formulas, what it trains, and how the planner binds it."""

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attentest as at
from attentest.bench.checkpoint import StoreCheckpoint
from attentest.bench.corpora import corpus_cell
from attentest.bench.plan import Planner
from attentest.bench.subjects import said_in
from attentest.bench.verbs import run_study
from attentest.bench.work import do
from attentest.corpus.files import to_files
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.contract import AbstractExperiment
from attentest.experiments.observers import EXPERIMENTS
from attentest.model.config import ModelConfig
from attentest.model.losses import Loss
from attentest.model.text_rows import text_rows
from attentest.model.training.imitation import Imitation, Said, kullback_leibler, said
from attentest.model.training.loop import Training
from attentest.model.training.selection import BestOnDev, BestOnDevThenLoss, LowestLoss
from attentest.refusal import Refusal
from attentest.statistics.comparison import jensen_shannon
from attentest.store.store import Store
from attentest.store.tables import from_parquet
from attentest.studies.recipe import load_study
from tests.toy_study import MemoryCheckpoint, conclude_kin, interrupted_after, kin_conclusion, toml
from tests.toys import in_double, toy_batch, toy_corpus, toy_model

SMALL = {"encoder": "average", "hidden": 16, "embedding": 12, "learning_rate": 0.01}


def spoken(model, corpus, split="test"):
    return said(text_rows(model, corpus, split, scores=True), model.config.projection)


def numbers(rows, column):
    return [np.asarray(row[column], dtype=np.float64) for row in rows]


# --- the loss


@pytest.mark.parametrize("projection", ["softmax", "sparsemax"])
@pytest.mark.parametrize(
    "query, labels", [(False, ("no", "yes")), (False, ("a", "b", "c")), (True, ("a", "b"))]
)
def test_the_loss_and_its_gradient_are_the_plain_formulas(projection, query, labels):
    """One text at a time, as the paper writes it: |dy| or TVD, halved, minus lambda KL(a || base)."""
    corpus = toy_corpus(query=query, labels=labels)
    base, model = (in_double(toy_model(corpus, seed=s, projection=projection)) for s in (1, 2))
    reading = model.read(toy_batch(model, corpus))
    logits = model.decide(reading)
    found = Imitation(0.3, spoken(base, corpus), [e.id for e in corpus.test])(reading, logits)

    theirs = base.read(toy_batch(base, corpus))
    said_by_base = base.decide(theirs).detach()
    expected = torch.zeros((), dtype=torch.float64)
    for row, example in enumerate(corpus.test):
        own, other = logits[row], said_by_base[row]
        if len(own) == 1:
            apart = (torch.sigmoid(own) - torch.sigmoid(other)).abs().sum()
        else:
            apart = 0.5 * (own.softmax(0) - other.softmax(0)).abs().sum()
        a, b = (each.weights[row, : len(example.tokens)] for each in (reading, theirs))
        ratios = [p / q.detach().clamp_min(1e-10) for p, q in zip(a, b, strict=True)]
        terms = [p * ratio.log() for p, ratio in zip(a, ratios, strict=True) if p > 0]
        expected = expected + 0.5 * apart - 0.3 * torch.stack(terms).sum()
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    parts = [p for p in model.parameters() if p.requires_grad]
    slopes = [
        torch.autograd.grad(each, parts, retain_graph=True, allow_unused=True) for each in (found, expected)
    ]
    assert sum(float(slope.to_dense().abs().sum()) for slope in slopes[0] if slope is not None) > 0.1
    for one, two in zip(*slopes, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            torch.testing.assert_close(one.to_dense(), two.to_dense(), atol=1e-6, rtol=1e-5)


def test_the_divergence_is_from_oneself_to_the_base_by_hand():
    p = torch.tensor([[0.5, 0.5, 0.0]])
    q = torch.tensor([[0.25, 0.5, 0.25]])
    assert kullback_leibler(p, q.log()).item() == pytest.approx(0.5 * math.log(2))
    assert kullback_leibler(q, p.clamp_min(1e-10).log()).item() == pytest.approx(
        0.25 * math.log(0.5) + 0.25 * math.log(0.25e10)
    )


@given(st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=6), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_the_divergence_stays_finite_however_extreme_the_scores(scores, seed):
    row = {"id": "x", "logits": [0.0], "weights": torch.tensor(scores).softmax(0).tolist(), "scores": scores}
    (base,) = said([row], "softmax").values()
    assert base.log_weights.isfinite().all()
    own = torch.randn(1, len(scores), generator=torch.Generator().manual_seed(seed)) * 200
    own.requires_grad_()
    found = kullback_leibler(own.softmax(-1), base.log_weights[None])
    (slope,) = torch.autograd.grad(found.sum(), own)
    assert found.isfinite().all() and slope.isfinite().all() and found.item() >= -1e-3


def test_a_softmax_base_is_known_by_its_scores_where_its_weight_is_gone():
    row = {"id": "x", "logits": [0.0], "weights": [1.0, 0.0], "scores": [0.0, -500.0]}
    assert said([row], "softmax")["x"].log_weights.tolist() == pytest.approx([0.0, -500.0])
    assert said([row], "sparsemax")["x"].log_weights.tolist() == pytest.approx([0.0, math.log(1e-10)])
    del row["scores"]
    with pytest.raises(Refusal, match="weights without the scores"):
        said([row], "softmax")


def test_impossible_answers_leave_the_loss_finite():
    corpus = toy_corpus(query=True, labels=("a", "b", "c"), candidates=True)
    base, model = (toy_model(corpus, seed=s) for s in (1, 2))
    reading = model.read(toy_batch(model, corpus))
    loss = Imitation(0.1, spoken(base, corpus), ())(reading, model.decide(reading))
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is None or p.grad.to_dense().isfinite().all() for p in model.parameters())


# --- which epoch is kept


def epoch(loss, auc=0.5, accuracy=0.5):
    return {"loss": loss, "dev": {"auc": auc, "accuracy": accuracy}}


def test_the_lowest_training_loss_is_kept_whatever_dev_says():
    rule = LowestLoss()
    assert rule.improves(epoch(0.1, auc=0.1), epoch(0.2, auc=0.9))
    assert not rule.improves(epoch(0.2, auc=0.9), epoch(0.2, auc=0.1))
    history = [epoch(0.3)] + [epoch(0.4, accuracy=1.0)] * 9
    assert not rule.should_stop(history, 1, 10) and rule.should_stop([*history, epoch(0.5)], 1, 10)


def test_dev_decides_for_the_task():
    rule = BestOnDev("auc")
    assert rule.improves(epoch(9, auc=0.7), epoch(1, auc=0.6))
    assert rule.improves(epoch(9, auc=0.7, accuracy=0.6), epoch(1, auc=0.7, accuracy=0.5))
    assert not rule.should_stop([epoch(1, accuracy=1.0)], 0, 5)  # the first epoch is never the last
    assert rule.should_stop([epoch(1)] * 2 + [epoch(1, accuracy=1.0)], 2, 5)
    assert not rule.should_stop([epoch(1)] * 7, 2, 5) and rule.should_stop([epoch(1)] * 8, 2, 5)


def test_a_penalty_works_on_after_dev_is_perfect():
    rule = BestOnDevThenLoss("auc")
    assert rule.improves(epoch(9, auc=0.7), epoch(1, auc=0.6))
    assert rule.improves(epoch(1, auc=0.7, accuracy=0.5), epoch(2, auc=0.7, accuracy=0.6))
    assert not rule.improves(epoch(2, auc=0.7), epoch(1, auc=0.7))
    assert not rule.should_stop([epoch(1, accuracy=1.0)] * 7, 2, 5) and rule.should_stop([epoch(1)] * 8, 2, 5)


@pytest.fixture(scope="module")
def base(planted):
    return at.train(planted, epochs=4, **SMALL)


def test_training_keeps_the_epoch_of_the_lowest_loss_and_stops_when_it_rises(planted, base):
    use = {**SMALL, "learning_rate": 0.3, "seed": 5, "patience": 3}
    model = at.train(planted, loss="imitate(base, 0)", imitated=base, epochs=40, **use)
    losses = [each["loss"] for each in model.record.history]
    assert model.record.chosen == 1 + int(np.argmin(losses))
    assert len(losses) == model.record.chosen + 3 < 40
    again = at.train(planted, loss="imitate(base, 0)", imitated=base, epochs=model.record.chosen, **use)
    for one, two in zip(model.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(one, two)


def test_dev_is_scored_once_where_it_decides_nothing(planted, base, monkeypatch):
    """An epoch of imitation is kept for its training loss; scoring dev after each is 3 % of the time."""
    scored, score = [], Training._score
    monkeypatch.setattr(Training, "_score", lambda self, split: scored.append(split) or score(self, split))
    imitator = at.train(planted, loss="imitate(base, 0)", imitated=base, epochs=3, **SMALL)
    assert len(scored) == 2 and [each["dev"] for each in imitator.record.history] == [{}] * 3
    assert set(imitator.record.scores) == {"dev", "test"}
    at.train(planted, epochs=3, **SMALL)
    assert len(scored) == 2 + 3 + 2


# --- what it trains


def compared(one, two, corpus, split="test"):
    """Mean change of output and mean divergence of attention between two models."""
    first, second = (text_rows(model, corpus, split) for model in (one, two))
    y, z = (1 / (1 + np.exp(-np.concatenate(numbers(rows, "logits")))) for rows in (first, second))
    pairs = zip(numbers(first, "weights"), numbers(second, "weights"), strict=True)
    return np.abs(y - z).mean(), np.mean([jensen_shannon(a, b) for a, b in pairs])


def test_without_lambda_the_outputs_of_the_base_are_learnt(planted, base):
    model = at.train(planted, loss="imitate(base, 0)", imitated=base, epochs=40, patience=10, seed=9, **SMALL)
    change, _ = compared(base, model, planted, "train")
    unrelated, _ = compared(base, at.train(planted, epochs=0, seed=9, **SMALL), planted, "train")
    assert change < 0.02 < 0.2 < unrelated
    assert compared(base, model, planted)[0] < 0.05


def test_labels_are_never_looked_at(planted, base):
    one, two = (
        at.train(planted, loss="imitate(b, 0.001)", imitated=base, epochs=2, labels=labels, **SMALL)
        for labels in ("gold", "shuffled")
    )
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_lambda_buys_distance(planted, base):
    use = {**SMALL, "epochs": 15, "patience": 10, "seed": 3}
    near, far = (
        at.train(planted, loss=f"imitate(base, {factor})", imitated=base, **use) for factor in (0, 0.02)
    )
    assert compared(base, far, planted)[1] > compared(base, near, planted)[1] + 0.1


@pytest.mark.parametrize("where", ["memory", "store"])
@pytest.mark.parametrize(
    "use",
    [
        {"encoder": "average", "loss": "imitate(base, 0.01)"},
        {"encoder": "average", "projection": "gumbel-softmax(0.7)", "loss": "imitate(base, 0.01)"},
        {"encoder": "bilstm", "loss": "impermissible(0.5, good bad the)"},
        {"encoder": "average", "omit": "good bad the"},
    ],
)
def test_a_resumed_training_is_the_undisturbed_one_to_the_bit(planted, store, use, where):
    corpus = replace(planted, train=planted.train[:150], dev=planted.dev[:40], test=planted.test[:40])
    base = spoken(toy_model(corpus, encoder="average", seed=4), corpus, "train")

    def fresh():
        return Training(
            toy_model(corpus, epochs=4, patience=3, **use), corpus, base=base, checkpoint=checkpoint
        )

    checkpoint = None
    whole = fresh()
    record = whole.run()
    assert len(record.history) == 4  # 5 steps each
    checkpoint = MemoryCheckpoint() if where == "memory" else StoreCheckpoint(store, "key")
    kept_at = []
    for steps in (1, 2, 2, 1, 9):
        training = fresh()
        training.on_progress = interrupted_after(steps)
        with pytest.raises(KeyboardInterrupt):
            training.run()
        kept_at.append((training.epoch, training.step))
    assert kept_at == [(1, 1), (1, 3), (1, 5), (2, 1), (3, 5)]
    training = fresh()
    assert asdict(training.run()) == asdict(record)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, training.model.state_dict()[name]), name


def test_sentences_can_be_imitated_too():
    corpus = toy_corpus()
    base = toy_model(corpus, encoder="han-bigru", seed=1)
    record = Training(
        toy_model(corpus, encoder="han-bigru", loss="imitate(b, 0.1)"),
        corpus,
        base=spoken(base, corpus, "train"),
    ).run()
    assert len(record.history) == 2 and all(math.isfinite(each["loss"]) for each in record.history)


# --- refusals and keys


def test_the_grammar_of_losses():
    assert Loss.parse("imitate(subject, 1e-3)") == Loss("imitate", 0.001, "subject")
    assert Loss.parse("imitate(shuffled labels,0)") == Loss("imitate", 0.0, "shuffled labels")
    assert Loss.parse("imitate(a, b, 2)") == Loss("imitate", 2.0, "a, b")
    assert Loss.parse("impermissible(0.1, he she )") == Loss("impermissible", 0.1, "he she")
    assert Loss.parse("imitate(subject, 1e-3)").bound("k") == "imitate(k, 0.001)"
    assert Loss.parse(Loss.parse("imitate(x, 5.25e-4)").bound("k")).factor == 5.25e-4


@pytest.mark.parametrize(
    "loss",
    [
        "imitate",
        "imitate()",
        "imitate(subject)",
        "imitate(, 1)",
        "imitate(subject, -1)",
        "imitate(0.1, subject)",
        "imitate(subject, nan)",
        "impermissible(0.1)",
        "impermissible(0.1, )",
        "impermissible(he, 0.1)",
        "Task",
    ],
)
def test_a_loss_that_cannot_be_read_is_refused(loss):
    with pytest.raises(Refusal, match=r"loss: got .* with a factor of at least 0"):
        ModelConfig(loss=loss)


def test_only_attention_that_is_learnt_can_flee():
    for fixed in ({"attention": "last-state"}, {"attention": "log-odds"}, {"projection": "uniform"}):
        with pytest.raises(Refusal, match="that are learnt"):
            ModelConfig(loss="imitate(subject, 0.1)", **fixed)
        assert ModelConfig(loss="imitate(subject, 0)", **fixed).loss == "imitate(subject, 0)"


def test_a_base_that_says_nothing_or_something_else_is_refused(planted, base):
    corpus = toy_corpus()
    use = {"encoder": "average", "loss": "imitate(b, 0.1)"}
    with pytest.raises(Refusal, match="no model to imitate"):
        Training(toy_model(corpus, **use), corpus)
    heard = spoken(toy_model(corpus, encoder="average"), corpus, "train")
    lost = {name: each for name, each in heard.items() if name != "train-3"}
    with pytest.raises(Refusal, match="text 'train-3': got none"):
        Training(toy_model(corpus, **use), corpus, base=lost)
    heard["train-0"] = Said(heard["train-0"].outcome, heard["train-0"].log_weights[:2])
    with pytest.raises(Refusal, match="'train-0': got 2 weights for 5 units"):
        Training(toy_model(corpus, **use), corpus, base=heard).run()


# --- through the planner


@dataclass(frozen=True, kw_only=True)
class Kin(AbstractExperiment):
    """An adversary of the subject, an adversary of the adversary, and a model guided by one."""

    name = "kin"
    cite = "jain2019attention"
    version = 1

    def siblings(self, config):
        return {
            "adversary": replace(config, loss="imitate(subject, 1e-3)", epochs=2, patience=10),
            "its adversary": replace(config, loss="imitate(adversary, 0.001)", epochs=1, seed=7),
            "guided": replace(config, projection="stored", guide="adversary", epochs=1),
            "same": replace(config, loss="imitate(subject, 0.001)", epochs=2, patience=10),
        }

    def observe(self, subject, rng):
        theirs = {name: each.readings.set_index("id") for name, each in subject.sibling.items()}
        own = theirs["adversary"]
        for name, frame in theirs.items():
            pairs = zip(own["weights"], frame.loc[own.index, "weights"], strict=True)
            apart = max(float(np.abs(one - other).max()) for one, other in pairs)
            yield {"subject": name, "id": "weights", "apart": apart}


@pytest.fixture
def small(tmp_path, planted):
    """A store in which planted-keyword has a handful of texts: what is planned is the same, only quicker."""
    corpus = replace(planted, train=planted.train[:96], dev=planted.dev[:20], test=planted.test[:20])
    store = Store(tmp_path / "store")
    store.write(corpus_cell("planted-keyword"), to_files(corpus), {})
    return store


def test_siblings_imitate_the_subject_and_each_other_and_guide(small, tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "kin", Kin)
    monkeypatch.setitem(CONCLUSIONS, "kin", kin_conclusion(conclude_kin, "kin"))
    path, store = toml(tmp_path, '[[experiment]]\nname = "kin"', corpus="planted-keyword"), small
    planner = Planner(store)
    planner.study(load_study(path))
    (observation,) = (cell for cell in planner.cells.values() if cell.stage == "observation")
    needs = {role: planner.cells[key] for role, key in observation.inputs.items()}
    reading = planner.cells[needs["sibling.adversary"].inputs["imitated"]]
    assert reading.config == {"splits": ["train", "dev", "test"], "scores": True}
    assert reading.inputs["model"] == needs["model"].key
    assert needs["sibling.adversary"].config["loss"] == f"imitate({reading.key}, 0.001)"
    assert needs["sibling.same"].key == needs["sibling.adversary"].key  # however the number was written
    second = planner.cells[needs["sibling.its adversary"].inputs["imitated"]]
    assert second.inputs["model"] == needs["sibling.adversary"].key
    guide = planner.cells[needs["sibling.guided"].inputs["guide"]]
    assert guide.config == {"splits": ["train", "dev", "test"]}  # no key of an older reading changes
    assert guide.inputs["model"] == needs["sibling.adversary"].key

    result = run_study(path, str(tmp_path / "store"), engine="inline", device="cpu")
    assert result["failed"] == []
    apart = {row["measure"]: row["estimate"] for row in result["findings"]}
    assert apart["guided-weights"] == 0.0 and apart["its adversary-weights"] > 1e-4

    rows = from_parquet(store.read(reading.key, "readings.parquet"))
    assert list(rows.columns) == ["id", "split", "label", "logits", "weights", "scores"]
    heard = said_in(store, reading.key)
    assert set(heard) == set(rows["id"]) and len(set(rows["split"])) == 3
    first = rows.iloc[0]
    np.testing.assert_allclose(heard[first["id"]].log_weights.exp(), first["weights"], atol=1e-6)


def test_an_adversary_of_a_model_nobody_knows_is_refused(small):
    planner = Planner(small)
    corpus = planner.corpus("planted-keyword")
    config, where = planner.resolve(ModelConfig(loss="imitate(subject, 0.1)", **SMALL), corpus)
    model = planner.model(config, corpus, where)
    assert model.inputs["imitated"] == "subject"
    with pytest.raises(Refusal, match="no plans/subject"):
        planner.missing([model])


def test_a_model_that_is_killed_while_it_imitates_goes_on_to_the_same_bytes(small, monkeypatch):
    """Both roads through the store: undisturbed, and interrupted at some step."""
    store, planner = small, Planner(small)
    corpus = planner.corpus("planted-keyword")
    use = {**SMALL, "hidden": 8, "embedding": 8, "epochs": 4}
    config, where = planner.resolve(ModelConfig(**use), corpus)
    subject = planner.model(config, corpus, where)
    bound = planner._bound(replace(config, loss="imitate(subject, 0.01)"), {"subject": subject}, corpus)
    model = planner.model(bound, corpus, where)
    for key, cell in planner.missing([model]).items():
        store.plan(cell)
        do(key, store, "cpu")
    files = {name: store.read(model.key, name) for name in store.about(model.key)["files"]}
    store.forget("cells", model.key)
    store.plan(model)

    stop = interrupted_after(7)
    monkeypatch.setattr("attentest.bench.work._sometimes", lambda report, always: stop)
    with pytest.raises(KeyboardInterrupt):  # epoch 3, step 1 of 3
        do(model.key, store, "cpu")
    assert store.find("partial", model.key, "state.safetensors") is not None
    do(model.key, store, "cpu")
    assert {name: store.read(model.key, name) for name in files} == files
