"""Downloads from a server on loopback that does everything servers do wrong: right in the end, or refused."""

import fcntl
import hashlib
import io
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from attentest.cli.main import run
from attentest.corpus.catalogue import CORPORA, fingerprint
from attentest.corpus.fetch import download
from attentest.corpus.fetch.archive import is_packed
from attentest.corpus.fetch.download import DOWNLOADS, Download, download_corpus
from attentest.corpus.fetch.transfer import Patience
from attentest.refusal import Refusal
from tests.command_line import add, table

QUICK = Patience(timeout=10.0, tries=3, pause=0.001)
CUT = 100_000


def archive(seed, size=300_000):
    """A zip with the Treebank's files, of bytes that cannot be confused with another seed's."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as packed:
        for split in ("train", "dev", "test"):
            member = zipfile.ZipInfo(f"trees/{split}.txt")
            packed.writestr(member, np.random.default_rng(seed).bytes(size // 3))
    return sink.getvalue()


OLD, NEW = archive(0), archive(1)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Answer:
    """One answer of the server, and what is wrong with it."""

    content: bytes = OLD
    status: int = 200
    location: str | None = None
    ranges: bool = True
    if_range: bool = True
    tagged: bool = True
    modified: str | None = None  # a date instead of a strong tag
    chunked: bool = False
    length: int | None = None  # what it says the length is
    cut: int | None = None  # bytes after which the connection is closed
    stall: int | None = None  # bytes after which nothing more comes


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        self.close_connection = True
        answers, asked = self.server.answers, self.headers.get("Range")
        self.server.asked.append(asked)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        status, tag = answer.status, f'"{sha256(answer.content)}"'
        start, headers = 0, {"Connection": "close"}
        if answer.tagged:
            headers["ETag"] = f"W/{tag}" if answer.modified else tag
        if answer.modified:
            headers["Last-Modified"] = tag = answer.modified
        if answer.location:
            status, headers["Location"] = 302, answer.location.format(here=self.server.url)
        same = not answer.if_range or self.headers.get("If-Range", tag) == tag
        if status == 200 and answer.ranges and asked and same:
            start, total = int(asked[len("bytes=") : -1]), len(answer.content)
            status = 206 if start < total else 416
            span = f"{start}-{total - 1}" if start < total else "*"
            headers["Content-Range"] = f"bytes {span}/{total}"
            headers.pop("Last-Modified", None)  # which the standard wants left out here
        body = answer.content[start:] if status in (200, 206) else b""
        self.send_response(status)
        if answer.chunked:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = str(len(body) if answer.length is None else answer.length)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.send(body, answer)

    def send(self, body, answer):
        ends = [end for end in (answer.cut, answer.stall) if end is not None]
        sent = body[: min([len(body), *ends])]
        for place in range(0, len(sent), 10_000):
            piece = sent[place : place + 10_000]
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if answer.chunked else piece)
            self.server.served += len(piece)
        if answer.chunked and answer.cut is None:
            self.wfile.write(b"0\r\n\r\n")
        if answer.stall is not None:
            self.wfile.flush()
            self.server.over.wait(30)


class Server(ThreadingHTTPServer):
    """A publisher: each request takes the next answer, the last of which is given for ever."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/trees.zip"
        self.answers, self.asked, self.served = [Answer()], [], 0
        self.over = threading.Event()

    def handle_error(self, request, client_address):
        pass  # a client that was killed


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as publisher:
        threading.Thread(target=publisher.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield publisher
        publisher.over.set()
        publisher.shutdown()


@pytest.fixture
def offer(server, monkeypatch):
    """Let `sst` be downloaded from the server, which will give these answers."""

    def of(*answers, url=None, **known):
        server.answers = list(answers or [Answer()])
        there = Download(url=url or server.url, into="sst/trees.zip", **known)
        monkeypatch.setitem(DOWNLOADS, "sst", (there,))

    return of


@pytest.fixture
def fetch(tmp_path):
    """Download `sst`; whatever happens, nothing but a whole file may have the final name."""

    def of(whole=OLD, *, patience=QUICK, **settings):
        target = tmp_path / "sst" / "trees.zip"
        before = target.read_bytes() if target.exists() else None
        try:
            result = download_corpus("sst", tmp_path, patience=patience, **settings)
        except Refusal as refusal:
            assert (target.read_bytes() if target.exists() else None) == before
            assert "\n" not in str(refusal)
            raise
        [file] = result["files"]
        assert target.read_bytes() == whole and file["file"] == str(target)
        assert file["bytes"] == len(whole) and file["sha256"] == sha256(whole)
        assert sorted(path.name for path in target.parent.iterdir()) == ["downloaded.toml", "trees.zip"]
        return file

    return of


def refused(fetch, says, **settings):
    with pytest.raises(Refusal, match=says) as caught:
        fetch(**settings)
    return str(caught.value)


def part(data):
    return data / "sst" / "trees.zip.part"


# --- a server that does what it should


@pytest.mark.parametrize("known", [{}, {"sha256": sha256(OLD)}, {"bytes": len(OLD)}])
def test_a_file_comes_whole_and_its_digest_is_recorded(known, offer, fetch, server, tmp_path):
    offer(**known)
    heard = []
    file = fetch(on_progress=lambda *progress: heard.append(progress))
    assert not file["resumed"] and file["fetched"] == server.served == len(OLD)
    assert heard[0] == (0, len(OLD)) and heard[-1] == (len(OLD), len(OLD)) and heard == sorted(heard)
    assert fingerprint("sst", tmp_path) == sha256(OLD), "the reader finds it"
    record = tomllib.loads((tmp_path / "sst" / "downloaded.toml").read_text())["trees.zip"]
    assert record["url"] == server.url and record["sha256"] == sha256(OLD) and record["bytes"] == len(OLD)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record["date"])


