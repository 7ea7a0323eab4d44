"""`attentest serve`: the pages of a store and the live one, until Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attentest.cli.results import CREDENTIALS
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
    from attentest.web.shelf import Shelf
    from attentest.web.site import Pages

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
    from attentest.gallery.extra import check_server
    from attentest.store.store import Store
    from attentest.web.address import addresses, show_addresses
    from attentest.web.guard import Guard
    from attentest.web.shelf import Shelf
    from attentest.web.site import Pages, links, own_pages, place

    check_server()
    # Only now: these import what check_server looked for.
    from attentest.web.application import Application
    from attentest.web.server import Server, bound

    guard = Guard(host=host, token=token)
    guard.check()
    here = Store(store).existing()
    private = [] if include_text else [n for n, c in CORPORA.items() if c.restriction == CREDENTIALS]
    with bound(host, port) as listener, place(here) as folder:
        live, why = _live(here)
        shelf = Shelf(here, private)
        keys = [one.key for one in shelf.models() if live is not None and not one.unreadable]
        pages = Pages(own_pages() | links(keys))
        application = Application(
            guard=guard, shelf=shelf, pages=pages, live=live, why=why, version=version("attentest")
        )
        with _report(pages, folder, shelf, data_dir, include_text) as missing:
            document = addresses(host, listener.getsockname()[1], token)
            document |= {"site_missing": missing, "live_missing": why, "drawing": not pages.is_whole}
            print_document(document, as_json, show_addresses)
            sys.stdout.flush()  # whoever started us from a program waits for this line
            Server(application).run([listener])


@contextmanager
def _report(
    pages: Pages, folder: Path, shelf: Shelf, data_dir: str | None, include_text: bool
) -> Iterator[str]:
    """Show the report, at once where nothing has changed, else when it is drawn; gives why there is none."""
    from attentest.corpus.shelf import entries
    from attentest.gallery.extra import check_web, no_findings
    from attentest.web.drawing import drawing
    from attentest.web.site import kept, no_pages, stamp_of

    corpora = {entry["name"]: entry["status"] for entry in entries(data_dir)}
    stamp = stamp_of(shelf.store, [version("attentest"), corpora, include_text])
    found, missing = kept(folder, stamp), ""
    if found is None:
        try:
            check_web()
            if not shelf.has_findings():
                raise no_findings(shelf.store.url)
        except Refusal as refusal:
            missing = str(refusal)
            found = no_pages(missing)
    if found is not None:
        pages.show(found)
        yield missing
        return
    options = ["--store", shelf.store.url, *(["--include-text"] if include_text else [])]
    with drawing(pages, folder, stamp, options + (["--data-dir", data_dir] if data_dir is not None else [])):
        yield missing


def _live(store: Store) -> tuple[Reader | None, str]:
    """Whoever runs the models, or why nobody does."""
    try:
        from attentest.live.answers import Live
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        return None, NO_TORCH
    return Live(store), ""
