"""The verb for one text: what a model makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

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
from attentest.cli.shared import JsonOption, print_document
from attentest.cli.spelling import in_options
from attentest.evidence.importances.names import BY_CAPTUM, IMPORTANCES


def inspect(
    model: Annotated[str, typer.Argument(help="A model's folder, a name on the hub, or module:factory.")],
    text: Annotated[str, typer.Argument(help="The text, in quotes.")],
    query: Annotated[str | None, typer.Option(help="The second text of a pair.")] = None,
    labels: LabelsOption = None,
    html: Annotated[
        list[Path] | None, typer.Option(help="Write a page to this file; .json writes everything.")
    ] = None,
    importance: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(IMPORTANCES)} (all of them by default); {', '.join(BY_CAPTUM)}. May be given"
            " again."
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="How much an adversary may change the output: 0.01, of pairs 0.05.")
    ] = None,
    permutations: Annotated[int, typer.Option(help="Random orders of the attention weights.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of every random draw.")] = 0,
    too_long: Annotated[
        str, typer.Option(help="A text the model has no room for: refuse or truncate.")
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
    network: NetworkOption = False,
    remote_code: RemoteCodeOption = False,
    as_json: JsonOption = False,
) -> None:
    """One text in one model: attention, importances, adversary, permutations and smallest flip."""
    chosen = choice_of(attention, layer, head, sub_words=sub_words, special_tokens=special_tokens)
    with in_options():
        from attentest.auditing.options import check_model, check_options, check_task

        check_options(
            too_long=too_long, seed=seed, attention=attention, device=device, dtype=dtype, task=task
        )
        asked = task_of(task, prompt, mark)
        check_task(task, asked["prompt"], labels, mark)
        check_model(model, network=network, remote_code=remote_code, task=task)
        from attentest.inspection.page import FORMATS

        for each in html or []:
            FORMATS.check(each)
        from attentest.inspection.api import inspect as ask

        view = ask(
            model,
            text,
            query=query,
            labels=labels,
            attention=chosen,
            importances=importance or tuple(IMPORTANCES),
            epsilon=epsilon,
            permutations=permutations,
            seed=seed,
            too_long=too_long,
            lower=lower,
            **asked,
            device=device,
            dtype=dtype,
            network=network,
            remote_code=remote_code,
        )
        written = [str(view.save(each)) for each in html or []]
    print_document({**view.to_dict(), "out": written}, as_json, _show)


def _show(document: dict[str, Any], console: Console) -> None:
    """The tables and sentences, and where a page was written."""
    from attentest.inspection.terminal import printed

    console.print(printed(document), highlight=False, markup=False, emoji=False, soft_wrap=True)
    for each in document["out"]:
        console.print(f"Written: {each}", highlight=False, markup=False, soft_wrap=True)
