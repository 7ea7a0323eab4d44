"""What the server answers: a Starlette application with the guards that stand before it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar, final
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from attentest.evidence.importances.names import IMPORTANCES, WITH_NULLS
from attentest.refusal import Refusal
from attentest.web.arrival import again, body_of, not_http
from attentest.web.contract import (
    DecideAnswer,
    DecideQuestion,
    ExampleAnswer,
    ExampleQuestion,
    ModelsAnswer,
    Offered,
    ReadAnswer,
    Reader,
    ReadQuestion,
)
from attentest.web.guard import Guard, from_elsewhere
from attentest.web.messages import KINDS, file_response, json_response, refused, response
from attentest.web.openapi import Operation, described
from attentest.web.shelf import Shelf
from attentest.web.site import RELOAD, Pages, waiting_page

Result = TypeVar("Result")

DESCRIPTION = "/api/openapi.json"
QUESTIONS = 32  # at the same time; each has a thread
ROUTES = (
    Operation(
        method="GET",
        path="/api/models",
        says="The models of the store that have their weights.",
        question=None,
        answer=ModelsAnswer,
    ),
    Operation(
        method="GET",
        path="/api/example",
        says="A text of a model's test split.",
        question=ExampleQuestion,
        answer=ExampleAnswer,
    ),
    Operation(
        method="POST",
        path="/api/read",
        says="Prediction, attention, importances and strongest adversary of a text.",
        question=ReadQuestion,
        answer=ReadAnswer,
    ),
    Operation(
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
        pages: Pages,
        live: Reader | None,
        why: str,
        version: str,
    ) -> None:
        self.guard, self.shelf, self.pages, self.live, self.why = guard, shelf, pages, live, why
        self.description = json.dumps(described(ROUTES, version=version), indent=1)
        self.in_progress = 0  # questions that are being answered
        self.answers: dict[str, Callable[[Any], BaseModel]] = {
            "/api/models": self._models,
            "/api/example": self._example,
            "/api/read": self._read,
            "/api/decide": self._decide,
        }
        self.starlette = Starlette(
            routes=[Mount("/api", app=self._interface()), Route("/{page:path}", self._page)],
            exception_handlers={
                405: _wrong_method,
                HTTPException: _refused,
                Refusal: _refused,
                500: _mistake,
            },
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, from whoever it may be."""
        request = Request(scope, receive)
        try:
            came = not_http(request) or await body_of(request)
            if isinstance(came, Response):
                await came(scope, receive, send)
            else:
                answer = self._turned_away(request) or self.starlette
                await answer(scope, again(came), send)
        except (ClientDisconnect, asyncio.CancelledError):
            return  # the client has gone, or the server ends

    def _turned_away(self, request: Request) -> Response | None:
        """What the guard says to a request that it does not let in."""
        if not self.guard.knows(request.headers.get("host", "")):
            return refused(403, "This server answers only under its own name; the Host header named another.")
        try:
            path = unquote_to_bytes(request.scope["raw_path"]).decode()
        except ValueError:
            return refused(400, "The address cannot be read.")
        return None if self.guard.admits(request.headers) else self._ask_for_token(request, path)

    def _ask_for_token(self, request: Request, path: str) -> Response:
        """An address with the token lets a browser in for good, and is then forgotten."""
        query = request.scope["query_string"].decode("latin-1")
        if request.method == "GET" and not path.startswith("/api") and self.guard.said_in(query):
            kept = f"{self.guard.cookie}={self.guard.token}; HttpOnly; SameSite=Strict; Path=/"
            # No more than a name, so that nobody can be led elsewhere.
            place = path.strip("/") if path.strip("/") in self.pages.files else ""
            more = {"Location": f"/{quote(place)}", "Set-Cookie": kept}
            return response(303, "text/plain; charset=utf-8", b"", **more)
        said = (
            "This server needs its token: open the address it printed, or send Authorization: Bearer TOKEN."
        )
        return refused(401, said, **{"WWW-Authenticate": "Bearer"})

    def _page(self, request: Request) -> Response:
        # The files are known beforehand and found by their whole name: no path is ever put together.
        name = request.scope["path"].removeprefix("/") or "index.html"
        is_whole, found = self.pages.is_whole, self.pages.files.get(name)
        try:
            if found is not None:
                return file_response(name, found if isinstance(found, bytes) else found.read_bytes())
        except OSError:
            return refused(404, "The pages were removed or made anew. Start the server again.")
        if not is_whole and name.endswith(".html"):
            return response(202, KINDS[".html"], waiting_page(), **{"Retry-After": str(RELOAD)})
        return refused(404, "There is no such page. The first one is /index.html, the live one /live.html.")

    def _interface(self) -> Router:
        """Everything under /api."""
        nothing = refused(404, f"There is no such question. {DESCRIPTION} describes those there are.")
        routes = [Route(DESCRIPTION.removeprefix("/api"), self._describe)]
        for one in ROUTES:
            path = one.path.removeprefix("/api")
            routes.append(Route(path, partial(self._ask, one), methods=[one.method]))
        return Router(routes, redirect_slashes=False, default=nothing)

    async def _describe(self, request: Request) -> Response:
        return json_response(200, self.description)

    async def _ask(self, operation: Operation, request: Request) -> Response:
        if operation.method == "POST":
            _check_origin(request)
        if self.in_progress >= QUESTIONS:
            busy = "Too many questions are being answered. Ask again in a moment."
            return refused(503, busy, **{"Retry-After": "1"})
        body, query = await request.body(), request.scope["query_string"].decode("latin-1")
        self.in_progress += 1
        try:
            return await _in_thread(lambda: self._answer(operation, body, query))
        finally:
            self.in_progress -= 1

    def _answer(self, operation: Operation, body: bytes, query: str) -> Response:
        question = None if operation.question is None else _question(operation, body, query)
        answered = self.answers[operation.path](question)
        # Escaped to ASCII: tokens and labels may hold anything, half a surrogate pair included.
        return json_response(200, json.dumps(answered.model_dump(), allow_nan=False))

    def _models(self, question: None) -> ModelsAnswer:
        offered = [
            Offered(name=name, title=about.title, says=about.says, always=name in WITH_NULLS)
            for name, about in IMPORTANCES.items()
        ]
        models = self.shelf.models()
        return ModelsAnswer(live=self.live is not None, why=self.why, models=models, importances=offered)

    def _example(self, question: ExampleQuestion) -> ExampleAnswer:
        return self.shelf.example(question.model, question.number)

    def _read(self, question: ReadQuestion) -> ReadAnswer:
        return ReadAnswer(**self._reader().read(**question.model_dump()))

    def _decide(self, question: DecideQuestion) -> DecideAnswer:
        return DecideAnswer(**self._reader().decide(**question.model_dump()))

    def _reader(self) -> Reader:
        if self.live is None:
            raise HTTPException(404, self.why)
        return self.live


