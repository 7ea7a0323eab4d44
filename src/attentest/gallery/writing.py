"""A file that is written whole or not at all, and documents that can be written in several formats."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from attentest.refusal import Refusal

Document = Mapping[str, Any]


def finite(value: Any) -> Any:
    """The same with None where a number is not finite."""
    if isinstance(value, Mapping):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(document: Document) -> str:
    """One JSON document; what is not a number is null."""
    return json.dumps(finite(document), allow_nan=False, indent=1) + "\n"


@final
@dataclass(frozen=True)
class Formats:
    """What a document can be written as, by the ending of the file's name."""

    what: str  # as a refusal calls the file
    example: str
    by_ending: Mapping[str, Callable[[Document], str]]

    def write(self, document: Document, out: Path | str) -> Path:
        """Write it in the format that the name ends in, at once or not at all."""
        path = Path(out)
        self.check(path)
        write(self.by_ending[path.suffix.lower()](document), path, with_folder=True)
        return path

    def check(self, out: Path | str) -> None:
        """Refuse a name that cannot be written, before anything is measured."""
        path = Path(out)
        between = " or " if len(self.by_ending) == 2 else ", "
        if path.suffix.lower() not in self.by_ending or path.is_dir():
            raise Refusal(
                f"{self.what} {path}",
                got="a folder" if path.is_dir() else f"the ending {path.suffix!r}",
                needs=f"a file that ends in {between.join(self.by_ending)}",
                way_out=f"For example {self.example}.",
            )


def write(content: str | bytes, out: Path, *, option: str = "--out", with_folder: bool = False) -> None:
    """Write the file beside its place and move it there, or say why that cannot be.

    `with_folder` makes the folders on the way, as a report does; a table goes where people already are.
    """
    made = out.with_name(f".{out.name}.new") if out.name else out
    try:
        if with_folder:
            out.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        made.replace(out)
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        _forget(made)
        raise Refusal(
            f"file {out}",
            got=f"a path that cannot be written ({error})",
            needs="the name of a file in a folder that can be written and has room",
            way_out=f"Make the folder, or give another {option}.",
        ) from error


def _forget(made: Path) -> None:
    """Nothing half-written stays; where nothing could be written, nothing is there to remove."""
    try:
        made.unlink(missing_ok=True)
    except (OSError, ValueError):
        return
