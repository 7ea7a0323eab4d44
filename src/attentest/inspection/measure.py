"""One text, measured: from a model and an example to a `TextView`, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeVar, final

import numpy as np
import torch
from jaxtyping import Float

from attentest.corpus.example import Example
from attentest.corpus.raw_text import query_text, text_and_spans
from attentest.corpus.vocabulary import UNK
from attentest.evidence.importances.catalogue import Effort, attention_of
from attentest.evidence.importances.gradient import Gradients, gradients
from attentest.evidence.importances.names import BY_CAPTUM, IMPORTANCES
from attentest.evidence.removal.decisions import explained_class
from attentest.inspection import evidence
from attentest.inspection.evidence import Missing
from attentest.inspection.importances import Asked, importances
from attentest.inspection.records import Prediction
from attentest.inspection.view import TextView
from attentest.model.batch import AbstractSplit, sentence_numbers
from attentest.model.networks.decoder import distribution
from attentest.model.networks.hierarchy import Hierarchical
from attentest.model.seam import EveryRow, Model, Reading
from attentest.refusal import Refusal, look_up

Record = TypeVar("Record")
NAMED = 5  # unknown words that are named
TOLERANCES = 0.01, 0.05  # of the output: of single texts, and of texts with a second one (Jain & Wallace)


@final
@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is asked of a text, and how much may be asked of the model for it."""

    importances: tuple[str, ...]
    epsilon: float | None = None  # None: the paper's, 0.01, with a second text 0.05
    permutations: int = 100
    nulls: int = 20  # permutations under which importances are computed again; 0 leaves agreement out
    steps: int = 300  # of a search for an adversary
    effort: Effort = field(default_factory=Effort)
    seed: int = 0
    heads: bool = True

    def __post_init__(self) -> None:
        for name in self.importances:
            look_up(name, IMPORTANCES | BY_CAPTUM, "importance")
        for name, least in (("permutations", 1), ("nulls", 0), ("steps", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise Refusal(
                    f"{name}={getattr(self, name)}",
                    got=f"{getattr(self, name)}",
                    needs=f"a number of at least {least}",
                    way_out="Leave it out for the default.",
                )
        if self.epsilon is not None and not 0 < self.epsilon <= 1:
            raise Refusal(
                f"epsilon={self.epsilon}",
                got=f"{self.epsilon}",
                needs="a number above 0 and at most 1: how much an adversary may change the output",
                way_out="Leave it out: 0.01, with a second text 0.05.",
            )


@final
@dataclass(frozen=True, eq=False)
class ReadText:
    """One text in a model: what attention weighs in it by name, and its reading."""

    model: Model  # with one weight a unit
    example: Example
    tokens: tuple[str, ...]
    reading: Reading
    answering: Model  # who answers for changed texts, and for the gradient: the model with its heads
    found: Gradients

    @classmethod
    def of(cls, model: Model, split: AbstractSplit) -> ReadText:
        """Read the one text of a split; a model whose map cannot be given back has another that answers."""
        _check_query(model, split.examples[0])
        answered_by = model.capabilities.answered_by
        answering = model.with_heads if answered_by is None else answered_by.model
        batch = split.batch([0]).to(model.device)
        found = gradients(answering, batch)
        with torch.no_grad():
            reading = found.reading if answering is model else model.read(batch).detached()
        return cls(model, split.examples[0], unit_names(model, split), reading, answering, found)


def unit_names(model: Model, split: AbstractSplit) -> tuple[str, ...]:
    """What attention weighs in the first text of a split: words, sentences, or the whole text."""
    if model.network is None:
        return split.unit_texts(0)
    example = split.examples[0]
    return tuple(" ".join(example.tokens[place] for place in unit) for unit in units_of(model, example))


def units_of(model: Model, example: Example) -> list[list[int]]:
    """The places of the words that each unit of attention of one of our own models is made of."""
    network, places = model.network, list(range(len(example.tokens)))
    if network is not None and isinstance(network.encoder, Hierarchical):
        numbers = sentence_numbers(example)
        return [list(group) for _, group in groupby(places, key=lambda place: numbers[place])]
    return [places] if network is not None and network.attention is None else [[place] for place in places]


def about_units(model: Model, tokens: Sequence[str]) -> str:
    """What a reader must know of the units of one of our own models; empty where they are words."""
    network = model.network
    if network is not None and isinstance(network.encoder, Hierarchical):
        return "This model attends to sentences: each has one weight."
    if network is not None and network.attention is None:
        return "This model reads its last state alone: the whole text is one unit, and its weight is 1."
    return "A text of one word leaves nothing to leave out." if len(tokens) == 1 else ""


def about_words(model: Model, words: Sequence[str]) -> str:
    """Which words one of our own models reads as unknown; empty where it knows them all."""
    network = model.network
    if network is None:
        return ""
    known = (network.vocabulary.numbers(words) != UNK).tolist()
    strange = list(dict.fromkeys(word for word, there in zip(words, known, strict=True) if not there))
    if not strange:
        return ""
    named = ", ".join(word[:40] for word in strange[:NAMED]) + (", …" if len(strange) > NAMED else "")
    count = len(known) - sum(known)
    said = f"{count} of {len(known)} words are unknown to the model"
    return f"{said}, which reads all of them as one word: {named}."


def _check_query(model: Model, example: Example) -> None:
    """One of our own models was trained with a second text or without one."""
    network = model.network
    if network is None or (example.query is not None) == (network.query_encoder is not None):
        return
    asked = network.query_encoder is not None
    raise Refusal(
        "the query",
        got="none" if asked else "one",
        needs="a question, as the model was trained with"
        if asked
        else "none: this model answers no question",
        way_out="Type one." if asked else "Leave it out.",
    )


def measured(read: ReadText, settings: Settings, *, name: str, notes: Sequence[str] = ()) -> TextView:
    """Every measurement that was asked for; what cannot be had is left out, with the reason."""
    model, reading, example = read.model, read.reading, read.example
    left_out: dict[str, str] = {}
    epsilon = settings.epsilon or TOLERANCES[example.query is not None]

    def draws(number: int) -> torch.Generator:
        return torch.Generator().manual_seed(settings.seed * 1000 + number)

    def attempted(what: str, ask: Callable[[], Record], *, gives: bool = True) -> Record | None:
        try:
            if gives:
                _check_given(model, what)
            return ask()
        except Missing as missing:
            left_out[what] = missing.why
        except Refusal as refusal:
            left_out[what] = str(refusal)
        return None

    asked = Asked(
        read.answering, read.found, attention_of(reading), settings.nulls, settings.effort, draws(0)
    )
    own = about_words(model, example.tokens), about_units(model, read.tokens)
    rows = model.capabilities.every_row if settings.heads else None
    return TextView(
        model=name,
        attention_of=model.capabilities.attention,
        text=text_and_spans(example)[0],
        query=query_text(example),
        tokens=read.tokens,
        prediction=_prediction(model, reading),
        attention=attention_of(reading)[0].double().cpu().numpy(),
        importances=importances(asked, settings.importances, read.tokens),
        permuted=attempted(
            "permuted", lambda: evidence.permuted(model, reading, settings.permutations, draws(1))
        ),
        adversary=attempted(
            "adversary",
            lambda: evidence.adversary(model, reading, epsilon, steps=settings.steps, rng=draws(2)),
        ),
        smallest_flip=attempted("smallest_flip", lambda: evidence.flip(model, reading, read.tokens)),
        heads=None if rows is None else attempted("heads", lambda: _heads(rows, reading), gives=False),
        place=None if rows is None else (rows.layer, rows.head),
        left_out=left_out,
        notes=tuple(note for note in (*own, *notes) if note),
        settings=_spelled(settings, epsilon),
    )


def _heads(rows: EveryRow, reading: Reading) -> Float[np.ndarray, "layer head unit"]:
    found: Float[np.ndarray, "layer head unit"] = rows.rows(reading.batch)[:, 0].double().cpu().numpy()
    return found


def _check_given(model: Model, what: str) -> None:
    """A map that is made of several attentions cannot be given to the model."""
    answered_by = model.capabilities.answered_by
    if answered_by is not None:
        raise answered_by.refuses(what)


@torch.no_grad()
def _prediction(model: Model, reading: Reading) -> Prediction:
    both = distribution(model.decide(reading)).double().cpu()
    output, best = both[0].tolist(), int(explained_class(reading.detached(), both)[0])
    chances = dict(zip(model.labels, output, strict=True))
    return Prediction(model.labels[best], output[best], chances)


def _spelled(settings: Settings, epsilon: float) -> dict[str, Any]:
    effort = {name: getattr(settings.effort, name) for name in ("steps", "permutations", "samples")}
    kept = {name: getattr(settings, name) for name in ("permutations", "nulls", "steps", "seed")}
    return {"epsilon": epsilon, **kept, "effort": effort}
