"""The communication game: messages against the long way, the planted truth, findings by hand, bad input."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from attentest.bench.plan import Planner, Point
from attentest.claims.claims import Claim
from attentest.corpus.vocabulary import PAD
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.game.laypeople import Laypeople
from attentest.evidence.importances.gradient import gradients
from attentest.experiments.communication import conclude as communication
from attentest.experiments.communication.cards import CARDS as COMMUNICATION_CARDS
from attentest.experiments.communication.conclude import PROJECTIONS
from attentest.experiments.communication.game import messages, surrogate, untouched
from attentest.experiments.communication.observe import Communication
from attentest.experiments.observers import experiment
from attentest.experiments.performance.observe import Performance
from attentest.experiments.shared.explained_split import ExplainedSplit
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.networks.attention import LAST_STATE
from attentest.refusal import Refusal
from attentest.studies.recipe import load_study
from tests.communicating import be_nan, columns_of, observed, planted_game, say_one
from tests.observed import concluded, one
from tests.observed_communication import communication_rows, communication_texts
from tests.toys import toy_batch, toy_corpus, toy_model


def explained(corpus, spoil=None, **settings):
    model = toy_model(corpus, **settings)
    if spoil is not None:
        spoil(model)
    return model, ExplainedSplit.of(model, IndexedSplit(corpus.test, model.vocabulary, corpus.labels))


def sent(split, sizes, draws=2, scores=None, seed=0):
    """Messages by name, as counts of words a text; those of several draws in a list."""
    scores = np.zeros(split.lengths.sum()) if scores is None else scores
    ends = np.cumsum(split.lengths)[:-1]
    found = {}
    for name, chosen in messages(split, scores, sizes, draws, np.random.default_rng(seed)):
        found.setdefault(name, []).append(np.split(chosen, ends))
    return found


def best(scores, k):
    """The places of the k largest, one at a time."""
    left, found = dict(enumerate(scores)), set()
    for _ in range(min(k, len(left))):
        place = max(left, key=left.get)
        found.add(place)
        del left[place]
    return found


@pytest.mark.parametrize(
    "settings", [{}, {"encoder": "average"}, {"encoder": "cnn", "projection": "sparsemax"}]
)
def test_explainers_send_what_matters_most_to_each(settings):
    corpus = toy_corpus(lengths=(5, 2, 9, 4, 7))
    model, split = explained(corpus, **settings)
    found = sent(split, (1, 3, 20))
    for row, example in enumerate(corpus.test):
        own = gradients(model, toy_batch(model, corpus, [row]))
        scores = {
            "gradient": own.times_input[0].tolist(),
            "erasure": leave_one_out(model, own.reading, road="whole").change[0].tolist(),
            "attention": own.reading.weights[0].tolist(),
        }
        support = sum(weight > 0 for weight in scores["attention"])
        assert found["embedded"][0][row].tolist() == [weight > 0 for weight in scores["attention"]]
        for k in (1, 3, 20):
            for name, of_text in scores.items():
                chosen = set(np.flatnonzero(found[f"{name}@{k}"][0][row]).tolist())
                if name == "attention":
                    assert chosen == best(of_text, min(k, support))
                elif len(set(of_text)) == len(of_text):  # no ties, which chance decides
                    assert chosen == best(of_text, k)
                else:
                    assert len(chosen) == min(k, len(example.tokens))
            assert [draw[row].sum() for draw in found[f"random@{k}"]] == [min(k, len(example.tokens))] * 2
            assert [draw[row].sum() for draw in found[f"chance-attention@{k}"]] == [min(k, support)] * 2
        assert [draw[row].sum() for draw in found["chance-embedded"]] == [support] * 2


def test_a_support_of_one_sends_one_word_whatever_k_is():
    def sharpen(model):
        for parameter in model.attention.parameters():
            parameter.data.mul_(1e4)

    _, split = explained(toy_corpus(), sharpen, projection="sparsemax")
    assert split.support.tolist() == [1] * len(split.lengths)
    found = sent(split, (1, 10))
    for name in ("attention@1", "attention@10", "embedded", "chance-attention@10", "chance-embedded"):
        assert [text.sum() for text in found[name][0]] == [1] * len(split.lengths)
    np.testing.assert_array_equal(
        np.concatenate(found["attention@10"][0]), np.concatenate(found["embedded"][0])
    )


def test_importance_that_is_zero_everywhere_sends_any_words():
    def say_nothing(model):
        model.decoder.dense.weight.data.zero_()

    _, split = explained(toy_corpus(lengths=(8,) * 200), say_nothing, encoder="average")
    assert not split.importances["gradient"].any() and not split.importances["erasure"].any()
    for name in ("gradient@2", "erasure@2"):
        places = np.mean(sent(split, (2,))[name][0], axis=0)
        np.testing.assert_allclose(places, 2 / 8, atol=0.12)


def test_uniform_attention_sends_any_words_not_the_first():
    _, split = explained(toy_corpus(lengths=(8,) * 200), projection="uniform")
    places = np.mean([text for text in sent(split, (2,))["attention@2"][0]], axis=0)
    np.testing.assert_allclose(places, 2 / 8, atol=0.12)


def test_padding_is_never_sent_and_the_query_always():
    corpus = toy_corpus(query=True, labels=("no", "yes", "maybe"))
    model, split = explained(corpus)
    assert PAD not in split.words
    nothing = np.stack([chosen for _, chosen in untouched(split)], axis=1)
    bag = split.messages(nothing, len(model.vocabulary))
    ends = np.cumsum(bag.lengths)
    for row, example in enumerate(corpus.test):
        begin, end = ends[row] - bag.lengths[row], ends[row]
        heard = bag.words[begin:end][bag.sent[begin:end, 0]]
        asked = model.vocabulary.numbers(example.query) + len(model.vocabulary)
        assert heard.tolist() == [*asked.tolist(), 0]


def test_the_surrogate_sends_what_speaks_for_the_answer():
    corpus = toy_corpus(labels=("no", "yes", "maybe"))
    model, split = explained(corpus)
    table = torch.randn(len(model.vocabulary), 2, 3, dtype=torch.float64)
    scores = surrogate(split, Laypeople(table))
    learnt, place = table[:, 1].numpy(), 0
    for answer, tokens in zip(split.answers, split.split.tokens, strict=True):
        for word in tokens:
            rivals = [learnt[word, other] for other in range(3) if other != answer]
            assert scores[place] == pytest.approx(2 / 3 * (learnt[word, answer] - np.mean(rivals)))
            place += 1


@pytest.mark.parametrize(
    "kind, settings",
    [
        ({}, {"encoder": "average"}),
        ({}, {"hidden": 5, "projection": "sparsemax"}),
        ({"query": True, "labels": ("no", "yes", "maybe")}, {"encoder": "average"}),
        ({"labels": ("no", "yes", "maybe"), "candidates": True}, {"encoder": "average"}),
    ],
)
def test_every_model_is_asked_about_every_text(kind, settings):
    corpus = toy_corpus(**kind)
    rows = observed(corpus, **settings)
    others = set(PROJECTIONS) - {settings.get("projection", "softmax")}
    assert set(rows["subject"]) == {"trained", "untrained", "shuffled labels", *others}
    assert len(rows) == 5 * len(corpus.test) and not rows.duplicated(["subject", "id"]).any()
    assert {name for name in rows if "_" in name and name != "max_attention"} == columns_of((1, 3))
    assert rows[sorted(columns_of((1, 3)))].isin([0.0, 0.5, 1.0]).all().all()
    trained = rows[rows["subject"] == "trained"].set_index("id")
    predicted = np.array(corpus.labels)[explained(corpus, **settings)[1].answers]
    assert trained.loc[[e.id for e in corpus.test], "predicted"].tolist() == predicted.tolist()


def test_the_same_draws_say_the_same():
    corpus, step = toy_corpus(lengths=(5, 4, 9, 7) * 5), Communication(k="1", draws=1)
    first, again, other = (observed(corpus, step, seed=seed, encoder="average") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_planted_words_are_all_a_layperson_needs(planted):
    _, game = planted_game(planted)
    columns = game.columns((1,), 3, rng=np.random.default_rng(0))
    told = {name: column.mean() for name, column in columns.items()}
    for explainer in ("attention", "erasure", "gradient", "surrogate"):
        assert told[f"agrees_{explainer}@1"] > 0.95 > 0.75 > told["agrees_random@1"]
    assert told["agrees_silence"] < 0.75
    assert told["right_attention@1"] > 0.95


def test_a_classifier_of_one_answer_is_guessed_by_everybody():
    rows = observed(toy_corpus(), spoil=say_one, encoder="average").assign(seed=0)
    trained = rows[rows["subject"] == "trained"]
    assert set(trained["predicted"]) == {"yes"}
    assert (trained[[name for name in rows if name.startswith("agrees_")]] == 1).all().all()
    found = concluded(rows, communication.conclude)
    for measure in ("csr-attention@3", "csr-silence", "csr-random@1"):
        assert (one(found, measure)["estimate"], one(found, measure)["null"]) == (1.0, 1.0)
    assert one(found, "csr-erasure-excess@3")["estimate"] == 0.0


def test_a_classifier_that_says_nan_is_excluded_and_counted():
    rows = observed(toy_corpus(), spoil=be_nan, encoder="average").assign(seed=0)
    trained = rows[rows["subject"] == "trained"]
    assert trained[sorted(columns_of((1, 3)))].isna().all().all()
    found = one(concluded(rows, communication.conclude), "csr-attention@3")
    assert math.isnan(found["estimate"])
    assert (found["n"], found["excluded"], found["why"]) == (0, len(trained), communication.UNDEFINED)


def test_texts_without_an_answer_teach_nobody_and_are_not_asked():
    corpus = toy_corpus(lengths=(5, 4, 9, 7) * 5)

    def forget_a_word(model):
        model.embedding.weight.data[model.vocabulary.index["never"]] = math.nan

    rows = observed(corpus, spoil=forget_a_word, encoder="average")
    trained = rows[rows["subject"] == "trained"].set_index("id")
    without = {example.id for example in corpus.test if "never" in example.tokens}
    assert 0 < len(without) < len(corpus.test)
    assert set(trained.index[trained["agrees_whole"].isna()]) == without
    assert trained.loc[~trained.index.isin(without), sorted(columns_of((1, 3)))].notna().all().all()


def test_laypeople_learn_from_so_many_texts(monkeypatch):
    corpus, seen = toy_corpus(lengths=(4,) * 30), []
    of = ExplainedSplit.of.__func__

    def counted(cls, model, split):
        seen.append(len(split))
        return of(cls, model, split)

    monkeypatch.setattr(ExplainedSplit, "of", classmethod(counted))
    observed(corpus, Communication(k="1", draws=1, taught=7), encoder="average")
    assert seen == [7, 30, 30] * 5


@pytest.mark.parametrize(
    "wrong", [{"k": ""}, {"k": "0 1"}, {"k": "1 two"}, {"k": "-3"}, {"k": "²"}, {"draws": 0}, {"taught": 0}]
)
def test_a_game_that_cannot_be_played_is_refused(wrong):
    with pytest.raises(Refusal, match="experiment communication"):
        Communication(**wrong)


def test_sizes_are_read_once_and_in_order():
    assert Communication(k=" 10 3  1 3").sizes == (1, 3, 10)


@pytest.mark.parametrize("settings", [{"encoder": "han-bigru"}, {"attention": LAST_STATE}])
def test_attention_that_is_not_over_words_is_refused(settings):
    with pytest.raises(Refusal, match="attention over words"):
        Communication().siblings(ModelConfig(**settings))


def test_siblings_differ_in_their_projection_alone():
    config = ModelConfig(encoder="cnn", projection="entmax15", seed=3, epochs=2)
    siblings = Communication().siblings(config)
    assert list(siblings) == ["softmax", "sparsemax", "untrained", "shuffled labels"]
    for name in ("softmax", "sparsemax"):
        assert siblings[name] == replace(config, projection=name)


def test_findings_by_hand():
    trained = communication_texts(
        4,
        label=["no", "yes", "yes", "yes"],
        predicted=["no", "no", "yes", "no"],
        support=[1, 2, 3, 6],
        agrees_silence=[1.0, 1.0, 0.0, 1.0],
        right_silence=[1.0, 0.0, 0.0, 0.0],
        **{
            "agrees_random@1": [1.0, 0.5, 0.0, 0.5],
            "agrees_erasure@1": [1.0, 1.0, 0.0, 1.0],
            "agrees_attention@1": [1.0, 1.0, 1.0, 1.0],
            "agrees_chance-attention@1": [0.0, 1.0, 0.0, 1.0],
            "right_attention@1": [1.0, 0.0, 1.0, 0.0],
            "agrees_attention@10": [0.0, 0.0, 1.0, 0.0],
            "agrees_surrogate@10": [1.0, 0.0, 1.0, 0.0],
            "agrees_embedded": [1.0, 0.0, 1.0, 1.0],
        },
    )
    sparse = communication_texts(4, subject="sparsemax", **{"agrees_attention@1": [1.0, 0.0, math.nan, 1.0]})
    found = concluded(pd.concat([trained, sparse]), communication.conclude)
    assert set(found["group"]) == {"overall", "sparsemax"}
    expected = {
        "csr-silence": (0.75, 0.75),
        "accuracy-silence": (0.25, 0.75),
        "csr-random@1": (0.5, 0.75),
        "csr-random-excess@1": (-0.25, 0.0),
        "csr-erasure@1": (0.75, 0.5),
        "csr-erasure-excess@1": (0.25, 0.0),
        "csr-attention@1": (1.0, 0.5),
        "csr-attention-excess@1": (0.5, 0.0),
        "accuracy-attention@1": (0.5, 0.0),
        "csr-attention-minus-erasure@1": (0.25, 0.0),
        "csr-surrogate-minus-attention@10": (0.25, 0.0),
        "csr-embedded": (0.75, 0.0),
        "csr-embedded-minus-attention@1": (-0.25, 0.0),
        "csr-embedded-minus-attention@10": (0.5, 0.0),
        "classifier-accuracy": (0.5, 0.75),
        "words-embedded": (3.0, 12.0),
    }
    for measure, (estimate, null) in expected.items():
        finding = one(found, measure)
        assert (finding["estimate"], finding["null"]) == pytest.approx((estimate, null)), measure
    apart = one(found, "csr-attention-minus-trained@1", "sparsemax")
    assert apart["estimate"] == pytest.approx(-1 / 3)
    assert (apart["n"], apart["excluded"], apart["why"]) == (3, 1, communication.UNMATCHED)
    assert "csr-attention-minus-trained@1" not in set(found[found["group"] == "overall"]["measure"])


def test_rows_that_lack_a_message_are_refused():
    with pytest.raises(Refusal, match="no column agrees_attention@5"):
        concluded(communication_rows().drop(columns="agrees_attention@5"), communication.conclude)


def test_the_commonest_answer_is_each_models_own():
    rows = pd.concat(
        [
            communication_texts(3, predicted=["no", "no", "yes"]),
            communication_texts(3, subject="untrained", predicted=["yes", "yes", "yes"]),
        ]
    )
    found = concluded(rows, communication.conclude)
    assert one(found, "csr-silence")["null"] == pytest.approx(2 / 3)
    assert one(found, "csr-silence", "untrained")["null"] == 1.0


def test_every_measure_has_its_card_and_every_card_its_measure():
    found = concluded(communication_rows(), communication.conclude)
    assert {f"communication/{name.partition('@')[0]}" for name in found["measure"]} == set(
        COMMUNICATION_CARDS
    )


def test_the_study_claims_what_the_experiment_finds():
    found = concluded(communication_rows(), communication.conclude)
    there = {f"communication/{row['measure']}/{row['group']}" for row in found.to_dict("records")}
    study = load_study("treviso-martins-2020")
    assert len(study.claim) == 15
    for written in study.claim:
        assert Claim(**written.model_dump()).statistic in there
    (step,) = (step for step in study.experiment if step.name == "communication")
    assert experiment(step.name, step.mode, step.parameters) == Communication(joint=True)


def test_a_study_makes_five_models_a_seed_and_no_other_keys(store):
    planner = Planner(store)
    step = Communication()
    planner.finding(step, Point("planted-keyword", "average", "additive", "softmax"), {}, 1)
    configs = [cell.config for cell in planner.cells.values() if cell.stage == "model"]
    assert sorted(config.get("projection", "softmax") for config in configs) == [
        *("entmax15", "softmax", "softmax", "softmax", "sparsemax")
    ]
    plain = Planner(store)
    plain.finding(Performance(), Point("planted-keyword", "average", "additive", "entmax15"), {}, 1)
    (alone,) = (cell.key for cell in plain.cells.values() if cell.stage == "model")
    assert alone in planner.cells  # the sibling is the model of that grid point, trained once for both
