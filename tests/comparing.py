"""A study with published numbers, and a store that holds findings beside them."""

import csv
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq

from attentest.corpus.files import SCHEMA
from attentest.corpus.sources import CORPORA
from attentest.statistics.record import Finding, to_frame
from attentest.store.cell import Cell
from attentest.store.tables import to_parquet
from attentest.studies.published import COLUMNS as CSV_COLUMNS

STUDY = """
study = "ours"
title = "Ours beside theirs"

[grid]
corpus = ["sst"]
encoder = ["bilstm", "average"]

[[experiment]]
name = "importance"

[[experiment]]
name = "performance"

[published]
file = "numbers.csv"
"""


SHELF = {name: "embedded" if "simulated" in name else "here" for name in CORPORA} | {
    "agnews": "downloadable",
    "cnn": "absent",
    "adr": "not redistributable",
    "mimic-anemia": "needs credentials",
}


TAU = "tau_attention_gradient"


def line(dataset, measure, value, of_class="0", **other):
    said = {"paper": "Jain&Wallace2019", "table": "Table2_slides", "dataset": dataset, "model": "BiLSTM"}
    said |= {"attention": "additive", "projection": "softmax", "class": of_class, "measure": measure}
    said |= {"value": value, "std": "", "source": "s"} | other
    return tuple(said[column] for column in CSV_COLUMNS)


def a_study(folder, lines, text=STUDY):
    """The path of a study with these published numbers."""
    with (folder / "numbers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([CSV_COLUMNS, *lines])
    (folder / "ours.toml").write_text(text)
    return str(folder / "ours.toml")


def finding(measure="tau-gradient", group="predicted=negative", estimate=0.34, seeds=5, **other):
    about = {
        "experiment": "importance",
        "std": 0.2,
        "seed_std": 0.02 if seeds > 1 else math.nan,
        "low": estimate - 0.02,
        "high": estimate + 0.02,
        "interval": "seeds, instances",
        "n": 1725 * seeds,
        "excluded": 0,
        "why": "",
        "null": 0.1,
        "mode": "corrected",
    }
    named = {"measure": measure, "group": group, "estimate": estimate, "seeds": seeds}
    return Finding(**about | named | other)


def put(
    store,
    findings,
    corpus="sst",
    *,
    seeds=5,
    encoder="bilstm",
    attention="additive",
    texts="texts",
    version=1,
    parameters=None,
    **model,
):
    """A finding cell with the observations and trainings behind it; none of the heavy files."""
    experiment = findings[0].experiment
    settings = {"decoder": "sigmoid", "vectors": "random(0.1)", "epochs": 8, **model}
    corpus_key = corpus_cell(corpus, texts).key
    inputs = {}
    for seed in range(seeds):
        config = {**settings, "encoder": encoder, "seed": seed}
        trained = Cell(stage="model", version=1, config=config, inputs={"corpus": corpus_key})
        history = {"history": [{}] * min(settings["epochs"], 6 + seed), "chosen": 2}
        store.write(trained, {"training.json": json.dumps(history).encode()}, {})
        seen = {"corpus": corpus_key, "model": trained.key}
        seen_cell = Cell(stage="observation", version=1, config={"experiment": experiment}, inputs=seen)
        store.write(seen_cell, {}, {})
        inputs[f"seed {seed}"] = seen_cell.key
    config = {"experiment": experiment, "mode": findings[0].mode, "parameters": parameters or {}}
    config |= {"corpus": corpus, "encoder": encoder, "attention": attention, "projection": "softmax"}
    config |= {"model": settings}
    cell = Cell(stage="finding", version=version, config=config, inputs=inputs)
    store.write(cell, {"findings.parquet": to_parquet(to_frame(findings))}, {})
    return cell


def corpus_cell(name, texts="texts"):
    return Cell(stage="corpus", version=1, config={"name": name, "source": texts})


def put_corpus(store, name, counts, texts="texts", tokens=None, sentences=None):
    labels = list(counts["train"])
    files = {"corpus.json": json.dumps({"counts": counts, "labels": labels, "has_query": False}).encode()}
    if tokens:
        begins = [None if sentences is None else list(range(n)) for n in sentences or tokens]
        columns = {"tokens": [["word"] * n for n in tokens], "sentences": begins}
        sink = pa.BufferOutputStream()
        kinds = pa.schema([SCHEMA.field(name) for name in columns])
        pq.write_table(pa.table(columns, schema=kinds), sink)
        files["examples.parquet"] = sink.getvalue().to_pybytes()
    store.write(corpus_cell(name, texts), files, {})
