"""`attentest store`: what is damaged or in the way, and results as one file to be passed on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attentest.cli.shared import (
    DEFAULT_STORE,
    DeviceOption,
    JsonOption,
    StoreOption,
    TextOption,
    print_document,
)
from attentest.refusal import Refusal

store_group = typer.Typer(help="Look after a store, and pass on what it holds.", no_args_is_help=True)


@store_group.command("check")
def store_check(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """Read every file and say which cells are not what was written; nothing is changed."""
    from attentest.store.checking import check
    from attentest.terminal.progress import counting
    from attentest.terminal.stores import show_check

    with counting("check") as watch:
        document = check(store, watch)
    print_document(document, as_json, show_check)
    if document["damaged"]:
        raise typer.Exit(1)


@store_group.command("heal")
def store_heal(
    store: StoreOption = DEFAULT_STORE,
    engine: Annotated[str, typer.Option(help="local, inline or ray, as of `study`.")] = "local",
    lacking: Annotated[
        bool, typer.Option("--lacking", help="Also cells that lack files other than the weights of a model.")
    ] = False,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Set damaged cells aside, into the folder `damaged`, and compute them again."""
    from attentest.bench.healing import heal
    from attentest.terminal.progress import ProgressBars
    from attentest.terminal.stores import show_healing

    with ProgressBars("heal") as bars:
        document = heal(store, lacking=lacking, engine=engine, device=device, watcher=bars)
    print_document(document, as_json, show_healing)
    if document["failed"] or document["unknown"]:
        raise typer.Exit(1)


@store_group.command("prune")
def store_prune(
    store: StoreOption = DEFAULT_STORE,
    yes: Annotated[bool, typer.Option("--yes", help="Remove what is listed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List what nothing leads to any more: unfinished work, healed cells, superseded versions."""
    from attentest.store.checking import prune
    from attentest.terminal.stores import show_pruning

    print_document(prune(store, yes=yes), as_json, show_pruning)


@store_group.command("export")
def store_export(
    findings: Annotated[Path | None, typer.Option(help="The Parquet file of findings to write.")] = None,
    without_weights: Annotated[
        Path | None, typer.Option(help="The tar file to write: every cell, texts included, but no weights.")
    ] = None,
    study: Annotated[
        str | None, typer.Option(help="Only what this study asks for: a name, or the path of a TOML file.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    include_text: TextOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the findings of a store, without texts, or all of it but the weights of models, into one file."""
    from attentest.gallery.export import export_findings
    from attentest.store.packing import pack
    from attentest.terminal.documents import show_export
    from attentest.terminal.progress import counting
    from attentest.terminal.stores import show_packing

    if (findings is None) == (without_weights is None):
        raise Refusal(
            "store export",
            got="neither --findings nor --without-weights" if findings is None else "two files to write",
            needs="one of --findings FILE.parquet and --without-weights FILE.tar",
            way_out="Findings have no texts in them; all of a store has.",
        )
    if without_weights is not None:
        _check_texts(store, include_text=include_text)
        print_document(pack(store, without_weights), as_json, show_packing)
        return
    assert findings is not None
    with counting("export") as watch:
        document = export_findings(store, findings, study=study, watch=watch)
    print_document(document, as_json, show_export)


def _check_texts(store: str, *, include_text: bool) -> None:
    from attentest.corpus.sources import CORPORA
    from attentest.store.store import Store

    told = Store(store).existing().descriptions().values()
    names = {about["config"].get("name") for about in told if about["stage"] == "corpus"}
    private = sorted(n for n in names & CORPORA.keys() if CORPORA[n].restriction == "needs credentials")
    if private and not include_text:
        raise Refusal(
            "--without-weights",
            got=f"a store with texts that need credentials: {', '.join(private)}",
            needs="your word that whoever gets the file may have them",
            way_out="Add --include-text, or export the --findings, which have no texts in them.",
        )


@store_group.command("import")
def store_import(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files that `attentest store export` has written, or folders that hold some."),
    ],
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Take exported findings into a store: the same keys; nothing that is there is overwritten."""
    from attentest.store.importing import import_findings, import_several
    from attentest.store.packing import is_packed, unpack
    from attentest.terminal.documents import show_import, show_imports

    if len(files) == 1 and is_packed(files[0]):
        print_document(unpack(files[0], store), as_json, show_import)
    elif len(files) == 1 and not files[0].is_dir():
        print_document(import_findings(files[0], store), as_json, show_import)
    else:
        print_document(import_several(files, store), as_json, show_imports)
