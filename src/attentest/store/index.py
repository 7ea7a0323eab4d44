"""The index: what all cells of a store say of themselves, in one file. It is never the truth.

An entry counts only while the `cell.json` it was read from has the same stamp: its time, size and inode on a
disk, its tag elsewhere. All others are read; where these are many, the index is written anew. A store is the
same without it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import final

import pyarrow as pa
import pyarrow.parquet as pq

from attentest.refusal import Refusal
from attentest.store.about import DESCRIPTION, KEY, About
from attentest.store.folder import Folder

INDEX = "index.parquet"
WORTH = 500  # cells that had to be read, from which on an index is written
KEPT = 1 << 14  # parsed descriptions that stay in memory
TAGS = ("ETag", "LastModified", "created", "mtime")  # by which a file system tells that a file has changed


@final
class Descriptions(Mapping[str, About]):
    """By key what each cell says of itself; kept as text, and parsed when someone asks."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self._parsed = lru_cache(maxsize=KEPT)(lambda key: json.loads(texts[key]))

    def __getitem__(self, key: str) -> About:
        return self._parsed(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __contains__(self, key: object) -> bool:
        return key in self.texts


def stamps(folder: Folder) -> dict[str, str]:
    """Every cell that is done, with what changes when its `cell.json` does."""
    return dict(sorted(_on_disk(folder) if folder.local else _elsewhere(folder)))


def _on_disk(folder: Folder) -> Iterator[tuple[str, str]]:
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        os.scandir(folder.path("cells")) as cells,
    ):
        for cell in cells:
            if KEY.fullmatch(cell.name):
                stamp = _stamp(f"{cell.path}/{DESCRIPTION}")
                yield (cell.name, stamp)


def _stamp(path: str) -> str:
    """Empty where there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_mtime_ns} {found.st_size} {found.st_ino}"


def _elsewhere(folder: Folder) -> Iterator[tuple[str, str]]:
    """One listing, in pages, tells of all cells."""
    try:
        found = folder.files.find(folder.path("cells"), detail=True)
    except FileNotFoundError:
        return
    for path, about in found.items():
        *_, key, name = path.split("/")
        if name == DESCRIPTION and KEY.fullmatch(key):
            yield key, " ".join([str(about["size"]), *(str(about[tag]) for tag in TAGS if tag in about)])


def read(folder: Folder) -> dict[str, tuple[str, str]]:
    """By key the stamp and the description; nothing where there is no index, or a damaged one."""
    content = folder.content(INDEX)
    if content is None:
        return {}
    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        columns = [table[name].to_pylist() for name in ("key", "stamp", "description")]
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return {}
    return {key: (stamp, text) for key, stamp, text in zip(*columns, strict=True)}


def write(folder: Folder, found: Mapping[str, tuple[str, str]]) -> None:
    """Replace the index, where the store can be written."""
    columns = {
        "key": list(found),
        "stamp": [stamp for stamp, _ in found.values()],
        "description": [text for _, text in found.values()],
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="zstd", write_page_checksum=True)
    with contextlib.suppress(Refusal, OSError):
        folder.replace(sink.getvalue().to_pybytes(), INDEX, lasting=False)
