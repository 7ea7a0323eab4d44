"""The verb for a model that people already have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from attentest.cli.shared import JsonOption, print_document
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
    labels: Annotated[
        str | None, typer.Option(help="The model's classes in their order, as in no,yes.")
    ] = None,
    out: Annotated[
        list[Path] | None, typer.Option(help="Write to this file: .html, .md or .json. May be given again.")
    ] = None,
    budget: Annotated[str, typer.Option(help="quick, standard or full.")] = "standard",
    texts: Annotated[
        int | None, typer.Option(help="So many texts, spread evenly, instead of the budget's number.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of every random draw.")] = 0,
    too_long: Annotated[
        str, typer.Option(help="Texts the model has no room for: refuse, skip or truncate.")
    ] = "refuse",
    missing: Annotated[
        str, typer.Option(help="Labels such as NA and nan: refuse, class, or drop (their rows).")
    ] = "refuse",
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
    task: Annotated[
        str, typer.Option(help="Of a causal language model: prompt (--prompt, --labels) or next-token.")
    ] = "classify",
    prompt: Annotated[
        str | None, typer.Option(help="What stands around each text: 'Review: {text}\\nSentiment:'.")
    ] = None,
    mark: Annotated[
        str | None, typer.Option(help="What marks the place in each text whose next token is asked about.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    dtype: Annotated[
        str | None, typer.Option(help="float32 (the default), float64, bfloat16, float16, or auto: as saved.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="So many texts at once, at most.")] = None,
    network: Annotated[bool, typer.Option("--network", help="Fetch the model from the hub.")] = False,
    remote_code: Annotated[
        bool, typer.Option("--remote-code", help="Let code run that comes with the model.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Is this model's attention an explanation? Evidence, criterion by criterion."""
    named: dict[str, Any] = {"kind": attention, "layer": _place("layer", layer), "head": _place("head", head)}
    chosen = {name: value for name, value in named.items() if value is not None}
    chosen |= {"words": False} if sub_words else {}
    chosen |= {"special_tokens": True} if special_tokens else {}
    words = {"budget": budget, "too_long": too_long, "missing": missing, "texts": texts, "seed": seed}
    words |= {"task": task, "prompt": None if prompt is None else _line_breaks(prompt), "mark": mark}
    words |= {"device": device, "dtype": dtype, "batch_size": batch_size}
    columns = {"text": text, "label": label, "query": query, "rationale": rationale}
    trust = {"network": network, "remote_code": remote_code}
    with in_options():
        result = _audited(
            model, data, out or [], words, {**columns, "lower": lower}, {**trust, "labels": labels}, chosen
        )
        written = [str(result.save(each)) for each in out or []]
    print_document({**result.document, "out": written}, as_json, _show)


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
    from attentest.auditing.page import check_out
    from attentest.auditing.texts import given_texts
    from attentest.terminal.progress import counting

    for each in out:
        check_out(each)
    given = given_texts(data, **columns, missing=words["missing"])
    with counting(f"audit of {model}") as watcher:
        from attentest.auditing.api import audit as ask

        return ask(model, given, attention=chosen, name=model, watcher=watcher, **words, **of_model)


def _line_breaks(prompt: str) -> str:
    """A prompt as a shell hands it over, in which a line break is a backslash and an n."""
    return prompt.replace("\\n", "\n").replace("\\t", "\t")


def _place(what: str, written: str | None) -> int | str | None:
    """A number, or the word that asks for the best one."""
    from attentest.refusal import Refusal

    if written is None or written == "best":
        return written
    try:
        return int(written)
    except ValueError:
        raise Refusal(
            f"--{what} {written!r}",
            got="something that is no number",
            needs="a number, or best",
            way_out=f"The first {what} is 0, the last -1.",
        ) from None


def _show(document: dict[str, Any], console: Console) -> None:
    """The sentences, what is not there, and where the rest is."""
    from attentest.terminal.tables import plain_table

    about = f"{document['model']}: {document['attention']}"
    console.print(about, markup=False, highlight=False, emoji=False)  # module:factory: is no emoji
    console.print(f"{document['texts']} of {document['of']} texts, budget {document['budget']}")
    told = [*document["notes"], document["scope"]]
    told += [document["chosen"]["sentence"]] if document["chosen"] else []
    for one in document["criteria"]:
        told += [f"{one['asks']} ({one['question']})", f"  {one['sentence']}", f"  {one['rates']}"]
    for sentence in told:
        console.print(sentence, markup=False, highlight=False)
    console.print(plain_table(("not measured", "why"), list(document["left_out"].items())))
    where = ", ".join(document["out"])
    said = f"All of it: {where}" if where else "--out audit.html writes all of it."
    console.print(said, markup=False, highlight=False)
