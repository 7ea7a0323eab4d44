"""The adversarial attention furthest from a model's own: exact, bounded, searched, restricted."""

from attentest.evidence.adversary.strongest import Adversary, strongest_adversary

__all__ = ["Adversary", "strongest_adversary"]
