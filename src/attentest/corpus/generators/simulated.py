"""bAbI tasks 1 to 3 without the files: a small world of our own that tells stories as the original does.

What the original's stories look like was measured, not copied (Weston et al., 2015, the en-10k files): events
come in pairs, after each pair a question is asked if one is possible, and five questions end a story. The
constants and rules below are all that was measured; lengths, distances and shares follow from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import NamedTuple, final

import numpy as np

from attentest.corpus.document import Document
from attentest.corpus.example import SPLITS, Split
from attentest.refusal import Refusal

PEOPLE = ("daniel", "john", "mary", "sandra")
PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
OBJECTS = ("apple", "football", "milk")
VERBS = {
    "go": (("journeyed",), ("moved",), ("travelled",), ("went",), ("went", "back")),
    "take": (("got",), ("grabbed",), ("picked", "up"), ("took",)),
    "drop": (("discarded",), ("dropped",), ("left",), ("put", "down")),
}
QUESTIONS_PER_STORY = 5
RECENT = 5  # a question is about something that occurred in the last five events, never about older ones
# In task 3 a place one move further back is asked for less often; fitted to the 1,175 questions that had a
# choice (log-likelihood -1059, against -1091 for an even choice).
FURTHER_BACK = 1.3


@final
@dataclass(frozen=True, kw_only=True)
class Task:
    """What distinguishes one task's stories: which events occur and how often they end in "there"."""

    number: int
    kinds: tuple[str, ...]
    there: dict[str, float]


TASKS = {
    1: Task(number=1, kinds=("go",), there={"go": 0.0}),
    2: Task(number=2, kinds=("go", "take", "drop"), there={"go": 0.0, "take": 1.0, "drop": 0.2}),
    3: Task(number=3, kinds=("go", "take", "drop"), there={"go": 0.0, "take": 0.2, "drop": 0.2}),
}


class Throw(NamedTuple):
    """An attempt at an event: who does what, where to, and three numbers that settle the rest."""

    person: str
    kind: str
    place: str
    thing: float
    verb: float
    there: float


class Event(NamedTuple):
    """Someone goes to a place, or takes or drops an object."""

    person: str
    kind: str
    thing: str


class Question(NamedTuple):
    """A question, its answer and the numbers of the events that prove it."""

    words: tuple[str, ...]
    answer: str
    support: tuple[int, ...]


@final
class Dice:
    """Throws and plain numbers in [0, 1) without end, drawn in blocks because single draws are slow."""

    def __init__(self, task: Task, rng: np.random.Generator) -> None:
        self.throws = self._throws(task, rng)
        self.numbers = (number for _ in count() for number in rng.random(1024).tolist())

    def _throws(self, task: Task, rng: np.random.Generator) -> Iterator[Throw]:
        while True:
            evenly = (rng.choice(options, 1024).tolist() for options in (PEOPLE, task.kinds, PLACES))
            yield from map(Throw, *evenly, *rng.random((3, 1024)).tolist())


@final
@dataclass
class Carried:
    """What was told of an object: who took or dropped it last, and the moves that can place it."""

    event: int
    holder: str | None
    moves: list[int] = field(default_factory=list)  # made with the object in hand since it was last taken
    dropped_after: int | None = None  # the last move of whoever dropped it, if one was told


