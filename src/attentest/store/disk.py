"""Writing on a disk so that a power cut loses at most what was never said to exist."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from attentest.refusal import Refusal

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


def is_lasting() -> bool:
    """Whether cells must outlast a power cut: always, unless ATTENTEST_FSYNC=0 says that this is scratch."""
    return os.environ.get("ATTENTEST_FSYNC", "1") != "0"


def put(path: Path, content: bytes, *, lasting: bool) -> None:
    """Write a file; with `lasting` it is on the disk, and not only on its way there, when this returns."""
    with path.open("wb") as file:
        file.write(content)
        if lasting:
            file.flush()
            os.fsync(file.fileno())


def settle(folder: Path, *, lasting: bool) -> None:
    """The names in the folder are on the disk when this returns: a rename lasts once both its folders do."""
    if not lasting:
        return
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:  # where folders cannot be opened, as on Windows, renames last by themselves
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def refusing(url: str) -> Iterator[None]:
    """What a disk does not take, in a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK:
            raise
        raise Refusal(
            f"store {url}",
            got=f"a disk that does not take it ({os.strerror(error.errno or 0)})",
            needs="a folder that can be written and has room",
            way_out="Free some space or give another --store; what is done is kept.",
        ) from error
