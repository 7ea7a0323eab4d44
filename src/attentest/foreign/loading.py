"""Where a Hugging Face model comes from: objects, a folder, or the hub when the user asks for the network.

Everything that would make the numbers mean something else is refused before a text is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from attentest.foreign.causal import NextToken
from attentest.foreign.editing import library
from attentest.foreign.placement import AUTO, TYPES, device_named, rounding_note, type_named
from attentest.foreign.prompt import CLASSIFY, NEXT_LABELS, Prompt, check_labels, prompt_of
from attentest.foreign.prompted import PromptedInput
from attentest.foreign.saved_folder import KIND, check_saved, check_task, unreadable
from attentest.foreign.transformer import TransformerModel
from attentest.model.finite import not_finite
from attentest.refusal import Refusal


def load_transformer(
    where: str | os.PathLike[str],
    *,
    labels: Sequence[str] | None = None,
    network: bool = False,
    remote_code: bool = False,
    task: str = CLASSIFY,
    prompt: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    **choice: Any,
) -> TransformerModel:
    """The model in a folder, or with `network` under a name of the hub; `choice` is of its attention.

    A classifier, or with a `task` a causal language model; in single precision unless a `dtype` is named
    ("auto": as it was saved). Nothing is fetched and no code that came with the
    model is run unless the caller says so.
    """
    transformers = library()
    check_saved(where, network=network, remote_code=remote_code, task=task)
    settings = {"local_files_only": Path(where).is_dir(), "trust_remote_code": remote_code}
    where_to, numbers = device_named(device), AUTO if dtype == AUTO else type_named(dtype)
    kind = transformers.AutoModelForSequenceClassification
    if task != CLASSIFY:
        kind = transformers.AutoModelForCausalLM
    try:
        config = transformers.AutoConfig.from_pretrained(where, **settings)
        _check_kind(config.architectures, config, str(where), task)
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **settings)
        model, about = kind.from_pretrained(
            where, **settings, use_safetensors=True, dtype=numbers or torch.float32, output_loading_info=True
        )
    except (Refusal, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # of the files, or of any of the libraries that read them
        raise unreadable(where, error) from error
    lacking = sorted(about["missing_keys"])
    if lacking:
        raise Refusal(
            f"model {where}",
            got=f"no weights for {', '.join(lacking[:3])} ({len(lacking)} in all)",
            needs="weights for every part: what is missing would be random",
            way_out="Fine-tune the model with its head and save it again.",
        )
    if where_to is not None:
        model = model.to(where_to)
    return adopt(model, tokenizer, labels=labels, task=task, prompt=prompt, **choice)


def adopt(
    model: Any,
    tokenizer: Any,
    *,
    labels: Sequence[str] | None = None,
    task: str = CLASSIFY,
    prompt: str | None = None,
    **choice: Any,
) -> TransformerModel:
    """A model and its tokenizer, in hand. The model is put into evaluation mode."""
    library()
    around = prompt_of(task, prompt)
    config = getattr(model, "config", None)
    if config is None or not hasattr(model, "get_input_embeddings"):
        raise Refusal(
            f"a model of the class {type(model).__name__}",
            got="something that is no Hugging Face model",
            needs=f"one whose class ends in {KIND}",
            way_out="Any other module goes through an adapter: attentest.foreign.adapter.",
        )
    _check_kind([type(model).__name__], config, type(model).__name__, task)
    _check_precision(model)
    _check_finite(model)
    _check_offsets(model, tokenizer, choice.get("words", True))
    _check_tokenizer(model, tokenizer, padded=task == CLASSIFY)
    if around is None:
        notes = rounding_note(model.dtype)
        return TransformerModel(model, tokenizer, _labels(config, labels), notes=notes, **choice)
    return causal_model(model, tokenizer, around, labels, choice)


def causal_model(
    model: Any, tokenizer: Any, prompt: Prompt, labels: Sequence[str] | None, choice: Mapping[str, Any]
) -> TransformerModel:
    """A causal language model asked what comes next, behind a prompt."""
    written, rounded = PromptedInput(tokenizer, prompt), rounding_note(model.dtype)
    if prompt.asks_token:
        if labels is not None:
            raise Refusal(
                "labels of the task 'next-token'",
                got=f"{len(labels)} of them",
                needs="none: one token is asked about, against all others",
                way_out="Leave them out, or ask with task='prompt'.",
            )
        notes = [prompt.sentence(NEXT_LABELS), *rounded]
        return TransformerModel(
            NextToken(model), tokenizer, NEXT_LABELS, written=written, notes=notes, **choice
        )
    check_labels(labels or ())
    tokens, longer = written.label_tokens(labels or ())
    first = "Of labels of several tokens the first is scored, which tells each from all others"
    notes = [prompt.sentence(labels or ()), *([f"{first}: {', '.join(longer)}."] if longer else []), *rounded]
    return TransformerModel(
        NextToken(model, tokens),
        tokenizer,
        tuple(label.strip() for label in labels or ()),
        written=written,
        notes=notes,
        **choice,
    )


def _check_kind(names: Sequence[str] | None, config: Any, where: str, task: str) -> None:
    """A classifier of texts into two or more classes that exclude each other, or what its task needs."""
    name, wrong = (names or ["no class"])[0], None
    check_task(where, name, task)
    if task != CLASSIFY:
        return
    if not name.endswith(KIND):
        wrong = f"{name}", f"a classifier of whole texts, whose class ends in {KIND}"
    elif config.num_labels < 2 or config.problem_type == "regression":
        wrong = "a regression model, with one number as its answer", "two classes or more"
    elif config.problem_type == "multi_label_classification":
        wrong = "a model that gives several labels to one text", "classes that exclude each other"
    if wrong:
        way_out = "Attention is tested by how it changes a distribution over classes."
        raise Refusal(f"model {where}", got=wrong[0], needs=wrong[1], way_out=way_out)


def _check_precision(model: Any) -> None:
    """Floating point numbers: those of single, double or half precision."""
    if model.dtype not in TYPES.values():
        raise Refusal(
            f"a {model.config.model_type} model in {str(model.dtype).removeprefix('torch.')}",
            got="numbers that are quantised, or of a type that is not known",
            needs=f"one of {', '.join(TYPES)}",
            way_out="Load it without quantisation: dtype='bfloat16' takes half of single's memory.",
        )


def _check_finite(model: Any) -> None:
    """A parameter that is no number would be in every answer, or hidden in those of a single word.

    Buffers may be infinite, as a mask is that is added to scores.
    """
    broken = not_finite(model.named_parameters()) or not_finite(model.named_buffers(), infinite=True)
    if broken:
        raise Refusal(
            f"a {model.config.model_type} model",
            got=f"numbers that are NaN or infinite in {broken}",
            needs="parameters that are finite numbers",
            way_out="Load an earlier checkpoint, or train it again: half precision or a high learning rate"
            " may have overflowed.",
        )


def _check_offsets(model: Any, tokenizer: Any, words: bool) -> None:
    """Words are found in the raw text by the tokenizer's offsets; units that are sub-words need none."""
    if words and not getattr(tokenizer, "is_fast", False):
        raise Refusal(
            f"the tokenizer of a {model.config.model_type} model ({type(tokenizer).__name__})",
            got="one without offsets, which cannot say to which word a token belongs",
            needs="a fast tokenizer",
            way_out="Give the fast tokenizer of this family, or let units be sub-words: --sub-words, or"
            " attention={'words': False} in Python.",
        )


