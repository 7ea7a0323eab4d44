"""AMSGrad of a stack: every model goes where torch's Adam would take it alone."""

import pytest
import torch

from attentest.fleet.stacked_adam import StackedAdam

RATES, DECAY = (1e-3, 1e-1, 0.0), {"weight": 0.1, "bias": 0.0}


def gradients(step):
    """Some laid out as products leave them: the other way round."""
    rng = torch.Generator().manual_seed(step)
    weight = torch.randn(3, 4, 5, generator=rng, dtype=torch.float64).transpose(1, 2)
    return {"weight": weight, "bias": torch.randn(3, 5, generator=rng, dtype=torch.float64)}


@pytest.mark.parametrize("leaves", [None, 1])
def test_every_model_ends_where_it_would_alone(leaves):
    start = gradients(99)
    alone = [{name: torch.nn.Parameter(p[n].clone()) for name, p in start.items()} for n in range(3)]
    adams = [
        torch.optim.Adam(
            [{"params": [own[name]], "weight_decay": DECAY[name]} for name in own], lr=rate, amsgrad=True
        )
        for own, rate in zip(alone, RATES, strict=True)
    ]
    together = {name: p.clone(memory_format=torch.contiguous_format) for name, p in start.items()}
    rates = {name: torch.tensor(RATES, dtype=torch.float64) for name in together}
    adam, staying = StackedAdam(together, rates, DECAY), [0, 1, 2]
    for step in range(6):
        found = gradients(step)
        if step == 3 and leaves is not None:
            staying.remove(leaves)
            index = torch.tensor(staying)
            together = {name: p[index] for name, p in together.items()}
            adam.keep(together, index)
        for n in staying:
            for name, parameter in alone[n].items():
                parameter.grad = found[name][n].clone()
            adams[n].step()
        adam.step(list(found), [each[staying] for each in found.values()])
    for place, n in enumerate(staying):
        for name, parameter in alone[n].items():
            torch.testing.assert_close(together[name][place], parameter.detach(), rtol=1e-10, atol=1e-12)
            # What a fleet hands back to a training that goes on alone.
            kept = adams[n].state[parameter]
            torch.testing.assert_close(adam.state[name][0][place], kept["exp_avg"])
            torch.testing.assert_close(adam.state[name][2][place], kept["max_exp_avg_sq"])


def test_what_has_no_gradient_stays_and_keeps_no_moments():
    together = {name: p.contiguous() for name, p in gradients(0).items()}
    before = {name: p.clone() for name, p in together.items()}
    adam = StackedAdam(together, {name: torch.full((3,), 0.1) for name in together}, DECAY)
    adam.step(["bias"], [gradients(1)["bias"]])
    assert torch.equal(together["weight"], before["weight"])
    assert not torch.equal(together["bias"], before["bias"])
    assert not any(each.any() for each in adam.state["weight"])
