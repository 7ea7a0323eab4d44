"""A prepared corpus as files, `corpus.json` and `examples.parquet`, and back again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attentest.corpus.example import SPLITS, Corpus, Example

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("split", pa.string()),
        ("label", pa.string()),
        ("tokens", pa.list_(pa.string())),
        ("query", pa.list_(pa.string())),
        ("rationale", pa.list_(pa.int32())),
        ("sentences", pa.list_(pa.int32())),
        ("candidates", pa.list_(pa.string())),
    ]
)
LISTS = ("tokens", "query", "rationale", "sentences", "candidates")


def to_files(corpus: Corpus) -> dict[str, bytes]:
    """The files that hold a corpus; the same corpus gives the same bytes."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for split, examples in corpus.splits().items():
        for example in examples:
            columns["split"].append(split)
            for name in ("id", "label", *LISTS):
                columns[name].append(getattr(example, name))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=SCHEMA), sink, compression="zstd")
    about = {
        "name": corpus.name,
        "labels": list(corpus.labels),
        "family": corpus.family,
        "preparation": dict(corpus.preparation),
        "excluded": dict(corpus.excluded),
        "counts": corpus.counts(),
        "has_query": corpus.has_query,
    }
    spelled = json.dumps(about, indent=1, sort_keys=True, ensure_ascii=False)
    return {"corpus.json": spelled.encode(), "examples.parquet": sink.getvalue().to_pybytes()}


def to_text(examples: Iterable[Example]) -> str:
    """Examples as one string, for a plan; the same examples give the same string."""
    told = [{name: getattr(example, name) for name in ("id", "label", *LISTS)} for example in examples]
    return json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def from_text(written: str) -> tuple[Example, ...]:
    """The inverse of `to_text`."""
    return tuple(_example(row) for row in json.loads(written))


def _example(row: Mapping[str, Any]) -> Example:
    lists = {name: None if row[name] is None else tuple(row[name]) for name in LISTS}
    return Example(id=row["id"], label=row["label"], **lists)  # type: ignore[arg-type]


def from_files(read: Callable[[str], bytes]) -> Corpus:
    """The inverse of `to_files`; `read` gives a file's bytes by name."""
    about = json.loads(read("corpus.json"))
    table = pq.read_table(pa.BufferReader(read("examples.parquet")))
    splits: dict[str, list[Example]] = {split: [] for split in SPLITS}
    for row in table.to_pylist():
        splits[row["split"]].append(_example(row))
    return Corpus(
        name=about["name"],
        labels=tuple(about["labels"]),
        family=about["family"],
        preparation=about["preparation"],
        excluded=about["excluded"],
        train=tuple(splits["train"]),
        dev=tuple(splits["dev"]),
        test=tuple(splits["test"]),
    )
