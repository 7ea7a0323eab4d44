"""`attentest serve`: the pages of a store and the live one, until Ctrl-C."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attentest.cli.results import CREDENTIALS, make_report
from attentest.cli.shared import (
    DEFAULT_STORE,
    DataOption,
    JsonOption,
    StoreOption,
    TextOption,
    print_document,
)
from attentest.refusal import Refusal

if TYPE_CHECKING:
    from attentest.store.store import Store
    from attentest.web.contract import Reader

NO_TORCH = "The live page needs torch, which is not installed here: pip install torch. All other pages work."


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 finds a free one.")] = 8420,
    host: Annotated[str, typer.Option(help="Another address than this machine's own needs a token.")] = (
        "127.0.0.1"
    ),
    token: Annotated[
        str | None,
        typer.Option(envvar="ATTENTEST_TOKEN", help="What browsers and programs must show to be answered."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    data_dir: DataOption = None,
    include_text: TextOption = False,
    as_json: JsonOption = False,
) -> None:
    """Look at a store in a browser, and ask its models about texts that you type."""
    from attentest.corpus.sources import CORPORA
    from attentest.store.store import Store
    from attentest.web.address import addresses, show_addresses
    from attentest.web.application import Application
    from attentest.web.guard import Guard
    from attentest.web.server import bound
    from attentest.web.shelf import Shelf
    from attentest.web.site import links, place

    guard = Guard(host=host, token=token)
    guard.check()
    here = Store(store).existing()
    private = [] if include_text else [n for n, c in CORPORA.items() if c.restriction == CREDENTIALS]
    with bound(host, port) as server, place(here) as folder:
        pages, missing = _pages(here, folder, data_dir, include_text)
        live, why = _live(here)
        shelf = Shelf(here, private)
        pages |= links(one.key for one in shelf.models() if live is not None and not one.unreadable)
        server.listen(
            Application(
                guard=guard, shelf=shelf, pages=pages, live=live, why=why, version=version("attentest")
            )
        )
        document = addresses(host, server.server_port, token)
        document |= {"site_missing": missing, "live_missing": why}
        print_document(document, as_json, show_addresses)
        sys.stdout.flush()  # whoever started us from a program waits for this line
        server.run()


def _pages(
    store: Store, folder: Path, data_dir: str | None, include_text: bool
) -> tuple[dict[str, bytes | Path], str]:
    """The report's pages and ours; or, where no report can be made, ours and why."""
    from attentest.corpus.shelf import entries
    from attentest.web.site import made, no_pages, own_pages, stamp_of

    shelf = {entry["name"]: entry["status"] for entry in entries(data_dir)}
    stamp = stamp_of(store, [version("attentest"), shelf, include_text])
    try:
        pages = made(
            folder,
            stamp,
            lambda out: make_report(out, store.url, data_dir=data_dir, include_text=include_text),
        )
        missing = ""
    except Refusal as refusal:
        pages, missing = no_pages(str(refusal)), str(refusal)
    return pages | own_pages(), missing


def _live(store: Store) -> tuple[Reader | None, str]:
    """Whoever runs the models, or why nobody does."""
    try:
        from attentest.live.answers import Live
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        return None, NO_TORCH
    return Live(store), ""
