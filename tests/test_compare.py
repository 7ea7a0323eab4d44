"""`attentest compare`: published numbers beside what a store holds, judged by a rule that is printed."""

import csv
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats

from attentest.cli.main import run
from attentest.compare.agreement import SAMPLES, barred, incomparable, judge, judge_size
from attentest.compare.formats import COLUMNS, FORMATS, LATEX
from attentest.compare.pairs import DASH, decimal, epochs, model_of, vectors
from attentest.compare.pairs import published as published_as
from attentest.compare.papers import DEV_FROM_TRAIN, PAPERS, SIZES, WEN, WIEGREFFE_PINTER
from attentest.compare.stored import Stored
from attentest.compare.table import compare
from attentest.compare.translation import is_result, wanted
from attentest.corpus.sources import CORPORA
from attentest.experiments.cards import CARDS
from attentest.experiments.guided import conclude as guided
from attentest.experiments.information_ablation import conclude as information_ablation
from attentest.experiments.single_weight import conclude as single_weight
from attentest.experiments.trained_adversary.observe import TrainedAdversary, sweep
from attentest.experiments.uniform_baseline import conclude as uniform_baseline
from attentest.model.catalogue import ENCODERS as ALL_ENCODERS
from attentest.model.networks.attention import ATTENTIONS
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.studies import published
from attentest.studies.published import COLUMNS as CSV_COLUMNS
from attentest.studies.published import PublishedNumber, load_published
from attentest.studies.recipe import load_study
from attentest.studies.seed_deviations import load_seed_deviations
from attentest.terminal.comparisons import WIDTH, show_comparison
from tests.comparing import SHELF, STUDY, TAU, a_study, corpus_cell, finding, line, put, put_corpus
from tests.observed import concluded
from tests.observed_information import ablation_texts
from tests.observed_removals import single_weight_rows
from tests.observed_wiegreffe_pinter import guided_rows, uniform_baseline_rows

PACKAGE_CSV = Path(published.__file__).parent / "jain-wallace-2019.csv"
DEMANDED = {"paper", "table", "dataset", "model", "attention", "projection", "class", "measure"}
DEMANDED |= {"published", "ours", "low", "high", "agrees"}
OF_ONE_TEXT = "tau_attention_gradient_single_example"


def number(value=0.34, *, dataset="SST", of_class="0", measure=TAU, table="Table2_slides", **other):
    words = {"paper": "Jain&Wallace2019", "table": table, "dataset": dataset, "model": "BiLSTM"}
    words |= {"attention": "additive", "projection": "softmax", "class": of_class, "measure": measure}
    about = {"std": math.nan, "rounding": 0.005, "source": "here"} | other
    return PublishedNumber(words=words, value=value, **about)


def compared(tmp_path, store, *lines, shelf=SHELF):
    return compare(a_study(tmp_path, lines), store.url, shelf)


# --- the rule


STATISTIC = "importance/tau-loo-held"  # a tau that the table of seed deviations does not have


def said_of(published, ours, spread=0.01, seeds=5, *, corpus="sst", statistic=STATISTIC, **about):
    return judge(number(published, **about), statistic, corpus, ours, spread, seeds)


def test_a_verdict_comes_with_all_its_numbers():
    said = said_of(0.34, 0.30, 0.02)
    half = stats.t.ppf(0.95, 4) * 0.02 * math.sqrt(1.2)
    assert "95 % interval" in said_of(0.34, 0.60).why, "the interval that decided"
    assert (said.agrees, said.margin, said.freedom) == ("agrees", 0.15, 4)
    assert (said.difference, said.moderated_std) == (pytest.approx(-0.04), 0.02)
    room = (0.15 - 0.005) / (0.02 * math.sqrt(1.2)) - stats.t.ppf(0.95, 4)
    assert said.p_agrees_if_equal == pytest.approx(2 * stats.t.cdf(room, 4) - 1)
    assert (
        said.why
        == f"ours - published -0.040, 90 % interval {-0.04 - half:.3f} to {-0.04 + half:.3f}, margin 0.15"
    )


@pytest.mark.parametrize(
    ("ours", "spread", "said"),
    [
        (0.34, 0.01, "agrees"),
        (0.46, 0.0, "agrees"),
        (0.485, 0.0, "cannot tell"),  # 0.145 and half a digit are the margin
        (0.49, 0.0, "cannot tell"),  # exactly the margin, though not in floats
        (0.50, 0.0, "differs"),
        (0.34, 0.08, "cannot tell"),  # the interval is wider than the margin
        (0.60, 0.05, "differs"),
        (0.60, 0.09, "cannot tell"),  # far away, and the 95 % interval includes 0
        (0.44, 0.001, "agrees"),  # surely not the same number, and surely within the margin
    ],
)
def test_a_number_agrees_differs_or_one_cannot_tell(ours, spread, said):
    assert said_of(0.34, ours, spread).agrees == said
    assert said_of(-0.34, -ours, spread).agrees == said


@pytest.mark.parametrize(
    ("corpus", "needs"), [("sst", 5), ("20news", 5), ("babi-1", 5), ("imdb", 3), ("babi-2", 3)]
)
def test_with_too_few_seeds_one_cannot_tell(corpus, needs):
    few = said_of(0.34, 0.9, seeds=needs - 1, corpus=corpus)
    assert few.agrees == "cannot tell" and few.why == f"{needs - 1} seeds; needs {needs}"
    assert few.p_agrees_if_equal == 0 and few.moderated_std is None
    assert said_of(0.34, 0.9, seeds=needs, corpus=corpus).agrees == "differs"
    assert said_of(0.34, 0.34, seeds=needs, corpus=corpus).agrees == "agrees"
    assert said_of(0.34, 0.34, math.nan, needs, corpus=corpus).agrees == "cannot tell"


def test_the_deviation_is_moderated_where_the_table_has_the_measure():
    s0, d0, _ = load_seed_deviations()["importance/tau-gradient"]
    said = said_of(0.34, 0.34, 0.001, statistic="importance/tau-gradient")
    assert said.freedom == pytest.approx(d0 + 4)
    assert said.moderated_std == pytest.approx(math.sqrt((d0 * s0**2 + 4 * 0.001**2) / (d0 + 4)))


def test_other_data_than_the_papers_are_not_comparable():
    assert not incomparable(number(), "sst", 7_176, 6_355)
    assert not incomparable(number(), "sst", None, None)
    assert "stands in" in incomparable(number(dataset="bAbI 1"), "babi-1-simulated", 10_000, 10_000)
    assert "23,530 training texts of the paper's 549,367" in incomparable(
        number(dataset="SNLI"), "snli", 23_530, 549_367
    )
    assert not incomparable(number(dataset="SNLI"), "snli", 549_367, 549_367), "whole, so it may be judged"
    for corpus in SAMPLES:
        assert "may be a sample" in incomparable(number(), corpus, None, 10_000)
        assert "may be a sample" in incomparable(number(), corpus, 10_000, None)


