"""A whole store as one file, without the weights of its models, and back: the same cells, the same bytes.

A member of the file is believed no more than a damaged cell would be: its name must be that of a file of a
cell, the description must give the key, and every file must have the digest that the description says.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from attentest.refusal import Refusal
from attentest.store.about import DESCRIPTION, Damage, parsed, spelled
from attentest.store.cell import short
from attentest.store.checking import named, without_damaged
from attentest.store.store import Store

COUNT = "attentest-store.json"  # says how many cells there are
WEIGHTS = ".safetensors"
MEMBER = re.compile(r"cells/([0-9a-f]{64})/([A-Za-z0-9_-]{1,60}\.[a-z0-9]{1,20})")
MOST = 1 << 31  # bytes of one member: more than any file of a cell


def is_packed(file: Path) -> bool:
    """Whether the file may be a packed store."""
    return file.is_file() and tarfile.is_tarfile(file)


def pack(store_url: str, file: Path) -> dict[str, Any]:
    """Write every cell into a tar file; what is damaged is left out. The same store gives the same bytes."""
    store = Store(store_url).existing()
    cells, size = without_damaged(store, lambda store: _packed(store, file))
    return {
        "file": str(file),
        "store": store.url,
        "cells": cells,
        "bytes": size,
        "damaged": named(store),
    }


def _packed(store: Store, file: Path) -> tuple[int, int]:
    made = file.with_name(f".{file.name}.making")
    try:
        with tarfile.open(made, "w", format=tarfile.PAX_FORMAT) as archive:
            keys = list(store.descriptions())
            _add(archive, COUNT, spelled({"cells": len(keys)}))
            for key in keys:
                for name, content in _files(store, key):
                    _add(archive, f"cells/{key}/{name}", content)
        made.replace(file)
    except OSError as error:
        raise Refusal(
            f"--without-weights {file}",
            got=f"a path that cannot be written ({error})",
            needs="a file that can be written",
            way_out="Give another path.",
        ) from error
    finally:
        made.unlink(missing_ok=True)
    return len(keys), file.stat().st_size


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _files(store: Store, key: str) -> Iterator[tuple[str, bytes]]:
    """The description last, as cells are written."""
    for name in sorted(store.about(key)["files"]):
        if not name.endswith(WEIGHTS) and store.holds(key, name):
            yield name, store.read(key, name)
    yield DESCRIPTION, store.find("cells", key, DESCRIPTION) or b""


def unpack(file: Path, store_url: str) -> dict[str, Any]:
    """Take the cells of a packed store into another; one that is there already is left alone."""
    store = Store(store_url)
    with tarfile.open(file) as archive:
        checked: dict[str, str] = {}
        for key, files in _cells(file, archive):
            if key in checked:
                raise _foreign(file, f"the cell {short(key)} twice")
            checked[key] = _checked(file, key, files)
        if len(checked) != _count(file, archive):
            raise _foreign(file, "fewer cells than were packed")
    # Only now, after all of it was checked once, is anything written.
    new = [key for key in checked if not store.has(key)]
    with tarfile.open(file) as archive:
        for key, files in _cells(file, archive):
            if key in new:
                store.take(key, {**files, DESCRIPTION: files.pop(DESCRIPTION)})
    return {
        "file": str(file),
        "store": store.url,
        "cells": len(checked),
        "written": len(new),
        "findings": sum(stage == "finding" for stage in checked.values()),
        "described": 0,
    }


def _cells(file: Path, archive: tarfile.TarFile) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Each cell with its files; those of one cell lie side by side."""
    try:
        members_of_cells = (member for member in archive if member.name != COUNT)
        for key, members in groupby(members_of_cells, key=lambda member: _named(file, member)[0]):
            yield key, {_named(file, member)[1]: _content(archive, member) for member in members}
    except (tarfile.TarError, OSError, EOFError) as error:
        raise _foreign(file, f"a damaged archive ({error})") from error


def _count(file: Path, archive: tarfile.TarFile) -> int:
    """How many cells were packed: an archive that was cut between two members looks whole."""
    try:
        return int(json.loads(_content(archive, archive.getmember(COUNT)))["cells"])
    except (KeyError, ValueError, TypeError, AssertionError) as error:
        raise _foreign(file, "an archive that does not say how many cells it has") from error


def _named(file: Path, member: tarfile.TarInfo) -> tuple[str, str]:
    found = MEMBER.fullmatch(member.name)
    if found is None or not member.isreg() or member.size > MOST:
        raise _foreign(file, f"a member {member.name[:80]!r}, which is no file of a cell")
    return found[1], found[2]


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    opened = archive.extractfile(member)
    assert opened is not None  # it is a regular file
    return opened.read()


def _checked(file: Path, key: str, files: dict[str, bytes]) -> str:
    """The stage of a cell all of whose files are what its description says."""
    try:
        about = parsed(key, files.get(DESCRIPTION, b""))
    except Refusal as refusal:
        raise _foreign(file, f"under the cell {short(key)} {refusal.got}") from refusal
    for name in files.keys() - {DESCRIPTION}:
        if Damage.of(key, name, files[name], about) is not None:
            raise _foreign(file, f"under the cell {short(key)} another {name} than was packed")
    return about["stage"]


def _foreign(file: Path, got: str) -> Refusal:
    return Refusal(
        f"file {file}",
        got=got,
        needs="a store that `attentest store export --without-weights` has packed, whole and unchanged",
        way_out="Pack it again.",
    )
