"""What was read from a store that is no folder stays on this machine, under the digest of its content."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import pooch
from fsspec.implementations.memory import MemoryFileSystem

from attentest.store.folder import Folder


def kept(folder: Folder, digest: str | None) -> bytes | None:
    """The content of that digest, if it was read before and is what it was."""
    if not _is_remote(folder) or digest is None:
        return None
    with contextlib.suppress(OSError):
        content = _place(digest).read_bytes()
        if hashlib.sha256(content).hexdigest() == digest:
            return content
    return None


def keep(folder: Folder, digest: str, content: bytes) -> None:
    """For the next time; where nothing can be kept it is read again."""
    if not _is_remote(folder):
        return
    place = _place(digest)
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = place.with_name(f"{digest}.{os.getpid()}")
        made.write_bytes(content)
        made.replace(place)


def _is_remote(folder: Folder) -> bool:
    """Whether reading goes over a network: of a folder, and of memory, nothing is kept."""
    return not folder.local and not isinstance(folder.files, MemoryFileSystem)


def _place(digest: str) -> Path:
    top = os.environ.get("ATTENTEST_CACHE") or Path(pooch.os_cache("attentest")) / "cells"
    return Path(top) / digest[:2] / digest
