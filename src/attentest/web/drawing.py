"""The report is drawn by a process of its own, while the server answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attentest.web.site import Pages, made, no_pages


@contextmanager
def drawing(pages: Pages, folder: Path, stamp: str, options: Sequence[str]) -> Iterator[None]:
    """Run `attentest report` with these options and show its pages when it is done, or why there are none.

    Whatever is unfinished at the end is given up, and leaves nothing in the folder.
    """
    with tempfile.TemporaryDirectory(prefix="drawing-", dir=folder) as unfinished:
        out = Path(unfinished) / "pages"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "attentest", "report", "--json", "--out", str(out), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C is for the server, which ends this process itself
        )

        def show() -> None:
            said, _ = process.communicate()
            try:
                if process.returncode == 0:
                    pages.show(made(folder, stamp, lambda place: _move(out, place)))
                else:
                    pages.show(no_pages(_reason(said)))
            except OSError as error:
                pages.show(no_pages(f"The pages cannot be kept: {error}."))

        thread = threading.Thread(target=show)
        thread.start()
        try:
            yield
        finally:
            process.terminate()
            thread.join()


def _move(out: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    out.rename(place)


def _reason(said: bytes) -> str:
    """The sentence of a refusal; anything else is on the terminal, where the process has written it."""
    try:
        return str(json.loads(said)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "The report could not be made; the terminal of the server says why."
