"""What the server answers: its own files by their whole names, its own questions, and nobody else's page."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.web.application import DESCRIPTION, ROUTES
from attentest.web.guard import Guard, is_loopback
from attentest.web.shelf import Shelf
from attentest.web.site import OWN, made, own_pages, place, stamp_of
from tests.serving import TEXT, answered, application, put_kind, put_model
from tests.toys import toy_corpus

HOST = {"host": "127.0.0.1:8420"}
JSON = {**HOST, "content-type": "application/json"}
TOKEN = "abcdefghijklmnop-_0123"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    store = Store(folder / "store")
    app = application(store, pages={"figures/a.svg": folder / "a.svg", "gone.html": folder / "gone.html"})
    (folder / "a.svg").write_text("<svg/>")
    (folder / "secret.html").write_text("secret")
    app.keys = {kind: put_kind(store, kind)[0] for kind in ("average", "asked")}
    return app


def got(app, target, method="GET", headers=HOST, body=b""):
    return answered(app, target, method, headers, body)


def posted(app, path, question, headers=JSON):
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    return got(app, path, "POST", headers, body)


def message(response):
    assert 400 <= response.status < 500
    return json.loads(response.body)["error"]["message"]


# --- pages


def test_pages_are_served_under_their_names_with_every_header(app):
    for target in (
        "/",
        "/index.html",
        "/live.html?x=1",
        "/live.js",
        "/live.css",
        "/icon.svg",
        "/figures/a.svg",
    ):
        response = got(app, target)
        assert response.status == 200 and response.body
        headers = response.headers
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe-eval" not in headers["Content-Security-Policy"]
        assert ("unsafe-inline" in headers["Content-Security-Policy"]) is target.endswith(".svg")
        assert int(headers["Content-Length"]) == len(response.body)
    assert got(app, "/live.html").headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"none &lt;yet&gt;" in got(app, "/").body, "why there is no report is escaped"


def test_the_live_page_keeps_its_own_policy():
    """No inline script or style, nothing from elsewhere, no eval: or the browser would refuse it."""
    own = {name: content.decode() for name, content in own_pages().items()}
    script = own["live.js"] + own["weights.js"]
    assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=|https?://", own["live.html"])
    assert not re.search(
        r"\beval\b|innerHTML|outerHTML|insertAdjacentHTML|document\.write|new Function", script
    )


@pytest.mark.parametrize(
    "target",
    [
        "/../secret.html",
        "/%2e%2e/secret.html",
        "/figures/../../secret.html",
        "/figures/..%2f..%2fsecret.html",
        "//secret.html",
        "/figures/",
        "/figures",
        "/.",
        "/secret.html",
        "/index.html%00.svg",
        "/etc/passwd",
        "C:\\secret.html",
        "http://evil.example/secret.html",
    ],
)
def test_nothing_else_can_be_reached_and_no_folder_is_listed(app, target):
    response = got(app, target)
    assert response.status in (400, 404) and b"secret" not in response.body


@given(st.text(max_size=40))
def test_whatever_is_asked_for_is_a_page_or_a_sentence(app, target):
    response = got(app, f"/{target}")
    if response.status != 200:
        assert message(response)


def test_a_page_that_was_removed_meanwhile_is_said_to_be(app):
    assert "made anew" in message(got(app, "/gone.html"))


def test_it_is_read_only(app):
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        response = got(app, "/index.html", method, JSON)
        assert response.status == 405 and response.headers["Allow"] == "GET, HEAD"
    assert got(app, "/api/read").status == 405 and got(app, "/api/models", "POST", JSON).status == 405
    assert got(app, DESCRIPTION, "POST", JSON).status == 405 and got(app, "/api/nothing").status == 404
    assert got(app, "/api").status == 404


# --- who may ask


@pytest.mark.parametrize("host", ["127.0.0.1:8420", "localhost", "LOCALHOST:1", "[::1]:8420", "127.0.0.2"])
def test_this_machine_may_ask_by_its_own_names(app, host):
    assert got(app, "/", headers={"host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    (
        *("", "evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost.evil.example"),
        *("10.0.0.1", "[::1", "[zz]", "evil.example@127.0.0.1", "\x00"),
    ),
)
def test_a_foreign_host_is_refused_everywhere(app, host):
    for target in ("/", "/api/models", "/api/read"):
        response = got(app, target, headers={"host": host})
        assert response.status == 403 and "own name" in message(response)


def test_a_page_of_another_origin_cannot_ask(app):
    question = {"model": app.keys["average"], "text": TEXT}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "file://"):
        assert posted(app, "/api/read", question, {**JSON, "origin": origin}).status == 403
    assert posted(app, "/api/read", question, {**JSON, "origin": "http://127.0.0.1:8420"}).status == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert posted(app, "/api/read", question, {**HOST, "content-type": kind}).status == 415


def test_to_be_open_to_others_takes_a_token_that_cannot_be_guessed():
    for host in ("0.0.0.0", "::", "192.168.1.2", "myhost"):
        assert not is_loopback(host)
        with pytest.raises(Refusal, match="no --token"):
            Guard(host=host).check()
        Guard(host=host, token=TOKEN).check()
    for token in ("", "short", "with blank in the middle", "é" * 20, "a" * 129, "a\r\nSet-Cookie: b=cdefgh"):
        with pytest.raises(Refusal, match="16 to 128"):
            Guard(token=token).check()
    Guard().check()


def test_a_token_is_needed_for_everything_and_shown_in_three_ways(store):
    app = application(store, guard=Guard(host="0.0.0.0", token=TOKEN))
    for target in (
        "/",
        "/live.js",
        "/api/models",
        DESCRIPTION,
        f"/api/models?token={TOKEN}",
        "/?token=wrong",
    ):
        assert got(app, target).status == 401
    bad = ({"authorization": f"Bearer {TOKEN}x"}, {"authorization": TOKEN}, {"cookie": "attentest-token=no"})
    for headers in (*bad, {"cookie": "\x00=;;="}, {"authorization": "Bearer é\udc80"}):
        assert got(app, "/", headers=HOST | headers).status == 401
    assert got(app, "/", headers={**HOST, "authorization": f"bearer {TOKEN}"}).status == 200
    entered = got(app, f"/live.html?token={TOKEN}")
    assert entered.status == 303 and entered.headers["Location"] == "/live.html"
    cookie = entered.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert got(app, "/", headers={**HOST, "cookie": cookie.split(";")[0]}).status == 200
    led = got(app, f"//evil.example/?token={TOKEN}")
    assert led.headers["Location"] == "/", "nobody is led elsewhere"


def test_others_ask_by_address_or_by_the_machines_name():
    guard = Guard(host="0.0.0.0", token=TOKEN)
    assert guard.knows("192.168.1.2:8420") and guard.knows("localhost") and not guard.knows("evil.example")
    assert Guard(host="lab.example", token=TOKEN).knows("lab.example:8420")


# --- questions


def test_the_models_are_those_that_have_their_weights(store):
    key, _ = put_model(store, toy_corpus(), encoder="average", seed=3)
    put_model(store, toy_corpus(), encoder="average", epochs=0)
    put_model(store, toy_corpus(), encoder="cnn", labels="shuffled")
    put_model(store, toy_corpus(), encoder="average", omit="cat")
    (Path(store.url) / "cells" / put_model(store, encoder="mlp")[0] / "config.json").write_text("{}")
    (Path(store.url) / "cells" / put_model(store, encoder="conv")[0] / "cell.json").write_text("{")
    bare = Cell(stage="model", version=1, config={"encoder": "cnn", "seed": 9}, inputs={})
    store.write(bare, {"training.json": b"{}"}, {})
    models = Shelf(store).models()
    assert [m.kind for m in models] == ["trained", "trained", "anonymised", "shuffled labels", "untrained"]
    assert models[0].key == key and models[0].corpus == "toy" and models[0].seed == 3
    assert models[0].labels == ["no", "yes"] and not models[0].unreadable
    assert "cut out" in models[2].unreadable
    assert models[1].encoder == "mlp" and "cannot be read" in models[1].unreadable, "damaged, and not alone"
    answer = json.loads(got(application(store), "/api/models").body)
    assert answer["live"] is True and len(answer["models"]) == 5


def test_a_text_of_the_test_split_comes_as_it_would_be_typed(app):
    key, test = app.keys["asked"], toy_corpus(query=True).test
    for number in (0, 2, len(test) + 2):
        answer = json.loads(got(app, f"/api/example?model={key}&number={number}").body)
        example = test[number % len(test)]
        assert answer["text"].split() == list(example.tokens) and answer["label"] == example.label
        assert answer["query"].split() == list(example.query) and answer["of"] == len(test)
        read = posted(app, "/api/read", {"model": key, "text": answer["text"], "query": answer["query"]})
        assert json.loads(read.body)["units"] == list(example.tokens)


def test_texts_that_must_not_be_shown_or_are_not_there_are_refused(store):
    key, _ = put_model(store, encoder="average")
    assert "credentials" in message(got(application(store, private=["toy"]), f"/api/example?model={key}"))
    other, _ = put_model(store, held=False, encoder="cnn")
    assert "no texts" in message(got(application(store), f"/api/example?model={other}"))
    assert "no such model" in message(got(application(store), f"/api/example?model={'0' * 64}"))


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (b"", "the question: invalid json"),
        (b"[" * 100_000, "invalid json"),
        (b"\xff\xfe", "invalid json"),
        (b'{"model": "\\ud800"}', "invalid json"),
        ([], "should be an object"),
        ({"text": "a"}, "model: field required"),
        ({"model": "x", "text": "a"}, "model: string should match"),
        ({"model": "0" * 64, "text": 3}, "text: input should be a valid string"),
        ({"model": "0" * 64, "text": "a", "more": 1}, "more: extra inputs"),
        ({"model": "0" * 64, "text": "a" * 100_001}, "at most 100000"),
        ({"model": "0" * 64, "text": "a", "epsilon": 0}, "greater than 0"),
        (b'{"model": "' + b"0" * 64 + b'", "text": "a", "epsilon": NaN}', "finite"),
    ],
)
def test_a_question_that_is_none_is_answered_with_a_sentence(app, question, says):
    response = posted(app, "/api/read", question)
    assert response.status == 400 and says in message(response).lower() and DESCRIPTION in message(response)


@pytest.mark.parametrize("weights", [[2.0], [-0.1], ["1"], [None], 1, [True]])
def test_weights_are_shares(app, weights):
    question = {"model": app.keys["average"], "text": "cat", "weights": weights, "renormalise": False}
    assert posted(app, "/api/decide", question).status == 400


def test_without_torch_it_says_so_and_the_rest_works(store):
    key, _ = put_kind(store, "average")
    app = application(store, live=False, why="No torch here.")
    assert json.loads(got(app, "/api/models").body)["why"] == "No torch here."
    for path in ("/api/read", "/api/decide"):
        question = {"model": key, "text": TEXT}
        question |= {"weights": [1.0], "renormalise": True} if path == "/api/decide" else {}
        response = posted(app, path, question)
        assert response.status == 404 and message(response) == "No torch here."
    assert got(app, "/live.html").status == 200 and got(app, f"/api/example?model={key}").status == 200


def test_hostile_words_come_back_as_they_were(app):
    text = '</script><img src=x onerror=alert(1)> "quoted" \u202ertl\u0007 ' + "x" * 10_000
    said = json.loads(posted(app, "/api/read", {"model": app.keys["average"], "text": text}).body)
    assert "".join(said["units"]) == text.replace(" ", "").lower()
    response = got(app, "/<script>alert(1)</script>")
    assert b"<script>" not in response.body


def test_every_route_is_described_and_answered(app):
    description = json.loads(got(app, DESCRIPTION).body)
    assert set(description["paths"]) == {route.path for route in ROUTES} == set(app.answers)
    assert description["openapi"] == "3.1.0" and description["info"]["version"] == "1"


# --- the pages of a store


def test_pages_are_made_again_only_when_something_has_changed(store, tmp_path):
    put_kind(store, "average")
    calls = []

    def make(out):
        calls.append(out)
        (out / "figures").mkdir(parents=True, exist_ok=True)
        (out / "index.html").write_text("pages")
        (out / "figures" / "a.svg").write_text("<svg/>")
        (out / ".attentest-report.json").write_text("{}")

    first = stamp_of(store, ["1"])
    assert first == stamp_of(store, ["1"]) != stamp_of(store, ["2"])
    for _ in range(2):
        pages = (
            made(tmp_path / "kept", first, make) if (tmp_path / "kept").mkdir(exist_ok=True) is None else {}
        )
        assert set(pages) == {"index.html", "figures/a.svg"} and len(calls) == 1
    put_kind(store, "sparse")
    assert stamp_of(store, ["1"]) != first
    made(tmp_path / "kept", stamp_of(store, ["1"]), make)
    assert len(calls) == 2


def test_pages_that_could_not_be_finished_are_made_again(store, tmp_path):
    def broken(out):
        out.mkdir(exist_ok=True)
        raise Refusal("a", got="b", needs="c", way_out="d")

    for _ in range(2):
        with pytest.raises(Refusal):
            made(tmp_path, "stamp", broken)
    assert made(tmp_path, "stamp", lambda out: (out / "index.html").write_text("x")).keys() == {"index.html"}


def test_the_folder_is_the_stores_own_and_a_passing_one_where_none_can_be_kept(store, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with (
        place(store) as one,
        place(Store(store.url + "/")) as same,
        place(Store(tmp_path / "other")) as other,
    ):
        assert one == same != other and one.is_dir() and tmp_path / "cache" in one.parents
        assert one.stat().st_mode & 0o077 == 0
    assert one.is_dir()
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with place(store) as passing:
        assert passing.is_dir()
    assert not passing.exists()


def test_the_packages_own_pages_are_all_there(app):
    assert all(got(app, f"/{name}").status == 200 for name in OWN)
