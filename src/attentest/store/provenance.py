"""Where the models behind a cell were trained, by their keys and by the records of their cells.

The key of a model says `trained_on = cuda` since that is a setting. Before, a model trained on a GPU had the
key of one trained on a CPU, and only the field `device` of its `cell.json` tells the two apart. Such a model
keeps its key and can be looked at, with a label; nothing new is made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

from attentest.refusal import Refusal
from attentest.store.cell import Cell, seed_of, short
from attentest.store.store import Store

About = Mapping[str, Any]  # a `cell.json`
CPU, CUDA = "cpu", "cuda"
UNMARKED = "a GPU before keys said so"
SEVERAL = "different devices"


@final
class Provenance:
    """Answers about cells, each read once; `about` gives a cell's description, None where there is none."""

    def __init__(self, about: Callable[[str], About | None]) -> None:
        self._about = about
        self._places: dict[str, frozenset[str]] = {}

    @classmethod
    def of(cls, store: Store) -> Provenance:
        """By the descriptions in a store; one that cannot be read is refused by whoever needs the cell."""

        def about(key: str) -> About | None:
            try:
                return store.about(key) if store.has(key) else None
            except Refusal:
                return None

        return cls(about)

    def places(self, key: str) -> frozenset[str]:
        """Every place where a model was trained that this cell is, or was made from."""
        if key not in self._places:
            about = self._about(key)
            self._places[key] = frozenset() if about is None else self._found(about)
        return self._places[key]

    def _found(self, about: About) -> frozenset[str]:
        if about["stage"] == "model":
            own = _place_of_training(about["config"], about.get("device") == CUDA)
        else:
            own = self._told_by_itself(about)
        return own.union(*map(self.places, about["inputs"].values()))

    def _told_by_itself(self, about: About) -> frozenset[str]:
        """Of a cell without its inputs: what an old version observed on a GPU it had trained there."""
        inputs = about["inputs"].items()
        made_from = [key for role, key in inputs if role.startswith("model") or seed_of(role) is not None]
        if not made_from or any(self._about(key) is not None for key in made_from):
            return frozenset()
        settings = about["config"].get("model", {})
        if "trained_on" not in settings and ("device" not in about or "parameters" in about):
            return (
                frozenset()
            )  # what an old version concluded says no more, and a new one had its inputs checked
        return _place_of_training(settings, about.get("device") == CUDA)

    def trained_on(self, key: str) -> str:
        """cpu, cuda, `UNMARKED` or `SEVERAL`; empty where nothing was trained, or nothing is known of it."""
        places = self.places(key)
        return next(iter(places), "") if len(places) < 2 else SEVERAL

    def label(self, key: str) -> str:
        """What a reader must be told about the models of this cell; empty where its key tells everything."""
        place = self.trained_on(key)
        return f"trained on {place}" if place in (UNMARKED, SEVERAL) else ""

    def is_mixed(self, finding: Cell) -> bool:
        """Whether some of its seeds were trained elsewhere than the others."""
        known = {places for key in finding.inputs.values() if (places := self.places(key))}
        return len(known) > 1 or any(UNMARKED in places and len(places) > 1 for places in known)

    def check_usable(self, key: str) -> None:
        """Refuse a cell from which nothing new may be made."""
        if UNMARKED in self.places(key):
            raise Refusal(
                f"cell {short(key)}",
                got=f"models trained on {UNMARKED}, under the keys of models trained on a CPU",
                needs="models that were trained where their keys say",
                way_out="Give another --store; `report`, `compare` and `conclude` still read this one.",
            )


def _place_of_training(settings: Mapping[str, Any], on_gpu: bool) -> frozenset[str]:
    """By the settings of a model, and whether the record says that a GPU did the work."""
    if settings.get("epochs") == 0:
        return frozenset()
    if "trained_on" in settings:
        return frozenset([settings["trained_on"]])
    return frozenset([UNMARKED if on_gpu else CPU])
