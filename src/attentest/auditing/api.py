"""`at.audit`: a model and texts in, evidence out. Where the bench, the reading and the report meet."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, final

import pandas as pd

from attentest.auditing.cards import audit_card
from attentest.auditing.choosing import Chosen, best_row, to_be_chosen
from attentest.auditing.digest import audited_digest
from attentest.auditing.held import check_held, held_model, name_of
from attentest.auditing.options import CLASSIFY, REFUSE, check_options, check_task
from attentest.auditing.pace import Watcher
from attentest.auditing.page import FORMATS, fragment
from attentest.auditing.provenance import call, made_now, provenance, without_path
from attentest.auditing.room import TooLong, with_room
from attentest.auditing.run import Audit, audited, check_budget
from attentest.auditing.texts import fitted, given_texts, marked_texts
from attentest.auditing.titles import TITLES, title_of
from attentest.claims.criteria import Judgement, judged
from attentest.claims.criterion import QUESTIONS, SCOPE
from attentest.claims.plain import Headline, headline, worded
from attentest.model.seam import Model
from attentest.statistics.named import Named
from attentest.store.store import Store


@final
@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit found. It shows itself in a notebook, and saves itself as a page."""

    model: str
    attention: str
    audit: Audit
    made: Mapping[str, Any]  # when, by which versions, on which device, of which texts
    parameters: str = ""  # their digest
    kind: str | None = None  # of model, as error rates know it; None where they do not
    chosen: Chosen | None = None  # how the row was chosen by looking, if it was
    data: Mapping[str, Any] = field(default_factory=dict)  # what held the texts: form, name, columns, sha256
    notes: tuple[str, ...] = ()  # what was guessed or left out of the data, in sentences
    too_long: TooLong = field(default_factory=TooLong)
    settings: Mapping[str, Any] = field(default_factory=dict)  # the options that were not left out
    command: str = ""  # what runs it again
    include_text: bool = True  # whether a page may show texts

    @cached_property
    def findings(self) -> pd.DataFrame:
        """Every number, one a row, in the columns of a store's findings."""
        return self.audit.frame

    @cached_property
    def criteria(self) -> list[Judgement]:
        """What the findings say, criterion by criterion."""
        absent = {**self.audit.left_out, **self.audit.empty}
        return judged(self.findings, absent=absent, skipped=self.audit.skipped, kind=self.kind)

    @property
    def headline(self) -> Headline:
        """What all criteria say together: a sentence, what follows for a heat map, and the counts."""
        return headline(self.criteria)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the texts that were audited, in the order they were given."""
        return self.audit.ids

    @property
    def left_out(self) -> dict[str, str]:
        """What was not measured, and why."""
        return self.audit.left_out

    def __repr__(self) -> str:
        """The headline and the verdict of every criterion; the findings would fill many screens."""
        head = f"AuditResult({self.model}: {self.attention}; {self.audit.texts} of {self.audit.of} texts)"
        said = [self.headline.sentence]
        said += [f"  {one.criterion.name}: {one.verdict}" for one in self.criteria]
        return "\n".join([head, *said, *(f"  {note}" for note in self.said)])

    @property
    def said(self) -> tuple[str, ...]:
        """What a reader must know of the data: what was guessed or matched, and texts that were too long."""
        resting = self.audit.resting
        more = (self.too_long.sentence, self.audit.ranked, None if resting is None else resting.sentence)
        return (*self.notes, *(sentence for sentence in more if sentence))

    @cached_property
    def document(self) -> dict[str, Any]:
        """All of it as plain values, for programs and pages."""
        names = dict.fromkeys((f.experiment, Named.of(f.measure).name) for f in self.audit.findings)
        known = {
            "model": self.model,
            "attention": self.attention,
            "parameters": self.parameters,
            "budget": self.audit.budget,
            "texts": self.audit.texts,
            "of": self.audit.of,
            "ids": list(self.audit.ids),
            "labels": list(self.audit.labels),
            "data": dict(self.data),
            "notes": list(self.said),
            "too_long": self.too_long.document,
            "resting": None if self.audit.resting is None else self.audit.resting.document,
            "settings": dict(self.settings),
            "kind": self.kind,
            "chosen": None if self.chosen is None else self.chosen.document,
            "scope": SCOPE,
            "questions": dict(QUESTIONS),
            "headline": self.headline.document,
            "criteria": [worded(judgement) for judgement in self.criteria],
            "examples": self.audit.shown.document(with_text=self.include_text),
            "findings": [asdict(finding) for finding in self.audit.findings],
            "cards": {f"{e}/{m}": asdict(audit_card(e, m)) for e, m in names},
            "seconds": dict(self.audit.seconds),
            "drawn": {question: dict(mean) for question, mean in self.audit.drawn.items()},
            "left_out": dict(self.audit.left_out),
            "titles": {**TITLES, **{what: title_of(what) for what in self.audit.left_out}},
            "version": importlib.metadata.version("attentest"),
        }
        return known | {"provenance": provenance(known, {**self.made, "command": self.command})}

    def save(self, out: Path | str) -> Path:
        """Write it: .html is a page of its own, .md a section for a model card, .json everything."""
        return FORMATS.write(self.document, out)

    def _repr_html_(self) -> str:
        return fragment(self.document)


def audit(
    model: Any,
    data: Any,
    *,
    tokenizer: Any = None,
    labels: Sequence[str] | Mapping[int, str] | None = None,
    attention: Mapping[str, Any] | None = None,
    budget: str = "standard",
    name: str | None = None,
    text: str | None = None,
    label: str | None = None,
    query: str | None = None,
    rationale: str | None = None,
    lower: bool = False,
    missing: str = REFUSE,
    too_long: str = REFUSE,
    texts: int | None = None,
    seed: int = 0,
    task: str = CLASSIFY,
    prompt: str | None = None,
    mark: str | None = None,
    device: str = "auto",
    dtype: str | None = None,
    batch_size: int | None = None,
    network: bool = False,
    remote_code: bool = False,
    include_text: bool = True,
    store: str | os.PathLike[str] | None = None,
    watcher: Watcher | None = None,
) -> AuditResult:
    """Is this attention an explanation?

    `model` is one of ours, a Hugging Face classifier with its `tokenizer`, a text-classification pipeline,
    the path of a saved model, or an adapter with its `labels`. `attention` chooses among those of a
    transformer: kind, layer, head, words, special_tokens. Where layer or head is "best", every second text
    chooses it, and the others are audited.

    `data` is a data frame, a `datasets.Dataset`, a file (CSV, TSV, JSON Lines, Parquet), or a list of
    strings, dicts or (text, label) pairs; or a corpus: of a table (`read_table`) every row as it is written,
    in file order, of any other the test split. `text`, `label`, `query` and `rationale` name columns;
    texts and labels are guessed by common names otherwise, which the result says. Labels may be missing:
    only accuracy needs them. They may be numbers, in the model's own order.

    `budget` is quick, standard or full; `texts` takes so many of the texts instead, spread evenly. Texts that
    are longer than the model can read are refused, unless `too_long` is "skip" or "truncate". `seed` is of
    every draw. Without `include_text` no text is on the page or in the JSON. `watcher` hears the question
    in words, the share that is done and the seconds that are left, or None. In a `store`, a folder or a URL,
    every question is kept when it is done, and the same audit again goes on from there.

    A causal language model needs a `task`. "prompt": the classes are the next-token logits of `labels`, such
    as " negative, positive", behind a `prompt` such as "Review: {text} Sentiment:". "next-token": one token
    against all others. It is the likeliest next one of the whole text, or the first of the second text
    (`query`, or what stands behind a `mark` in the text).

    `device` is auto, cpu, cuda or mps: "auto" leaves an object where it is, and puts what is loaded on a GPU
    if there is one. `dtype` is float32 for what is loaded, and that of an object, unless it is named ("auto":
    as it was saved). `batch_size` is how many texts are read together at most.
    """
    check_options(budget=budget, missing=missing, too_long=too_long, texts=texts, seed=seed)
    check_options(task=task, device=device, dtype=dtype, batch_size=batch_size)
    check_task(task, prompt, labels, mark)
    choice, best = to_be_chosen(attention)
    check_held(model, network=network, remote_code=remote_code, task=task)
    columns = {"text": text, "label": label, "query": query, "rationale": rationale}
    given = given_texts(data, **columns, lower=lower, missing=missing)
    subject: Model = held_model(
        model,
        tokenizer=tokenizer,
        labels=labels,
        attention=choice,
        network=network,
        remote_code=remote_code,
        task=task,
        prompt=prompt,
        device=device,
        dtype=dtype,
    )
    given = fitted(marked_texts(given, mark), subject.labels)
    examples, long = with_room(subject, given.examples, too_long)
    chosen: Chosen | None = None
    if best:
        subject, examples, chosen = best_row(subject, best, examples, texts or check_budget(budget).texts)
    parameters = audited_digest(subject)
    about = {"parameters": parameters, "attention": attention, "task": task, "prompt": prompt, "mark": mark}
    found = audited(
        subject,
        examples,
        budget,
        watcher,
        seed=seed,
        texts=texts,
        batch_size=batch_size,
        show=True,
        store=None if store is None else Store(store),
        about={"asked": about},
    )
    settings = {"budget": budget, "texts": texts, "seed": seed, "too_long": too_long, "attention": attention}
    settings |= {"task": task, "prompt": prompt, "mark": mark, "device": str(subject.device), "dtype": dtype}
    return AuditResult(
        model=without_path(name or name_of(model)),
        attention=subject.capabilities.attention,
        audit=found,
        made=made_now(subject, [each for each in examples if each.id in set(found.ids)]),
        parameters=parameters,
        kind=subject.capabilities.kind,
        chosen=chosen,
        data=given.about,
        notes=(*given.notes, *subject.capabilities.notes),
        too_long=long,
        settings={option: value for option, value in settings.items() if value is not None},
        command=call({**columns, "labels": labels, **settings, "lower": lower, "missing": missing}, audit),
        include_text=include_text,
    )
