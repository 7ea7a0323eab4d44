"""The verbs that only look at results: they read a store and need no torch."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from attentest.cli.shared import (
    DEFAULT_STORE,
    DataOption,
    JsonOption,
    StoreOption,
    TextOption,
    print_document,
    warn_of_damage,
)
from attentest.refusal import Refusal


def compare(
    study: Annotated[str, typer.Argument(help="A study by name, or the path of its TOML file.")],
    form: Annotated[
        str | None,
        typer.Option("--format", help="markdown, latex, csv or json instead of a terminal's table."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file: .md, .tex, .csv or .json.")] = None,
    store: StoreOption = DEFAULT_STORE,
    data_dir: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Published numbers beside ours: does what the store holds agree with the paper?"""
    from attentest.compare.formats import FORMATS, format_for
    from attentest.compare.table import compare as compared
    from attentest.corpus.shelf import entries
    from attentest.gallery.writing import write
    from attentest.terminal.comparisons import show_comparison, show_written

    chosen = format_for(form, out)
    if as_json and chosen not in (None, "json") and out is None:
        raise Refusal(
            "--json",
            got=f"--format {chosen} beside it",
            needs="one format for standard output",
            way_out=f"Leave one of them out, or add --out for the {chosen}.",
        )
    shelf = {entry["name"]: entry["status"] for entry in entries(data_dir)}
    document = compared(study, store, shelf)
    if out is not None and chosen is not None:
        write(FORMATS[chosen](document), out)
        print_document(document | {"out": str(out)}, as_json, show_written)
    elif chosen is not None and not as_json:
        sys.stdout.write(FORMATS[chosen](document))
        warn_of_damage(document)
    else:
        print_document(document, as_json, show_comparison)


def report(
    out: Annotated[
        Path | None, typer.Option(help="The folder to make: new, empty, or a report made before.")
    ] = None,
    single: Annotated[
        Path | None, typer.Option(help="Write all pages into this one HTML file; beside --out, or alone.")
    ] = None,
    study: Annotated[
        list[str] | None, typer.Option(help="Also the claims of this study, a TOML file; may be given again.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    data_dir: DataOption = None,
    include_text: TextOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make pages of everything a store holds: tables, figures, heat maps, claims, published numbers."""
    from attentest.terminal.documents import show_site

    if out is None and single is None:
        raise Refusal(
            "report",
            got="neither --out nor --single",
            needs="where to write the pages",
            way_out="Give --out DIR for a folder, --single FILE for one file, or both.",
        )
    document = make_report(
        out, store, single=single, studies=study or (), data_dir=data_dir, include_text=include_text
    )
    print_document(document, as_json, show_site)


def make_report(
    out: Path | None,
    store: str,
    *,
    single: Path | None = None,
    studies: Sequence[str] = (),
    data_dir: str | None = None,
    include_text: bool = False,
) -> dict[str, Any]:
    """Write the report and say what is in it; what can be refused is refused before anything is written."""
    from attentest.corpus.shelf import entries
    from attentest.corpus.sources import CORPORA
    from attentest.gallery.extra import check_web
    from attentest.gallery.folder import checked, publish
    from attentest.gallery.writing import write
    from attentest.store.checking import lacking_rows, named
    from attentest.store.store import Store
    from attentest.terminal.progress import counting

    check_web()
    if out is not None:
        checked(out)
    held = Store(store)
    # Only now: these import what check_web looked for.
    from attentest.gallery.earlier import Earlier
    from attentest.gallery.single import single as in_one
    from attentest.gallery.site import build

    earlier = Earlier() if out is None else Earlier.of(out)
    known = entries(data_dir)
    cited = {name: source.cite for name, source in CORPORA.items()}
    with counting("report") as watch:
        files = build(
            held,
            {entry["name"]: entry["status"] for entry in known},
            version=version("attentest"),
            studies=studies,
            private=() if include_text else [n for n, c in CORPORA.items() if c.restriction == CREDENTIALS],
            corpora=[entry | {"cite": cited.get(entry["name"], "")} for entry in known],
            every_text=out is not None,  # one file of every word of every text would be too large to open
            watch=watch,
            earlier=earlier,
        )
    if out is not None and not earlier.unchanged:
        publish(files, out, earlier.notes(files))
    if single is not None:
        write(in_one(files), single, option="--single", with_folder=True)
    pages = [name for name in files if name.endswith(".html")]
    figures = [name for name in files if name.startswith("figures/")]
    made = {"out": None if out is None else str(out), "single": None if single is None else str(single)}
    index = str(single if out is None else out / "index.html")
    told = {"damaged": named(held), "lacking": lacking_rows(held)}
    return {**made, "index": index, "pages": len(pages), "figures": len(figures), **told}


def look_back(cells: Collection[str], store: str) -> dict[str, Any]:
    """What the demo shows of these finding cells, and its pages, in the store's own folder.

    Whatever keeps the pages from being made is said; the demo has shown its numbers all the same.
    """
    from attentest.corpus.shelf import entries
    from attentest.gallery.showcase import gallery
    from attentest.store.store import Store

    shelf = {entry["name"]: entry["status"] for entry in entries()}
    document = gallery(cells, store, shelf) | {"site": None, "site_missing": ""}
    kept = Store(store)
    if not kept.local:
        return document | {"site_missing": f"{store} is no folder; give attentest report one with --out"}
    try:
        return document | {"site": make_report(Path(store) / "site", store)}
    except Refusal as refusal:
        return document | {"site_missing": str(refusal)}


CREDENTIALS = "needs credentials"  # as the catalogue says of texts that must not be passed on
