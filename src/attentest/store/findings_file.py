"""Findings as one Parquet file: what leaves a store when results are shared, and nothing else.

A row is one finding. Columns are an allow-list: settings, numbers, keys and digests. There is no column for a
token, for the id of a text or for a weight. What is the same for all rows of a cell is repeated in each of
them, so that a row can be read alone; dictionaries and zstd make that cheap.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from attentest.refusal import Refusal

TEXT, WHOLE, REAL = pa.string(), pa.int64(), pa.float64()
# The same in every row of a finding cell.
CELL: dict[str, pa.DataType] = {
    "cell": TEXT,  # the key of the finding
    "version": WHOLE,  # of the conclusion
    "experiment": TEXT,
    "mode": TEXT,
    "parameters": TEXT,  # of the experiment, canonical JSON
    "corpus": TEXT,
    "encoder": TEXT,
    "attention": TEXT,
    "projection": TEXT,
    "model": TEXT,  # the settings of the models, canonical JSON
    "seed": pa.list_(WHOLE),
    "observation": pa.list_(TEXT),  # its key, by seed
    "trained_model": pa.list_(TEXT),  # its key, by seed; "" where the store no longer knew it
    "device": pa.list_(TEXT),  # where it was trained
    "torch": pa.list_(TEXT),  # the version that trained it
    "parameters_sha256": pa.list_(TEXT),
    "seed_reason": TEXT,  # why there are no numbers of single seeds; "" where there are
    "described_corpus": TEXT,  # cells without their data, canonical JSON: see descriptions.py
    "described_observations": pa.list_(TEXT),
    "described_models": pa.list_(TEXT),
    "attentest": TEXT,  # the version that exported it
    "checksum": TEXT,  # of all the rows of the cell
}
# What differs from row to row; together with experiment and mode, the columns of findings.parquet.
ROW: dict[str, pa.DataType] = {
    "measure": TEXT,
    "group": TEXT,
    "estimate": REAL,
    "std": REAL,
    "seed_std": REAL,
    "low": REAL,
    "high": REAL,
    "interval": TEXT,
    "n": WHOLE,
    "seeds": WHOLE,
    "excluded": WHOLE,
    "why": TEXT,
    "null": REAL,
    "seed_estimate": pa.list_(REAL),  # in the order of `seed`
    "error": REAL,
    "freedom": REAL,
    "by_seed": TEXT,
}
LATER = {"error": 2, "freedom": 2, "by_seed": 2}  # columns of rows by the first format that has them
NEWEST = max(LATER.values())  # what is written; earlier formats are read as well
FORMATS = {b"findings %d" % number: number for number in range(1, NEWEST + 1)}
FORMAT = [*FORMATS][-1]
# The columns of findings.parquet in their order, and the types that they have there.
_STORED = ("experiment", *(name for name in ROW if name not in LATER), "mode", *LATER)
_DTYPES = {TEXT: "str", WHOLE: "int64", REAL: "float64"}
COLUMNS = {name: _DTYPES[(CELL | ROW)[name]] for name in _STORED if name != "seed_estimate"}
# The digest of the file is written into its own footer, over as many zeros. What opens Parquet may end the
# whole process over a damaged footer, so the digest is looked at first.
UNSEALED = b"0" * 64
SEAL = b"\x18\x06sha256\x18\x40"  # in Thrift's compact protocol: the name, and a value of 64 bytes
LABEL = b"\x18\x09attentest\x18"  # the name under which the footer says the format
SCHEMA = pa.schema([*CELL.items(), *ROW.items()], metadata={b"attentest": FORMAT, b"sha256": UNSEALED})
EACH = CELL | ROW
LEAVES = {name: f"{name}.list.element" if pa.types.is_list(kind) else name for name, kind in EACH.items()}
REALS = [LEAVES[name] for name, kind in EACH.items() if REAL in (kind, getattr(kind, "value_type", None))]
TEXTS = [LEAVES[name] for name, kind in EACH.items() if TEXT in (kind, getattr(kind, "value_type", None))]
GROUP_ROWS = 50_000  # rows of a row group, at least: a cell is never split between two

# What a file may claim before any of it is unpacked. All reproductions of the package fit many times.
MOST_BYTES = 256 * 2**20
MOST_UNPACKED = 2 * 2**30
MOST_ROWS, MOST_GROUP_ROWS, MOST_VALUES = 5_000_000, 1_000_000, 20_000_000
LONGEST_TEXT, MOST_SEEDS = 2**20, 1000


@final
@dataclass(frozen=True)
class CellRows:
    """All rows of one finding cell: what they share, and a list or an array for each other column."""

    shared: dict[str, Any]
    rows: dict[str, Any]

    def __len__(self) -> int:
        return len(self.rows["measure"])


def encode(cells: Iterable[CellRows]) -> bytes:
    """The file's bytes; the same cells in the same order give the same bytes."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        SCHEMA,
        compression="zstd",
        compression_level=19,
        use_dictionary=[path for path in LEAVES.values() if path not in REALS],
        use_byte_stream_split=REALS,
        dictionary_pagesize_limit=MOST_UNPACKED // 4,  # beyond it a column would be written out row by row
        write_statistics=False,
    ) as writer:
        for group in _row_groups(cells):
            table = _table(group)
            writer.write_table(table, row_group_size=len(table))
    return sealed(sink.getvalue().to_pybytes())


