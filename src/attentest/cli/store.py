"""`attentest store`: what is damaged or in the way, and results as one file to be passed on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attentest.cli.shared import DEFAULT_STORE, DeviceOption, JsonOption, StoreOption, print_document

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
    engine: Annotated[str, typer.Option(help="local (processes) or inline (this process).")] = "local",
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
    findings: Annotated[Path, typer.Option(help="The Parquet file to write.")],
    study: Annotated[
        str | None, typer.Option(help="Only what this study asks for: a name, or the path of a TOML file.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Write the findings of a store with their settings and provenance into one file, without texts."""
    from attentest.gallery.export import export_findings
    from attentest.terminal.documents import show_export
    from attentest.terminal.progress import counting

    with counting("export") as watch:
        document = export_findings(store, findings, study=study, watch=watch)
    print_document(document, as_json, show_export)


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
    from attentest.terminal.documents import show_import, show_imports

    if len(files) == 1 and not files[0].is_dir():
        print_document(import_findings(files[0], store), as_json, show_import)
    else:
        print_document(import_several(files, store), as_json, show_imports)
