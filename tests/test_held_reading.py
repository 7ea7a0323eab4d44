"""Frozen states are read once, and a training ends where one does that reads them at every step."""

import pytest
import torch

from attentest.model.batch import IndexedSplit
from attentest.model.catalogue import ENCODERS
from attentest.model.training import held_reading
from attentest.model.training.loop import Training
from tests.fleets import LENGTHS, made
from tests.toys import toy_corpus

FROZEN = ("embedding", "encoder")


def ended(model_of, corpus, monkeypatch, room):
    monkeypatch.setattr(held_reading, "ROOM", room)
    training = Training(model_of(), corpus)
    calls, real = [], training.model.encoder.forward
    monkeypatch.setattr(training.model.encoder, "forward", lambda *a: (calls.append(1), real(*a))[1])
    training.run()
    return training, len(calls)


@pytest.mark.parametrize("encoder", [name for name in ENCODERS if not name.startswith("han-")])
@pytest.mark.parametrize("query", [False, True])
def test_the_end_is_the_same(encoder, query, monkeypatch):
    corpus = toy_corpus(query=query, labels=("a", "b", "c"), lengths=LENGTHS)

    def model():
        return made(corpus, encoder=encoder, freeze=FROZEN, epochs=6)

    held, few = ended(model, corpus, monkeypatch, 2**30)
    plain, many = ended(model, corpus, monkeypatch, -1)
    assert held.reader.states is not None and plain.reader.states is None
    assert few < many
    assert [e["loss"] for e in held.record.history] == pytest.approx(
        [e["loss"] for e in plain.record.history], rel=1e-9
    )
    for name, expected in plain.model.state_dict().items():
        torch.testing.assert_close(held.model.state_dict()[name], expected, rtol=1e-7, atol=1e-10, msg=name)


@pytest.mark.parametrize("noise", [{"dropout": 0.4}, {"projection": "gumbel-softmax(0.8)"}])
def test_noise_is_drawn_as_ever(noise, monkeypatch):
    corpus = toy_corpus(lengths=LENGTHS)
    held, plain = (
        ended(lambda: made(corpus, freeze=FROZEN, **noise), corpus, monkeypatch, room)[0]
        for room in (2**30, -1)
    )
    assert held.reader.states is not None and plain.reader.states is None
    for name, expected in plain.model.state_dict().items():
        torch.testing.assert_close(held.model.state_dict()[name], expected, rtol=1e-7, atol=1e-10, msg=name)


@pytest.mark.parametrize(
    "settings",
    [
        {"freeze": ("embedding",)},
        {"freeze": ("encoder",)},
        {"freeze": FROZEN, "encoder": "han-conv"},
        {"freeze": FROZEN, "attention": "last-state"},
    ],
)
def test_what_moves_or_has_other_units_is_read_at_every_step(settings):
    corpus = toy_corpus(lengths=LENGTHS)
    assert not Training(made(corpus, **settings), corpus).reader.holds


def test_a_kept_reading_is_that_of_the_model():
    corpus = toy_corpus(query=True, lengths=LENGTHS)
    model = made(corpus)
    split = IndexedSplit(corpus.train, model.vocabulary, corpus.labels)
    rows = torch.tensor([4, 1, 6]).numpy()
    batch = split.batch(rows)
    found, expected = held_reading.HeldReading(model, split)(rows, batch, None), model.read_distinct(batch)
    for name in ("weights", "query", "embeddings"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), msg=name)
    torch.testing.assert_close(found.hidden[batch.mask], expected.hidden[batch.mask])
    torch.testing.assert_close(model.decide(found), model.decide(expected))