def _check_tokenizer(model: Any, tokenizer: Any, *, padded: bool) -> None:
    """As many vectors as the tokenizer has numbers, and one idea of padding where a model looks for it."""
    rows, wrong = model.get_input_embeddings().num_embeddings, None
    numbers = set(tokenizer.get_vocab().values())
    most = max(numbers, default=-1)
    expected = getattr(model.config, "pad_token_id", None)
    if numbers <= set(tokenizer.all_special_ids):  # what the library makes of a folder that has none
        wrong = "one without words", "the tokenizer's files beside the model's"
    elif most >= rows:
        wrong = f"numbers up to {most}", f"none above {rows - 1}: the model has {rows} vectors"
    elif not padded:
        return
    elif tokenizer.pad_token_id is None:
        wrong = "no padding token", "one, so that texts can be read together (tokenizer.pad_token = ...)"
    elif expected != tokenizer.pad_token_id:
        wrong = (
            f"padding with {tokenizer.pad_token_id}",
            f"the model's own padding token, which is {expected}",
        )
    if wrong:
        raise Refusal(
            f"the tokenizer of a {model.config.model_type} model",
            got=wrong[0],
            needs=wrong[1],
            way_out="Give the tokenizer that the model was trained with; both must name one padding token.",
        )


def _labels(config: Any, labels: Sequence[str] | None) -> tuple[str, ...]:
    named = config.id2label
    if not isinstance(named, Mapping) or not named.keys() >= set(range(config.num_labels)):
        raise Refusal(
            "labels of the model",
            got=f"id2label = {str(named)[:100]}",
            needs=f"a name for each class from 0 to {config.num_labels - 1}",
            way_out="Set config.id2label before the model is saved.",
        )
    own = tuple(str(named[number]) for number in range(config.num_labels))
    if labels is None:
        return own
    if len(labels) != len(own) or len(set(labels)) != len(labels):
        raise Refusal(
            "labels of the model",
            got=f"{len(labels)} names ({', '.join(labels)})",
            needs=f"{len(own)} different ones, in the order of its classes ({', '.join(own)})",
            way_out="Leave them out to use the model's own.",
        )
    return tuple(labels)
