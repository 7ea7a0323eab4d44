"""`attentest serve`: a port of this machine, bounds on what strangers may send, and a clean end."""

import http.client
import inspect
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attentest.cli.main import run
from attentest.cli.serve import _report, serve
from attentest.gallery.folder import MARKER
from attentest.live.answers import PATIENCE
from attentest.live.session import LONGEST
from attentest.refusal import Refusal
from attentest.store.store import Store
from attentest.web.application import QUESTIONS, ROUTES
from attentest.web.contract import LARGEST
from attentest.web.drawing import drawing
from attentest.web.server import CONNECTIONS, OF_ONE_CLIENT, SECONDS, bound
from attentest.web.shelf import Shelf
from attentest.web.site import OWN, Pages, own_pages
from tests.families import tiny, tokenizer
from tests.gallery import put, put_corpus
from tests.serving import AT_MOST, TEXT, application, eventually, fetched, put_kind, served

TOKEN = "abcdefghijklmnop"
NO_HOSTS = (
    "",
    " ",
    "büro",
    "b" * 64 + ".example",
    "a..b",
    "a b",
    "a\0b",
    "a\nb",
    "http://localhost",
    "é\udcff",
)
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


def said_to(address, sent, half=False):
    """Everything that the server says to these bytes; perhaps it knows that no more will come."""
    with connected(address) as connection:
        connection.sendall(sent)
        if half:
            connection.shutdown(socket.SHUT_WR)
        heard = b""
        while part := connection.recv(65536):
            heard += part
    return heard


