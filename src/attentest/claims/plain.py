"""An audit in words that need no glossary: the headline, and one sentence with one number per criterion.

Nothing is judged here. The headline says what the verdicts say, question by question; the number of a
criterion is that of the test that decided it, in the unit a reader can picture (points of a probability,
a rank correlation), with what it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

from attentest.claims.calibrated import calibrated_tests
from attentest.claims.criterion import (
    JUDGED,
    QUESTIONS,
    VERDICTS,
    Question,
)
from attentest.claims.in_words import IN_WORDS
from attentest.claims.judgement import Answer, Judgement
from attentest.claims.verdict import Verdict

State = Literal["yes", "some", "no", "open", "unknown"]
ABOUT = {"pointer": "Criteria of where it points", "mechanism": "Criteria of what it does"}
ABSENT = {Verdict.NOT_MEASURED: "", Verdict.NOT_APPLICABLE: "It cannot be asked of this attention: "}


def main_answer(judgement: Judgement) -> Answer | None:
    """The answer whose number stands for the criterion: one that decided it, else the first with a number."""
    measured = [answer for answer in judgement.rests_on if answer.measured and math.isfinite(answer.estimate)]
    deciding = [answer for answer in measured if answer.verdict == judgement.verdict]
    return next(iter(deciding or measured), None)


def in_one_sentence(judgement: Judgement) -> str:
    """What a criterion says, with one number."""
    answer = main_answer(judgement)
    meaning = judgement.criterion.meaning(judgement.verdict)
    if answer is None or judgement.verdict in ABSENT:
        why = next((each.reason for each in judgement.rests_on if each.reason), "")
        return _capital(f"{ABSENT.get(judgement.verdict, '')}{why.rstrip('.') or 'no number'}.")
    said = IN_WORDS[answer.test.name].said(answer)
    if judgement.verdict == Verdict.UNDECIDED:
        few = f" ({answer.reason})" if answer.reason else ""
        return f"Not decided{few}: {said}."
    if judgement.verdict == Verdict.NOT_SUPPORTED:
        return _capital(f"{said}, which falls short of the margin.")
    if judgement.verdict == Verdict.NOT_JUDGED:
        return f"Shown and not judged, because {answer.reason}: {said}."
    return f"{meaning.rstrip('.')}: {said}."


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def worded(judgement: Judgement) -> dict[str, Any]:
    """A criterion as plain values, with what a page says and draws of it."""
    main = main_answer(judgement)
    place = next((n for n, answer in enumerate(judgement.answers) if answer is main), None)
    rates = judgement.error_rates
    return {
        **judgement.document,
        "plain": in_one_sentence(judgement),
        "main": place,  # which of the tests the number is of
        "error_rates": None if rates is None else asdict(rates),
        "tests": [_worded(answer, judgement.criterion.question) for answer in judgement.answers],
    }


def _worded(answer: Answer, question: Question) -> dict[str, Any]:
    """A test with its title, its own null, and where models of known truth lie."""
    words, known = IN_WORDS[answer.test.name], calibrated_tests().get(answer.test.name)
    auc = None if known is None else getattr(known, question)
    return {
        **answer.document,
        "title": words.title,
        "null_of_finding": answer.null_of_finding,
        "null_in_words": words.null,
        "auc": None if auc is None else asdict(auc),
        "by_definition": known is not None and known.by_definition == question,
        "largest_no": math.nan if known is None else known.largest_no,
        "smallest_yes": math.nan if known is None else known.smallest_yes,
    }


@final
@dataclass(frozen=True, kw_only=True)
class Headline:
    """The verdict of an audit in a sentence, what follows for a heat map, and how the criteria divide."""

    sentence: str
    advice: str
    counts: str
    pointer: State
    mechanism: State

    @property
    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {name: getattr(self, name) for name in ("sentence", "advice", "counts", *QUESTIONS)}


FROM = "the words that the answers come from"
POINTER: dict[State, str] = {
    "yes": f"Attention is a reliable pointer to {FROM}",
    "some": f"Attention is a reliable pointer to {FROM} by some criteria and not by all",
    "no": f"Attention is no reliable pointer to {FROM}",
    "open": f"These texts do not decide whether attention is a reliable pointer to {FROM}",
    "unknown": f"This audit cannot judge whether attention is a reliable pointer to {FROM}",
}
MECHANISM: dict[State, str] = {
    "yes": "the answers depend on the attention weights",
    "some": "the answers depend on the attention weights by some criteria and not by all",
    "no": "the answers hardly depend on the attention weights",
    "open": "these texts do not decide whether the answers depend on the attention weights",
    "unknown": "it cannot be judged here whether the answers depend on the attention weights",
}
BUT: set[tuple[State, State]] = {("yes", "no"), ("some", "no"), ("no", "yes"), ("no", "some")}
BUT |= {(known, open_) for known in ("yes", "some", "no") for open_ in ("open", "unknown")}
MAY = "A heat map of this attention may be shown as a guide to the words behind an answer"
LIMITS = "for this model and texts like these"


def headline(judgements: Sequence[Judgement]) -> Headline:
    """What all criteria say together, each question for itself: there is no one score."""
    pointer, mechanism = (_state(_verdicts(judgements, question)) for question in QUESTIONS)
    joined = "but" if (pointer, mechanism) in BUT else "and"
    return Headline(
        sentence=f"{POINTER[pointer]}, {joined} {MECHANISM[mechanism]}.",
        advice=_advice(pointer, mechanism),
        counts=" ".join(_counted(judgements, question) for question in QUESTIONS),
        pointer=pointer,
        mechanism=mechanism,
    )


def _verdicts(judgements: Sequence[Judgement], question: str) -> list[str]:
    return [one.verdict for one in judgements if one.criterion.question == question]


def _state(verdicts: Sequence[str]) -> State:
    """What the judged criteria of a question say together; the others say nothing."""
    judged = {verdict for verdict in verdicts if verdict in JUDGED}
    if not judged:
        return "unknown"
    if judged == {Verdict.SUPPORTED}:
        return "yes"
    if Verdict.SUPPORTED in judged:
        return "some"
    return "no" if Verdict.NOT_SUPPORTED in judged else "open"


def _advice(pointer: State, mechanism: State) -> str:
    if pointer == "yes":
        more = ", though changing it hardly changes the answer," if mechanism == "no" else ""
        return f"{MAY}{more or ','} {LIMITS}."
    if pointer == "some":
        return f"{MAY} only together with the criteria that it does not meet."
    if pointer == "no":
        return "Do not show a heat map of this attention as the reason for an answer."
    return "Until it is decided, do not show a heat map of this attention as the reason for an answer."


def _counted(judgements: Sequence[Judgement], question: str) -> str:
    """How many criteria of a question have which verdict."""
    verdicts = _verdicts(judgements, question)
    counts = [f"{count} {verdict}" for verdict in VERDICTS if (count := verdicts.count(verdict))]
    return f"{ABOUT[question]}: {', '.join(counts)}."
