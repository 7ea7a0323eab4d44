"""A download as a person sees it: a bar with its speed and the time left, then what came."""

from __future__ import annotations

from types import TracebackType
from typing import Any, final

from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from attentest.notebook import harmless


@final
class DownloadBar:
    """One bar on standard error, and none where that is no terminal."""

    def __init__(self, title: str) -> None:
        console = Console(stderr=True)
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task(harmless(title), total=None)
        self.received: int | None = None

    def __enter__(self) -> DownloadBar:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def moved(self, received: int, total: int | None) -> None:
        """Show how far it is. What an earlier run brought must not count as speed, nor a new beginning."""
        if self.received is None or received < self.received:
            self.bar.reset(self.task, total=total, completed=received)
        else:
            self.bar.update(self.task, total=total, completed=received)
        self.received = received


def show_download(document: dict[str, Any], console: Console) -> None:
    """Each file with its size and digest, and what to do now."""
    for file in document["files"]:
        how = "downloaded" if file["fetched"] else "was here already"
        if file["resumed"]:
            how = f"completed with {decimal(file['fetched'])}"
        console.print(f"{file['file']}: {decimal(file['bytes'])}, {how}", highlight=False, soft_wrap=True)
        console.print(f"  sha256 {file['sha256']}", highlight=False, soft_wrap=True)
    if not document["files"]:
        console.print(f"{document['corpus']} is here already; nothing was downloaded.", highlight=False)
    console.print(f"Now: attentest train {document['corpus']}", highlight=False)