def test_classes_of_unknown_order_are_not_judged():
    old, new = "Table2_proceedings", "Table2_slides"
    assert "A20" in incomparable(number(dataset="SNLI", table=old), "snli", 549_367, 549_367)
    assert not incomparable(number(dataset="SNLI", table=new), "snli", 549_367, 549_367)
    assert not incomparable(number(dataset="SNLI", table=old, of_class="Overall"), "snli", 549_367, 549_367)
    assert not incomparable(number(dataset="SST", table=old), "sst", 6_354, 6_355)


def test_sizes_are_counted():
    def said(value, measure, corpus, ours):
        found = judge_size(number(value, measure=measure), corpus, ours)
        return found.agrees, found.why

    assert said(3034.0, "train_size", "sst", 3034.0) == ("same", "")
    assert said(13_916.0, "vocab_size", "imdb", 12_000.0) == ("differs", "by 1,916")
    assert said(19.0, "avg_length_tokens", "sst", 19.4) == ("same", "")
    assert said(19.0, "avg_length_tokens", "sst", 17.4) == ("differs", "by 2")
    assert "A27" in judge_size(number(8.0, measure="avg_length_tokens"), "babi-1", 37.0).why
    stand_in = barred(number(1.0, measure="test_size"), "babi-1-simulated", 1, 1)
    assert stand_in is not None and stand_in.agrees == "not comparable"


def test_a_size_is_rounded_as_it_was_printed():
    for ours, said in ((6.24, "same"), (6.16, "same"), (6.26, "differs"), (7.0, "differs")):
        assert judge_size(number(6.2, measure="avg_sentences"), "yahoo", ours).agrees == said


def test_percentages_have_no_margin_and_are_rounded_to_one_decimal():
    flips = {"corpus": "yahoo", "statistic": "single-weight/only-top-flips-attention", "seeds": 3}
    for ours, said in ((8.7, "cannot tell"), (8.74, "cannot tell"), (8.76, "differs"), (9.7, "differs")):
        assert said_of(8.7, ours, 0.0, measure="pct_only_top_flips", **flips).agrees == said
    wide = said_of(8.7, 9.7, 0.5, measure="pct_only_top_flips", **flips)
    assert (wide.agrees, wide.margin, wide.p_agrees_if_equal) == ("cannot tell", None, 0)
    assert wide.why.endswith("no margin, so it cannot agree") and "95 % interval" in wide.why


def test_what_was_recalled_is_never_judged():
    recalled = number(0.34, source="recalled from published paper")
    for corpus, texts in (("sst", 6_355), ("snli", 10), ("babi-1-simulated", 10)):
        said = barred(recalled, corpus, texts, 6_355)
        assert said.agrees == "recalled" and "not checked" in said.why
    assert "stands in" in barred(recalled, "babi-1-simulated", 10, 10).why, "both reasons are told"
    assert barred(number(0.34), "sst", 6_355, 6_355) is None
    assert barred(number(0.34), "snli", 10, 6_355).agrees == "not comparable"


# --- the papers' words


def package_lines():
    return list(csv.reader(PACKAGE_CSV.read_text().splitlines()))[1:]


def results(name):
    return [n for n in load_published(name) if is_result(n)]


@pytest.mark.parametrize(
    "name, numbers, measured, words",
    [
        ("jain-wallace-2019", 336, 332, 13),
        ("wiegreffe-pinter-2019", 88, 76, 6),
        ("serrano-smith-2019", 36, 36, 4),
        ("wen-2022", 171, 123, 11),
        ("meister-2021", 63, 54, 3),
        ("meister-2021-transformer", 63, 54, 3),
    ],
)
def test_every_word_of_the_published_tables_has_one_of_ours(name, numbers, measured, words):
    found = results(name)
    assert len(load_published(name)) == numbers and len(found) == measured
    [paper] = {n["paper"] for n in found}
    own = PAPERS[paper]
    assert {n["dataset"] for n in found} <= set(own.datasets)
    assert len({n["dataset"] for n in found}) == words
    assert {n["measure"] for n in found} - set(SIZES) == set(own.measures)
    assert {n["model"] for n in found} - {""} <= set(own.encoders)
    assert {n["attention"] for n in found} - {"", "additive", "dot"} <= set(own.attentions)
    study, sought = load_study(name), [wanted(n) for n in found]
    assert not any(w.label.isdigit() for w in sought), "classes are names, never bare numbers"
    for w in sought:
        assert w.corpus in study.grid.corpus
        if w.statistic not in SIZES:
            assert w.statistic in CARDS and w.experiment in {step.name for step in study.experiment}
            assert w.encoder in study.grid.encoder and w.attention in study.grid.attention
            assert w.projection in study.grid.projection


def test_our_words_are_in_our_catalogues():
    for paper in PAPERS.values():
        assert set(paper.encoders.values()) <= set(ALL_ENCODERS)
        assert set(paper.attentions.values()) <= set(ATTENTIONS)
        for dataset in paper.datasets.values():
            assert dataset.labels in ((), CORPORA[dataset.corpus].labels)
            assert dataset.stand_in is None or dataset.stand_in in CORPORA
    assert set(CORPORA) >= DEV_FROM_TRAIN


def found_in(name, conclude, rows):
    """Every number of a study that this experiment answers has a finding of that measure and group."""
    table = concluded(rows, conclude)
    there = set(zip(table["measure"], table["group"], strict=True))
    [experiment] = set(table["experiment"])
    sought = {(w.measure, w.group) for w in map(wanted, results(name)) if w.experiment == experiment}
    assert sought and sought <= there
    return sought


def test_groups_are_those_that_the_findings_have():
    uniform = found_in("wiegreffe-pinter-2019", uniform_baseline.conclude, uniform_baseline_rows())
    assert uniform == {("f1", "trained"), ("f1", "uniform")}
    assert len(found_in("wiegreffe-pinter-2019", guided.conclude, guided_rows())) == 4
    assert len(found_in("serrano-smith-2019", single_weight.conclude, single_weight_rows())) == 4


def test_wens_lambdas_are_those_the_paper_chose_and_the_study_trains_them():
    chosen = [n for n in load_published("wen-2022") if n["measure"] == "adversarial_lambda"]
    study = load_study("wen-2022")
    assert len(chosen) == 7 and not any(map(is_result, chosen))
    for n in chosen:
        assert WEN.groups[n["dataset"]] == f"lambda {n.value:g}"
        point = {"corpus": WEN.datasets[n["dataset"]].corpus, "encoder": "bilstm"}
        point |= {"attention": "additive", "projection": "softmax"}
        [step] = [s for s in study.experiment if s.name == "information-ablation" and s.is_about(point)]
        assert sweep(step.parameters["lambdas"]) == [n.value]
    rows = [ablation_texts(20), ablation_texts(20, subject="fix rep"), ablation_texts(20, subject="fix attn")]
    rows += [ablation_texts(20, subject=name) for name in set(WEN.groups.values())]
    assert len(found_in("wen-2022", information_ablation.conclude, pd.concat(rows))) == 18


def test_the_lambdas_are_those_the_paper_chose_and_the_sweep_has_them():
    chosen = [n for n in load_published("wiegreffe-pinter-2019") if n["measure"] == "adversarial_lambda"]
    assert len(chosen) == 4 and not any(map(is_result, chosen))
    for n in chosen:
        assert WIEGREFFE_PINTER.groups[n["dataset"]] == f"lambda {n.value:g}"
        assert n.value in sweep(TrainedAdversary().lambdas)


