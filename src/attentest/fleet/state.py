"""A fleet is made of trainings that stand somewhere, and can be taken apart into them again.

So a fleet is kept as its members keep themselves, each by itself: what was begun together may go on alone,
or in other company.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attentest.fleet.stack import Stack
from attentest.fleet.stacked_adam import StackedAdam
from attentest.fleet.stacked_rows import StackedRows
from attentest.model.training.loop import Training

MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")  # as torch's Adam calls them, in our order
OF_ROWS = ("first", "second", "largest", "seen")


@torch.no_grad()
def gather(members: Sequence[Training], adam: StackedAdam, rows: StackedRows | None) -> None:
    """Put the members' moments together; they have taken the same number of steps."""
    for number, member in enumerate(members):
        for name, parameter in member.model.named_parameters():
            kept = {} if member.optimiser is None else member.optimiser.state.get(parameter, {})
            for ours, theirs in zip(adam.state.get(name, []), MOMENTS, strict=False):
                if theirs in kept:
                    ours[number] = kept[theirs]
            adam.steps.clamp_(min=float(kept.get("step", 0)))
    if rows is not None:
        own = [member.rows for member in members if member.rows is not None]
        for name in OF_ROWS:
            setattr(
                rows, name, torch.cat([getattr(each, name) for each in own]).to(getattr(rows, name).dtype)
            )
        rows.steps.fill_(own[0].steps)


@torch.no_grad()
def scatter(members: Sequence[Training], stack: Stack, adam: StackedAdam, rows: StackedRows | None) -> None:
    """Give every member that is not over its own numbers and moments back."""
    for number, member in enumerate(members):
        if member.is_over():
            continue
        member.model.load_state_dict(stack.state(number))
        for name, parameter in member.model.named_parameters():
            if member.optimiser is not None and parameter.requires_grad and name in adam.state:
                member.optimiser.state[parameter] = _moments(adam, name, number)
        if member.rows is not None and rows is not None:
            block = slice(number * stack.rows, (number + 1) * stack.rows)
            own = {name: getattr(rows, name)[block] for name in OF_ROWS}
            member.rows.restore({**own, "steps": rows.steps})


def _moments(adam: StackedAdam, name: str, number: int) -> dict[str, Tensor]:
    kept = dict(zip(MOMENTS, (each[number].clone() for each in adam.state[name]), strict=True))
    # A fused Adam counts on the device of its parameters.
    return {"step": adam.steps.float(), **kept}
