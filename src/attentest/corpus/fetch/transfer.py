"""One file over HTTP, kept as it comes, so that a download that was cut goes on instead of starting again."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any, BinaryIO, final

from attentest.corpus.fetch.part import Notes, Part
from attentest.refusal import Refusal

Progress = Callable[[int, int | None], None]  # bytes received so far, and of how many, where that is known

CHUNK = 1 << 16
SCHEMES = ("http", "https")
PASSING = (408, 425, 429, 500, 502, 503, 504)  # statuses of a server that may be well again in a moment
RANGE = re.compile(r"bytes (?:(?P<start>\d+)-\d+|\*)/(?P<total>\d+|\*)")


@final
@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait for a byte, how often to try without getting any further, and the first pause."""

    timeout: float = 30.0
    tries: int = 5
    pause: float = 1.0


def _opener() -> urllib.request.OpenerDirector:
    """Like urlopen, but no redirection can lead to ftp: or to a file of this machine."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    opener.addheaders = [("User-Agent", "attentest")]
    return opener


def _validator(headers: Message) -> str | None:
    """What tells one version of a file from another. A weak tag may not be used with ranges."""
    tag = headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")


def _said(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "a server that fell silent"
    return f"a broken connection ({str(error) or type(error).__name__})"


@contextmanager
def writing(folder: Path, kept: Callable[[], str]) -> Iterator[None]:
    """Turn what a disk refuses into a sentence; `kept` says what is not lost."""
    try:
        yield
    except OSError as error:
        raise Refusal(
            f"folder {folder}",
            got=f"a place that cannot be written ({error.strerror or error})",
            needs="one that may be written and has room",
            way_out=f"Make room, or choose another --data-dir or ATTENTEST_DATA. {kept()}".rstrip(),
        ) from error


@final
class Transfer:
    """A downloader for pooch that resumes by HTTP Range, where pooch's own only start again.

    Bytes go straight to the part beside the target. A part is continued only if the server still has the
    version it began with (If-Range); with no validator from the server it is continued only if a checksum is
    known (`checked`), since nothing else would notice two versions in one file.
    """

    def __init__(
        self,
        target: Path,
        *,
        size: int | None,
        checked: bool,
        patience: Patience,
        on_progress: Progress,
    ) -> None:
        self.part = Part(target)
        self.size = size  # as published, where that is known
        self.checked = checked
        self.patience = patience
        self.on_progress = on_progress
        self.fetched = 0  # bytes that came in this run

    def __call__(self, url: str, output_file: str | Path, pooch: Any = None) -> None:
        """Have the whole file at `output_file`; the part stays until the caller has checked it."""
        # pooch made an empty file of that name, which a kill during the download would leave lying about.
        Path(output_file).unlink(missing_ok=True)
        self.receive(url)
        whole = self.part.size()
        if self.size not in (None, whole):
            self.part.discard()
            raise self._wrong_length(url, whole)
        with self._writing(url):
            try:
                os.link(self.part.path, output_file)
            except OSError:  # a file system without hard links
                shutil.copyfile(self.part.path, output_file)

    def receive(self, url: str) -> None:
        """Complete the part, trying again while that brings anything new and a few times when it does not."""
        if urllib.parse.urlsplit(url).scheme not in SCHEMES:
            raise self._refusal(
                url, "another kind of address", f"one that starts with {' or '.join(SCHEMES)}"
            )
        furthest, wasted = self.part.size(), 0
        while (problem := self._attempt(url)) is not None:
            wasted = 0 if self.part.size() > furthest else wasted + 1
            furthest = max(furthest, self.part.size())
            if wasted >= self.patience.tries:
                raise self._refusal(url, problem, "the whole file")
            time.sleep(self.patience.pause * 2 ** (wasted - 1))

    def _usable(self, url: str) -> tuple[int, Notes]:
        """How many bytes of the part can be continued, and what they are of."""
        notes = self.part.notes()
        if notes is None or notes.url != url or not (notes.validator or self.checked):
            return 0, Notes(url)
        return self.part.size(), notes

    def _attempt(self, url: str) -> str | None:
        """One request. None: the part is whole; else why it is not, where another try may help."""
        have, notes = self._usable(url)
        if have and have == notes.total:
            return None
        asked = {"Range": f"bytes={have}-"} if have else {}
        if have and notes.validator:
            asked["If-Range"] = notes.validator
        request = urllib.request.Request(url, headers=asked)
        try:
            with _opener().open(request, timeout=self.patience.timeout) as response:
                return self._answered(response, have, notes)
        except urllib.error.HTTPError as error:
            with error:
                return self._declined(error, have, notes)
        except urllib.error.URLError as error:
            return self._unreached(error, url)
        except (OSError, http.client.HTTPException) as error:
            return _said(error)

    def _answered(self, response: http.client.HTTPResponse, have: int, notes: Notes) -> str | None:
        """Put the body where it belongs: at the end of the part, or in its place."""
        length = response.length  # None where the server does not say
        new = Notes(notes.url, _validator(response.headers), length)
        if response.status == 206:
            there = RANGE.fullmatch(response.headers.get("Content-Range", ""))
            total = int(there["total"]) if there and there["total"] != "*" else None
            new = Notes(notes.url, new.validator or notes.validator, total or notes.total)
            if there is None or there["start"] != str(have) or new.differs(notes):
                # From a server that ignores If-Range: two versions must not be joined.
                self.part.discard()
                return "another part of the file, or of another version, than was asked for"
        elif response.status == 200:
            have = 0
        else:
            raise self._refusal(notes.url, f"an odd answer (status {response.status})", "the file")
        if None not in (self.size, new.total) and self.size != new.total:
            # Before the part is emptied: a page that asks for a password is no reason to lose what has come.
            raise self._wrong_length(notes.url, new.total)
        with self._writing(notes.url):
            if not have:
                self.part.begin(new)
            file = self.part.path.open("ab", buffering=0)
        with file:
            return self._copied(response, file, have, new)

    def _copied(
        self, response: http.client.HTTPResponse, file: BinaryIO, size: int, notes: Notes
    ) -> str | None:
        """Append the body as it comes. `read1` returns what is there, so a stall loses nothing."""
        self.on_progress(size, notes.total)
        # Never beyond the announced end: an open connection would be waited for in vain.
        while room := CHUNK if notes.total is None else min(CHUNK, notes.total - size):
            chunk = response.read1(room)
            if not chunk:
                break
            with self._writing(notes.url):
                rest = memoryview(chunk)
                while rest:  # an unbuffered write may take less than it is given when the disk fills up
                    rest = rest[file.write(rest) :]
            size += len(chunk)
            self.fetched += len(chunk)
            self.on_progress(size, notes.total)
        if notes.total is not None and size < notes.total:
            return f"{size:,} of {notes.total:,} bytes"
        with self._writing(notes.url):
            os.fsync(file.fileno())
            self.part.describe(Notes(notes.url, notes.validator, size))
        return None

    def _declined(self, error: urllib.error.HTTPError, have: int, notes: Notes) -> str | None:
        """A status that is no success: the part is whole already, or a reason to try again, or to give up."""
        if error.code == 416 and have:
            there = RANGE.fullmatch(error.headers.get("Content-Range", ""))
            if there and there["total"] == str(have) and _validator(error.headers) in (None, notes.validator):
                return None
            self.part.discard()
            return "a part that is longer than the file"
        reason = " ".join(str(error.reason).split())  # of a circle of redirections urllib says three lines
        problem = f"status {error.code} ({reason}) from the server"
        if error.code in PASSING:
            return problem
        raise self._refusal(notes.url, problem, "a server that has the file and gives it")

    def _unreached(self, error: urllib.error.URLError, url: str) -> str:
        """No answer at all. A name that is not known or a false certificate will not get better at once."""
        lasting = (str, socket.gaierror, ssl.SSLCertVerificationError)
        if isinstance(error.reason, lasting):
            raise self._refusal(
                url, f"no connection ({error.reason})", "a network that reaches it"
            ) from error
        return _said(error.reason)

    def _kept(self, url: str) -> str:
        have, _ = self._usable(url)
        return f"The {have:,} bytes that came are kept: the same command goes on from there." if have else ""

    def _writing(self, url: str) -> Any:
        return writing(self.part.target.parent, lambda: self._kept(url))

    def _wrong_length(self, url: str, length: int | None) -> Refusal:
        return self._refusal(url, f"a file of {length:,} bytes", f"the {self.size:,} published")

    def _refusal(self, url: str, got: str, needs: str) -> Refusal:
        kept = self._kept(url) or "Try again later."
        out = f"{kept} Or fetch it by other means and put it at {self.part.target}."
        return Refusal(f"download {url}", got=got, needs=needs, way_out=out)