def test_one_name_is_another_corpus_in_another_paper():
    def corpora(name):
        return {wanted(n).corpus for n in results(name) if n["dataset"] == "IMDB"}

    assert corpora("serrano-smith-2019") == {"imdb-ratings"}
    assert corpora("jain-wallace-2019") == corpora("wiegreffe-pinter-2019") == {"imdb"}


def test_classes_are_numbered_as_each_table_does():
    def labels(table):
        found = [n for n in results("jain-wallace-2019") if (n["table"], n["dataset"]) == (table, "SNLI")]
        return {n["class"]: wanted(n).label for n in found if n["class"].isdigit()}

    assert labels("Table1") == {"0": "neutral", "1": "contradiction", "2": "entailment"}
    assert labels("Table2_slides") == {"0": "contradiction", "1": "entailment", "2": "neutral"}
    assert wanted(number(of_class="1")).group == "predicted=positive"
    assert wanted(number(of_class="Overall")).group == wanted(number(of_class="")).group == "overall"


def test_words_that_are_not_the_papers_are_ours():
    own = number(dataset="mine", of_class="0", measure="performance/accuracy")
    own.words["model"] = "han-bigru"
    sought = wanted(own)
    assert (sought.corpus, sought.encoder, sought.group) == ("mine", "han-bigru", "predicted=0")
    assert (sought.experiment, sought.measure) == ("performance", "accuracy")


# --- what the store holds


def test_a_pair_has_every_field(tmp_path, store):
    cell = put(store, [finding(excluded=3, why="one token")])
    document = compared(tmp_path, store, line("SST", TAU, "0.36", std="0.21"))
    [row] = document["rows"]
    assert not document["missing"] and document["study"] == "ours" and "sqrt(1 + 1/n)" in document["rule"]
    assert set(row) >= DEMANDED
    assert (row["published"], row["published_std"], row["ours"]) == (0.36, 0.21, 0.34)
    assert (row["low"], row["high"]) == (pytest.approx(0.32), pytest.approx(0.36))
    assert (row["seed_std"], row["std"], row["null"]) == (0.02, 0.2, 0.1)
    assert (row["n"], row["excluded"], row["excluded_why"], row["seeds"]) == (8625, 3, "one token", 5)
    assert (row["corpus"], row["model"], row["class"], row["label"]) == ("sst", "BiLSTM", "0", "negative")
    assert (row["vectors"], row["epochs"], row["epochs_run"]) == ("random(0.1)", 8, [6, 8])
    assert (row["decoder"], row["mode"], row["differs"]) == ("sigmoid", "corrected", "")
    assert row["cells"] == [cell.key] and row["agrees"] == "agrees"
    assert (row["difference"], row["margin"]) == (pytest.approx(-0.02), 0.15)
    assert 0.02 < row["moderated_std"] < 0.04 and row["freedom"] > 4 and 0 < row["p_agrees_if_equal"] < 1
    assert (row["published_a"], row["published_a_std"], row["version_a"]) == (None, None, "")
    assert document["summary"] == {"agrees": 1} and document["sizes"] == [] == [*document["sizes_summary"]]


def test_each_pair_is_of_its_own_class_model_and_measure(tmp_path, store):
    groups = {"predicted=negative": 0.1, "predicted=positive": 0.2, "gold=negative": 0.9, "overall": 0.8}
    rows = [finding(group=group, estimate=value) for group, value in groups.items()]
    rows += [finding("tau-gradient-significant", estimate=0.5), finding("tau-loo", estimate=0.3)]
    put(store, rows)
    put(store, [finding(estimate=0.7)], encoder="average")
    put(store, [finding("f1", "overall", 0.81, experiment="performance")])
    document = compared(
        tmp_path,
        store,
        line("SST", TAU, "0", "0"),
        line("SST", TAU, "0", "1"),
        line("SST", f"{TAU}_sig_frac", "0"),
        line("SST", "tau_attention_loo", "0"),
        line("SST", TAU, "0", model="Average"),
        line("SST", "test_f1", "0", "Overall"),
    )
    assert [row["ours"] for row in document["rows"]] == [0.1, 0.2, 0.5, 0.3, 0.7, 0.81]


def test_of_the_same_models_the_most_seeds_count(tmp_path, store):
    for seeds in (2, 7, 5):
        put(store, [finding(estimate=seeds / 10, seeds=seeds)], seeds=seeds)
    [row] = compared(tmp_path, store, line("SST", TAU, "0.4"))["rows"]
    assert (row["ours"], row["seeds"]) == (0.7, 7)


def test_a_newer_conclusion_counts_more_than_seeds(tmp_path, store):
    put(store, [finding(estimate=0.7, seeds=7)], seeds=7)
    put(store, [finding(estimate=0.5)], version=2)
    [row] = compared(tmp_path, store, line("SST", TAU, "0.4"))["rows"]
    assert row["ours"] == 0.5


def test_other_settings_are_rows_of_their_own_and_told_apart(tmp_path, store):
    put(store, [finding(estimate=0.1)], hidden=128)
    put(store, [finding(estimate=0.2)], hidden=64)
    put(store, [finding(estimate=0.3)], hidden=128, vectors="word2vec(300)")
    put(store, [finding(estimate=0.4)], hidden=128, sizes="paper")
    put(store, [finding(estimate=0.5)], hidden=128, texts="other texts")
    rows = {row["ours"]: row for row in compared(tmp_path, store, line("SST", TAU, "0.4"))["rows"]}
    assert sorted(rows) == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert "hidden 64" in rows[0.2]["differs"] and "hidden 128" in rows[0.1]["differs"]
    assert rows[0.3]["vectors"] == "word2vec(300)" and rows[0.4]["settings"]["sizes"] == "paper"
    assert "sizes paper" in rows[0.4]["differs"] and "sizes default" in rows[0.1]["differs"]
    assert f"corpus cell {corpus_cell('sst', 'other texts').key[:12]}" in rows[0.5]["differs"]


def test_models_of_another_study_are_shown_and_not_judged(tmp_path, store):
    put(store, [finding(estimate=0.4)], learning_rate=1e-3)
    put(store, [finding(estimate=0.41)], learning_rate=1e-4, patience=5, vectors="word2vec(300)")
    study = STUDY + '\n[model]\nlearning_rate = 1e-4\npatience = 5\nvectors = "mine.txt"\n'
    document = compare(a_study(tmp_path, [line("SST", TAU, "0.4")], study), store.url, SHELF)
    other, own = sorted(document["rows"], key=lambda row: row["ours"])
    assert other["agrees"] == "not comparable" and own["agrees"] == "agrees"
    assert "learning_rate 0.001 where the study has 0.0001" in other["why"]
    assert "patience by default where the study has 5" in other["why"] and "vectors" not in other["why"]


def test_models_made_for_another_study_are_not_judged_where_a_study_prescribes_nothing(tmp_path, store):
    put(store, [finding(estimate=0.4)])
    put(store, [finding(estimate=0.41)], attention_rates=[1.0, 10.0])
    own, other = sorted(
        compared(tmp_path, store, line("SST", TAU, "0.4"))["rows"], key=lambda row: row["ours"]
    )
    assert own["agrees"] == "agrees" and other["agrees"] == "not comparable"
    assert "attention_rates [1.0, 10.0] where the study has none" in other["why"]


