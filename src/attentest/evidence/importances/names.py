"""What each importance of the catalogue is called, without torch: experiments, audits and cards ask here."""

from __future__ import annotations

# In the order of columns and cards. How each is computed is in `catalogue.py`, under the same names.
IMPORTANCES = {
    "gradient": "input x gradient",
    "leave-one-out": "leave-one-out",
    "integrated-gradients": "integrated gradients",
    "shapley": "sampled Shapley values",
    "lime": "LIME",
}
