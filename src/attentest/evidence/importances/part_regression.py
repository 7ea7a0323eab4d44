"""Regressions of the answers to parts of texts on who is in them, of what their mere size does not explain.

Answers change with how much is left of a text, whatever it is. Over all parts of a size that is the same for
every unit, but over some of them it is noise. So powers of the size are fitted beside the units and taken
off. The slopes over all parts stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.evidence.importances.lime import PENALTY, WIDTH

PerRow = Float[Tensor, "batch row"]
NOMINAL = 200.0  # parts that LIME's penalty counts as: its slopes do not depend on how many were drawn
FITTED = 2  # powers of the size that are taken off: as many draws fewer say how noisy the rest is
TINY = 1e-9  # what keeps powers of the size apart where a text has hardly any sizes


@final
@dataclass(frozen=True)
class Regression:
    """The slopes, beside what the powers of the size explain."""

    slopes: Float[Tensor, "batch unit"]
    of_powers: Float[Tensor, "batch power"]
    influence: Float[Tensor, "batch row unit"]  # how far each row moved the slopes
    influence_on_powers: Float[Tensor, "batch row power"]


def regressed(x: Tensor, y: Tensor, weights: Tensor, penalty: Tensor, powers: Sequence[PerRow]) -> Regression:
    """Weighted least squares of every text at once, beside `powers` of the size of each part."""
    units = x.shape[2]
    both = torch.cat([x, torch.stack(powers, dim=2)], dim=2)
    wide = torch.nn.functional.pad(penalty, (0, len(powers), 0, len(powers)))
    wide = wide + torch.diag(torch.arange(units + len(powers), device=x.device) >= units) * TINY
    weighed = weights[..., None] * both
    inverse = torch.linalg.inv(weighed.mT @ both + wide)
    slopes, towards = inverse @ (weighed.mT @ y[..., None]), both @ inverse
    # A row that few others resemble hides its own error, so that is divided by what it leaves to be seen
    # (MacKinnon and White 1985).
    leverage = (weights * (towards * both).sum(2)).clamp(max=0.9)
    residual = (y - (both @ slopes)[..., 0]) / (1 - leverage)
    moved = (weights * residual)[..., None] * towards
    return Regression(slopes[:, :units, 0], slopes[:, units:, 0], moved[..., :units], moved[..., units:])


def slopes_of_powers(units: Float[Tensor, " batch"]) -> Float[Tensor, "batch power"]:
    """The one slope that all units have in LIME over all parts, of the size squared or cubed."""
    sizes = torch.arange(1, int(units.max()) + 1, device=units.device).double()
    share = (sizes / units[:, None]).clamp(max=1.0)
    weights = (-((1 - share.sqrt()) ** 2) / WIDTH**2).exp() * NOMINAL / (units[:, None] - 1).clamp_min(1)
    weights = torch.where(sizes < units[:, None], weights, 1.0 * (sizes == units[:, None]))
    total = weights.sum(1, keepdim=True)
    own, *answers = (
        each - (weights * each).sum(1, keepdim=True) / total for each in (sizes, share**2, share**3)
    )
    squares = (weights * own**2).sum(1) + PENALTY * units
    return torch.stack([(weights * own * answer).sum(1) / squares for answer in answers], dim=1)


def along_the_sum(mask: Float[Tensor, "batch unit"]) -> Float[Tensor, "batch unit unit"]:
    """What makes the squares of centred rows invertible and changes no slope: they hold nothing along it."""
    return mask[:, :, None] * mask[:, None] + torch.diag_embed(1 - mask)
