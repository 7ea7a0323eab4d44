"""`at.audit`: a model and texts in, evidence out. Where the bench, the reading and the report meet."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import pandas as pd

from attentest.auditing.cards import audit_card
from attentest.auditing.choosing import Chosen, best_row, to_be_chosen
from attentest.auditing.digest import audited_digest
from attentest.auditing.models import as_model
from attentest.auditing.page import fragment, write
from attentest.auditing.run import Audit, Watcher, audited, check_budget
from attentest.claims.criteria import Judgement, judged
from attentest.claims.criterion import QUESTIONS, SCOPE
from attentest.corpus.example import Corpus, Example
from attentest.model.seam import Model
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit found. It shows itself in a notebook, and saves itself as a page."""

    model: str
    attention: str
    audit: Audit
    parameters: str = ""  # their digest
    kind: str | None = None  # of model, as error rates know it; None where they do not
    chosen: Chosen | None = None  # how the row was chosen by looking, if it was

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
    def ids(self) -> tuple[str, ...]:
        """The ids of the texts that were audited, in the order they were given."""
        return self.audit.ids

    @property
    def left_out(self) -> dict[str, str]:
        """What was not measured, and why."""
        return self.audit.left_out

    @cached_property
    def document(self) -> dict[str, Any]:
        """All of it as plain values, for programs and pages."""
        names = dict.fromkeys((f.experiment, f.measure.partition("@")[0]) for f in self.audit.findings)
        return {
            "model": self.model,
            "attention": self.attention,
            "parameters": self.parameters,
            "budget": self.audit.budget,
            "texts": self.audit.texts,
            "of": self.audit.of,
            "ids": list(self.audit.ids),
            "labels": list(self.audit.labels),
            "kind": self.kind,
            "chosen": None if self.chosen is None else self.chosen.document,
            "scope": SCOPE,
            "questions": dict(QUESTIONS),
            "criteria": [judgement.document for judgement in self.criteria],
            "findings": [asdict(finding) for finding in self.audit.findings],
            "cards": {f"{e}/{m}": asdict(audit_card(e, m)) for e, m in names},
            "seconds": dict(self.audit.seconds),
            "left_out": dict(self.audit.left_out),
            "version": importlib.metadata.version("attentest"),
        }

    def save(self, out: Path | str) -> Path:
        """Write it: .html is a page of its own, .md a section for a model card, .json everything."""
        return write(self.document, out)

    def _repr_html_(self) -> str:
        return fragment(self.document)


def audit(
    model: Any,
    data: Corpus | Iterable[Any],
    *,
    tokenizer: Any = None,
    labels: Sequence[str] | None = None,
    attention: Mapping[str, Any] | None = None,
    budget: str = "standard",
    name: str | None = None,
    watcher: Watcher | None = None,
) -> AuditResult:
    """Is this attention an explanation?

    `data` is a table (`read_table`), of which every row is audited as it is written, in file order; any other
    corpus, of which the test split is; or examples. A budget that takes fewer texts spreads them evenly.

    `model` is one of ours, a Hugging Face classifier with its `tokenizer`, or an adapter with its `labels`;
    `attention` chooses among those of a transformer: kind, layer, head, words, special_tokens. Where layer or
    head is "best", every second text chooses it, and the others are audited. `budget` is quick, standard or
    full; `watcher` hears how many of the questions are done.
    """
    choice, best = to_be_chosen(attention)
    subject: Model = as_model(model, tokenizer=tokenizer, labels=labels, attention=choice)
    examples = tuple((data.rows or data.test) if isinstance(data, Corpus) else data)
    strange = next((one for one in examples if not isinstance(one, Example)), None)
    if strange is not None:
        raise Refusal(
            "texts of an audit",
            got=f"a {type(strange).__name__}",
            needs="examples, or a corpus",
            way_out="at.read_table makes a corpus of a table.",
        )
    chosen: Chosen | None = None
    if best:
        subject, examples, chosen = best_row(subject, best, examples, check_budget(budget).texts)
    return AuditResult(
        model=name or type(model).__name__,
        attention=subject.capabilities.attention,
        audit=audited(subject, examples, budget, watcher),
        parameters=audited_digest(subject),
        kind=subject.capabilities.kind,
        chosen=chosen,
    )
