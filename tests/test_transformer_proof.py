"""Replacing attention in Hugging Face models: the proof of effect, family by family, and what it refuses."""

import threading
from functools import cache
from pathlib import Path

import pytest
import torch

from attentest.foreign.editing import NAME, library, watching
from attentest.foreign.proof import BY_HOOK, BY_INTERFACE, logits_of, proven
from attentest.refusal import Refusal
from tests.families import CAUSAL, FAMILIES, TEXTS, made_causal, tiny, tiny_causal, tokenizer, transformers

library()


def inputs_for(family):
    return dict(tokenizer(family)(list(TEXTS), padding=True, return_tensors="pt"))


def uniform(call):
    there = (call.weights > 0).to(call.weights)
    return there / there.sum(-1, keepdim=True)


@cache
def proof_of(family):
    """The proof of a tiny model, after which it is as it was."""
    model, inputs = tiny(family), inputs_for(family)
    before = model.config._attn_implementation
    proof = proven(model, inputs)
    assert model.config._attn_implementation == before
    assert not any(module._forward_hooks for module in model.modules()), "no hook is left behind"
    return proof


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_proven_by_the_road_that_is_written_down(family):
    proof = proof_of(family)
    assert proof.road == ("hook" if family in BY_HOOK else "interface")
    assert (family in BY_HOOK) != (family in BY_INTERFACE)


def test_the_list_of_families_is_the_list_of_tiny_models():
    assert sorted(BY_HOOK + BY_INTERFACE) == sorted(FAMILIES)


@pytest.mark.parametrize("family", ["deberta-v2", "xlnet"])
def test_families_outside_the_interface_never_pass_for_edited(family):
    """By the interface an edit would do nothing, and nothing would say so: it must not be taken for one."""
    model, inputs = tiny(family), inputs_for(family)
    with torch.no_grad(), watching(model, uniform) as watch:
        silent = logits_of(model, inputs)
    assert watch.seen == [] and torch.equal(silent, logits_of(model, inputs))
    moved = logits_of(model, inputs, uniform, proven(model, inputs).road)
    assert not torch.allclose(moved, silent, atol=1e-4)


@pytest.mark.parametrize("family", BY_INTERFACE)
def test_under_our_name_the_model_is_its_plain_self(family):
    """Bit for bit what the library's own plain attention answers, padding and all."""
    model, inputs = tiny(family), inputs_for(family)
    with torch.no_grad():
        with watching(model, lambda call: None):
            ours = logits_of(model, inputs)
        model.set_attn_implementation("eager")
        assert torch.equal(ours, logits_of(model, inputs))


def test_without_the_mask_under_the_same_name_padding_would_be_attended(monkeypatch):
    """The trap itself: the proof must see it, because nothing else would."""
    model, inputs = tiny("bert"), inputs_for("bert")
    masks = transformers.AttentionMaskInterface._global_mapping
    monkeypatch.setitem(masks, NAME, lambda *args, **kwargs: None)
    with pytest.raises(Refusal, match="bit for bit"):
        proven(model, inputs)


def test_weights_given_back_are_differentiable():
    model, inputs = tiny("bert"), inputs_for("bert")
    leaves = []

    def leaf(call):
        leaves.append(call.weights.detach().requires_grad_())
        return leaves[-1]

    slopes = torch.autograd.grad(logits_of(model, inputs, leaf)[:, 0].sum(), leaves)
    assert len(slopes) == 3 and all(slope.abs().sum() > 0 for slope in slopes)
    step = 1e-3 * slopes[1]
    with torch.no_grad():
        here = float(logits_of(model, inputs, lambda c: leaves[c.number])[:, 0].double().sum())
        there = logits_of(model, inputs, lambda c: leaves[c.number] + (step if c.number == 1 else 0))
    gained = float(there[:, 0].double().sum()) - here
    assert gained == pytest.approx(float((step * slopes[1]).sum()), rel=0.05)


def test_layers_of_a_shared_module_are_told_apart():
    model, inputs = tiny("albert"), inputs_for("albert")
    assert len({id(m) for m in model.modules() if "Attention" in type(m).__name__}) == 1
    with torch.no_grad():
        one_at_a_time = [
            logits_of(model, inputs, lambda call, n=number: uniform(call) if call.number == n else None)
            for number in range(3)
        ]
    assert not torch.equal(one_at_a_time[0], one_at_a_time[1])
    assert not torch.equal(one_at_a_time[1], one_at_a_time[2])


def test_grouped_keys_are_repeated_as_the_family_repeats_them():
    model, inputs = tiny("llama"), inputs_for("llama")
    assert model.config.num_key_value_heads < model.config.num_attention_heads
    with torch.no_grad():
        same = logits_of(model, inputs, lambda call: call.weights.clone())
        model.set_attn_implementation("eager")
        assert torch.equal(same, logits_of(model, inputs))


