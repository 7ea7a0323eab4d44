"""Responses, with the security headers that every one of them carries."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import PurePosixPath

from starlette.responses import Response

from attentest.refusal import Refusal
from attentest.web.contract import Error, ErrorAnswer

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".csv": "text/csv; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".tex": "text/x-tex; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
OTHER = "application/octet-stream"

# Nothing from elsewhere, nothing inline, no frame around us. Charts need images as data and blob.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# A drawing that is opened alone keeps its own styles and runs nothing.
DRAWING_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",  # one connection carries one request
}


def response(status: int, kind: str, body: bytes, **more: str) -> Response:
    """A response with every header that is needed; there is no other way to make one here."""
    policy = DRAWING_POLICY if kind == KINDS[".svg"] else PAGE_POLICY
    headers = {"Content-Type": kind, "Content-Security-Policy": policy, **ALWAYS, **more}
    return Response(body, status_code=status, headers=headers)


def file_response(name: str, content: bytes) -> Response:
    """A file, as what its name says it is."""
    return response(200, KINDS.get(PurePosixPath(name).suffix, OTHER), content)


def json_response(status: int, spelled: str, **more: str) -> Response:
    """A document that is JSON already."""
    return response(status, KINDS[".json"], spelled.encode(), **more)


def refused(status: int, refusal: Refusal | str, **more: str) -> Response:
    """A sentence, for programs and people alike."""
    parts = {"message": refusal} if isinstance(refusal, str) else refusal.as_json()
    # Through json, because what was sent may hold half a surrogate pair, which UTF-8 cannot.
    return json_response(status, json.dumps(ErrorAnswer(error=Error(**parts)).model_dump()), **more)


def not_understood(status: int, said: str = "") -> Response:
    """What HTTP itself finds wrong with a request."""
    return refused(status, f"{said or HTTPStatus(status).description or HTTPStatus(status).phrase}.")
