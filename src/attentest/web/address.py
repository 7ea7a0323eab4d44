"""Where a server is found: for a program, and for a person."""

from __future__ import annotations

from typing import Any

from rich.console import Console


def addresses(host: str, port: int, token: str | None) -> dict[str, Any]:
    """What to open. The token in an address lets a browser in, which then keeps it."""
    name = f"[{host}]" if ":" in host else host
    entrance = "" if token is None else f"?token={token}"
    root = f"http://{name}:{port}/"
    return {"address": f"{root}{entrance}", "live": f"{root}live.html{entrance}", "port": port}


def show_addresses(document: dict[str, Any], console: Console) -> None:
    """Where to look, and what is not there."""
    lines = [f"Pages: {document['address']}", f"Live:  {document['live']}"]
    lines += ["The pages are being made, and shown when they are ready."] if document["drawing"] else []
    lines += [document[name] for name in ("site_missing", "live_missing") if document[name]]
    for line in (*lines, "Ctrl-C ends it."):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
