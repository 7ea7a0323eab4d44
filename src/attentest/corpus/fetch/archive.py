"""An Archive is a publisher's files, packed or not: a folder, a tar, a zip or one gzipped file read alike."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast, final

from attentest.refusal import Refusal

# A member's name and the way to its bytes. In a tar the way is open only until the next member is asked for.
Way = Callable[[], AbstractContextManager[io.BufferedIOBase]]
Entry = tuple[str, Way]

ANY = re.compile("")
LARGEST = 1 << 28  # bytes of a member that is read whole, and signs of a line: no corpus has a larger one
# RuntimeError is how zipfile says "encrypted" and "unknown compression".
DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, OSError, RuntimeError)


def _opened(path: Path) -> io.BufferedIOBase:
    return path.open("rb")


def _folder(path: Path) -> Iterator[Entry]:
    for here, folders, files in os.walk(path):
        folders.sort()
        for file in sorted(files):
            whole = Path(here, file)
            if not whole.is_file():  # a pipe would be waited for, a broken link is nothing
                continue
            yield whole.relative_to(path).as_posix(), partial(_opened, whole)


def _unzipped(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> io.BufferedIOBase:
    return cast(io.BufferedIOBase, packed.open(member))


def _zip(path: Path) -> Iterator[Entry]:
    with zipfile.ZipFile(path) as packed:
        for member in packed.infolist():
            if not member.is_dir():
                yield member.filename, partial(_unzipped, packed, member)


def _tar(unpacked: Way) -> Iterator[Entry]:
    """One pass, nothing written. The stream is unpacked here and not by tarfile, which checks no checksum."""
    with unpacked() as stream:
        with tarfile.open(fileobj=stream, mode="r:") as packed:
            for member in packed:
                if member.isfile():
                    yield member.name, partial(_extracted, packed, member)
        # tarfile takes a spoilt header for the end, so after the end there must be nothing but zeros; and
        # the checksum of what it is packed in comes last.
        while rest := stream.read(1 << 20):
            if rest.strip(b"\0"):
                raise tarfile.ReadError("data after the end")


def _extracted(packed: tarfile.TarFile, member: tarfile.TarInfo) -> io.BufferedIOBase:
    return cast(io.BufferedIOBase, packed.extractfile(member))  # None only for what is no file


def _plain_tar(path: Path) -> Iterator[Entry]:
    # A plain tar that was cut between two members reads as a shorter one: only its end, zeros, tells.
    with path.open("rb") as raw:
        raw.seek(-min(512, path.stat().st_size), os.SEEK_END)
        if raw.read().strip(b"\0"):
            raise tarfile.ReadError("unexpected end of data")
    yield from _tar(partial(_opened, path))


def _gzip(path: Path) -> Iterator[Entry]:
    yield path.name, partial(_opened, path)  # unpacked like any gzipped member


def _tar_gz(path: Path) -> Iterator[Entry]:
    return _tar(partial(gzip.open, path, "rb"))


def _tar_xz(path: Path) -> Iterator[Entry]:
    return _tar(partial(lzma.open, path, "rb"))


# Longer endings first: ".tar.gz" also ends in ".gz".
SUFFIXES: dict[str, Callable[[Path], Iterator[Entry]]] = {
    ".tar.gz": _tar_gz,
    ".tgz": _tar_gz,
    ".tar.xz": _tar_xz,
    ".tar": _plain_tar,
    ".zip": _zip,
    ".gz": _gzip,
}


def _suffix(path: Path) -> str | None:
    return next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)


def is_packed(path: Path) -> bool:
    """Whether a file holds several files: a single gzipped file is a member of its folder, not an archive."""
    return path.is_file() and _suffix(path) not in (None, ".gz")


@contextmanager
def _gunzipped(way: Way) -> Iterator[io.BufferedIOBase]:
    # GzipFile does not close what it reads from.
    with way() as packed, gzip.GzipFile(fileobj=packed, mode="rb") as file:
        yield file


def _is_litter(name: str) -> bool:
    """Whether a name is what macOS leaves beside each file it packs; the Treebank's zip is full of them."""
    return name.startswith("__MACOSX/") or name.rsplit("/", 1)[-1].startswith("._")


