"""A cell without its data: what it was made from, the digests of its files, and where it was computed.

A store may hold the `cell.json` of a cell whose files stayed elsewhere. Such a cell is not whole, so a study
that needs it computes it; pages show its settings all the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from attentest.refusal import Refusal
from attentest.store.about import KEY
from attentest.store.cell import Cell, canonical
from attentest.store.store import Store

FILE = re.compile(r"[A-Za-z0-9_-]{1,60}\.[a-z0-9]{1,20}")
CORPUS = "corpus.json"  # labels and counts, no text: the one data file that a description brings along
CORPUS_FIELDS = {"name", "labels", "family", "preparation", "excluded", "counts", "has_query"}
SPLITS = {"train", "dev", "test"}
# What a `cell.json` may tell besides: no times, no hosts, no paths.
NOTES = ("device", "torch", "parameters", "seconds", "epochs", "sizes")
ORIGIN = ("device", "torch", "parameters_sha256")  # columns of the file
FIELDS = {"stage", "version", "config", "inputs", "files", "notes", "content"}
NEEDED = {"corpus": {"name"}, "observation": {"experiment", "mode", "parameters"}, "model": set[str]()}


@final
class Malformed(ValueError):
    """What is wrong with a description, in words that complete a refusal."""


@final
@dataclass(frozen=True)
class Description:
    """One cell as others may know it."""

    cell: Cell
    files: Mapping[str, Mapping[str, Any]]  # name -> sha256, bytes
    notes: Mapping[str, Any]
    content: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> str:
        """One spelling; paths of this machine stay out."""
        plan = {name: value for name, value in self.cell.as_json().items() if name != "where"}
        more = {"files": self.files, "notes": self.notes, "content": self.content}
        return canonical(plan | {name: dict(value) for name, value in more.items()})

    def write(self, store: Store) -> None:
        """Make the store know the cell; what it holds of it already is left alone."""
        if store.has(self.cell.key):
            return
        here = {name: text.encode() for name, text in self.content.items()}
        elsewhere = {name: digest for name, digest in self.files.items() if name not in here}
        store.write(self.cell, here, self.notes, elsewhere=elsewhere)


def describe(store: Store, key: str, more: Mapping[str, Any]) -> Description:
    """The cell of that key; `more` are notes that its absent files would have told."""
    about = store.about(key)
    notes = {name: about[name] for name in NOTES if about.get(name) is not None} | dict(more)
    content = {}
    if about["stage"] == "corpus" and store.holds(key, CORPUS):
        told = store.read(key, CORPUS).decode()
        if json.loads(told).keys() == CORPUS_FIELDS:
            content[CORPUS] = told
    plan = {name: about[name] for name in ("stage", "version", "config", "inputs")}
    return Description(Cell.from_json(plan), about["files"], notes, content)


def described(text: str) -> Description:
    """A description that anybody may have written; raises `Malformed` or `ValueError`."""
    told = parsed(text)
    if told.keys() != FIELDS or told["stage"] not in NEEDED:
        raise Malformed("a described cell with other fields")
    if not isinstance(told["version"], int) or isinstance(told["version"], bool):
        raise Malformed("a described cell without a version")
    for name in FIELDS - {"stage", "version"}:
        if not isinstance(told[name], dict):
            raise Malformed(f"a described cell whose {name} are no table")
    if not NEEDED[told["stage"]] <= told["config"].keys():
        raise Malformed("a described cell without its settings")
    _check_inputs(told["inputs"])
    _check_files(told["files"], told["content"])
    _check_notes(told["notes"])
    cell = Cell.from_json({**told, "where": {}})
    return Description(
        cell, told["files"], told["notes"], _checked(told["content"], told["stage"], told["files"])
    )


def _check_inputs(inputs: Mapping[str, Any]) -> None:
    if not all(isinstance(key, str) and KEY.fullmatch(key) for key in inputs.values()):
        raise Malformed("a described cell whose inputs are no keys")


def _check_files(files: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    for name, digest in files.items():
        if not FILE.fullmatch(name) or name == "cell.json" or not isinstance(digest, dict):
            raise Malformed("a described cell with an impossible file name")
        if digest.keys() != {"sha256", "bytes"} or not KEY.fullmatch(str(digest["sha256"])):
            raise Malformed("a described cell without the digests of its files")
    if not files.keys() - content.keys():
        raise Malformed("a described cell that lacks nothing, and would pass for the cell itself")


def _check_notes(notes: Mapping[str, Any]) -> None:
    kinds: dict[str, Any] = {"device": str, "torch": str, "parameters": (str, dict), "seconds": (int, float)}
    kinds |= {"epochs": int, "sizes": dict}
    if not all(name in kinds and isinstance(value, kinds[name]) for name, value in notes.items()):
        raise Malformed("a described cell with notes of another kind")
    for name in ("parameters", "sizes"):
        inner = notes.get(name)
        if isinstance(inner, dict) and any(isinstance(value, dict | list) for value in inner.values()):
            raise Malformed("a described cell with notes of another kind")


def _checked(content: Mapping[str, Any], stage: str, files: Mapping[str, Any]) -> dict[str, str]:
    """The files that come along: of a corpus its `corpus.json`, as its digest says, and no other."""
    if not content:
        return {}
    if (
        stage != "corpus"
        or [*content] != [CORPUS]
        or CORPUS not in files
        or not isinstance(content[CORPUS], str)
    ):
        raise Malformed("a described cell with data in it")
    told = content[CORPUS]
    if hashlib.sha256(told.encode()).hexdigest() != files[CORPUS]["sha256"]:
        raise Malformed(f"a {CORPUS} that is not what was stored")
    about = parsed(told)
    if about.keys() != CORPUS_FIELDS or not _is_corpus(about):
        raise Malformed(f"a {CORPUS} with other fields")
    return {CORPUS: told}


def _is_corpus(about: Mapping[str, Any]) -> bool:
    labels, counts = about["labels"], about["counts"]
    return (
        isinstance(labels, list)
        and all(isinstance(label, str) for label in labels)
        and isinstance(counts, dict)
        and counts.keys() == SPLITS
        and all(isinstance(of, dict) for of in counts.values())
        and all(isinstance(n, int) for of in counts.values() for n in of.values())
    )


def parsed(text: str) -> dict[str, Any]:
    """A JSON object; anything else raises `Malformed`."""
    try:
        value = json.loads(text)
        canonical(value).encode()  # no NaN, and nothing that is no Unicode
    except (ValueError, RecursionError) as error:
        raise Malformed("something that is no JSON") from error
    if not isinstance(value, dict):
        raise Malformed("JSON that is no table")
    return value


def origin(model: Description | None, observation: Description | None) -> dict[str, str]:
    """Where a model was trained, by which torch, and the digest of its parameters; "" if unknown."""
    known = next((each.notes for each in (model, observation) if each is not None), {})
    parameters = known.get("parameters", "")
    told = parameters if isinstance(parameters, str) else canonical(parameters)
    return dict(zip(ORIGIN, (known.get("device", ""), known.get("torch", ""), told), strict=True))


def conflict(brought: Description, held: Mapping[str, Any]) -> str:
    """What tells two cells of one key apart, where both say it: digests of parameters, a model's device."""
    names = ("device", "parameters") if brought.cell.stage == "model" else ("parameters",)
    both = [name for name in names if name in brought.notes and held.get(name) is not None]
    return next((name for name in both if brought.notes[name] != held[name]), "")


def refused(key: str, got: str) -> Refusal:
    """The refusal to mix what a store holds with what a file brings."""
    return Refusal(
        f"cell {key}",
        got=got,
        needs="one content for one key",
        way_out="Import into another --store, or remove that cell from this one if it is the wrong one.",
    )
