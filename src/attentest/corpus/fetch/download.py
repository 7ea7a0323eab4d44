"""Published corpora from their publishers: where each lies, and how its bytes are known again."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pooch

from attentest.corpus import origin
from attentest.corpus.catalogue import CORPORA, find_source, fingerprint
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.fetch.receipt import RECORD, keep_receipt, receipts
from attentest.corpus.fetch.transfer import Patience, Progress, Transfer, writing
from attentest.corpus.origin import Files, Source
from attentest.corpus.tables.registered import registrations
from attentest.corpus.tables.table import digest
from attentest.refusal import Refusal, look_up

try:
    import fcntl
except ImportError:  # Windows has none, and so nothing there keeps two downloads of one file apart
    fcntl = None  # type: ignore[assignment]

pooch.get_logger().setLevel("WARNING")  # we say ourselves what was fetched


@final
@dataclass(frozen=True, kw_only=True)
class Download:
    """One file of a publisher's. Without a sha256, the one that is seen first is recorded and held to."""

    url: str
    into: str  # under the data directory
    sha256: str | None = None
    bytes: int | None = None


IMDB = Download(
    url="https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    into="imdb/aclImdb_v1.tar.gz",
    sha256="c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
    bytes=84_125_825,
)
# The archive of ParlAI, the publisher's own, has the tasks byte for byte, and a checksum in ParlAI's source.
# The authors' tasks_1-20_v1-2.tar.gz of old is no longer where every paper says it is.
BABI = Download(
    url="http://parl.ai/downloads/babi/babi.tar.gz",
    into="babi/babi.tar.gz",
    sha256="f7f0bee187efca0d81c3daac1b162cda4eb7f9505dee5ad6846eabbed3dbf92e",
)

# Only what a publisher itself offers as a plain file. AG News, Yelp, Amazon and Yahoo lie on a drive that
# wants a browser, and so do the CNN questions; ADR and MIMIC-III have to be asked for.
DOWNLOADS: dict[str, tuple[Download, ...]] = {
    "sst": (
        Download(
            url="https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
            into="sst/trainDevTestTrees_PTB.zip",
            sha256="5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc",
        ),
    ),
    "imdb": (IMDB,),
    "imdb-ratings": (IMDB,),
    "20news": (
        Download(
            url="http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
            into="20news/20news-bydate.tar.gz",
        ),
    ),
    "snli": (
        Download(
            url="https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
            into="snli/snli_1.0.zip",
            sha256="afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
        ),
    ),
    "babi-1": (BABI,),
    "babi-2": (BABI,),
    "babi-3": (BABI,),
    "movies": (
        Download(
            url="https://www.eraserbenchmark.com/zipped/movies.tar.gz",
            into="eraser/movies.tar.gz",
        ),
    ),
}


def _silent(received: int, total: int | None) -> None:
    """No progress is shown."""


def download_corpus(
    name: str,
    data_dir: Path | str | None = None,
    *,
    on_progress: Progress = _silent,
    patience: Patience | None = None,
) -> dict[str, Any]:
    """Have a corpus's files in the data directory, and prove that its reader finds them.

    What is there already is checked and never written over. What was cut goes on where it was.
    """
    began = time.monotonic()
    data = origin.data_dir(data_dir)
    source, files = _published(name, data)
    downloads = DOWNLOADS.get(name, ())
    found: list[dict[str, Any]] = []
    if any((data / download.into).exists() for download in downloads) or files.find(data) is None:
        if not downloads:
            raise _not_offered(name, source, f"the publisher's files in {data / files.folder}")
        for download in downloads:
            with _alone((data / download.into).parent):
                found.append(_file(download, data, files, on_progress, patience or Patience()))
    fingerprint(name, data)
    return {"corpus": name, "files": found, "seconds": round(time.monotonic() - began, 3)}


