"""Who may ask: a page of somebody else's, in the same browser, must not.

A foreign page can point a name of its own at 127.0.0.1 and so look like ours to the browser (DNS rebinding);
it cannot make the browser send another Host. Nor can it read our answers, or send JSON without being asked.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import final
from urllib.parse import parse_qs, urlsplit

from attentest.refusal import Refusal

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HOST = re.compile(
    r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?"
)
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name may lead anywhere
        return False


@final
@dataclass(frozen=True, kw_only=True)
class Guard:
    """Under which names the server may be asked for, and by which token."""

    host: str = "127.0.0.1"
    token: str | None = None

    def check(self) -> None:
        """Refuse what is no name, and to be open to others without a token that cannot be guessed."""
        if not HOST.fullmatch(self.host):
            raise Refusal(
                f"--host {self.host!r}",
                got="what is neither an address nor a name in ASCII letters",
                needs="an address or name of this machine, such as 127.0.0.1 or myhost.example",
                way_out="Write an international name as browsers send it, xn--...; or give an address.",
            )
        if self.token is None and not is_loopback(self.host):
            raise Refusal(
                f"--host {self.host}",
                got="no --token",
                needs="a token, since others could reach the server and its texts",
                way_out=f"Add one, for example --token {secrets.token_urlsafe(16)}",
            )
        if self.token is not None and not TOKEN.fullmatch(self.token):
            raise Refusal(
                "--token",
                got=f"{len(self.token)} characters",
                needs="16 to 128 letters, digits, - and _",
                way_out=f"For example {secrets.token_urlsafe(16)}",
            )

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server. Ports do not matter: they change under a tunnel."""
        try:
            name = "" if "@" in host else urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in LOOPBACK or is_loopback(name) or name == self.host.lower():
            return True
        # Open to others: they ask by address or by the machine's name. A rebound name is neither.
        return not is_loopback(self.host) and (_is_address(name) or name == socket.gethostname().lower())

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Whether the token is there, as a program sends it or as a browser keeps it."""
        if self.token is None:
            return True
        scheme, _, said = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.is_token(said.strip()):
            return True
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return kept is not None and self.is_token(kept.value)

    def is_token(self, said: str) -> bool:
        """Compared in constant time: how long it takes tells nothing."""
        return self.token is not None and hmac.compare_digest(
            said.encode(errors="replace"), self.token.encode()
        )

    def said_in(self, query: str) -> bool:
        """Whether the address itself brings the token, as the one printed at the start does."""
        return any(self.is_token(said) for said in parse_qs(query).get("token", ()))

    @property
    def cookie(self) -> str:
        """A name for the browser to keep the token under."""
        return "attentest-token"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Whether a page of another origin sent this; browsers say so, programs say nothing."""
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2] != headers.get("host")
