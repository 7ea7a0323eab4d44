"""Constructions by name: models without training whose truth follows from the rule that makes them.

`constructed(NAME,knob=value)` stands where an encoder's name does. Two labels are written beside each: does
attention point at the words that the output comes from (`pointer`), and does the output depend on the weights
(`mechanism`)? Tests compute both from the rule: tau of at least 0.8 between weights and contributions, and a
mean change of at least 0.2 in total variation if all the weight goes to one unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import final

from attentest.model.networks.constructed_rule import Lexicon, Rule
from attentest.refusal import Refusal, look_up

NAMED = re.compile(r"constructed\((?P<inside>[^()]*)\)")
POINTS, DEPENDS = 0.8, 0.2  # the least tau of a pointer, the least change of output of a mechanism
OF_WORD = frozenset({"right", "least", "word", "norm", "loud", "uniform"})  # scores that need no other word


@final
@dataclass(frozen=True)
class Construction:
    """Which words count, how they are weighed, and what units say."""

    values: str
    scores: str
    states: str
    focus: float  # of attention: how much scores differ
    gain: float  # so that the evidence is about 0.6 in size
    says: str
    transformer: bool = False  # an encoder of Hugging Face's
    causal: bool = False  # one of its causal language models

    @property
    def foreign(self) -> bool:
        """Whether it is a model of Hugging Face's, and no network of ours."""
        return self.transformer or self.causal

    @property
    def pointer(self) -> bool:
        """Whether attention is on the words that count, and what they say is said there."""
        return self.scores in ("right", "strongest") and self.states != "previous"

    @property
    def mechanism(self) -> bool:
        """Whether units say different things."""
        return self.states in ("own", "previous")


@final
@dataclass(frozen=True, kw_only=True)
class Knobs:
    """What may be turned: how decided the output is, how soft attention is, how noisy its scores are."""

    strength: float = 1.0
    temperature: float = 1.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (("strength", 0.0), ("temperature", 0.0), ("noise", -1.0)):
            value = getattr(self, name)
            if not least < value < 1e6:
                raise Refusal(
                    f"construction, {name}",
                    got=f"{value:g}",
                    needs="a number above 0" if least == 0 else "a number of 0 or more",
                    way_out="1 is the default of strength and temperature, 0 that of noise.",
                )


@final
@dataclass(frozen=True)
class Constructed:
    """A name as it stands in a configuration: which construction, and its knobs."""

    name: str
    knobs: Knobs = Knobs()

    @classmethod
    def parse(cls, written: str) -> Constructed:
        """From `constructed(NAME,knob=value)`; written in another way than ours it would be another key."""
        match = NAMED.fullmatch(written)
        name, *given = (match["inside"] if match else "").split(",")
        look_up(name, CONSTRUCTIONS, "construction")
        try:
            turned = {knob: float(value) for knob, value in (each.split("=") for each in given)}
        except ValueError:
            raise _misspelled(written, f"constructed({name},strength=2)") from None
        for knob in turned:
            look_up(knob, {field.name: None for field in fields(Knobs)}, f"knob of {name}")
        found = cls(name, Knobs(**turned))
        if found.spelled != written:
            raise _misspelled(written, found.spelled)
        return found

    @property
    def spelled(self) -> str:
        """Knobs in their order, those at their defaults left out."""
        turned = (
            f"{field.name}={value:g}"
            for field in fields(Knobs)
            if (value := getattr(self.knobs, field.name)) != field.default
        )
        return f"constructed({','.join([self.name, *turned])})"

    @property
    def of(self) -> Construction:
        """The construction."""
        return CONSTRUCTIONS[self.name]

    @property
    def kind(self) -> str:
        """What sort of model it is: error rates are known by sort."""
        if self.of.foreign:
            return CAUSAL if self.of.causal else TRANSFORMER
        alone = self.of.states == "own" and self.of.scores in OF_WORD and not self.knobs.noise
        return WITHOUT_CONTEXT if alone else CONTEXTUAL

    def rule(self, words: Sequence[str], classes: int, seed: int) -> Rule:
        """The rule over a vocabulary; of a transformer it says what words have (`constructed_model`)."""
        of, knobs = self.of, self.knobs
        return Rule(
            lexicon=Lexicon(words, of.values, seed),
            scores_by=of.scores,
            states_by=of.states,
            focus=of.focus,
            gain=of.gain,
            classes=classes,
            strength=knobs.strength,
            temperature=knobs.temperature,
            noise=knobs.noise,
        )


WITHOUT_CONTEXT, CONTEXTUAL, TRANSFORMER = "without context", "contextual", "transformer"
CAUSAL = "causal language model"


def is_constructed(encoder: str) -> bool:
    """Whether an encoder's name is that of a construction."""
    return encoder.startswith("constructed(")


def _misspelled(written: str, right: str) -> Refusal:
    return Refusal(
        f"encoder {written!r}",
        got="a construction that is not written as ours are",
        needs="constructed(NAME,knob=value), knobs in their order, without those at their defaults",
        way_out=f"Write {right!r}.",
    )


