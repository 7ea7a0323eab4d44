"""The command line: it parses, calls the bench, and prints. Heavy imports wait until a command needs them."""

from __future__ import annotations

import errno
import json
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Annotated, Any

import typer

from attentest.cli.audit import audit
from attentest.cli.corpora import corpora
from attentest.cli.examples import show_examples
from attentest.cli.inspect import inspect
from attentest.cli.results import compare, look_back, report
from attentest.cli.serve import serve
from attentest.cli.shared import (
    DEFAULT_STORE,
    DataOption,
    DeviceOption,
    JsonOption,
    StoreOption,
    TextOption,
    open_page,
    print_document,
)
from attentest.cli.store import store_group
from attentest.refusal import Refusal

app = typer.Typer(
    name="attentest",
    help="Do a model's attention weights explain its predictions? Train, permute, measure, compare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _say_version(asked: bool) -> bool:
    if asked:
        print(f"attentest {installed('attentest')}")
        raise typer.Exit()
    return asked


@app.callback()
def attentest(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Do a model's attention weights explain its predictions? Train, permute, measure, compare."""


app.add_typer(corpora, name="corpora")
app.add_typer(store_group, name="store")
app.command()(audit)
app.command()(inspect)
app.command()(compare)
app.command()(report)
app.command()(serve)

INTERRUPTED = 130
PATHS = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM)  # what only a path from outside can bring about
# Whatever is wrong with the words of a command: old releases of typer have it from click.
WrongUsage: Any = typer.BadParameter.__mro__[1]


def run(arguments: list[str]) -> int:
    """The exit status: 0 done, 1 some cells failed, 2 the input was wrong, 130 interrupted."""
    try:
        status = app(arguments, prog_name="attentest", standalone_mode=False) or 0
    except Refusal as refusal:
        return _refuse(refusal.as_json(), arguments)
    except WrongUsage as error:
        return _refuse_usage(error, arguments)
    except OSError as error:
        if error.errno not in PATHS:
            raise
        said = f"a path: got {error.filename} ({error.strerror}), but needs one that can be opened."
        return _refuse({"message": said}, arguments)
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    if status == INTERRUPTED:  # newer releases of typer make a status of Ctrl-C themselves
        print("Interrupted. What is done is kept; the same command goes on from there.", file=sys.stderr)
    return status


def _refuse_usage(error: Any, arguments: list[str]) -> int:
    said = error.format_message()
    if said.startswith("Usage:"):  # a command alone is answered with its whole help
        print(said, file=sys.stderr)
        return 2
    command = error.ctx.command_path if error.ctx else "attentest"
    return _refuse({"message": f"{said.rstrip('.')}. See `{command} --help`."}, arguments)


def _refuse(error: dict[str, str], arguments: list[str]) -> int:
    if "--json" in arguments:
        print(json.dumps({"error": error}))
    else:
        print(f"attentest: {_harmless(error['message'])}", file=sys.stderr)
        for line in error.get("traceback", "").splitlines():
            print(f"  {_harmless(line)}", file=sys.stderr)
    return 2


def _harmless(said: str) -> str:
    """One line, whatever a file is called: no breaks, nothing that steers a terminal."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in said)


@app.command()
def train(
    corpus: Annotated[str, typer.Argument(help="A corpus by name; see `attentest corpora list`.")],
    encoder: str = "bilstm",
    attention: str = "additive",
    projection: Annotated[str, typer.Option(help="softmax, sparsemax, sparsegen(0.5), ...")] = "softmax",
    seed: int = 0,
    decoder: str | None = None,
    sizes: Annotated[str, typer.Option(help="code or paper.")] = "code",
    vectors: Annotated[str, typer.Option(help="random, random(SCALE), word2vec, or a text file.")] = "random",
    epochs: int | None = None,
    batch_size: int | None = None,
    out: Annotated[Path | None, typer.Option(help="Also save the model as a folder.")] = None,
    store: StoreOption = DEFAULT_STORE,
    device: DeviceOption = "auto",
    data_dir: DataOption = None,
    include_text: TextOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train one model; the same settings again are answered from the store."""
    from attentest.bench.verbs import train_one
    from attentest.terminal.documents import show_training
    from attentest.terminal.progress import ProgressBars

    settings: dict[str, Any] = {"encoder": encoder, "attention": attention, "projection": projection}
    settings |= {"seed": seed, "decoder": decoder, "sizes": sizes, "vectors": vectors}
    settings |= {"epochs": epochs, "batch_size": batch_size}
    with ProgressBars(f"{corpus}: {encoder} + {attention}") as bars:
        result = train_one(
            corpus,
            settings,
            store,
            device=device,
            data_dir=data_dir,
            include_text=include_text,
            out=out,
            watcher=bars,
        )
    print_document(result, as_json, show_training)


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="A study by name, or the path of its TOML file.")],
    corpus: Annotated[list[str] | None, typer.Option(help="Only this corpus; may be given again.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, max=1000, help="How many seeds.")] = None,
    engine: Annotated[
        str, typer.Option(help="local (processes), inline (this process) or ray (a cluster).")
    ] = "local",
    device: DeviceOption = "auto",
    workers: Annotated[int | None, typer.Option(min=1, help="How many processes.")] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="auto or HOST:PORT of a Ray cluster; else one is started here.")
    ] = None,
    resources: Annotated[
        list[str] | None,
        typer.Option(help="What cells take of a node, as observation:gpus=0.25,memory=4GB; may be repeated."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the cells that are missing; do none.")] = False,
    store: StoreOption = DEFAULT_STORE,
    data_dir: DataOption = None,
    include_text: TextOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a study; what is in the store already is not done again."""
    from attentest.bench.needs import parse
    from attentest.bench.verbs import run_study
    from attentest.terminal.documents import show_plan, show_study
    from attentest.terminal.progress import ProgressBars

    with ProgressBars(name) as bars:
        result = run_study(
            name,
            store,
            corpora=corpus,
            seeds=seeds,
            engine=engine,
            device=device,
            workers=workers,
            ray_address=ray_address,
            resources=parse(resources or ()),
            only_plan=plan,
            data_dir=data_dir,
            include_text=include_text,
            watcher=bars,
        )
    print_document(result, as_json, show_plan if plan else show_study)
    _exit_by(result)


@app.command()
def demo(
    full: Annotated[
        bool, typer.Option("--full", help="Three studies with every number: some seven minutes.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
    seeds: Annotated[int | None, typer.Option(min=1, max=1000, help="How many seeds.")] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """A first look in a minute: what a model looks at, another attention with the same answer, a page."""
    from attentest.bench.showcase import run_demo
    from attentest.terminal.demonstration import show_demo
    from attentest.terminal.first_look import show_first_look
    from attentest.terminal.progress import ProgressBars

    with ProgressBars("demo") as bars:
        result = run_demo(store, full=full, seeds=seeds, device=device, watcher=bars)
    result |= look_back({finding["cell"] for finding in result["findings"]}, store)
    print_document(result, as_json, show_demo if full or not result["first_look"] else show_first_look)
    if result["site"] and not as_json:
        open_page(result["site"]["index"])
    _exit_by(result)


@app.command()
def conclude(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """Compute every finding again from the stored rows; needs no model and no GPU."""
    from attentest.bench.conclusion import conclude_all
    from attentest.terminal.documents import show_conclusions

    result = conclude_all(store)
    print_document(result, as_json, show_conclusions)
    if result["changed"]:
        raise typer.Exit(1)


@app.command("list")
def list_command(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """The cells of a store, what failed, and what was planned."""
    from attentest.bench.conclusion import list_cells
    from attentest.terminal.documents import show_cells

    print_document(list_cells(store), as_json, show_cells)


@app.command("run-cell")
def run_cell(
    key: Annotated[str, typer.Argument(help="The key of a planned cell, or the beginning of it.")],
    store: StoreOption = DEFAULT_STORE,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Do one planned cell here, for schedulers of your own (`study --plan` prints the keys)."""
    from attentest.bench.verbs import run_one
    from attentest.terminal.documents import show_cell

    result = run_one(key, store, device=device)
    print_document(result, as_json, show_cell)
    _exit_by(result)


def _exit_by(result: dict[str, Any]) -> None:
    if result["failed"]:
        raise typer.Exit(1)


show_examples(app)
