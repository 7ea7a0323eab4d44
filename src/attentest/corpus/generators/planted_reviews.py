"""`planted-reviews`: English reviews of films and products whose labels follow from words that we planted.

`review_rule` says exactly how words make a label. Everything else in a review is drawn without looking at
the label: nouns, templates, neutral sentences, distractors, connectives, and which cues are negated. So a
word outside the rationale carries no information about the label, beyond what the cues say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar, final

import numpy as np

from attentest.corpus.document import Document
from attentest.corpus.example import SPLITS, Split
from attentest.corpus.generators.review_lexicon import (
    ADJECTIVE_CLAUSES,
    ADJECTIVES,
    CONNECTIVES,
    DOMAINS,
    MOST_CUES,
    PEOPLE,
    REPORTED_ADJECTIVE_CLAUSES,
    REPORTED_VERB_CLAUSES,
    SLOTS,
    STRONGEST,
    VERB_CLAUSES,
    VERBS,
    Domain,
)
from attentest.corpus.generators.review_rule import BORDERS, LABELS, label_of
from attentest.corpus.words import tokenise
from attentest.refusal import Refusal

Option = TypeVar("Option")
Clauses = tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]  # with adjectives, with verbs
OWN: Clauses = (ADJECTIVE_CLAUSES, VERB_CLAUSES)
REPORTED: Clauses = (REPORTED_ADJECTIVE_CLAUSES, REPORTED_VERB_CLAUSES)
MARK = re.compile(r"\[([^\]]*)\]")  # what decides, in a template
SLOT = re.compile(r"\{(\w+)\}")
STREAM = 21_000  # tells our random numbers from those of other generators with the same seed
ROOM = 7  # words of a clause, about
OPENING = 8  # words of the first sentence, about
VERB_SHARE = 0.25  # of the sentiment words; the others are adjectives
JOINED = 0.35  # share of clauses that share a sentence with the one before
LOUD = 0.1  # share of sentences that end with an exclamation mark


@final
@dataclass(frozen=True, kw_only=True)
class ReviewSettings:
    """The parameters of `planted-reviews`; values that no review can have are refused."""

    classes: int = 2
    cues: int = 3
    strength: int = STRONGEST
    negation: float = 0.2
    distractors: int = 1
    noise: float = 0.0
    length: int = 45
    domain: str = "both"
    train: int = 4000
    dev: int = 400
    test: int = 400
    seed: int = 0

    def __post_init__(self) -> None:
        self._demand("classes", self.classes in LABELS, "2 or 5")
        self._demand("cues", 1 <= self.cues <= MOST_CUES, f"a number from 1 to {MOST_CUES}")
        self._demand("strength", 1 <= self.strength <= STRONGEST, f"a number from 1 to {STRONGEST}")
        self._demand("distractors", 0 <= self.distractors <= MOST_CUES, f"a number from 0 to {MOST_CUES}")
        for name in ("negation", "noise"):
            self._demand(name, 0 <= getattr(self, name) <= 1, "a share from 0 to 1")
        self._demand("domain", self.domain in DOMAINS, f"one of {', '.join(DOMAINS)}")
        for name in ("train", "dev", "test"):
            self._demand(name, getattr(self, name) >= self.classes, "at least one text of every class")
        self._demand("seed", self.seed >= 0, "0 or more")
        least = OPENING + ROOM * (self.cues + self.distractors)
        self._demand("length", self.length >= least, f"at least {least} words for these cues and distractors")
        highest = BORDERS[self.classes][-1]
        needs = f"cues times strength to be at least {highest}, so that every class occurs"
        self._demand("cues", self.cues * self.strength >= highest, needs)

    def _demand(self, name: str, met: bool, needs: str) -> None:
        if not met:
            raise Refusal(
                f"planted-reviews, {name}",
                got=str(getattr(self, name)),
                needs=needs,
                way_out="Change that parameter; `attentest corpora describe planted-reviews` lists them all.",
            )


MEANINGS = {
    "classes": "2 (negative, positive) or 5 (1 star to 5 stars)",
    "cues": f"graded words that decide, in every text: 1 to {MOST_CUES}",
    "strength": f"the highest grade of a cue, 1 to {STRONGEST}; grades are drawn evenly from 1 up to it",
    "negation": "the share of cues, and of distractors, that are negated",
    "distractors": f"graded words about something else, in every text: 0 to {MOST_CUES}",
    "noise": "the share of texts whose label is not the one that the rule gives",
    "length": "the mean number of words",
    "domain": "film, product or both",
    "train": "training texts",
    "dev": "dev texts",
    "test": "test texts",
    "seed": "of all random numbers",
}


def review_documents(settings: ReviewSettings) -> Iterator[Document]:
    """The reviews of all splits; each split has its own random numbers, so that its size changes no other."""
    for number, split in enumerate(SPLITS):
        rng = np.random.default_rng([settings.seed, STREAM, number])
        size, labels = getattr(settings, split), LABELS[settings.classes]
        order = rng.permutation([labels[index % len(labels)] for index in range(size)])
        for index, label in enumerate(order.tolist()):
            yield _document(f"{split}-{index:06d}", split, label, settings, rng)


def _document(
    identity: str, split: Split, label: str, settings: ReviewSettings, rng: np.random.Generator
) -> Document:
    # Noise changes what the cues say and not the label, so that classes are balanced at any noise.
    others = [other for other in LABELS[settings.classes] if other != label]
    spoken_for = label if rng.random() >= settings.noise else _pick(others, rng)
    marked = _review(_contributions(spoken_for, settings, rng), settings, rng)
    text = MARK.sub(r"\1", marked)
    return Document(id=identity, text=text, label=label, split=split, rationale=_positions(marked, text))


def _contributions(label: str, settings: ReviewSettings, rng: np.random.Generator) -> list[int]:
    """Signed grades for which the rule gives this label, every such sequence equally likely."""
    while True:
        drawn = _signed_grades(settings.cues, settings, rng)
        if label_of(sum(drawn), settings.classes) == label:
            return drawn


def _signed_grades(number: int, settings: ReviewSettings, rng: np.random.Generator) -> list[int]:
    grades = rng.integers(1, settings.strength + 1, size=number)
    return (grades * rng.choice((-1, 1), size=number)).tolist()


def _review(contributions: Sequence[int], settings: ReviewSettings, rng: np.random.Generator) -> str:
    """A whole review with its decisive words in brackets."""
    domain = _pick(DOMAINS[settings.domain], rng)
    thing = _pick(tuple(domain.things), rng)
    nouns = rng.permutation([*domain.aspects, *domain.things[thing], thing])
    clauses = [
        _clause(OWN, str(noun), each, settings, rng) for noun, each in zip(nouns, contributions, strict=False)
    ]
    clauses += _distractors(domain, settings, rng)
    order = rng.permutation(len(clauses)).tolist()
    sentences = _sentences([clauses[index] for index in order], rng)
    opening = _filled(_pick(domain.openings, rng), rng, thing=thing)
    return " ".join([opening, *_padded(sentences, len(opening.split()), domain, settings, rng)])


def _distractors(domain: Domain, settings: ReviewSettings, rng: np.random.Generator) -> list[str]:
    """Clauses about something else: the same words and templates as cues have, but with nothing marked."""
    nouns = rng.permutation([*PEOPLE, *domain.elsewhere])
    grades = _signed_grades(settings.distractors, settings, rng)
    clauses = [
        _clause(REPORTED if noun in PEOPLE else OWN, str(noun), each, settings, rng)
        for noun, each in zip(nouns, grades, strict=False)
    ]
    return [MARK.sub(r"\1", clause) for clause in clauses]


def _clause(
    clauses: Clauses, noun: str, contribution: int, settings: ReviewSettings, rng: np.random.Generator
) -> str:
    """A clause about a noun that contributes so much, by itself or by the negation of the opposite."""
    negated, by_verb = rng.random() < settings.negation, rng.random() < VERB_SHARE
    sign, grade = (1 if (contribution > 0) != negated else -1), abs(contribution) - 1
    plain, *negations = _pick(clauses[by_verb], rng)
    form = _pick(negations, rng) if negated else plain
    if by_verb:
        past, base = _pick(VERBS[sign][grade], rng)
        return form.format(noun=noun, past=past, base=base)
    return form.format(noun=noun, cue=_pick(ADJECTIVES[sign][grade], rng))


def _sentences(clauses: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Sentences of one or two clauses, with a capital letter and a full stop or an exclamation mark."""
    sentences: list[str] = []
    single = False  # whether the last sentence has one clause only
    for clause in clauses:
        single = not (single and rng.random() < JOINED)
        if single:
            sentences.append(clause)
        else:
            sentences[-1] += _pick(CONNECTIVES, rng) + clause
    ends = ("!" if draw < LOUD else "." for draw in rng.random(len(sentences)))
    return [each[0].upper() + each[1:] + end for each, end in zip(sentences, ends, strict=True)]


