"""`at.inspect`: one text in one model, whoever made it. Where loading, reading and showing meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attentest.auditing.held import check_held, held_model, name_of
from attentest.auditing.options import REFUSE, check_numbered, check_options, check_task
from attentest.auditing.room import with_room
from attentest.auditing.subject import audited_subject, on_the_bench
from attentest.corpus.document import Document
from attentest.corpus.example import UNLABELLED, Example
from attentest.corpus.preparation import Preparation, as_given
from attentest.evidence.importances.catalogue import Effort
from attentest.evidence.importances.names import IMPORTANCES
from attentest.foreign.prompt import CLASSIFY, split_at
from attentest.foreign.resting import asked_about, resting_of
from attentest.inspection.measure import ReadText, Settings, measured
from attentest.inspection.view import TextView
from attentest.model.seam import Model
from attentest.refusal import Refusal


def inspect(
    model: Any,
    text: Any,
    *,
    query: str | None = None,
    tokenizer: Any = None,
    labels: Sequence[str] | Mapping[int, str] | None = None,
    attention: Mapping[str, Any] | None = None,
    importances: Sequence[str] = tuple(IMPORTANCES),
    epsilon: float | None = None,
    permutations: int = 100,
    nulls: int = 20,
    steps: int = 300,
    effort: Effort | None = None,
    name: str | None = None,
    lower: bool = False,
    too_long: str = REFUSE,
    seed: int = 0,
    task: str = CLASSIFY,
    prompt: str | None = None,
    mark: str | None = None,
    device: str = "auto",
    dtype: str | None = None,
    network: bool = False,
    remote_code: bool = False,
) -> TextView:
    """What one model makes of one text: attention, importances, adversary, permutations, smallest flip.

    `model` is whatever `attentest.audit` takes, with the same `tokenizer`, `labels`, `attention`, `task`,
    `prompt`, `mark`, `device` and `dtype`. `query` is the second text of a pair. `importances` names those
    that are computed; positive scores speak for the predicted class. `epsilon` is how much an adversary may
    change the output (0.01, with a second text 0.05). `permutations` of attention are asked about, under
    `nulls` of them the gradient and leave-one-out are computed again, and a search for an adversary takes
    `steps`. A text that is too long is refused, unless `too_long` is "truncate".
    """
    check_options(too_long=too_long, seed=seed, task=task, device=device, dtype=dtype)
    check_task(task, prompt, labels, mark)
    settings = Settings(
        importances=tuple(importances),
        epsilon=epsilon,
        permutations=permutations,
        nulls=nulls,
        steps=steps,
        effort=effort or Effort(),
        seed=seed,
    )
    example = example_of(text, query, lower=lower)
    example = example if mark is None else split_at(example, mark)
    check_numbered(attention or {})
    check_held(model, network=network, remote_code=remote_code, task=task)
    held = held_model(
        model,
        tokenizer=tokenizer,
        labels=labels,
        attention=attention,
        network=network,
        remote_code=remote_code,
        task=task,
        prompt=prompt,
        device=device,
        dtype=dtype,
    )
    return inspected(held, example, settings, name=name or name_of(model), too_long=too_long)


def inspected(
    model: Model, example: Example, settings: Settings, *, name: str, too_long: str = REFUSE
) -> TextView:
    """The view of one example in a model that is loaded."""
    bench = on_the_bench(model)
    examples, cut = with_room(bench, [example], "truncate" if too_long != REFUSE else REFUSE)
    split = audited_subject(bench, examples).texts
    read, resting = ReadText.of(bench, split), resting_of(bench.with_heads, split)
    notes = [cut.sentence, *model.capabilities.notes, asked_about(bench.with_heads, read.reading)]
    notes += [] if resting is None else [resting.sentence]
    view = measured(read, settings, name=name, notes=[note for note in notes if note])
    model.capabilities.again()
    return view


def example_of(text: Any, query: Any, *, lower: bool = False) -> Example:
    """The text as an audit takes it."""
    for what, words in (("text", text), ("query", query)):
        if not isinstance(words, str | None) or (words is None and what == "text"):
            raise Refusal(
                f"{what}={words!r}"[:80],
                got=f"a {type(words).__name__}",
                needs="one string",
                way_out="Many texts are what attentest.audit is for.",
            )
        if words is not None and not words.strip():
            raise Refusal(f"the {what}", got="no words", needs="at least one", way_out="Give one.")
    document = Document(id="text", text=text, query=query, label=UNLABELLED)
    return as_given(document, Preparation(keep_sentences=True, lower=lower))
