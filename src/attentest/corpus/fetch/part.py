"""The part of a file that a download has brought so far, and which version of the file it is a part of."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final


@final
@dataclass(frozen=True)
class Notes:
    """Which version of which file a part belongs to, as the server called it."""

    url: str
    validator: str | None = None
    total: int | None = None

    def differs(self, other: Notes) -> bool:
        """Whether two notes cannot be of the same version; what is not known differs from nothing."""
        pairs = ((self.validator, other.validator), (self.total, other.total))
        return any(None not in pair and pair[0] != pair[1] for pair in pairs)


@final
@dataclass(frozen=True)
class Part:
    """What has come of a file so far, `NAME.part`, and beside it `NAME.part.json`, which says of what."""

    target: Path

    @property
    def path(self) -> Path:
        """The bytes."""
        return self.target.with_name(f"{self.target.name}.part")

    @property
    def note(self) -> Path:
        """The sidecar."""
        return self.target.with_name(f"{self.target.name}.part.json")

    def notes(self) -> Notes | None:
        """What the sidecar says, or None where it says nothing of use."""
        try:
            notes = Notes(**json.loads(self.note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        known = isinstance(notes.validator, str | None) and isinstance(notes.total, int | None)
        return notes if known and isinstance(notes.url, str) else None

    def size(self) -> int:
        """How many bytes there are."""
        return self.path.stat().st_size if self.path.exists() else 0

    def begin(self, notes: Notes) -> None:
        """Empty the part, then say what will be in it: in this order a kill never mixes two versions."""
        self.path.write_bytes(b"")
        self.describe(notes)

    def describe(self, notes: Notes) -> None:
        """Write the sidecar, whole or not at all."""
        new = self.note.with_suffix(".new")
        new.write_text(json.dumps(asdict(notes)), encoding="utf-8")
        os.replace(new, self.note)

    def discard(self) -> None:
        """Forget what has come."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)
