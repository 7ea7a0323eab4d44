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
    errno.ENOENT,
    errno.EEXIST,
}


CLIENTS = {"aiobotocore", "aiohttp", "botocore"}  # packages by which an object store is asked


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
    """What a disk or an object store does not take, in a sentence."""
    try:
        with asking(url):
            yield
    except OSError as error:
        is_away = "://" in url and isinstance(error, FileNotFoundError | PermissionError)
        if error.errno not in DISK and not is_away:
            raise
        said = os.strerror(error.errno) if error.errno in DISK else "no such bucket for these credentials"
        raise Refusal(
            f"store {url}",
            got=f"a disk that does not take it ({said})",
            needs="a folder that can be written and has room",
            way_out="Free some space or give another --store; what is done is kept.",
        ) from error


@contextlib.contextmanager
def asking(url: str) -> Iterator[None]:
    """An object store that does not answer, in a sentence that has no credentials in it."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in CLIENTS:
            raise
        raise Refusal(
            f"store {url}",
            got=f"an object store that does not answer as it should ({type(error).__name__})",
            needs="an address that answers, and credentials that it takes",
            way_out="Set them as for the AWS tools: AWS_PROFILE, AWS_ENDPOINT_URL and so on.",
        ) from error
