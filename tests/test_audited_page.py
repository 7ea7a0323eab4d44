"""The page of an audit in a real Chromium: readable in light and dark, on a telephone and on a desk."""

import pytest

from attentest.auditing.page import page
from attentest.claims.criterion import QUESTIONS, SCOPE, VERDICTS
from tests.browser import patient_page

pytestmark = pytest.mark.browser
FINDING = {"experiment": "permutation", "low": 0.1, "high": 0.3, "null": 0.0, "n": 500}
FINDING |= {"measure": "median-output-change", "estimate": 0.2, "excluded": 3, "why": "a text of one unit"}
CARD = dict.fromkeys(
    ("formula", "direction", "null", "unit", "paper", "section", "undefined_when"), "as said"
)
CARD |= {"how_good": "AUC 0.98 for pointer"}
TEST = {"experiment": "permutation", "measure": "median-output-change", "margin": 0.05, "estimate": 0.2}
TEST |= {"low": 0.1, "high": 0.3, "null": 0.0, "p": 0.0123, "reason": "", "p_tests": "the hypothesis"}
UNTOLD = {
    **TEST,
    **dict.fromkeys(("estimate", "low", "high", "null", "margin", "p"), float("nan")),
    "p_tests": "",
    "reason": "no marks",
}
DOCUMENT = {
    "model": "a-folder/" + "with-a-long-name" * 4,
    "attention": "bert: the deciding position's row in layer 5 of 0 to 5, the mean over heads, over words",
    "budget": "quick",
    "texts": 500,
    "of": 1725,
    "ids": [f"row-{n}" for n in range(500)],
    "version": "0.1.0",
    "scope": SCOPE,
    "questions": QUESTIONS,
    "chosen": {"sentence": "Head 3 was chosen on other texts."},
    "criteria": [
        {
            "criterion": f"criterion {n}",
            "asks": "Is it so?",
            "question": "pointer",
            "rates": "Of models of this kind, at most 3 %. " * 3,
            "verdict": verdict,
            "sentence": "A sentence with its numbers. " * 9,
            "tests": [{**TEST, "verdict": verdict}, {**UNTOLD, "verdict": "undecided"}],
        }
        for n, verdict in enumerate(VERDICTS)
    ],
    "findings": [{**FINDING, "group": group} for group in ("overall", "label=positive", "untrained")],
    "left_out": {"information": "The budget leaves it out. " * 4},
    "seconds": {"permutation": 1.25},
    "cards": {"permutation/median-output-change": {"measure": "Median output change", **CARD}},
}
CONTRAST = """cell => {
  const light = colour => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map(Number).map(part => part / 255)
      .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
  }
  const style = getComputedStyle(cell)
  const both = [light(style.color), light(style.backgroundColor)].sort((one, other) => other - one)
  return (both[0] + 0.05) / (both[1] + 0.05)
}"""


@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_anywhere(browser, tmp_path, scheme, width):
    (tmp_path / "audit.html").write_text(page(DOCUMENT), encoding="utf-8")
    with patient_page(browser, viewport={"width": width, "height": 900}, color_scheme=scheme) as shown:
        complaints = []
        shown.on("console", lambda message: complaints.append(message.text))
        shown.goto((tmp_path / "audit.html").as_uri())
        assert shown.evaluate("document.documentElement.scrollWidth") <= width, "only tables move sideways"
        paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        for kind in ("body", *(f"td.{verdict.replace(' ', '-')}" for verdict in VERDICTS)):
            assert shown.locator(kind).first.evaluate(CONTRAST) >= 4.5, kind
        assert shown.locator("table").count() == shown.locator(".wide > table").count() == 7
        assert not complaints


def test_every_test_says_what_it_says_itself():
    """A criterion that is not supported may have tests that are."""
    written = page(DOCUMENT)
    assert written.count("<td>permutation/median-output-change</td>") == 2 * len(VERDICTS)
    assert written.count("<td>undecided: no marks</td>") == len(VERDICTS)
    for verdict in VERDICTS:
        numbers = '<td class="number">0.050</td><td class="number">0.012</td><td>the hypothesis</td>'
        assert f"{numbers}<td>{verdict}</td>" in written
    assert "Head 3 was chosen" in written and SCOPE in written and "AUC 0.98" in written
    assert written.count("Is it so? (pointer)") == len(VERDICTS)
    assert "nan" not in written and "&lt; 0.001" not in written
    surely = {**DOCUMENT["criteria"][0], "tests": [{**TEST, "verdict": "supported", "p": 1e-9}]}
    assert '<td class="number">&lt; 0.001</td>' in page({**DOCUMENT, "criteria": [surely]})
