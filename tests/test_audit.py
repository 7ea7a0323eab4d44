"""An audit from end to end: planted models and the papers'; what is asked, shown and left out."""

import html.parser
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import attentest as at
from attentest.auditing.page.model_card import escaped
from attentest.auditing.questions import BUDGETS, QUESTIONS, ablated
from attentest.auditing.rankings import agreed, erased, marked
from attentest.auditing.run import audited, spread
from attentest.auditing.subject import audited_subject, on_the_bench, subject_of, untrained
from attentest.auditing.titles import TITLES
from attentest.claims.calibrated import UNKNOWN
from attentest.claims.criteria import CRITERIA, judged
from attentest.claims.criterion import QUESTIONS as QUESTIONS_ASKED
from attentest.claims.criterion import SCOPE
from attentest.claims.judgement import NEVER
from attentest.claims.plain import in_one_sentence
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.sampled import Precision
from attentest.evidence.importances.traded_importance import traded_gradient
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.permutation.observe import Permutation
from attentest.foreign.adapter import AdaptedModel
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from attentest.statistics.comparison import kendall, total_variation
from attentest.statistics.record import COLUMNS
from tests.planted_models import LABELS, Planted, planted_texts
from tests.toys import toy_corpus, toy_model

SMALL = Precision(error=1.0, first=4, most=4, steps=3)


@pytest.fixture(scope="module")
def honest():
    return at.audit(Planted(honest=True), planted_texts(), labels=LABELS, budget="quick")


@pytest.fixture(scope="module")
def idle():
    return at.audit(Planted(honest=False), planted_texts(), labels=LABELS, budget="quick")


def verdicts(result):
    return {one.criterion.name: one.verdict for one in result.criteria}


def test_where_attention_is_the_explanation_it_is_supported(honest):
    named = ("agrees with importances", "necessary", "sufficient", "plausible", "used")
    # The exact adversary needs an affine decision, and quick asks nothing of information.
    wanted = {**dict.fromkeys(named, "supported"), "unique": "not applicable", "informative": "not measured"}
    assert verdicts(honest) == wanted
    assert honest.kind is None and {one.rates for one in honest.criteria} == {UNKNOWN, NEVER}
    said = {one.criterion.name: one.sentence for one in honest.criteria}
    assert "not affine" in said["unique"] and "'quick' leaves it out" in said["informative"]


def test_where_it_is_not_nothing_is(idle):
    """Of all that is asked of a pointer. The output depends on these weights all the same."""
    found = {one.criterion: one.verdict for one in idle.criteria}
    pointers = {criterion.name: said for criterion, said in found.items() if criterion.question == "pointer"}
    assert "supported" not in pointers.values()
    for name in ("agrees with importances", "necessary", "plausible"):
        assert pointers[name] == "not supported"


def test_without_rationales_plausibility_is_not_measured():
    """Nothing is wrong with the model: the user gave nothing to measure it with."""
    texts = planted_texts(24, rationales=False)
    found = audited(on_the_bench(at_adapter()), texts, "quick", questions=("plausibility",))
    assert found.skipped == {"plausibility": found.left_out["plausibility"]}
    said = judged(found.frame, absent=found.left_out, skipped=found.skipped)
    plausible = next(one for one in said if one.criterion.name == "plausible")
    assert plausible.verdict == "not measured" and "rationales" in plausible.sentence


@pytest.mark.parametrize(
    ("encoder", "wanted"),
    [
        *((name, "without context") for name in ("identity", "average", "mlp")),
        *((name, "contextual") for name in ("bilstm", "cnn", "transformer")),
        ("han-bigru", None),
    ],
)
def test_the_kind_of_a_model_of_ours(encoder, wanted):
    corpus = toy_corpus()
    assert toy_model(corpus, encoder=encoder).capabilities.kind == wanted
    assert toy_model(corpus, encoder="bilstm", attention="last-state").capabilities.kind is None
    assert at_adapter().capabilities.kind is None


def test_what_is_left_out_has_its_reason(honest):
    assert set(honest.audit.seconds) == set(QUESTIONS) - set(BUDGETS["quick"].without)
    for name in BUDGETS["quick"].without:
        assert "'quick' leaves it out" in honest.left_out[name] and name not in set(
            honest.findings["experiment"]
        )
    assert (
        "'full' has it" in honest.left_out["information"]
        and "'standard' has it" in honest.left_out["removal"]
    )
    assert "shuffled" in honest.left_out["the control with shuffled labels"]
    assert honest.left_out["the untrained control"]
    assert not [name for name in honest.left_out if name.startswith("importance: ")]
    (exact,) = (name for name in honest.left_out if name.startswith("adversary: emax-jsd-exact@0.01"))
    assert "not affine" in honest.left_out[exact]


