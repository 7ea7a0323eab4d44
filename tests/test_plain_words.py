"""An audit in plain words: headlines, one sentence with one number per criterion, where it comes from."""

import math
import re
from dataclasses import replace

import pytest

import attentest as at
from attentest.auditing.provenance import call, digest_of_texts, provenance, without_path
from attentest.auditing.questions import QUESTIONS
from attentest.auditing.titles import TITLES, title_of
from attentest.claims.calibrated import calibrated_tests, error_rates
from attentest.claims.criteria import CRITERIA
from attentest.claims.in_words import IN_WORDS
from attentest.claims.judgement import Answer, Judgement
from attentest.claims.plain import headline, in_one_sentence, main_answer, worded
from attentest.claims.verdict import Verdict
from tests.planted_models import planted_texts

SUPPORTED, NOT_SUPPORTED, UNDECIDED = Verdict.SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.UNDECIDED
NOT_JUDGED, NOT_MEASURED = Verdict.NOT_JUDGED, Verdict.NOT_MEASURED

NAMED = {criterion.name: criterion for criterion in CRITERIA}
ANSWERED = {"margin": 0.1, "estimate": 0.25, "low": 0.2, "high": 0.3, "null": 0.0, "effect": 0.25, "n": 50}


def judgement(name, verdict, **told):
    criterion = NAMED[name]
    answers = [Answer(test=test, verdict=verdict, **{**ANSWERED, **told}) for test in criterion.tests]
    return Judgement(criterion=criterion, verdict=verdict, answers=answers)


def together(**verdicts):
    """Judgements of one criterion each of the two questions, and more of where it points."""
    named = {"pointer": "agrees with importances", "more": "necessary", "mechanism": "used"}
    return headline([judgement(named[name], verdict) for name, verdict in verdicts.items()])


@pytest.mark.parametrize(
    ("verdicts", "says", "advises"),
    [
        (
            (SUPPORTED, SUPPORTED, SUPPORTED),
            "is a reliable pointer to.*, and the answers depend",
            "may be shown",
        ),
        (
            (SUPPORTED, SUPPORTED, NOT_SUPPORTED),
            "reliable pointer.*, but the answers hardly depend",
            "hardly changes",
        ),
        (
            (NOT_SUPPORTED, UNDECIDED, SUPPORTED),
            "is no reliable pointer.*, but the answers depend",
            "Do not show",
        ),
        (
            (NOT_SUPPORTED, NOT_SUPPORTED, NOT_SUPPORTED),
            "is no reliable.*, and the answers hardly",
            "Do not show",
        ),
        ((SUPPORTED, UNDECIDED, SUPPORTED), "by some criteria and not by all", "only together with"),
        (
            (UNDECIDED, UNDECIDED, UNDECIDED),
            "do not decide whether attention .*, and these texts",
            "Until it is",
        ),
        ((NOT_JUDGED, NOT_MEASURED, SUPPORTED), "cannot judge whether attention", "Until it is decided"),
        ((SUPPORTED, NOT_JUDGED, NOT_JUDGED), "reliable pointer.*, but it cannot be judged", "may be shown"),
    ],
)
def test_the_headline_says_what_the_verdicts_say(verdicts, says, advises):
    said = together(**dict(zip(("pointer", "more", "mechanism"), verdicts, strict=True)))
    assert re.search(says, said.sentence) and advises in said.advice
    for verdict in set(verdicts):
        assert re.search(rf"\d {verdict}", said.counts)
    assert said.sentence.endswith(".") and "  " not in said.sentence


def test_what_was_not_judged_neither_helps_nor_harms():
    both = together(pointer=SUPPORTED, more=NOT_JUDGED, mechanism=SUPPORTED)
    assert (both.pointer, both.mechanism) == ("yes", "yes") and "1 not judged" in both.counts
    assert together(pointer=UNDECIDED, more=NOT_SUPPORTED, mechanism=UNDECIDED).pointer == "no"


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("estimate", [0.25, -0.25])
def test_a_criterion_is_one_sentence_with_one_number(name, estimate):
    sign = NAMED[name].tests[0].sign
    one = judgement(name, SUPPORTED, estimate=estimate, effect=sign * estimate, reason="")
    said = in_one_sentence(one)
    numbers = re.findall(r"-?\d+(?:\.\d+)?", said.split("(0:")[0].split("(Jensen")[0])
    assert numbers in (["0.25"], ["-0.25"], ["25"], ["-25"]), said
    assert said.startswith(NAMED[name].says[0].rstrip(".")) and said.endswith(".")
    if numbers[0] in ("25", "0.25") and estimate < 0:
        assert re.search("less|below|more of|less far", said), "the sign is a word"
    assert not re.search(r"tau|auprc|jsd|-excess|/", said), "no codes"


