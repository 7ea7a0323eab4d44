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

from attentest.constructed.model import constructed_model
from attentest.corpus.vocabulary import Vocabulary
from attentest.model.config import ModelConfig
from attentest.model.constructions import is_constructed
from attentest.model.finite import not_finite
from attentest.model.network import AttentionModel
from attentest.model.protocol import check_decoder
from attentest.model.seam import Model
from attentest.refusal import Refusal

FORMAT = "attentest-model-1"


def to_files(model: Model) -> dict[str, bytes]:
    """The files that hold a model; the same parameters give the same bytes."""
    origin, network = model.origin, model.network
    assert origin is not None, "only a model that attentest made is saved by it"
    about = {
        "format": FORMAT,
        "config": origin.config.spelled(),
        "labels": list(model.labels),
        "has_query": network is not None and network.query_encoder is not None,
    }
    # Cloned, since a transformer has its word vectors under two names, and no file may share them.
    tensors = {name: tensor.cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    files = {
        "vocabulary.json": origin.vocabulary.to_json().encode(),
        "model.safetensors": save_tensors(tensors),
    }
    if network is not None and network.guide is not None:
        guide = {name: np.asarray(weights, dtype=np.float32) for name, weights in network.guide.items()}
        files["guide.safetensors"] = save_arrays(guide)
    # Last, because a folder without it is not a model.
    return {**files, "config.json": json.dumps(about, indent=1, sort_keys=True).encode()}


def from_files(read: Callable[[str], bytes], where: str) -> Model:
    """The inverse of `to_files`; whatever is not such a model is refused."""
    try:
        about: dict[str, Any] = json.loads(read("config.json"))
        if about.get("format") != FORMAT:
            raise ValueError(f"config.json says format {about.get('format')!r}, not {FORMAT!r}")
        vocabulary = Vocabulary.from_json(read("vocabulary.json").decode())
        config, labels, has_query = _described(about)
        guide = load_arrays(read("guide.safetensors")) if config.projection == "stored" else None
        if is_constructed(config.encoder):
            model: Model = constructed_model(config, vocabulary, labels)
        else:
            model = AttentionModel(config, vocabulary, labels, has_query=has_query, guide=guide)
        tensors = load_tensors(read("model.safetensors"))
        model.load_state_dict(tensors)
        if broken := not_finite(tensors.items()):
            raise ValueError(f"the parameter {broken} has numbers that are NaN or infinite")
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RuntimeError, SafetensorError) as error:
        sentence = " ".join(str(error).split())  # torch lists what does not fit over many lines
        raise Refusal(
            f"model {where}",
            got=f"something that cannot be loaded ({sentence[:300]})",
            needs="a folder with the config.json, vocabulary.json and model.safetensors that attentest wrote",
            way_out="Save the model again, or train it again.",
        ) from error
    return model


def _described(about: dict[str, Any]) -> tuple[ModelConfig, tuple[str, ...], bool]:
    """What `config.json` says, checked: it may have been changed by hand."""
    config, labels, has_query = ModelConfig.of(about["config"]), about["labels"], about["has_query"]
    if config.decoder is None or config.hidden is None or config.embedding is None:
        raise ValueError("config.json leaves out the decoder or a width")
    named = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    if not (named and len(set(labels)) == len(labels) and isinstance(has_query, bool)):
        raise ValueError("config.json has no list of different labels, or no true or false for has_query")
    check_decoder(config.decoder, classes=len(labels), has_query=has_query)
    return config, tuple(labels), has_query


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a place where a model cannot be saved without spoiling something else."""
    target = Path(folder)
    ours = {name for whole in _NAMES for name in (whole, _partial(whole))}
    try:
        taken = target.exists() and not (target.is_dir() and set(os.listdir(target)) <= ours)
    except OSError as error:
        raise _no_place(target, error) from error
    if taken:
        raise Refusal(
            f"model folder {target}",
            got="something else that is already there",
            needs="a new folder, or one that holds a model",
            way_out="Choose another folder.",
        )


def _no_place(target: Path, error: OSError) -> Refusal:
    return Refusal(
        f"model folder {target}",
        got=f"a place that does not take it ({error.strerror})",
        needs="a folder that can be written and has room",
        way_out="Free some space or choose another folder.",
    )


def save(model: Model, folder: str | os.PathLike[str]) -> None:
    """Write the model's folder; it is a model only when every file of it is there."""
    check_folder(folder)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        (target / "config.json").unlink(missing_ok=True)  # what is written over is no model meanwhile
        for name, content in to_files(model).items():
            _write(target / name, target / _partial(name), content)
    except OSError as error:
        raise _no_place(target, error) from error


def _write(path: Path, partial: Path, content: bytes) -> None:
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _partial(name: str) -> str:
    return f".{name}.partial"


_NAMES = ("config.json", "vocabulary.json", "model.safetensors", "guide.safetensors")


def load(folder: str | os.PathLike[str]) -> Model:
    """Read a model's folder."""
    return from_files(lambda name: (Path(folder) / name).read_bytes(), str(folder))
