"""Measures that earlier versions concluded and this one does not: their names stay reserved.

No claim, published table, criterion, calibrated test, chart or overview used them, and rows that are stored
still hold what they were made from. Findings of earlier versions keep them in their files, and whoever reads
those leaves them out, since nothing says any more what they mean.
"""

from __future__ import annotations

from itertools import product

import pandas as pd

from attentest.statistics.named import Named
from attentest.statistics.record import completed

_EVERY = {
    "adversary": ("emax-jsd-uniform",),
    "importance": (
        *(
            f"tau-{importance}-{null}"
            for importance in ("gradient", "loo")
            for null in ("swapped", "permuted", "excess-superseded")
        ),
        "tau-gradient-loo-significant",
    ),
    "information": ("mi-excess",),
    "removal": (
        *(
            f"{quantity}-{ranking}"
            for quantity in ("median-fraction", "median-mass", "excess", "ratio")
            for ranking in ("random", "gradient", "product")
        ),
        "fraction-product-minus-gradient",
        *("mass-gradient-minus-attention", "mass-product-minus-attention", "mass-product-minus-gradient"),
    ),
    "seed-variance": ("seed-jsd-ratio", "share-beyond-seeds"),
    "single-weight": tuple(
        name.format(ranking)
        for name in ("discordant-top-{}", "djs-{}", "djs-{}-excess", "negative-djs-{}")
        for ranking in ("gradient", "product")
    ),
    "sparsity": tuple(
        f"spearman-{against}-{outcome}{where}"
        for against, (outcome, where) in product(
            ("lambda", "support", "attention-entropy"),
            [
                *product(("entropy-gradient", "entropy-loo"), ("",)),
                *product(("tau-gradient", "tau-loo"), ("", "-on-support")),
            ],
        )
    ),
}
# By experiment/measure; what followed an @ in a name is left out, as it is in the names of cards.
REMOVED = frozenset(f"{experiment}/{measure}" for experiment, names in _EVERY.items() for measure in names)


def current(stored: pd.DataFrame) -> pd.DataFrame:
    """A stored table of findings as this version reads it: all columns, and no removed measure."""
    named = zip(stored["experiment"], stored["measure"], strict=True)
    kept = [f"{experiment}/{Named.of(measure).name}" not in REMOVED for experiment, measure in named]
    return completed(stored if all(kept) else stored[kept].reset_index(drop=True))