def sealed(content: bytes) -> bytes:
    """The file with its own digest in it; content that has no place for one is left as it is."""
    place = content.rfind(SEAL) + len(SEAL)
    if place < len(SEAL):
        return content
    empty = content[:place] + UNSEALED + content[place + len(UNSEALED) :]
    return content[:place] + hashlib.sha256(empty).hexdigest().encode() + content[place + len(UNSEALED) :]


def _row_groups(cells: Iterable[CellRows]) -> Iterator[list[CellRows]]:
    group: list[CellRows] = []
    for cell in cells:
        group.append(cell)
        if sum(map(len, group)) >= GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group


def _table(group: list[CellRows]) -> pa.Table:
    repeated = {
        name: [value for cell in group for value in itertools.repeat(cell.shared[name], len(cell))]
        for name in CELL
    }
    varying = {name: [value for cell in group for value in cell.rows[name]] for name in ROW}
    columns = {
        name: pa.array(values, type=(CELL | ROW)[name]) for name, values in (repeated | varying).items()
    }
    return pa.table(columns).cast(SCHEMA)


def decode(content: bytes, name: str) -> Iterator[CellRows]:
    """The cells of a file that anybody may have made; `name` is what a refusal calls it."""
    if SEAL not in content:
        raise foreign(name, "something that attentest did not export, or not all of it")
    if sealed(content) != content:
        raise foreign(name, "a file that was changed after it was exported")
    with _as_refusal(name):
        plain = _opened(content)
        _check_kind(plain, name)
        texts = [path for path in TEXTS if path.partition(".")[0] in plain.schema_arrow.names]
        file = _opened(content, read_dictionary=texts)  # a text repeated a million times takes its room once
        _check_size(file.metadata, name)
        known: set[str] = set()
        for number in range(file.num_row_groups):
            table = file.read_row_group(number)
            table.validate(full=True)
            for cell in _cells(table, name):
                if cell.shared["cell"] in known:
                    raise foreign(name, f"the cell {cell.shared['cell'][:12]} in two places")
                known.add(cell.shared["cell"])
                yield cell


def _opened(content: bytes, **how: Any) -> pq.ParquetFile:
    limits = {"thrift_string_size_limit": 2**24, "thrift_container_size_limit": 2**20}
    return pq.ParquetFile(pa.BufferReader(content), **limits, **how)


@contextmanager
def _as_refusal(name: str) -> Iterator[None]:
    try:
        yield
    except Refusal:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError) as error:
        raise foreign(
            name, f"something that is no whole Parquet file ({str(error).splitlines()[0][:200]})"
        ) from error


