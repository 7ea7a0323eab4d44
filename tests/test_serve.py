"""`attentest serve`: a port of this machine, bounds on what strangers may send, and a clean end."""

import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from attentest.cli.main import run
from attentest.cli.serve import _pages, serve
from attentest.gallery.folder import MARKER
from attentest.live.answers import PATIENCE
from attentest.live.session import LONGEST
from attentest.refusal import Refusal
from attentest.store.store import Store
from attentest.web.application import ROUTES
from attentest.web.contract import LARGEST
from attentest.web.server import CONNECTIONS, SECONDS, bound
from attentest.web.site import OWN
from tests.gallery import put, put_corpus
from tests.serving import AT_MOST, TEXT, application, eventually, fetched, put_kind, served

ASKED = b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("serve") / "store")
    app = application(store)
    app.key = put_kind(store, "bilstm")[0]
    return app


def connected(address):
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=AT_MOST)


def said_to(address, sent):
    """Everything that the server says to these bytes."""
    with connected(address) as connection:
        connection.sendall(sent)
        heard = b""
        while part := connection.recv(65536):
            heard += part
    return heard


def welcome(address):
    """Whether a question is answered, and not turned away."""
    with suppress(ConnectionError):
        return said_to(address, ASKED).startswith(b"HTTP/1.0 200 ")
    return False


# --- the server


def test_questions_are_answered_over_http(app):
    with served(app) as address:
        question = {"model": app.key, "text": TEXT}
        status, headers, body = fetched(address, "/api/read", method="POST", question=question)
        assert status == 200 and json.loads(body)["predicted"] in ("no", "yes")
        assert headers["Server"].strip() == "attentest" and headers["X-Content-Type-Options"] == "nosniff"
        status, headers, body = fetched(address, "/live.html", method="HEAD")
        assert status == 200 and body == b"" and int(headers["Content-Length"]) > 1000
        assert fetched(address, "/")[0] == 200
        assert fetched(address, "/", Host="evil.example")[0] == 403


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /api/read HTTP/1.0\r\nHost: localhost\r\n\r\n", 411),
        (b"POST /api/read HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /api/read HTTP/1.0\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /api/read HTTP/1.0\r\nHost: localhost\r\nContent-Length: \xb2\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"BREW / HTTP/1.0\r\nHost: localhost\r\n\r\n", 501),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.0\r\n\r\n", 414),
        (b"GET / HTTP/1.0\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(200)) + b"\r\n", 431),
        (b"GET / HTTP/1.0\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"<script> / <b>\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 403),
        (b"GET /%ff HTTP/1.0\r\nHost: localhost\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_answered_with_a_sentence(app, sent, status):
    with served(app) as address:
        heard = said_to(address, sent)
        assert heard.startswith(f"HTTP/1.0 {status} ".encode()) and b"nosniff" in heard
        assert json.loads(heard.split(b"\r\n\r\n", 1)[1])["error"]["message"]
        assert b"<script>" not in heard


def test_a_question_that_is_too_large_is_not_read(app):
    with served(app) as address:
        for size in (LARGEST + 1, 10**11, 10**40):
            head = f"POST /api/read HTTP/1.0\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode()
            with connected(address) as connection:
                connection.sendall(head + b"x" * 1000)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(100).startswith(b"HTTP/1.0 413 ")


def test_who_sends_too_slowly_is_let_go(app):
    with served(app, seconds=0.3) as address:
        with connected(address) as connection:
            for sign in b"GET / HTTP":  # each byte comes in time, all of them do not
                try:
                    connection.sendall(bytes([sign]))
                except ConnectionError:
                    break
                time.sleep(0.1)
            with suppress(ConnectionError):
                assert connection.recv(100) == b""
        # Others are answered; on a busy machine we may be too slow ourselves, and are let go then.
        assert eventually(lambda: welcome(address))


def test_no_more_connections_than_there_are_places(app):
    with served(app, most=2) as address:
        held = [connected(address) for _ in range(2)]  # taken in this order, so before whoever comes next
        assert said_to(address, ASKED).startswith(b"HTTP/1.0 503 ")
        for connection in held:
            connection.close()
        assert eventually(lambda: welcome(address)), "places are given back"


def test_a_mistake_of_ours_is_said_and_shown(app, capsys, monkeypatch):
    def broken(request):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(app, "answer", broken)
    with served(app) as address:
        status, _, body = fetched(address, "/")
    assert status == 500 and "mistake" in json.loads(body)["error"]["message"]
    shown = []

    def is_shown():
        """The server writes it after it has answered, line by line."""
        shown.append(capsys.readouterr().err)
        return "ZeroDivisionError: ours" in "".join(shown)

    assert eventually(is_shown)


def test_many_ask_at_once(app):
    question = {"model": app.key, "text": TEXT}
    heard = []

    def ask():
        heard.append(fetched(address, "/api/read", method="POST", question=question)[2])

    with served(app) as address:
        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    said = [{k: v for k, v in json.loads(body).items() if k != "seconds"} for body in heard]
    assert len(said) == 12 and all(each == said[0] for each in said)


@pytest.mark.parametrize(("host", "says"), [("256.1.1.1", "--host"), ("192.0.2.1", "--host")])
def test_an_address_that_is_not_ours_is_refused(host, says):
    with pytest.raises(Refusal, match=says), bound(host, 0):
        pass


# --- the command


def test_a_taken_port_is_refused_in_a_sentence(store, capsys):
    put_kind(store, "average")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["serve", "--store", store.url, "--port", port]) == 2
    said = capsys.readouterr().err
    assert f"port {port} of 127.0.0.1" in said and "another program" in said and "--port" in said


def test_wrong_words_are_refused_before_a_port_is_taken(store, tmp_path, capsys):
    put_kind(store, "average")
    for words, says in (
        (["--store", str(tmp_path / "nowhere")], "no such folder"),
        (["--store", store.url, "--host", "0.0.0.0"], "needs a token"),
        (["--store", store.url, "--token", "short"], "16 to 128"),
        (["--store", store.url, "--port", "70000"], "65535"),
    ):
        assert run(["serve", *words]) == 2
        assert says in capsys.readouterr().err


def test_the_guide_knows_every_option_question_and_bound():
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "serve.md").read_text(encoding="utf-8")
    options = {f"--{name.replace('_', '-')}" for name in inspect.signature(serve).parameters}
    options = {"--json" if name == "--as-json" else name for name in options} - {"--data-dir", "--token"}
    assert not [option for option in options if option not in guide]
    assert not [route for route in ROUTES if f"`{route.method} {route.path}" not in guide]
    for said in (
        f"more than {LONGEST:,} words",
        f"beyond {PATIENCE['recurrent']} words of a recurrent encoder and {PATIENCE['whole']} of a",
        f"a request {SECONDS:g} s to arrive, and there are {CONNECTIONS} connections",
        f"at most {LARGEST // 10**6} MB",
    ):
        assert said in " ".join(guide.split()), said
    assert PATIENCE["token-wise"] == PATIENCE["convolutional"] == LONGEST