def welcome(address):
    """Whether a question is answered, and not turned away."""
    with suppress(ConnectionError):
        return said_to(address, ASKED).startswith(b"HTTP/1.1 200 ")
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
        (b"GET /\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.0\r\nHost: localhost\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_answered_with_a_sentence(app, sent, status):
    with served(app) as address:
        heard = said_to(address, sent)
        assert heard.startswith(f"HTTP/1.1 {status} ".encode()) and b"nosniff" in heard
        assert json.loads(heard.split(b"\r\n\r\n", 1)[1])["error"]["message"]
        assert b"<script>" not in heard


def test_a_question_that_is_too_large_is_not_read(app):
    with served(app) as address:
        for size, status in ((LARGEST + 1, 413), (10**11, 413), (10**40, 400)):  # the last is no length
            head = f"POST /api/read HTTP/1.0\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode()
            with connected(address) as connection:
                connection.sendall(head + b"x" * 1000)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(100).startswith(f"HTTP/1.1 {status} ".encode())


def test_who_sends_too_slowly_is_told_and_let_go(app):
    head = b"POST /api/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    with served(app, seconds=0.3) as address:
        for start in (b"", head):  # a head that does not end, and a body
            heard = b""
            with connected(address) as connection, suppress(ConnectionError):
                connection.sendall(start)
                for sign in b"GET / HTTP":  # each byte comes in time, all of them do not
                    connection.sendall(bytes([sign]))
                    time.sleep(0.1)
                heard = connection.recv(4096)
            assert heard.startswith(b"HTTP/1.1 408 ") and b"in time" in heard
        with connected(address) as connection:
            assert connection.recv(100) == b"", "who asks nothing is told nothing"
        # Others are answered; on a busy machine we may be too slow ourselves, and are let go then.
        assert eventually(lambda: welcome(address))


def test_who_does_not_take_the_answer_is_let_go(app):
    large = application(app.shelf.store, pages={"large.txt": bytes(50_000_000)})
    with served(large, seconds=0.3, most=1) as address, connected(address) as connection:
        connection.sendall(b"GET /large.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(10)
        assert eventually(lambda: welcome(address)), "there is one place, and it is free again"


def test_half_a_header_takes_nobody_elses_place(app):
    with served(app) as address, ExitStack() as stack:
        held = [stack.enter_context(connected(address)) for _ in range(200)]
        for connection in held:
            with suppress(ConnectionError):
                connection.sendall(b"GET / HTTP/1.1\r\nHost: local")
        assert all(welcome(address) for _ in range(100))
        heard = b""
        with suppress(ConnectionError):
            heard = held[0].recv(4096)
        assert heard[:13] in (b"", b"HTTP/1.1 503 "), "the oldest made room"
        held[-OF_ONE_CLIENT // 2].sendall(b"host\r\n\r\n")
        assert held[-OF_ONE_CLIENT // 2].recv(100).startswith(b"HTTP/1.1 200 "), "the youngest stay"


@contextmanager
def busy(app, count, **bounds):
    """A server with so many questions that are being answered until the event is set, and its address."""
    asked, end = threading.Semaphore(0), threading.Event()

    class Waiting:
        def read(self, **question):
            asked.release()
            end.wait(AT_MOST)
            raise Refusal("a", got="b", needs="c", way_out="d")

        decide = read

    slow = application(app.shelf.store)
    slow.live = Waiting()
    question = {"model": app.key, "text": TEXT}

    def ask(address):
        with suppress(ConnectionError, http.client.HTTPException):
            fetched(address, "/api/read", method="POST", question=question)

    try:
        with served(slow, **bounds) as address:
            threads = [threading.Thread(target=ask, args=(address,)) for _ in range(count)]
            for thread in threads:
                thread.start()
                assert asked.acquire(timeout=AT_MOST)
            yield address, end
        for thread in threads:
            thread.join()  # the server has ended, and with it their connections: before there is an answer
    finally:
        end.set()


def test_no_more_connections_than_there_are_places(app):
    with busy(app, 2, most=2) as (address, end):
        heard = said_to(address, ASKED)
        assert heard.startswith(b"HTTP/1.1 503 ") and b"nosniff" in heard and b"Ask again" in heard
        end.set()
        assert eventually(lambda: welcome(address)), "places are given back"


def test_one_client_leaves_places_to_others(app):
    with busy(app, 2, most_of_one=2) as (address, _):
        assert not welcome(address)
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), AT_MOST, source_address=("127.0.0.2", 0)) as other:
            other.sendall(ASKED)
            assert other.recv(100).startswith(b"HTTP/1.1 200 ")


def test_pages_are_served_while_there_are_too_many_questions(app, monkeypatch):
    monkeypatch.setattr("attentest.web.application.QUESTIONS", 1)
    with busy(app, 1) as (address, _):
        status, headers, body = fetched(address, "/api/models")
        assert (
            status == 503 and headers["Retry-After"] and "questions" in json.loads(body)["error"]["message"]
        )
        assert fetched(address, "/live.html")[0] == 200


def test_it_ends_at_once_whoever_waits_for_an_answer(app, caplog):
    with busy(app, 2) as (_, end):
        assert not end.is_set()
    assert not caplog.records


@pytest.fixture(scope="module")
def address(app):
    with served(app) as address:
        yield address


LINE = st.sampled_from(
    (b"GET / HTTP/1.1\r\n", b"POST /api/read HTTP/1.0\r\n", b"HEAD /live.js HTTP/1.1\r\n", b"")
)
FIELD = st.sampled_from(
    (
        *(b"Host: localhost\r\n", b"Host: \xff\r\n", b"Content-Length: 2\r\n", b"Content-Length: +2\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: keep-alive\r\n"),
        *(b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b" folded\r\n", b"X\0: 1\r\n", b"\n"),
    )
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    line=LINE, fields=st.lists(FIELD, max_size=5), rest=st.sampled_from((b"{}", b"")) | st.binary(max_size=60)
)
def test_whatever_is_sent_is_answered_or_refused(address, caplog, line, fields, rest):
    heard = said_to(address, line + b"".join(fields) + b"\r\n" + rest, half=True)
    heard = re.sub(rb"^HTTP/1.1 100 .*?\r\n\r\n", b"", heard, flags=re.DOTALL)
    first, *more = re.findall(rb"HTTP/1.1 (\d+) [^{<]*?nosniff", heard)
    assert (200 <= int(first) < 500 or int(first) == 501) and not more
    assert not caplog.records


def test_a_head_request_whose_body_is_malformed_is_refused_without_a_body(address, caplog):
    fields = b"HEAD / HTTP/1.1\r\nHost: " + address.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    heard = said_to(address, fields + b"zz\r\n", half=True)
    assert heard.startswith(b"HTTP/1.1 400") and heard.endswith(b"\r\n\r\n") and not caplog.records


def test_a_mistake_of_ours_is_said_and_shown(app, capsys, monkeypatch):
    def broken():
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(app.shelf, "models", broken)
    # As where nobody has set up logging, which pytest has.
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "propagate", False)
    with served(app) as address:
        status, headers, body = fetched(address, "/api/models")
    assert status == 500 and "mistake" in json.loads(body)["error"]["message"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "ZeroDivisionError: ours" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("host", "says"), [("256.1.1.1", "--host"), ("192.0.2.1", "--host"), ("b" * 64, "--host")]
)
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
        *((["--store", store.url, "--host", host, "--token", TOKEN], "--host") for host in NO_HOSTS),
        (["--store", store.url, "--port", "70000"], "65535"),
    ):
        assert run(["serve", *words]) == 2
        assert says in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(store, capsys, monkeypatch):
    put_kind(store, "average")
    monkeypatch.setattr("attentest.gallery.extra.find_spec", lambda name: None)
    assert run(["serve", "--store", store.url]) == 2
    said = capsys.readouterr().err
    assert "no starlette, uvicorn" in said and "attentest[web]" in said


