"""LIME and KernelSHAP by Captum's own hand, for whoever has it (the extra `captum`).

Captum explains one text at a time and draws its parts from torch's common generator. Our own LIME answers
the parts of all texts together, and with the same parts and kernel comes to Captum's slopes (the tests hold
it to that); so it stays what experiments and audits ask. These are for comparing with numbers made elsewhere:
Captum's settings are left as they are, but for how many parts it draws.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from attentest.evidence.importances.presence import PerUnit, answers_to_parts, without_lone_units
from attentest.model.seam import Model, Reading
from attentest.model.subset import selected
from attentest.refusal import Refusal

AT_ONCE = 64  # parts that Captum asks about together; how many never changes what it finds


def captum_lime(model: Model, reading: Reading, *, rng: torch.Generator, samples: int = 200) -> PerUnit:
    """The coefficients of Captum's LIME, by default a lasso; signed. NaN where a text has one unit."""
    return _one_by_one("Lime", model, reading, rng, samples)


def captum_kernel_shap(
    model: Model, reading: Reading, *, rng: torch.Generator, samples: int = 200
) -> PerUnit:
    """Shapley values by Captum's regression on random parts; signed. NaN where a text has one unit."""
    return _one_by_one("KernelShap", model, reading, rng, samples)


def _one_by_one(kind: str, model: Model, reading: Reading, rng: torch.Generator, samples: int) -> PerUnit:
    method, found = getattr(_library(), kind), reading.embeddings.new_zeros(reading.mask.shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**62, (), generator=rng)))
        for text, length in enumerate(reading.mask.sum(1).tolist()):
            if length > 1:
                found[text, :length] = _attributed(method, model, _alone(reading, text), length, samples)
    return without_lone_units(found, reading)


def _attributed(method: Any, model: Model, reading: Reading, length: int, samples: int) -> Tensor:
    """What Captum says of one text, whose input is which of its units are there."""
    units = reading.mask.shape[1]

    def likely(there: Tensor) -> Tensor:
        kept = torch.nn.functional.pad(there.bool(), (0, units - length))
        return answers_to_parts(model, reading, kept[None])[0]

    whole = torch.ones(1, length, device=reading.mask.device)
    said = method(likely).attribute(whole, n_samples=samples, perturbations_per_eval=AT_ONCE)
    return said[0].to(reading.embeddings)


def _alone(reading: Reading, text: int) -> Reading:
    return selected(reading, torch.tensor([text], device=reading.mask.device))


def _library() -> ModuleType:
    """Captum, or the sentence that says how to get it; it brings matplotlib, so it is nobody's by default."""
    if importlib.util.find_spec("captum") is None:
        raise Refusal(
            "Captum's explainers",
            got="no captum library",
            needs="captum 0.9 or later",
            way_out="pip install 'attentest[captum]'; 'lime' and 'shapley' need nothing.",
        )
    return importlib.import_module("captum.attr")