def test_what_is_there_is_not_fetched_again(offer, fetch, server):
    offer()
    fetch()
    assert fetch()["fetched"] == 0 and len(server.asked) == 1


def test_a_body_of_unknown_length_comes_whole(offer, fetch):
    offer(Answer(chunked=True))
    assert fetch()["fetched"] == len(OLD)


def test_a_redirection_is_followed_and_the_range_with_it(offer, fetch, server):
    there = Answer(location="{here}?elsewhere")
    offer(there, Answer(cut=CUT), there, Answer())
    fetch()
    assert server.served == len(OLD) and server.asked == [None, None, *[f"bytes={CUT}-"] * 2]


# --- cut connections


@pytest.mark.parametrize("chunked", [False, True])
def test_a_cut_connection_is_taken_up_where_it_broke(chunked, offer, fetch, server):
    offer(Answer(cut=CUT, chunked=chunked))
    fetch()
    assert server.served == len(OLD), "nothing is sent twice"
    assert server.asked == [None, *(f"bytes={CUT * n}-" for n in (1, 2, 3))][: len(server.asked)]


def test_a_command_that_gave_up_goes_on_the_next_time(offer, fetch, server, tmp_path):
    offer(Answer(cut=CUT), Answer(status=503))
    said = refused(fetch, r"status 503 \(Service Unavailable\)")
    assert "The 100,000 bytes that came are kept: the same command goes on from there." in said
    assert part(tmp_path).read_bytes() == OLD[:CUT] and len(server.asked) == 1 + QUICK.tries
    offer()
    file = fetch()
    assert file["resumed"] and file["fetched"] == len(OLD) - CUT and server.served == len(OLD)


@pytest.mark.parametrize("known", [{}, {"sha256": sha256(OLD)}])
def test_a_server_without_ranges_is_asked_for_everything_again(known, offer, fetch, server):
    offer(Answer(cut=CUT), Answer(ranges=False), **known)
    assert not fetch()["resumed"] and server.served == CUT + len(OLD)


def test_many_cuts_at_random_places_cost_nothing(offer, fetch, server, rng):
    offer(*(Answer(cut=int(n)) for n in rng.integers(0, 9000, 50)), Answer())
    fetch(patience=Patience(tries=20, pause=0.0))
    assert server.served == len(OLD) and len(server.asked) == 51


def test_a_silent_server_is_left_and_asked_again(offer, fetch, server):
    offer(Answer(stall=CUT), Answer())
    fetch(patience=Patience(timeout=0.5, tries=5, pause=0.001))
    assert server.served == len(OLD)


