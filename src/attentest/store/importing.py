"""`attentest store import`: findings that others exported become cells of this store, the same keys.

Everything is checked before anything is written: the key of every cell is computed again from its settings
and inputs, and a checksum covers every number. The checksum finds accidents and clumsy changes; it is no
signature, and says nothing about who made the file.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pandas as pd

from attentest.refusal import Refusal
from attentest.store.about import KEY
from attentest.store.cell import Cell, canonical, seed_role, short
from attentest.store.checking import without_damaged
from attentest.store.descriptions import (
    ORIGIN,
    Description,
    Malformed,
    conflict,
    described,
    origin,
    parsed,
    refused,
)
from attentest.store.findings_file import (
    CELL,
    COLUMNS,
    LABEL,
    LATER,
    MOST_BYTES,
    ROW,
    SEAL,
    CellRows,
    decode,
    foreign,
)
from attentest.store.observed import BY_SEED
from attentest.store.store import Store
from attentest.store.tables import from_parquet, to_parquet

FINDINGS = "findings.parquet"
COUNTS = ("findings", "cells", "written", "described")  # what is said of an import
AXES = ("corpus", "encoder", "attention", "projection")


@final
@dataclass(frozen=True)
class ImportedFinding:
    """One finding cell that was checked, with the cells it was concluded from."""

    cell: Cell
    files: dict[str, bytes]
    notes: dict[str, Any]
    rows: int
    made_from: Sequence[Description]

    def is_in(self, store: Store) -> bool:
        """Whether the store holds it already; one of other numbers under the same key is refused."""
        key, ours = self.cell.key, self.files[FINDINGS]
        if not store.is_whole(key):
            return False
        theirs = store.read(key, FINDINGS)
        # Other releases of pyarrow write the same numbers as other bytes.
        if theirs != ours and not _complete(theirs).equals(_complete(ours)):
            raise refused(key, "other numbers in the file than in the store")
        return True


def _complete(content: bytes) -> pd.DataFrame:
    """A stored table, whose last columns older versions did not write."""
    table = from_parquet(content)
    absent = {name: math.nan if COLUMNS[name] == "float64" else "" for name in LATER}
    return table.assign(**{name: value for name, value in absent.items() if name not in table.columns})


def import_findings(file: Path, store_url: str) -> dict[str, Any]:
    """Take the findings of a file into the store; what is there already is left alone."""
    return _written(file, _read(file), Store(store_url))


def import_several(paths: Sequence[Path], store_url: str) -> dict[str, Any]:
    """Take the findings of several files into the store, and of every findings file in a folder.

    All files are read and checked before the first is written. A file that contradicts the store, or one
    of the files before it, is refused; those before it have been imported by then.
    """
    files = [file for path in paths for file in (findings_files(path) if path.is_dir() else [path])]
    read = {file: _read(file) for file in files}
    store = Store(store_url)
    done = [_written(file, findings, store) for file, findings in read.items()]
    counts = {name: sum(one[name] for one in done) for name in COUNTS}
    return {"store": store.url, **counts, "files": done}


def is_findings(content: bytes) -> bool:
    """Whether the file has the metadata of an export, of whatever format; it may still be damaged."""
    return SEAL in content and LABEL in content


def findings_files(folder: Path) -> list[Path]:
    """The files of a folder that say of themselves that `attentest store export` has written them."""
    found = [path for path in sorted(folder.glob("*.parquet")) if is_findings(_content(path))]
    if not found:
        raise Refusal(
            f"folder {folder}",
            got="no file of findings",
            needs="at least one that `attentest store export` has written",
            way_out="Give another folder, or the path of a file.",
        )
    return found


def _read(file: Path) -> list[ImportedFinding]:
    findings = [_checked(each, str(file)) for each in decode(_content(file), str(file))]
    if not findings:
        raise foreign(str(file), "no findings")
    return findings


def _written(file: Path, findings: Sequence[ImportedFinding], store: Store) -> dict[str, Any]:
    """What is damaged in the store counts as absent, and is written anew."""
    return without_damaged(store, lambda store: _written_into(store, file, findings), at_once=True)


def _written_into(store: Store, file: Path, findings: Sequence[ImportedFinding]) -> dict[str, Any]:
    cells = _descriptions(findings, str(file))
    new = [finding for finding in findings if not finding.is_in(store)]
    unknown = [cell for cell in cells.values() if not _is_known(cell, store)]
    for cell in unknown:
        cell.write(store)
    for finding in new:
        store.write(finding.cell, finding.files, finding.notes)
    return {
        "file": str(file),
        "store": store.url,
        "findings": sum(finding.rows for finding in findings),
        "cells": len(findings),
        "written": len(new),
        "described": len(unknown),
    }


def _content(file: Path) -> bytes:
    try:
        size = file.stat().st_size
        if size > MOST_BYTES:
            raise foreign(str(file), f"{size:,} bytes, where {MOST_BYTES:,} are the most that is read")
        return file.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(
            f"file {file}",
            got=f"a path that cannot be read ({error})",
            needs="a file that `attentest store export` has written",
            way_out="Give the path of that file.",
        ) from error


def _descriptions(findings: Sequence[ImportedFinding], name: str) -> dict[str, Description]:
    """Every cell that findings were concluded from, once."""
    cells: dict[str, Description] = {}
    for each in (each for finding in findings for each in finding.made_from):
        if cells.setdefault(each.cell.key, each).as_json() != each.as_json():
            raise foreign(name, f"two descriptions of the cell {short(each.cell.key)}")
    return cells


def _is_known(description: Description, store: Store) -> bool:
    key = description.cell.key
    if not store.has(key):
        return False
    if differs := conflict(description, store.about(key)):
        raise refused(key, f"another {differs} in the file than in the store")
    return True


# --- one cell of the file


def checksum(cell: CellRows) -> str:
    """The sha256 of everything the file says about the cell."""
    told = {name: cell.shared[name] for name in CELL if name != "checksum"}
    told |= {name: [_exact(value) for value in cell.rows[name]] for name in ROW if name in cell.rows}
    return hashlib.sha256(canonical(told).encode()).hexdigest()


def _exact(value: Any) -> Any:
    """A number to its last bit, and NaN too, which JSON does not have."""
    if isinstance(value, list):
        return [_exact(inner) for inner in value]
    return float.hex(value) if isinstance(value, float) else value


def _checked(rows: CellRows, name: str) -> ImportedFinding:
    key = rows.shared["cell"]
    if not KEY.fullmatch(key):
        raise foreign(name, "a cell whose name is no key")
    try:
        cell = _finding_cell(rows.shared)
        if cell.key != key:
            raise Malformed("settings or inputs that do not give its key")
        if checksum(rows) != rows.shared["checksum"]:
            raise Malformed("rows that were changed after they were exported")
        made_from = [*_made_from(rows.shared)]
        files = {FINDINGS: to_parquet(_table(rows)), **_by_seed(rows)}
    except (Malformed, ValueError) as error:
        said = str(error) if isinstance(error, Malformed) else "a value that cannot be"
        raise foreign(name, f"under the cell {short(key)} {said}") from error
    exported = {"attentest": rows.shared["attentest"], "seed_reason": rows.shared["seed_reason"]}
    exported |= {name: rows.shared[name] for name in ORIGIN}
    return ImportedFinding(cell, files, {"imported": exported}, len(rows), made_from)


def _finding_cell(shared: dict[str, Any]) -> Cell:
    config = {name: shared[name] for name in ("experiment", "mode", *AXES)}
    config |= {name: parsed(shared[name]) for name in ("parameters", "model")}
    lists = [value for value in shared.values() if isinstance(value, list)]
    if {len(value) for value in lists} != {len(set(shared["seed"]))}:
        raise Malformed("a seed twice, or lists of other lengths than there are seeds")
    inputs = {seed_role(seed): key for seed, key in zip(shared["seed"], shared["observation"], strict=True)}
    return Cell(stage="finding", version=shared["version"], config=config, inputs=inputs)


def _made_from(shared: dict[str, Any]) -> Iterator[Description]:
    """The observations, the models and the corpus, each under the key by which it is an input."""
    corpora: set[str] = set()
    for place, key in enumerate(shared["observation"]):
        seen = _described(shared["described_observations"][place], "observation", key)
        model = _described(shared["described_models"][place], "model", shared["trained_model"][place])
        inputs = {} if seen is None else seen.cell.inputs
        if inputs.get("model", "") != shared["trained_model"][place]:
            raise Malformed("another model than was observed")
        if origin(model, seen) != {name: shared[name][place] for name in ORIGIN}:
            raise Malformed("another origin of a model than its description has")
        corpora.add(inputs.get("corpus", ""))
        yield from (each for each in (model, seen) if each is not None)
    if shared["described_corpus"]:
        corpus = _described(shared["described_corpus"], "corpus", *corpora)
        yield from [corpus] if corpus is not None else []


def _described(text: str, stage: str, *keys: str) -> Description | None:
    """The described cell, if there is one, which must be that of the key."""
    if not text:
        return None
    description = described(text)
    if description.cell.stage != stage or description.cell.key not in keys:
        raise Malformed(f"the description of another {stage} than it was concluded from")
    return description


def _table(rows: CellRows) -> pd.DataFrame:
    """The findings as they were stored: the same types, so the same bytes."""
    named = {name: [rows.shared[name]] * len(rows) for name in ("experiment", "mode")}
    columns = named | rows.rows
    table = {name: pd.Series(columns[name], dtype=kind) for name, kind in COLUMNS.items() if name in columns}
    if not all(rows.shared["experiment"] and measure for measure in columns["measure"]):
        raise Malformed("a finding without a name")
    return pd.DataFrame(table)


def _by_seed(rows: CellRows) -> dict[str, bytes]:
    """The numbers of single seeds, for pages that have no rows to compute them from."""
    if rows.shared["seed_reason"]:
        return {}
    long = [
        {"measure": measure, "group": group, "seed": seed, "estimate": estimate}
        for measure, group, own in zip(
            *(rows.rows[n] for n in ("measure", "group", "seed_estimate")), strict=True
        )
        for seed, estimate in zip(rows.shared["seed"], own, strict=True)
        if not math.isnan(estimate)
    ]
    return {BY_SEED: to_parquet(long)} if long else {}
