"""Proof of effect: before an edit of attention is believed, it is shown that edits do what they say.

Three things are shown on a few texts. Given its own weights back, the model answers the same, bit for bit.
Attention is called as often as the configuration has layers. And every attention that may be chosen, bent to
rest on one place, changes some answer. A model of which one of these cannot be shown is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attentest.foreign.editing import Call, Edit, Maps, Watch, watching
from attentest.refusal import Refusal

Inputs = Mapping[str, Any]
Answers = Float[Tensor, "batch class"]

# Families shown to work, on tiny models of each, by the tests; by hook means at the dropout of the weights.
BY_INTERFACE = (
    "albert",
    "bart",
    "bert",
    "distilbert",
    "electra",
    "gpt2",
    "llama",
    "modernbert",
    "roberta",
    "t5",
)
BY_HOOK = ("deberta-v2", "xlnet")
MEAN = "mean"
ACROSS = ("EncDecAttention", "encoder_attn", "crossattention")  # what libraries call attention across stacks


@final
@dataclass(frozen=True)
class Proof:
    """By which road a model's attention can be replaced, and where: one path for every call, in order."""

    road: str
    paths: tuple[str, ...]
    rule: str  # which position's state decides: the first of a text, its last, or all in the mean

    @property
    def layers(self) -> tuple[int, ...]:
        """The calls that may be chosen: of a decoder those that look at the text, else all."""
        across = [n for n, path in enumerate(self.paths) if path.endswith(ACROSS)]
        return tuple(across or range(len(self.paths)))

    def deciding(self, present: Bool[Tensor, "batch place"]) -> Int[Tensor, " batch"]:
        """The place of each text whose state decides."""
        if self.rule == "first":
            return present.int().argmax(1)
        return present.shape[1] - 1 - present.flip(1).int().argmax(1)

    def check(self, watch: Watch, calls: int | None = None) -> None:
        """Refuse a pass unlike the one that was proven: some models read long texts in another way.

        Of a pass that was ended early only so many `calls` are there to be seen.
        """
        if tuple(watch.seen) != self.paths[:calls]:
            raise Refusal(
                "the attention of these texts",
                got=f"{len(watch.seen)} calls of attention in a pass",
                needs=f"the {len(self.paths)} of the proof of effect, in their order",
                way_out="Leave out texts, or settings, under which the model attends in another way.",
            )


def logits_of(model: Any, inputs: Inputs, edit: Edit | None = None, road: str = "interface") -> Answers:
    """One forward pass, watched where there is an edit."""
    with nullcontext() if edit is None else watching(model, edit, road):
        return model(**inputs).logits


@contextmanager
def _plainly(model: Any, road: str) -> Iterator[None]:
    """The library's own plain attention, which ours must equal bit for bit; faster ones round differently."""
    before = model.config._attn_implementation
    if road == "interface":
        model.set_attn_implementation("eager")
    try:
        yield
    finally:
        if road == "interface":
            model.set_attn_implementation(before)


@torch.no_grad()
def proven(model: Any, inputs: Inputs) -> Proof:
    """Show the effect by the first road that has any, or refuse."""
    for road in ("interface", "hook"):
        if road == "interface" and not getattr(model, "_can_set_attn_implementation", lambda: True)():
            continue
        paths, own = _identity(model, inputs, road)
        if not paths:
            continue
        _need(
            len(paths) == _expected(model), model, f"{len(paths)} calls of attention in a pass", "one a layer"
        )
        proof = Proof(road, paths, "first")
        for number in proof.layers:
            bent = logits_of(model, inputs, lambda call, n=number: _bent(call, n), road)  # type: ignore[misc]
            moved = not torch.equal(bent, own)
            _need(
                moved, model, f"the same answer whatever {paths[number]} attends to", "an answer that moves"
            )
        return Proof(road, paths, _rule(model, inputs, proof))
    raise _refused(model, "no attention that an edit could reach", "attention that can be replaced")


def _identity(model: Any, inputs: Inputs, road: str) -> tuple[tuple[str, ...], Answers]:
    """The paths that were called while every map was replaced by a copy of itself."""
    try:
        with _plainly(model, road):
            plain = logits_of(model, inputs)
        check_finite(plain, model)
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, Refusal):
            raise
        raise _refused(
            model, f"a model that stops ({error})", "one that reads numbers of words alone"
        ) from error
    with watching(model, lambda call: call.weights.clone(), road) as watch:
        own = logits_of(model, inputs)
    if watch.seen:
        _need(
            torch.equal(plain, own), model, "another answer under its own attention", "the same, bit for bit"
        )
    return tuple(watch.seen), plain


def _bent(call: Call, number: int) -> Maps | None:
    """All weight of every row on the place that has least of it: as far away as attention can go.

    A place that has no weight at all may be padding or the future, and stays without.
    """
    if call.number != number:
        return None
    there = call.weights.masked_fill(call.weights == 0, float("inf"))
    return torch.zeros_like(call.weights).scatter(-1, there.argmin(-1, keepdim=True), 1.0)


def _expected(model: Any) -> int:
    """One call a layer; a decoder that reads an encoder calls twice."""
    config = model.config
    if not config.is_encoder_decoder:
        return config.num_hidden_layers
    names = ("decoder_layers", "num_decoder_layers")
    return config.num_hidden_layers + 2 * max(getattr(config, name, None) or 0 for name in names)


def _rule(model: nn.Module, inputs: Inputs, proof: Proof) -> str:
    """Which position decides is asked of the model: only its row of the last layer can move an answer."""
    rows: list[Tensor] = []

    def leaf(call: Call) -> Maps | None:
        if call.number != proof.layers[-1]:
            return None
        rows.append(call.weights.detach().requires_grad_())
        return rows[0]

    with torch.enable_grad():
        logits = logits_of(model, inputs, leaf, proof.road)
        slope = torch.autograd.grad(logits.square().sum(), rows[0])[0]
    decides = slope.abs().sum((1, 3)) > 0
    present = inputs["attention_mask"].bool()
    if torch.equal(decides, present) and bool((present.sum(1) > 1).any()):
        return MEAN
    for rule in ("first", "last"):
        places = Proof(proof.road, proof.paths, rule).deciding(present)
        if torch.equal(decides.nonzero()[:, 1], places):
            return rule
    raise Refusal(
        f"the attention of a {family(model)} model",
        got="a decision that several positions share, and not all of a text alike",
        needs="one position that decides, the first of the text or its last, or the mean of all",
        way_out="Only then is one row of the last layer what the decision attends to.",
    )


def check_finite(logits: Tensor, model: Any) -> None:
    """Refuse answers that are no numbers: in float16 everything above 65,504 is infinite."""
    if not bool(logits.isfinite().all()):
        kind = str(model.dtype).removeprefix("torch.")
        raise Refusal(
            f"the answers of a {family(model)} model in {kind}",
            got="logits that are no numbers (NaN or infinite)",
            needs="numbers: float16 cannot hold what is above 65,504",
            way_out="Say dtype='bfloat16' or dtype='float32'. If that does not help, its weights are broken.",
        )


def family(model: Any) -> str:
    """The model family by its configuration's own name."""
    return str(model.config.model_type)


def _need(fine: bool, model: Any, got: str, needs: str) -> None:
    if not fine:
        raise _refused(model, got, needs)


def _refused(model: Any, got: str, needs: str) -> Refusal:
    return Refusal(
        f"editing the attention of a {family(model)} model ({type(model).__name__})",
        got=got,
        needs=needs,
        way_out=f"What works: {', '.join(BY_INTERFACE)}; by a hook {', '.join(BY_HOOK)}; or an adapter.",
    )
