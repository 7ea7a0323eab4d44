"""Models asked about a text that somebody has just typed: of a store, or loaded from elsewhere.

This is the bench's side of the live page. The command line hands it to the server, which therefore never
imports torch; here is no HTTP, there is no tensor.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
from torch import Tensor

from attentest.corpus.vocabulary import UNK
from attentest.evidence.erasure.leave_one_out import fastest
from attentest.evidence.importances.names import GRADIENT, LEFT_OUT
from attentest.experiments.adversary.conclude import MAIN
from attentest.gallery.writing import finite
from attentest.inspection.measure import ReadText, Settings, measured, units_of
from attentest.inspection.view import TextView
from attentest.live.session import LONGEST, LoadedModel, Place, Typed, stored_model
from attentest.model.divergence import jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Reading
from attentest.refusal import Refusal
from attentest.store.cell import short
from attentest.store.store import Store

Document = dict[str, Any]
KEY = re.compile(r"[0-9a-f]{64}")
# Leave-one-out costs about a reading a token; beyond so many it would keep a person waiting.
PATIENCE = {"token-wise": LONGEST, "convolutional": LONGEST, "recurrent": 300, "whole": 100}
STEPS = 100  # of a search for an adversary
MODELS = 4  # that were asked last, kept in memory
WAIT = 20.0  # seconds that a question waits for the one before it
MOST_ROWS = 60_000  # weights of all layers and heads that are sent


@final
class Live:
    """Answers about typed texts, by any model of the store that has its weights. Threads may share it."""

    def __init__(self, store: Store, held: Mapping[str, LoadedModel] | None = None) -> None:
        self.store = store
        self._held = dict(held or {})
        self._opened: OrderedDict[str, LoadedModel] = OrderedDict()
        self._lock = threading.Lock()

    def read(
        self,
        *,
        model: str,
        text: str,
        query: str | None,
        epsilon: float | None,
        layer: int | None = None,
        head: int | None = None,
        importances: Sequence[str] = (),
    ) -> Document:
        """Everything that is measured of one text; importances beyond the first two only if asked for."""
        with self._working(model) as opened:
            begun = time.perf_counter()
            read = opened.read(Typed(text, query, _place(layer, head)))
            epsilon = epsilon or MAIN[query is not None]
            document = _answered(read, epsilon, [GRADIENT, LEFT_OUT, *importances], opened.note())
            return document | {"model": model, "seconds": round(time.perf_counter() - begun, 4)}

    def decide(
        self,
        *,
        model: str,
        text: str,
        query: str | None,
        weights: Sequence[float],
        renormalise: bool,
        layer: int | None = None,
        head: int | None = None,
    ) -> Document:
        """The decision about the same text under other weights, as they are or divided by their sum."""
        with self._working(model) as opened, torch.no_grad():
            read = opened.read(Typed(text, query, _place(layer, head)))
            asked, reading = read.model, read.reading
            given = _given(weights, reading, renormalise)
            own, other = (distribution(asked.decide(reading, each)) for each in (None, given))
            mass = float(given.double().sum())
            far = float(jensen_shannon(given.double(), reading.weights.double())[0])
            return {
                "labels": list(asked.labels),
                "probabilities": _numbers(other[0]),
                "predicted": asked.labels[int(other[0].argmax())],
                "weights": _numbers(given[0]),
                "mass": mass,
                "output_change": finite(float(total_variation(own, other)[0])),
                # Between things of different mass there is no such divergence.
                "divergence": finite(far) if math.isclose(mass, 1.0, abs_tol=1e-4) else None,
            }

    @contextmanager
    def _working(self, key: str) -> Iterator[LoadedModel]:
        """The model, with nobody else at it."""
        opened = self._held.get(key) or self._open(key)
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
            opened = self._opened.setdefault(key, stored_model(self.store, key))
            self._opened.move_to_end(key)
            while len(self._opened) > MODELS:
                self._opened.popitem(last=False)
        return opened


def _place(layer: int | None, head: int | None) -> Place | None:
    """Which row is asked about; a head alone is one of the last layer."""
    return None if layer is None and head is None else (-1 if layer is None else layer, head)


def _answered(read: ReadText, epsilon: float, names: Sequence[str], note: str) -> Document:
    """The view of the text as the page has it: units and their numbers, side by side."""
    patient, not_left = _patience(read)
    asked = tuple(dict.fromkeys(name for name in names if patient or name == GRADIENT))
    settings = Settings(importances=asked, epsilon=epsilon, nulls=0, steps=STEPS, heads=_few_rows(read))
    view = measured(read, settings, name="", notes=[note, not_left])
    document: Document = finite(view.to_dict())
    prediction, places = document["prediction"], read.model.capabilities.every_row
    return {
        "labels": list(prediction["probabilities"]),
        "probabilities": list(prediction["probabilities"].values()),
        "predicted": prediction["label"],
        "units": list(view.tokens),
        "known": _known(read),
        "attention_of": view.attention_of,
        "weights": document["attention"],
        "gradient": document["importances"][GRADIENT]["magnitude"],
        "leave_one_out": document["importances"].get(LEFT_OUT, {}).get("magnitude"),
        "importances": {
            name: {field: one[field] for field in ("scores", "label", "convergence_delta")}
            for name, one in document["importances"].items()
        },
        "epsilon": epsilon,
        "adversary": document["adversary"]
        and {
            field: document["adversary"][field]
            for field in ("weights", "divergence", "output_change", "exact", "bound", "null")
        },
        "permuted": document["permuted"]
        and {field: document["permuted"][field] for field in ("median_change", "low", "high", "flips")},
        "smallest_flip": document["smallest_flip"],
        "heads": None if view.heads is None else view.heads.round(4).tolist(),
        "layer": None if places is None else places.layer,
        "head": None if places is None else places.head,
        "notes": [
            *view.notes,
            *dict.fromkeys(view.left_out.values()),
            *_about_adversary(view, read.reading),
        ],
    }


def _few_rows(read: ReadText) -> bool:
    """Whether the rows of all heads are few enough to be sent; they are some twelve times twelve a unit."""
    return len(read.tokens) * 144 <= MOST_ROWS


def _patience(read: ReadText) -> tuple[bool, str]:
    """Whether so many shortened texts may be read, or why that was not done."""
    tokens, most = int(read.reading.batch.mask.sum()), PATIENCE[fastest(read.model)]
    if tokens <= most:
        return True, ""
    said = f"Leave-one-out would read {tokens} shortened texts; it is done for up to {most} words."
    return False, said


def _known(read: ReadText) -> list[bool]:
    """Whether all words of each unit are in the model's vocabulary; sub-words always are."""
    network = read.model.network
    if network is None:
        return [True] * len(read.tokens)
    known = network.vocabulary.numbers(read.example.tokens) != UNK
    return [bool(known[unit].all()) for unit in units_of(read.model, read.example)]


def _about_adversary(view: TextView, reading: Reading) -> list[str]:
    """What an adversary that is not the proven furthest is."""
    if view.adversary is None or view.adversary.exact:
        return []
    why = (
        "Of several classes" if reading.values is not None else "This decision is not affine in its weights:"
    )
    return [f"{why} the adversary is the best that was found; the bound says what none exceeds."]


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


def _numbers(vector: Tensor) -> list[float | None]:
    numbers: list[float | None] = finite(vector.tolist())
    return numbers