async def _in_thread(work: Callable[[], Result]) -> Result:
    """The result of work in a thread that does not keep the program from ending."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001  raised again where the result is awaited
            future.set_exception(error)

    future.set_running_or_notify_cancel()  # whoever no longer waits does not take its place for the result
    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)


async def _wrong_method(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException) and error.headers is not None
    path, allowed = request.scope["path"], ", ".join(sorted(error.headers["Allow"].split(", ")))
    said = f"{path} takes {allowed}." if path.startswith("/api/") else "Pages can only be read."
    return refused(405, said, Allow=allowed)


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return refused(error.status_code, error.detail)
    assert isinstance(error, Refusal)
    return refused(422, error)


async def _mistake(request: Request, error: Exception) -> Response:
    return refused(500, "The server made a mistake; its terminal says which.")


def _check_origin(request: Request) -> None:
    """A form of another page can post, but not JSON, and not without naming its origin."""
    if from_elsewhere(request.headers):
        raise HTTPException(403, "The question came from a page of another origin.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "The question must be sent as application/json.")


def _question(operation: Operation, body: bytes, query: str) -> BaseModel:
    assert operation.question is not None
    try:
        if operation.method == "POST":
            return operation.question.model_validate_json(body)
        # Whatever stands in an address is a string: here, and only here, strings become numbers.
        return operation.question.model_validate(dict(parse_qsl(query)), strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"][:3]) or "the question"
        said = f"{place}: {first['msg'].lower()}. {DESCRIPTION} describes it."
        raise HTTPException(400, said) from error
