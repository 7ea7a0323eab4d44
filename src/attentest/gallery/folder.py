"""A folder that appears whole or not at all, and that never takes the place of somebody's files."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attentest.refusal import Refusal

NO_NOTES: Mapping[str, Any] = {}
MARKER = ".attentest-report.json"  # lists what we wrote, so that we know what we may replace


def checked(out: Path) -> Path:
    """The folder's real path, if it may be written: absent, empty, or a report of ours and nothing else."""
    try:
        out = out.resolve()
        is_file = out.exists() and not out.is_dir()
        strangers = [] if is_file else sorted(_files(out) - _ours(out))
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise _unwritable(out, error) from error
    if is_file:
        raise _refusal(out, "a file", "a folder, or the name of a new one")
    if strangers:
        got = f"a folder with {strangers[0]}" + (" and more" if len(strangers) > 1 else "")
        raise _refusal(out, f"{got}, which no report has written", "a folder that is new, empty or a report")
    return out


def publish(files: Mapping[str, str], out: Path, notes: Mapping[str, Any] = NO_NOTES) -> None:
    """Write the files into a folder beside `out`, which then takes the place of `out` at once.

    `notes` are what the next report may want to know of this one.
    """
    out = checked(out)
    made, aside = (out.parent / f".{out.name}-{uuid.uuid4().hex}" for _ in range(2))
    marker = json.dumps({**notes, "files": sorted([*files, MARKER])}, indent=1)
    try:
        for name, content in {**files, MARKER: marker}.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8", newline="")
        _exchange(made, out, aside)
    except OSError as error:
        raise _unwritable(out, error) from error
    finally:
        for left in (made, aside):
            shutil.rmtree(left, ignore_errors=True)


def _exchange(made: Path, out: Path, aside: Path) -> None:
    if not out.exists():
        made.rename(out)
        return
    out.rename(aside)
    try:
        made.rename(out)
    except OSError:
        aside.rename(out)
        raise


def _files(folder: Path) -> set[str]:
    """Everything below the folder but folders; an empty folder of somebody's counts as his."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir() or not any(path.iterdir())
    }


def _ours(folder: Path) -> set[str]:
    try:
        return set(marked(folder)["files"])
    except (KeyError, TypeError):  # no marker of ours
        return set()


def marked(folder: Path) -> dict[str, Any]:
    """What the last report has left in the folder about itself; nothing where there is none of ours."""
    try:
        told = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _refusal(out: Path, got: str, needs: str) -> Refusal:
    return Refusal(f"report folder {out}", got=got, needs=needs, way_out="Give another --out.")


def _unwritable(out: Path, error: Exception) -> Refusal:
    return _refusal(out, f"a path that cannot be written ({error})", "a folder that can be written")
