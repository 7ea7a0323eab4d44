"""What a finding says, in one sentence: where it lies beside its null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attentest.notebook import number


def reading(finding: Mapping[str, Any]) -> str:
    """Above, below, or not told apart from what there would be if there were nothing to find."""
    estimate, low, high, null = (finding[name] for name in ("estimate", "low", "high", "null"))
    if not math.isfinite(estimate):
        return f"undefined: {finding['why'] or 'no texts'}"
    if not math.isfinite(null):
        return "there is no null to hold it against"
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"without an interval it cannot be told from its null, {number(null)}"
    if low > null:
        return f"more than where there is nothing to find: {number(estimate - null)} above the null"
    if high < null:
        return f"less than where there is nothing to find: {number(null - estimate)} below the null"
    return "not told apart from its null, which the interval holds"
