"""Where a model computes: devices that are not there, models that were spread by `device_map`, memory."""

import pytest
import torch

from attentest.auditing.api import audit
from attentest.auditing.run import audited
from attentest.auditing.subject import on_the_bench
from attentest.foreign.loading import adopt
from attentest.foreign.placement import device_named, is_spread, placed
from attentest.refusal import Refusal
from tests.families import LABELS, made, tiny, tokenizer
from tests.outside_texts import texts

ABSENT = [
    pytest.param(name, marks=pytest.mark.skipif(there(), reason=f"there is {name}"))
    for name, there in (
        ("cuda", torch.cuda.is_available),
        ("cuda:1", torch.cuda.is_available),
        ("mps", torch.backends.mps.is_available),
    )
]


@pytest.mark.parametrize("name", ABSENT)
def test_a_device_that_is_not_there_is_refused_before_anything_is_computed(name):
    with pytest.raises(Refusal, match=f"device='{name}'.*torch finds none.*device='cpu'"):
        audit(tiny(), texts(4), tokenizer=tokenizer(), device=name)
    with pytest.raises(Refusal, match="torch finds none"):
        device_named(name)


def test_a_model_that_was_placed_as_a_whole_can_be_moved_and_one_that_was_spread_stays():
    model = tiny()
    model.hf_device_map = {"": "cpu"}
    assert not is_spread(model) and placed(model, "cpu", None) is model
    model.hf_device_map = {"bert.embeddings": "cpu", "bert.encoder": "disk"}
    assert is_spread(model) and placed(model, "auto", None) is model
    with pytest.raises(Refusal, match=r"spread over several devices \(device_map\).*Leave the device out"):
        placed(model, "cpu", None)
    adopted, batch = made(model=model)
    assert adopted.drawn_anew() is None, "a twin would be on one device"
    with torch.no_grad():
        assert adopted.decide(adopted.read(batch)).isfinite().all()


def test_an_audit_without_enough_memory_asks_fewer_texts_at_a_time_and_ends_as_before(
    monkeypatch,
):
    model, sizes = tiny(), []
    forward = type(model).forward

    def small(self, input_ids, **more):
        if len(input_ids) > 40:
            raise torch.cuda.OutOfMemoryError("a stand-in for a GPU")
        sizes.append(len(input_ids))
        return forward(self, input_ids, **more)

    bench, asked = on_the_bench(adopt(model, tokenizer(), labels=LABELS)), {"questions": ("importance",)}
    plain = audited(bench, texts(8), "quick", **asked).frame
    monkeypatch.setattr(type(model), "forward", small)
    found = audited(bench, texts(8), "quick", **asked).frame
    assert max(sizes) <= 40, "fewer texts at a time have fewer parts"
    for column in ("measure", "group"):
        assert len(found) and found[column].tolist() == plain[column].tolist()
