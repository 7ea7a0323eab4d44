"""How every finding is made: from the seeds' own estimates, which go into it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from attentest.statistics.crossed import NO_INTERVAL, Interval
from attentest.statistics.interval import over_seeds
from attentest.statistics.record import Finding, seeds_as_json


def finding(
    of_seeds: Sequence[float], *, interval: Interval = NO_INTERVAL, std: float = math.nan, **about: Any
) -> Finding:
    """The mean over seeds. `about` are the finding's other fields, also in place of what follows from seeds:
    a p-value is no mean, and a test of all seeds together has no estimate of single ones.
    """
    estimate, seed_std = over_seeds(of_seeds)
    told = {"estimate": estimate, "std": std, "seed_std": seed_std, "seeds": len(of_seeds)}
    return Finding(**{**told, "by_seed": seeds_as_json(of_seeds), **interval._asdict(), **about})