def test_a_model_is_named_with_its_attention_and_what_is_not_softmax():
    words = {"model": "BiLSTM", "attention": "additive", "projection": "softmax"}
    assert model_of(words) == "BiLSTM + additive"
    assert model_of(words | {"projection": "sparsemax"}) == "BiLSTM + additive + sparsemax"
    assert model_of(words | {"attention": "", "projection": ""}) == "BiLSTM"
    assert model_of(dict.fromkeys(words, "")) == DASH


def test_the_published_mode_is_never_left_unsaid(tmp_path, store):
    put(store, [finding(mode="as-published")])
    [row] = compared(tmp_path, store, line("SST", TAU, "0.4"))["rows"]
    assert row["mode"] == "as-published" and row["differs"] == "mode as-published"


def test_findings_stand_without_what_they_were_made_from(tmp_path, store):
    cell = put(store, [finding()])
    for key in store.done():
        if key != cell.key:
            store.forget("cells", key)
    [row] = compared(tmp_path, store, line("SST", TAU, "0.34"))["rows"]
    assert row["agrees"] == "agrees" and row["epochs"] == 8 and row["epochs_run"] is None
    store.forget("cells", cell.key, "findings.parquet")
    assert compared(tmp_path, store, line("SST", TAU, "0.34"))["missing"][0]["reason"] == "not run"


def test_a_stand_in_is_shown_beside_and_never_judged(tmp_path, store):
    put(store, [finding(group="overall", estimate=0.25)], "babi-1-simulated")
    document = compared(tmp_path, store, line("bAbI 1", TAU, "0.25", "Overall"))
    [row], [gap] = document["rows"], document["missing"]
    assert row["corpus"] == "babi-1-simulated" and row["agrees"] == "not comparable"
    assert gap["corpus"] == "babi-1" and gap["reason"] == "not run"
    put(store, [finding(group="overall", estimate=0.26)], "babi-1")
    document = compared(tmp_path, store, line("bAbI 1", TAU, "0.25", "Overall"))
    assert not document["missing"]
    found = [(row["corpus"], row["agrees"]) for row in document["rows"]]
    assert found == [("babi-1", "agrees"), ("babi-1-simulated", "not comparable")]


@pytest.mark.parametrize(("texts", "said"), [(23_530, "not comparable"), (549_367, "agrees")])
def test_a_sample_is_known_by_its_training_texts(tmp_path, store, texts, said):
    counts = {"train": {"neutral": texts}, "dev": {"neutral": 9_842}, "test": {"neutral": 3219}}
    put_corpus(store, "snli", counts)
    found = [finding(measure, "predicted=contradiction", 0.31) for measure in ("tau-gradient", "tau-loo")]
    put(store, found, "snli")
    document = compared(
        tmp_path,
        store,
        line("SNLI", TAU, "0.31"),
        line("SNLI", TAU, "0.32", table="Table2_proceedings"),
        line("SNLI", "tau_attention_loo", "0.31", table="Table2_proceedings"),
        line("SNLI", "train_size", "182764", "0", table="Table1", model=""),
        line("SNLI", "train_size", "183187", "1", table="Table1", model=""),
        line("SNLI", "train_size", "183416", "2", table="Table1", model=""),
    )
    slides, proceedings = document["rows"]
    assert slides["agrees"] == said
    assert slides["published_a"] is None and "A20" in slides["version_a"], "it may be of another class"
    assert proceedings["agrees"] == "not comparable" and "A20" in proceedings["why"]


def test_sizes_come_from_the_corpus(tmp_path, store):
    counts = {"negative": 3033, "positive": 3321}
    counts = {
        "train": counts,
        "dev": {"negative": 5, "positive": 5},
        "test": {"negative": 863, "positive": 9},
    }
    put_corpus(store, "sst", counts, tokens=[17, 18, 22])
    put_corpus(store, "babi-1", {"train": {"hall": 8500}, "dev": {"hall": 1500}, "test": {"hall": 1000}})
    cell = Cell(stage="model", version=1, config={}, inputs={"corpus": corpus_cell("sst").key})
    store.write(cell, {"vocabulary.json": json.dumps(["w"] * 16_179).encode()}, {})
    asked = [
        ("SST", "train_size", "3034", "0", "differs", 3033),
        ("SST", "train_size", "3321", "1", "same", 3321),
        ("SST", "test_size", "863", "0", "same", 863),
        ("SST", "avg_length_tokens", "19", "", "same", 19),
        ("SST", "vocab_size", "16175", "", "same", 16_175),
        ("bAbI 1", "train_size", "10000", "Overall", "same", 10_000),
        ("bAbI 1", "test_size", "1000", "Overall", "same", 1_000),
    ]
    lines = [line(d, m, v, c, table="Table1", model="") for d, m, v, c, _, _ in asked]
    document = compared(tmp_path, store, *lines, line("bAbI 1", "vocab_size", "40", "", model=""))
    assert [(row["agrees"], row["ours"]) for row in document["sizes"]] == [(a, o) for *_, a, o in asked]
    assert all(row["low"] is row["seeds"] is row["p_agrees_if_equal"] is None for row in document["sizes"])
    assert document["sizes_summary"] == {"same": 6, "differs": 1}
    assert document["rows"] == [] and document["summary"] == {}, "sizes are no part of the agreement"
    out = io.StringIO()
    show_comparison(document, Console(file=out, width=80, markup=False))
    shown = " ".join(out.getvalue().split())
    assert "Sizes and counts of the corpora, which are not part of the agreement" in shown
    assert "SST sst 0 negative train_size 3,034 3,033 differs by 1" in shown
    assert "0 pairs: none. 7 sizes and counts, apart: 6 same, 1 differs." in shown
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](document), newline="")))
    assert [row["kind"] for row in rows] == ["size"] * 7 + ["missing"]
    [gap] = document["missing"]
    assert "vocab_size" in gap["reason"] and gap["way_out"].endswith("--corpus babi-1")


