"""The explainer that is trained to be understood: learning by hand, the planted truth, codes, bad input."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from attentest.bench.plan import spelled
from attentest.evidence.game import joint_explainer
from attentest.evidence.game.joint_explainer import JointExplainer, Listener, Together, Told
from attentest.evidence.game.laypeople import BATCH, RATE
from attentest.experiments.communication import conclude as communication
from attentest.experiments.communication.game import joint_messages
from attentest.experiments.communication.observe import Communication
from attentest.experiments.shared.explained_split import ExplainedSplit
from attentest.model.batch import IndexedSplit, buckets
from tests.communicating import QUICK, be_nan, columns_of, observed, planted_game, say_one
from tests.observed import concluded, one
from tests.observed_communication import communication_texts
from tests.toys import toy_batch, toy_corpus, toy_model

JOINT = Communication(**QUICK, joint=True)


def told_of(model, examples, corpus, answers=None):
    split = IndexedSplit(examples, model.vocabulary, corpus.labels)
    answers = split.labels if answers is None else answers
    return Told(split, answers, np.arange(len(split)))


def test_weights_are_sparse_sum_to_one_and_leave_padding_alone():
    corpus = toy_corpus(lengths=(9, 1, 4, 8))
    model = toy_model(corpus)
    torch.manual_seed(0)
    both = Together(model, 2)
    both.explainer.to_score.weight.data.mul_(300)
    batch = toy_batch(model, corpus)
    weights, _ = both(batch, torch.tensor([0, 1, 0, 1]))
    assert not weights[~batch.mask].any() and weights[1, 0] == 1
    torch.testing.assert_close(weights.sum(1), torch.ones(4))
    assert (weights[batch.mask] == 0).any()


def test_a_listener_adds_up_what_it_hears_and_knows_the_query():
    corpus = toy_corpus(query=True, labels=("a", "b", "c"))
    model = toy_model(corpus)
    listener = Listener(len(model.vocabulary), 3, has_query=True)
    assert not listener.says.weight.any(), "it knows nothing at first"
    torch.nn.init.normal_(listener.says.weight)
    batch = toy_batch(model, corpus)
    weights = torch.rand(batch.mask.shape).masked_fill(~batch.mask, 0.0)
    heard = listener(batch, weights)
    table = listener.says.weight
    for row, example in enumerate(corpus.test):
        words, asked = (model.vocabulary.numbers(part) for part in (example.tokens, example.query))
        expected = table[0] + sum(table[len(model.vocabulary) + int(word)] for word in asked)
        expected = expected + sum(weights[row, place] * table[int(word)] for place, word in enumerate(words))
        torch.testing.assert_close(heard[row], expected)


def test_both_learn_from_one_loss_and_the_classifier_stays(monkeypatch):
    """One epoch, the long way: each text's message written out, plain Adam over both."""
    monkeypatch.setattr(joint_explainer, "EPOCHS", 1)
    corpus = toy_corpus(lengths=(5, 3, 4, 6) * 6)
    model = toy_model(corpus, encoder="average")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    told = told_of(model, corpus.train, corpus)
    found = JointExplainer.taught(model, told, told, classes=2, rng=np.random.default_rng(3))
    rng = np.random.default_rng(3)
    torch.manual_seed(int(rng.integers(2**63)))
    plain = Together(model, 2)
    learnt = [*plain.explainer.parameters(), *plain.listener.parameters()]
    adam = torch.optim.Adam(learnt, lr=RATE)
    for rows in buckets(told.split.lengths, BATCH, rng=rng):
        losses = []
        for row in rows.tolist():
            batch = told.split.batch([row])
            answer = torch.from_numpy(told.answers[[row]])
            weights = plain.explainer(model.read(batch).hidden.detach(), batch.mask, answer)
            bag = torch.zeros(len(model.vocabulary)).index_add(0, batch.tokens[0], weights[0])
            bag = bag + functional.one_hot(torch.tensor(0), len(bag))  # the constant
            losses.append(functional.cross_entropy((bag @ plain.listener.says.weight)[None], answer))
        adam.zero_grad()
        torch.stack(losses).mean().backward()
        adam.step()
    for name, tensor in plain.explainer.state_dict().items():
        torch.testing.assert_close(found.both.explainer.state_dict()[name], tensor, atol=1e-5, rtol=1e-4)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_epoch_that_was_understood_best_is_kept_and_patience_ends_it(monkeypatch):
    worth, states = iter([0.5, 0.9, 0.9, 0.1, 0.2]), []

    def understood(both, told):
        states.append({name: tensor.clone() for name, tensor in both.explainer.state_dict().items()})
        return next(worth)

    monkeypatch.setattr(joint_explainer, "_understood", understood)
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="average")
    told = told_of(model, corpus.train, corpus)
    found = JointExplainer.taught(model, told, told, classes=2, rng=np.random.default_rng(0))
    assert len(states) == 5, "three epochs without a better one"
    for name, tensor in found.both.explainer.state_dict().items():
        assert torch.equal(tensor, states[1][name])


def test_weights_lie_text_behind_text_in_the_order_of_the_split():
    corpus = toy_corpus(lengths=(7, 2, 9, 1, 5))
    model = toy_model(corpus)
    told = told_of(model, corpus.test, corpus)
    explainer = JointExplainer(Together(model, 2))
    ends = np.cumsum(told.split.lengths)[:-1]
    together = np.split(explainer.weights(told.split, told.answers), ends)
    for row, own in enumerate(together):
        alone = explainer.both(told.split.batch([row]), torch.from_numpy(told.answers[[row]]))[0][0]
        np.testing.assert_allclose(own, alone.detach().numpy(), atol=1e-6)


