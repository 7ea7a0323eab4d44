"""The pages that are served: those of `attentest report`, made when the store has changed, and our own."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, final

import pooch

from attentest.store.cell import canonical
from attentest.store.store import Store

OWN = ("live.html", "live.css", "live.js", "views.js", "weights.js")
RELOAD = 2  # seconds until a page that waits for the report asks again
Files = Mapping[str, bytes | Path]
UNFINISHED = ("damaged", "index.parquet", "making", "partial", "site")  # what a store holds besides results


@final
class Pages:
    """Every page by its name: our own from the start, and those of the report once they are drawn."""

    def __init__(self, own: Files, report: Files | None = None) -> None:
        self.own, self.files, self.is_whole = own, {"icon.svg": _icon(), **own}, False
        if report is not None:
            self.show(report)

    def show(self, report: Files) -> None:
        """From now on these pages, too."""
        self.files = {**report, **self.own}
        self.is_whole = True


@contextmanager
def place(store: Store) -> Iterator[Path]:
    """A folder for a store's pages that is there again next time; a passing one where none can be kept."""
    whole = os.path.abspath(store.root) if store.local else store.url
    name = hashlib.sha256(whole.encode(errors="surrogateescape")).hexdigest()[:16]
    kept = Path(pooch.os_cache("attentest")) / "served" / name
    try:
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        writable = os.access(kept, os.W_OK)
    except OSError:
        writable = False
    if writable:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="attentest-") as passing:
        yield Path(passing)


def made(folder: Path, stamp: str, make: Callable[[Path], object]) -> Files:
    """Every page of the report by its name. They are made anew only where the stamp is not last time's."""
    found = kept(folder, stamp)
    if found is None:
        note = folder / "stamp"
        note.unlink(missing_ok=True)  # whoever is interrupted from here on leaves nothing that looks whole
        make(folder / "pages")
        note.write_text(stamp)
        found = kept(folder, stamp)
        assert found is not None
    return found


def kept(folder: Path, stamp: str) -> Files | None:
    """The pages that were made last time, or None where something has changed since."""
    pages, note = folder / "pages", folder / "stamp"
    if not (note.is_file() and note.read_text() == stamp and pages.is_dir()):
        return None
    files = [path for path in pages.rglob("*") if path.is_file() and not path.is_symlink()]
    there = {path.relative_to(pages).as_posix(): path for path in files}
    return {name: path for name, path in there.items() if not name.startswith(".")}


def stamp_of(store: Store, settings: Any) -> str:
    """What the pages depend on: the files of the store, the code that makes pages, and the settings."""
    root = store.root.rstrip("/")
    found = store.files.find(root, detail=True)
    names = {name.removeprefix(root).lstrip("/"): about.get("size") for name, about in found.items()}
    cells = sorted([name, size] for name, size in names.items() if name.split("/")[0] not in UNFINISHED)
    code = [
        [path.as_posix(), path.stat().st_size, path.stat().st_mtime_ns]
        for path in sorted(Path(str(resources.files("attentest"))).rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    ]
    spelled = canonical({"store": cells, "code": code, "settings": settings})
    return hashlib.sha256(spelled.encode()).hexdigest()


def own_pages() -> dict[str, bytes | Path]:
    """The live page and its script."""
    here = resources.files("attentest.web")
    return {name: (here / name).read_bytes() for name in OWN}


def links(models: Iterable[str]) -> dict[str, bytes | Path]:
    """The script by which a report's pages lead to the live one, and to the models of these keys in it.

    In a report that is not served the same name is empty: that one file is the only one that differs.
    """
    script = (resources.files("attentest.web") / "served.js").read_bytes()
    return {
        "scripts/served.js": b'"use strict";\nconst asked = %s;\n' % json.dumps(sorted(models)).encode()
        + script
    }


def no_pages(why: str) -> Files:
    """A first page for a store of which no report can be made; models can be asked all the same."""
    return {"index.html": _first_page("No report yet", why), "icon.svg": _icon()}


def waiting_page() -> bytes:
    """What stands for every page of a report that is being drawn: it asks again by itself."""
    why = "The pages of the report are being made. This page shows them when they are ready."
    return _first_page("One moment", why, f'<meta http-equiv="refresh" content="{RELOAD}" />\n')


def _first_page(title: str, why: str, reload: str = "") -> bytes:
    page = (resources.files("attentest.web") / "first.html").read_text(encoding="utf-8")
    page = page.replace("{reload}", reload).replace("{title}", title)
    return page.replace("{why}", escape(why)).encode()


def _icon() -> bytes:
    return (resources.files("attentest.gallery") / "icon.svg").read_bytes()