@pytest.mark.parametrize(
    ("asked", "reason", "way_out"),
    [
        (line("IMDB", TAU, "0.4"), "not run", "attentest study .*ours.toml --corpus imdb"),
        (line("IMDB", "vocab_size", "4", "", model=""), "not run", "attentest study .*--corpus imdb"),
        (
            line("IMDB", TAU, "0.4", model="CNN"),
            "not run",
            "add encoder cnn to the study, then attentest study",
        ),
        (line("AG News", TAU, "0.4"), "not here: downloadable", "attentest corpora get agnews"),
        (line("CNN", TAU, "0.4", "Overall"), "not here: absent", "attentest corpora describe cnn"),
        (line("ADR Tweets", TAU, "0.4"), "not redistributable", "attentest corpora describe adr"),
        (line("Anemia", TAU, "0.4"), "needs credentials", "attentest corpora describe mimic-anemia"),
        (line("Reuters", TAU, "0.4"), "no corpus is called 'Reuters'", "corpora list"),
        (line("SST", "charm", "0.4"), "'charm' is no measure of ours", "experiment/measure"),
        (line("IMDB(example)", OF_ONE_TEXT, "0.29", "0"), "not run", "attentest study .*--corpus imdb"),
        (line("SST", TAU, "0.4", "1"), "undefined .one token", "More seeds"),
        (line("SST", "tau_attention_loo", "0.4"), "no tau-loo for predicted=negative", "More seeds"),
    ],
)
def test_what_is_missing_says_why_and_the_way_out(tmp_path, store, asked, reason, way_out):
    undefined = finding(group="predicted=positive", estimate=math.nan, excluded=9, why="one token", n=0)
    put(store, [finding(), undefined])
    document = compared(tmp_path, store, asked)
    assert not document["rows"]
    [gap] = document["missing"]
    assert re.search(reason, gap["reason"]) and re.search(way_out, gap["way_out"])
    assert gap["published"] == float(asked[8]) and set(gap) >= DEMANDED - {"ours", "low", "high", "agrees"}


def test_a_number_of_one_text_is_laid_beside_ours_of_that_text(tmp_path, store):
    pictured = finding(experiment="heat-map", group="test/neg/231_1", estimate=0.25, seeds=3)
    other = finding(experiment="heat-map", group="test/pos/1652_10", estimate=0.9, seeds=3)
    put(store, [pictured, other], "imdb", seeds=3)
    [row] = compared(tmp_path, store, line("IMDB(example)", OF_ONE_TEXT, "0.29"))["rows"]
    assert (row["ours"], row["corpus"], row["agrees"]) == (0.25, "imdb", "agrees")


def test_parameters_of_the_text_are_neither_compared_nor_missing(tmp_path, store):
    put(store, [finding()])
    only = line("", "epsilon_qa", "0.05", "", table="text", model="")
    document = compared(tmp_path, store, line("SST", TAU, "0.34"), only)
    assert len(document["rows"]) == 1 and not document["missing"]


def test_every_published_result_is_a_row_or_missing(tmp_path, store):
    put(store, [finding(), finding(group="predicted=positive")])
    lines = package_lines()
    document = compared(tmp_path, store, *lines)
    assert [(row["class"], row["published"], row["published_a"]) for row in document["rows"]] == [
        ("0", 0.34, 0.40),
        ("1", 0.36, 0.38),
    ]
    assert {row["table"] for row in document["rows"]} == {"Table2_slides"}, "the verdict is against version B"
    assert {row["version_a"] for row in document["rows"]} == {"Table2_proceedings"}
    twice = sum(row[1] == "Table2_proceedings" for row in lines)
    assert twice == sum(row[1] == "Table2_slides" for row in lines) == 126
    results = sum(row[1] != "text" for row in lines)
    assert len(document["rows"]) + len(document["missing"]) == results - twice


# --- Wiegreffe & Pinter, Serrano & Smith

WP, SS = "Wiegreffe&Pinter2019", "Serrano&Smith2019"
FLIPS = ("both-flip", "only-top-flips", "only-random-flips", "neither-flips")


def of_wp(dataset, measure, value, of_class="1", **other):
    return line(dataset, measure, value, of_class, paper=WP, **other)


def of_ss(dataset, measure, value, **other):
    about = {"paper": SS, "table": "Table2", "model": "HANrnn", "attention": "additive(HAN)"} | other
    return line(dataset, measure, value, "Overall", **about)


def grouped(experiment, measure, **estimates):
    """Findings of one measure, a group for each name; an underscore is a blank."""
    return [
        finding(measure, group.replace("_", " "), value, experiment=experiment)
        for group, value in estimates.items()
    ]


def test_uniform_and_reproduced_scores_are_of_the_base_and_its_sibling(tmp_path, store):
    put(store, grouped("uniform-baseline", "f1", trained=0.81, uniform=0.79, untrained=0.5))
    put(store, [finding("f1", "overall", 0.81, experiment="performance", seed_std=0.005)])
    document = compared(
        tmp_path,
        store,
        of_wp("SST", "f1_reported_by_JW", "0.81"),
        of_wp("SST", "f1_reproduced", "0.831", source="recalled"),
        of_wp(
            "SST", "f1_uniform", "0.822", source="recalled", attention="uniform(frozen)", projection="none"
        ),
    )
    found = [(row["ours"], row["group"], row["recalled"], row["agrees"]) for row in document["rows"]]
    assert found == [
        (0.81, "overall", False, "agrees"),
        (0.81, "trained", True, "recalled"),
        (0.79, "uniform", True, "recalled"),
    ]
    assert document["summary"] == {"agrees": 1, "recalled": 2} and not document["missing"]


GUIDES = {"UNIFORM": 0.1, "TRAINED MLP": 0.2, "BASE LSTM": 0.3, "ADVERSARY(lambda=0.001)": 0.4}


def test_every_guide_has_its_own_number_and_the_adversary_its_lambda(tmp_path, store):
    guides = {"guided_by_uniform": 0.1, "guided_by_own": 0.2, "guided_by_base": 0.3}
    rows = grouped("guided", "f1", **guides, guided_by_adversary=0.4, trained=0.9)
    put(store, rows, parameters={"adversary": 0.001})
    lines = [of_wp("SST", "f1_guided", "0.5", model="MLP", attention=g, projection="") for g in GUIDES]
    assert [row["ours"] for row in compared(tmp_path, store, *lines)["rows"]] == list(GUIDES.values())
    other = Store(tmp_path / "other")
    put(other, rows, parameters={"adversary": 0.01})
    document = compared(tmp_path, other, *lines)
    assert [row["attention"] for row in document["rows"]] == list(GUIDES)[:3]
    assert [gap["attention"] for gap in document["missing"]] == list(GUIDES)[3:]


def test_an_adversary_is_compared_at_the_papers_lambda_and_its_distance_halved(tmp_path, store):
    rows = [
        finding(measure, group, value, experiment="trained-adversary")
        for group, shift in (("lambda 0.000525", 0.0), ("lambda 0.0008", 0.1), ("lambda 0.001", 0.2))
        for measure, value in (
            ("f1", 0.7 + shift),
            ("output-tvd", 0.1 + shift),
            ("output-tvd-halved", 0.05 + shift),
            ("attention-jsd", 0.4 + shift),
        )
    ]
    for corpus in ("sst", "imdb"):
        put(store, rows, corpus)
    measures = ("adversarial_f1", "adversarial_tvd_outputs", "adversarial_jsd_attention")
    adversary = {"attention": "additive(adversary)", "source": "recalled"}
    lines = [of_wp(dataset, m, "0.5", **adversary) for dataset in ("SST", "IMDB") for m in measures]
    setting = of_wp("SST", "adversarial_lambda", "0.000525", "", **adversary)
    seed = of_wp("", "random_seed_0", "50", "", table="code_seeds")
    document = compared(tmp_path, store, *lines, setting, seed)
    assert [row["ours"] for row in document["rows"]] == pytest.approx([0.7, 0.05, 0.4, 0.8, 0.15, 0.5])
    assert not document["missing"], "settings are no results"
    assert {row["agrees"] for row in document["rows"]} == {"recalled"}