def test_the_sign_of_a_number_is_a_word():
    def said(name, estimate):
        test = NAMED[name].tests[0]
        return in_one_sentence(judgement(name, NOT_SUPPORTED, estimate=estimate, effect=test.sign * estimate))

    assert "falls by 12 points more than" in said("necessary", 0.12)
    assert "falls by 3.0 points less than" in said("necessary", -0.03)
    assert "keep 12 points more of" in said("sufficient", -0.12), "sufficiency is to be low"
    assert "keep 12 points less of" in said("sufficient", 0.12)
    assert "precision 0.30 above" in said("plausible", 0.3) and "0.30 below" in said("plausible", -0.3)
    assert "0.30 farther from it" in said("unique", 0.3) and "0.30 less far" in said("unique", -0.3)
    assert said("used", 0.002).startswith("Permuting the weights moves 0.2 % of")
    assert said("used", 0.002).endswith(", which falls short of the margin.")


def test_the_number_is_of_the_test_that_decided():
    one = judgement("used", NOT_SUPPORTED)
    first, second = one.answers
    mixed = replace(one, answers=[replace(first, verdict=SUPPORTED), second])
    assert main_answer(mixed) is second and worded(mixed)["main"] == 1
    absent = replace(first, verdict=NOT_MEASURED, estimate=math.nan, reason="the budget leaves it out")
    nothing = replace(one, verdict=NOT_MEASURED, answers=[absent, absent])
    assert main_answer(nothing) is None and worded(nothing)["main"] is None
    assert in_one_sentence(nothing) == "The budget leaves it out."


def test_every_test_of_every_criterion_has_words_and_what_is_known_of_it():
    names = {test.name for criterion in CRITERIA for test in criterion.tests}
    assert names == set(IN_WORDS) and len({words.title for words in IN_WORDS.values()}) == len(names)
    for criterion in CRITERIA:
        one = worded(
            replace(
                judgement(criterion.name, SUPPORTED), error_rates=error_rates(criterion.name, "transformer")
            )
        )
        for test, told in zip(criterion.tests, one["tests"], strict=True):
            known = calibrated_tests()[test.name]
            assert told["largest_no"] == pytest.approx(known.largest_no, nan_ok=True)
            assert told["auc"]["auc"] == getattr(known, criterion.question).auc
    for known in calibrated_tests().values():
        if math.isfinite(known.margin):  # the margin lies in the middle, or at the first above the second
            assert known.largest_no <= known.margin + 0.005 and math.isfinite(known.smallest_yes)


def test_questions_and_what_was_left_out_have_titles():
    assert set(TITLES) == set(QUESTIONS)
    assert (
        title_of("adversary: emax-jsd-exact@0.01 and 15 more") == "Adversarial divergence, exact, and 15 more"
    )
    assert title_of("permutation") == "Permuted weights" and title_of("the untrained control")[0] == "T"


def test_a_model_is_called_by_its_name_and_not_by_where_it_lies(tmp_path, monkeypatch):
    (tmp_path / "models" / "bert").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert without_path(str(tmp_path / "models" / "bert")) == without_path("models/bert") == "bert"
    assert without_path("./gone/bert") == without_path("~/bert/") == "bert"
    assert without_path("org/bert-base") == "org/bert-base" and without_path("mine:factory") == "mine:factory"
    assert without_path("a tiny BERT\0" + "x" * 5000).startswith("a tiny BERT")


def test_the_digest_of_texts_knows_every_word_and_their_order():
    texts = planted_texts(4)
    whole = digest_of_texts(texts)
    assert whole == digest_of_texts(planted_texts(4)) and whole != digest_of_texts(texts[::-1])
    for other in ({"id": "x"}, {"label": "x"}, {"tokens": ("x",)}, {"query": ("x",)}, {"text": "x"}):
        assert digest_of_texts([replace(texts[0], **other), *texts[1:]]) != whole


MADE = {"date": "2026-11-19T14:50:08Z", "versions": {"torch": "2"}, "device": "cpu", "dtype": "float32"}
MADE |= {"texts_sha256": "a" * 64, "command": ""}
ABOUT = {"model": "a_{model} \\ 100%", "attention": "its row", "parameters": "0" * 64, "budget": "quick"}
ABOUT |= {"texts": 2, "of": 9, "ids": ["row-1", "row-2"], "settings": {"seed": 3}, "version": "0.1.0"}
ABOUT |= {"data": {"form": "data frame", "name": None, "columns": {"text": "review"}, "sha256": None}}


def test_a_citation_names_model_texts_and_versions():
    made = provenance(ABOUT, MADE)
    assert made["facts"]["Columns"] == "text review" and "Rows of the data (sha256)" not in made["facts"]
    assert made["facts"]["Texts"] == "2 of 9: row-1, row-2" and made["facts"]["Device"] == "cpu, float32"
    for part in ("parameters 000000000000", "sha256 aaaaaaaaaaaa", "seed 3", "2026-11-19", "attentest 0.1.0"):
        assert part in made["citation"]
    assert r"a\_\{model\} \textbackslash{} 100\%" in made["bibtex"], "LaTeX prints the name as it is"
    assert made["bibtex"].startswith("@misc{attentest-audit-00000000-2026-11-19,\n")


def test_a_call_says_what_is_not_the_default():
    settings = {"budget": "quick", "seed": 0, "texts": None, "attention": {"head": 1}}
    assert call(settings, at.audit) == "at.audit(model, data, budget='quick', attention={'head': 1})"
