"""An audit: every question of the budget put to one model, with what it took and what had to be left out.

Each question is asked by the code of the studies, so that a number means here what it means there.

A question that does not fit into the memory of a GPU is asked again, of fewer texts at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, final

import numpy as np
import pandas as pd
import torch

from attentest.auditing.kept import KeptQuestions
from attentest.auditing.means import DRAWN
from attentest.auditing.pace import Pace, Watcher
from attentest.auditing.questions import BUDGETS, QUESTIONS, Auditing, Budget, NothingGiven
from attentest.auditing.shown_texts import ASKED, ShownTexts, borne_out, shown_texts
from attentest.auditing.subject import audited_subject, on_the_bench, subject_of, untrained
from attentest.corpus.example import Example
from attentest.experiments.contract import Row, Subject
from attentest.foreign.resting import Resting, resting_of
from attentest.model.batch import AbstractSplit
from attentest.model.reader import TEXTS
from attentest.model.seam import Model
from attentest.refusal import Refusal, look_up
from attentest.statistics.record import Finding, to_frame
from attentest.store.store import Store

Found = TypeVar("Found")


def in_memory(texts: AbstractSplit, ask: Callable[[], Found]) -> Found:
    """What `ask` finds, with batches of half the texts as often as it runs out of memory."""
    while True:
        try:
            return ask()
        except torch.OutOfMemoryError as error:
            texts.at_once = (texts.at_once or TEXTS) // 2
            if not texts.at_once:
                raise Refusal(
                    "memory of the GPU",
                    got="too little for one text at a time",
                    needs="room for the model and one text under many attentions",
                    way_out="Say dtype='bfloat16', too_long='truncate', or device='cpu'.",
                ) from error
        if torch.cuda.is_available():  # outside the handler, whose traceback holds tensors
            torch.cuda.empty_cache()


SEED = 0  # of every draw, unless another is given: the same audit again gives the same numbers
SHUFFLED = "Training again on shuffled labels is no part of an audit: it would need the training data."


@final
@dataclass
class Audit:
    """What came out: findings of one schema with the studies, seconds by question, and what is not there."""

    texts: int
    of: int  # texts that were there
    budget: str
    labels: tuple[str, ...]
    ids: tuple[str, ...]  # of the texts that were audited, in the order they were given
    findings: list[Finding] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    drawn: dict[str, dict[str, float]] = field(default_factory=dict)  # of a question, how much by text: DRAWN
    left_out: dict[str, str] = field(default_factory=dict)  # by question or control, why
    skipped: dict[str, str] = field(default_factory=dict)  # of these, what could have been asked
    resting: Resting | None = None  # of a transformer, what its row rests on besides the words
    empty: dict[str, str] = field(default_factory=dict)  # by experiment/measure, why no text has a value
    borne_out: dict[str, float] = field(default_factory=dict)  # by text, what orders those that are shown
    shown: ShownTexts = field(default_factory=ShownTexts)
    ranked: str | None = None  # what was done with texts of more units than the budget ranks, in a sentence

    @property
    def frame(self) -> pd.DataFrame:
        """The findings as a table."""
        return to_frame(self.findings)


def audited(
    model: Model,
    examples: Sequence[Example],
    budget: str = "standard",
    watcher: Watcher | None = None,
    *,
    questions: Sequence[str] | None = None,
    searches: bool = True,
    seed: int = SEED,
    texts: int | None = None,
    batch_size: int | None = None,
    show: bool = False,
    store: Store | None = None,
    about: Mapping[str, Any] | None = None,
) -> Audit:
    """Ask every question, or those that are named.

    One that this model or these texts do not allow is left out, with its reason. `texts` are as many as are
    asked about at most, where that is not the budget's own number.

    With a `store` what is answered there is not asked again, and every question is kept when it is done. Its
    name is made of the model's settings, texts and budget, and of what else is told `about` the model: the
    digest of its parameters at least.

    With `show` a few texts are kept word by word, for a person to look at.

    Without `searches` adversaries are computed exactly where that is possible, and not looked for elsewhere.
    """
    allowed = check_budget(budget)
    if texts is not None:
        allowed = replace(allowed, texts=texts)
    if not searches:
        allowed = replace(allowed, searched=0)
    questions = tuple(QUESTIONS) if questions is None else questions
    for name in questions:
        look_up(name, QUESTIONS, "question of an audit")
    model, chosen = on_the_bench(model), spread(examples, allowed.texts)
    subject = audited_subject(model, chosen, allowed.units)
    subject.texts.at_once = batch_size or subject.texts.at_once
    ids = tuple(example.id for example in chosen)
    found = Audit(len(chosen), len(examples), budget, model.labels, ids)
    found.resting = in_memory(subject.texts, lambda: resting_of(model.with_heads, subject.texts))
    audit = Auditing(subject, _twin(subject, found), allowed)
    kept = None if store is None else KeptQuestions(store, model, audit, about or {})
    asked = [name for name in questions if name not in allowed.without]
    pace = Pace(asked, float(subject.texts.lengths.mean()), len(audit.both) * len(chosen), watcher)
    for name in questions:
        _ask(name, audit, found, seed, pace, kept)
        pace.end(name)
    if show:
        found.shown = shown_texts(subject, found.borne_out)
    model.capabilities.again()
    return found


def check_budget(name: str) -> Budget:
    """The budget of that name."""
    return look_up(name, BUDGETS, "budget")


def spread(examples: Sequence[Example], most: int) -> tuple[Example, ...]:
    """At most so many of the texts, spread evenly over them."""
    if len(examples) < 2 or len({example.id for example in examples}) < len(examples):
        raise Refusal(
            "texts of an audit",
            got=f"{len(examples)} of them, or two with one id",
            needs="at least 2, each with an id of its own",
            way_out="Give more texts: below 20 nothing is decided.",
        )
    places = np.linspace(0, len(examples) - 1, min(most, len(examples))).astype(int)
    return tuple(examples[place] for place in places)


def _twin(subject: Subject, found: Audit) -> Subject | None:
    found.left_out["the control with shuffled labels"] = SHUFFLED
    try:
        twin = untrained(subject.model)
    except Refusal as refusal:
        found.left_out["the untrained control"] = str(refusal)
        return None
    if twin is None:
        found.left_out["the untrained control"] = (
            "Nobody but its maker can draw this model's parameters anew."
        )
        return None
    return subject_of(twin, subject.texts, "untrained", ranked=subject.ranked)


def _ask(name: str, audit: Auditing, found: Audit, seed: int, pace: Pace, kept: KeptQuestions | None) -> None:
    question, number = QUESTIONS[name], list(QUESTIONS).index(name)
    try:
        question.check(name, audit)
        if name in audit.budget.without:
            found.skipped[name] = f"The budget {found.budget!r} leaves it out; {_enough(name)} has it."
            found.left_out[name] = found.skipped[name]
            return
        rows, seconds = _answered(name, audit, seed, pace, kept)
    except Refusal as refusal:
        if refusal.below:  # a user's own code raised: no other question will fare better
            raise
        found.left_out[name] = str(refusal)
        return
    except NothingGiven as lacking:
        found.left_out[name] = found.skipped[name] = str(lacking)
        return
    rows["seed"] = SEED
    found.borne_out |= borne_out(rows) if name == ASKED else {}
    if name == "agreement" and audit.subject.ranked is not None:
        found.ranked = _ranked(rows, audit.subject.ranked)
    findings = question.conclude(rows, mode="corrected", rng=np.random.default_rng([seed, number, 1]))
    found.findings += [finding for finding in findings if finding.n]
    found.seconds[name] = seconds
    if set(DRAWN) <= set(rows):
        found.drawn[name] = {column: float(rows[column].mean()) for column in DRAWN}
    empty = _empty(findings, audit.lacks(name))
    found.empty |= {f"{name}/{measure}": why for measure, why in empty.items()}
    found.left_out |= _in_short(name, empty)


def _ranked(rows: pd.DataFrame, most: int) -> str | None:
    """That of long texts some units were ranked, in a sentence; None where no text was that long."""
    own = rows[rows["subject"] == "trained"]
    longer = int((own["length"] > most).sum())
    if not longer:
        return None
    return (
        f"{longer} of {len(own)} texts have more than {most} units. There importances are compared with"
        f" attention over {most} of them, drawn at random. In LIME and Shapley values the others stay."
    )


def _answered(
    name: str, audit: Auditing, seed: int, pace: Pace, kept: KeptQuestions | None
) -> tuple[pd.DataFrame, float]:
    """The rows of a question and the seconds they took: from the store, or asked and kept."""
    if kept is not None and (before := kept.find(name, seed)) is not None:
        return before
    begun, number = time.monotonic(), list(QUESTIONS).index(name)
    known = [0 if each.known is None else len(each.known) for each in audit.both]

    def ask() -> list[Row]:
        return [*pace.rows_of(name, QUESTIONS[name].observe(audit, np.random.default_rng([seed, number])))]

    observed = in_memory(audit.subject.texts, ask)
    seconds = round(time.monotonic() - begun, 3)
    if kept is not None:
        return kept.keep(name, seed, observed, seconds, known), seconds
    return pd.DataFrame(observed), seconds


def _empty(findings: Sequence[Finding], why: str) -> dict[str, str]:
    """Measures that no text has a value for are no numbers to print, but their absence must be known."""
    return {
        finding.measure: why or finding.why or "no text has a value"
        for finding in findings
        if not finding.n and finding.group == "overall"
    }


def _in_short(name: str, empty: Mapping[str, str]) -> dict[str, str]:
    """The first measure of every reason, and how many more it holds for."""
    by_reason: dict[str, list[str]] = {}
    for measure, reason in empty.items():
        by_reason.setdefault(reason, []).append(measure)
    return {
        f"{name}: {measures[0]}" + (f" and {more} more" if more else ""): reason
        for reason, measures in by_reason.items()
        for more in [len(measures) - 1]
    }


def _enough(name: str) -> str:
    return next(repr(budget) for budget, allowed in BUDGETS.items() if name not in allowed.without)
