"""A user's own table of texts and labels, as a corpus.

Whatever is wrong with its values is said in one sentence that names the row or column, before any training.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex, final, overload

from attentest.corpus.document import Document
from attentest.corpus.example import Corpus, Example
from attentest.corpus.preparation import Preparation, as_given, prepare
from attentest.corpus.tables.forms import columns_of, digest_of
from attentest.corpus.tables.guessing import column_of
from attentest.corpus.tables.values import (
    checked_labels,
    checked_marks,
    checked_splits,
    checked_texts,
    in_order,
)
from attentest.refusal import Refusal, look_up

# What a user may say of the preparation; the other settings have an argument of their own.
SETTINGS = {setting.name for setting in fields(Preparation)} - {"dev_share", "test_share", "split_seed"}


def digest(path: Path) -> str:
    """The sha256 of a file's bytes."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Refusal(
            f"file {path}", got=f"none ({error.strerror})", needs="a file", way_out="Put it back there."
        ) from error


def check_distinct(where: str, columns: dict[str, str]) -> None:
    """Refuse one column in two roles."""
    twice = [column for column in columns.values() if list(columns.values()).count(column) > 1]
    if twice:
        raise Refusal(
            f"{where}, column {twice[0]!r}",
            got=f"the same column as {' and as '.join(r for r, c in columns.items() if c == twice[0])}",
            needs="a column for each",
            way_out="Name another column.",
        )


@final
class TableRows(Sequence[Example]):
    """Every row of a table in file order, prepared when one is first asked for: training needs none."""

    def __init__(self, documents: Sequence[Document], preparation: Preparation) -> None:
        self.documents, self.preparation = documents, preparation

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The rows as examples."""
        return tuple(as_given(document, self.preparation) for document in self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    @overload
    def __getitem__(self, place: SupportsIndex) -> Example: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Example, ...]: ...

    def __getitem__(self, place: SupportsIndex | slice) -> Example | tuple[Example, ...]:
        return self.examples[place]


def read_table(
    data: Any,
    *,
    text: str | None = None,
    label: str | None = None,
    query: str | None = None,
    rationale: str | None = None,
    name: str | None = None,
    dev_share: float = 0.15,
    test_share: float = 0.15,
    split: str | None = None,
    seed: int = 0,
    **settings: Any,
) -> Corpus:
    """The corpus in a table, whose columns hold a text, its label, and perhaps a question, marks and a split.

    `data` is a file, a data frame, or anything else that holds texts and labels (docs/guides/your-data.md).
    Columns of texts and labels that are not named are guessed by common names, and are in `preparation`.
    `settings` are those of Preparation. Without a split column, or where it names no dev or no test rows,
    shares of each label are drawn, so that a rare label is in every split if it can be. The splits are for
    training. An audit takes `rows`: every row in file order, lower-cased only where `lower=True` is said.
    """
    for setting in settings:
        look_up(setting, dict.fromkeys(sorted(SETTINGS)), "setting of the preparation")
    held = columns_of(data)
    others = [column for column in (query, split, rationale) if column is not None]
    text = column_of("text", held, text, (*others, *([label] if label else [])))
    label = column_of("label", held, label, (*others, text))
    named = {"text": text, "label": label, "query": query, "split": split, "rationale": rationale}
    columns = {role: column for role, column in named.items() if column is not None}
    check_distinct(held.where, columns)
    table = held.read(list(columns.values()))
    if not table:
        raise Refusal(held.where, got="no rows", needs="rows of texts", way_out="Check the file.")
    where = {role: f"{held.where}, column {column!r}" for role, column in columns.items()}
    values = dict(zip(columns, zip(*table, strict=True), strict=True))
    texts = checked_texts(where["text"], "text", values["text"])
    labels = checked_labels(where["label"], _named(values["label"], held.class_names.get(label, ())))
    queries = checked_texts(where["query"], "query", values["query"]) if query else [None] * len(table)
    splits = checked_splits(where["split"], values["split"]) if split else [None] * len(table)
    defaults: dict[str, Any] = {"stratified": True, "keep_sentences": True}
    preparation = Preparation(
        **{**defaults, **settings}, dev_share=dev_share, test_share=test_share, split_seed=seed
    )
    marks: list[tuple[int, ...] | None] = [None] * len(table)
    if rationale:
        marks = checked_marks(where["rationale"], values["rationale"], texts, preparation)
    documents = [
        Document(id=f"row-{number}", text=row[0], label=row[1], query=row[2], split=row[3], rationale=row[4])
        for number, row in enumerate(zip(texts, labels, queries, splits, marks, strict=True), start=1)
    ]
    corpus = prepare(name or held.name, documents, preparation, labels=in_order(set(labels)))
    source = {"sha256": digest(held.path) if held.path else digest_of(table), "columns": columns}
    # A pair of texts with labels of its own is what NLI is; a question whose answer is in the text is not.
    family = "classification" if query is None else "nli"
    untouched = replace(preparation, lower=bool(settings.get("lower", False)))
    return replace(
        corpus,
        family=family,
        preparation={**corpus.preparation, "source": source},
        rows=TableRows(documents, untouched),
    )


def _named(values: Sequence[Any], names: Sequence[str]) -> Sequence[Any]:
    """Numbers of classes as the dataset itself names them, where it does."""
    known = [isinstance(value, int) and 0 <= value < len(names) for value in values]
    return [names[value] for value in values] if all(known) else values