BLOCKED = """
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoTorch())
"""
START = "from attentest.__main__ import main; sys.argv[0] = 'attentest'; main()"
# A child of a process that ignores Ctrl-C would ignore it too.
ALIVE = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "


def started(store, tmp_path, *words, before=""):
    """The command in a process of its own, and what it says first.

    Without a buffer, which would swallow a second line that comes with the first, and keep it from `ended`.
    """
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "ATTENTEST_DATA": str(tmp_path)}
    command = [
        sys.executable,
        "-c",
        ALIVE + before + START,
        "serve",
        "--store",
        store.url,
        "--port",
        "0",
        *words,
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, bufsize=0
    )
    return process, process.stdout.readline().decode()


def ended(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=AT_MOST)
    return process.returncode, out.decode(), err.decode()


def test_it_says_its_address_serves_and_ends_with_ctrl_c(store, tmp_path):
    key, _ = put_kind(store, "average")
    process, line = started(store, tmp_path, "--json")
    try:
        said = json.loads(line)
        address = f"127.0.0.1:{said['port']}"
        assert said["address"] == f"http://{address}/" and said["live"] == f"http://{address}/live.html"
        assert "no findings" in said["site_missing"] and said["live_missing"] == ""
        assert b"no findings" in fetched(address, "/")[2]
        question = {"model": key, "text": TEXT}
        assert fetched(address, "/api/read", method="POST", question=question)[0] == 200
    finally:
        status, out, err = ended(process)
    assert (status, out, err) == (0, "", "")


def test_the_pages_are_the_very_bytes_of_a_report(store, tmp_path, monkeypatch):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    monkeypatch.setattr("attentest.gallery.pictures.FIGURES", {})  # to draw takes most of the time
    monkeypatch.setattr("attentest.gallery.site.to_svg", lambda chart: "<svg/>")
    put(store, "permutation", put_corpus(store))
    out, folder = tmp_path / "pages", tmp_path / "kept"
    folder.mkdir()
    pages, missing = _pages(store, folder, None, False)
    assert run(["report", "--store", store.url, "--out", str(out)]) == 0
    written = {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    served_ = {name: page if isinstance(page, bytes) else page.read_bytes() for name, page in pages.items()}
    assert missing == "" and {**served_, **written} == {**served_, MARKER: written[MARKER]}
    assert set(served_) - set(written) == set(OWN)


def test_without_torch_the_pages_are_served_and_the_live_one_says_why(store, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    put(store, "importance", put_corpus(store))
    key, _ = put_kind(store, "average")
    process, line = started(store, tmp_path, "--json", before=BLOCKED)
    try:
        said = json.loads(line)
        address = f"127.0.0.1:{said['port']}"
        assert "torch" in said["live_missing"] and said["site_missing"] == ""
        models = json.loads(fetched(address, "/api/models")[2])
        assert models["live"] is False and models["why"] == said["live_missing"]
        question = {"model": key, "text": TEXT}
        assert fetched(address, "/api/read", method="POST", question=question)[0] == 404
        # What `attentest report` writes, figures and all.
        page = fetched(address, "/")[2].decode()
        links = set(re.findall(r'(?:href|src)="([^"#:]+)"', page))
        assert "style.css" in links and any(link.startswith("figures/") for link in links)
        assert all(fetched(address, f"/{link}")[0] == 200 for link in links)
    finally:
        status, _, err = ended(process)
    assert (status, err) == (0, "")


def test_a_person_is_told_where_to_look(store, tmp_path):
    put_kind(store, "average")
    token = "abcdefghijklmnop"
    process, line = started(store, tmp_path, "--token", token)
    address = line.split("http://")[1].split("/")[0]
    try:
        assert line.startswith("Pages: ") and f"?token={token}" in line
        assert fetched(address, "/live.html")[0] == 401
        status, headers, _ = fetched(address, f"/live.html?token={token}")
        assert status == 303 and headers["Location"] == "/live.html"
        assert fetched(address, "/live.html", Cookie=headers["Set-Cookie"].split(";")[0])[0] == 200
    finally:
        status, out, _ = ended(process)
    assert status == 0 and "Live:" in out and "Ctrl-C" in out
