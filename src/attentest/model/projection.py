"""The projections under the import path that users rely on; they are in `model.networks.projection`."""

from attentest.model.networks.projection import (
    PROJECTIONS,
    entmax15,
    gumbel_softmax,
    softmax,
    sparsegen,
    sparsemax,
    uniform,
)

__all__ = ["PROJECTIONS", "entmax15", "gumbel_softmax", "softmax", "sparsegen", "sparsemax", "uniform"]
