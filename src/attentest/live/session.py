"""A model of the store and the texts that somebody types: they become tokens as those of its corpus did."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import groupby
from typing import final

import torch

from attentest.bench.subjects import load_model
from attentest.corpus.document import Document
from attentest.corpus.example import Example
from attentest.corpus.preparation import Preparation, prepare_one
from attentest.model.batch import Batch, IndexedSplit, sentence_numbers
from attentest.model.networks.hierarchy import Hierarchical
from attentest.model.seam import Network, Reading, network_of
from attentest.refusal import Refusal
from attentest.store.store import Store

LONGEST = 2_000  # tokens: the exact adversary compares all pairs of them
READINGS = 16  # of each model, the texts that were read last


@final
@dataclass(eq=False)
class LoadedModel:
    """One model in memory. Its lock is held while it works: gradients change flags of its parameters."""

    store: Store
    key: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    readings: OrderedDict[tuple[str, str | None], Reading] = field(default_factory=OrderedDict)

    @cached_property
    def model(self) -> Network:
        """The model, loaded when it is first asked."""
        return network_of(load_model(self.store, self.key, "cpu"), "texts that are typed")

    @cached_property
    def preparation(self) -> Preparation | None:
        """How the texts of its corpus became tokens; None where the store does not hold the corpus."""
        corpus = self.store.cell(self.key).inputs["corpus"]
        if not self.store.holds(corpus, "corpus.json"):
            return None
        record = json.loads(self.store.read(corpus, "corpus.json"))["preparation"]
        known = {each.name for each in fields(Preparation)}
        # Somebody who types a text wants it read, however long the texts of the corpus had to be.
        any_length = {"longer_than": None, "shorter_than": None}
        return Preparation(**{name: value for name, value in record.items() if name in known} | any_length)

    def example(self, text: str, query: str | None) -> Example:
        """The text as its corpus would have it; refused where the model could not read it."""
        _check_query(self.model, query)
        _check_words("the text", text)
        if query is not None:
            _check_words("the query", query)
        document = Document(id="typed", text=text, query=query, label=self.model.labels[0])
        example = prepare_one(document, self.preparation or Preparation())
        _check_length("the text", len(example.tokens))
        _check_length("the query", len(example.query or ()))
        return example

    def batch(self, example: Example) -> Batch:
        """The text alone."""
        return IndexedSplit([example], self.model.vocabulary, self.model.labels).batch([0])

    def reading(self, text: str, query: str | None) -> Reading:
        """The text as it was read last; somebody who drags a weight asks about one text many times."""
        found = self.readings.get((text, query))
        if found is None:
            with torch.no_grad():
                found = self.model.read(self.batch(self.example(text, query)))
            self.remember(text, query, found)
        return found

    def remember(self, text: str, query: str | None, reading: Reading) -> None:
        """Keep the reading, and forget the oldest."""
        self.readings[text, query] = reading
        self.readings.move_to_end((text, query))
        while len(self.readings) > READINGS:
            self.readings.popitem(last=False)


def units_of(model: Network, example: Example) -> list[list[int]]:
    """The places of the words that each unit of attention is made of."""
    places = list(range(len(example.tokens)))
    if isinstance(model.encoder, Hierarchical):
        numbers = sentence_numbers(example)
        return [list(group) for _, group in groupby(places, key=lambda place: numbers[place])]
    return [places] if model.attention is None else [[place] for place in places]


def _check_words(what: str, words: str) -> None:
    if not words.strip():
        raise Refusal(what, got="no words", needs="at least one", way_out="Type something.")


def _check_length(what: str, tokens: int) -> None:
    if tokens > LONGEST:
        raise Refusal(
            what,
            got=f"{tokens:,} words",
            needs=f"at most {LONGEST:,}",
            way_out="Take a part of it, or put it into a corpus and run a study.",
        )


def _check_query(model: Network, query: str | None) -> None:
    if (query is not None) == (model.query_encoder is not None):
        return
    asked = model.query_encoder is not None
    raise Refusal(
        "the query",
        got="none" if asked else "one",
        needs="a question, as the model was trained with"
        if asked
        else "none: this model answers no question",
        way_out="Type one." if asked else "Leave it out.",
    )
