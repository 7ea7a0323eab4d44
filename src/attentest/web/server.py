"""How requests arrive: the standard library's server, with bounds on size, time and number.

It listens to one machine's browser, or a few; for that the standard library is enough, and nothing has to be
installed. Every connection carries one request, so nobody can hold one open for long.
"""

from __future__ import annotations

import errno
import io
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, final

from attentest.refusal import Refusal
from attentest.web.application import Application
from attentest.web.contract import LARGEST
from attentest.web.messages import Request, Response, not_understood, refused

SECONDS = 15.0  # for a request to arrive whole, and again for the answer to be taken
CONNECTIONS = 32
BUSY = b"HTTP/1.0 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n\r\n"
TAKEN = {
    errno.EADDRINUSE: (
        "one that another program listens on",
        "a free one",
        "Give another --port; 0 finds one.",
    ),
    errno.EACCES: ("one that needs more rights", "a port above 1023", "Give another --port; 0 finds one."),
}


@final
class _Patience(io.RawIOBase):
    """What a connection sends, up to a moment: a sender that drips cannot hold a thread for ever."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self.connection, self.end = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes, if they come in time."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


@final
class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "attentest", ""

    def setup(self) -> None:
        """Listen with limited patience."""
        super().setup()
        self.rfile = io.BufferedReader(_Patience(self.connection, self.server.seconds))

    def _answer(self) -> None:
        length = self._length()
        if isinstance(length, Response):
            self._send(length)
            return
        body = self.rfile.read(length)
        if len(body) < length:  # whoever sent it has gone
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(method=self.command, target=self.path, headers=headers, body=body)
        try:
            response = self.server.application.answer(request)
        except Exception:
            self._send(refused(500, "The server made a mistake; its terminal says which."))
            raise
        self._send(response)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer

    def _length(self) -> int | Response:
        """How much follows, or why it is not read."""
        said = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding") or (said is None and self.command == "POST"):
            return not_understood(411)
        said = said or "0"
        if not (said.isascii() and said.isdigit()):
            return not_understood(400, "Content-Length must be a number")
        if len(said) > 12 or int(said) > LARGEST:
            # Taken in part, so that the sender is still there for the answer.
            self.rfile.read(min(int(said[:12]), 4 * LARGEST))
            return not_understood(413, f"A question has at most {LARGEST:,} bytes")
        return int(said)

    def _send(self, response: Response) -> None:
        self.connection.settimeout(self.server.seconds)
        self.request_version = "HTTP/1.0"  # to a client that seems older no headers would be sent
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is wrong with the request line or the headers, in our own words and with our own headers."""
        self.close_connection = True
        self._send(not_understood(code))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what strangers send does not belong on a terminal, and what goes wrong is raised."""


@final
class Server(ThreadingHTTPServer):
    """A port: bound first, then listened to, then answered; so that whoever is told of it is heard."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = CONNECTIONS  # a browser asks for all files of a page at once
    application: Application

    def __init__(self, host: str, port: int, *, seconds: float = SECONDS, most: int = CONNECTIONS) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.seconds, self.places = seconds, threading.Semaphore(most)
        super().__init__((host, port), _Handler, bind_and_activate=False)

    def server_bind(self) -> None:
        """Bind, without asking the network what this machine is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def listen(self, application: Application) -> None:
        """Take connections, which wait until `run` answers them."""
        self.application = application
        self.server_activate()

    def run(self) -> None:
        """Answer until interrupted or shut down."""
        with suppress(KeyboardInterrupt):
            self.serve_forever(poll_interval=0.1)

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread a connection, while there are not too many."""
        if not self.places.acquire(blocking=False):
            with suppress(OSError):
                request.sendall(BUSY)
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error; anything else is ours and is printed."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


@contextmanager
def bound(host: str, port: int) -> Iterator[Server]:
    """The port, taken before any work is done for it; a port that cannot be had is refused."""
    server = Server(host, port)
    try:
        server.server_bind()
    except OSError as error:
        server.server_close()
        got, needs, way_out = TAKEN.get(
            error.errno or 0, (f"{error.strerror}", "an address of this machine", "Give another --host.")
        )
        raise Refusal(f"port {port} of {host}", got=got, needs=needs, way_out=way_out) from error
    try:
        yield server
    finally:
        server.server_close()
