"""A file that is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from attentest.refusal import Refusal


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