def test_the_largest_weights_are_sent_never_a_word_without_and_as_many_random_ones(rng):
    corpus = toy_corpus(lengths=(4, 3))
    model = toy_model(corpus, encoder="average")
    split = ExplainedSplit.of(model, IndexedSplit(corpus.test, model.vocabulary, corpus.labels))
    weights = np.array([0.2, 0.0, 0.5, 0.3, 0.0, 1.0, 0.0])
    found = {name: chosen for name, chosen in joint_messages(split, weights, (1, 2, 9), 1, rng)}
    assert found["joint@1"].tolist() == [False, False, True, False, False, True, False]
    assert found["joint@2"].tolist() == [False, False, True, True, False, True, False]
    assert found["joint@9"].tolist() == (weights > 0).tolist()
    for k, sent in ((1, [1, 1]), (2, [2, 1]), (9, [3, 1])):
        chance = found[f"chance-joint@{k}"]
        assert [chance[:4].sum(), chance[4:].sum()] == sent


@pytest.mark.parametrize("kind", [{}, {"query": True, "labels": ("no", "yes", "maybe")}])
def test_the_others_say_what_they_say_without_it_bit_for_bit(kind):
    corpus = toy_corpus(lengths=(5, 4, 9, 7) * 5, **kind)
    without = observed(corpus, Communication(**QUICK), encoder="average")
    beside = observed(corpus, JOINT, encoder="average")
    pd.testing.assert_frame_equal(beside[without.columns], without)
    own = set(beside.columns) - set(without.columns)
    messages = [f"{name}@{k}" for name in ("joint", "chance-joint") for k in (1, 3)]
    assert own == {"words_joint", *(f"{what}_{name}" for what in ("agrees", "right") for name in messages)}
    assert beside[sorted(own)].notna().all().all()


def test_no_key_changes_where_it_is_not_asked_for():
    old = {"k": "1 3 5 10", "draws": 3, "taught": 10_000}
    assert spelled(Communication())["parameters"] == old
    assert spelled(Communication(joint=True))["parameters"] == {**old, "joint": True}


def test_a_planted_word_is_found_and_a_code_needs_none(planted):
    """It is understood where a word decides; and also, being free to, where an answer is drawn at random."""
    model, game = planted_game(planted)
    told = [Told(each.split, each.answers, np.arange(len(each.answers))) for each in game.splits]
    rng = np.random.default_rng(0)
    explainer = JointExplainer.taught(model, *told[:2], classes=2, rng=rng)
    weights = [explainer.weights(each.split, each.answers) for each in game.splits]
    columns = game.joint_columns(weights, (1,), 3, rng=rng)
    share = {name: column.mean() for name, column in columns.items()}
    assert share["agrees_joint@1"] > 0.9 > 0.75 > share["agrees_chance-joint@1"]
    assert 1 <= share["words_joint"] < game.test.lengths.mean()
    coins = [np.random.default_rng(n).integers(0, 2, len(each.answers)) for n, each in enumerate(told)]
    told = [Told(each.split, each_coins, each.texts) for each, each_coins in zip(told, coins, strict=True)]
    coded = JointExplainer.taught(model, *told[:2], classes=2, rng=np.random.default_rng(0))
    assert joint_explainer._understood(coded.both, told[2]) > 0.75


def test_one_answer_is_understood_and_no_number_is_excluded():
    one_answer = observed(toy_corpus(), JOINT, spoil=say_one, encoder="average")
    trained = one_answer[one_answer["subject"] == "trained"]
    assert (trained[["agrees_joint@1", "agrees_chance-joint@3"]] == 1).all().all()
    nothing = observed(toy_corpus(), JOINT, spoil=be_nan, encoder="average").assign(seed=0)
    trained = nothing[nothing["subject"] == "trained"]
    assert trained[["agrees_joint@1", "right_joint@3", *sorted(columns_of((1, 3)))]].isna().all().all()
    found = one(concluded(nothing, communication.conclude), "csr-joint@3")
    assert math.isnan(found["estimate"]) and found["excluded"] == len(trained)


def test_findings_by_hand():
    rows = communication_texts(
        4,
        words_joint=[1, 1, 2, 4],
        **{
            "agrees_joint@1": [1.0, 1.0, 1.0, 0.0],
            "agrees_chance-joint@1": [0.0, 1.0, 0.0, 0.0],
            "agrees_attention@1": [1.0, 0.0, 0.0, 0.0],
            "agrees_surrogate@1": [1.0, 1.0, 0.0, 0.0],
        },
    )
    found = concluded(rows, communication.conclude)
    expected = {
        "csr-joint@1": (0.75, 0.25),
        "csr-joint-excess@1": (0.5, 0.0),
        "csr-joint-minus-attention@1": (0.5, 0.0),
        "csr-joint-minus-surrogate@1": (0.25, 0.0),
        "words-joint": (2.0, 12.0),
    }
    for measure, (estimate, null) in expected.items():
        finding = one(found, measure)
        assert (finding["estimate"], finding["null"]) == pytest.approx((estimate, null)), measure
    joint = [name for name in rows if "joint" in name]
    without = concluded(rows.drop(columns=joint), communication.conclude)
    assert not without["measure"].str.contains("joint").any()