def _padded(
    sentences: list[str], words: int, domain: Domain, settings: ReviewSettings, rng: np.random.Generator
) -> list[str]:
    """The sentences with neutral ones among them, until the review is about as long as was drawn."""
    target = int(rng.poisson(settings.length))
    words += sum(len(each.split()) for each in sentences)
    while words < target:
        for template in rng.permutation(domain.neutral).tolist():
            neutral = _filled(template, rng)
            added = len(neutral.split())
            if words + added / 2 > target:  # stopping here is nearer than one sentence more
                return sentences
            sentences.insert(int(rng.integers(len(sentences) + 1)), neutral)
            words += added
    return sentences


def _filled(template: str, rng: np.random.Generator, **given: str) -> str:
    """A template with its slots filled, no word twice."""
    # In the order of SLOTS: a set's order differs between processes, and with it the random numbers.
    left = {
        slot: rng.permutation(words).tolist() for slot, words in SLOTS.items() if f"{{{slot}}}" in template
    }
    return SLOT.sub(lambda slot: given.get(slot[1]) or left[slot[1]].pop(), template)


def _pick(options: Sequence[Option], rng: np.random.Generator) -> Option:
    return options[int(rng.integers(len(options)))]


def _positions(marked: str, text: str) -> tuple[int, ...]:
    """The positions of the marked words among the tokens of the text.

    Tokens lose nothing but blanks, so characters are counted without blanks on both sides.
    """
    starts, before, passed = set(), 0, 0
    for mark in MARK.finditer(marked):
        before += len("".join(marked[passed : mark.start()].split()))
        starts.add(before)
        before += len(mark[1])
        passed = mark.end()
    begins = [0, *accumulate(map(len, tokenise(text)))]
    return tuple(position for position, begin in enumerate(begins) if begin in starts)
