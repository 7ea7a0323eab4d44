"""The verb for a model that people already have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from attentest.cli.shared import JsonOption, print_document


def audit(
    model: Annotated[str, typer.Argument(help="A model's folder, a name on the hub, or module:factory.")],
    data: Annotated[Path, typer.Option(help="A table of texts: CSV, TSV, JSON Lines or Parquet.")],
    text: Annotated[str, typer.Option(help="The column that holds each text.")],
    label: Annotated[str, typer.Option(help="The column that holds each label.")],
    query: Annotated[str | None, typer.Option(help="The column of the second text, if any.")] = None,
    rationale: Annotated[str | None, typer.Option(help="The column of words that people marked.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="The model's classes in their order, as in no,yes.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file: .html, .md or .json.")] = None,
    budget: Annotated[str, typer.Option(help="quick, standard or full.")] = "standard",
    attention: Annotated[
        str | None,
        typer.Option(help="A transformer's row (the default), rollout, flow, value-norm or gradient."),
    ] = None,
    layer: Annotated[
        str | None, typer.Option(help="The transformer's layer, or best; -1, the last, by default.")
    ] = None,
    head: Annotated[
        str | None, typer.Option(help="One head, or best, instead of the mean over heads.")
    ] = None,
    sub_words: Annotated[bool, typer.Option("--sub-words", help="Units are sub-words, not words.")] = False,
    special_tokens: Annotated[
        bool, typer.Option("--special-tokens", help="The tokenizer's marks are units, too.")
    ] = False,
    lower: Annotated[bool, typer.Option("--lower", help="Lower-case the texts.")] = False,
    network: Annotated[bool, typer.Option("--network", help="Fetch the model from the hub.")] = False,
    remote_code: Annotated[
        bool, typer.Option("--remote-code", help="Let code run that comes with the model.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Is this model's attention an explanation? Evidence, criterion by criterion."""
    from attentest.auditing.api import audit as ask
    from attentest.auditing.choosing import BEST, to_be_chosen
    from attentest.auditing.models import load_model
    from attentest.auditing.page import check_out
    from attentest.auditing.run import check_budget
    from attentest.corpus.tables.table import read_table
    from attentest.terminal.progress import counting

    if out is not None:
        check_out(out)
    check_budget(budget)
    settings: dict[str, Any] = {"lower": True} if lower else {}
    table = read_table(data, text=text, label=label, query=query, rationale=rationale, **settings)
    named: dict[str, Any] = {"kind": attention, "layer": _place("layer", layer), "head": _place("head", head)}
    chosen = {name: value for name, value in named.items() if value is not None}
    chosen |= {"words": False} if sub_words else {}
    chosen |= {"special_tokens": True} if special_tokens else {}
    names = None if labels is None else tuple(name.strip() for name in labels.split(","))
    choice, best = to_be_chosen(chosen)
    subject = load_model(model, labels=names, attention=choice, network=network, remote_code=remote_code)
    with counting(f"audit of {model}") as watcher:
        looked_for = dict.fromkeys(best, BEST)
        result = ask(subject, table, attention=looked_for, budget=budget, name=model, watcher=watcher)
    document = {**result.document, "out": None if out is None else str(result.save(out))}
    print_document(document, as_json, _show)


def _place(what: str, written: str | None) -> int | str | None:
    """A number, or the word that asks for the best one."""
    from attentest.auditing.choosing import BEST
    from attentest.refusal import Refusal

    if written is None or written == BEST:
        return written
    try:
        return int(written)
    except ValueError:
        raise Refusal(
            f"{what} {written!r}",
            got="something that is no number",
            needs=f"a number, or {BEST}",
            way_out=f"The first {what} is 0, the last -1.",
        ) from None


def _show(document: dict[str, Any], console: Console) -> None:
    """The sentences, what is not there, and where the rest is."""
    from attentest.terminal.tables import plain_table

    about = f"{document['model']}: {document['attention']}"
    console.print(about, markup=False, highlight=False, emoji=False)  # module:factory: is no emoji
    console.print(f"{document['texts']} of {document['of']} texts, budget {document['budget']}")
    told = [document["scope"], *([document["chosen"]["sentence"]] if document["chosen"] else [])]
    for one in document["criteria"]:
        told += [f"{one['asks']} ({one['question']})", f"  {one['sentence']}", f"  {one['rates']}"]
    for sentence in told:
        console.print(sentence, markup=False, highlight=False)
    console.print(plain_table(("not measured", "why"), list(document["left_out"].items())))
    said = f"All of it: {document['out']}" if document["out"] else "--out audit.html writes all of it."
    console.print(said, markup=False, highlight=False)