def test_the_guide_knows_every_option_question_and_bound():
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "serve.md").read_text(encoding="utf-8")
    options = {f"--{name.replace('_', '-')}" for name in inspect.signature(serve).parameters}
    options = {"--json" if name == "--as-json" else name for name in options} - {"--data-dir", "--token"}
    assert not [option for option in options if option not in guide]
    assert not [route for route in ROUTES if f"`{route.method} {route.path}" not in guide]
    for said in (
        f"more than {LONGEST:,} words",
        f"beyond {PATIENCE['recurrent']} words of a recurrent encoder and {PATIENCE['whole']} of a",
        f"a request {SECONDS:g} s to arrive, and there are {CONNECTIONS} connections at a time, "
        f"{OF_ONE_CLIENT} of one client",
        f"At most {QUESTIONS} questions are answered at a time",
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


def replaced(monkeypatch, code):
    """The process that draws runs this code, with its own arguments."""
    begin = subprocess.Popen

    def begin_other(words, **rest):
        return begin([sys.executable, "-c", code, *words[words.index("report") :]], **rest)

    monkeypatch.setattr("attentest.web.drawing.subprocess.Popen", begin_other)


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
        assert (
            said["drawing"] is False
            and said["address"] == f"http://{address}/"
            and said["live"] == f"http://{address}/live.html"
        )
        assert "no findings" in said["site_missing"] and said["live_missing"] == ""
        assert b"no findings" in fetched(address, "/")[2]
        question = {"model": key, "text": TEXT}
        assert fetched(address, "/api/read", method="POST", question=question)[0] == 200
    finally:
        status, out, err = ended(process)
    assert (status, out, err) == (0, "", "")


def test_models_that_are_named_are_served_without_a_store(tmp_path):
    model = tiny("gpt2", head="LMHeadModel")
    model.save_pretrained(tmp_path / "gpt")
    tokenizer("gpt2").save_pretrained(tmp_path / "gpt")
    nowhere = SimpleNamespace(url=str(tmp_path / "none"))
    causal = ("--task", "prompt", "--prompt", "a cat {text} today", "--labels", " good, bad")
    process, line = started(nowhere, tmp_path, "--json", "--model", str(tmp_path / "gpt"), *causal)
    try:
        address = f"127.0.0.1:{json.loads(line)['port']}"
        (offered,) = json.loads(fetched(address, "/api/models")[2])["models"]
        assert offered["name"] == str(tmp_path / "gpt") and offered["labels"] == ["good", "bad"]
        question = {"model": offered["key"], "text": "the film was bad", "layer": 0, "head": 1}
        status, _, body = fetched(address, "/api/read", method="POST", question=question)
        said = json.loads(body)
        assert status == 200 and said["units"] == ["the", "film", "was", "bad"] and len(said["heads"]) == 3
        assert b"no findings" in fetched(address, "/")[2]
        asked = f"/api/example?model={offered['key']}"
        assert b"no corpus of its own" in fetched(address, asked)[2]
    finally:
        status, _, _ = ended(process)
    assert status == 0 and not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--model", "nowhere/at-all"), "--network"),
        (("--model", "."), "config.json"),
        (("--model", ".", "--task", "prompt"), "--prompt"),
        (("--model", ".", "--layer", "best"), "--layer"),
        (("--model", ".", "--mark", "|"), "--mark"),
        (("--model", ".", "--attention", "rolled"), "--attention"),
    ],
)
def test_a_model_that_cannot_be_served_is_refused_before_anything_listens(words, says, tmp_path, capsys):
    assert run(["serve", "--store", str(tmp_path / "none"), *words]) == 2
    assert says in capsys.readouterr().err


