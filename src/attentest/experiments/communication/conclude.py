"""Whether words explain a classifier to somebody who hears only them: Treviso & Martins (2020).

CSR, the communication success rate, is how often the layperson says what the classifier says; ACC_L, how
often it is right. Any words of a text tell something about it, more of them tell more, and a classifier that
mostly says the same is easy to guess: so each explainer stands beside random words, as many as it sent of the
same texts, and random words beside silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import pandas as pd

from attentest.experiments.communication import ABOUT
from attentest.experiments.communication.cards import CARDS
from attentest.experiments.description import Conclusion
from attentest.statistics.group_means import Group, Means, Measure, of_controls
from attentest.statistics.named import Named
from attentest.statistics.record import Finding, ordered

SILENCE, WHOLE, RANDOM, EMBEDDED, SURROGATE = "silence", "whole", "random", "embedded", "surrogate"
JOINT = "joint"  # trained together with a layperson; there only where it was asked for
CHANCE = "chance-"  # before the name of a message: random words, as many as it has of the text
EXPLAINERS = (RANDOM, "erasure", "gradient", "attention", SURROGATE)  # who send k words
PROJECTIONS = ("softmax", "entmax15", "sparsemax")  # siblings of these names share everything else
# What a message is held against: who sends as much at random, and who sends nothing.
NULLS = {
    WHOLE: SILENCE,
    RANDOM: SILENCE,
    "erasure": RANDOM,
    "gradient": RANDOM,
    SURROGATE: RANDOM,
    "attention": f"{CHANCE}attention",
    EMBEDDED: f"{CHANCE}{EMBEDDED}",
    JOINT: f"{CHANCE}{JOINT}",
}
PAIRS = (
    ("attention", "erasure"),
    ("attention", "gradient"),
    (SURROGATE, "attention"),
    (EMBEDDED, "attention"),
)
JOINT_PAIRS = ((JOINT, "attention"), (JOINT, SURROGATE))
OTHERS = ("attention", EMBEDDED)  # what is compared between models
WHO = ("seed", "subject", "id", "label", "predicted", "length", "support")
NO_K = (SILENCE, WHOLE, EMBEDDED, f"{CHANCE}{EMBEDDED}")
GUESSED = ("agrees", "right")  # what the classifier says, and what is right
UNDEFINED = "the classifier's output is not a number, or there was nothing to learn from"
UNMATCHED = "the classifier's output is not a number, or the other model did not answer"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts for every classifier: overall is the one that was asked about.

    Groups of the name of a projection are the same model with that projection; then the controls.
    """
    rows = ordered(rows, [*WHO, *_guesses(rows)])
    if not (rows["subject"] == "trained").any():
        return []
    heard = Heard(rows)
    measures = [*_classifier(heard), *_levels(heard), *_differences(heard), *_between_models(heard)]
    means = Means(experiment="communication", rows=rows, mode=mode, rng=rng)
    return means.of(measures, _models(rows))


def _sizes(rows: pd.DataFrame) -> list[str]:
    """The numbers of words that were sent, as they follow an @, the smallest first."""
    columns = map(Named.of, rows.columns)
    return sorted((each.setting for each in columns if each.name == f"{GUESSED[0]}_{RANDOM}"), key=int)


def _guesses(rows: pd.DataFrame) -> Iterator[str]:
    """The columns of all messages, for every number of words that random ones were sent in."""
    senders = [*EXPLAINERS, f"{CHANCE}attention", *([JOINT, NULLS[JOINT]] if _is_joint(rows) else [])]
    by_size = [Named(name, k) for k in _sizes(rows) for name in senders]
    yield from (f"{what}_{message}" for what in GUESSED for message in (*NO_K, *by_size))


def _is_joint(rows: pd.DataFrame) -> bool:
    return f"words_{JOINT}" in rows


def _models(rows: pd.DataFrame) -> list[Group]:
    named = {"overall": "trained", **{name: name for name in PROJECTIONS}}
    groups = [(group, rows[rows["subject"] == subject]) for group, subject in named.items()]
    return [*(group for group in groups if len(group[1])), *of_controls(rows)]


