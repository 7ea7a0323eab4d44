"""Messages and the laypeople that read them: choices by hand, and many learners against one at a time."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attentest.evidence.game import laypeople
from attentest.evidence.game.gliding_adam import GlidingAdam
from attentest.evidence.game.laypeople import BATCH, EPOCHS, PATIENCE, RATE, Laypeople, taught
from attentest.evidence.game.messages import Messages, by_chance, counted, places, ranks
from attentest.refusal import Refusal

LENGTHS = np.array([3, 1, 4])


def test_the_largest_score_of_each_text_comes_first_and_nan_last(rng):
    scores = np.array([0.1, 0.5, 0.3, np.nan, np.nan, 2.0, -1.0, 3.0])
    assert ranks(scores, LENGTHS, rng=rng).tolist() == [2, 0, 1, 0, 3, 1, 2, 0]


def test_equal_scores_are_ranked_by_chance():
    draws = [ranks(np.zeros(8), LENGTHS, rng=np.random.default_rng(seed)) for seed in range(4000)]
    first = (np.array(draws) == 0).mean(0)
    np.testing.assert_allclose(first, [1 / 3] * 3 + [1.0] + [1 / 4] * 4, atol=0.03)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 12), st.integers(0, 2**32))
def test_chance_sends_as_many_words_as_are_counted(lengths, most, seed):
    lengths = np.array(lengths)
    wanted = np.minimum(lengths, most)
    chosen = by_chance(wanted, lengths, rng=np.random.default_rng(seed))
    assert counted(chosen, lengths).tolist() == wanted.tolist()


def test_places_name_the_tokens_of_texts_in_their_order():
    assert places(LENGTHS, np.array([2, 0])).tolist() == [4, 5, 6, 7, 0, 1, 2]
    assert places(LENGTHS, np.array([], dtype=np.int64)).tolist() == []


def test_a_message_ends_in_what_everybody_knows():
    chosen = np.array([[True, False], [False, False], [True, True]])
    known = [np.array([9]), np.array([], dtype=np.int64)]
    messages = Messages.of(np.array([5, 6, 7]), np.array([2, 1]), chosen, known)
    assert messages.words.tolist() == [5, 6, 9, 0, 7, 0]
    assert messages.lengths.tolist() == [4, 2]
    assert messages.sent[:, 0].tolist() == [True, False, True, True, True, True]
    assert messages.sent[:, 1].tolist() == [False, False, True, True, True, True]
    turned = messages.only(np.array([1, 0]))
    assert turned.words.tolist() == [7, 0, 5, 6, 9, 0]
    assert turned.span(1, 2).words.tolist() == [5, 6, 9, 0]


@pytest.mark.parametrize("shape", [(30,), (30, 2, 3)])
def test_gliding_ends_where_dense_adam_does(shape):
    rng, steps = torch.Generator().manual_seed(0), 400
    start = torch.randn(shape, generator=rng, dtype=torch.float64)
    dense = start.clone().requires_grad_()
    usual = torch.optim.Adam([dense], lr=RATE)
    ours = GlidingAdam(start.clone(), rate=RATE, steps=steps)
    for _ in range(steps):
        rows = torch.randperm(20, generator=rng)[:3]  # ten rows are never read
        gradient = torch.randn(3, *shape[1:], generator=rng, dtype=torch.float64)
        ours.catch_up(rows)
        torch.testing.assert_close(ours.table[rows], dense.detach()[rows], atol=1e-7, rtol=1e-6)
        ours.step(rows, gradient)
        dense.grad = torch.zeros_like(dense).index_add_(0, rows, gradient)
        usual.step()
    ours.catch_up()
    torch.testing.assert_close(ours.table, dense.detach(), atol=1e-7, rtol=1e-6)
    assert torch.equal(ours.table[20:], start[20:])


def made(rng, texts, laypeople, words=30):
    """Random texts, random messages of them, and answers that some words decide."""
    lengths = rng.integers(1, 9, texts)
    tokens = rng.integers(1, words, lengths.sum())
    chosen = rng.random((len(tokens), laypeople)) < np.linspace(0, 1, laypeople)
    messages = Messages.of(tokens, lengths, chosen, [np.array([], dtype=np.int64)] * texts)
    said = np.add.reduceat((tokens % 3 == 0).astype(int), np.cumsum(lengths) - lengths)
    return messages, np.minimum(said, 2)


def bags(messages, layperson, words=30):
    """One row a text, one column a word: how often it was sent."""
    text = np.repeat(np.arange(len(messages)), messages.lengths)
    found = np.zeros((len(messages), words))
    np.add.at(found, (text, messages.words), messages.sent[:, layperson])
    return torch.tensor(found)


def taught_alone(lessons, answers, exam, expected, layperson, rng):
    """The plain way: a linear layer, dense Adam, the epoch that is best on dev."""
    weights = torch.zeros(30, 3, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([weights], lr=RATE)
    best, highest, waited = None, -1.0, 0
    learnt, asked = bags(lessons, layperson), bags(exam, layperson)
    for _ in range(EPOCHS):
        order = rng.permutation(len(lessons))
        for begin in range(0, len(order), BATCH):
            some = order[begin : begin + BATCH]
            adam.zero_grad()
            wanted = torch.from_numpy(answers[some])
            torch.nn.functional.cross_entropy(learnt[some] @ weights, wanted).backward()
            adam.step()
        guessed = ((asked @ weights).argmax(1).numpy() == expected).mean()
        if guessed > highest:
            best, highest, waited = weights.detach().clone(), guessed, 0
        else:
            waited += 1
        if waited == PATIENCE:
            break
    return best


def test_many_laypeople_learn_as_each_would_alone():
    rng = np.random.default_rng(1)
    lessons, answers = made(rng, 150, 5)
    exam, expected = made(rng, 60, 5)
    together = taught(lessons, answers, exam, expected, words=30, classes=3, rng=np.random.default_rng(2))
    says = together.says(exam)
    for layperson in range(5):
        alone = taught_alone(lessons, answers, exam, expected, layperson, np.random.default_rng(2))
        torch.testing.assert_close(together.table[:, layperson], alone, atol=1e-6, rtol=1e-6)
        own = (bags(exam, layperson) @ together.table[:, layperson]).argmax(1)
        assert says[:, layperson].tolist() == own.tolist()


def test_the_kept_epoch_is_the_best_on_dev_and_later_luck_does_not_count(monkeypatch):
    guesses = iter([[0, 0], [1, 0], [0, 0], [0, 0], [0, 0], [0, 1], [0, 1]])
    tables = []

    def says(self, messages):
        tables.append(self.table.clone())
        return np.array([next(guesses)])

    monkeypatch.setattr(Laypeople, "says", says)
    lessons, answers = made(np.random.default_rng(0), 40, 2)
    exam = lessons.only(np.array([0]))
    found = taught(lessons, answers, exam, np.array([1]), words=30, classes=3, rng=np.random.default_rng(0))
    # The second layperson's first epoch is its best until its patience ends, after the fourth.
    assert len(tables) == 5
    torch.testing.assert_close(found.table[:, 0], tables[1][:, 0])
    torch.testing.assert_close(found.table[:, 1], tables[0][:, 1])


def test_who_hears_nothing_says_what_is_commonest():
    messages, _ = made(np.random.default_rng(0), 50, 3)
    answers = np.array([2] * 30 + [0] * 20)
    found = taught(messages, answers, messages, answers, words=30, classes=3, rng=np.random.default_rng(0))
    assert set(found.says(messages)[:, 0]) == {2}


def test_one_answer_is_learnt_by_everybody():
    messages, _ = made(np.random.default_rng(0), 20, 3)
    answers = np.ones(20, dtype=np.int64)
    found = taught(messages, answers, messages, answers, words=30, classes=2, rng=np.random.default_rng(0))
    assert (found.says(messages) == 1).all()


def test_long_splits_are_listened_to_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    messages, _ = made(rng, 40, 3)
    people = Laypeople(torch.from_numpy(rng.normal(size=(30, 3, 2))))
    whole = people.says(messages)
    monkeypatch.setattr(laypeople, "AT_ONCE", 50)
    assert len(list(laypeople._parts(messages, 6))) > 10
    np.testing.assert_array_equal(people.says(messages), whole)


def test_a_table_beyond_memory_is_refused(monkeypatch):
    monkeypatch.setattr(laypeople, "MOST", 100)
    messages, answers = made(np.random.default_rng(0), 5, 3)
    with pytest.raises(Refusal, match="3 of them, 30 words and 3 classes"):
        taught(messages, answers, messages, answers, words=30, classes=3, rng=np.random.default_rng(0))
