"""The named shapes of the bench; the tests execute them on every call (jaxtyping with beartype)."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

Tokens = Int[Tensor, "batch token"]
Mask = Bool[Tensor, "batch unit"]  # True where a real unit stands: never padding, never a marker
Embedded = Float[Tensor, "batch token emb"]
Hidden = Float[Tensor, "batch unit hidden"]
Query = Float[Tensor, "batch hidden"]
Weights = Float[Tensor, "batch *head unit"]  # raw scores have this shape too
Given = Float[Tensor, "batch *variant unit"]
Values = Float[Tensor, "batch unit class"]
Logits = Float[Tensor, "batch *variant class"]