def _published(name: str, data: Path) -> tuple[Source, Files]:
    """The source of a corpus that has files; one that has none cannot be downloaded."""
    if name not in CORPORA and name in registrations(data):
        raise Refusal(
            f"corpus {name}",
            got="a table of your own",
            needs="the name of a published corpus",
            way_out="There is nothing to download.",
        )
    source = find_source(name) or look_up(name, CORPORA, "corpus")
    if not isinstance(source.origin, Files):
        raise _not_offered(name, source, "no files at all")
    return source, source.origin


def _not_offered(name: str, source: Source, needs: str) -> Refusal:
    got = "a name for which attentest knows no download"
    return Refusal(f"corpus {name}", got=got, needs=needs, way_out=source.how_to_get)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make the folder, and keep other downloads out of it: two of them would write into one part.

    The lock goes with the process, so a kill leaves none behind.
    """
    with writing(folder, str):
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if fcntl is None:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(place)
        raise Refusal(
            f"folder {folder}",
            got="another download that is going on there",
            needs="a folder of its own",
            way_out="Wait for the other to end.",
        ) from error
    except OSError:
        pass  # a file system without locks: the checksum is the last guard
    try:
        yield
    finally:
        os.close(place)


def _file(
    download: Download, data: Path, files: Files, on_progress: Progress, patience: Patience
) -> dict[str, Any]:
    """One file, fetched or found, known by its digest."""
    target = data / download.into
    receipt = receipts(target.parent).get(target.name)
    recorded = receipt.sha256 if receipt and receipt.url == download.url else None
    expected = download.sha256 or recorded
    transfer = Transfer(
        target,
        size=download.bytes,
        checked=expected is not None,
        patience=patience,
        on_progress=on_progress,
    )
    is_new = not target.exists()
    if is_new:
        _fetch(download, recorded, transfer)
    sha256 = digest(target)
    if expected is None:
        _check_archive(target, files, is_new)
    elif sha256 != expected:  # a new one was checked before it had its name
        out = "Use it as it is, or move it away, and the same command downloads the publisher's."
        raise _another(f"file {target}", sha256, expected, out)
    size = target.stat().st_size
    if is_new:
        with writing(target.parent, str):
            keep_receipt(target, url=download.url, sha256=sha256, size=size)
    about: dict[str, Any] = {"file": str(target), "bytes": size, "sha256": sha256}
    return about | {"resumed": is_new and transfer.fetched < size, "fetched": transfer.fetched}


def _fetch(download: Download, recorded: str | None, transfer: Transfer) -> None:
    """Download to the final name, which appears only when the length and the checksum are right."""
    target, part = transfer.part.target, transfer.part
    try:
        with writing(target.parent, str):
            pooch.retrieve(
                download.url,
                known_hash=download.sha256 or recorded,
                fname=target.name,
                path=target.parent,
                downloader=transfer,
            )
    except Refusal:
        raise
    except ValueError as error:  # how pooch says that a checksum is wrong
        what, sha256 = f"download {download.url}", digest(part.path)
        if download.sha256:
            part.discard()
            out = f"What came is removed; try again later, or put the right file at {target}."
            raise _another(what, sha256, download.sha256, out) from error
        out = f"The publisher has changed it; to take the new one, remove {target.parent / RECORD} first."
        raise _another(what, sha256, str(recorded), out) from error
    part.discard()


def _another(what: str, sha256: str, expected: str, way_out: str) -> Refusal:
    return Refusal(what, got=f"a file of sha256 {sha256}", needs=f"sha256 {expected}", way_out=way_out)


def _check_archive(target: Path, files: Files, is_new: bool) -> None:
    """With no digest to go by, an archive that can be read to its end and has the right members is right.

    It may be the page of a hotel's network that wants a password, or the first half of a body whose length
    the server did not say.
    """
    archive = Archive.open(target)
    try:
        names = [name for name in archive.names() if files.members.search(name)]
        if names:
            return
        problem = "an archive without the files of the corpus"
    except Refusal as refusal:
        problem = refusal.got
    if is_new:
        target.unlink()
    out = "It is removed; try again later." if is_new else "Move it away, and the same command downloads it."
    raise Refusal(f"file {target}", got=problem, needs="the publisher's archive", way_out=out)
