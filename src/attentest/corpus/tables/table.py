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
from attentest.corpus.tables.columns import READER, TableColumns, checked_columns
from attentest.corpus.tables.forms import columns_of, digest_of
from attentest.corpus.tables.guessing import column_of
from attentest.corpus.tables.values import checked_splits, in_order
from attentest.corpus.tables.words_for_nothing import REFUSE
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


def table_digest(table: TableColumns) -> str:
    """Of a file its bytes', of anything else that of the values that were read."""
    return digest(table.held.path) if table.held.path else digest_of(table.table)


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
    missing: str = REFUSE,
    **settings: Any,
) -> Corpus:
    """The corpus in a table, whose columns hold a text, its label, and perhaps a question, marks and a split.

    `data` is a file, a data frame, or anything else that holds texts and labels (docs/guides/your-data.md).
    Columns of texts and labels that are not named are guessed by common names, and are in `preparation`.
    `settings` are those of Preparation. Without a split column, or where it names no dev or no test rows,
    shares of each label are drawn, so that a rare label is in every split if it can be. The splits are for
    training. An audit takes `rows`: every row in file order, lower-cased only where `lower=True` is said.
    Labels such as "NA" and "nan" are refused until `missing` says what they are: class, or drop their rows.
    """
    for setting in settings:
        look_up(setting, dict.fromkeys(sorted(SETTINGS)), "setting of the preparation")
    held = columns_of(data)
    others = [column for column in (query, split, rationale) if column is not None]
    text = column_of("text", held, text, (*others, *([label] if label else [])))
    label = column_of("label", held, label, (*others, text))
    named = {"text": text, "label": label, "query": query, "split": split, "rationale": rationale}
    columns = {role: column for role, column in named.items() if column is not None}
    table = checked_columns(held, columns, missing)
    texts, queries, labels = table.texts("text"), table.texts("query"), table.labels(to_learn=True)
    splits = checked_splits(table.where("split"), table.values["split"]) if split else [None] * len(table)
    defaults: dict[str, Any] = {"stratified": True, "keep_sentences": True}
    preparation = Preparation(
        **{**defaults, **settings}, dev_share=dev_share, test_share=test_share, split_seed=seed
    )
    marks = table.marks(texts, preparation)
    documents = [
        Document(id=f"row-{row[0]}", text=row[1], label=row[2], query=row[3], split=row[4], rationale=row[5])
        for row in zip(table.numbers, texts, labels, queries, splits, marks, strict=True)
    ]
    corpus = prepare(name or held.name, documents, preparation, labels=in_order(set(labels)))
    source: dict[str, Any] = {"reader": READER, "sha256": table_digest(table), "columns": columns}
    if missing != REFUSE:
        source["missing"] = missing
    if table.dropped:
        excluded = {**corpus.excluded, "label that reads as none": table.dropped}
        corpus = replace(corpus, excluded=excluded)
    # A pair of texts with labels of its own is what NLI is; a question whose answer is in the text is not.
    family = "classification" if query is None else "nli"
    untouched = replace(preparation, lower=bool(settings.get("lower", False)))
    return replace(
        corpus,
        family=family,
        preparation={**corpus.preparation, "source": source},
        rows=TableRows(documents, untouched),
    )
