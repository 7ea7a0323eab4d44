"""The texts of an audit: whatever people hold them in, as examples, with what was guessed said in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from attentest.corpus.document import Document
from attentest.corpus.example import UNLABELLED, Corpus, Example, enumerated
from attentest.corpus.preparation import Preparation, as_given
from attentest.corpus.tables.columns import TableColumns, checked_columns
from attentest.corpus.tables.forms import Columns, columns_of
from attentest.corpus.tables.guessing import column_of, guessed
from attentest.corpus.tables.table import table_digest
from attentest.corpus.tables.words_for_nothing import REFUSE, is_missing
from attentest.foreign.prompt import NEXT_LABELS, split_at
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, eq=False)
class GivenTexts:
    """Examples, where they came from, and what a reader of the result must know of that."""

    examples: tuple[Example, ...]
    about: Mapping[str, Any]  # form, name, columns, sha256
    notes: tuple[str, ...] = ()
    guessed_labels: str | None = None  # the column of labels, if nobody named it
    class_names: tuple[str, ...] = field(default=())  # of labels that are numbers, by whoever made the data


def given_texts(
    data: Any,
    *,
    text: str | None = None,
    label: str | None = None,
    query: str | None = None,
    rationale: str | None = None,
    lower: bool = False,
    missing: str = REFUSE,
) -> GivenTexts:
    """The texts in anything that holds some; columns are for tables, and are guessed where they may be."""
    if isinstance(data, GivenTexts):
        return data
    named = {"text": text, "label": label, "query": query, "rationale": rationale}
    if isinstance(data, Corpus):
        _no_columns(named, "a corpus")
        return GivenTexts(tuple(data.rows or data.test), _about("corpus", data.name))
    if _one_pass(data):
        data = list(data)
    if isinstance(data, Sequence) and any(isinstance(one, Example) for one in data):
        _no_columns(named, "examples")
        _check_examples(data)
        return GivenTexts(tuple(data), _about("examples", None))
    preparation = Preparation(stratified=True, keep_sentences=True, lower=lower)
    return _of_columns(columns_of(data), named, preparation, missing)


def _about(form: str, name: str | None) -> dict[str, Any]:
    return {"form": form, "name": name, "file": None, "columns": {}, "sha256": None}


def _one_pass(data: Any) -> bool:
    """Whether looking at it would use it up, as of a generator."""
    return isinstance(data, Iterable) and iter(data) is data


def _no_columns(named: Mapping[str, str | None], what: str) -> None:
    given = [role for role, column in named.items() if column is not None]
    if given:
        raise Refusal(
            f"a column for {given[0]}",
            got=what,
            needs="a table: a file, a data frame, a dataset or a list of dicts",
            way_out=f"Leave {', '.join(given)} out.",
        )


def _check_examples(data: Sequence[Any]) -> None:
    strange = next((one for one in data if not isinstance(one, Example)), None)
    if strange is not None:
        raise Refusal(
            "texts of an audit",
            got=f"a {type(strange).__name__} among examples",
            needs="examples alone, or something else alone",
            way_out="at.read_table makes a corpus of a table.",
        )


def _of_columns(
    held: Columns, named: Mapping[str, str | None], preparation: Preparation, missing: str
) -> GivenTexts:
    columns, notes = _chosen(held, named)
    table = checked_columns(held, columns, missing)
    texts, queries = table.texts("text"), table.texts("query")
    marks = table.marks(texts, preparation)
    labels, doubt = _labels(table, asked=named["label"] is not None)
    ids, about_ids = _ids(table)
    documents = [
        Document(id=row[0], text=row[1], label=row[2], query=row[3], rationale=row[4])
        for row in zip(ids, texts, labels, queries, marks, strict=True)
    ]
    left_out = f"{table.dropped} rows were left out, whose label reads as none." if table.dropped else None
    return GivenTexts(
        tuple(as_given(document, preparation) for document in documents),
        {
            **_about(held.form, held.name),
            "file": None if held.path is None else held.path.name,
            "columns": columns,
            "sha256": table_digest(table),
        },
        tuple(note for note in (*notes, doubt, about_ids, left_out) if note),
        None if named["label"] else columns.get("label"),
        held.class_names.get(columns.get("label", ""), ()),
    )


def _chosen(held: Columns, named: Mapping[str, str | None]) -> tuple[dict[str, str], list[str]]:
    """The columns by role: those that were named, and those of a common name where none was."""
    columns = {role: column for role, column in named.items() if column is not None}
    found = {}
    if "text" not in columns:
        found["text"] = column_of("text", held, None, [*columns.values()])
    for role in ("label", "id"):
        column = guessed(role, held.names, [*columns.values(), *found.values()])
        if role not in columns and column is not None:
            found[role] = column
    said = [f"{column!r} for each {role}" for role, column in found.items() if role != "id"]
    in_order = ("text", "label", "query", "rationale", "id")
    chosen = {role: {**columns, **found}[role] for role in in_order if role in {**columns, **found}}
    named_at_all = held.path is not None or len(held.names) > 2 or "list" not in held.form
    return chosen, [f"Columns taken by their names: {', '.join(said)}."] if said and named_at_all else []


def _labels(table: TableColumns, *, asked: bool) -> tuple[list[str], str | None]:
    """The labels; guessed ones that have gaps are none, and that is said."""
    given = table.values.get("label")
    if given is None or all(map(is_missing, given)):
        return [UNLABELLED] * len(table), None
    if not asked and any(map(is_missing, given)):
        note = f"{table.where('label')}: not used, since some rows have no value there."
        return [UNLABELLED] * len(table), note
    return table.labels(to_learn=False), None


def _ids(table: TableColumns) -> tuple[list[str], str | None]:
    """The ids that the rows have already, if each has another one, or their numbers."""
    values = table.values.get("id", ())
    own = [str(value).strip() for value in values]
    if own and len(set(own)) == len(own) and not any(map(is_missing, values)):
        return own, f"Texts are called by the column {table.columns['id']!r}."
    index = table.held.ids
    return [f"row-{n}" if index is None else index[n - 1] for n in table.numbers], None


def fitted(given: GivenTexts, labels: Sequence[str]) -> GivenTexts:
    """The same texts with their labels as the model names its classes, where that is not in doubt.

    By name; else by name in any case; else as numbers from 0 in the model's own order. Labels of a column
    that nobody named, and that fit in no way, are left out; others are left for the model to refuse.
    """
    found = {example.label for example in given.examples} - {UNLABELLED}
    if found <= set(labels):
        return given
    if tuple(labels) == NEXT_LABELS:
        return _unlabelled(given, found, "Labels were not used: the next token is asked about.")
    named, note = _renamed(found, labels, given.class_names)
    if named:
        return replace(given, examples=_relabelled(given.examples, named), notes=(*given.notes, note))
    if given.guessed_labels is None:
        return given
    note = (
        f"The column {given.guessed_labels!r} was not used: it holds {enumerated(sorted(found))}; the model"
        f" has {enumerated(labels)}."
    )
    return _unlabelled(given, found, note)


def _unlabelled(given: GivenTexts, found: set[str], note: str) -> GivenTexts:
    examples = _relabelled(given.examples, dict.fromkeys(found, UNLABELLED))
    return replace(given, examples=examples, notes=(*given.notes, note))


def marked_texts(given: GivenTexts, mark: str | None) -> GivenTexts:
    """Each text up to its mark, and behind it what follows; without a mark they stay whole."""
    if mark is None:
        return given
    return replace(given, examples=tuple(split_at(example, mark) for example in given.examples))


def _renamed(
    found: set[str], labels: Sequence[str], class_names: Sequence[str]
) -> tuple[dict[str, str], str]:
    numbers = {f"{head}{number}": name for number, name in enumerate(labels) for head in ("", "LABEL_")}
    lowered = {name.lower(): name for name in labels}
    own = {str(number): name for number, name in enumerate(class_names)}
    if found <= set(own) and all(name.lower() in lowered for name in own.values()):
        named = {number: lowered[name.lower()] for number, name in own.items() if number in found}
        return named, f"Labels are numbers, which the data names: {_pairs(named)}."
    if len(lowered) == len(labels) and all(name.lower() in lowered for name in found):
        named = {name: lowered[name.lower()] for name in found}
        return named, f"Labels were matched with the model's in any case: {_pairs(named)}."
    if found <= set(numbers):
        named = {number: numbers[number] for number in found}
        return named, f"Labels are numbers, taken in the model's own order of classes: {_pairs(named)}."
    return {}, ""


def _pairs(named: Mapping[str, str]) -> str:
    return ", ".join(f"{given} is {name}" for given, name in sorted(named.items())[:20])


def _relabelled(examples: Sequence[Example], named: Mapping[str, str]) -> tuple[Example, ...]:
    return tuple(replace(each, label=named.get(each.label, each.label)) for each in examples)
