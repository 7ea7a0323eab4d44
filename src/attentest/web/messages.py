"""A request as it came and a response as it goes, with the headers that every page carries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import final

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
}


@final
@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked; the names of headers are in small letters."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@final
@dataclass(frozen=True, kw_only=True)
class Response:
    """What is answered."""

    status: int
    kind: str
    body: bytes
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """All headers but those of the connection."""
        policy = DRAWING_POLICY if self.kind == KINDS[".svg"] else PAGE_POLICY
        return {
            "Content-Type": self.kind,
            "Content-Length": str(len(self.body)),
            "Content-Security-Policy": policy,
            **ALWAYS,
            **self.more,
        }


def file_response(name: str, content: bytes) -> Response:
    """A file, as what its name says it is."""
    return Response(status=200, kind=KINDS.get(PurePosixPath(name).suffix, OTHER), body=content)


def json_response(status: int, spelled: str) -> Response:
    """A document that is JSON already."""
    return Response(status=status, kind=KINDS[".json"], body=spelled.encode())


def refused(status: int, refusal: Refusal | str, **more: str) -> Response:
    """A sentence, for programs and people alike."""
    parts = {"message": refusal} if isinstance(refusal, str) else refusal.as_json()
    # Through json, because what was sent may hold half a surrogate pair, which UTF-8 cannot.
    spelled = json.dumps(ErrorAnswer(error=Error(**parts)).model_dump())
    return Response(status=status, kind=KINDS[".json"], body=spelled.encode(), more=more)


def not_understood(status: int, said: str = "") -> Response:
    """What HTTP itself finds wrong with a request."""
    return refused(status, f"{said or HTTPStatus(status).description or HTTPStatus(status).phrase}.")
