"""A model and the texts that somebody types: they become tokens as those of its corpus did."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import final

from attentest.auditing.subject import audited_subject, on_the_bench
from attentest.bench.subjects import load_model
from attentest.corpus.document import Document
from attentest.corpus.example import UNLABELLED, Example
from attentest.corpus.preparation import Preparation, as_given, prepare_one
from attentest.foreign.prompt import split_at
from attentest.inspection.measure import ReadText
from attentest.model.seam import Model, network_of
from attentest.refusal import Refusal
from attentest.store.store import Store

LONGEST = 2_000  # tokens: the exact adversary compares all pairs of them
READINGS = 16  # of each model, the texts that were read last
PLACES = 64  # rows of a transformer that stay ready

Place = tuple[int, int | None]  # a layer, and a head or the mean over heads


@final
@dataclass(frozen=True)
class Typed:
    """What was typed, and which row of a transformer is to be looked at; None is the model's own."""

    text: str
    query: str | None = None
    place: Place | None = None


@final
@dataclass(eq=False)
class LoadedModel:
    """One model in memory. Its lock is held while it works: gradients change flags of its parameters."""

    load: Callable[[], Model]
    prepared: Callable[[Document], Example]
    note: Callable[[], str] = lambda: ""  # what a reader must know of how texts are prepared
    lock: threading.Lock = field(default_factory=threading.Lock)
    readings: OrderedDict[Typed, ReadText] = field(default_factory=OrderedDict)
    rows: OrderedDict[Place | None, Model] = field(default_factory=OrderedDict)

    @cached_property
    def model(self) -> Model:
        """The model, loaded when it is first asked."""
        return self.load()

    def at(self, place: Place | None) -> Model:
        """The model with one weight a unit: its own attention, or the row at another place."""
        if place not in self.rows:
            self.rows[place] = on_the_bench(self.model if place is None else self._placed(*place))
            while len(self.rows) > PLACES:
                self.rows.popitem(last=False)
        return self.rows[place]

    def _placed(self, layer: int, head: int | None) -> Model:
        layered = self.model.capabilities.layered
        if layered is None:
            raise Refusal(
                f"layer {layer}",
                got="a model with one attention",
                needs="a transformer, of which a layer and a head can be chosen",
                way_out="Leave layer and head out.",
            )
        return layered.placed(layer, head)

    def example(self, typed: Typed) -> Example:
        """The text as its corpus would have it; refused where the model could not read it."""
        _check_words("the text", typed.text)
        if typed.query is not None:
            _check_words("the query", typed.query)
        example = self.prepared(Document(id="typed", text=typed.text, query=typed.query, label=UNLABELLED))
        _check_length("the text", len(example.tokens))
        _check_length("the query", len(example.query or ()))
        return example

    def read(self, typed: Typed) -> ReadText:
        """The text as it was read last; somebody who drags a weight asks about one text many times."""
        found = self.readings.get(typed)
        if found is None:
            bench = self.at(typed.place)
            found = ReadText.of(bench, audited_subject(bench, [self.example(typed)]).texts)
        self.readings[typed] = found
        self.readings.move_to_end(typed)
        while len(self.readings) > READINGS:
            self.readings.popitem(last=False)
        return found


def stored_model(store: Store, key: str) -> LoadedModel:
    """A model of a store, whose texts are prepared as those of its corpus were."""
    return LoadedModel(
        lambda: network_of(load_model(store, key, "cpu"), "texts that are typed"),
        lambda document: prepare_one(document, _preparation(store, key) or Preparation()),
        lambda: "" if _preparation(store, key) else NO_CORPUS,
    )


def given_model(model: Model, *, lower: bool = False, mark: str | None = None) -> LoadedModel:
    """A model that was loaded from elsewhere: it reads what is typed as an audit has it read."""

    def as_audited(document: Document) -> Example:
        example = as_given(document, Preparation(keep_sentences=True, lower=lower))
        return example if mark is None else split_at(example, mark)

    return LoadedModel(lambda: model, as_audited)


NO_CORPUS = "The store does not hold the corpus; the text was split into words in the usual way."


def _preparation(store: Store, key: str) -> Preparation | None:
    """How the texts of its corpus became tokens; None where the store does not hold the corpus."""
    corpus = store.cell(key).inputs["corpus"]
    if not store.holds(corpus, "corpus.json"):
        return None
    record = json.loads(store.read(corpus, "corpus.json"))["preparation"]
    known = {each.name for each in fields(Preparation)}
    # Somebody who types a text wants it read, however long the texts of the corpus had to be.
    any_length = {"longer_than": None, "shorter_than": None}
    return Preparation(**{name: value for name, value in record.items() if name in known} | any_length)


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
