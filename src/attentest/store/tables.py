"""Rows as Parquet bytes and back, so that every stage writes them the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


def to_parquet(rows: Sequence[dict[str, Any]] | pd.DataFrame) -> bytes:
    """The same rows give the same bytes."""
    table = (
        pa.Table.from_pandas(rows, preserve_index=False)
        if isinstance(rows, pd.DataFrame)
        else pa.Table.from_pylist(list(rows))
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(None), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def from_parquet(content: bytes) -> pd.DataFrame:
    """The rows again."""
    return pq.read_table(pa.BufferReader(content)).to_pandas()