def _check_kind(file: pq.ParquetFile, name: str) -> None:
    said = (file.metadata.metadata or {}).get(b"attentest")
    if said is None:
        raise foreign(name, "a Parquet file that attentest did not export")
    if said not in FORMATS:
        raise foreign(
            name, f"the format {said[:40].decode(errors='replace')!r} instead of {FORMAT.decode()!r}"
        )
    found = {field.name: _kind(field.type) for field in file.schema_arrow}
    wanted = {each: _kind(kind) for each, kind in (CELL | ROW).items() if LATER.get(each, 1) <= FORMATS[said]}
    if found != wanted:
        wrong = sorted(each for each in found.keys() | wanted.keys() if found.get(each) != wanted.get(each))
        raise foreign(name, f"other columns or types than exported: {', '.join(wrong[:5])}")


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list of {_kind(kind.value_type)}"
    return str(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _check_size(about: pq.FileMetaData, name: str) -> None:
    groups = [about.row_group(n) for n in range(about.num_row_groups)]
    columns = [group.column(n) for group in groups for n in range(group.num_columns)]
    limits = {
        "rows": (about.num_rows, MOST_ROWS),
        "rows in one group": (max((group.num_rows for group in groups), default=0), MOST_GROUP_ROWS),
        "values in one column": (max((column.num_values for column in columns), default=0), MOST_VALUES),
        "bytes once unpacked": (sum(column.total_uncompressed_size for column in columns), MOST_UNPACKED),
    }
    for what, (found, most) in limits.items():
        if not 0 <= found <= most:
            raise foreign(name, f"{found:,} {what}, where {most:,} are the most that is read")


def _cells(table: pa.Table, name: str) -> Iterator[CellRows]:
    """The table cut where the key changes."""
    columns = {each: _column(table[each], each, name) for each in table.column_names}
    keys = columns["cell"].indices.to_numpy()
    starts = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
    for start, stop in itertools.pairwise(starts):
        if start < stop:
            shared = {each: _shared(columns[each].slice(start, stop - start), each, name) for each in CELL}
            length = len(shared["seed"])
            of_rows = [each for each in ROW if each in columns]
            rows = {each: _values(columns[each].slice(start, stop - start), length, name) for each in of_rows}
            yield CellRows(shared, rows)


def _column(chunks: pa.ChunkedArray, each: str, name: str) -> Any:
    """One array without gaps, whose texts are dictionaries and not too long."""
    array = chunks.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    inner = array.values if pa.types.is_list(array.type) else array
    if array.null_count or inner.null_count:
        raise foreign(name, f"gaps in the column {each}")
    if pa.types.is_dictionary(inner.type):
        longest = pc.max(pc.binary_length(inner.dictionary)).as_py() or 0
        if longest > LONGEST_TEXT:
            raise foreign(name, f"a text of {longest:,} bytes in the column {each}")
    return array


def _shared(array: Any, each: str, name: str) -> Any:
    """The one value of all rows."""
    values = _values(array, None, name)
    if any(value != values[0] for value in values[1:]):
        raise foreign(name, f"rows of one cell that differ in {each}")
    return values[0]


def _values(array: Any, length: int | None, name: str) -> Any:
    """Plain values, one for each row; lists must be as long as `length` says, or else as each other."""
    if not pa.types.is_list(array.type):
        return _plain(array)
    lengths = array.value_lengths().to_numpy()
    length = int(lengths[0]) if length is None else length
    if not 0 < length <= MOST_SEEDS or (lengths != length).any():
        raise foreign(name, "lists of other lengths than there are seeds")
    flat = _plain(array.flatten())
    return [flat[start : start + length] for start in range(0, length * len(array), length)]


def _plain(array: Any) -> list[Any]:
    """Python's own values; equal texts are one object, however often they stand there."""
    if not pa.types.is_dictionary(array.type):
        return array.to_pylist()
    texts = {place: array.dictionary[place].as_py() for place in set(array.indices.to_pylist())}
    return [texts[place] for place in array.indices.to_pylist()]


def foreign(name: str, got: str) -> Refusal:
    """The refusal of a file that is not what `attentest store export` writes."""
    return Refusal(
        f"file {name}",
        got=got,
        needs="a file that `attentest store export` has written, whole and unchanged",
        way_out="Copy it again from where it was made, or export it anew.",
    )