CONSTRUCTIONS: Mapping[str, Construction] = {
    # Attention points at what matters, and the output depends on it.
    "keyword": Construction(
        "keyword", "right", "own", 4.0, 1.6, "only strong words count; attention is on them"
    ),
    "graded": Construction("graded", "right", "own", 4.0, 1.9, "attention grows with the grade of a word"),
    "several-cues": Construction(
        "alike", "right", "own", 3.0, 2.5, "all sentiment words count alike and share attention"
    ),
    "selector": Construction(
        "loud", "right", "own", 4.0, 1.8, "every word is loud; attention selects those that count"
    ),
    "soft": Construction("every", "right", "own", 2.0, 6.5, "every word counts a little; attention is soft"),
    "sharp": Construction("every", "right", "own", 6.0, 3.0, "every word counts; attention is sharp"),
    # The output depends on attention, which points elsewhere.
    "random-word": Construction("graded", "word", "own", 1.0, 26.0, "attention is drawn for each word"),
    "random-loud": Construction(
        "every", "word", "own", 0.4, 7.0, "every word counts; attention is drawn for each word"
    ),
    "random-position": Construction(
        "graded", "position", "own", 1.0, 20.0, "attention is drawn for each place"
    ),
    "random-text": Construction("graded", "text", "own", 1.0, 20.0, "attention is drawn anew for each text"),
    "smooth": Construction("graded", "smooth", "own", 2.0, 19.0, "attention is a wave along the text"),
    "norm": Construction("graded", "norm", "own", 1.0, 25.0, "attention follows the length of word vectors"),
    "loud-words": Construction(
        "graded", "loud", "own", 1.0, 25.0, "attention is on loud words that no decision looks at"
    ),
    "least": Construction("graded", "least", "own", 3.0, 190.0, "attention is least on the words that count"),
    "beside": Construction(
        "graded", "previous", "previous", 4.0, 1.9, "attention is on the word after, which holds a copy"
    ),
    "random-alike": Construction(
        "alike", "word", "own", 1.0, 17.0, "all sentiment words count alike; attention by word"
    ),
    "random-places": Construction(
        "every", "position", "own", 0.4, 6.0, "every word counts; attention is drawn for each place"
    ),
    # Attention points at what matters, and the output does not depend on it.
    "idle-sum": Construction("graded", "right", "sum", 4.0, 1.5, "every state holds the sum of the evidence"),
    "idle-running": Construction(
        "alike", "right", "running", 4.0, 1.2, "sums from both sides add up to the same"
    ),
    "idle-strongest": Construction(
        "graded", "strongest", "strongest", 4.0, 0.66, "every state holds the strongest word"
    ),
    "idle-blind": Construction(
        "keyword", "right", "blind", 4.0, 1.7, "states differ where no decision looks"
    ),
    "idle-every": Construction(
        "every", "right", "running", 4.0, 0.4, "sums of what every word says; attention follows it"
    ),
    # Neither.
    "idle-random-word": Construction(
        "graded", "word", "sum", 1.0, 1.5, "the sum is everywhere; attention by word"
    ),
    "idle-random-position": Construction(
        "alike", "position", "running", 1.0, 1.2, "running sums; attention by place"
    ),
    "idle-random-text": Construction(
        "keyword", "text", "blind", 1.0, 1.7, "blind differences; attention by text"
    ),
    "idle-uniform": Construction(
        "graded", "uniform", "sum", 0.0, 1.5, "the sum is everywhere; attention is uniform"
    ),
    "idle-smooth": Construction("alike", "smooth", "running", 2.0, 1.2, "running sums; attention is a wave"),
    "idle-least": Construction(
        "graded", "least", "strongest", 3.0, 0.66, "the strongest is everywhere; attention is not"
    ),
    "idle-norm": Construction(
        "every", "norm", "sum", 1.0, 0.4, "the sum is everywhere; attention follows vector lengths"
    ),
    # The same four as Hugging Face encoders: two layers of BERT whose weights are set by hand.
    "hf-used-pointer": Construction(
        "graded", "right", "own", 4.0, 1.9, "the last layer brings what it attends to", transformer=True
    ),
    "hf-used-elsewhere": Construction(
        "graded", "word", "own", 1.0, 26.0, "the last layer brings it; attention by word", transformer=True
    ),
    "hf-idle-pointer": Construction(
        "graded",
        "right",
        "sum",
        4.0,
        26.0,
        "the first layer brings it; the last only points",
        transformer=True,
    ),
    "hf-idle-elsewhere": Construction(
        "graded", "word", "sum", 1.0, 26.0, "the first layer brings it; attention by word", transformer=True
    ),
    # As Hugging Face causal language models: two layers of GPT-2 behind a prompt.
    "causal-used-pointer": Construction(
        "graded", "right", "own", 4.0, 1.9, "the last layer brings what it attends to", causal=True
    ),
    "causal-used-elsewhere": Construction(
        "graded", "word", "own", 1.0, 26.0, "the last layer brings it; attention by word", causal=True
    ),
    "causal-idle-pointer": Construction(
        "graded", "right", "sum", 4.0, 26.0, "the first layer brings it; the last only points", causal=True
    ),
    "causal-idle-elsewhere": Construction(
        "graded", "word", "sum", 1.0, 26.0, "the first layer brings it; attention by word", causal=True
    ),
}
