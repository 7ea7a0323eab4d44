"""What people hold texts in, as named columns: a file, a data frame, a dataset, lists of several kinds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd

from attentest.corpus.tables.rows import header, place_of, rows
from attentest.refusal import Refusal

NEEDS = (
    "a file (CSV, TSV, JSON Lines, Parquet), a data frame, a datasets.Dataset, or a list of strings, of"
    " dicts or of (text, label) pairs"
)


@final
@dataclass(frozen=True, eq=False)
class Columns:
    """Named columns of values, in a file or in memory."""

    form: str  # what holds them: "table", "data frame", "list of dicts", ...
    name: str
    known: tuple[str, ...] = ()  # names of columns, but for those of a file
    path: Path | None = None  # of a file, which is read when columns are asked for
    values: Mapping[str, list[Any]] = field(default_factory=dict)  # of anything else
    ids: tuple[str, ...] | None = None  # of the rows, where they have names of their own
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by column of numbers

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return self.known if self.path is None else tuple(header(self.path))

    @property
    def where(self) -> str:
        """What an error calls it."""
        return f"{self.form} {self.name}" if self.path is None else f"table {self.path}"

    def read(self, wanted: Sequence[str]) -> list[list[Any]]:
        """The values of these columns, row by row; a column that is not there is refused."""
        if self.path is not None:
            return list(rows(self.path, list(wanted)))
        for column in wanted:
            place_of(self.where, column, self.names)
        return [list(row) for row in zip(*(self.values[column] for column in wanted), strict=True)]


def columns_of(data: Any) -> Columns:
    """The columns of anything that holds texts; what holds none is refused."""
    if isinstance(data, str | Path):
        path = Path(data)
        return Columns("table", path.name.split(".")[0] or path.name, path=path)
    if isinstance(data, pd.Series):
        return _of_frame(data.to_frame("text"), "list of texts")
    if isinstance(data, pd.DataFrame):
        return _of_frame(data, "data frame")
    if hasattr(data, "column_names") or hasattr(data, "to_pandas"):
        return _of_dataset(data)
    if isinstance(data, Mapping):
        return _of_mapping(data, "dict of columns")
    if isinstance(data, Iterable) and not isinstance(data, bytes):
        return _of_list(list(data))
    raise _refusal(f"a {type(data).__name__}", "docs/guides/your-data.md shows each form.")


def _of_dataset(data: Any) -> Columns:
    """A Hugging Face dataset, or whatever gives a data frame or columns by name as one does."""
    splits = getattr(data, "column_names", None)
    if isinstance(splits, Mapping):
        raise _refusal(
            f"a {type(data).__name__}", f"Choose a split of it: data[{next(iter(splits), 'test')!r}]."
        )
    if hasattr(data, "to_pandas"):
        return _of_frame(data.to_pandas(), "dataset", _class_names(data))
    if splits and hasattr(data, "__getitem__"):
        return _of_mapping({name: data[name] for name in splits}, "dataset", _class_names(data))
    return _of_list(list(data), _class_names(data))  # one that is streamed


def digest_of(table: Sequence[Sequence[Any]]) -> str:
    """The sha256 of values that are in no file: of their JSON, one row a line."""
    found = hashlib.sha256()
    for row in table:
        found.update(json.dumps(row, default=str).encode() + b"\n")
    return found.hexdigest()


def _of_frame(
    frame: pd.DataFrame, form: str, class_names: Mapping[str, tuple[str, ...]] | None = None
) -> Columns:
    """Every column as plain Python values, None where there is none; an index that has names gives ids."""
    names = tuple(map(str, frame.columns))
    values = {name: _plain(frame.iloc[:, place]) for place, name in enumerate(names)}
    index = None
    if form != "dataset" and not isinstance(frame.index, pd.RangeIndex) and frame.index.is_unique:
        index = tuple(map(str, frame.index))
    return _filled(Columns(form, "data", names, values=values, ids=index, class_names=class_names or {}))


def _plain(column: pd.Series) -> list[Any]:
    whole = column.astype(object)
    found = whole.where(column.notna(), None).tolist()
    return [value.tolist() if isinstance(value, np.ndarray | np.generic) else value for value in found]


def _of_mapping(
    data: Mapping[Any, Any], form: str, class_names: Mapping[str, tuple[str, ...]] | None = None
) -> Columns:
    scalar = next((name for name, column in data.items() if not _is_column(column)), None)
    if scalar is not None:
        raise _refusal(f"a dict whose {scalar!r} is no column", "Put one dict for each text into a list.")
    values = {str(name): list(column) for name, column in data.items()}
    if len({len(column) for column in values.values()}) > 1:
        raise _refusal("columns of several lengths", "Give every column one value for each text.")
    return _filled(Columns(form, "data", tuple(values), values=values, class_names=class_names or {}))


def _is_column(column: Any) -> bool:
    return isinstance(column, Iterable) and not isinstance(column, str | bytes | Mapping)


def _of_list(items: list[Any], class_names: Mapping[str, tuple[str, ...]] | None = None) -> Columns:
    """Strings, dicts or pairs: whatever the first item is, all must be."""
    if not items:
        raise _refusal("an empty list", "Give at least 2 texts.")
    kinds = [_kind(item) for item in items]
    other = next((place for place, kind in enumerate(kinds) if kind != kinds[0] or not kind), None)
    if other is not None:
        found = f"a {type(items[other]).__name__} as item {other + 1}"
        raise _refusal(found, "Items must be strings, dicts or (text, label) pairs, all of one kind.")
    if kinds[0] == "string":
        return Columns("list of texts", "data", ("text",), values={"text": [str(item) for item in items]})
    if kinds[0] == "pair":
        texts, labels = (list(column) for column in zip(*items, strict=True))
        return Columns("list of pairs", "data", ("text", "label"), values={"text": texts, "label": labels})
    names = dict.fromkeys(name for item in items for name in item)
    values = {str(name): [item.get(name) for item in items] for name in names}
    return Columns("list of dicts", "data", tuple(values), values=values, class_names=class_names or {})


def _kind(item: Any) -> str:
    if isinstance(item, str):
        return "string"
    if isinstance(item, Mapping):
        return "dict"
    return "pair" if isinstance(item, list | tuple) and len(item) == 2 else ""


def _filled(columns: Columns) -> Columns:
    if not columns.names or not any(columns.values.values()):
        raise _refusal(f"a {columns.form} without rows", "Give at least 2 texts.")
    return columns


def _class_names(dataset: Any) -> dict[str, tuple[str, ...]]:
    """What the numbers of a dataset's label columns stand for."""
    features = getattr(dataset, "features", None)
    if not isinstance(features, Mapping):
        return {}
    named = {str(name): getattr(feature, "names", None) for name, feature in features.items()}
    return {name: tuple(map(str, names)) for name, names in named.items() if names}


def _refusal(got: str, way_out: str) -> Refusal:
    return Refusal("texts", got=got, needs=NEEDS, way_out=way_out)