def test_findings_are_of_the_studies_schema_and_the_same_again(honest):
    assert {
        name: str(dtype) for name, dtype in honest.findings.dtypes.items() if str(dtype) != "str"
    }.items() <= {name: {"str": "object"}.get(dtype, dtype) for name, dtype in COLUMNS.items()}.items()
    assert list(honest.findings.columns) == list(COLUMNS) and (honest.findings["n"] > 0).all()
    again = at.audit(Planted(honest=True), planted_texts(), labels=LABELS, budget="quick")
    assert again.findings.equals(honest.findings)


def test_a_number_of_the_audit_is_the_number_of_the_study():
    """Twin: the experiment itself, asked by hand with the same draws, concluded by the study's function."""
    corpus = toy_corpus(lengths=tuple(range(1, 30)))
    model = toy_model(corpus, encoder="mlp")
    found = audited(model, corpus.test, "quick").frame
    at_question = list(QUESTIONS).index("permutation")
    rng, rows = np.random.default_rng([0, at_question]), []
    trained = audited_subject(model, corpus.test)
    for each in (trained, subject_of(untrained(model), trained.texts, "untrained")):
        draw = torch.Generator().manual_seed(int(rng.integers(2**63)))
        rows += list(Permutation(permutations=BUDGETS["quick"].permutations).ask(each, draw))
    conclude = CONCLUSIONS["permutation"].conclude
    twin = conclude(
        pd.DataFrame(rows).assign(seed=0), mode="corrected", rng=np.random.default_rng([0, at_question, 1])
    )
    own = found[(found["experiment"] == "permutation") & (found["group"] == "overall")]
    wanted = {
        one.measure: (one.estimate, one.low, one.high, one.null) for one in twin if one.group == "overall"
    }
    assert wanted == {row.measure: (row.estimate, row.low, row.high, row.null) for row in own.itertuples()}


def test_the_papers_models_answer_every_question(planted, monkeypatch):
    cheap = replace(BUDGETS["full"], permutations=10, draws=2, searched=4, steps=20, precision=SMALL)
    monkeypatch.setitem(BUDGETS, "full", cheap)
    corpus = replace(planted, train=planted.train[:100])
    model = at.train(corpus, encoder="mlp", attention="additive", projection="softmax", seed=0, epochs=1)
    found = audited(model, corpus.test[:60], "full")
    assert set(found.seconds) == set(QUESTIONS) and not set(found.left_out) & set(QUESTIONS)
    assert "the untrained control" not in found.left_out
    frame = found.frame
    assert set(frame["experiment"]) == set(QUESTIONS)
    for name in set(QUESTIONS) - {"performance"}:
        assert "untrained" in set(frame[frame["experiment"] == name]["group"])
    judgements = judged(frame, kind=model.capabilities.kind)
    measured = [answer.measured for one in judgements for answer in one.answers]
    assert all(measured), "every test of every criterion can be answered"
    assert any("without context" in one.rates for one in judgements)


def test_rows_of_agreement_are_taus_of_one_text_each():
    model, texts = on_the_bench(at_adapter()), planted_texts(6)
    subject = audited_subject(model, texts)
    for row in agreed(subject, SMALL, torch.Generator().manual_seed(0)):
        alone = model.split([text for text in texts if text.id == row["id"]])
        reading = model.read(alone.batch([0]))
        left = leave_one_out(model, reading).change[0].detach().numpy()
        tau = kendall(reading.weights[0].detach().numpy(), left)[0]
        assert row["leave-one-out"] == pytest.approx(tau, abs=0.06)  # rounding may tie or part two units


def at_adapter():
    return AdaptedModel(Planted(honest=True), LABELS)


