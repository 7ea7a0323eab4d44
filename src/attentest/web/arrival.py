"""What arrives: bounds on what is read of a request, before anybody asks what it says."""

from __future__ import annotations

from http import HTTPMethod

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from attentest.web.contract import LARGEST, LONGEST_HEAD
from attentest.web.messages import not_understood

MOST_HEADERS = 100


def not_http(request: Request) -> Response | None:
    """What this server does not speak."""
    if request.scope["http_version"] not in ("1.0", "1.1"):
        return not_understood(505)
    if request.method not in HTTPMethod.__members__:
        return not_understood(501)
    if len(request.scope["raw_path"]) + len(request.scope["query_string"]) > LONGEST_HEAD:
        return not_understood(414)
    size = sum(len(name) + len(value) for name, value in request.headers.raw)
    return not_understood(431) if size > LONGEST_HEAD or len(request.headers) > MOST_HEADERS else None


async def body_of(request: Request) -> Response | bytes:
    """All that was sent with the request, or why it is not taken."""
    said = request.headers.get("content-length")
    if "transfer-encoding" in request.headers or (said is None and request.method == "POST"):
        return not_understood(411)
    length, taken, body = int(said or 0), 0, bytearray()  # h11 has made sure that it is a number
    async for part in request.stream():
        taken += len(part)
        if length <= LARGEST:
            body += part
        elif taken > 4 * LARGEST:  # some of it is read, so that the sender is still there for the answer
            break
    if length > LARGEST:
        return not_understood(413, f"A question has at most {LARGEST:,} bytes")
    return bytes(body) if taken == length else not_understood(400, "The question ended before its length")


def again(body: bytes) -> Receive:
    """The body, for whoever reads it next."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
