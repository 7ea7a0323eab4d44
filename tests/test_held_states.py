"""States that no training changes are read once: where they are, who shares them, and when they are not."""

import pytest

from attentest.fleet import held_states as held
from attentest.fleet import stack
from attentest.fleet.trainer import Fleet
from attentest.model.text_rows import text_rows
from attentest.model.training import held_reading
from attentest.model.training.imitation import said
from tests.fleets import LENGTHS, check_alike, made, trainings
from tests.toys import toy_corpus

FROZEN = {"freeze": ("embedding", "encoder", "decoder")}


@pytest.fixture(autouse=True)
def _alone_is_read_at_every_step(monkeypatch):
    """Or a fleet would be compared with another road that reads once."""
    monkeypatch.setattr(held_reading, "ROOM", -1)


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "transformer"])
def test_frozen_adversaries_read_once_and_end_where_each_would_alone(encoder):
    corpus = toy_corpus(labels=("a", "b", "c"), lengths=LENGTHS)
    start = made(corpus, encoder=encoder, seed=7)
    rows = [row for split in ("train", "dev") for row in text_rows(start, corpus, split, scores=True)]
    models = [
        made(
            corpus,
            encoder=encoder,
            seed=7,
            start=start.state_dict(),
            loss=f"imitate(base, {factor})",
            **more,
            **FROZEN,
        )
        for factor in (0.0, 1e-3, 0.5)
        for more in ({}, {"attention_rate": 10.0})
    ]
    assert Fleet(trainings(models, corpus, said(rows, "softmax"))).held.hidden.shape[0] == 1
    check_alike(models, corpus, said(rows, "softmax"))


def test_every_encoder_that_differs_has_states_of_its_own_and_members_may_leave():
    corpus = toy_corpus(query=True, labels=("a", "b", "c"), lengths=LENGTHS)
    starts = [made(corpus, seed=seed).state_dict() for seed in range(3)]
    models = [
        made(corpus, seed=seed, start=starts[seed % 3], epochs=2 + seed, freeze=("embedding", "encoder"))
        for seed in range(5)
    ]
    fleet = Fleet(trainings(models, corpus))
    assert fleet.held.hidden.shape[0] == fleet.held.query.shape[0] == 3
    together = check_alike(models, corpus)
    assert [len(training.record.history) for training in together] == [2, 3, 4, 5, 6]


def test_a_step_reads_nothing(monkeypatch):
    corpus, read, real = toy_corpus(lengths=LENGTHS), [], stack.encode
    fleet = Fleet(trainings([made(corpus, seed=seed, **FROZEN) for seed in (0, 1)], corpus))
    monkeypatch.setattr(stack, "encode", lambda *given: (read.append(given), real(*given))[1])
    monkeypatch.setattr(fleet, "_scores", lambda *given: [{"auc": 0.5}] * 2)
    fleet._run_epoch(lambda step: None)
    assert not read


@pytest.mark.parametrize(
    "changes",
    [
        [{"freeze": ("encoder",)}, {"freeze": ("encoder",)}],
        [{"freeze": ("embedding", "encoder")}, {"freeze": ("embedding",)}],
        [{"encoder": "han-conv", **FROZEN}],
    ],
)
def test_states_that_move_or_are_of_sentences_are_read_at_every_step(changes):
    corpus = toy_corpus(lengths=LENGTHS)
    assert Fleet(trainings([made(corpus, **change) for change in changes], corpus)).held is None


def test_without_room_states_are_read_at_every_step_and_the_end_is_the_same(monkeypatch):
    corpus = toy_corpus(lengths=LENGTHS)
    models = [made(corpus, seed=seed, **FROZEN) for seed in (0, 1)]
    monkeypatch.setattr(held, "ROOM", 0)
    assert Fleet(trainings(models, corpus)).held is None
    check_alike(models, corpus)
