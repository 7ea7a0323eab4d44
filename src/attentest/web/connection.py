"""One connection: bounds on how long it may take, and on how many there are.

Every connection carries one request. One whose request has not arrived costs little, so it may stay until
its time is up; but where there are too many, the oldest of these is closed to make room for a new one.
Clients that send half a header can therefore keep nobody else from being answered.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any, final

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from attentest.web.messages import not_understood, refused

BUSY = "There are too many connections. Ask again in a moment"
SLOW = "The request did not arrive in time"
LINGER = 1.0  # seconds in which a client that was refused may read why


@final
@dataclass(kw_only=True)
class Places:
    """The connections there are, in the order in which they came."""

    seconds: float
    most: int
    most_of_one: int
    taken: dict[Connection, None] = field(default_factory=dict)
    refused: dict[Connection, None] = field(default_factory=dict)  # they only have to read why

    def take(self, newcomer: Connection) -> None:
        """A place for the newcomer: where there are too many, at the cost of the oldest that waits."""
        self.taken[newcomer] = None
        of_one = [each for each in self.taken if each.address == newcomer.address]
        crowd = of_one if len(of_one) > self.most_of_one else list(self.taken)
        if len(of_one) > self.most_of_one or len(self.taken) > self.most:
            oldest = next(each for each in crowd if each.is_incomplete)  # the newcomer is one
            oldest.refuse(refused(503, f"{BUSY}.", **{"Retry-After": "1"}))

    def give_up(self, connection: Connection) -> None:
        """Its place is free, and it may read why for a while: not too many at a time."""
        self.leave(connection)
        self.refused[connection] = None
        if len(self.refused) > self.most:
            oldest = next(iter(self.refused))
            del self.refused[oldest]
            oldest.transport.abort()

    def leave(self, connection: Connection) -> None:
        """It is no more."""
        self.taken.pop(connection, None)
        self.refused.pop(connection, None)


@final
class Connection(H11Protocol):
    """A connection of uvicorn's with limits on the time for its request, and for its answer to be taken."""

    timer: asyncio.TimerHandle

    def __init__(self, *given: Any, places: Places, **named: Any) -> None:
        super().__init__(*given, **named)
        self.places = places
        self.has_sent = self.is_refused = False

    @property
    def address(self) -> str:
        """Whose connection it is."""
        return self.client[0] if self.client else ""

    @property
    def is_incomplete(self) -> bool:
        """Whether the request has not arrived whole."""
        return self.cycle is None or (self.cycle.more_body and not self.cycle.response_started)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, and give it up when the time is over."""
        super().connection_made(transport)
        self.timer = self.loop.call_later(self.places.seconds, self.expire)
        self.places.take(self)

    def data_received(self, data: bytes) -> None:
        """Read on, unless it was refused."""
        if self.is_refused:
            return
        self.has_sent = True
        super().data_received(data)
        if not (self.is_refused or self.is_incomplete):
            self.timer.cancel()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that has sent everything may close its side and wait for the answer."""
        if self.is_refused or self.cycle is None:
            return False
        self.timer.cancel()
        self.cycle.more_body = False
        self.cycle.message_event.set()
        return True

    def on_response_complete(self) -> None:
        """The answer must be taken in time."""
        self.timer.cancel()
        self.timer = self.loop.call_later(self.places.seconds, self.transport.abort)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the place to others."""
        self.timer.cancel()
        self.places.leave(self)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server ends, and with it the connection."""
        self.transport.abort()

    def expire(self) -> None:
        """The time is over; a browser that opened a connection and did not use it asked for nothing."""
        if self.has_sent:
            self.refuse(not_understood(408, SLOW))
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is refused with our own sentence and our own headers."""
        error = sys.exc_info()[1]
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        if status == 431 and b"\n" not in self.conn.trailing_data[0]:
            status = 414  # not even the first line has ended
        self.refuse(not_understood(status))

    def refuse(self, response: Response) -> None:
        """Say why, and read no more."""
        self.is_refused = True
        self.timer.cancel()
        self.places.give_up(self)
        if self.cycle is not None:  # whoever waits for the rest of the request need not
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.transport.is_closing():
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = self.server_state.default_headers + response.raw_headers
            status = response.status_code
            head = h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])
            asked_head = self.cycle is not None and self.scope["method"] == "HEAD"  # its answer has no body
            body = b"" if asked_head else bytes(response.body)
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        # Half closed: to close it whole while it still sends would take the answer away from it.
        self.transport.write_eof()
        self.timer = self.loop.call_later(LINGER, self.transport.abort)
