"""Where an audit comes from: enough to cite it, to check that it is about this model, and to run it again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from inspect import signature
from typing import Any

from attentest.corpus.example import Example
from attentest.corpus.raw_text import query_text, text_and_spans
from attentest.model.seam import Model

PACKAGES = ("attentest", "torch", "transformers", "numpy")
SHORT = 12  # digits of a digest in a sentence
FIRST = 5  # ids in a sentence
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {sign: f"\\{sign}" for sign in "{}%&_#$"}


def versions() -> dict[str, str]:
    """Of Python and of the packages that an audit's numbers depend on, as far as they are installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def made_now(model: Model, examples: Sequence[Example]) -> dict[str, Any]:
    """When (in UTC), by which versions, on which device and of which texts."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": versions(),
        **placed(model),
        "texts_sha256": digest_of_texts(examples),
    }


def without_path(name: str) -> str:
    """A model as people may see it: of a folder its own name, for where it lies is nobody's business."""
    local = os.path.isabs(name) or name.startswith((".", "~")) or os.path.exists(name)
    return os.path.basename(os.path.abspath(os.path.expanduser(name))) or name if local else name


def digest_of_texts(examples: Sequence[Example]) -> str:
    """The sha256 of what was read, in its order: of each text id, string, second string and label."""
    found = hashlib.sha256()
    for each in examples:
        line = [each.id, text_and_spans(each)[0], query_text(each), each.label]
        found.update(json.dumps(line, ensure_ascii=True).encode() + b"\n")
    return found.hexdigest()


def placed(model: Model) -> dict[str, str]:
    """On which device, and in which numbers, the model answers."""
    kinds = {str(tensor.dtype).removeprefix("torch.") for tensor in model.tensors().values()}
    floats = sorted(kind for kind in kinds if "float" in kind)
    return {"device": str(model.device), "dtype": ", ".join(floats or sorted(kinds))}


def provenance(document: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """What a page says of its source; `made` is that of `made_now`, and the command."""
    facts = _facts(document, made)
    return {**made, "facts": facts, "citation": _citation(document, made), "bibtex": _bibtex(document, made)}


def _facts(document: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, str]:
    data, ids = document["data"], document["ids"]
    columns = ", ".join(f"{role} {column}" for role, column in data.get("columns", {}).items())
    more = f" and {len(ids) - FIRST} more" if len(ids) > FIRST else ""
    facts = {
        "Model": document["model"],
        "Parameters (sha256)": document["parameters"],
        "Attention": document["attention"],
        "Data": data.get("file") or data.get("name") or data.get("form", ""),
        "Columns": columns,
        "Rows of the data (sha256)": data.get("sha256") or "",
        "Texts": f"{document['texts']} of {document['of']}: {', '.join(ids[:FIRST])}{more}",
        "Texts as they were read (sha256)": made["texts_sha256"],
        "Budget and seed": f"{document['budget']}, {document['settings'].get('seed', 0)}",
        "Device": f"{made['device']}, {made['dtype']}",
        "Versions": ", ".join(f"{name} {version}" for name, version in made["versions"].items()),
        "Date": made["date"],
    }
    return {name: fact for name, fact in facts.items() if fact}


def _citation(document: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    named = _named(document)
    return (
        f"Audit of the attention of {document['model']} (parameters {document['parameters'][:SHORT]}) on"
        f" {named}: {document['texts']} of {document['of']} texts (sha256 {made['texts_sha256'][:SHORT]}),"
        f" budget {document['budget']}, seed {document['settings'].get('seed', 0)}. attentest"
        f" {document['version']}, {made['date'][:10]}."
    )


def _named(document: Mapping[str, Any]) -> str:
    data = document["data"]
    form = data.get("form", "list")
    unnamed = "examples in Python" if form == "examples" else f"a {form} of texts"
    return str(data.get("file") or data.get("name") or unnamed)


def _bibtex(document: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """An entry whose key says which parameters and which day."""
    day = made["date"][:10]
    key = f"attentest-audit-{document['parameters'][:8]}-{day}"
    note = (
        f"{document['texts']} of {document['of']} texts of {_named(document)}, budget {document['budget']},"
        f" seed {document['settings'].get('seed', 0)}; parameters sha256 {document['parameters'][:SHORT]},"
        f" texts sha256 {made['texts_sha256'][:SHORT]}; attentest {document['version']}"
    )
    fields = {
        "title": f"Does attention explain the answers of {document['model']}? An audit with attentest",
        "year": day[:4],
        "month": day[5:7],
        "note": note,
    }
    lines = [f"  {name} = {{{_tex(value)}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{key},", *lines, "}"])


def _tex(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return re.sub(r"[\\~^{}%&_#$]", lambda sign: SPECIAL[sign[0]], " ".join(text.split()))


def call(settings: Mapping[str, Any], function: Callable[..., Any]) -> str:
    """The call in Python with the settings that are no defaults; objects by the names of the arguments."""
    defaults = {name: each.default for name, each in signature(function).parameters.items()}
    given = (f"{name}={value!r}" for name, value in settings.items() if value != defaults[name])
    return f"at.audit({', '.join(['model', 'data', *given])})"
