"""The Store is a directory of cells, local or any fsspec URL: many writers, no lock, no server.

A cell exists iff its `cell.json` does, and that file is written last. On a local disk the whole folder is
made elsewhere and renamed into place, so not even an empty folder is ever seen.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from attentest.refusal import Refusal
from attentest.store import cache, index
from attentest.store.about import DESCRIPTION, KEY, About, Damage, now, parsed, sealed, spelled
from attentest.store.cell import Cell
from attentest.store.disk import asking, is_lasting, put, refusing, settle
from attentest.store.folder import Folder

NO_DESCRIPTION, GONE = "it cannot be read", "it is not there"
COPYING = 60.0  # seconds after its last change in which a damaged cell may be one that is just being copied
Digests = Mapping[str, Mapping[str, Any]]  # of files by name: sha256, bytes
NONE: Digests = {}


@final
class Store:
    """Cells, plans, failures and unfinished work under one root."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.folder = Folder(url)
        self.url, self.files, self.root = self.folder.url, self.folder.files, self.folder.root
        self.local = self.folder.local
        self.damaged: dict[str, Damage] = {}  # what was found, whether or not it could be set aside
        self.left_out: set[str] = set()  # of these what is still in its place, and as good as absent

    def existing(self) -> Store:
        """This store, which must be there already: what only looks makes nothing."""
        with asking(self.url):
            is_there = self.files.isdir(self.root)
        if not is_there:
            raise Refusal(
                f"store {self.url}",
                got="no such folder",
                needs="a store that a study or a training has made",
                way_out="Give the right --store, or run `attentest demo` first.",
            )
        return self

    # --- cells

    def has(self, key: str) -> bool:
        """Whether the cell is done."""
        return key not in self.left_out and self.files.isfile(self.folder.path("cells", key, DESCRIPTION))

    def read(self, key: str, name: str) -> bytes:
        """One file of a cell, checked against the digest written when the cell was."""
        if not self.local and self.has(key):
            kept = cache.kept(self.folder, self._written(key, name))
            if kept is not None:
                return kept
        content, written = self._read("cells", key, name), self._written(key, name)
        if written is None or hashlib.sha256(content).hexdigest() != written:
            raise Damage(key, name, "its digest is another").refusal()
        cache.keep(self.folder, written, content)
        return content

    def _written(self, key: str, name: str) -> str | None:
        return self.about(key)["files"].get(name, {}).get("sha256")

    def holds(self, key: str, name: str) -> bool:
        """Whether the file is there: a store may travel without its model weights."""
        return key not in self.left_out and self.files.isfile(self.folder.path("cells", key, name))

    def is_whole(self, key: str) -> bool:
        """Whether the cell is done and all its files are here."""
        return self.has(key) and all(self.holds(key, name) for name in self.about(key)["files"])

    def about(self, key: str) -> About:
        """The cell's own description."""
        return parsed(key, self._read("cells", key, DESCRIPTION))

    def cell(self, key: str) -> Cell:
        """What the cell, done or only planned, is made from."""
        return Cell.from_json(self.about(key)) if self.has(key) else self._planned(key)

    def done(self) -> list[str]:
        """The cells that are done, in the order of their keys."""
        return sorted(name for name in self.folder.names("cells") if KEY.fullmatch(name) and self.has(name))

    def descriptions(self) -> Mapping[str, About]:
        """What every cell that is done says of itself; whatever is damaged is left out, and named.

        On a disk cells appear whole, so one without a description has lost it.
        """
        indexed, found, fresh = index.read(self.folder), {}, 0
        for key, stamp in index.stamps(self.folder).items():
            if key in self.left_out:
                continue
            known = indexed.get(key)
            if known is None or known[0] != stamp or not stamp:
                fresh += 1
                try:
                    known = stamp, json.dumps(self.about(key))
                except Refusal:
                    self.leave_out(Damage(key, DESCRIPTION, NO_DESCRIPTION if stamp else GONE))
                    continue
            found[key] = known
        if fresh + len(indexed.keys() - found.keys()) >= index.WORTH:
            index.write(self.folder, found)
        return index.Descriptions({key: text for key, (_, text) in found.items()})

    def leave_out(self, damage: Damage, *, at_once: bool = False) -> None:
        """From now on the cell is as good as absent; it is set aside, into `damaged/`, where that is allowed.

        One that has changed in the last minute may just be being copied, and stays in its place unless
        someone is about to compute it (`at_once`).
        """
        key = damage.key
        self.damaged[key] = damage
        self.left_out.add(key)
        with contextlib.suppress(OSError, Refusal):
            if not at_once and self.local and time.time() - self.folder.changed(key) < COPYING:
                return
            if damage.file != DESCRIPTION:
                self.plan(Cell.from_json(parsed(key, self.folder.content("cells", key, DESCRIPTION) or b"")))
            self.folder.set_aside(key)
            self.left_out.discard(key)

    def set_aside(self) -> set[str]:
        """The cells that were found damaged and have not been computed again."""
        moved = {name[:64] for name in self.folder.names("damaged") if KEY.fullmatch(name[:64])}
        return {key for key in moved | self.left_out if not self.has(key)}

    def write(
        self, cell: Cell, files: Mapping[str, bytes], notes: Mapping[str, Any], *, elsewhere: Digests = NONE
    ) -> None:
        """Make the cell exist, whole but for files `elsewhere`. Losing a race means that it is done."""
        digests = {n: {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)} for n, c in files.items()}
        about = cell.as_json() | {"key": cell.key, "files": {**digests, **elsewhere}, **notes}
        about |= {"written": now(), "host": socket.gethostname()}
        about |= {"elsewhere": sorted(elsewhere)} if elsewhere else {}
        self.take(cell.key, {**files, DESCRIPTION: sealed(about)})
        if not elsewhere:  # else what is begun of it here may still be finished
            self.forget("failures", f"{cell.key}.json")
            self.forget("partial", cell.key)

    def take(self, key: str, whole: Mapping[str, bytes]) -> None:
        """A cell as it is somewhere: its files, and last its description."""
        with refusing(self.url):
            if self.local:
                self._move_in(key, whole)
            elif not self._is_sound(key):
                for name, content in whole.items():
                    self.files.pipe_file(self.folder.path("cells", key, name), content)
        self.left_out.discard(key)

    def _move_in(self, key: str, whole: Mapping[str, bytes]) -> None:
        made, aside = (self.folder.making(f"{key}-") for _ in range(2))
        made.mkdir(parents=True)
        target, lasting = Path(self.folder.path("cells", key)), is_lasting()
        try:
            for name, content in whole.items():
                put(made / name, content, lasting=lasting)
            settle(made, lasting=lasting)
            if not target.parent.exists():
                target.parent.mkdir(exist_ok=True)
                settle(target.parent.parent, lasting=lasting)
            if not self._is_sound(key):
                # It travelled without some of its files, or a copy of it stopped half-way; we have them all.
                with contextlib.suppress(FileNotFoundError):
                    target.rename(aside)
            try:
                made.rename(target)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            settle(target.parent, lasting=lasting)
        finally:
            for left in (made, aside):
                shutil.rmtree(left, ignore_errors=True)

    def _is_sound(self, key: str) -> bool:
        try:
            return self.is_whole(key)
        except Refusal:  # a damaged description is no cell
            return False

    # --- plans, failures, unfinished work

    def plan(self, cell: Cell) -> None:
        """Say what is going to be done, before it is."""
        content = spelled(cell.as_json())
        path = self.folder.path("plans", f"{cell.key}.json")
        if self.find("plans", f"{cell.key}.json") != content:
            if self.files.isdir(path):
                self.forget("plans", f"{cell.key}.json")
            self.replace(content, "plans", f"{cell.key}.json")

    def _planned(self, key: str) -> Cell:
        cell = self._readable_plan(key)
        if cell is None:
            self._read("plans", f"{key}.json")  # none at all is refused as that
            raise Refusal(
                f"plan {key}",
                got="a file that is not what was written",
                needs="the plan as it was stored",
                way_out="Plan again: run the study that needs the cell, with --plan or without.",
            )
        return cell

    def _readable_plan(self, key: str) -> Cell | None:
        """None where there is no plan, or a damaged one."""
        try:
            cell = Cell.from_json(json.loads(self.find("plans", f"{key}.json") or b""))
            return cell if cell.key == key else None
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def planned(self) -> dict[str, Cell]:
        """Everything that was ever planned, as far as its plan can be read."""
        found = {key: self._readable_plan(key) for key in self.plans()}
        return {key: cell for key, cell in found.items() if cell is not None}

    def plans(self) -> list[str]:
        """The keys of everything that was ever planned."""
        return sorted(name.removesuffix(".json") for name in self.folder.names("plans"))

    def fail(self, key: str, error: str, traceback: str) -> None:
        """Keep a failure with its traceback; the next run tries again."""
        about = {"key": key, "error": error, "traceback": traceback, "when": now()}
        self.replace(spelled(about), "failures", f"{key}.json")

    def failures(self) -> dict[str, dict[str, Any]]:
        """What failed last time it was tried."""
        told = {}
        for name in sorted(self.folder.names("failures")):
            with contextlib.suppress(ValueError, RecursionError):  # a damaged note says nothing
                about = json.loads(self.find("failures", name) or b"")
                if isinstance(about, dict) and {"error", "traceback"} <= about.keys():
                    told[name.removesuffix(".json")] = about
        return told

    def replace(self, content: bytes, *path: str, lasting: bool = False) -> None:
        """Write one file, at once or not at all; a `lasting` one is never lost with the power."""
        self.folder.replace(content, *path, lasting=lasting)

    def find(self, *path: str) -> bytes | None:
        """A file's content, or None where there is none."""
        return None if path[0] == "cells" and path[1] in self.left_out else self.folder.content(*path)

    def forget(self, *path: str) -> None:
        """Remove a file or folder that may be there; one that another run is just filling stays."""
        self.folder.forget(*path)

    def sweep(self) -> None:
        """Remove what killed writers left: notes on cells that are done, and what is half made for a day.

        Tidying may fail: others write and sweep here too, and a store that is only read need not be tidy.
        """
        for folder in ("failures", "partial"):
            for name in self.folder.names(folder):
                if self.is_whole(name.removesuffix(".json")):
                    with contextlib.suppress(OSError):
                        self.forget(folder, name)
        self.folder.sweep()

    def resolve(self, prefix: str) -> str:
        """The key that begins so, among cells and plans; none or several is refused."""
        found = sorted({*self.done(), *self.plans()})
        matching = [key for key in found if prefix and key.startswith(prefix)]
        if len(matching) != 1:
            raise Refusal(
                f"cell {prefix!r}",
                got="no such key" if not matching else f"{len(matching)} keys that begin so",
                needs="the beginning of exactly one key in the store",
                way_out="`attentest list` shows the keys.",
            )
        return matching[0]

    def _read(self, *path: str) -> bytes:
        found = self.find(*path)
        if found is None:
            raise Refusal(
                f"store {self.url}",
                got=f"no {'/'.join(path)}",
                needs="that file",
                way_out="Run the study that makes it, or give the right --store.",
            )
        return found
