"""A `cell.json`: what a cell says of itself, read so that no damage to it passes for a description."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from attentest.refusal import Refusal
from attentest.store.cell import STAGES, Cell, short

About = dict[str, Any]
DESCRIPTION = "cell.json"
KEY = re.compile(r"[0-9a-f]{64}")
KINDS = {"stage": str, "version": int, "config": dict, "inputs": dict, "files": dict}
DIGEST = {"sha256": str, "bytes": int}
CHECKSUM = "checksum"  # of all other fields; descriptions that older versions wrote have none


@final
@dataclass(frozen=True)
class Damage:
    """A cell that is not what was written, and which of its files tells."""

    key: str
    file: str
    why: str

    @classmethod
    def of(cls, key: str, name: str, content: bytes, about: About) -> Damage | None:
        """What is wrong with a file of the cell, by the digest that its description has."""
        written = about["files"].get(name, {}).get("sha256")
        is_same = written is not None and hashlib.sha256(content).hexdigest() == written
        return None if is_same else cls(key, name, "its digest is another")

    def as_json(self) -> dict[str, str]:
        """The same for a document."""
        return {"cell": self.key, "file": self.file, "why": self.why}

    def refusal(self) -> Refusal:
        """For whoever needs just this cell."""
        return Refusal(
            f"cell {short(self.key)}",
            got=f"a {self.file} that is not what was written ({self.why})",
            needs="the file as it was stored",
            way_out="`attentest store heal` sets the cell aside and computes it again.",
            cell=self.key,
        )


def parsed(key: str, content: bytes) -> About:
    """The description under this key; a damaged one is refused.

    Its settings must give the key, so no change to them passes; and its checksum covers every other field.
    """
    try:
        about = json.loads(content)
        why = _fault(key, about)
    except (ValueError, RecursionError):  # no JSON, no Unicode, or a NaN among the settings
        about, why = {}, "no JSON"
    if why:
        raise Damage(key, DESCRIPTION, why).refusal()
    return about


def _fault(key: str, about: Any) -> str:
    if not isinstance(about, dict) or not all(_is(about.get(name), kind) for name, kind in KINDS.items()):
        return "without the fields of a cell"
    if about["stage"] not in STAGES or not all(isinstance(each, str) for each in about["inputs"].values()):
        return "with another stage or other inputs than cells have"
    if not all(map(_is_digest, about["files"].values())):
        return "without the digests of its files"
    if Cell.from_json(about).key != key:
        return "its settings do not give its key"
    if CHECKSUM in about and about[CHECKSUM] != checksum(about):
        return "its checksum is that of other fields"
    return ""


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_digest(digest: Any) -> bool:
    return isinstance(digest, dict) and all(_is(digest.get(name), kind) for name, kind in DIGEST.items())


def checksum(about: Mapping[str, Any]) -> str:
    """The sha256 of all fields but the checksum itself."""
    told = {name: value for name, value in about.items() if name != CHECKSUM}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def sealed(about: Mapping[str, Any]) -> bytes:
    """The description as it is stored, with its checksum."""
    told = json.loads(spelled(about))  # as it will be read: a checksum of anything else would be no use
    return spelled(told | {CHECKSUM: checksum(told)})


def spelled(value: Any) -> bytes:
    """JSON as it is stored: readable, sorted, the same bytes for the same value."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode()


def now() -> str:
    """The time, to the second, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
