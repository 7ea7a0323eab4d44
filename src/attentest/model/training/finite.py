"""A training that ended in no numbers is no model: what it would be asked has no answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

from attentest.model.finite import not_finite
from attentest.model.seam import Model


@final
class NotFinite(ArithmeticError):
    """A training whose loss or weights are NaN or infinite: of a study, a cell that failed."""


def check_finite(model: Model, record: Mapping[str, Any]) -> None:
    """Refuse to keep a model whose loss or parameters are not finite, and name the first of them."""
    lost = next((done["epoch"] for done in record["history"] if not math.isfinite(done["loss"])), None)
    broken = not_finite(model.state_dict().items())
    if lost is not None or broken is not None:
        where = f"the loss of epoch {lost}" if lost is not None else f"the weights {broken}"
        raise NotFinite(
            f"{where} of the training: NaN or infinite, and finite numbers are needed. Numbers of the"
            " configuration that are very large or very small (in learning_rate or vectors) overflow."
        )