def flips(mode="corrected", shift=0.0):
    values = dict(zip(FLIPS, (0.5, 8.7, 1.3, 89.6), strict=True))
    return [
        finding(
            f"{name}-{by}",
            "overall",
            value + shift + 50 * (by == "gradient"),
            experiment="single-weight",
            mode=mode,
        )
        for name, value in values.items()
        for by in ("attention", "gradient")
    ]


def flip_lines(dataset="Yahoo"):
    measures = [f"pct_{name.replace('-', '_')}" for name in FLIPS]
    return [of_ss(dataset, m, v) for m, v in zip(measures, ("0.5", "8.7", "1.3", "89.6"), strict=True)]


@pytest.mark.parametrize(("texts", "said"), [(18_000, "not comparable"), (1_380_000, "cannot tell")])
def test_flips_are_compared_in_both_modes_and_a_sample_is_not_judged(tmp_path, store, texts, said):
    counts = {"train": {"sports": texts}, "dev": {"sports": 1_000}, "test": {"sports": 1_000}}
    put_corpus(store, "yahoo", counts)
    model = {"encoder": "han-bigru", "attention": "additive-wide"}
    put(store, flips(), "yahoo", **model)
    put(store, flips("as-published", 0.01), "yahoo", **model)
    put(store, flips(shift=1.0), "yahoo", encoder="bigru", attention="additive-wide")
    put(store, flips(shift=2.0), "yahoo", encoder="han-bigru")
    size = of_ss("Yahoo", "train_plus_dev_size", "1400000", table="Table1", model="", attention="")
    document = compared(tmp_path, store, *flip_lines(), size)
    pairs = document["rows"]
    assert [row["measure"] for row in document["sizes"]] == ["train_plus_dev_size"]
    assert [row["ours"] for row in pairs] == pytest.approx([0.5, 0.51, 8.7, 8.71, 1.3, 1.31, 89.6, 89.61])
    assert {row["agrees"] for row in pairs} == {said}
    modes = [row["differs"].partition(",")[0] for row in pairs]
    assert modes == ["mode corrected", "mode as-published"] * 4
    assert ("a sample: 18,000 training texts" in pairs[0]["why"]) == (said == "not comparable")


def test_the_ratings_of_imdb_stand_in_and_are_never_judged(tmp_path, store):
    put(store, flips(), "imdb-ratings", encoder="han-bigru", attention="additive-wide")
    put(store, flips(shift=3.0), "imdb", encoder="han-bigru", attention="additive-wide")
    rows = compared(tmp_path, store, *flip_lines("IMDB"))["rows"]
    assert [row["ours"] for row in rows] == [0.5, 8.7, 1.3, 89.6]
    assert {(row["corpus"], row["agrees"]) for row in rows} == {("imdb-ratings", "not comparable")}
    assert all("stands in" in row["why"] for row in rows)


def test_sizes_of_serrano_and_smith_come_from_the_corpus(tmp_path, store):
    counts = {"train": {str(n): 10 for n in range(5)}, "dev": {"0": 4}, "test": {"0": 7, "1": 1}}
    put_corpus(store, "yelp", counts, tokens=[100, 125, 150], sentences=[6, 7, 8])
    asked = {"avg_words": "125", "avg_sentences": "7.0", "train_plus_dev_size": "54", "test_size": "8"}
    asked |= {"num_classes": "5"}
    lines = [of_ss("Yelp", m, v, table="Table1", model="", attention="") for m, v in asked.items()]
    document = compared(tmp_path, store, *lines)
    assert [row["ours"] for row in document["sizes"]] == [125, 7, 54, 8, 5]
    assert {row["agrees"] for row in document["sizes"]} == {"same"}
    flat = Store(tmp_path / "flat")
    put_corpus(flat, "yelp", counts, tokens=[100, 125, 150])
    [gap] = compared(tmp_path, flat, *lines)["missing"]
    assert gap["measure"] == "avg_sentences" and "does not hold" in gap["reason"]
    sample = [of_ss("Yelp", m, "650000", table="Table1", model="", attention="") for m in asked]
    rows = compared(tmp_path, store, *sample)["sizes"]
    assert {row["agrees"] for row in rows} == {"not comparable"}
    assert all("a sample: 50 training texts of the paper's 650,000" in row["why"] for row in rows)


@pytest.fixture
def doubtful(tmp_path, store):
    """One number that was read, and two that were recalled, one of them without ours beside it."""
    rows = grouped("uniform-baseline", "f1", trained=0.81, uniform=0.79)
    put(store, [replace(row, seed_std=0.005) for row in rows])
    return compared(
        tmp_path,
        store,
        of_wp("SST", "f1_reproduced", "0.81"),
        of_wp(
            "SST", "f1_uniform", "0.822", source="recalled", attention="uniform(frozen)", projection="none"
        ),
        of_wp("IMDB", "f1_uniform", "0.9", source="recalled", attention="uniform(frozen)", projection="none"),
    )


def test_recalled_numbers_are_in_italics_with_a_footnote(doubtful):
    text = FORMATS["markdown"](doubtful)
    [row] = [line for line in text.splitlines() if "f1_uniform" in line and line.startswith("|")]
    assert "| *0.822*† |" in row and "| *0.790* |" in row and "| *recalled* |" in row
    [row] = [line for line in text.splitlines() if "f1_reproduced" in line]
    assert "*" not in row and "†" not in row
    assert text.endswith(
        "† The published number was recalled, not read in the paper: it is shown and never judged.\n"
    )
    read = doubtful | {"rows": doubtful["rows"][:1]}
    assert "†" not in FORMATS["markdown"](read)


def test_recalled_numbers_are_gray_in_latex(doubtful):
    text = FORMATS["latex"](doubtful)
    [row] = [line for line in text.splitlines() if r"f1\_uniform" in line]
    assert row.count(r"\textcolor{gray}{") == row.count(" & ") + 1 and r"\textcolor{gray}{0.790}" in row
    [row] = [line for line in text.splitlines() if r"f1\_reproduced" in line]
    assert "gray" not in row and r"% \usepackage{xcolor}" in text
    assert "xcolor" not in FORMATS["latex"](doubtful | {"rows": doubtful["rows"][:1]})


def test_recalled_is_a_field_of_pairs_and_of_gaps(doubtful):
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](doubtful), newline="")))
    assert [row["recalled"] for row in rows] == ["false", "true", "true"]
    assert [row["agrees"] for row in rows] == ["agrees", "recalled", "missing"]
    document = json.loads(FORMATS["json"](doubtful))
    assert [row["recalled"] for row in document["rows"] + document["missing"]] == [False, True, True]


def test_recalled_numbers_are_dim_in_a_terminal(doubtful):
    out = io.StringIO()
    show_comparison(doubtful, Console(file=out, width=100, force_terminal=True, color_system="standard"))
    lines = out.getvalue().splitlines()
    [read] = [line for line in lines if "0.81" in line and "trained" in line]
    [recalled] = [line for line in lines if "0.822" in line and "uniform" in line]
    assert "\x1b[2m" in recalled[: recalled.index("0.822")] and "\x1b[2m" not in read
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert "a number that was recalled, not read, is shown and never judged" in " ".join(shown.split())
    assert "2 pairs: 1 agrees, 1 recalled." in shown
    assert "BiLSTM + uniform(frozen) + none: vectors" in shown


