"""A small calibration: criteria support what is so by construction, and nothing that is not.

One construction of each quadrant of pointer and mechanism, and two whose states hold other words, 50 texts
each. Rules that are known to be wrong go through the same check and must fail it.
"""

from dataclasses import replace

import pytest

from attentest import load_corpus
from attentest.auditing.questions import QUESTIONS
from attentest.auditing.run import audited
from attentest.claims import criteria
from attentest.claims.calibrated import margins as committed
from attentest.claims.criteria import Asked, judged
from attentest.model.constructions import CONSTRUCTIONS
from tests.constructed_models import CORPUS, model_of
from tests.observed import with_traded_null

NAMES = ("graded", "random-word", "idle-sum", "idle-random-word", "beside", "idle-running")
ASKED = ("importance", "permutation", "ablation", "erasure")
MUST = (
    "agrees with importances",
    "necessary",
    "used",
)  # where the answer is yes, 50 texts are enough for these
UNIFORM = Asked("ablation", "uniform-output-change")
TRADED, GIVEN = (Asked("importance", f"tau-loo-excess{null}") for null in ("-traded", ""))


@pytest.fixture(scope="module")
def audits():
    corpus, found = load_corpus(CORPUS.format("")), {}
    asked = QUESTIONS["importance"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(QUESTIONS, "importance", replace(asked, conclude=beside_traded(asked.conclude)))
        for name in NAMES:
            model, _ = model_of(corpus, f"constructed({name})")
            audit = audited(model, corpus.test[:50], "quick", questions=ASKED, searches=False)
            found[name] = audit.frame, model.capabilities.kind
    return found


def beside_traded(conclude):
    """Concludes leave-one-out's excess over the first edition's null, too, whose columns the rows have."""

    def both(rows, **about):
        traded = conclude(with_traded_null(rows, "loo"), **about)
        old = (replace(one, measure=TRADED.measure) for one in traded if one.measure == GIVEN.measure)
        return [*conclude(rows, **about), *old]

    return both


def errors(audits, *, by_kind=False, **settings):
    """What is supported and should not be, rejected and should not be, or open and should be supported."""
    found = []
    for name, (frame, kind) in audits.items():
        for one in judged(frame, kind=kind if by_kind else None, **settings):
            answer, wanted = getattr(CONSTRUCTIONS[name], one.criterion.question), one.criterion.name in MUST
            wrong = {"supported": not answer, "not supported": answer}
            if wrong.get(one.verdict, answer and wanted and not by_kind):
                found.append((name, one.criterion.name, one.verdict))
    return found


def test_criteria_say_what_is_so_by_construction(audits):
    assert {(of.pointer, of.mechanism) for of in map(CONSTRUCTIONS.get, NAMES)} == {
        (pointer, mechanism) for pointer in (True, False) for mechanism in (True, False)
    }
    assert {kind for _, kind in audits.values()} == {"without context", "contextual"}
    assert errors(audits) == []
    assert errors(audits, by_kind=True) == []


def changed(monkeypatch, name, *tests):
    """The criteria with other tests for one of them."""
    mutants = [replace(one, tests=tests) if one.name == name else one for one in criteria.CRITERIA]
    monkeypatch.setattr(criteria, "CRITERIA", tuple(mutants))


def test_necessary_must_not_demand_that_weights_matter(audits, monkeypatch):
    """As in the first edition: then words that matter are rejected where weights are idle."""
    changed(monkeypatch, "necessary", Asked("erasure", "comprehensiveness-excess"), UNIFORM)
    margins = {"erasure/comprehensiveness-excess": 0.05, UNIFORM.name: 0.05}
    found = errors(audits, margins=margins)
    assert {("idle-sum", "necessary", "not supported"), ("idle-running", "necessary", "not supported")} <= {
        *found
    }


def test_the_null_of_leave_one_out_must_not_trade_values(audits, monkeypatch):
    """As in the first edition: where states hold other words, that null is far too high."""
    assert replace(GIVEN, shown=True) in criteria.CRITERIA[0].tests
    for test, fails in ((TRADED, {"idle-sum", "idle-running"}), (GIVEN, set())):
        changed(monkeypatch, "agrees with importances", test)
        found = errors(audits, margins={**committed(), test.name: 0.1})
        said = {name for name, criterion, _ in found if criterion == "agrees with importances"}
        assert said & {"idle-sum", "idle-running"} == fails


def test_a_difference_from_zero_is_not_enough(audits, monkeypatch):
    """Without margin and correction the rounding of idle weights is significant."""
    monkeypatch.setattr(criteria, "holm", lambda p: p)
    found = errors(audits, margins=dict.fromkeys(committed(), 0.0))
    assert ("idle-sum", "used", "supported") in found and ("idle-random-word", "used", "supported") in found


def test_labels_that_are_exchanged_are_noticed(audits):
    """The check itself can fail: a pointer's audit under the name of one that points elsewhere."""
    swapped = {"random-word": audits["graded"], "graded": audits["random-word"]}
    said = {(name, criterion) for name, criterion, _ in errors(swapped)}
    assert {("random-word", "necessary"), ("graded", "necessary")} <= said
