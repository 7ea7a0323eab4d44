"""Log-odds attention (JW-6): the table, training under it or towards it, and what is concluded of it."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import attentest as at
from attentest.bench.plan import Planner
from attentest.bench.subjects import reading_rows
from attentest.bench.work import do
from attentest.corpus.example import Corpus, Example
from attentest.corpus.vocabulary import PAD, RESERVED, Vocabulary
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.log_odds.conclude import conclude
from attentest.experiments.log_odds.observe import LogOdds, impose
from attentest.experiments.observers import experiment
from attentest.experiments.performance import conclude as performance
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.divergence import jensen_shannon
from attentest.model.losses import Loss
from attentest.model.networks.log_odds import FUNCTION_WORDS, fit_strengths
from attentest.model.reader import readings
from attentest.model.training.building import build
from attentest.model.training.files import load, save
from attentest.model.training.loop import Training
from attentest.refusal import Refusal
from attentest.statistics import comparison
from attentest.store.tables import from_parquet
from tests.toy_study import MemoryCheckpoint, interrupted_after
from tests.toys import toy_batch, toy_corpus, toy_model

SMALL = {"encoder": "average", "hidden": 16, "embedding": 12, "epochs": 3, "learning_rate": 0.01}
CUES = {"awful", "bad", "poor", "fine", "good", "great"}


def corpus_of(*texts, labels=("no", "yes"), query=None, **more):
    """The same (text, label) pairs in every split."""

    def split(name):
        return tuple(
            Example(id=f"{name}-{n}", tokens=tuple(text.split()), label=label, query=query)
            for n, (text, label) in enumerate(texts)
        )

    return Corpus(
        name="own", labels=labels, train=split("train"), dev=split("dev"), test=split("test"), **more
    )


def fitted(corpus):
    vocabulary = Vocabulary.build(corpus.train)
    split = IndexedSplit(corpus.train, vocabulary, corpus.labels)
    return dict(zip(vocabulary.words, fit_strengths(split, vocabulary), strict=True))


def fitted_directly(corpus, positive):
    """The regression written out: a dense table, words in alphabetical order."""
    words = sorted({word for e in corpus.train for word in e.tokens} - FUNCTION_WORDS)
    table = np.array([[float(word in e.tokens) for word in words] for e in corpus.train])
    table /= np.maximum(np.sqrt((table**2).sum(1, keepdims=True)), 1e-12)
    regression = LogisticRegression(l1_ratio=1, solver="liblinear", tol=1e-8, max_iter=10_000, random_state=1)
    found = regression.fit(table, [e.label == positive for e in corpus.train])
    return dict(zip(words, np.abs(found.coef_[0]), strict=True))


# --- the table


def test_the_strengths_are_those_of_a_direct_fit_and_single_out_the_cues(planted):
    found, direct = fitted(planted), fitted_directly(planted, "positive")
    assert max(abs(found[word] - direct[word]) for word in direct) < 1e-3
    assert not any(found[word] for word in set(found) - set(direct))
    ranked = sorted(found, key=found.get, reverse=True)
    assert set(ranked[: len(CUES)]) == CUES and found[ranked[0]] > 1
    assert all(found[word] < 0.1 * found[ranked[0]] for word in ranked[len(CUES) :])


def test_of_several_classes_the_largest_coefficient_counts():
    texts = [
        (f"{cue} n{n % 5} n{n % 7}", label)
        for n in range(40)
        for cue, label in (("red", "a"), ("green", "b"), ("blue", "c"))
    ]
    corpus = corpus_of(*texts, labels=("a", "b", "c"))
    found, each = fitted(corpus), [fitted_directly(corpus, label) for label in corpus.labels]
    assert all(found[w] == pytest.approx(max(one[w] for one in each), abs=1e-3) for w in each[0])
    assert {w for w in found if found[w] > 1} == {"red", "green", "blue"}


def test_function_words_and_reserved_numbers_score_nothing_however_telling():
    """`The` and the rare words behind <unk> give the label away as surely as `yes` does."""
    texts = [("The yes rare" if n % 2 else "no w", ("no", "yes")[n % 2]) for n in range(40)]
    corpus = corpus_of(*texts)
    vocabulary = Vocabulary((*RESERVED, "The", "yes", "no", "w"))
    split = IndexedSplit(corpus.train, vocabulary, corpus.labels)
    found = dict(zip(vocabulary.words, fit_strengths(split, vocabulary), strict=True))
    assert found["yes"] > 0 and found["The"] == 0 and not any(found[word] for word in RESERVED)


def test_the_query_is_not_read():
    texts = [("cat sat" if n % 2 else "dog ran", ("no", "yes")[n % 2]) for n in range(40)]
    corpus = corpus_of(*texts, query=("asked",), family="nli")
    found = fitted(corpus)
    assert found["asked"] == 0 and max(found.values()) > 0


def test_nothing_learnt_is_uniform_attention():
    corpus = toy_corpus(lengths=(5, 5, 2, 2))
    corpus = replace(corpus, train=tuple(replace(e, tokens=("cat",), sentences=None) for e in corpus.train))
    model = toy_model(corpus, attention="log-odds")
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
    assert not model.attention.strengths.any()
    torch.testing.assert_close(reading.weights, reading.mask / reading.mask.sum(1, keepdim=True))


def test_shuffled_labels_leave_the_cues_nothing_to_say(planted):
    gold, shuffled = (
        at.train(planted, attention="log-odds", labels=labels, **{**SMALL, "epochs": 0})
        for labels in ("gold", "shuffled")
    )
    assert gold.attention.strengths.max() > 5 * shuffled.attention.strengths.max()


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ([("cat sat", "no"), ("dog ran", "no")], "of one label"),
        ([("the a of", "no"), ("is the", "yes")], "hold function words alone"),
    ],
)
@pytest.mark.parametrize("use", [{"attention": "log-odds"}, {"loss": "log-odds(5)"}])
def test_what_cannot_be_fitted_is_refused(texts, sentence, use):
    with pytest.raises(Refusal, match=sentence):
        at.train(corpus_of(*texts), **SMALL, **use)


# --- the attention


@pytest.mark.parametrize("query", [False, True], ids=["plain", "query"])
def test_scores_follow_the_words_by_both_roads_and_padding_gets_nothing(query):
    corpus = toy_corpus(query=query)
    model = toy_model(corpus, encoder="bilstm", attention="log-odds")
    with torch.no_grad():
        model.attention.strengths.copy_(torch.arange(len(model.vocabulary)) / 3)  # padding and markers too
        batch = toy_batch(model, corpus)
        slow, fast = model.read(batch), model.read_distinct(batch)
    for reading in (slow, fast):
        assert torch.equal(reading.scores, model.attention.strengths[batch.tokens])
        assert reading.weights.shape == batch.tokens.shape  # markers have no place
        assert (reading.weights[batch.tokens == PAD] == 0).all()
        for row, example in enumerate(corpus.test):
            strengths = model.attention.strengths[torch.from_numpy(model.vocabulary.numbers(example.tokens))]
            torch.testing.assert_close(reading.weights[row, : len(strengths)], strengths.softmax(0))


def test_a_model_trained_under_the_log_odds_learns_all_but_its_attention(planted, tmp_path):
    model = at.train(planted, attention="log-odds", **SMALL)
    fresh = at.train(planted, attention="log-odds", **{**SMALL, "epochs": 0})
    assert model.record.scores["test"]["accuracy"] > 0.9
    assert torch.equal(model.attention.strengths, fresh.attention.strengths)
    moved = [name for name, t in model.state_dict().items() if not torch.equal(t, fresh.state_dict()[name])]
    assert {name.split(".")[0] for name in moved} == {"embedding", "encoder", "decoder"}
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.config == model.config
    batch = toy_batch(model, planted)
    with torch.no_grad():
        assert torch.equal(loaded.read(batch).weights, model.read(batch).weights)
        assert torch.equal(loaded.decide(loaded.read(batch)), model.decide(model.read(batch)))


# --- the regulariser


def mean_divergence(model, corpus):
    """From the log-odds attention, text by text."""
    strength = fitted(corpus)
    apart = []
    for _, reading in readings(model, IndexedSplit(corpus.test, model.vocabulary, corpus.labels)):
        for row, name in enumerate(reading.batch.ids):
            tokens = next(e.tokens for e in corpus.test if e.id == name)
            scores = np.exp([strength.get(token, 0.0) for token in tokens])
            own = reading.weights[row, : len(tokens)]
            apart.append(comparison.jensen_shannon(own, scores / scores.sum()))
    return np.mean(apart)


def test_the_regulariser_draws_attention_to_the_log_odds(planted):
    free, drawn = (at.train(planted, loss=loss, **SMALL) for loss in ("task", "log-odds(5)"))
    assert mean_divergence(drawn, planted) < 0.5 * mean_divergence(free, planted)
    assert drawn.record.scores["test"]["accuracy"] > 0.9


@pytest.mark.parametrize(("labels", "summed"), [(("no", "yes"), True), (("no", "so", "yes"), False)])
def test_the_loss_is_the_tasks_and_five_divergences_a_text(labels, summed):
    corpus = toy_corpus(labels=labels)
    rows = np.arange(len(corpus.train))
    losses = {}
    for loss in ("task", "log-odds(5)"):
        training = Training(toy_model(corpus, encoder="average", loss=loss), corpus)
        if (penalty := training.objective.penalty) is not None:
            penalty.target.strengths.copy_(torch.linspace(0, 3, len(training.model.vocabulary)))
            batch = training.train.batch(rows)
            with torch.no_grad():
                own = training.model.read(batch).weights.double().numpy()
                aim = penalty.target.weights(batch.tokens, batch.mask).double().numpy()
        losses[loss] = training._learn(rows) / (1 if summed else len(rows))  # what it reports is a sum
    apart = 5 * comparison.jensen_shannon(own, aim)
    expected = apart.sum() if summed else apart.mean()
    assert expected > 0.01
    assert losses["log-odds(5)"] - losses["task"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("projection", ["softmax", "sparsemax", "gumbel-softmax(0.8)"])
def test_the_same_seed_gives_the_same_bits(planted, projection):
    one, two, plain = (
        at.train(planted, loss=loss, projection=projection, **{**SMALL, "epochs": 1}).state_dict()
        for loss in ("log-odds(5)", "log-odds(5)", "log-odds(0)")
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert all(tensor.isfinite().all() for tensor in one.values())
    assert not torch.equal(one["attention.of_hidden.weight"], plain["attention.of_hidden.weight"])


def test_a_factor_of_zero_is_the_task_alone(planted):
    none, task = (at.train(planted, loss=loss, **{**SMALL, "epochs": 1}) for loss in ("log-odds(0)", "task"))
    assert all(torch.equal(a, b) for a, b in zip(none.parameters(), task.parameters(), strict=True))
    assert Training(none, planted).objective.penalty is None


@pytest.mark.parametrize("use", [{"attention": "log-odds"}, {"loss": "log-odds(5)"}])
def test_a_resumed_training_is_the_undisturbed_one_to_the_bit(planted, use):
    corpus = replace(planted, train=planted.train[:150], dev=planted.dev[:40], test=planted.test[:40])
    whole = toy_model(corpus, encoder="average", **use)
    Training(whole, corpus).run()
    checkpoint = MemoryCheckpoint()
    for steps in (2, 5):
        training = Training(toy_model(corpus, encoder="average", **use), corpus, checkpoint=checkpoint)
        training.on_progress = interrupted_after(steps)
        with pytest.raises(KeyboardInterrupt):
            training.run()
    assert (training.epoch, training.step) == (2, 2)
    training = Training(toy_model(corpus, encoder="average", **use), corpus, checkpoint=checkpoint)
    training.run()
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, training.model.state_dict()[name]), name


weights = st.lists(st.sampled_from([0.0, 0.0, 1e-30, 0.2, 1.0, 3.0]), min_size=5, max_size=5).filter(any)


@given(weights, weights)
@settings(max_examples=50)
def test_the_divergence_is_numpys_and_its_gradient_is_finite(p, q):
    p, q = (torch.tensor([x], dtype=torch.float64) for x in (p, q))
    p, q = (p / p.sum()).requires_grad_(), q / q.sum()
    found = jensen_shannon(p, q)
    (slope,) = torch.autograd.grad(found.sum(), p)
    assert float(found.detach()) == pytest.approx(comparison.jensen_shannon(p.detach(), q)[0], abs=1e-12)
    assert slope.isfinite().all()


def test_the_slope_of_the_divergence_is_right():
    torch.manual_seed(0)
    p, q = torch.rand(3, 4, dtype=torch.float64, requires_grad=True), torch.rand(3, 4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: jensen_shannon(x.softmax(-1), q.softmax(-1)), p)


# --- refusals and keys


@pytest.mark.parametrize(
    "loss",
    ["log-odds(-1)", "log-odds(nan)", "log-odds(inf)", "log-odds(x)", "log-odds()", "log-odds", "taks"],
)
def test_a_loss_that_cannot_be_read_is_refused(loss):
    with pytest.raises(Refusal, match=r"needs task, log-odds\(FACTOR\), .* with a factor of at least 0"):
        ModelConfig(loss=loss)


def test_what_has_no_learnt_weights_over_words_is_refused():
    for use in ({"attention": "log-odds"}, {"loss": "log-odds(5)"}):
        with pytest.raises(Refusal, match="units of attention are words"):
            ModelConfig(encoder="han-bigru", **use)
    for fixed in ({"attention": "last-state"}, {"attention": "log-odds"}, {"projection": "uniform"}):
        with pytest.raises(Refusal, match="that are learnt"):
            ModelConfig(loss="log-odds(5)", **fixed)
    with pytest.raises(Refusal, match="needs a string"):
        ModelConfig.of({"loss": 5})


def test_the_loss_of_today_changes_no_key():
    assert "loss" not in ModelConfig(loss="task").spelled()
    assert ModelConfig(loss="log-odds(5)").spelled() == {"loss": "log-odds(5)"}
    assert Loss.parse("task").factor == 0 and Loss.parse("log-odds(0.5)") == Loss("log-odds", 0.5)


# --- the experiment


def subject_of(corpus, *, double=False, **settings):
    base = toy_model(corpus, **settings)
    configs = LogOdds().siblings(base.config)
    models = {name: build(config, corpus, base.vocabulary) for name, config in configs.items()}
    with torch.no_grad():  # a handful of texts teaches a regression nothing
        table = models["log-odds"].attention.strengths
        table.copy_(torch.linspace(0, 2, len(table)))
    models["trained"] = base
    if double:
        for model in models.values():
            model.double()
    rows = {name: reading_rows(model, corpus, "test") for name, model in models.items()}
    return Subject(corpus, base.config, InMemory(models, configs, rows))


def test_the_siblings_differ_in_attention_or_loss_alone():
    config = ModelConfig(projection="sparsemax", hidden=8, seed=3, guide="x", start_from="y")
    found = LogOdds().siblings(config)
    assert list(found) == ["log-odds", "regularised", "last state"]
    shared = {"hidden": 8, "seed": 3}
    assert found["log-odds"].spelled() == {**shared, "attention": "log-odds"}
    assert found["last state"].spelled() == {**shared, "attention": "last-state"}
    assert found["regularised"] == replace(config, loss="log-odds(5)")


@pytest.mark.parametrize("query", [False, True], ids=["plain", "query"])
def test_imposing_is_deciding_under_the_given_attention(query):
    corpus = toy_corpus(query=query)
    subject = subject_of(corpus, double=True)  # in single precision the last bit depends on the processor
    frame = subject.sibling["log-odds"].readings
    guide = dict(zip(frame["id"], frame["weights"], strict=True))
    batch = toy_batch(subject.model, corpus)
    with torch.no_grad():
        given = subject.sibling["log-odds"].model.read_distinct(batch).weights
        reading = subject.model.read_distinct(batch)
        expected, own = subject.model.decide(reading, given), subject.model.decide(reading)
    assert not torch.allclose(expected, own)
    found = {name: logits for name, _, logits in impose(subject, guide)}
    order = [found[name] for name in batch.ids]
    torch.testing.assert_close(torch.from_numpy(np.array(order)), expected, atol=1e-14, rtol=1e-12)


def test_rows_tell_every_variant_of_every_text(rng):
    corpus = toy_corpus()
    subject = subject_of(corpus)
    rows = pd.DataFrame(list(LogOdds().observe(subject, rng)))
    ids = sorted(e.id for e in corpus.test)
    by_variant = dict(list(rows.groupby("subject")))
    assert set(by_variant) == {"trained", "imposed", "log-odds", "regularised", "last state"}
    assert all(sorted(texts["id"]) == ids for texts in by_variant.values())
    assert all(len(e.tokens) == n for e in corpus.test for n in rows.loc[rows["id"] == e.id, "length"])
    several = rows["length"] > 1
    assert rows.loc[~several, ["jsd", "null_jsd", "tau"]].isna().all(axis=None)
    same = rows[several & rows["subject"].isin(["imposed", "log-odds"])]
    assert (same["jsd"] == 0).all() and (same["null_jsd"] > 0).all() and same["tau"].isna().all()
    assert by_variant["last state"][["jsd", "tau"]].isna().all(axis=None)
    guide = subject.sibling["log-odds"].readings.set_index("id")["weights"]
    own = subject.readings.set_index("id")["weights"]
    for row in by_variant["trained"].query("length > 1").itertuples():
        assert row.jsd == comparison.jensen_shannon(own[row.id], guide[row.id]) > 0
        assert row.tau == comparison.kendall(own[row.id], guide[row.id])[0]


def observed(corpus, seeds):
    for seed in range(seeds):
        for row in LogOdds().observe(subject_of(corpus, seed=seed), np.random.default_rng(0)):
            yield {"seed": seed, **row}


def test_every_variant_is_scored_and_learnt_attention_compared(rng):
    rows = pd.DataFrame(list(observed(toy_corpus(), 2)))
    found = {(f.measure, f.group): f for f in conclude(rows, mode="corrected", rng=rng)}
    variants = {"trained", "imposed", "log-odds", "regularised", "last state"}
    scored = {(measure, variant) for measure in ("accuracy", "f1", "auc") for variant in variants}
    compared = {(m, v) for m in ("jsd-to-log-odds", "tau-to-log-odds") for v in ("trained", "regularised")}
    assert set(found) == scored | compared
    assert {f.experiment for f in found.values()} == {"log-odds"}
    for variant in variants:
        texts = rows[rows["subject"] == variant]
        assert found["accuracy", variant].estimate == (texts["label"] == texts["predicted"]).mean()
    alone = performance.conclude(rows, mode="corrected", rng=np.random.default_rng(0))
    assert [f.estimate for f in alone if f.group == "overall"] == [
        found[measure, "trained"].estimate for measure in ("accuracy", "f1", "auc")
    ]
    trained = rows[rows["subject"] == "trained"]
    divergence, agreement = (found[f"{m}-to-log-odds", "trained"] for m in ("jsd", "tau"))
    assert divergence.estimate == pytest.approx(trained["jsd"].mean())
    assert divergence.null == pytest.approx(trained["null_jsd"].mean())
    assert (divergence.n, divergence.excluded, divergence.why, divergence.seeds) == (10, 2, "one token", 2)
    assert agreement.estimate == pytest.approx(trained["tau"].mean()) and agreement.null == 0
    shuffled = rows.sample(frac=1, random_state=1)
    again = conclude(shuffled, mode="corrected", rng=np.random.default_rng(0))
    assert str(again) == str(conclude(rows, mode="corrected", rng=np.random.default_rng(0)))


def test_constant_attention_is_excluded_and_counted(rng):
    rows = pd.DataFrame(list(observed(toy_corpus(), 1)))
    rows.loc[(rows["subject"] == "trained") & (rows["length"] == 9), "tau"] = math.nan
    found = {(f.measure, f.group): f for f in conclude(rows, mode="corrected", rng=rng)}
    agreement = found["tau-to-log-odds", "trained"]
    assert (agreement.n, agreement.excluded) == (4, 2)
    assert agreement.why == "constant or NaN vector (1); one token (1)"
    assert conclude(rows.iloc[:0], mode="corrected", rng=rng) == []
    rows["jsd"] = math.nan
    nothing = conclude(rows, mode="corrected", rng=rng)[-4]
    assert nothing.measure == "jsd-to-log-odds" and math.isnan(nothing.estimate) and nothing.excluded == 6


@pytest.mark.usefixtures("few_planted")
def test_the_experiment_runs_from_cells(store):
    planner = Planner(store)
    corpus = planner.corpus("planted-keyword")
    do_all(planner, store, corpus)
    fast = {**SMALL, "epochs": 2, "batch_size": 100, "learning_rate": 0.05}
    config, where = planner.resolve(ModelConfig.of(fast), corpus)
    cell = planner.observation(experiment("log-odds", "corrected", {}), config, corpus, where)
    do_all(planner, store, cell)
    rows = from_parquet(store.read(cell.key, "rows.parquet"))
    found = {(f.measure, f.group): f for f in conclude(rows.assign(seed=0), mode="corrected", rng=seeded())}
    assert found["accuracy", "log-odds"].estimate > 0.9
    # The regression's attention rests on the cue, so its divergence from uniform is nearly all there is.
    assert found["jsd-to-log-odds", "regularised"].estimate < found["jsd-to-log-odds", "trained"].estimate
    assert 0.4 < found["jsd-to-log-odds", "trained"].null < math.log(2)


def seeded():
    return np.random.default_rng(0)


def do_all(planner, store, target):
    for key, cell in planner.missing([target]).items():
        store.plan(cell)
        do(key, store, "cpu")