def test_a_server_that_stays_silent_is_refused_in_the_end(offer, fetch, server, tmp_path):
    offer(Answer(stall=CUT), Answer(stall=0))
    said = refused(fetch, "a server that fell silent", patience=Patience(timeout=0.5, tries=2, pause=0.001))
    assert "are kept" in said and len(server.asked) == 3 and part(tmp_path).stat().st_size == CUT


def test_a_body_shorter_than_announced_is_refused_and_kept(offer, fetch, tmp_path):
    offer(Answer(length=len(OLD) + 1, ranges=False))
    said = refused(fetch, f"got {len(OLD):,} of {len(OLD) + 1:,} bytes")
    assert "are kept" in said and part(tmp_path).exists()


@pytest.mark.parametrize(
    "known, says",
    [
        ({}, "something unreadable"),
        ({"sha256": sha256(OLD)}, f"needs sha256 {sha256(OLD)}"),
        ({"bytes": len(OLD)}, f"a file of {CUT:,} bytes, but needs the {len(OLD):,} published"),
    ],
)
def test_a_body_longer_than_announced_is_half_a_file_and_refused(known, says, offer, fetch, tmp_path):
    offer(Answer(length=CUT), **known)
    refused(fetch, says)
    assert not any((tmp_path / "sst").iterdir())


def test_a_body_of_unknown_and_wrong_length_is_refused(offer, fetch, tmp_path):
    offer(Answer(chunked=True), bytes=len(OLD) + 1)
    refused(fetch, f"a file of {len(OLD):,} bytes")
    assert not any((tmp_path / "sst").iterdir())


# --- another version of the file


def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(offer, fetch, server):
    offer(Answer(cut=CUT), Answer(NEW))
    assert not fetch(NEW)["resumed"] and server.asked == [None, f"bytes={CUT}-"]


def test_a_server_that_ignores_if_range_cannot_join_two_versions(offer, fetch, server):
    offer(Answer(cut=CUT), Answer(NEW, if_range=False))
    fetch(NEW)
    assert server.asked == [None, f"bytes={CUT}-", None]


def test_a_server_that_tells_no_versions_apart_is_not_trusted_with_ranges(offer, fetch, server):
    offer(Answer(cut=CUT, tagged=False), Answer(tagged=False))
    fetch()
    assert server.asked == [None, None]


def test_with_a_checksum_it_is_trusted(offer, fetch, server):
    offer(Answer(cut=CUT, tagged=False), Answer(tagged=False), sha256=sha256(OLD))
    fetch()
    assert server.served == len(OLD)


def test_with_a_checksum_two_versions_in_one_file_are_noticed(offer, fetch, tmp_path):
    offer(Answer(cut=CUT, tagged=False), Answer(NEW, tagged=False), sha256=sha256(NEW))
    refused(fetch, f"needs sha256 {sha256(NEW)}")
    fetch(NEW)


DAYS = [f"Mon, 0{n} Jan 2024 00:00:00 GMT" for n in (1, 8)]


def test_a_date_tells_versions_apart_where_the_tag_is_weak(offer, fetch, server):
    offer(Answer(cut=CUT, modified=DAYS[0]), Answer(cut=CUT, modified=DAYS[0]), Answer(NEW, modified=DAYS[1]))
    fetch(NEW)
    assert server.asked == [None, f"bytes={CUT}-", f"bytes={2 * CUT}-"]
    assert server.served == 2 * CUT + len(NEW)


def test_a_part_of_another_address_is_not_continued(offer, fetch, server):
    offer(Answer(cut=CUT), Answer(status=404))
    refused(fetch, "status 404")
    offer(Answer(NEW), url=f"{server.url}?new")
    assert not fetch(NEW)["resumed"]


def test_a_change_at_the_publisher_is_noticed_and_can_be_accepted(offer, fetch, server, tmp_path):
    offer()
    fetch()
    (tmp_path / "sst" / "trees.zip").unlink()
    offer(Answer(NEW))
    assert "The publisher has changed it" in refused(fetch, f"{sha256(NEW)}, but needs sha256 {sha256(OLD)}")
    (tmp_path / "sst" / "downloaded.toml").unlink()
    assert fetch(NEW)["fetched"] == 0 and server.served == len(OLD) + len(NEW), "what came was kept"


# --- a part that is not what it should be


