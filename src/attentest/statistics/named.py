"""What stored names hold beside a name: here they become data, and are spelled again, in one place.

A measure, or a column of rows, may have a setting after an @, as `emax-jsd-exact@0.01` has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Named:
    """A name and its setting, which is empty where there is none. `str` spells it as it is stored."""

    name: str
    setting: str = ""

    @classmethod
    def of(cls, stored: str) -> Named:
        """The inverse of `str`: names hold no @, so what follows the first one is the setting."""
        name, _, setting = stored.partition("@")
        return cls(name, setting)

    def __str__(self) -> str:
        """As rows and findings have it."""
        return f"{self.name}@{self.setting}" if self.setting else self.name
