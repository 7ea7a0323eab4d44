"""The verb for a model that people already have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from attentest.cli.audited import command_again, show_audit
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
from attentest.cli.shared import DEFAULT_STORE, JsonOption, StoreOption, print_document
from attentest.cli.spelling import in_options


def audit(
    model: Annotated[str, typer.Argument(help="A model's folder, a name on the hub, or module:factory.")],
    data: Annotated[Path, typer.Option(help="A table of texts: CSV, TSV, JSON Lines or Parquet.")],
    text: Annotated[
        str | None, typer.Option(help="The column of texts; a common name, such as text, is found.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The column of labels, by name or by number; only accuracy needs it.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="The column of the second text, if any.")] = None,
    rationale: Annotated[str | None, typer.Option(help="The column of words that people marked.")] = None,
    labels: LabelsOption = None,
    out: Annotated[
        list[Path] | None, typer.Option(help="Write to this file: .html, .md or .json. May be given again.")
    ] = None,
    budget: Annotated[str, typer.Option(help="quick (100 texts), standard (500) or full.")] = "standard",
    texts: Annotated[
        int | None, typer.Option(help="How many texts, spread evenly, instead of the budget's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random draw.")] = 0,
    too_long: Annotated[
        str, typer.Option(help="Texts the model has no room for: refuse, skip or truncate.")
    ] = "refuse",
    missing: Annotated[
        str, typer.Option(help="Labels such as NA and nan: refuse, class, or drop (their rows).")
    ] = "refuse",
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
    batch_size: Annotated[int | None, typer.Option(help="How many texts at once, at most.")] = None,
    network: NetworkOption = False,
    remote_code: RemoteCodeOption = False,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave the texts out of the page and the JSON.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Is this model's attention an explanation? Evidence, criterion by criterion."""
    again = command_again(audit, locals())
    chosen = choice_of(attention, layer, head, sub_words=sub_words, special_tokens=special_tokens)
    words = {"budget": budget, "too_long": too_long, "missing": missing, "texts": texts, "seed": seed}
    words |= task_of(task, prompt, mark) | {"device": device, "dtype": dtype, "batch_size": batch_size}
    columns = {"text": text, "label": label, "query": query, "rationale": rationale}
    trust = {"network": network, "remote_code": remote_code}
    with in_options():
        of_model = {**trust, "labels": labels, "include_text": not no_text, "store": store}
        result = _audited(model, data, out or [], words, {**columns, "lower": lower}, of_model, chosen)
        result = replace(result, command=again)
        written = [str(result.save(each)) for each in out or []]
    print_document({**result.document, "out": written}, as_json, show_audit)


def _audited(
    model: str,
    data: Path,
    out: list[Path],
    words: dict[str, Any],
    columns: dict[str, Any],
    of_model: dict[str, Any],
    chosen: dict[str, Any],
) -> Any:
    """The cheapest checks first: words, the model's settings, the table; only then is a library loaded."""
    from attentest.auditing.options import check_model, check_options, check_task

    prompted = {"prompt": words["prompt"], "mark": words["mark"]}
    plain = {name: value for name, value in words.items() if name not in prompted}
    check_options(**plain, attention=chosen.get("kind"))
    check_task(words["task"], **prompted, labels=of_model["labels"])
    trust = {"network": of_model["network"], "remote_code": of_model["remote_code"]}
    check_model(model, **trust, task=words["task"])
    from attentest.auditing.page import FORMATS
    from attentest.auditing.texts import given_texts
    from attentest.terminal.progress import foretelling

    for each in out:
        FORMATS.check(each)
    given = given_texts(data, **columns, missing=words["missing"])
    with foretelling(f"audit of {model}") as watcher:
        from attentest.auditing.api import audit as ask

        return ask(model, given, attention=chosen, name=model, watcher=watcher, **words, **of_model)
