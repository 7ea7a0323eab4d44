"""`attentest serve`: the pages of a store and the live one, until Ctrl-C."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attentest.cli.of_model import (
    AttentionOption,
    HeadOption,
    LabelsOption,
    LayerOption,
    LowerOption,
    MarkOption,
    NetworkOption,
    PlaceOption,
    PromptOption,
    RemoteCodeOption,
    SpecialTokensOption,
    SubWordsOption,
    TaskOption,
    TypeOption,
    choice_of,
    task_of,
)
from attentest.cli.results import CREDENTIALS
from attentest.cli.shared import (
    DEFAULT_STORE,
    DataOption,
    JsonOption,
    StoreOption,
    TextOption,
    print_document,
)
from attentest.cli.spelling import in_options
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
    model: Annotated[
        list[str] | None,
        typer.Option(help="Ask this one, too: a folder, a name on the hub, module:factory. Again for more."),
    ] = None,
    labels: LabelsOption = None,
    attention: AttentionOption = None,
    layer: LayerOption = None,
    head: HeadOption = None,
    sub_words: SubWordsOption = False,
    special_tokens: SpecialTokensOption = False,
    lower: LowerOption = False,
    task: TaskOption = "classify",
    prompt: PromptOption = None,
    mark: MarkOption = None,
    device: PlaceOption = "auto",
    dtype: TypeOption = None,
    network: NetworkOption = False,
    remote_code: RemoteCodeOption = False,
    data_dir: DataOption = None,
    include_text: TextOption = False,
    as_json: JsonOption = False,
) -> None:
    """Look at a store in a browser, and ask its models, or your own, about texts that you type."""
    from attentest.corpus.sources import CORPORA
    from attentest.gallery.extra import check_server
    from attentest.web.address import addresses, show_addresses
    from attentest.web.guard import Guard
    from attentest.web.shelf import Shelf
    from attentest.web.site import Pages, links, own_pages, place

    check_server()
    # Only now: these import what check_server looked for.
    from attentest.web.application import Application
    from attentest.web.contract import Model
    from attentest.web.server import Server, bound

    guard = Guard(host=host, token=token)
    guard.check()
    given: _Given = ({}, [])
    if model:
        with in_options():
            chosen = choice_of(attention, layer, head, sub_words=sub_words, special_tokens=special_tokens)
            asked = {**task_of(task, prompt, mark), "device": device, "dtype": dtype, "lower": lower}
            trust = {"network": network, "remote_code": remote_code}
            given = _given(model, labels, {**asked, **trust, "attention": chosen})
    private = [] if include_text else [n for n, c in CORPORA.items() if c.restriction == CREDENTIALS]
    with _store(store, needed=not model) as here, bound(host, port) as listener, place(here) as folder:
        live, why = _live(here, given[0])
        shelf = Shelf(here, private, [Model(**each) for each in given[1]])
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


_Given = tuple[Mapping[str, Any], list[dict[str, Any]]]


@contextmanager
def _store(url: str, *, needed: bool) -> Iterator[Store]:
    """The store; where models were given it need not be there."""
    from attentest.store.store import Store

    here = Store(url)
    if needed or here.files.isdir(here.root):
        yield here.existing()
        return
    with tempfile.TemporaryDirectory(prefix="attentest-") as empty:
        yield Store(empty)


def _given(names: list[str], labels: str | None, asked: dict[str, Any]) -> _Given:
    """The models that were named; without torch none can be loaded, which is said."""
    try:
        from attentest.auditing.options import check_numbered, check_options, check_task
        from attentest.live.given import given_models
    except ImportError as error:
        _need_torch(error)
        raise Refusal(
            f"--model {names[0]}",
            got="no torch",
            needs="torch, to run a model",
            way_out="pip install torch, or leave --model out.",
        ) from error
    kind = asked["attention"].get("kind")
    check_options(device=asked["device"], dtype=asked["dtype"], task=asked["task"], attention=kind)
    check_task(asked["task"], asked["prompt"], labels, asked["mark"])
    check_numbered(asked["attention"])
    return given_models(names, labels, **asked)


def _need_torch(error: ImportError) -> None:
    """Torch may be missing; that anything else cannot be imported is a mistake of ours."""
    if (error.name or "").partition(".")[0] != "torch":
        raise error


def _live(store: Store, given: Mapping[str, Any]) -> tuple[Reader | None, str]:
    """Whoever runs the models, or why nobody does."""
    try:
        from attentest.live.answers import Live
    except ImportError as error:
        _need_torch(error)
        return None, NO_TORCH
    return Live(store, given), ""
