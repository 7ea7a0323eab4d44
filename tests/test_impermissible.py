"""Impermissible words (PR): what the penalty is, by hand and by formula, and what it trains."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import attentest as at
from attentest.corpus.example import Example
from attentest.corpus.marks import RATIONALE
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.impermissible import Impermissible, marks
from attentest.model.text_rows import text_rows
from attentest.model.training.loop import Training
from attentest.refusal import Refusal
from tests.toys import WORDS, in_double, toy_batch, toy_corpus, toy_model

SMALL = {"encoder": "average", "hidden": 16, "embedding": 12, "learning_rate": 0.01}
CUES = "awful bad poor fine good great"


def example(text, **more):
    return Example(id=text, tokens=tuple(text.split()), label="no", **more)


# --- marks


def test_words_are_marked_whatever_their_case():
    found = marks([example("She saw HIM , himself"), example("nothing here")], "he SHE him")
    assert [each.tolist() for each in found] == [[True, False, True, False, False], [False, False]]


def test_a_rationale_marks_its_own_positions():
    texts = [example("a b c", rationale=(0, 2)), example("d e"), example("f", rationale=())]
    assert [each.tolist() for each in marks(texts, RATIONALE)] == [[True, False, True], [False] * 2, [False]]
    with pytest.raises(Refusal, match="nobody marked anything"):
        marks([example("a b c")], RATIONALE)


@pytest.mark.parametrize("words", ["", "  ", "he, she"])
def test_words_that_would_match_nothing_are_refused(words):
    with pytest.raises(Refusal, match="words with blanks between them"):
        marks([example("he said")], words)


def test_a_comma_is_a_word():
    assert marks([example("he , she")], ", he")[0].tolist() == [True, True, False]


# --- the penalty


def test_the_penalty_by_hand():
    texts = [example("he ran home"), example("a dog"), example("he he")]
    penalty = Impermissible(0.1, texts, "he")
    batch = IndexedSplit(texts, toy_model(toy_corpus()).vocabulary, ("no", "yes")).batch([0, 1, 2])
    weights = torch.tensor([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]], requires_grad=True)
    found = penalty(weights, batch)
    assert found.tolist() == pytest.approx([-0.1 * math.log(0.25), 0.0, -0.1 * math.log(1e-6)])
    assert found[1] == 0  # exactly
    (slope,) = torch.autograd.grad(found.sum(), weights)
    assert slope.tolist() == [[pytest.approx(0.4), 0.0, 0.0], [0.0] * 3, [0.0] * 3]


@pytest.mark.parametrize(("labels", "summed"), [(("no", "yes"), True), (("no", "so", "yes"), False)])
@pytest.mark.parametrize("projection", ["softmax", "sparsemax"])
def test_the_loss_is_the_tasks_and_the_penalty_reduced_alike(labels, summed, projection):
    corpus = toy_corpus(labels=labels)
    rows = np.arange(len(corpus.train))
    losses, slopes = {}, {}
    for loss in ("task", "impermissible(0.7, cat home)"):
        model = in_double(toy_model(corpus, encoder="average", projection=projection, loss=loss))
        training = Training(model, corpus)
        reading = model.read(training.train.batch(rows))
        losses[loss] = training.objective(reading, model.decide(reading))
    added = []
    for row, text in enumerate(corpus.train):
        mass = sum(reading.weights[row, n] for n, word in enumerate(text.tokens) if word in ("cat", "home"))
        added.append(-0.7 * torch.log(1 - torch.as_tensor(mass, dtype=torch.float64)))
    expected = torch.stack(added).sum() if summed else torch.stack(added).mean()
    assert expected > 0.05
    task, both = losses.values()
    torch.testing.assert_close(both - task, expected)
    attention = list(model.attention.parameters())
    slopes = [torch.autograd.grad(each, attention, retain_graph=True) for each in (both, expected)]
    plain = in_double(toy_model(corpus, encoder="average", projection=projection))
    training = Training(plain, corpus)
    reading = plain.read(training.train.batch(rows))
    alone = torch.autograd.grad(
        training.objective(reading, plain.decide(reading)), list(plain.attention.parameters())
    )
    for whole, penalty, of_task in zip(*slopes, alone, strict=True):
        torch.testing.assert_close(whole, penalty + of_task)


# --- what it trains


def mass_on_cues(model, corpus):
    rows = {row["id"]: row["weights"] for row in text_rows(model, corpus, "test")}
    found = zip(corpus.test, marks(corpus.test, CUES), strict=True)
    return np.mean([rows[text.id][marked].sum() for text, marked in found if marked.any()])


def test_attention_leaves_the_words_that_decide_and_the_answers_stay(planted):
    use = {**SMALL, "encoder": "bilstm", "epochs": 8}
    plain, deceiving = (at.train(planted, loss=loss, **use) for loss in ("task", f"impermissible(1, {CUES})"))
    assert mass_on_cues(plain, planted) > 0.2 > 0.05 > mass_on_cues(deceiving, planted)
    assert deceiving.record.scores["test"]["accuracy"] > 0.8  # one half without those words


def test_without_lambda_it_is_the_task(planted):
    use = {**SMALL, "epochs": 1}
    one, two = (at.train(planted, loss=loss, **use) for loss in ("task", f"impermissible(0, {CUES})"))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_words_that_never_occur_change_nothing(planted):
    use = {**SMALL, "epochs": 1}
    one, two = (at.train(planted, loss=loss, **use) for loss in ("task", "impermissible(1, zyzzyva)"))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_a_rationale_can_be_impermissible(planted):
    plain, hiding = (
        at.train(planted, loss=loss, epochs=6, **SMALL) for loss in ("task", "impermissible(1, <rationale>)")
    )

    def mass(model):
        rows = {row["id"]: row["weights"] for row in text_rows(model, planted, "test")}
        return np.mean([rows[e.id][list(e.rationale)].sum() for e in planted.test if e.rationale])

    assert mass(hiding) < 0.5 * mass(plain)


def test_a_query_changes_nothing_of_it():
    corpus = toy_corpus(query=True, labels=("a", "b", "c"))
    model = toy_model(corpus, encoder="average", loss=f"impermissible(0.5, {WORDS[2]})")
    record = Training(model, corpus).run()
    assert all(math.isfinite(each["loss"]) for each in record.history)


# --- refusals


def test_what_has_no_learnt_weights_over_words_is_refused():
    with pytest.raises(Refusal, match=r"impermissible: .*units of attention are words"):
        ModelConfig(encoder="han-bigru", loss="impermissible(0.1, he)")
    assert ModelConfig(encoder="han-bigru", loss="impermissible(0, he)").encoder == "han-bigru"
    for fixed in ({"attention": "last-state"}, {"attention": "log-odds"}, {"projection": "uniform"}):
        with pytest.raises(Refusal, match="that are learnt"):
            ModelConfig(loss="impermissible(0.1, he)", **fixed)
    with pytest.raises(Refusal, match="words with blanks between them"):
        ModelConfig(loss="impermissible(0.1, he, she)")


def test_a_corpus_without_rationales_has_none_to_hide(planted):
    bare = replace(planted, train=tuple(replace(e, rationale=None) for e in planted.train))
    with pytest.raises(Refusal, match="a corpus with rationales"):
        at.train(bare, loss="impermissible(0.1, <rationale>)", epochs=1, **SMALL)


def test_the_marks_follow_the_batch(planted):
    """Texts in another order, and other padding: each keeps its own marks."""
    model = toy_model(planted, encoder="average")
    penalty = Impermissible(1.0, planted.test, CUES)
    some = toy_batch(model, planted, [5, 0, 3])
    together = penalty(model.read(some).weights, some)
    alone = [toy_batch(model, planted, [row]) for row in (5, 0, 3)]
    apart = [penalty(model.read(each).weights, each) for each in alone]
    torch.testing.assert_close(together, torch.cat(apart))