@pytest.mark.parametrize("name", ["wiegreffe-pinter-2019", "serrano-smith-2019"])
def test_the_terminal_has_room_for_every_paper(name, store):
    sought = [w for w in map(wanted, results(name)) if w.statistic not in SIZES]
    cells = {}
    for w in sought:
        found = finding(w.measure, w.group, -0.1234, experiment=w.experiment)
        cells.setdefault((w.corpus, w.encoder, w.attention, w.experiment), []).append(found)
    for (corpus, encoder, attention, _), rows in cells.items():
        made = {"encoder": encoder, "attention": attention, "parameters": {"adversary": 0.001}}
        put(store, rows, corpus, **made)
    out = io.StringIO()
    document = compare(name, store.url, SHELF)
    show_comparison(document, Console(file=out, width=80, markup=False))
    assert len(document["rows"]) == len(sought)
    assert max(map(len, out.getvalue().splitlines())) <= WIDTH
    for said, count in document["summary"].items():
        assert len(re.findall(rf" {said} +\S+ *\n", out.getvalue())) == count, "no verdict is folded or cut"


# --- formats

HOSTILE = 'a|b\\c & <i>*x*</i> [y](z) 100% $e^{1}$ #1 ~_ `q` "t"\x1b[31m\n\u202e=1+1'


@pytest.fixture
def hostile(tmp_path, store):
    """A comparison in which every name that may come from outside tries to break out."""
    put(store, [finding(group=f"predicted={HOSTILE}", seeds=2)], HOSTILE, vectors=HOSTILE, hidden=1)
    put(store, [finding(group=f"predicted={HOSTILE}", seeds=2)], HOSTILE, vectors=HOSTILE, hidden=2)
    text = STUDY.replace("Ours beside theirs", "Title | \\\\u001b & co")
    asked = line(HOSTILE, TAU, "0.36", HOSTILE, table=HOSTILE, std="0.2")
    lost = line(f"{HOSTILE}!", TAU, "0.36", HOSTILE)
    return compare(a_study(tmp_path, [asked, lost], text), store.url, SHELF)


def test_markdown_keeps_its_columns_whatever_a_label_is_called(hostile):
    text = FORMATS["markdown"](hostile)
    assert all(sign.isprintable() for sign in text.replace("\n", ""))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    bars = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines]
    assert bars == [len(COLUMNS) - 1] * 4 + [5] * 3, "all columns but the group and version A"
    assert not re.search(r"(?<!\\)<i>|(?<!\\)\*x", text)


def test_latex_is_a_plain_tabular_whatever_a_label_is_called(hostile):
    text = FORMATS["latex"](hostile)
    assert (
        all(sign.isprintable() for sign in text.replace("\n", "")) and "\N{REPLACEMENT CHARACTER}" not in text
    )
    tabulars = re.findall(r"\\begin\{tabular\}\{(l+)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL)
    assert [len(columns) for columns, _ in tabulars] == [len(COLUMNS) - 2, 4]
    assert text.count(r"\begin") == text.count(r"\end") == 2
    for columns, body in tabulars:
        title, *rows = [row for row in body.splitlines() if row != r"\hline"]
        assert title.startswith(rf"\multicolumn{{{len(columns)}}}{{l}}")
        for row in rows:
            assert row.endswith(r" \\")
            assert len(re.split(r"(?<!\\)&", row)) == len(columns)
            plain = re.sub(r"\\[{}$&#%_]|\\text[a-z]+\{\}|\$\\pm\$|\{\[\}| \\\\$", "", row)
            assert not set(plain) & {*'{}$#%_^~<>|"\\'}, plain


@given(st.text())
def test_nothing_special_to_latex_is_left_as_it_was(text):
    for sign in set(text) & set(LATEX):
        assert LATEX[sign] != sign
    written = FORMATS["latex"]({"title": text, "rule": "", "rows": [], "missing": []})
    assert written.startswith("% ") and written.count("\n") == 3, "a title stays in its comment"


def test_csv_holds_every_pair_and_every_gap(hostile):
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](hostile), newline="")))
    assert [row["agrees"] for row in rows] == ["cannot tell", "cannot tell", "missing"]
    assert rows[0]["label"] == rows[0]["class"] == HOSTILE and float(rows[0]["ours"]) == 0.34
    assert rows[2]["ours"] == "" and rows[2]["why"].startswith("no corpus is called")
    assert all(len(row["cells"]) == 12 for row in rows[:2])
    assert {"n", "seeds", "vectors", "epochs", "decoder"} <= set(rows[0])


def test_json_is_the_document_with_whole_keys(hostile):
    assert json.loads(FORMATS["json"](hostile)) == hostile
    assert all(len(key) == 64 for row in hostile["rows"] for key in row["cells"])


def test_the_terminal_has_room_for_every_column(tmp_path, store):
    labels = ("contradiction", "entailment", "neutral")
    measures = ("tau-gradient", "tau-gradient-significant", "tau-loo", "tau-loo-significant")
    rows = [
        finding(m, f"predicted={x}", -0.31, excluded=3, why="one token") for m in measures for x in labels
    ]
    put(store, rows, "snli", decoder="two-layer", vectors=f"file:{'ab' * 32}", epochs=25)
    lines = package_lines()
    document = compared(tmp_path, store, *lines)
    for width in (80, 100):
        out = io.StringIO()
        show_comparison(document, Console(file=out, width=width, markup=False))
        shown = out.getvalue()
        assert max(map(len, shown.splitlines())) <= WIDTH
        assert "tau gradient sig. contradiction      0.36   – -0.310 -0.33..-0.29" in shown
        assert shown.count("5 not comparable") == 12, "no verdict is folded or cut"
        for word in (
            "vectors file:abababababab,",
            "two-layer",
            "25 (ran 6 to 10)",
            document["rows"][0]["cells"][0][:12],
        ):
            assert word in " ".join(shown.split())
        assert "3 of 8,628 texts left out (one token)" in shown and "corpora get agnews" in shown


def test_published_numbers_are_shown_as_they_were_printed():
    def shown(value):
        return published_as({"published": value})

    assert [shown(v) for v in (0.3, 0.34, 0.775, 0.006, 8.7, 104.0, 1.0, -0.02, 5e-05)] == [
        *("0.30", "0.34", "0.775", "0.006", "8.70", "104", "1.00", "-0.02", "0.00005"),
    ]
    assert published_as({"published": 0.36, "published_std": 0.2}) == "0.36 ± 0.20"


def test_numbers_are_worded_plainly():
    assert (decimal(None), decimal(16175.0), decimal(1.0), decimal(-0.01), decimal(18.62)) == (
        "–",
        "16,175",
        "1.000",
        "-0.010",
        "18.620",
    )
    assert epochs({"epochs": 8, "epochs_run": None}) == epochs({"epochs": 8, "epochs_run": [8, 8]}) == "8"
    assert epochs({"epochs": 8, "epochs_run": [5, 8]}) == "8 (ran 5 to 8)"
    assert epochs({"epochs": 8, "epochs_run": [5, 5]}) == "8 (ran 5)"
    assert vectors({"vectors": f"file:{'a1' * 32}"}) == "file:a1a1a1a1a1a1"