def leave(data, content, **notes):
    """A part as an earlier run may have left it."""
    part(data).parent.mkdir()
    part(data).write_bytes(content)
    part(data).with_suffix(".part.json").write_text(json.dumps(notes))


@pytest.mark.parametrize("total", [None, len(OLD)])
def test_a_part_that_is_whole_already_is_only_checked(total, offer, fetch, server, tmp_path):
    offer()
    leave(tmp_path, OLD, url=server.url, validator=f'"{sha256(OLD)}"', total=total)
    file = fetch()
    assert file["resumed"] and server.served == 0 and len(server.asked) == (total is None)


def test_a_part_that_is_longer_than_the_file_is_thrown_away(offer, fetch, server, tmp_path):
    offer()
    leave(tmp_path, OLD + b"more", url=server.url, validator=f'"{sha256(OLD)}"', total=None)
    assert not fetch()["resumed"] and server.asked == [f"bytes={len(OLD) + 4}-", None]


@pytest.mark.parametrize("notes", [{}, {"url": 3}, {"colour": "red"}, {"total": "x"}, {"validator": []}])
def test_a_part_that_nobody_knows_is_thrown_away(notes, offer, fetch, server, tmp_path):
    offer()
    leave(tmp_path, b"of what?", **({"url": server.url} | notes if notes else {}))
    assert not fetch()["resumed"]


# --- refusals


@pytest.mark.parametrize("status", [204, 401, 403, 404, 410])
def test_a_file_that_is_not_given_is_refused_at_once(status, offer, fetch, server, tmp_path):
    offer(Answer(status=status))
    said = refused(fetch, f"status {status}")
    assert f"put it at {tmp_path / 'sst' / 'trees.zip'}." in said and len(server.asked) == 1


def test_a_server_that_recovers_is_asked_again(offer, fetch, server):
    offer(Answer(status=500), Answer(status=429), Answer())
    fetch()
    assert len(server.asked) == 3


@pytest.mark.parametrize("location", ["ftp://127.0.0.1/x", "file:///etc/hostname", "gopher://x", "{here}"])
def test_a_redirection_that_leads_nowhere_is_refused(location, offer, fetch):
    offer(Answer(location=location))
    refused(fetch, "status 302|unknown url type")


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/trees.zip", "file:///trees.zip", "trees.zip"])
def test_only_the_web_is_asked(url, offer, fetch):
    offer(url=url)
    refused(fetch, "needs one that starts with http or https")


def test_a_name_that_no_server_has_is_refused_at_once(offer, fetch, monkeypatch):
    def unknown(*address, **settings):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    offer()
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    refused(fetch, "no connection .*Name or service not known", patience=Patience(pause=60.0))


