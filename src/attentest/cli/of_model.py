"""The options that say which attention of whose model: of an audit, of one text, of the live page."""

from __future__ import annotations

from typing import Annotated, Any

import typer

LabelsOption = Annotated[
    str | None, typer.Option("--labels", help="The model's classes in their order, as in no,yes.")
]
AttentionOption = Annotated[
    str | None,
    typer.Option(
        "--attention", help="A transformer's row (the default), rollout, flow, value-norm or gradient."
    ),
]
LayerOption = Annotated[
    str | None, typer.Option("--layer", help="The transformer's layer, or best; -1, the last, by default.")
]
HeadOption = Annotated[
    str | None, typer.Option("--head", help="One head, or best, instead of the mean over heads.")
]
SubWordsOption = Annotated[bool, typer.Option("--sub-words", help="Show sub-word tokens, not whole words.")]
SpecialTokensOption = Annotated[
    bool, typer.Option("--special-tokens", help="Include [CLS], [SEP] and the like, too.")
]
LowerOption = Annotated[bool, typer.Option("--lower", help="Lower-case the texts first.")]
TaskOption = Annotated[
    str,
    typer.Option("--task", help="Of a causal language model: prompt (--prompt, --labels) or next-token."),
]
PromptOption = Annotated[
    str | None,
    typer.Option("--prompt", help="A template with {text} in it: 'Review: {text}\\nSentiment:'."),
]
MarkOption = Annotated[
    str | None,
    typer.Option("--mark", help="What marks the place in each text whose next token is asked about."),
]
PlaceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
TypeOption = Annotated[
    str | None,
    typer.Option("--dtype", help="float32 (the default), float64, bfloat16, float16, or auto: as saved."),
]
NetworkOption = Annotated[bool, typer.Option("--network", help="Fetch the model from the hub.")]
RemoteCodeOption = Annotated[
    bool, typer.Option("--remote-code", help="Let code run that comes with the model.")
]


def choice_of(
    attention: str | None, layer: str | None, head: str | None, *, sub_words: bool, special_tokens: bool
) -> dict[str, Any]:
    """What was said of the attention, as Python takes it; what was not said is left out."""
    named: dict[str, Any] = {"kind": attention, "layer": _place("layer", layer), "head": _place("head", head)}
    chosen = {name: value for name, value in named.items() if value is not None}
    chosen |= {"words": False} if sub_words else {}
    return chosen | ({"special_tokens": True} if special_tokens else {})


def task_of(task: str, prompt: str | None, mark: str | None) -> dict[str, Any]:
    """A task, its prompt, and where its next token is asked about."""
    return {"task": task, "prompt": prompt_of_shell(prompt), "mark": mark}


def prompt_of_shell(prompt: str | None) -> str | None:
    """A prompt as a shell hands it over, in which a line break is a backslash and an n."""
    return None if prompt is None else prompt.replace("\\n", "\n").replace("\\t", "\t")


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