@final
class Story:
    """A story under way: the world, what was told of it, and what a listener may conclude."""

    def __init__(self, task: Task, dice: Dice) -> None:
        self.task, self.dice = task, dice
        # Everybody and everything begins somewhere, which the story does not tell. Held objects are nowhere.
        begin = {each: PLACES[int(next(dice.numbers) * len(PLACES))] for each in PEOPLE + OBJECTS}
        self.at: dict[str, str | None] = {**begin}
        self.events: list[Event] = []
        self.tokens: list[str] = []
        self.starts: list[int] = []
        self.last_move: dict[str, int] = {}
        self.carried: dict[str, Carried] = {}

    def tell(self) -> None:
        """Let one more event happen.

        Person, kind and place are thrown together, and again if impossible, so a person who can do more is
        heard of more often: that is how the original's shares of taking and dropping come about.
        """
        for throw in self.dice.throws:
            things = self._things(throw)
            if things:
                break
        event = Event(throw.person, throw.kind, things[int(throw.thing * len(things))])
        self._happen(event)
        self.events.append(event)
        self.starts.append(len(self.tokens))
        verbs = VERBS[event.kind]
        self.tokens += event.person, *verbs[int(throw.verb * len(verbs))]
        self.tokens += ("to", "the", event.thing) if event.kind == "go" else ("the", event.thing)
        self.tokens += ("there", ".") if throw.there < self.task.there[event.kind] else (".",)

    def _things(self, throw: Throw) -> list[str]:
        here = self.at[throw.person]
        if throw.kind == "go":
            return [throw.place] if throw.place != here else []
        if throw.kind == "take":
            return [thing for thing in OBJECTS if self.at[thing] == here]
        return [thing for thing, carried in self.carried.items() if carried.holder == throw.person]

    def _happen(self, event: Event) -> None:
        number = len(self.events)
        if event.kind == "go":
            self.at[event.person] = event.thing
            self.last_move[event.person] = number
            for carried in self.carried.values():
                if carried.holder == event.person:
                    carried.moves.append(number)
        elif event.kind == "take":
            self.at[event.thing] = None
            self.carried[event.thing] = Carried(number, event.person)
        else:
            self.at[event.thing] = self.at[event.person]
            carried = self.carried[event.thing]
            carried.event, carried.holder = number, None
            carried.dropped_after = self.last_move.get(event.person)

    def ask(self) -> Question | None:
        """A question about one of the last events, or None while the listener could answer none."""
        # Events are drawn, not people or objects: who is heard of twice is asked for twice as often.
        for event in sorted(self.events[-RECENT:], key=lambda _: next(self.dice.numbers)):
            question = self._question(event)
            if question:
                return question
        return None

    def _question(self, event: Event) -> Question | None:
        if self.task.number == 1:
            return self._where_is_person(event.person)
        if event.kind == "go":
            return None
        carried = self.carried[event.thing]
        if self.task.number == 2:
            return self._where_is(event.thing, carried)
        return self._where_was(event.thing, carried)

    def _where_is_person(self, person: str) -> Question:
        move = self.last_move[person]
        return Question(("where", "is", person, "?"), self.events[move].thing, (move,))

    def _where_is(self, thing: str, carried: Carried) -> Question | None:
        """Two facts. A held object must have been moved since it was taken, as in the original."""
        move = carried.dropped_after
        if carried.holder:
            move = carried.moves[-1] if carried.moves else None
        if move is None:
            return None
        words = ("where", "is", "the", thing, "?")
        return Question(words, self.events[move].thing, (carried.event, move))

    def _where_was(self, thing: str, carried: Carried) -> Question | None:
        """Three facts: the last taking or dropping, a move with the object in hand, and the move before it.

        "Before the kitchen" means before the last visit to the kitchen, and both moves belong to the way
        the object went in its last carrier's hands: neither where it was taken nor any earlier way counts.
        """
        way = [self.events[move].thing for move in carried.moves]
        last_visits = [step for step in range(1, len(way)) if way[step] not in way[step + 1 :]]
        if not last_visits:
            return None
        step = self._recent(last_visits)
        words = ("where", "was", "the", thing, "before", "the", way[step], "?")
        return Question(words, way[step - 1], (carried.event, carried.moves[step], carried.moves[step - 1]))

    def _recent(self, steps: list[int]) -> int:
        odds = np.cumsum([FURTHER_BACK**step for step in steps])
        return steps[int(np.searchsorted(odds, next(self.dice.numbers) * odds[-1], side="right"))]

    def document(self, identity: str, split: Split, question: Question) -> Document:
        """The story so far with its question; the tokens of the proving sentences are the rationale."""
        ends = [*self.starts[1:], len(self.tokens)]
        proof = (range(self.starts[number], ends[number]) for number in sorted(question.support))
        return Document(
            id=identity,
            text=tuple(self.tokens),
            label=question.answer,
            split=split,
            query=question.words,
            rationale=tuple(position for sentence in proof for position in sentence),
            sentences=tuple(self.starts),
        )


def stories(task: int, *, train: int = 10_000, test: int = 1_000, seed: int = 0) -> Iterator[Document]:
    """Questions of a bAbI task with the story that precedes each, train first, then test.

    Each split has its own stream of numbers, so that one does not change with the size of the other.
    An id is split, story and question, both counted from 1 as the reader of the published files does.
    """
    _check(task in TASKS, "task", got=task, needs="1, 2 or 3")
    _check(train > 0, "train questions", got=train, needs="at least 1")
    _check(test > 0, "test questions", got=test, needs="at least 1")
    _check(seed >= 0, "seed", got=seed, needs="0 or more")
    sizes: dict[Split, int] = {"train": train, "test": test}
    return (
        document
        for split, size in sizes.items()
        for document in islice(_documents(TASKS[task], split, seed), size)
    )


def _check(allowed: bool, what: str, *, got: int, needs: str) -> None:
    if not allowed:
        raise Refusal(f"simulated bAbI, {what}", got=str(got), needs=needs, way_out="Change that number.")


def _documents(task: Task, split: Split, seed: int) -> Iterator[Document]:
    dice = Dice(task, np.random.default_rng([seed, task.number, SPLITS.index(split)]))
    for number in count(1):
        story, asked = Story(task, dice), 0
        while asked < QUESTIONS_PER_STORY:
            story.tell()
            story.tell()
            question = story.ask()
            if question:
                asked += 1
                yield story.document(f"{split}-{number:06d}-{asked}", split, question)
