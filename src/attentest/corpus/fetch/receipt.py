"""What was downloaded into a folder, and when: `downloaded.toml`, by which a later change is noticed."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import final

from attentest.refusal import Refusal

RECORD = "downloaded.toml"


@final
@dataclass(frozen=True, kw_only=True)
class Receipt:
    """One file as it came."""

    url: str
    sha256: str
    bytes: int
    date: str


def receipts(folder: Path) -> dict[str, Receipt]:
    """What came into a folder, by the names of files."""
    path = folder / RECORD
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return {name: Receipt(**entry) for name, entry in entries.items()}
    except (OSError, ValueError, TypeError) as error:
        raise Refusal(
            f"record {path}",
            got=f"something unreadable ({error})",
            needs="what attentest wrote there",
            way_out="Remove that file.",
        ) from error


def keep_receipt(target: Path, *, url: str, sha256: str, size: int) -> None:
    """Note what a file was when it came, beside it."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    seen = {**receipts(target.parent), target.name: Receipt(url=url, sha256=sha256, bytes=size, date=now)}
    # Quoted as JSON quotes: the names and addresses of publishers are ASCII, where TOML quotes alike.
    tables = (
        f"[{json.dumps(name)}]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in asdict(receipt).items())
        for name, receipt in seen.items()
    )
    new = target.parent / f"{RECORD}.new"
    new.write_text("\n".join(tables), encoding="utf-8")
    os.replace(new, target.parent / RECORD)
