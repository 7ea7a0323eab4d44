"""What a page has below its head: texts, how good the tests are, everything else folded, and the source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attentest.auditing.page.head import Document, main_test
from attentest.auditing.page.html import block, folded, listed, paragraph, safe, separation, share, table
from attentest.gallery.heatmaps import Strip, pair_html
from attentest.notebook import number
from attentest.statistics.named import Named

COLD = 8  # words without weight in every strip, from which they are folded
NUMBERS = ("estimate", "95 % interval", "null", "n", "margin", "p (Holm)", "seconds")
TESTS = ("criterion", "test", "estimate", "95 % interval", "null", "margin", "p (Holm)", "p is of", "says")
FINDINGS = ("what", "texts", "estimate", "95 % interval", "null", "n", "left out")
GOOD = (
    "criterion",
    "wrongly supported, at most",
    "supported where it is true, at least",
    "area under the ROC curve",
    "models of known truth",
)
RANKED = ("most", "least")
AREA = (
    "An area of 1 means that the number of the test tells models whose answer is yes from models whose answer"
    " is no without error, 0.5 that it tells nothing; it is over models of all kinds, and “by definition”"
    " where the test restates what makes the answer a yes. A criterion whose rates miss the bar (at most"
    " 7.5 % wrongly supported, at least 90 % supported where it is true, for every construction) is shown and"
    " not judged."
)
NO_TEXT = "The texts were left out of this page, as whoever made it asked."


def texts(document: Document) -> str:
    """The texts where attention is most and least borne out, word by word."""
    shown = document["examples"]
    parts = ["<h2>Texts where attention is most and least borne out</h2>\n"]
    if not shown["measure"]:
        return "".join([*parts, paragraph(shown["why"])])
    parts.append(paragraph(shown["measure"]))
    if not shown["with_text"]:
        parts.append(paragraph(NO_TEXT))
    for rank in RANKED:
        parts.append(f"<h3>{rank.capitalize()} borne out</h3>\n")
        parts += [_text(one) for one in shown[rank]]
    return "".join(parts)


def _text(one: Mapping[str, Any]) -> str:
    label = f", labelled {one['label']}" if one["label"] else ""
    answer = f"predicted {one['predicted']} (probability {one['probability']:.2f}){label}"
    told = f"{one['id']}: {answer}. {one['says']}"
    return f'<div class="text">{paragraph(told)}{_strips(one) if one["words"] else ""}</div>\n'


def _strips(one: Mapping[str, Any]) -> str:
    """Attention beside what gradient and leave-one-out say, each as shares of its sum, on one scale."""
    rows = [Strip(name=name, weights=weights) for name, weights in one["strips"].items()]
    return pair_html(one["words"], rows, query=one["query"], collapse=COLD)


def calibration(document: Document) -> str:
    """How often each verdict is right of models whose truth is known."""
    kind = document["kind"]
    about = (
        f"This model is of the kind “{kind}”. These rates are from audits of models of that kind whose truth"
        " is known by construction."
        if kind
        else "Error rates are not known for this kind of model: verdicts rest on the margins alone, which"
        " come from other models whose truth is known."
    )
    rows = [_good(one) for one in document["criteria"]]
    return "".join(
        [
            "<h2>How good each test is</h2>\n",
            paragraph(about),
            table(GOOD, rows, stacked=True),
            paragraph(
                AREA,
                "faint",
            ),
        ]
    )


def _good(one: Mapping[str, Any]) -> tuple[object, ...]:
    rates, test = one["error_rates"], main_test(one)
    auc = None if test is None else test["auc"]
    counts = (
        "–"
        if rates is None
        else (f"{rates['no']} no, {rates['yes']} yes", f"{rates['audits']} audits of each")
    )
    wrong, right = (None, None) if rates is None else (rates["false_support"], rates["power"])
    area = separation(auc), "by definition" if test is not None and test["by_definition"] else ""
    return (one["asks"], one["verdict"]), share(wrong), share(right), area, counts


def everything(document: Document) -> str:
    """All the rest, each part folded."""
    overall = [one for one in document["findings"] if one["group"] == "overall"]
    others = [one for one in document["findings"] if one["group"] != "overall"]
    cards = document["cards"]
    titles = document["titles"]
    left = [(titles.get(key, key), why) for key, why in document["left_out"].items()]
    seconds = [(titles.get(key, key), f"{spent:.1f}") for key, spent in document["seconds"].items()]
    parts = [
        folded(
            f"Every test behind the verdicts ({sum(len(one['tests']) for one in document['criteria'])})",
            table(TESTS, _tests(document["criteria"]), numbers=NUMBERS),
        ),
        folded(
            f"All findings over all texts ({len(overall)})",
            table(FINDINGS, (_finding(one, cards) for one in overall), numbers=NUMBERS),
        ),
        folded(
            f"All findings by class, length and control ({len(others)})",
            table(FINDINGS, (_finding(one, cards) for one in others), numbers=NUMBERS),
        ),
        folded(f"What was not measured, and why ({len(left)})", table(("what", "why"), left, stacked=True)),
        folded(
            f"The ids of the {document['texts']} texts, in their order",
            paragraph(", ".join(map(str, document["ids"]))),
        ),
        folded(
            f"How much was drawn at random ({len(document['drawn'])})",
            "".join(map(paragraph, draws(document))),
        ),
        folded("Seconds", table(("question", "seconds"), seconds, numbers=NUMBERS)),
        folded(f"What each measure means ({len(cards)})", "".join(_card(*item) for item in cards.items())),
    ]
    return "<h2>Everything else</h2>\n" + "".join(parts)


def draws(document: Document) -> list[str]:
    """Of each answer that was sampled to a precision, how many draws it took, in a sentence."""
    titles = document["titles"]
    return [f"{titles[question]}: {_drawn(mean)}" for question, mean in document["drawn"].items()]


def _drawn(mean: Mapping[str, float]) -> str:
    """Means over texts; where every part was asked about, nothing was drawn and nothing is left to chance."""
    parts = f"LIME and Shapley values took {mean['pairs']:.1f} random pairs of parts of a text"
    if not mean["pairs"]:
        parts = "LIME and Shapley values asked about every part of every text, none at random"
    elif math.isfinite(mean["error"]):
        parts += f", after which their standard error is {mean['error']:.2f} of their spread"
    return f"{parts}; integrated gradients took {mean['steps']:.1f} steps (means over texts)."


def _tests(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[object, ...]]:
    """Every test of every criterion; one that has no answer says why instead."""
    for one in criteria:
        for test in one["tests"]:
            between = f"[{number(test['low'])}, {number(test['high'])}]"
            p = "< 0.001" if test["p"] < 0.001 else number(test["p"])
            said = f"{test['verdict']}: {test['reason']}" if test["reason"] else test["verdict"]
            name = test["title"], f"{test['experiment']}/{test['measure']}"
            numbers = number(test["estimate"]), between, number(test["null"]), number(test["margin"]), p
            yield one["criterion"], name, *numbers, test["p_tests"], said


def _finding(one: Mapping[str, Any], cards: Mapping[str, Any]) -> tuple[object, ...]:
    """A finding by its title, with its direction and its name below."""
    named = Named.of(one["measure"])
    card = cards[f"{one['experiment']}/{named.name}"]
    title = f"{card['measure']}, at {named.setting}" if named.setting else card["measure"]
    about = f"{card['direction']} ({one['experiment']}/{one['measure']})"
    between = f"[{number(one['low'])}, {number(one['high'])}]"
    left = f"{one['excluded']}: {one['why']}" if one["excluded"] else "0"
    group = "all" if one["group"] == "overall" else one["group"]
    return (title, about), group, number(one["estimate"]), between, number(one["null"]), one["n"], left


def _card(name: str, card: Mapping[str, Any]) -> str:
    """One measure: what it is, its null, and where it was published."""
    kept = ("formula", "direction", "null", "unit", "paper", "section", "undefined_when")
    told = [(key.replace("_", " "), card[key]) for key in kept]
    told += [("how good it is", card["how_good"])] if card["how_good"] else []
    return folded(f"{card['measure']} ({name})", listed(told))


def source(document: Document) -> str:
    """Which model, which texts, which program, when; how to repeat it, and how to cite it."""
    made = document["provenance"]
    return "".join(
        [
            "<h2>Cite this audit, or repeat it</h2>\n",
            listed(made["facts"].items()),
            paragraph("To run it again:") + block(made["command"]) if made["command"] else "",
            paragraph("To cite it:"),
            paragraph(made["citation"]),
            block(made["bibtex"]),
            f'<p class="faint">Made by attentest {safe(document["version"])}.</p>\n',
        ]
    )
