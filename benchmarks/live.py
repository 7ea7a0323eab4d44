"""The live page: what a person waits for, beside the same asked of the model step by step."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.live.answers import Live
from attentest.live.session import Typed
from attentest.model.network import AttentionModel
from attentest.model.training.files import to_files
from attentest.store.cell import Cell
from attentest.store.store import Store
from benchmarks.adversaries import LOUD, plain_search
from benchmarks.made import SHORT, Row, bench, seconds

TOKENS = (20, 180)


@contextmanager
def asked(model: AttentionModel) -> Iterator[tuple[Live, str]]:
    """The model in a store of its own, and whoever answers for it."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        cell = Cell(stage="model", version=1, config=model.config.spelled(), inputs={"corpus": "0" * 64})
        store.write(cell, to_files(model), {})
        yield Live(store), cell.key


def row(model: AttentionModel, tokens: int) -> list[Row]:
    text = " ".join(f"w{n * 7}" for n in range(tokens))
    decoder = nn.Linear(model.decoder.dense.in_features, 1).requires_grad_(False)
    decoder.load_state_dict(model.decoder.dense.state_dict())
    with asked(model) as (live, key):

        def read() -> None:
            live.read(model=key, text=text, query=None, epsilon=None)

        def decide() -> None:
            live.decide(model=key, text=text, query=None, weights=[1 / tokens] * tokens, renormalise=True)

        read()  # loads the model
        batch = live._open(key).read(Typed(text)).reading.batch

        def plainly() -> None:
            reading = gradients(model, batch).reading
            with torch.no_grad():
                leave_one_out(model, reading, road="whole")
            plain_search(decoder, reading)

        def read_again() -> None:
            with torch.no_grad():
                model.decide(model.read(batch))

        return [
            (
                f"a typed text of {tokens} words, all of the live page",
                seconds(plainly, 1),
                seconds(read),
                "leave-one-out",
            ),
            (f"a dragged weight, {tokens} words", seconds(read_again), seconds(decide), "calls"),
        ]


def rows() -> list[Row]:
    model = bench(SHORT, vectors="random(1.0)").model
    with torch.no_grad():
        model.decoder.dense.weight.mul_(LOUD)
    return [each for tokens in TOKENS for each in row(model, tokens)]
