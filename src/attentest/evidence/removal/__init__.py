"""Removing units until the decision flips: exactly, in an order, or one at a time."""

from attentest.evidence.removal.smallest import SmallestFlip, smallest_flip

__all__ = ["SmallestFlip", "smallest_flip"]
