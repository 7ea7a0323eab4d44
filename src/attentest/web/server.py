"""How requests arrive: uvicorn, with bounds on size, time and number."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, final

import uvicorn
from starlette.types import ASGIApp

from attentest.refusal import Refusal
from attentest.web.connection import Connection, Places
from attentest.web.contract import LONGEST_HEAD

SECONDS = 15.0  # for a request to arrive whole, and again for the answer to be taken
CONNECTIONS = 256
OF_ONE_CLIENT = 64
AT_ONCE = 32  # taken in one step of the loop; fewer than places, so that each is read before it makes room
QUEUE = 512  # that may wait to be taken
TAKEN = {
    errno.EADDRINUSE: (
        "one that another program listens on",
        "a free one",
        "Give another --port; 0 finds one.",
    ),
    errno.EACCES: ("one that needs more rights", "a port above 1023", "Give another --port; 0 finds one."),
}


@final
class Server(uvicorn.Server):
    """Uvicorn as a program of one machine uses it: one process, no proxy before it, quiet about strangers."""

    def __init__(
        self,
        application: ASGIApp,
        *,
        seconds: float = SECONDS,
        most: int = CONNECTIONS,
        most_of_one: int = OF_ONE_CLIENT,
    ) -> None:
        places = Places(seconds=seconds, most=most, most_of_one=most_of_one)
        connection: Any = partial(Connection, places=places)
        config = uvicorn.Config(
            application,
            http=connection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            interface="asgi3",
            workers=1,
            proxy_headers=False,
            server_header=False,
            headers=[("Server", "attentest")],
            backlog=AT_ONCE,
            h11_max_incomplete_event_size=LONGEST_HEAD,
            # Our own mistakes are shown; what strangers send does not belong on a terminal.
            log_config=None,
            log_level="error",
            access_log=False,
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Let more connections wait than are taken at once, which asyncio has as one number."""
        await super().startup(sockets=sockets)
        for listener in sockets or ():
            listener.listen(QUEUE)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End at once and well, whoever still waits for an answer."""
        self.should_exit = self.force_exit = True


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """The port, taken before any work is done for it; a port that cannot be had is refused."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(QUEUE)
        except (OSError, ValueError) as error:  # a name that cannot be one is a ValueError
            number = error.errno or 0 if isinstance(error, OSError) else 0
            said = getattr(error, "strerror", None) or str(error)
            got, needs, way_out = TAKEN.get(
                number, (said, "an address of this machine", "Give another --host.")
            )
            raise Refusal(f"port {port} of {host}", got=got, needs=needs, way_out=way_out) from error
        yield listener