@pytest.mark.parametrize("road", ["interface", "hook"])
def test_an_error_inside_leaves_the_model_as_it_was(road):
    family = "bert" if road == "interface" else "deberta-v2"
    model, inputs = tiny(family), inputs_for(family)
    own = logits_of(model, inputs)
    with pytest.raises(ZeroDivisionError), watching(model, lambda call: 1 / 0, road):
        model(**inputs)
    assert model.config._attn_implementation != NAME
    assert not any(module._forward_hooks for module in model.modules())
    assert torch.equal(logits_of(model, inputs), own)


@pytest.mark.parametrize(("family", "road"), [("bert", "interface"), ("deberta-v2", "hook")])
def test_a_watch_inside_a_watch_sees_alone(family, road):
    model, inputs = tiny(family), inputs_for(family)
    with torch.no_grad(), watching(model, uniform, road) as outer:
        bent = logits_of(model, inputs)
        with watching(model, lambda call: None, road) as inner:
            plain = logits_of(model, inputs)
        assert len(outer.seen) == len(inner.seen) == 3
        assert torch.equal(logits_of(model, inputs), bent) and not torch.equal(plain, bent)
    assert model.config._attn_implementation != NAME


@pytest.mark.parametrize(("family", "road"), [("bert", "interface"), ("deberta-v2", "hook")])
def test_threads_edit_one_model_without_meeting(family, road):
    model, inputs = tiny(family), inputs_for(family)
    edits = {
        "own": lambda call: call.weights.clone(),
        "uniform": uniform,
        "turned": lambda call: call.weights.flip(1),
    }
    with torch.no_grad():
        wanted = {name: logits_of(model, inputs, edit, road) for name, edit in edits.items()}
    wrong, together = [], threading.Barrier(len(edits))

    def work(name):
        together.wait()
        with torch.no_grad():
            found = [logits_of(model, inputs, edits[name], road) for _ in range(25)]
        wrong.extend(name for logits in found if not torch.equal(logits, wanted[name]))

    threads = [threading.Thread(target=work, args=(name,)) for name in edits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and model.config._attn_implementation != NAME


def test_a_model_without_attention_is_refused_by_family_with_what_works():
    config = transformers.FNetConfig(
        vocab_size=25, hidden_size=16, num_hidden_layers=2, intermediate_size=24, num_labels=3
    )
    model = transformers.FNetForSequenceClassification(config).eval()
    with pytest.raises(Refusal, match=r"fnet.*no attention.*What works: albert.*modernbert"):
        proven(model, {"input_ids": torch.tensor([[2, 5, 3]])})


def test_an_averaged_decision_is_of_all_positions():
    model = tiny("modernbert", classifier_pooling="mean")
    assert proven(model, inputs_for("modernbert")).rule == "mean"


def test_an_attention_without_effect_is_refused():
    model = tiny("bert")
    torch.nn.init.zeros_(model.bert.encoder.layer[1].attention.output.dense.weight)
    with pytest.raises(Refusal, match=r"the same answer whatever bert\.encoder\.layer\.1"):
        proven(model, inputs_for("bert"))


def test_a_layer_that_is_not_called_is_refused():
    model = tiny("bert")
    del model.bert.encoder.layer[2]
    with pytest.raises(Refusal, match="2 calls of attention"):
        proven(model, inputs_for("bert"))


def test_the_guide_has_the_table_of_families():
    """Generated: what the guide says of a family is what the proof says of its tiny model."""
    lines = ["| family | attention is replaced | layers | decided by |", "|---|---|---|---|"]
    for family in sorted(FAMILIES):
        proof = proof_of(family)
        across = len(proof.layers) < len(proof.paths)
        lines.append(
            f"| {family} | {'by hook' if proof.road == 'hook' else 'through the interface'} "
            f"| {'of the decoder, looking at the text' if across else 'all'} | {proof.rule} position |"
        )
    causal = [
        "| causal family | layers | heads share keys | a window | decided by |",
        "|---|---|---|---|---|",
    ]
    for family in sorted(CAUSAL):
        model = tiny_causal(family)
        proof, config = made_causal(family, model=model)[0].proof, model.config
        groups = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        shared = "in groups" if groups < config.num_attention_heads else "no"
        window = "yes" if getattr(config, "sliding_window", None) else "no"
        assert len(proof.layers) == config.num_hidden_layers
        causal.append(f"| {family} | all | {shared} | {window} | {proof.rule} position |")
    guide = Path(__file__).parents[1] / "docs" / "guides" / "your-model.md"
    for table in ("\n".join(lines), "\n".join(causal)):
        assert table in guide.read_text(), table
