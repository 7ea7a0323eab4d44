"""The kernels under the import path that users rely on; they are in `statistics.comparison`."""

from attentest.statistics.comparison import (
    jensen_shannon,
    kendall,
    mutual_information,
    normalised_entropy,
    total_variation,
    weighted_kendall,
)

__all__ = [
    "jensen_shannon",
    "kendall",
    "mutual_information",
    "normalised_entropy",
    "total_variation",
    "weighted_kendall",
]
