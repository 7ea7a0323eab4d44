"""Rows as Parquet bytes and back, so that every stage writes them the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


def to_parquet(rows: Sequence[dict[str, Any]] | pd.DataFrame) -> bytes:
    """The same rows give the same bytes."""
    if isinstance(rows, pd.DataFrame):
        table = pa.Table.from_pandas(rows, preserve_index=False)
    else:
        # Of the columns `from_pylist` would take those of the first row, and drop the others silently.
        columns = dict.fromkeys(name for row in rows for name in row)
        table = pa.table({name: [row.get(name) for row in rows] for name in columns})
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(None), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def from_parquet(content: bytes) -> pd.DataFrame:
    """The rows again."""
    return pq.read_table(pa.BufferReader(content)).to_pandas()
