"""Tables of the user's that go by a name: one small TOML file each, in the user's own data directory.

$ATTENTEST_DATA may be shared, so nothing is written there; what older versions registered there is read.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, final

from attentest.corpus import sources
from attentest.corpus.example import Corpus
from attentest.corpus.origin import own_dir
from attentest.corpus.tables.table import read_table
from attentest.corpus.tables.words_for_nothing import REFUSE
from attentest.refusal import Refusal

SLUG = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
LONGEST_NAME = 64
FOLDER = "registered"


@final
@dataclass(frozen=True, kw_only=True)
class Registration:
    """Which file a name stands for, and which of its columns hold what."""

    file: str
    text: str
    label: str
    query: str | None = None
    rationale: str | None = None
    missing: str | None = None

    def read(self, name: str, **settings: Any) -> Corpus:
        """The corpus, read anew: a file that was moved or spoilt since is refused."""
        return read_table(
            self.file,
            text=self.text,
            label=self.label,
            query=self.query,
            rationale=self.rationale,
            missing=self.missing or REFUSE,
            name=name,
            **settings,
        )

    def to_toml(self) -> str:
        """One line for each field that is set."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        return "".join(f"{key} = {_quoted(value)}\n" for key, value in values.items())


def _quoted(text: str) -> str:
    # A TOML basic string escapes as JSON does, except that TOML forbids a bare DEL and surrogate pairs.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parsed(path: Path) -> Registration:
    known = {field.name for field in fields(Registration)}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        wrong = [key for key, value in values.items() if key not in known or not isinstance(value, str)]
        wrong += [key for key in ("file", "text", "label") if key not in values]
        problem = f"a wrong or missing {wrong[0][:40]!r}" if wrong else None
    # Both TOMLDecodeError and UnicodeDecodeError are ValueErrors.
    except (ValueError, OSError, RecursionError) as error:
        problem = f"something unreadable ({error})"
    if problem:
        raise Refusal(
            f"registration {path}",
            got=problem,
            needs=f"the strings {', '.join(sorted(known))}, query and rationale if there are any",
            way_out="Remove that file and add the corpus again.",
        )
    return Registration(**values)


def _parsed_or_refused(path: Path) -> Registration | Refusal:
    try:
        return _parsed(path)
    except Refusal as refusal:
        return refusal


def registrations(data_dir: Path | str | None = None) -> dict[str, Registration | Refusal]:
    """Every registered corpus by name; for a file that someone spoilt, the refusal of it."""
    return {name: _parsed_or_refused(path) for name, path in _files(data_dir).items()}


def _files(data_dir: Path | str | None) -> dict[str, Path]:
    """The files of registrations by name: in the data directory, and before them the user's own."""
    folders = dict.fromkeys([sources.data_dir(data_dir), own_dir()])
    found = (path for folder in folders for path in sorted((folder / FOLDER).glob("*.toml")))
    return {path.stem: path for path in found}


def _target(name: str, data_dir: Path | str | None) -> Path:
    """Where a name is registered: with a data directory given there, else in the user's own."""
    return (own_dir() if data_dir is None else sources.data_dir(data_dir)) / FOLDER / f"{name}.toml"


def _check_name(name: str) -> None:
    wrong = None
    if name in sources.CORPORA:
        wrong = "a name of the catalogue", "a name that is not taken"
    elif not SLUG.fullmatch(name) or len(name) > LONGEST_NAME:
        wrong = "a name that cannot be a file's everywhere", "lower-case letters, digits and single hyphens"
    if wrong:
        raise Refusal(f"corpus name {name!r}", got=wrong[0], needs=wrong[1], way_out="Choose another name.")


def _check_free(path: Path, registration: Registration) -> None:
    if path.exists() and _parsed(path) != registration:
        raise Refusal(
            f"corpus name {path.stem!r}",
            got=f"another table than the one it stands for ({_parsed(path).file})",
            needs="a name that is not taken",
            way_out=f"Choose another name, or remove {path}.",
        )


def _write(path: Path, content: str) -> None:
    """Write through a temporary file, so that no reader ever sees half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(content)
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise Refusal(
            f"data directory {path.parent}",
            got=f"a folder that cannot be written ({error.strerror})",
            needs="a place to keep the registration",
            way_out="Set ATTENTEST_DATA or the data directory to a folder of yours.",
        ) from error


def register(
    name: str,
    file: Path | str,
    *,
    text: str,
    label: str,
    query: str | None = None,
    rationale: str | None = None,
    missing: str | None = None,
    data_dir: Path | str | None = None,
) -> Corpus:
    """Let a name stand for a table, which is read first: what cannot be loaded is not registered.

    The corpus comes back, for the caller to say what was found. To register the same again is no mistake.
    """
    _check_name(name)
    whole = str(Path(file).expanduser().absolute())
    columns: dict[str, Any] = {"text": text, "label": label, "query": query, "rationale": rationale}
    registration = Registration(file=whole, missing=missing, **columns)
    path = _target(name, data_dir)
    _check_free(_files(data_dir).get(name, path), registration)
    try:
        registration.to_toml().encode("utf-8")
    except UnicodeEncodeError as error:
        raise Refusal(
            f"table {whole!a}",
            got="a path or column that is not UTF-8",
            needs="names that a text file can hold",
            way_out="Rename the file or the column.",
        ) from error
    corpus = registration.read(name)
    _write(path, registration.to_toml())
    return corpus


def remove(name: str, data_dir: Path | str | None = None) -> Path:
    """Let the name stand for nothing again; the table itself stays. Gives the file that is gone."""
    path = _files(data_dir).get(name)
    if path is None:
        known = ", ".join(_files(data_dir)) or "none"
        raise Refusal(
            f"corpus name {name!r}",
            got="a name that no table is registered under",
            needs=f"one of your own corpora ({known})",
            way_out="`attentest corpora list` shows what there is.",
        )
    if path != _target(name, data_dir):
        raise Refusal(
            f"corpus name {name!r}",
            got=f"a registration in a data directory that may be shared ({path})",
            needs="one in your own folder",
            way_out=f"If it is yours, give its folder: --data-dir {path.parent.parent}.",
        )
    path.unlink()
    return path
