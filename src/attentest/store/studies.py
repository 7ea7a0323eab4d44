"""The studies that ran in a store: each left its TOML there, so that pages and comparisons know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from attentest.store.store import Store

FOLDER = "studies"
PACKAGED = "# This study comes with attentest.\n"  # how the file of a study of the package begins


@final
@dataclass(frozen=True, kw_only=True)
class RememberedStudy:
    """A study that ran in a store."""

    name: str
    toml: str
    path: str  # of its TOML; empty where the store is on no local disk

    @property
    def packaged(self) -> bool:
        """Whether the package has it, whose version then counts."""
        return self.toml.startswith(PACKAGED)


def remember(
    store: Store, name: str, toml: str, beside: Mapping[str, bytes], *, packaged: bool = False
) -> None:
    """Keep the study's TOML and the files `beside` it that it names; what is the same stays untouched."""
    whole = {f"{name}.toml": ((PACKAGED if packaged else "") + toml).encode(), **beside}
    for file, content in whole.items():
        if store.find(FOLDER, file) != content:
            store.replace(content, FOLDER, file)


def remembered(store: Store) -> dict[str, RememberedStudy]:
    """Every study that ran here, by name: the user's own first."""
    folder = f"{store.root.rstrip('/')}/{FOLDER}"
    try:
        files = store.files.ls(folder, detail=False, refresh=True)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    found = [_read(store, folder, file.rpartition("/")[2]) for file in files if file.endswith(".toml")]
    return {one.name: one for one in sorted(found, key=lambda one: (one.packaged, one.name))}


def _read(store: Store, folder: str, file: str) -> RememberedStudy:
    toml = (store.find(FOLDER, file) or b"").decode(errors="replace")
    path = f"{folder}/{file}" if store.local else ""
    return RememberedStudy(name=file.removesuffix(".toml"), toml=toml, path=path)


def name_or_path(store: Store, name: str) -> str:
    """What a study is loaded by: the name itself, or the TOML that a study of this name left here."""
    known = remembered(store).get(name)
    return name if known is None or known.packaged or not known.path else known.path