def test_a_server_that_is_not_there_is_refused_in_the_end(offer, fetch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        offer(url=f"http://127.0.0.1:{free.getsockname()[1]}/trees.zip")
        refused(fetch, "Connection refused")


def test_a_wrong_checksum_is_refused_and_what_came_is_removed(offer, fetch, tmp_path):
    offer(Answer(NEW), sha256=sha256(OLD))
    (tmp_path / "sst").mkdir()
    (tmp_path / "sst" / "mine.txt").write_text("mine")
    assert "What came is removed" in refused(fetch, f"{sha256(NEW)}, but needs sha256 {sha256(OLD)}")
    assert [path.name for path in (tmp_path / "sst").iterdir()] == ["mine.txt"]


def test_a_page_that_wants_a_password_is_no_corpus(offer, fetch, tmp_path):
    offer(Answer(b"<html>Welcome to the hotel"))
    assert "It is removed" in refused(fetch, "something unreadable")
    assert not any((tmp_path / "sst").iterdir())


def test_a_page_of_a_wrong_length_does_not_cost_the_part(offer, fetch, server, tmp_path):
    offer(Answer(cut=CUT), Answer(b"<html>Welcome", ranges=False), bytes=len(OLD))
    refused(fetch, "a file of 13 bytes")
    assert part(tmp_path).read_bytes() == OLD[:CUT]


def test_an_archive_of_something_else_is_refused(offer, fetch):
    offer(Answer(archive(0).replace(b"trees/", b"tries/")))
    refused(fetch, "an archive without the files of the corpus")


@pytest.mark.parametrize("place", ["sst", "."])
def test_a_folder_that_is_a_file_is_refused_and_left_alone(place, offer, fetch, tmp_path, monkeypatch):
    offer()
    data = tmp_path / "data"
    (data / place).parent.mkdir(exist_ok=True)
    (data / place).resolve().write_text("mine")
    with pytest.raises(Refusal, match=r"a place that cannot be written .*choose another --data-dir"):
        download_corpus("sst", data)
    assert (data / place).resolve().read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere, so nothing is read-only to it")
def test_a_folder_that_may_not_be_written_is_refused(offer, fetch, tmp_path):
    offer()
    (tmp_path / "sst").mkdir(mode=0o500)
    refused(fetch, "Permission denied")


def test_two_downloads_do_not_write_into_one_file(offer, fetch, server, tmp_path):
    offer()
    (tmp_path / "sst").mkdir()
    place = os.open(tmp_path / "sst", os.O_RDONLY)
    fcntl.flock(place, fcntl.LOCK_EX)
    refused(fetch, "another download that is going on there")
    os.close(place)
    assert not server.asked
    fetch()


def test_a_record_that_was_spoilt_is_refused(offer, fetch, tmp_path):
    offer()
    fetch()
    for content in ("[[", '["trees.zip"]\nurl = "x"', "a = 3"):
        (tmp_path / "sst" / "downloaded.toml").write_text(content)
        refused(fetch, "something unreadable .*Remove that file")


# --- what the user had


def test_a_file_that_was_there_is_never_written_over(offer, fetch, server, tmp_path):
    target = tmp_path / "sst" / "trees.zip"
    target.parent.mkdir()
    target.write_bytes(NEW)
    offer(sha256=sha256(OLD))
    assert "or move it away" in refused(fetch, f"file {target}: got a file of sha256 {sha256(NEW)}")
    offer()
    assert download_corpus("sst", tmp_path)["files"][0]["sha256"] == sha256(NEW), "nothing says it is wrong"
    target.write_bytes(NEW[:CUT])
    assert "Move it away" in refused(fetch, "something unreadable")
    assert target.exists() and not server.asked


def test_a_file_that_changed_since_it_was_fetched_is_noticed(offer, fetch, tmp_path):
    offer()
    fetch()
    (tmp_path / "sst" / "trees.zip").write_bytes(NEW)
    refused(fetch, f"{sha256(NEW)}, but needs sha256 {sha256(OLD)}")


def test_what_is_there_unpacked_is_not_downloaded(offer, server, tmp_path, capsys):
    offer()
    (tmp_path / "sst" / "trees").mkdir(parents=True)
    (tmp_path / "sst" / "trees" / "train.txt").write_text("(3 (2 a) (3 film))\n")
    assert download_corpus("sst", tmp_path)["files"] == [] and not server.asked
    assert run(["corpora", "get", "sst", "--data-dir", str(tmp_path)]) == 0
    assert "sst is here already; nothing was downloaded." in capsys.readouterr().out


# --- a process that dies


PROGRAM = """
import sys
from attentest.cli.main import run
from attentest.corpus.fetch.download import DOWNLOADS, Download
DOWNLOADS["sst"] = (Download(url=sys.argv[1], into="sst/trees.zip"),)
sys.exit(run(["corpora", "get", "sst", "--data-dir", sys.argv[2], *sys.argv[3:]]))
"""


@contextmanager
def process(server, data, limit=resource.RLIM_INFINITY):
    """The command in a process of its own, on a disk for files of at most `limit` bytes."""

    def prepare():
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs are deaf to it
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-c", PROGRAM, server.url, str(data)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=prepare, **pipes) as started:
        try:
            yield started
        finally:
            started.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_download_goes_on(how, offer, fetch, server, tmp_path):
    offer(Answer(stall=CUT))
    limit = time.monotonic() + 60
    with process(server, tmp_path) as victim:
        while not (part(tmp_path).exists() and part(tmp_path).stat().st_size == CUT):
            assert victim.poll() is None and time.monotonic() < limit
            time.sleep(0.01)
        victim.send_signal(how)
        out, err = victim.communicate(timeout=60)
    assert not out and victim.returncode == (-9 if how == signal.SIGKILL else 130)
    assert how == signal.SIGKILL or err.startswith("Interrupted. What is done is kept")
    offer()
    file = fetch()
    assert file["resumed"] and file["fetched"] == len(OLD) - CUT and server.served == len(OLD)


def test_a_full_disk_is_one_sentence_and_what_fitted_is_kept(offer, fetch, server, tmp_path):
    offer()
    with process(server, tmp_path, limit=CUT + 1) as full:
        out, err = full.communicate(timeout=60)
    assert not out and re.fullmatch(r"attentest: folder [^\n]+ cannot be written [^\n]+\.\n", err), err
    assert "The 100,001 bytes that came are kept" in err
    assert fetch()["fetched"] == len(OLD) - CUT - 1


# --- the command


def test_the_command_answers_with_the_fields_that_programs_rely_on(offer, server, tmp_path, capsys):
    offer()
    assert run(["corpora", "get", "sst", "--data-dir", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert not err and said["corpus"] == "sst" and said["seconds"] >= 0
    [file] = said["files"]
    assert {"file", "bytes", "sha256", "resumed"} <= set(file)
    assert run(["corpora", "list", "--data-dir", str(tmp_path), "--json"]) == 0
    status = {entry["name"]: entry["status"] for entry in json.loads(capsys.readouterr().out)["corpora"]}
    assert status["sst"] == "here"


def test_the_command_shows_a_person_what_came(offer, server, tmp_path, capsys):
    words = ["corpora", "get", "sst", "--data-dir", str(tmp_path)]
    offer(Answer(cut=CUT), Answer(status=404))
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert not out and re.fullmatch(r"attentest: download [^\n]+\.\n", err)
    for says in ("completed with 200.3 kB", "was here already"):
        offer()
        assert run(words) == 0
        out, err = capsys.readouterr()
        assert not err and says in out and sha256(OLD) in out and "attentest train sst" in out


def test_a_terminal_sees_a_bar_and_a_log_none(offer, tmp_path, capsys, monkeypatch):
    offer()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["corpora", "get", "sst", "--data-dir", str(tmp_path)]) == 0
    assert "sst" in capsys.readouterr().err
    assert run(["corpora", "get", "[/red]\x1b[2J", "--data-dir", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "[/red]" in err and "\x1b[2J" not in err


@pytest.mark.parametrize(
    "name, says",
    [
        ("agnews", "corpus agnews: got a name for which attentest knows no download"),
        ("yelp", "yelp_review_full_csv"),
        ("cnn", "cnn.tgz"),
        ("adr", "Ask the authors"),
        ("mimic-diabetes", "Apply for credentialed access"),
        ("planted-keyword", "Nothing to get"),
        ("mine", "a table of your own"),
        ("nothing", "one of sst, imdb"),
    ],
)
def test_a_corpus_without_a_download_is_refused_with_the_way_to_get_it(name, says, tmp_path):
    add(tmp_path / "data", "mine", table())
    with pytest.raises(Refusal, match=says):
        download_corpus(name, tmp_path / "data")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["registered"]


@pytest.mark.parametrize("name", DOWNLOADS)
def test_every_download_lands_where_its_reader_looks(name, tmp_path):
    for there in DOWNLOADS[name]:
        folder, file = there.into.split("/")
        assert folder == CORPORA[name].folder and there.url.startswith(("http://", "https://"))
        assert there.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", there.sha256)
        assert there.sha256 or there.url.endswith(file)
        (tmp_path / file).touch()
        assert is_packed(tmp_path / file), "an archive of a kind that is read"


def test_a_file_system_without_links_is_no_hindrance(offer, fetch, monkeypatch):
    def link(*words):
        raise OSError("Operation not supported")

    monkeypatch.setattr(os, "link", link)
    offer(Answer(cut=CUT), Answer())
    fetch()


def test_the_check_for_half_files_can_fail(offer, fetch, tmp_path, monkeypatch):
    offer()
    monkeypatch.setattr(
        download, "_fetch", lambda *words: (tmp_path / "sst" / "trees.zip").write_bytes(OLD[:CUT])
    )
    monkeypatch.setattr(download, "_check_archive", lambda *words: None)
    with pytest.raises(AssertionError):
        fetch()
