"""A model of the store, asked about a text that somebody has just typed.

This is the bench's side of the live page. The command line hands it to the server, which therefore never
imports torch; here is no HTTP, there is no tensor.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
from torch import Tensor

from attentest.corpus.example import Example
from attentest.corpus.vocabulary import UNK
from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.evidence.erasure.leave_one_out import fastest, leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.experiments.adversary.conclude import MAIN
from attentest.live.session import LONGEST, LoadedModel, units_of
from attentest.model.divergence import jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.networks.hierarchy import Hierarchical
from attentest.model.seam import Network, Reading
from attentest.refusal import Refusal
from attentest.store.cell import short
from attentest.store.store import Store

Document = dict[str, Any]
KEY = re.compile(r"[0-9a-f]{64}")
# Leave-one-out costs about a reading a token; beyond so many it would keep a person waiting.
PATIENCE = {"token-wise": LONGEST, "convolutional": LONGEST, "recurrent": 300, "whole": 100}
PROGRAMMES = 2_000_000  # answers squared times units, which is how linear programmes grow: some 2 seconds
MODELS = 4  # that were asked last, kept in memory
WAIT = 20.0  # seconds that a question waits for the one before it
NAMED = 5  # unknown words that are named


@final
class Live:
    """Answers about typed texts, by any model of the store that has its weights. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._opened: OrderedDict[str, LoadedModel] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, *, model: str, text: str, query: str | None, epsilon: float | None) -> Document:
        """The prediction, the attention, two importances and the strongest adversary of one text."""
        with self._working(model) as opened:
            begun = time.perf_counter()
            example = opened.example(text, query)
            found = gradients(opened.model, opened.batch(example))
            opened.remember(text, query, found.reading)
            with torch.no_grad():
                document = _read(opened, example, found.reading, epsilon or MAIN[query is not None])
            document["gradient"] = _numbers(found.times_input[0])
            return document | {"model": model, "seconds": round(time.perf_counter() - begun, 4)}

    def decide(
        self, *, model: str, text: str, query: str | None, weights: Sequence[float], renormalise: bool
    ) -> Document:
        """The decision about the same text under other weights, as they are or divided by their sum."""
        with self._working(model) as opened, torch.no_grad():
            reading = opened.reading(text, query)
            given = _given(weights, reading, renormalise)
            own, other = (distribution(opened.model.decide(reading, each)) for each in (None, given))
            mass = float(given.double().sum())
            far = float(jensen_shannon(given.double(), reading.weights.double())[0])
            return {
                **_answer(opened.model, other),
                "weights": _numbers(given[0]),
                "mass": mass,
                "output_change": _number(float(total_variation(own, other)[0])),
                # Between things of different mass there is no such divergence.
                "divergence": _number(far) if math.isclose(mass, 1.0, abs_tol=1e-4) else None,
            }

    @contextmanager
    def _working(self, key: str) -> Iterator[LoadedModel]:
        """The model, with nobody else at it."""
        opened = self._open(key)
        if not opened.lock.acquire(timeout=WAIT):
            raise Refusal(
                f"model {short(key)}",
                got=f"another question that has taken more than {WAIT:g} seconds",
                needs="a model that is free",
                way_out="Ask again in a moment.",
            )
        try:
            yield opened
        finally:
            opened.lock.release()

    def _open(self, key: str) -> LoadedModel:
        """The model by its key, which came from outside and must not become a path before it is checked."""
        if not (KEY.fullmatch(key) and self.store.holds(key, "model.safetensors")):
            raise Refusal(
                f"model {key[:64]!r}",
                got="no such model with its weights",
                needs="the key of a model that the store holds whole",
                way_out="GET /api/models lists them.",
            )
        with self._lock:
            opened = self._opened.setdefault(key, LoadedModel(self.store, key))
            self._opened.move_to_end(key)
            while len(self._opened) > MODELS:
                self._opened.popitem(last=False)
        return opened


