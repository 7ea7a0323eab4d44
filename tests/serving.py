"""A store of small models that can be asked, and a server on loopback that asks them."""

import asyncio
import hashlib
import http.client
import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

pytest.importorskip("uvicorn", reason="serve needs the extra `web`")

from starlette.datastructures import Headers

from attentest.corpus.files import to_files as corpus_files
from attentest.live.answers import Live
from attentest.model.training.files import to_files as model_files
from attentest.store.cell import Cell
from attentest.web.application import Application
from attentest.web.guard import Guard
from attentest.web.server import Server, bound
from attentest.web.shelf import Shelf
from attentest.web.site import Pages, no_pages, own_pages
from tests.toys import toy_corpus, toy_model

AT_MOST = 180.0  # seconds a test waits for what must come; a busy machine may need some
TEXT = "The cat sat; a dog ran far."
KINDS = {
    "bilstm": ({}, {"encoder": "bilstm"}),
    "average": ({}, {"encoder": "average"}),
    "sparse": ({}, {"encoder": "cnn", "projection": "sparsemax"}),
    "three": ({"labels": ("no", "so", "yes")}, {"encoder": "average"}),
    "asked": ({"query": True}, {"encoder": "average", "decoder": "affine"}),
    "two-layer": ({"query": True}, {"encoder": "average", "decoder": "two-layer"}),
    "sentences": ({}, {"encoder": "han-bigru"}),
    "last": ({}, {"encoder": "bilstm", "attention": "last-state"}),
    "transformer": ({}, {"encoder": "transformer"}),
}


def put_corpus(store, corpus):
    files = corpus_files(corpus)
    config = {"name": corpus.name, "source": hashlib.sha256(b"".join(files.values())).hexdigest()}
    cell = Cell(stage="corpus", version=1, config=config)
    store.write(cell, files, {})
    return cell


def put_model(store, corpus=None, *, held=True, **settings):
    """A model's cell, with its corpus unless that is not held; gives key and model."""
    corpus = corpus or toy_corpus()
    model = toy_model(corpus, **settings)
    inputs = {"corpus": put_corpus(store, corpus).key if held else "0" * 64}
    cell = Cell(
        stage="model", version=1, config=model.config.spelled(), inputs=inputs, where={"corpus": "toy"}
    )
    store.write(cell, model_files(model), {})
    return cell.key, model


def put_kind(store, kind):
    about, settings = KINDS[kind]
    return put_model(store, toy_corpus(**about), **settings)


def application(store, *, guard=None, live=True, why="", pages=None, private=()):
    return Application(
        guard=guard or Guard(),
        shelf=Shelf(store, private),
        pages=pages
        if isinstance(pages, Pages)
        else Pages(own_pages(), no_pages("none <yet>") | (pages or {})),
        live=Live(store) if live else None,
        why=why,
        version="1",
    )


@contextmanager
def served(app, **bounds):
    """The address of a server that answers in a thread of its own."""
    server = Server(app, **bounds)
    with bound("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.handle_exit(signal.SIGINT, None)
            thread.join()


def fetched(address, path, *, method="GET", question=None, body=None, **headers):
    """Status, headers and body of one request."""
    connection = http.client.HTTPConnection(address, timeout=AT_MOST)
    if question is not None:
        body, headers = json.dumps(question), {"Content-Type": "application/json", **headers}
    try:
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def answered(app, target, method="GET", headers=None, body=b""):
    """What the application answers to a request, without a server: its status, headers and body."""
    path, _, query = target.partition("?")
    headers = {"content-length": str(len(body)), **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "root_path": "",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode("latin-1", "surrogateescape")) for k, v in headers.items()],
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    # In a thread of its own: a browser of other tests may have an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(app(scope, receive, send))).result()
    start, *parts = sent
    content = b"".join(part.get("body", b"") for part in parts)
    return SimpleNamespace(status=start["status"], headers=Headers(raw=start["headers"]), body=content)


def eventually(met):
    """Ask until the answer is yes; whether it ever is, is the test."""
    end = time.monotonic() + AT_MOST
    while not met():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
