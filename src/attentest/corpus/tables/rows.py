"""The rows of a user's file: CSV, TSV, JSON Lines or Parquet, read one by one and refused by line number."""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import json
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attentest.corpus.tables.records import any_field_size
from attentest.refusal import Refusal

LONGEST = 1 << 28  # bytes of a line
QUOTED = "fields that are quoted whole or not at all"


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file, gzipped or not, decoded one by one so that a bad byte has a line number."""
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as file:
            for number, line in enumerate(iter(partial(file.readline, LONGEST), b""), start=1):
                yield _decoded(path, number, line)
    except (EOFError, OSError, zlib.error) as error:
        raise Refusal(
            f"table {path}",
            got=f"something unreadable ({error})",
            needs="a whole and undamaged file",
            way_out="Copy or compress it again.",
        ) from error


def _decoded(path: Path, number: int, line: bytes) -> str:
    wrong = None
    if len(line) == LONGEST:
        wrong = f"a line of {LONGEST >> 20} MB or more"
    elif number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        wrong = "text in UTF-16"
    elif b"\0" in line:
        wrong = "a NUL byte, as in binary files and UTF-16"
    else:
        try:
            return (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).decode("utf-8")
        except UnicodeDecodeError:
            wrong = "a byte that is not UTF-8"
    raise Refusal(
        f"table {path}, line {number}", got=wrong, needs="text in UTF-8", way_out="Save the table as UTF-8."
    )


def place_of(where: str, column: str, there: Sequence[str]) -> int:
    """Where a column is, or a refusal that lists the columns there are and the one that was meant."""
    if there.count(column) == 1:
        return there.index(column)
    lowered = {name.lower(): name for name in reversed(there)}
    alike = difflib.get_close_matches(column.lower(), lowered, n=1, cutoff=0.5)
    way_out = f"Did you mean {lowered[alike[0]]!r}?" if alike else "The first row must hold the names."
    separator = next((sign for sign in (";", "\t", "|") if len(there) == 1 and sign in there[0]), None)
    if separator:
        way_out = f"The columns seem to be separated by {separator!r}: save the table with commas."
    raise Refusal(
        f"{where}, column {column!r}",
        got="two columns of that name" if column in there else "no column of that name",
        needs=f"one of {', '.join(map(repr, there[:20]))}" + (", ..." if len(there) > 20 else ""),
        way_out=way_out,
    )


def _separated_rows(path: Path, wanted: list[str], *, delimiter: str) -> Iterator[list[Any]]:
    # Strict, for an unclosed quotation mark would otherwise swallow the rest of the file into one text.
    reader = csv.reader(_lines(path), delimiter=delimiter, strict=True)
    wrong = None
    with any_field_size():
        try:
            rows = (row for row in reader if row)
            header = next(rows, [])
            places = [place_of(f"table {path}", column, header) for column in wanted]
            for row in rows:
                if len(row) != len(header):
                    wrong = f"{len(row)} fields", f"{len(header)}, as in the header"
                    break
                yield [row[place] for place in places]
        except csv.Error as error:
            wrong = f"wrong quotation marks ({error})", QUOTED
    if wrong:
        raise _misquoted(path, reader.line_num, *wrong)


def _misquoted(path: Path, line: int, got: str, needs: str) -> Refusal:
    return Refusal(
        f"table {path}, line {line}",
        got=got,
        needs=needs,
        way_out='Put texts in "quotation marks", doubled where they occur inside, or save as .jsonl.',
    )


def _json_rows(path: Path, wanted: list[str]) -> Iterator[list[Any]]:
    first = True
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        record = _json_record(path, number, line)
        if first:
            for column in wanted:
                place_of(f"table {path}", column, list(record))
            first = False
        yield [record.get(column) for column in wanted]


def _json_record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=_named_once)
        wrong = None if isinstance(record, dict) else f"JSON that is a {type(record).__name__}"
    except (ValueError, RecursionError) as error:
        wrong = f"no JSON ({error})"
    if wrong:
        raise Refusal(
            f"table {path}, line {number}",
            got=wrong,
            needs="one JSON object on each line",
            way_out="Mend that line.",
        )
    return record


def _named_once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, whose names must differ: of two values of one name none is the right one."""
    record = dict(fields)
    if len(record) < len(fields):
        raise ValueError("two fields of one name")
    return record


def _parquet_rows(path: Path, wanted: list[str]) -> Iterator[list[Any]]:
    with _parquet(path) as file:
        for column in wanted:
            place_of(f"table {path}", column, file.schema_arrow.names)
        for batch in file.iter_batches(columns=wanted):
            values = [batch.column(column).to_pylist() for column in wanted]
            yield from map(list, zip(*values, strict=True))


@contextmanager
def _parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """An open Parquet file; what is none is refused."""
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise Refusal(
            f"table {path}",
            got=f"something that is no Parquet ({str(error).splitlines()[0]})",
            needs="a Parquet file",
            way_out="Write it again, or check the name.",
        ) from error


READERS: dict[str, Callable[[Path, list[str]], Iterator[list[Any]]]] = {
    ".csv": partial(_separated_rows, delimiter=","),
    ".tsv": partial(_separated_rows, delimiter="\t"),
    ".jsonl": _json_rows,
    ".csv.gz": partial(_separated_rows, delimiter=","),
    ".tsv.gz": partial(_separated_rows, delimiter="\t"),
    ".jsonl.gz": _json_rows,
    ".parquet": _parquet_rows,
}


def _fault(path: Path, suffix: str) -> str | None:
    """Why this is no file to read, if it is none."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in a path is a ValueError
        return "nothing at that path"
    except OSError as error:
        return f"nothing that can be opened ({error.strerror})"
    if stat.S_ISDIR(status.st_mode):
        return "a folder"
    if not suffix:
        return f"a file that ends in {path.suffix!r}"
    return "an empty file" if status.st_size == 0 else None


def _suffix(path: Path) -> str:
    """The ending that says how to read a file, or a refusal where it is no file that can be read."""
    suffix = next((known for known in READERS if path.name.lower().endswith(known)), "")
    wrong = _fault(path, suffix)
    if wrong:
        needs = f"a file that ends in {', '.join(READERS)}"
        raise Refusal(f"table {path}", got=wrong, needs=needs, way_out="Check the path, or convert the file.")
    return suffix


def rows(path: Path, columns: list[str]) -> Iterator[list[Any]]:
    """The values of these columns, row by row. Text formats give strings, the others what they hold."""
    return READERS[_suffix(path)](path, columns)


def header(path: Path) -> list[str]:
    """The names of a file's columns; of JSON Lines those of the first record."""
    suffix = _suffix(path)
    if suffix == ".parquet":
        with _parquet(path) as file:
            return list(file.schema_arrow.names)
    if suffix.startswith(".jsonl"):
        first = next(((n, line) for n, line in enumerate(_lines(path), start=1) if line.strip()), None)
        return list(_json_record(path, *first)) if first else []
    reader = csv.reader(_lines(path), delimiter="," if suffix.startswith(".csv") else "\t", strict=True)
    try:
        with any_field_size():
            return next((row for row in reader if row), [])
    except csv.Error as error:
        raise _misquoted(path, reader.line_num, f"wrong quotation marks ({error})", QUOTED) from error
