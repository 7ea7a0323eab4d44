"""The one error for wrong input: a sentence that says what, got, needs, and the way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, final

Entry = TypeVar("Entry")


@final
class Refusal(ValueError):
    """Input we will not work with. Only this becomes exit status 2; anything else is our own bug."""

    def __init__(
        self, what: str, *, got: str, needs: str, way_out: str, cell: str = "", below: str = ""
    ) -> None:
        super().__init__(f"{what}: got {got}, but needs {needs}. {way_out}")
        self.what, self.got, self.needs, self.way_out = what, got, needs, way_out
        self.below = below  # the traceback of a user's own code, shown under the sentence
        if below:
            self.add_note(below)
        self.cell = cell  # the key of a stored cell whose damage is the reason: others can do without it

    def as_json(self) -> dict[str, str]:
        """The fields of the sentence, for programs."""
        fields = {"what": self.what, "got": self.got, "needs": self.needs, "way_out": self.way_out}
        more = {"cell": self.cell, "traceback": self.below}
        return {"message": str(self), **fields, **{name: said for name, said in more.items() if said}}


def look_up(name: str, catalogue: Mapping[str, Entry], kind: str) -> Entry:
    """The catalogue's entry, or a refusal that lists what there is."""
    if name not in catalogue:
        raise Refusal(
            f"{kind} {name!r}",
            got="a name that is not in the catalogue",
            needs=f"one of {', '.join(catalogue)}",
            way_out="Check the spelling.",
        )
    return catalogue[name]
