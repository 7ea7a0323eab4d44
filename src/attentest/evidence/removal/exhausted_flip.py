"""The fewest items whose removal overturns a decision that is not affine: by trying every set.

No sum of shares tells here which set is best, so a text of n items has 2^n - 2 sets to try. That is done for
short texts, smallest sets first; of longer ones the optimum is not known.
"""

from __future__ import annotations

from itertools import combinations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.removal.decisions import (
    attended,
    check_one_distribution,
    is_defined,
    overtaken,
    predicted,
    without,
)
from attentest.model.seam import Model, Reading
from attentest.model.subset import selected

MOST = 10  # items of a text, hence 1,022 sets at most


def exhausted_flip(model: Model, reading: Reading) -> Float[Tensor, " batch"]:
    """The size of each text's smallest flip, 0 where no set flips it; NaN where that is not known."""
    return exhausted_sets(model, reading)[0]


@torch.no_grad()
def exhausted_sets(
    model: Model, reading: Reading, *, single: bool = False
) -> tuple[Float[Tensor, " batch"], Bool[Tensor, "batch unit"]]:
    """The same sizes, and the first smallest set of each text; it is empty where nothing flips.

    With `single`, of texts of any length, but sets of one item only: 0 means that no single item flips it.

    As in the exact one, a flip needs a rival strictly above and one item must stay. The reading's weights are
    given to the model, whosever they are.
    """
    check_one_distribution("the smallest flip by trying every set", reading)
    sizes = attended(reading).sum(1)
    defined = is_defined(reading, model.decide(reading, reading.weights))
    found = torch.full(sizes.shape, float("nan"), dtype=torch.float64, device=sizes.device)
    removed = torch.zeros_like(reading.mask)
    counts = sizes[defined].unique().tolist() if single else range(1, MOST + 1)
    for count in counts:
        texts = (defined & (sizes == count)).nonzero().squeeze(1)
        if len(texts):
            size, gone = _of_alike(model, selected(reading, texts), count, 1 if single else count - 1)
            found[texts] = size.double()
            removed[texts, : gone.shape[1]] = gone
    return found, removed


def _of_alike(
    model: Model, reading: Reading, count: int, largest: int
) -> tuple[Int[Tensor, " batch"], Bool[Tensor, "batch unit"]]:
    """The same for texts of as many items, each of which is asked no further than to its first flip."""
    found = torch.zeros(len(reading.mask), dtype=torch.long, device=reading.mask.device)
    removed = torch.zeros_like(reading.mask)
    own = predicted(model.decide(reading, reading.weights))
    left = torch.arange(len(found), device=found.device)
    for size in range(1, min(count, largest + 1)):
        some = selected(reading, left)
        items = attended(some)
        sets = torch.tensor(list(combinations(range(count), size)), device=found.device)
        places = items.int().argsort(dim=1, descending=True, stable=True)[:, sets]
        gone = torch.zeros(len(left), *sets.shape[:1], items.shape[1], dtype=torch.bool, device=found.device)
        gone = gone.scatter(2, places, True)
        rest = without(some.weights.masked_fill(~items, 0.0), gone)
        above = overtaken(model.decide(some, rest), own[left])
        first, flips = above.int().argmax(1), above.any(1)
        found[left[flips]] = size
        removed[left[flips], : gone.shape[2]] = gone[flips, first[flips]]
        left = left[~flips]
        if not len(left):
            break
    return found, removed
