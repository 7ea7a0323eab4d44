"""What the server answers, as a function of a request; how requests arrive is none of its business."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final
from urllib.parse import parse_qsl, quote, unquote

from pydantic import BaseModel, ValidationError

from attentest.refusal import Refusal
from attentest.web.contract import (
    DecideAnswer,
    DecideQuestion,
    ExampleAnswer,
    ExampleQuestion,
    ModelsAnswer,
    ReadAnswer,
    Reader,
    ReadQuestion,
)
from attentest.web.guard import Guard, from_elsewhere
from attentest.web.messages import Request, Response, file_response, json_response, refused
from attentest.web.openapi import Route, described
from attentest.web.shelf import Shelf

DESCRIPTION = "/api/openapi.json"
ROUTES = (
    Route(
        method="GET",
        path="/api/models",
        says="The models of the store that have their weights.",
        question=None,
        answer=ModelsAnswer,
    ),
    Route(
        method="GET",
        path="/api/example",
        says="A text of a model's test split.",
        question=ExampleQuestion,
        answer=ExampleAnswer,
    ),
    Route(
        method="POST",
        path="/api/read",
        says="Prediction, attention, importances and strongest adversary of a text.",
        question=ReadQuestion,
        answer=ReadAnswer,
    ),
    Route(
        method="POST",
        path="/api/decide",
        says="The decision about a text under given weights.",
        question=DecideQuestion,
        answer=DecideAnswer,
    ),
)


@final
class Application:
    """Pages, and the interface behind the live one. It writes nothing."""

    def __init__(
        self,
        *,
        guard: Guard,
        shelf: Shelf,
        pages: Mapping[str, bytes | Path],
        live: Reader | None,
        why: str,
        version: str,
    ) -> None:
        self.guard, self.shelf, self.pages, self.live, self.why = guard, shelf, pages, live, why
        self.description = json.dumps(described(ROUTES, version=version), indent=1)
        self.answers: dict[str, Callable[[Any], BaseModel]] = {
            "/api/models": self._models,
            "/api/example": self._example,
            "/api/read": self._read,
            "/api/decide": self._decide,
        }

    def answer(self, request: Request) -> Response:
        """One request, from whoever it may be."""
        if not self.guard.knows(request.headers.get("host", "")):
            return refused(403, "This server answers only under its own name; the Host header named another.")
        try:
            path, _, query = request.target.partition("?")
            path = unquote(path, errors="strict")
        except ValueError:
            return refused(400, "The address cannot be read.")
        if not self.guard.admits(request.headers):
            return self._ask_for_token(request, path, query)
        if path == "/api" or path.startswith("/api/"):
            return self._interface(request, path, query)
        return self._page(request, path)

    def _ask_for_token(self, request: Request, path: str, query: str) -> Response:
        """An address with the token lets a browser in for good, and is then forgotten."""
        if request.method == "GET" and not path.startswith("/api") and self.guard.said_in(query):
            kept = f"{self.guard.cookie}={self.guard.token}; HttpOnly; SameSite=Strict; Path=/"
            # No more than a name, so that nobody can be led elsewhere.
            place = path.strip("/") if path.strip("/") in self.pages else ""
            more = {"Location": f"/{quote(place)}", "Set-Cookie": kept}
            return Response(status=303, kind="text/plain; charset=utf-8", body=b"", more=more)
        said = (
            "This server needs its token: open the address it printed, or send Authorization: Bearer TOKEN."
        )
        return refused(401, said, **{"WWW-Authenticate": "Bearer"})

    def _page(self, request: Request, path: str) -> Response:
        if request.method not in ("GET", "HEAD"):
            return refused(405, "Pages can only be read.", Allow="GET, HEAD")
        # The files are known beforehand and found by their whole name: no path is ever put together.
        name = path.removeprefix("/") or "index.html"
        found = self.pages.get(name)
        try:
            if found is not None:
                return file_response(name, found if isinstance(found, bytes) else found.read_bytes())
        except OSError:
            return refused(404, "The pages were removed or made anew. Start the server again.")
        return refused(404, "There is no such page. The first one is /index.html, the live one /live.html.")

    def _interface(self, request: Request, path: str, query: str) -> Response:
        if path == DESCRIPTION and request.method in ("GET", "HEAD"):
            return json_response(200, self.description)
        here = [route for route in ROUTES if route.path == path]
        route = next((r for r in here if r.method == _as_get(request.method)), None)
        if route is None and (here or path == DESCRIPTION):
            allowed = ", ".join(r.method for r in here) or "GET"
            return refused(405, f"{path} takes {allowed}.", Allow=allowed)
        if route is None:
            return refused(404, f"There is no such question. {DESCRIPTION} describes those there are.")
        wrong = _wrong_way(request) if route.method == "POST" else None
        return wrong or self._ask(route, request, query)

    def _ask(self, route: Route, request: Request, query: str) -> Response:
        try:
            question = None
            if route.question is not None:
                question = _question(route, request.body, query)
            answered = self.answers[route.path](question)
        except _Unreadable as error:
            return refused(400, error.args[0])
        except _NotHere as error:
            return refused(404, error.args[0])
        except Refusal as refusal:
            return refused(422, refusal)
        # Escaped to ASCII: tokens and labels may hold anything, half a surrogate pair included.
        return json_response(200, json.dumps(answered.model_dump(), allow_nan=False))

    def _models(self, question: None) -> ModelsAnswer:
        return ModelsAnswer(live=self.live is not None, why=self.why, models=self.shelf.models())

    def _example(self, question: ExampleQuestion) -> ExampleAnswer:
        return self.shelf.example(question.model, question.number)

    def _read(self, question: ReadQuestion) -> ReadAnswer:
        return ReadAnswer(**self._reader().read(**question.model_dump()))

    def _decide(self, question: DecideQuestion) -> DecideAnswer:
        return DecideAnswer(**self._reader().decide(**question.model_dump()))

    def _reader(self) -> Reader:
        if self.live is None:
            raise _NotHere(self.why)
        return self.live


@final
class _Unreadable(Exception):
    """A question that is none."""


@final
class _NotHere(Exception):
    """A question that nobody here can answer."""


def _as_get(method: str) -> str:
    return "GET" if method == "HEAD" else method


def _wrong_way(request: Request) -> Response | None:
    """A form of another page can post, but not JSON, and not without naming its origin."""
    if from_elsewhere(request.headers):
        return refused(403, "The question came from a page of another origin.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return refused(415, "The question must be sent as application/json.")
    return None


def _question(route: Route, body: bytes, query: str) -> BaseModel:
    assert route.question is not None
    try:
        if route.method == "POST":
            return route.question.model_validate_json(body)
        # Whatever stands in an address is a string: here, and only here, strings become numbers.
        return route.question.model_validate(dict(parse_qsl(query)), strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"][:3]) or "the question"
        raise _Unreadable(f"{place}: {first['msg'].lower()}. {DESCRIPTION} describes it.") from error