# To draw figures takes most of the time; in other processes none are.
UNDRAWN = """
import sys, attentest.gallery.pictures, attentest.gallery.site
attentest.gallery.pictures.FIGURES.clear()
attentest.gallery.site.to_svg = lambda chart: "<svg/>"
"""


def test_the_pages_are_the_very_bytes_of_a_report(store, tmp_path, monkeypatch):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    replaced(monkeypatch, UNDRAWN + START)
    put(store, "permutation", put_corpus(store))
    out, folder = tmp_path / "pages", tmp_path / "kept"
    folder.mkdir()
    pages = Pages(own_pages())
    with _report(pages, folder, Shelf(store), None, False) as missing:
        assert not pages.is_whole and eventually(lambda: pages.is_whole)
    # A process of its own: other tests leave the catalogues of this one in another order.
    words = ("report", "--store", store.url, "--out", str(out))
    assert subprocess.run([sys.executable, "-c", UNDRAWN + START, *words], check=True).returncode == 0
    written = {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    files = pages.files.items()
    served_ = {name: page if isinstance(page, bytes) else page.read_bytes() for name, page in files}
    assert sorted(path.name for path in folder.iterdir()) == ["pages", "stamp"], "nothing else is left"
    again = Pages(own_pages())
    with _report(again, folder, Shelf(store), None, False):
        assert again.is_whole and again.files == pages.files, "kept from last time"
    assert missing == "" and {**served_, **written} == {**served_, MARKER: written[MARKER]}
    assert set(served_) - set(written) == set(OWN)


WAIT = "import time; time.sleep(600)"
REFUSE = """print('{"error": {"message": "no <pages>"}}'); raise SystemExit(2)"""


@pytest.mark.parametrize(
    ("code", "says"),
    [(REFUSE, "no &lt;pages&gt;"), ("raise SystemExit(1)", "terminal"), ("print(1)", "cannot be kept")],
)
def test_why_there_are_no_pages_is_said_on_the_first_one(app, tmp_path, monkeypatch, code, says):
    replaced(monkeypatch, code)
    pages = Pages(own_pages())
    with drawing(pages, tmp_path, "stamp", []), served(application(app.shelf.store, pages=pages)) as address:
        assert eventually(lambda: fetched(address, "/")[0] == 200)
        assert says in fetched(address, "/")[2].decode()
    assert not list(tmp_path.iterdir())


def test_everything_else_is_served_while_the_report_is_drawn(app, tmp_path, monkeypatch):
    replaced(monkeypatch, WAIT)
    pages = Pages(own_pages())
    with drawing(pages, tmp_path, "stamp", []), served(application(app.shelf.store, pages=pages)) as address:
        for page in ("/", "/toy-bilstm.html"):
            status, headers, body = fetched(address, page)
            assert status == 202 and b'http-equiv="refresh"' in body and b"being made" in body
            assert headers["Retry-After"] == "2" and headers["X-Content-Type-Options"] == "nosniff"
        assert fetched(address, "/figures/a.svg")[0] == 404
        assert fetched(address, "/live.html")[0] == fetched(address, "/icon.svg")[0] == 200
        question = {"model": app.key, "text": TEXT}
        assert fetched(address, "/api/read", method="POST", question=question)[0] == 200
        pages.show({"index.html": b"the report"})
        assert fetched(address, "/")[2] == b"the report" and fetched(address, "/toy-bilstm.html")[0] == 404
    assert not list(tmp_path.iterdir()), "what is unfinished is given up, and leaves nothing"


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
        assert said["drawing"] is True and eventually(lambda: fetched(address, "/")[0] == 200)
        page = fetched(address, "/")[2].decode()
        links = set(re.findall(r'(?:href|src)="([^"#:]+)"', page))
        assert "style.css" in links and any(link.startswith("figures/") for link in links)
        assert all(fetched(address, f"/{link}")[0] == 200 for link in links)
    finally:
        status, _, err = ended(process)
    assert (status, err) == (0, "")


def test_a_person_is_told_where_to_look(store, tmp_path):
    put_kind(store, "average")
    token = TOKEN
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
