"""Whoever is audited, as the experiments know a subject: a model, its texts, and its untrained twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from attentest.corpus.example import Example
from attentest.corpus.vocabulary import Vocabulary
from attentest.evidence.erasure.known import KnownParts
from attentest.experiments.contract import InMemory, Subject
from attentest.foreign.views import mean_over_heads
from attentest.model.batch import AbstractSplit
from attentest.model.seam import Model
from attentest.refusal import Refusal

SEED = 0  # of the twin's parameters
ALIKE = 16  # texts of a model made elsewhere that a CPU reads together: with more, much would be padding


def audited_subject(model: Model, examples: Sequence[Example], ranked: int | None = None) -> Subject:
    """A model that came as an object, with the texts it is asked about; nothing of it is in a store."""
    network = model.network
    known = examples if network is None else _cased(examples, network.vocabulary)
    texts = model.split(known)
    texts.held = {}
    if network is None and model.device.type == "cpu":
        texts.alike = ALIKE
    return subject_of(model, texts, ranked=None if network is not None else ranked)


def subject_of(
    model: Model, texts: AbstractSplit, name: str = "trained", *, ranked: int | None = None
) -> Subject:
    """A model before texts that are numbered already: a twin reads what the model itself reads."""
    return Subject(None, None, InMemory({name: model}), name, texts=texts, known=KnownParts(), ranked=ranked)


def _cased(examples: Sequence[Example], vocabulary: Vocabulary) -> Sequence[Example]:
    """The examples lower-cased where the vocabulary has no capital letter: such a model was trained on texts
    that were lower-cased, and knows no other word.
    """
    if not vocabulary.lower_cased:
        return examples
    return [
        replace(
            example,
            tokens=tuple(map(str.lower, example.tokens)),
            query=None if example.query is None else tuple(map(str.lower, example.query)),
        )
        for example in examples
    ]


def on_the_bench(model: Model) -> Model:
    """The model with one weight a unit; heads together are looked at as their mean."""
    network = model.network
    if network is not None and (network.config.omit or network.projection.name == "stored"):
        raise Refusal(
            "a model to be audited",
            got="one that omits words, or whose attention is stored for the texts of its corpus",
            needs="a model that reads any text",
            way_out="Ask about such a model in a study.",
        )
    return mean_over_heads(model)


def untrained(model: Model) -> Model | None:
    """The same model before it learnt anything, or None where nobody knows how to make one."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return model.drawn_anew()
