"""Records of a publisher's file, one at a time: separated values or JSON Lines, refused by line number."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from attentest.refusal import Refusal

Value = TypeVar("Value")


class Line(NamedTuple):
    """Where a record ends, for its id and for what may be wrong with it."""

    where: str
    number: int

    def refusal(self, got: str, needs: str) -> Refusal:
        """The refusal to raise when this record is not as the publisher writes them."""
        return Refusal(
            f"{self.where}, line {self.number}",
            got=got,
            needs=needs,
            way_out="The file is damaged or not the publisher's: get it again.",
        )


@contextmanager
def any_field_size() -> Iterator[None]:
    """Lift csv's limit of 128 KiB a field, which a book or a patient's notes pass easily."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _rows(lines: Iterator[str], where: str) -> Iterator[tuple[Line, list[str]]]:
    # Strict, for an unclosed quotation mark would otherwise swallow the rest of the file into one text.
    reader = csv.reader(lines, strict=True)
    with any_field_size():
        try:
            for row in reader:
                if row:
                    yield Line(where, reader.line_num), row
        except csv.Error as error:
            wrong = Line(where, reader.line_num)
            raise wrong.refusal(f"wrong quotation marks ({error})", "fields that are quoted whole") from error


def _empty(where: str) -> Refusal:
    # A split without texts must not pass for a split that the publisher does not give.
    return Refusal(
        where,
        got="nothing in it",
        needs="at least one record",
        way_out="The download may have been cut short: get it again.",
    )


def _ragged(line: Line, row: Sequence[str], columns: Sequence[str]) -> Refusal:
    return line.refusal(f"{len(row)} fields", f"{len(columns)}: {', '.join(columns)}")


def separated(
    lines: Iterator[str], columns: Sequence[str], *, where: str
) -> Iterator[tuple[Line, list[str]]]:
    """The rows of a CSV file without a header; `columns` says how many fields there are, and which."""
    empty = True
    for line, row in _rows(lines, where):
        if len(row) != len(columns):
            raise _ragged(line, row, columns)
        empty = False
        yield line, row
    if empty:
        raise _empty(where)


def headed(
    lines: Iterator[str], columns: Sequence[str], *, where: str
) -> Iterator[tuple[Line, dict[str, str]]]:
    """The rows of a CSV file whose header has at least these columns, under their names in capitals."""
    rows = _rows(lines, where)
    line, header = next(rows, (None, []))
    if line is None:
        raise _empty(where)
    header = [name.upper() for name in header]
    missing = [column for column in columns if column not in header]
    if missing:
        raise line.refusal(f"no column {', no column '.join(missing)}", "the publisher's header")
    for line, row in rows:
        if len(row) != len(header):
            raise _ragged(line, row, header)
        yield line, dict(zip(header, row, strict=True))


def numbered(lines: Iterator[str], *, where: str) -> Iterator[tuple[Line, str]]:
    """The lines that are not blank, without their ends."""
    empty = True
    for number, text in enumerate(lines, start=1):
        if text.strip():
            empty = False
            yield Line(where, number), text.rstrip("\r\n")
    if empty:
        raise _empty(where)


def objects(lines: Iterator[str], *, where: str) -> Iterator[tuple[Line, dict[str, Any]]]:
    """The objects of a JSON Lines file."""
    for line, text in numbered(lines, where=where):
        yield line, _object(line, text)


def _object(line: Line, text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise line.refusal(f"no JSON ({error})", "one JSON object on each line") from error
    if not isinstance(record, dict):
        raise line.refusal(f"JSON that is a {type(record).__name__}", "one JSON object on each line")
    return record


def value(record: Any, name: str, kind: type[Value], line: Line) -> Value:
    """One value of an object, which must be there and of that kind."""
    found = record.get(name) if isinstance(record, dict) else None
    if not isinstance(found, kind):
        got = f"no {name}" if found is None else f"a {name} that is a {type(found).__name__}"
        raise line.refusal(got, f"a {kind.__name__} under {name!r}")
    return found
