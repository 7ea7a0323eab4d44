"""Ranges and units that the cards of Wiegreffe & Pinter's experiments share."""

from __future__ import annotations

import math

PAPER = "wiegreffe2019attention"
NATS = "Jensen-Shannon divergence, nats"
DIVERGENCE = (0.0, math.log(2))
DIFFERENCE = (-math.log(2), math.log(2))
SHARE = (0.0, 1.0)
TVD = "total variation distance"
ONE_TOKEN = "the text has one token, or weights or outputs are not numbers"
