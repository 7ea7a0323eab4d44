"""Files under one root, on a disk or behind any fsspec URL: each is written at once or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import final

import fsspec
from fsspec.implementations.local import LocalFileSystem

from attentest.refusal import Refusal
from attentest.store.disk import asking, is_lasting, put, refusing, settle

ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
STALE = 24 * 3600.0


@final
class Folder:
    """What the store needs of a file system."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = os.fspath(url)
        if re.match(r"\w+://[^/]*@", self.url):
            raise Refusal(
                "store",
                got="a URL with credentials in it, which would be printed",
                needs="a URL without, as in s3://bucket/prefix",
                way_out="Set them as for the AWS tools: AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret.",
            )
        try:
            # Others write here, too, so what was listed before is no answer.
            self.files, self.root = fsspec.url_to_fs(self.url, use_listings_cache=False)
        except (ValueError, ImportError, OSError) as error:
            extra = self.url.startswith("s3:") and isinstance(error, ImportError)
            raise Refusal(
                f"store {self.url!r}",
                got=f"a place that cannot be opened ({error})",
                needs="a folder, or a URL that fsspec knows",
                way_out="pip install 'attentest[s3]'" if extra else "Give a folder, as in --store results.",
            ) from error
        self.local = isinstance(self.files, LocalFileSystem)
        self.address = self.root if self.local else self.url  # the same from any working directory

    def path(self, *parts: str) -> str:
        """Where a file is, in the words of the file system."""
        return "/".join([self.root.rstrip("/"), *parts])

    def names(self, folder: str) -> Iterator[str]:
        """What is in a folder of the root; nothing where there is none."""
        try:
            with asking(self.url):
                entries = self.files.ls(self.path(folder), detail=False, refresh=True)
        except ABSENT:
            return
        yield from (entry.rstrip("/").rsplit("/", 1)[-1] for entry in entries)

    def content(self, *path: str) -> bytes | None:
        """A file's content, or None where there is none."""
        try:
            with asking(self.url):
                return self.files.cat_file(self.path(*path))
        except ABSENT:
            return None
        except PermissionError as error:
            raise Refusal(
                f"store {self.url}",
                got=f"{'/'.join(path)}, which may not be read",
                needs="files that can be read",
                way_out="Change who may read it, or give another --store.",
            ) from error

    def replace(self, content: bytes, *path: str, lasting: bool) -> None:
        """Write one file; a `lasting` one is not lost with the power."""
        target, lasting = self.path(*path), lasting and is_lasting()
        with refusing(self.url):
            if not self.local:
                self.files.pipe_file(target, content)
                return
            made = self.making()
            made.parent.mkdir(parents=True, exist_ok=True)
            try:
                put(made, content, lasting=lasting)
                Path(target).parent.mkdir(parents=True, exist_ok=True)
                made.replace(target)
                settle(Path(target).parent, lasting=lasting)
            finally:
                made.unlink(missing_ok=True)

    def making(self, name: str = "") -> Path:
        """A name on the disk for what is half made, which nobody else has."""
        return Path(self.path("making", f"{name}{uuid.uuid4().hex}"))

    def forget(self, *path: str) -> None:
        """Remove a file or folder that may be there; one that another run is just filling stays."""
        try:
            self.files.rm(self.path(*path), recursive=True)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) and error.errno != errno.ENOTEMPTY:
                raise

    def changed(self, key: str) -> float:
        """When a cell on the disk, or any file of it, was last changed."""
        cell = Path(self.path("cells", key))
        return max(each.stat().st_mtime for each in (cell, *cell.iterdir()))

    def set_aside(self, key: str) -> None:
        """Move a cell out of the way, under a name that nothing had before."""
        aside = f"damaged/{key}-{uuid.uuid4().hex[:8]}"
        if self.local:
            self.files.makedirs(self.path("damaged"), exist_ok=True)
            self.files.mv(self.path("cells", key), self.path(aside), recursive=True)
            return
        for name in [*self.names(f"cells/{key}")]:
            self.files.cp_file(self.path("cells", key, name), self.path(aside, name))
        self.files.rm(self.path("cells", key), recursive=True)

    def sweep(self) -> None:
        """Remove what killed writers left half made for a day."""
        for name in self.names("making") if self.local else ():
            left = Path(self.path("making", name))
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > STALE:
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