@final
@dataclass(frozen=True)
class Archive:
    """Members by name, relative to the top. A gzipped member goes by its name without `.gz`.

    Nothing is ever extracted to disk, so a member called `../../x` is only an odd name.
    """

    path: Path

    @classmethod
    def open(cls, path: Path | str) -> Archive:
        """The archive at a path, which must be a folder or end in one of SUFFIXES."""
        path = Path(path)
        wrong = None
        if not path.exists():
            wrong = "nothing at that path"
        elif path.is_file() and _suffix(path) is None:
            wrong = "a file that is no archive we know"
        if wrong:
            needs = f"a folder or a file that ends in {', '.join(SUFFIXES)}"
            raise Refusal(f"archive {path}", got=wrong, needs=needs, way_out="Check the path.")
        return cls(path)

    def _entries(self) -> Iterator[Entry]:
        suffix = None if self.path.is_dir() else _suffix(self.path)
        for name, way in _folder(self.path) if suffix is None else SUFFIXES[suffix](self.path):
            name = name.removeprefix("./")
            if _is_litter(name):
                continue
            if name.endswith(".gz") and not name.endswith(".tar.gz"):
                yield name.removesuffix(".gz"), partial(_gunzipped, way)
            else:
                yield name, way

    @contextmanager
    def _guarded(self, name: str = "") -> Iterator[None]:
        """Turn what the unpackers raise on damage into a refusal that names the file."""
        where = f"archive {self.path}" + (f", member {name}" if name else "")
        try:
            yield
        except UnicodeDecodeError as error:
            raise Refusal(
                where,
                got=f"a byte that is not {error.encoding} ({error.reason})",
                needs=f"text in {error.encoding}",
                way_out="The file is damaged or not the publisher's: get it again.",
            ) from error
        except DAMAGE as error:
            raise Refusal(
                where,
                got=f"something unreadable ({error or type(error).__name__})",
                needs="a whole and undamaged file",
                way_out="The download may have been cut short: get it again.",
            ) from error

    def names(self) -> Iterator[str]:
        """Every member's name, as it is found; of a tar no more is unpacked than asked for."""
        with self._guarded():
            yield from (name for name, _ in self._entries())

    def members(self, pattern: re.Pattern[str] = ANY) -> Iterator[tuple[re.Match[str], bytes]]:
        """The members whose name the pattern finds, with their bytes, in one pass.

        This is the road for many members: `read` starts a tar anew for each.
        """
        with self._guarded():
            for name, way in self._entries():
                if found := pattern.search(name):
                    yield found, self._whole(name, way)

    def streams(
        self, pattern: re.Pattern[str], *, encoding: str = "utf-8-sig"
    ) -> Iterator[tuple[re.Match[str], Iterator[str]]]:
        """The same with their lines, unpacked as they are asked for: the road for members of any size.

        The lines of one member must be read before the next member is asked for.
        """
        with self._guarded():
            for name, way in self._entries():
                if found := pattern.search(name):
                    yield found, self._lines(name, way, encoding)

    def digests(self, pattern: re.Pattern[str] = ANY) -> Iterator[tuple[str, str]]:
        """The names that the pattern finds, each with the sha256 of its content, whatever its size."""
        with self._guarded():
            for name, way in self._entries():
                if pattern.search(name):
                    with way() as file:
                        yield name, hashlib.file_digest(file, "sha256").hexdigest()

    def _lines(self, name: str, way: Way, encoding: str) -> Iterator[str]:
        opened = partial(io.TextIOWrapper, encoding=encoding, newline="")
        with self._guarded(name), way() as file, opened(cast(BinaryIO, file)) as text:
            while line := text.readline(LARGEST):
                if len(line) == LARGEST:
                    raise self._too_large(name, "a line")
                yield line

    def _whole(self, name: str, way: Way) -> bytes:
        with way() as file:
            content = file.read(LARGEST)
        if len(content) == LARGEST:
            raise self._too_large(name, "a file")
        return content

    def _too_large(self, name: str, what: str) -> Refusal:
        return Refusal(
            f"archive {self.path}, member {name}",
            got=f"{what} of {LARGEST >> 20} MB or more",
            needs="the publisher's texts, which are smaller",
            way_out="The file is damaged or not the publisher's: get it again.",
        )

    def read(self, name: str) -> bytes:
        """One member's bytes."""
        with self._guarded(name):
            for there, way in self._entries():
                if there == name:
                    return self._whole(name, way)
        raise self.lacking([name])

    def lines(self, name: str, *, encoding: str = "utf-8-sig") -> Iterator[str]:
        """One member's lines with their ends, unpacked as they are asked for."""
        with self._guarded(name):
            for there, way in self._entries():
                if there == name:
                    yield from self._lines(name, way, encoding)
                    return
        raise self.lacking([name])

    def text(self, name: str, *, encoding: str = "utf-8-sig") -> str:
        """One member's text."""
        return self.decoded(name, self.read(name), encoding=encoding)

    def decoded(self, name: str, content: bytes, *, encoding: str = "utf-8-sig") -> str:
        """The text of bytes that were read from a member; the name is for the refusal."""
        with self._guarded(name):
            return content.decode(encoding)

    def lacking(self, needed: Collection[str]) -> Refusal:
        """The refusal to raise when these members are not here."""
        return Refusal(
            f"archive {self.path}",
            got=f"no {', no '.join(sorted(needed))}",
            needs="the publisher's files under their own names",
            way_out="Unpack or download the whole archive again.",
        )
