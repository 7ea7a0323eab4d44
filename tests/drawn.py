"""What a chart holds, as its JSON says."""

import json

import pytest


def spec(chart):
    return json.loads(chart.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def layers(chart):
    """The rows embedded in each layer; what all layers share stands above them."""
    whole = spec(chart)
    return [whole["datasets"][layer.get("data", whole.get("data"))["name"]] for layer in whole["layer"]]


def words(chart):
    return json.dumps(spec(chart), ensure_ascii=False)
