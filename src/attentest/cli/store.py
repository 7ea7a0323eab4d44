"""`attentest store`: results as one file, to be passed on without corpora and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attentest.cli.shared import DEFAULT_STORE, JsonOption, StoreOption, print_document

store_group = typer.Typer(
    help="Pass results on as one file, without corpora and models.", no_args_is_help=True
)


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