# --- the command


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a study, its numbers, and a store that answers one of the two."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENTEST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ATTENTEST_STORE", str(tmp_path / "results"))
    put(Store(tmp_path / "results"), [finding()])
    a_study(tmp_path, [line("SST", TAU, "0.36", std="0.21"), line("AG News", TAU, "0.36")])
    return tmp_path


def test_a_program_gets_the_fields_it_relies_on(here, capsys):
    assert run(["compare", "ours.toml", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert not err and out.count("\n") == 1
    [row], [gap] = document["rows"], document["missing"]
    assert set(row) >= DEMANDED and row["agrees"] == "agrees" and len(row["cells"][0]) == 64
    assert gap["dataset"] == "AG News" and gap["way_out"] == "attentest corpora describe agnews"


def test_a_person_gets_a_table(here, capsys):
    assert run(["compare", "ours.toml"]) == 0
    out, err = capsys.readouterr()
    assert not err
    for word in ("Ours beside theirs", "SST (here sst)", "0.36±0.21", "0.340", "agrees", "AG News"):
        assert word in out
    assert "1 pairs: 1 agrees." in out


@pytest.mark.parametrize(
    ("form", "suffix", "begins"),
    [
        ("markdown", ".md", "# Ours"),
        ("latex", ".tex", "% Ours"),
        ("csv", ".csv", "kind,paper,"),
        ("json", ".json", "{"),
    ],
)
def test_every_format_goes_to_standard_output_or_a_file(here, capsys, form, suffix, begins):
    assert run(["compare", "ours.toml", "--format", form]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(begins) and not err
    assert run(["compare", "ours.toml", "--out", f"table{suffix}"]) == 0
    said = capsys.readouterr().out
    assert said == f"table{suffix}: 1 pairs, 1 numbers missing.\n"
    assert (here / f"table{suffix}").read_text(encoding="utf-8") == out
    assert run(["compare", "ours.toml", "--out", "table.txt", "--format", form, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == "table.txt"
    assert (here / "table.txt").read_text(encoding="utf-8") == out


HEADER = ",".join(CSV_COLUMNS)
BROKEN = {
    "an empty file": ("", "the columns .none."),
    "a header only": (f"{HEADER}\n", "a header without rows"),
    "a missing column": (HEADER.replace(",std", "") + "\n", "the columns paper"),
    "a column twice": (HEADER.replace("std", "value") + "\n", "the columns paper"),
    "a short line": (f"{HEADER}\na,b\n", "line 2: got 2 fields"),
    "a value in words": (f"{HEADER}\n,,,,,,,,many,,\n", "line 2: got the value 'many'"),
    "no value": (f"{HEADER}\n,,,,,,,,,,\n", "the value ''"),
    "a value that is infinite": (f"{HEADER}\n,,,,,,,,inf,,\n", "the value 'inf'"),
    "a value beyond floats": (f"{HEADER}\n,,,,,,,,1e999,,\n", "the value '1e999'"),
    "a value that is NaN": (f"{HEADER}\n,,,,,,,,nan,,\n", "the value 'nan'"),
    "a std in words": (f"{HEADER}\n,,,,,,,,1,wide,\n", "the std 'wide'"),
    "a negative std": (f"{HEADER}\n,,,,,,,,1,-1,\n", "a std of -1"),
    "an open quotation mark": (f'{HEADER}\n"a,b\n', "no CSV"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_numbers_are_refused_by_line(here, capsys, name):
    content, said = BROKEN[name]
    (here / "numbers.csv").write_text(content)
    assert run(["compare", "ours.toml"]) == 2
    out, err = capsys.readouterr()
    assert not out and re.search(said, err) and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "nonesuch"], "neither the name of a study nor a TOML file"),
        (["compare", "demo"], r"no \[published\] table"),
        (["compare", "ours.toml", "--store", "nowhere"], "no such folder"),
        (["compare", "ours.toml", "--format", "pdf"], "one of markdown, latex, csv, json"),
        (["compare", "ours.toml", "--out", "table.pdf"], "the suffix '.pdf'"),
        (["compare", "ours.toml", "--out", "no/such/table.md"], "cannot be written"),
        (["compare", "ours.toml", "--out", ".", "--format", "csv"], "cannot be written"),
        (["compare"], "Missing argument"),
    ],
)
def test_wrong_input_is_one_sentence_and_status_two(here, capsys, words, said):
    before = sorted(here.rglob("*"))
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert not out and re.search(said, err) and err.count("\n") == 1 and "Traceback" not in err
    assert run([*words, "--json"]) == 2
    assert re.search(said, json.loads(capsys.readouterr().out)["error"]["message"])
    assert sorted(here.rglob("*")) == before


def test_standard_output_takes_one_format(here, capsys):
    assert run(["compare", "ours.toml", "--format", "csv", "--json"]) == 2
    assert "one format" in json.loads(capsys.readouterr().out)["error"]["needs"]
    assert run(["compare", "ours.toml", "--format", "json", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) >= {"rows", "missing"}


def test_numbers_that_are_not_there_or_not_text_are_refused(here):
    (here / "numbers.csv").write_bytes(HEADER.encode() + b"\n\xff\xfe")
    with pytest.raises(Refusal, match="not UTF-8"):
        load_published("ours.toml")
    (here / "numbers.csv").unlink()
    with pytest.raises(Refusal, match="no file that can be read"):
        load_published("ours.toml")


@pytest.mark.parametrize("file", ["../secret.csv", "/etc/hosts", "a\\\\b.csv", ""])
def test_a_shared_study_names_a_file_beside_it_and_no_other(here, file):
    (here / "ours.toml").write_text(STUDY.replace("numbers.csv", file))
    with pytest.raises(Refusal, match="published"):
        load_published("ours.toml")


def test_decimals_say_how_far_a_number_was_rounded(tmp_path):
    values = ("1", "0.3", "0.34", "0.345", "5e-4")
    numbers = load_published(a_study(tmp_path, [line("SST", TAU, value) for value in values]))
    assert [n.rounding for n in numbers] == pytest.approx([0.005, 0.005, 0.005, 0.0005, 0.00005])


def lose_observations(store, cell):
    """What a machine that is given back before its records are copied leaves of a finding."""
    for key in cell.inputs.values():
        store.forget("cells", key)


def test_a_finding_that_lost_its_observations_is_of_the_only_corpus_of_that_name(tmp_path):
    store = Store(tmp_path / "store")
    lost = put(store, [finding()])
    put(store, [finding()], encoder="average")
    put(store, [finding()], corpus="imdb", encoder="cnn")
    lose_observations(store, lost)
    held = {each.cell.key: each for each in Stored(store).every}
    assert not held[lost.key].observations
    assert held[lost.key].corpus_key == corpus_cell("sst").key
    put(store, [finding()], encoder="cnn", texts="other texts")
    held = {each.cell.key: each for each in Stored(store).every}
    assert held[lost.key].corpus_key is None, "of two corpora of one name nobody knows which"