def _read(opened: LoadedModel, example: Example, reading: Reading, epsilon: float) -> Document:
    model, units = opened.model, units_of(opened.model, example)
    known = model.vocabulary.numbers(example.tokens) != UNK
    left, not_left = _left_out(model, reading)
    other, no_other = _adversary(reading, epsilon)
    notes = [_about_words(example.tokens, known.tolist()), _about_units(model, units)]
    if opened.preparation is None:
        notes.append("The store does not hold the corpus; the text was split into words in the usual way.")
    return {
        **_answer(model, distribution(model.decide(reading))),
        "units": [" ".join(example.tokens[place] for place in places) for places in units],
        "known": [bool(known[places].all()) for places in units],
        "weights": _numbers(reading.weights[0]),
        "leave_one_out": left,
        "epsilon": epsilon,
        "adversary": other,
        "notes": [note for note in (*notes, not_left, no_other) if note],
    }


def _answer(model: Network, output: Tensor) -> Document:
    """What the model says, of the first text of a batch."""
    predicted = model.labels[int(output[0].argmax())]
    return {"labels": list(model.labels), "probabilities": _numbers(output[0]), "predicted": predicted}


def _left_out(model: Network, reading: Reading) -> tuple[list[float | None] | None, str]:
    """Leave-one-out, or None and why it was not done."""
    road = fastest(model)
    tokens = int(reading.batch.mask.sum())
    if tokens > PATIENCE[road]:
        said = (
            f"Leave-one-out would read {tokens} shortened texts; it is done for up to {PATIENCE[road]} words."
        )
        return None, said
    return _numbers(leave_one_out(model, reading).change[0]), ""


def _adversary(reading: Reading, epsilon: float) -> tuple[Document | None, str]:
    """The furthest attention that keeps the output, or None and why there is none."""
    if reading.values is None or reading.bias is None:
        return None, "This model's decision is not affine in its weights, so no exact adversary is known."
    if reading.weights.shape[1] == 1:
        return (
            None,
            "With one unit attention has no choice: its weight is 1, and there is no other attention.",
        )
    _, units, classes = reading.values.shape
    if classes > 2 and classes**2 * units > PROGRAMMES:
        return (
            None,
            f"With {classes} answers and {units} words an adversary would take too long to look for here.",
        )
    found = strongest_adversary(reading.weights, reading.values, reading.bias, reading.mask, epsilon)
    note = ""
    if not found.exact:
        note = (
            "Of several classes the adversary is the best that was found; the bound says what none exceeds."
        )
    document = {
        "weights": _numbers(found.weights[0]),
        "divergence": _number(float(found.divergence[0])),
        "output_change": _number(float(found.output_change[0])),
        "exact": found.exact,
        "bound": _number(float(found.bound[0])),
    }
    return document, note


def _given(weights: Sequence[float], reading: Reading, renormalise: bool) -> Tensor:
    units = reading.weights.shape[1]
    wrong = None
    if len(weights) != units:
        wrong = f"{len(weights)} weights for {units} units", "one weight for each unit of the text"
    elif renormalise and not sum(weights) > 0:
        wrong = "weights that are all 0", "at least one above 0, to be divided by their sum"
    if wrong:
        way_out = "Read the text first; its answer lists the units."
        raise Refusal("the weights", got=wrong[0], needs=wrong[1], way_out=way_out)
    given = torch.tensor([list(weights)], dtype=torch.float64)
    return (given / given.sum() if renormalise else given).to(reading.weights)


def _about_words(tokens: Sequence[str], known: Sequence[bool]) -> str:
    strange = list(dict.fromkeys(token for token, there in zip(tokens, known, strict=True) if not there))
    if not strange:
        return ""
    named = ", ".join(word[:40] for word in strange[:NAMED]) + (", …" if len(strange) > NAMED else "")
    count = len(known) - sum(known)
    said = f"{count} of {len(known)} words are unknown to the model"
    return f"{said}, which reads all of them as one word: {named}."


def _about_units(model: Network, units: Sequence[Sequence[int]]) -> str:
    if isinstance(model.encoder, Hierarchical):
        return "This model attends to sentences: each has one weight."
    if model.attention is None:
        return "This model reads its last state alone: the whole text is one unit, and its weight is 1."
    return "A text of one word leaves nothing to leave out." if len(units) == 1 else ""


def _number(value: float) -> float | None:
    """JSON has no NaN; a number that is not there is null."""
    return value if math.isfinite(value) else None


def _numbers(vector: Tensor) -> list[float | None]:
    return [_number(value) for value in vector.tolist()]
