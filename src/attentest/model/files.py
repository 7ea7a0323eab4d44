"""A model as a folder: `config.json`, `model.safetensors`, `vocabulary.json`. Never pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from attentest.corpus.vocabulary import Vocabulary
from attentest.model.config import ModelConfig
from attentest.model.seam import AttentionModel
from attentest.refusal import Refusal

FORMAT = "attentest-model-1"


def to_files(model: AttentionModel) -> dict[str, bytes]:
    """The files that hold a model; the same parameters give the same bytes."""
    about = {
        "format": FORMAT,
        "config": model.config.spelled(),
        "labels": list(model.labels),
        "has_query": model.query_encoder is not None,
    }
    tensors = {name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}
    files = {
        "vocabulary.json": model.vocabulary.to_json().encode(),
        "model.safetensors": save_tensors(tensors),
    }
    if model.guide is not None:
        guide = {name: np.asarray(weights, dtype=np.float32) for name, weights in model.guide.items()}
        files["guide.safetensors"] = save_arrays(guide)
    # Last, because a folder without it is not a model.
    return {**files, "config.json": json.dumps(about, indent=1, sort_keys=True).encode()}


def from_files(read: Callable[[str], bytes], where: str) -> AttentionModel:
    """The inverse of `to_files`; whatever is not such a model is refused."""
    try:
        about: dict[str, Any] = json.loads(read("config.json"))
        if about.get("format") != FORMAT:
            raise ValueError(f"config.json says format {about.get('format')!r}, not {FORMAT!r}")
        vocabulary = Vocabulary.from_json(read("vocabulary.json").decode())
        config = ModelConfig.of(about["config"])
        guide = load_arrays(read("guide.safetensors")) if config.projection == "stored" else None
        model = AttentionModel(
            config, vocabulary, tuple(about["labels"]), has_query=about["has_query"], guide=guide
        )
        model.load_state_dict(load_tensors(read("model.safetensors")))
    except (OSError, ValueError, KeyError, AttributeError, RuntimeError, SafetensorError) as error:
        sentence = str(error).splitlines()[0]
        raise Refusal(
            f"model {where}",
            got=f"something that cannot be loaded ({sentence})",
            needs="a folder with the config.json, vocabulary.json and model.safetensors that attentest wrote",
            way_out="Save the model again, or train it again.",
        ) from error
    return model


def save(model: AttentionModel, folder: str | os.PathLike[str]) -> None:
    """Write the model's folder; each file appears whole or not at all."""
    target = Path(folder)
    if target.exists() and not (target.is_dir() and not set(os.listdir(target)) - set(_NAMES)):
        raise Refusal(
            f"model folder {target}",
            got="something else that is already there",
            needs="a new folder, or one that holds a model",
            way_out="Choose another folder.",
        )
    target.mkdir(parents=True, exist_ok=True)
    for name, content in to_files(model).items():
        partial = target / f".{name}.partial"
        partial.write_bytes(content)
        partial.replace(target / name)


_NAMES = ("config.json", "vocabulary.json", "model.safetensors", "guide.safetensors")


def load(folder: str | os.PathLike[str]) -> AttentionModel:
    """Read a model's folder."""
    return from_files(lambda name: (Path(folder) / name).read_bytes(), str(folder))