def test_rows_of_erasure_are_texts_read_again():
    """Twin: words are deleted from the example, and the rest is read as any other text."""
    model, texts = at_adapter(), planted_texts(5)
    with torch.no_grad():
        for row in erased(audited_subject(model, texts), 2, torch.Generator().manual_seed(0)):
            text = next(text for text in texts if text.id == row["id"])
            reading = model.read(model.split([text]).batch([0]))
            own = distribution(model.decide(reading))[0]
            order = np.argsort(-reading.weights[0].numpy(), kind="stable")
            lost = {"comprehensiveness": [], "sufficiency": []}
            for share in (1, 5, 10, 20, 50):
                count = max(1, len(order) * share // 100)
                for name, kept in (("comprehensiveness", order[count:]), ("sufficiency", order[:count])):
                    rest = replace(text, tokens=tuple(text.tokens[place] for place in sorted(kept)))
                    after = distribution(model.decide(model.read(model.split([rest]).batch([0]))))[0]
                    lost[name].append(float(own[own.argmax()] - after[own.argmax()]))
            for name, drops in lost.items():
                assert row[name] == pytest.approx(np.mean(drops), abs=1e-5)


def test_rows_of_ablation_are_decisions_under_other_weights():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="bilstm")
    twin = untrained(model)
    subject = audited_subject(model, corpus.test)
    rows = {row["id"]: row for row in ablated(subject, twin)}
    reading = model.read(subject.texts.batch(range(6)))
    given = {
        "uniform-output-change": reading.mask / reading.mask.sum(1, keepdim=True),
        "frozen-output-change": twin.read(reading.batch).weights,
    }
    for name, weights in given.items():
        both = (distribution(model.decide(reading, w)).detach().numpy() for w in (weights, None))
        for place, change in enumerate(total_variation(*both)):
            row = rows[reading.batch.ids[place]]
            assert np.isnan(row[name]) if row["length"] == 1 else row[name] == pytest.approx(change, abs=1e-6)
    assert all(np.isnan(row["frozen-output-change"]) for row in ablated(subject, None))


def test_only_marked_texts_are_asked_and_only_where_units_are_words():
    texts = planted_texts(4)
    texts[1] = replace(texts[1], rationale=None)
    texts[2] = replace(texts[2], rationale=tuple(range(len(texts[2].tokens))))
    rows = {row["id"]: row for row in marked(audited_subject(at_adapter(), texts), np.random.default_rng(0))}
    assert set(rows) == {"t0", "t2", "t3"} and np.isnan(rows["t2"]["auprc"])
    assert rows["t0"]["auprc"] == 1.0 > rows["t0"]["null_auprc"] and rows["t3"]["token-f1"] == 1.0


def test_an_untrained_twin_differs_and_is_always_the_same():
    corpus = toy_corpus(query=True)
    model = toy_model(corpus, encoder="bilstm")
    once, again = untrained(model), untrained(model)
    batch = audited_subject(model, corpus.test).texts.batch(range(6))
    assert torch.equal(once.decide(once.read(batch)), again.decide(again.read(batch)))
    assert not torch.allclose(once.decide(once.read(batch)), model.decide(model.read(batch)))
    assert untrained(at_adapter()) is None


@pytest.mark.parametrize(
    ("texts", "match"),
    [([], "at least 2"), (planted_texts(1), "at least 2"), ([planted_texts(1)[0]] * 3, "an id of its own")],
)
def test_texts_that_cannot_be_asked_about(texts, match):
    with pytest.raises(Refusal, match=match):
        at.audit(Planted(honest=True), texts, labels=LABELS)


def test_what_cannot_be_audited_is_refused():
    texts = planted_texts(4)
    with pytest.raises(Refusal, match="no labels"):
        at.audit(Planted(honest=True), texts)
    with pytest.raises(Refusal, match="no road leads to"):
        at.audit(torch.nn.Linear(2, 2), texts)
    with pytest.raises(Refusal, match="a int as item 1"):
        at.audit(Planted(honest=True), [1, 2], labels=LABELS)
    with pytest.raises(Refusal, match="budget='huge'"):
        at.audit(Planted(honest=True), texts, labels=LABELS, budget="huge")
    with pytest.raises(Refusal, match="does not know"):
        at.audit(Planted(honest=True), [replace(text, label="odd") for text in texts], labels=LABELS)
    with pytest.raises(Refusal, match="choice of layer"):
        at.audit(at_adapter(), texts, attention={"layer": 0})
    with pytest.raises(Refusal, match="choice of attention 'rollout'"):
        at.audit(Planted(honest=True), texts, labels=LABELS, attention={"rollout": 1})
    corpus = toy_corpus()
    with pytest.raises(Refusal, match="does not know"):
        at.audit(toy_model(corpus), texts)

    class Deaf(Planted):
        def decide(self, states, weights):
            return states.sum(1)

    with pytest.raises(Refusal, match="ignores the weights"):
        at.audit(Deaf(honest=True), texts, labels=LABELS)


def test_texts_are_spread_and_the_watcher_hears_of_each_question():
    texts, heard = planted_texts(40), []
    assert [text.id for text in spread(texts, 4)] == ["t0", "t13", "t26", "t39"]
    audited(at_adapter(), texts[:4], "quick", lambda *said: heard.append(said))
    assert {what for what, _, _ in heard} == {TITLES[name] for name in QUESTIONS}
    shares = [share for _, share, _ in heard]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == pytest.approx(1)
    assert heard[0][2] is None and all(left is not None for _, _, left in heard[2:]) and heard[-1][2] == 0


