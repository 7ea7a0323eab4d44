"""`attentest corpora`: what there is, where it comes from, and how to have it here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from attentest.cli.shared import DataOption, JsonOption, print_document
from attentest.cli.spelling import in_options

corpora = typer.Typer(
    help="What corpora there are, where they come from, and your own.", no_args_is_help=True
)


@corpora.command("list")
def corpora_list(data_dir: DataOption = None, as_json: JsonOption = False) -> None:
    """Every corpus by name, and whether it is there."""
    from attentest.corpus.shelf import entries
    from attentest.terminal.documents import show_corpora

    print_document({"corpora": entries(data_dir)}, as_json, show_corpora)


@corpora.command("describe")
def corpora_describe(name: str, data_dir: DataOption = None, as_json: JsonOption = False) -> None:
    """One corpus: provenance, licence, preparation, and counts per split and label."""
    from attentest.corpus.shelf import describe
    from attentest.terminal.documents import show_corpus

    print_document(describe(name, data_dir), as_json, show_corpus)


@corpora.command("get")
def corpora_get(
    name: Annotated[str, typer.Argument(help="A published corpus by name; see `attentest corpora list`.")],
    data_dir: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Download a corpus from its publisher; what was cut goes on where it was."""
    from attentest.corpus.fetch.download import download_corpus
    from attentest.terminal.downloads import DownloadBar, show_download

    with DownloadBar(name) as bar:
        result = download_corpus(name, data_dir, on_progress=bar.moved)
    print_document(result, as_json, show_download)


@corpora.command("add")
def corpora_add(
    name: str,
    file: Path,
    text: Annotated[str, typer.Option(help="The column of texts.")],
    label: Annotated[str, typer.Option(help="The column of labels.")],
    query: Annotated[str | None, typer.Option(help="The column of questions, if any.")] = None,
    rationale: Annotated[str | None, typer.Option(help="The column of marked words, if any.")] = None,
    missing: Annotated[
        str | None, typer.Option(help="What labels such as NA are: class, or drop (their rows).")
    ] = None,
    data_dir: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register a CSV, TSV, JSONL or Parquet file under a name."""
    from attentest.corpus.tables.registered import register
    from attentest.terminal.documents import show_added

    columns: dict[str, Any] = {"text": text, "label": label, "query": query, "rationale": rationale}
    with in_options():
        corpus = register(name, file, **columns, missing=missing, data_dir=data_dir)
    counts = {split: sum(labels.values()) for split, labels in corpus.counts().items()}
    print_document({"corpus": name, "texts": counts, "labels": list(corpus.labels)}, as_json, show_added)


@corpora.command("remove")
def corpora_remove(name: str, data_dir: DataOption = None, as_json: JsonOption = False) -> None:
    """Forget a corpus that `corpora add` registered; its file stays where it is."""
    from attentest.corpus.tables.registered import remove
    from attentest.terminal.documents import show_removed

    file = remove(name, data_dir)
    print_document({"corpus": name, "removed": str(file)}, as_json, show_removed)