@final
@dataclass(frozen=True, eq=False)
class Heard:
    """Observed rows as aligned columns."""

    rows: pd.DataFrame

    @cached_property
    def sizes(self) -> list[str]:
        """How many words were sent."""
        return _sizes(self.rows)

    @cached_property
    def explainers(self) -> tuple[str, ...]:
        """Who sent k words."""
        return (*EXPLAINERS, JOINT) if _is_joint(self.rows) else EXPLAINERS

    def messages(self, explainer: str) -> list[Named]:
        """The explainer's messages, one for every number of words unless that is not its to choose."""
        return [Named(explainer)] if explainer in NO_K else [Named(explainer, k) for k in self.sizes]

    def column(self, what: str, message: Named) -> pd.Series:
        """How often the layperson `agrees`, or is `right`."""
        return self.rows[f"{what}_{message}"].astype(np.float64)

    def null(self, what: str, message: Named) -> pd.Series:
        """The same of what the message is held against; of silence, the classifier's commonest answer."""
        if message.name == SILENCE:
            return self.commonest(what)
        other = NULLS[message.name]
        return self.column(what, Named(other, "" if other in NO_K else message.setting))

    def commonest(self, what: str) -> pd.Series:
        """1 where a classifier's commonest answer (or label) stands: what always saying it scores."""
        told = self.rows["predicted" if what == "agrees" else "label"]
        per_model = [self.rows["seed"], self.rows["subject"]]
        return (told == told.groupby(per_model).transform(_mode)).astype(np.float64)

    def why(self, reason: str) -> pd.Series:
        """One reason for all rows."""
        return pd.Series(reason, index=self.rows.index)


def _mode(values: pd.Series) -> str:
    return values.mode().iloc[0]


def _classifier(heard: Heard) -> Iterator[Measure]:
    """How well it does itself, and how many words its attention leaves, or who learnt to be understood."""
    rows, why = heard.rows, heard.why(UNDEFINED)
    defined = heard.column("agrees", Named(SILENCE)).notna()
    right = (rows["label"] == rows["predicted"]).astype(np.float64).where(defined)
    yield Measure(name="classifier-accuracy", values=right, null=heard.commonest("right"), why=why)
    left = {EMBEDDED: "support"} | ({JOINT: f"words_{JOINT}"} if _is_joint(rows) else {})
    for name, column in left.items():
        words = rows[column].astype(np.float64).where(defined)
        yield Measure(name=f"words-{name}", values=words, null=rows["length"].astype(np.float64), why=why)


def _levels(heard: Heard) -> Iterator[Measure]:
    """CSR and ACC_L of every message, and CSR beyond its null."""
    why = heard.why(UNDEFINED)
    for explainer in (SILENCE, WHOLE, EMBEDDED, *heard.explainers):
        for message in heard.messages(explainer):
            for name, what in (("csr", "agrees"), ("accuracy", "right")):
                values, null = heard.column(what, message), heard.null(what, message)
                yield Measure(name=f"{name}-{message}", values=values, null=null, why=why)
            if explainer != SILENCE:
                beyond = heard.column("agrees", message) - heard.null("agrees", message)
                yield Measure(name=_named(message, "excess"), values=beyond, null=0.0, why=why)


def _differences(heard: Heard) -> Iterator[Measure]:
    """Two explainers of one classifier, text by text."""
    why = heard.why(UNDEFINED)
    for one, other in (*PAIRS, *(JOINT_PAIRS if JOINT in heard.explainers else ())):
        for message in heard.messages(other):
            own = Named(one, "" if one in NO_K else message.setting)
            values = heard.column("agrees", own) - heard.column("agrees", message)
            name = str(Named(f"csr-{one}-minus-{other}", message.setting))
            yield Measure(name=name, values=values, null=0.0, why=why)


def _between_models(heard: Heard) -> Iterator[Measure]:
    """The same explainer of another classifier: each is guessed as itself, text by text for the same seed."""
    other = heard.rows["subject"] != "trained"
    for explainer in OTHERS:
        for message in heard.messages(explainer):
            values = heard.column("agrees", message)
            apart = (values - _of_trained(heard.rows, values))[other]
            name = _named(message, "minus-trained")
            yield Measure(name=name, values=apart, null=0.0, why=heard.why(UNMATCHED))


def _of_trained(rows: pd.DataFrame, values: pd.Series) -> pd.Series:
    """For every row, the trained model's value of the same text and seed; NaN where it has none."""
    text = pd.MultiIndex.from_frame(rows[["seed", "id"]])
    theirs = (rows["subject"] == "trained").to_numpy()
    found = pd.Series(values.to_numpy()[theirs], index=text[theirs]).reindex(text)
    return pd.Series(found.to_numpy(), index=rows.index)


def _named(message: Named, reading: str) -> str:
    """A reading of a message's CSR: the number of words stays behind."""
    return str(Named(f"csr-{message.name}-{reading}", message.setting))


CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=())