class Balanced(html.parser.HTMLParser):
    """Whatever is opened is closed, and nothing is there that acts."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attributes):
        self.seen |= {tag, *(name for name, _ in attributes)}
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen |= {tag, *(name for name, _ in attributes)}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_pages_are_whole_and_escaped(honest, tmp_path):
    nasty = "<script>alert(1)</script> | `x` [y](z)"
    result = replace(honest, model=nasty)
    page = result.save(tmp_path / "new" / "audit.html").read_text()
    for text in (page, result._repr_html_()):
        parser = Balanced()
        parser.feed(text)
        assert not parser.open and not parser.seen & {"script", "src", "href", "onclick", "link", "img"}
        assert parser.text.count(SCOPE) == 1 and result.headline.sentence in parser.text
        for one in result.criteria:
            assert one.criterion.asks in parser.text and in_one_sentence(one) in parser.text
        assert all(said in parser.text for said in QUESTIONS_ASKED.values())
    parser = Balanced()
    parser.feed(page)
    assert nasty in parser.text and "default-src 'none'" in page
    for experiment in honest.audit.seconds:
        assert f"<td>{TITLES[experiment]}</td>" in page
    card = result.save(tmp_path / "audit.md").read_text()
    assert card.startswith("## ") and card.count("| supported |") == 5
    assert all(line.count("|") - line.count("\\|") == 5 for line in card.splitlines() if line.startswith("|"))
    assert card.count(SCOPE) == 1 and "not known for this kind of model" in card
    assert escaped("a|b\n<i>") == "a\\|b \\<i\\>"
    document = json.loads(result.save(tmp_path / "audit.json").read_text())
    assert document["model"] == nasty and len(document["findings"]) == len(honest.findings)
    measures = {f"{one['experiment']}/{one['measure'].partition('@')[0]}" for one in document["findings"]}
    assert set(document["cards"]) == measures
    assert document["scope"] == SCOPE and document["kind"] is None and document["chosen"] is None
    for one in document["criteria"]:
        assert one["question"] in document["questions"] and one["rates"]
        for test in one["tests"]:
            assert (test["p"] is None) == (test["p_tests"] == "")
    assert "how good it is" in page
    assert not [path for path in tmp_path.rglob("*.new")]


@pytest.mark.parametrize("name", ["audit.pdf", "audit", ""])
def test_a_file_of_no_known_kind_is_refused(honest, tmp_path, name):
    with pytest.raises(Refusal, match=r"ends in \.html, \.md, \.json"):
        honest.save(tmp_path / name)


def test_nothing_is_written_where_a_file_is_in_the_way(honest, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match="cannot be written"):
        honest.save(tmp_path / "file" / "audit.html")


def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "audit.md").read_text()
    (block,) = re.findall(r"```python audit\n(.*?)```", guide, flags=re.S)
    exec(block, {"adapter": Planted(honest=True), "texts": planted_texts(4)})
    assert (tmp_path / "audit.html").exists()
    for name, budget in BUDGETS.items():
        assert f"`{name}`" in guide and (budget.texts > 500 or f"{budget.texts} texts" in guide)
    assert all(f"| `{name}` |" in guide for name in QUESTIONS)
    assert all(f"| {criterion.name} |" in guide for criterion in CRITERIA)


@pytest.mark.parametrize(
    ("factor", "noise", "low", "high"),
    [(True, 0.0, -0.1, 0.1), (True, 0.3, -1.0, -0.1), (False, 0.0, -1.0, -0.3)],
)
def test_why_agreement_has_no_null_of_shuffled_importance_per_weight(factor, noise, low, high):
    """Of peaked weights and unrelated values: the excess is 0 for weight x value alone, as it should be."""
    rng, excess = np.random.default_rng(0), []
    for _ in range(200):
        weights = np.exp(6 * rng.random(12))
        weights /= weights.sum()
        importance = rng.random(12) * (weights if factor else 1.0)
        importance = np.abs(importance + noise * importance.max() * rng.normal(size=12))
        orders = torch.from_numpy(np.stack([rng.permutation(12) for _ in range(5)]))[None]
        drawn = traded_gradient(torch.from_numpy(weights)[None], torch.from_numpy(importance)[None], orders)
        null = np.mean([kendall(weights, one)[0] for one in drawn[0].numpy()])
        excess.append(kendall(weights, importance)[0] - null)
    assert low < np.mean(excess) < high
