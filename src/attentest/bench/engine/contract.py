"""What an engine is given and what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, final, runtime_checkable

Kind = Literal["begun", "progress", "done", "failed", "refused", "retried", "postponed"]


@final
@dataclass(frozen=True)
class Event:
    """Something that happened to a cell."""

    kind: Kind
    key: str
    detail: dict[str, Any] = field(default_factory=dict)


OnEvent = Callable[[Event], None]


@final
@dataclass(frozen=True)
class Needs:
    """What a job takes of a machine while it runs: cores, GPUs (a share of one, too), bytes of memory."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory: int = 0


@final
@dataclass(frozen=True)
class Work:
    """The same work twice over: as a function for this process, as a command line for another.

    The command is Python with its arguments. It reads jobs from standard input, a line each with the keys of
    the cells that are to be done together, and answers with one JSON event a line. `without_gpu` is the
    command for jobs that need none (else the same); an engine that places jobs asks what each `needs`.
    """

    here: Callable[[Sequence[str], OnEvent], None]
    command: Sequence[str]
    without_gpu: Sequence[str] = ()
    needs: Callable[[Sequence[str]], Needs] = lambda job: Needs()


RunCells = Callable[["Cells", Work, OnEvent], None]


@runtime_checkable
class Cells(Protocol):
    """The cells still to be done, handed out as their inputs come to exist."""

    def take(self) -> list[str]:
        """A job: a cell whose inputs exist, or several that are done together; none while there is none."""
        ...

    def is_over(self) -> bool:
        """Whether nothing is left to hand out and nothing handed out is unfinished."""
        ...
