"""The Store is a directory of cells, local or any fsspec URL: many writers, no lock, no server.

A cell exists iff its `cell.json` does, and that file is written last. On a local disk the whole folder is
made elsewhere and renamed into place, so not even an empty folder is ever seen.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

import fsspec
from fsspec.implementations.local import LocalFileSystem

from attentest.refusal import Refusal
from attentest.store.cell import Cell, short

# The user's disk, not our bug: these become a sentence.
DISK = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EEXIST,
}
STALE = 24 * 3600.0
Digests = Mapping[str, Mapping[str, Any]]  # of files by name: sha256, bytes
NONE: Digests = {}


@final
class Store:
    """Cells, plans, failures and unfinished work under one root."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = os.fspath(url)
        try:
            self.files, self.root = fsspec.url_to_fs(self.url)
        except (ValueError, ImportError) as error:
            raise Refusal(
                f"store {self.url!r}",
                got=f"a place that cannot be opened ({error})",
                needs="a folder, or a URL that fsspec knows",
                way_out="Give a folder, as in --store results.",
            ) from error
        self.local = isinstance(self.files, LocalFileSystem)

    def existing(self) -> Store:
        """This store, which must be there already: what only looks makes nothing."""
        if not self.files.isdir(self.root):
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
        return self.files.exists(self._path("cells", key, "cell.json"))

    def read(self, key: str, name: str) -> bytes:
        """One file of a cell, checked against the digest written when the cell was."""
        content = self._read("cells", key, name)
        written = self.about(key)["files"].get(name, {}).get("sha256")
        if hashlib.sha256(content).hexdigest() != written:
            raise _damaged(key, name)
        return content

    def holds(self, key: str, name: str) -> bool:
        """Whether the file is there: a store may travel without its model weights."""
        return self.files.exists(self._path("cells", key, name))

    def is_whole(self, key: str) -> bool:
        """Whether the cell is done and all its files are here."""
        found = self.find("cells", key, "cell.json")
        return found is not None and all(self.holds(key, name) for name in _parsed(key, found)["files"])

    def about(self, key: str) -> dict[str, Any]:
        """The cell's own description."""
        return _parsed(key, self._read("cells", key, "cell.json"))

    def cell(self, key: str) -> Cell:
        """What the cell, done or only planned, is made from."""
        if self.has(key):
            return Cell.from_json(self.about(key))
        return Cell.from_json(json.loads(self._read("plans", f"{key}.json")))

    def done(self) -> list[str]:
        """The cells that are done, in the order of their keys."""
        return sorted(name for name in self._names("cells") if self.has(name))

    def write(
        self, cell: Cell, files: Mapping[str, bytes], notes: Mapping[str, Any], *, elsewhere: Digests = NONE
    ) -> None:
        """Make the cell exist, whole but for files `elsewhere`. Losing a race means that it is done."""
        digests = {n: {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)} for n, c in files.items()}
        about = cell.as_json() | {"key": cell.key, "files": {**digests, **elsewhere}, **notes}
        about |= {"written": now(), "host": socket.gethostname()}
        whole = {**files, "cell.json": spelled(about)}
        with self._disk():
            if self.local:
                self._move_in(cell.key, whole)
            elif not self.is_whole(cell.key):
                for name, content in whole.items():
                    self.files.pipe_file(self._path("cells", cell.key, name), content)
        if not elsewhere:  # else what is begun of it here may still be finished
            self.forget("failures", f"{cell.key}.json")
            self.forget("partial", cell.key)

    def _move_in(self, key: str, whole: Mapping[str, bytes]) -> None:
        made, aside = (Path(self._path("making", f"{key}-{uuid.uuid4().hex}")) for _ in range(2))
        made.mkdir(parents=True)
        try:
            for name, content in whole.items():
                (made / name).write_bytes(content)
            target = Path(self._path("cells", key))
            target.parent.mkdir(exist_ok=True)
            if not self.is_whole(key):
                # It travelled without some of its files, or a copy of it stopped half-way; we have them all.
                with contextlib.suppress(FileNotFoundError):
                    target.rename(aside)
            try:
                made.rename(target)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        finally:
            for left in (made, aside):
                shutil.rmtree(left, ignore_errors=True)

    # --- plans, failures, unfinished work

    def plan(self, cell: Cell) -> None:
        """Say what is going to be done, before it is."""
        content = spelled(cell.as_json())
        path = self._path("plans", f"{cell.key}.json")
        if not (self.files.exists(path) and self.files.cat_file(path) == content):
            self.replace(content, "plans", f"{cell.key}.json")

    def plans(self) -> list[str]:
        """The keys of everything that was ever planned."""
        return sorted(name.removesuffix(".json") for name in self._names("plans"))

    def fail(self, key: str, error: str, traceback: str) -> None:
        """Keep a failure with its traceback; the next run tries again."""
        about = {"key": key, "error": error, "traceback": traceback, "when": now()}
        self.replace(spelled(about), "failures", f"{key}.json")

    def failures(self) -> dict[str, dict[str, Any]]:
        """What failed last time it was tried."""
        found = {name: self.find("failures", name) for name in sorted(self._names("failures"))}
        return {n.removesuffix(".json"): json.loads(content) for n, content in found.items() if content}

    def replace(self, content: bytes, *path: str) -> None:
        """Write one file, at once or not at all."""
        target = self._path(*path)
        with self._disk():
            if not self.local:
                self.files.pipe_file(target, content)
                return
            made = Path(self._path("making", uuid.uuid4().hex))
            made.parent.mkdir(parents=True, exist_ok=True)
            try:
                made.write_bytes(content)
                Path(target).parent.mkdir(parents=True, exist_ok=True)
                made.replace(target)
            finally:
                made.unlink(missing_ok=True)

    def find(self, *path: str) -> bytes | None:
        """A file's content, or None where there is none."""
        try:
            return self.files.cat_file(self._path(*path))
        except FileNotFoundError:
            return None

    def forget(self, *path: str) -> None:
        """Remove a file or folder that may be there; one that another run is just filling stays."""
        try:
            self.files.rm(self._path(*path), recursive=True)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) and error.errno != errno.ENOTEMPTY:
                raise

    def sweep(self) -> None:
        """Remove what killed writers left: notes on cells that are done, and what is half made for a day.

        Tidying may fail: others write and sweep here too, and a store that is only read need not be tidy.
        """
        for folder in ("failures", "partial"):
            for name in self._names(folder):
                if self.is_whole(name.removesuffix(".json")):
                    with contextlib.suppress(OSError):
                        self.forget(folder, name)
        for name in self._names("making") if self.local else ():
            left = Path(self._path("making", name))
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > STALE:
                    shutil.rmtree(left) if left.is_dir() else left.unlink()

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

    # --- paths

    def _path(self, *parts: str) -> str:
        return "/".join([self.root.rstrip("/"), *parts])

    def _names(self, folder: str) -> Iterator[str]:
        try:
            entries = self.files.ls(self._path(folder), detail=False, refresh=True)
        except (FileNotFoundError, NotADirectoryError):
            return
        yield from (entry.rstrip("/").rsplit("/", 1)[-1] for entry in entries)

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

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in DISK:
                raise
            raise Refusal(
                f"store {self.url}",
                got=f"a disk that does not take it ({os.strerror(error.errno or 0)})",
                needs="a folder that can be written and has room",
                way_out="Free some space or give another --store; what is done is kept.",
            ) from error


def _parsed(key: str, content: bytes) -> dict[str, Any]:
    try:
        return json.loads(content)
    except ValueError as error:
        raise _damaged(key, "cell.json") from error


def _damaged(key: str, name: str) -> Refusal:
    return Refusal(
        f"cell {short(key)}",
        got=f"a {name} that is not what was written",
        needs="the file as it was stored",
        way_out=f"Remove the folder cells/{key} from the store and run again.",
    )


def spelled(value: Any) -> bytes:
    """JSON as it is stored: readable, sorted, the same bytes for the same value."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode()


def now() -> str:
    """The time, to the second, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
