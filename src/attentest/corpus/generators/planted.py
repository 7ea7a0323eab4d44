"""Corpora whose decisive tokens are known because we put them there.

Everything else in a text is drawn without looking at the label, so a token outside the rationale can carry no
information: an explanation that points there is wrong, and here that can be counted.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, final

import numpy as np

from attentest.corpus.document import Document
from attentest.corpus.example import SPLITS, Split
from attentest.refusal import Refusal, look_up

CUES = {"negative": ("awful", "bad", "poor"), "positive": ("fine", "good", "great")}
NEGATOR = "not"
KEYS = ("kate", "keith", "kelly", "ken", "kim", "kurt", "kyle", "kyra")
VALUES = ("blue", "green", "red", "yellow")


@final
@dataclass(frozen=True, kw_only=True)
class Planting:
    """How a corpus is planted; whatever cannot be planted so is refused at once."""

    rule: str
    balance: float = 0.5  # share of texts whose label is the last in alphabetical order; the others are even
    mean_length: int = 20
    noise_words: int = 200
    cue_strength: float = 1.0  # probability that the cues speak for the label, not for another one
    cue_rate: float = 0.0  # probability of a further cue where there is room, beyond those the rule needs
    negation: float = 0.0  # probability that a cue is negated, and so is a cue for the other label
    train: int = 2000
    dev: int = 400
    test: int = 400
    seed: int = 0

    def __post_init__(self) -> None:
        rule = look_up(self.rule, RULES, "planting rule")
        self._demand("balance", 0 < self.balance < 1, "a number strictly between 0 and 1")
        for name in ("cue_strength", "cue_rate", "negation"):
            self._demand(name, 0 <= getattr(self, name) <= 1, "a probability, from 0 to 1")
        for name in ("noise_words", "train", "dev", "test"):
            self._demand(name, getattr(self, name) >= 1, "at least 1")
        self._demand("seed", self.seed >= 0, "0 or more")
        self._demand("negation", rule.negatable or not self.negation, f"0, for {self.rule} has no negator")
        needs = self.room * rule.cues
        self._demand("mean_length", self.mean_length >= needs, f"at least {needs} tokens, for its cues")

    def _demand(self, name: str, met: bool, needs: str) -> None:
        if not met:
            raise Refusal(
                f"planted corpus, {name}",
                got=str(getattr(self, name)),
                needs=needs,
                way_out="Change that parameter.",
            )

    @property
    def room(self) -> int:
        """The most tokens that one cue can need, a negator included."""
        return RULES[self.rule].room + (self.negation > 0)


@final
@dataclass(frozen=True)
class Planted:
    """A word of a text that is not free noise: None is a noise word that only keeps its neighbours apart."""

    word: str | None
    decides: bool = True


Unit = tuple[Planted, ...]  # stays together; between units there may be noise
Sowing = tuple[list[Unit], tuple[str, ...] | None]  # the units in order, and the query if the rule has one


@final
@dataclass(frozen=True, kw_only=True)
class Rule:
    """What decides a label: `sow` makes the units that speak for a label, `cues` or more of them."""

    labels: tuple[str, ...]
    cues: int
    room: int
    negatable: bool
    sow: Callable[[str, int, Planting, np.random.Generator], Sowing]


def _cue(label: str, planting: Planting, rng: np.random.Generator) -> Unit:
    """A cue that speaks for the label, by itself or by the negation of its opposite."""
    if rng.random() >= planting.negation:
        return (Planted(str(rng.choice(CUES[label]))),)
    return Planted(NEGATOR), Planted(str(rng.choice(CUES[_opposite(label)])))


def _opposite(label: str) -> str:
    return next(other for other in CUES if other != label)


def _sow_keyword(label: str, cues: int, planting: Planting, rng: np.random.Generator) -> Sowing:
    return [_cue(label, planting, rng) for _ in range(cues)], None


def _sow_majority(label: str, cues: int, planting: Planting, rng: np.random.Generator) -> Sowing:
    odd = cues - (cues + 1) % 2  # an even number could tie
    agreeing = int(rng.integers(odd // 2 + 1, odd + 1))
    votes = [label] * agreeing + [_opposite(label)] * (odd - agreeing)
    return [_cue(vote, planting, rng) for vote in rng.permutation(votes).tolist()], None


def _sow_keyvalue(label: str, cues: int, planting: Planting, rng: np.random.Generator) -> Sowing:
    """Each key is followed by its value before the next key comes, with at least one noise word between."""
    keys = rng.permutation(KEYS)[:cues].tolist()
    asked = str(rng.choice(keys))
    units: list[Unit] = []
    for key in keys:
        value = label if key == asked else str(rng.choice(VALUES))
        units += [
            (Planted(key, key == asked), Planted(None, False)),
            (Planted(value, key == asked),),
        ]
    return units, (asked,)


RULES = {
    "keyword": Rule(labels=tuple(CUES), cues=1, room=1, negatable=True, sow=_sow_keyword),
    "majority": Rule(labels=tuple(CUES), cues=3, room=1, negatable=True, sow=_sow_majority),
    "keyvalue": Rule(labels=VALUES, cues=3, room=3, negatable=False, sow=_sow_keyvalue),
}
PLANTINGS = {
    "planted-keyword": Planting(rule="keyword"),
    "planted-negation": Planting(rule="keyword", negation=0.5),
    "planted-majority": Planting(rule="majority", cue_rate=0.1),
    "planted-keyvalue": Planting(rule="keyvalue", balance=1 / len(VALUES), mean_length=30),
}


def planted(name: str, **changes: Any) -> Iterator[Document]:
    """The documents of a planted corpus, with any of its parameters changed; train, then dev, then test."""
    planting = look_up(name, PLANTINGS, "planted corpus")
    known = {field.name: field for field in fields(Planting) if field.name != "rule"}
    for parameter in changes:
        look_up(parameter, known, "parameter of a planted corpus")
    return documents(replace(planting, **changes))


def documents(planting: Planting) -> Iterator[Document]:
    """The documents of a planting.

    Each split has its own stream of numbers, so that one does not change with the size of another.
    """
    rule = zlib.crc32(planting.rule.encode())
    for number, split in enumerate(SPLITS):
        rng = np.random.default_rng([planting.seed, rule, number])
        for index, label in enumerate(_labels(planting, getattr(planting, split), rng)):
            yield _document(f"{split}-{index:06d}", split, label, planting, rng)


def _labels(planting: Planting, size: int, rng: np.random.Generator) -> list[str]:
    """As many of each label as the balance says, to within one, in random order."""
    *others, last = RULES[planting.rule].labels
    often = round(planting.balance * size)
    even = [others[index % len(others)] for index in range(size - often)]
    return [str(label) for label in rng.permutation([last] * often + even)]


def _document(
    identity: str, split: Split, label: str, planting: Planting, rng: np.random.Generator
) -> Document:
    rule, room = RULES[planting.rule], planting.room
    spare = int(rng.poisson(planting.mean_length - room * rule.cues))
    further = int(rng.binomial(spare // room, planting.cue_rate))
    # The label is drawn first and the cues may contradict it, so the balance holds at every cue strength;
    # cues that contradict are the rationale all the same, for nothing else in the text speaks of the label.
    others = [other for other in rule.labels if other != label]
    spoken_for = label if rng.random() < planting.cue_strength else str(rng.choice(others))
    units, query = rule.sow(spoken_for, rule.cues + further, planting, rng)
    text, rationale = _sprinkled(units, room * rule.cues + spare, planting, rng)
    return Document(
        id=identity,
        text=text,
        label=label,
        split=split,
        query=query,
        rationale=rationale,
    )


def _sprinkled(
    units: list[Unit], length: int, planting: Planting, rng: np.random.Generator
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """A text of noise with the units in their order, every arrangement equally likely, and what decides."""
    noise = iter(_noise(length, planting, rng))
    places = length - sum(map(len, units)) + len(units)
    chosen = set(rng.choice(places, size=len(units), replace=False).tolist())
    waiting, free = iter(units), (Planted(None, False),)
    text = [each for place in range(places) for each in (next(waiting) if place in chosen else free)]
    words = tuple(each.word or next(noise) for each in text)
    return words, tuple(position for position, each in enumerate(text) if each.decides)


def _noise(length: int, planting: Planting, rng: np.random.Generator) -> list[str]:
    shares = _zipf(planting.noise_words)
    width = max(3, len(str(planting.noise_words - 1)))
    return [f"w{rank:0{width}d}" for rank in rng.choice(len(shares), size=length, p=shares)]


@cache
def _zipf(words: int) -> np.ndarray:
    """Shares as uneven as those of natural words: each inversely proportional to its rank."""
    odds = 1 / np.arange(1, words + 1)
    return odds / odds.sum()
