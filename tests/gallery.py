"""A store as studies leave it, made by hand: rows of every experiment, real findings, hostile names."""

import functools
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd

from attentest.corpus.example import Corpus, Example
from attentest.corpus.files import to_files
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.statistics.record import to_frame
from attentest.store.cell import Cell
from attentest.store.tables import to_parquet
from tests.observed import adversary_rows, importance_rows, texts
from tests.observed_ablation import ablated_rows
from tests.observed_communication import communication_rows
from tests.observed_dispersion import dispersion_rows
from tests.observed_meister import frozen_adversary_rows, sparsity_rows
from tests.observed_removals import removal_rows, single_weight_rows
from tests.observed_wiegreffe_pinter import (
    guided_rows,
    seed_variance_rows,
    trained_adversary_rows,
    uniform_baseline_rows,
)

LABELS = ("no", "yes")
HOSTILE = SimpleNamespace(
    label="<script>alert(1)</script>",
    token="</bdi><img src=x onerror=alert(2)>",
    id='t0000"><svg onload=alert(3)>',
    query="&amp;<b>",
    hidden="ab\u202ecd\x1b[31m",
)
SETTINGS = {"decoder": "sigmoid", "vectors": "random(0.1)", "epochs": 8}
TEXTS = 40  # as many as the rows of one seed and subject
WORDS = (HOSTILE.token, HOSTILE.hidden, "secretword")
SEEDS = (0, 1)


def _seeds(make):
    return pd.concat([make(seed, np.random.default_rng(seed)) for seed in SEEDS], ignore_index=True)


def performance_rows():
    def drawn(seed, rng):
        gold = rng.integers(0, 2, TEXTS)
        chance = rng.uniform(size=TEXTS)
        return texts(TEXTS, seed).assign(
            gold=gold,
            label=[LABELS[n] for n in gold],
            predicted=[LABELS[int(p > 0.5)] for p in chance],
            probabilities=[[1 - p, p] for p in chance],
        )

    return _seeds(drawn)


def permutation_rows():
    rows = importance_rows()[["seed", "subject", "id", "label", "predicted", "length", "max_attention"]]
    return rows.assign(median_change=np.random.default_rng(3).uniform(size=len(rows)))


def opposed_rows(words=3):
    """The adversary's rows; texts of the trained model keep their weights, as every shown text does."""
    rows = adversary_rows().assign(epsilon=0.01, proved=True)
    weights = np.random.default_rng(4).dirichlet(np.ones(words), len(rows))
    for name in ("weights", "exact_weights", "search_weights"):
        kept = [
            w.tolist() if who == "trained" else None for w, who in zip(weights, rows["subject"], strict=True)
        ]
        rows[name] = pd.Series(kept, dtype=object)
    return rows


def pictured_rows():
    row = {"subject": "trained", "id": "t0001", "label": "no", "predicted": "yes", "output": 0.75}
    row |= {"tau_gradient": 0.25, "median_change": 0.125, "search_jsd": 0.5, "search_change": 0.01}
    row |= {"exact_jsd": 0.625, "exact_change": 0.01, "tokens": list(WORDS), "query": [HOSTILE.query]}
    row |= {name: [0.5, 0.25, 0.25] for name in ("weights", "search_weights", "exact_weights")}
    return pd.DataFrame([row | {"seed": seed} for seed in SEEDS])


def deception_rows():
    """Every penalty, the anonymised model and the controls; the penalised attend where they may."""
    subjects = ("trained", "lambda 0.1", "lambda 1", "anonymised", "untrained", "shuffled labels")
    rng = np.random.default_rng(6)
    tables = []
    for seed in SEEDS:
        for subject in subjects:
            mass = rng.uniform(0, 0.1 if subject.startswith("lambda") else 1, TEXTS)
            tables.append(
                texts(TEXTS, seed, subject).assign(
                    label=rng.choice(LABELS, TEXTS),
                    impermissible=0 if subject == "anonymised" else 1,
                    mass=mass,
                    mass_left=1 - mass,
                    **{
                        name: rng.integers(0, 2, TEXTS) * 1.0
                        for name in ("correct", "correct_zeroed", "correct_renormalised")
                    },
                )
            )
    return pd.concat(tables, ignore_index=True)


ROWS = {
    "performance": performance_rows,
    "importance": importance_rows,
    "permutation": permutation_rows,
    "adversary": opposed_rows,
    "heat-map": pictured_rows,
    "uniform-baseline": uniform_baseline_rows,
    "seed-variance": seed_variance_rows,
    "guided": guided_rows,
    "trained-adversary": trained_adversary_rows,
    "single-weight": single_weight_rows,
    "removal": removal_rows,
    "deception": deception_rows,
    "dispersion": dispersion_rows,
    "sparsity": sparsity_rows,
    "frozen-adversary": frozen_adversary_rows,
    "communication": communication_rows,
    "ablation": ablated_rows,
}


def hostile(rows):
    """The same rows with names that would like to be markup."""
    changes = {"yes": HOSTILE.label, "t0000": HOSTILE.id}
    columns = [name for name in rows if name in ("label", "id") or name.endswith("predicted")]
    renamed = {name: rows[name].replace(changes).astype(object) for name in columns}
    return rows.assign(**{name: column.where(column.notna(), None) for name, column in renamed.items()})


def corpus_of(name="mine", labels=("no", HOSTILE.label), query=None):
    ids = [HOSTILE.id, *(f"t{n:04d}" for n in range(1, TEXTS))]
    test = [Example(id=i, tokens=WORDS, label=labels[0], query=query) for i in ids]
    others = [Example(id=f"{part}", tokens=("a",), label=labels[0], query=query) for part in ("train", "dev")]
    return Corpus(name=name, train=(others[0],), dev=(others[1],), test=tuple(test), labels=labels)


def put_corpus(store, name="mine", **about):
    cell = Cell(stage="corpus", version=1, config={"name": name, "source": "by hand"})
    store.write(cell, to_files(corpus_of(name, **about)), {})
    return cell


def written(experiment, mode, rows):
    """The files of rows, by seed, and that of what is concluded from them."""
    by_seed = {
        int(seed): to_parquet(own.drop(columns="seed").to_dict("records"))
        for seed, own in rows.groupby("seed")
    }
    concluded = CONCLUSIONS[experiment].conclude(rows, mode=mode, rng=np.random.default_rng(0))
    return by_seed, to_parquet(to_frame(concluded))


@functools.cache
def _own(experiment, mode):
    """Those of the rows above, which many stores hold."""
    return written(experiment, mode, hostile(ROWS[experiment]()))


def put(
    store, experiment, corpus, rows=None, *, encoder="bilstm", mode="corrected", parameters=None, **model
):
    """A finding cell with the observations and trainings behind it, concluded from the rows.

    Instead of rows there may be what `written` makes of them, which saves concluding them again.
    """
    if isinstance(rows, tuple):
        by_seed, findings = rows
    else:
        by_seed, findings = _own(experiment, mode) if rows is None else written(experiment, mode, rows)
    settings = SETTINGS | model
    inputs = {}
    for seed, own in by_seed.items():
        trained = Cell(
            stage="model",
            version=1,
            config={**settings, "encoder": encoder, "seed": seed},
            inputs={"corpus": corpus.key},
        )
        store.write(trained, {"training.json": json.dumps({"history": [{}] * 5}).encode()}, {})
        seen = Cell(
            stage="observation",
            version=1,
            config={"experiment": experiment, "mode": mode, "parameters": parameters or {}},
            inputs={"corpus": corpus.key, "model": trained.key},
        )
        store.write(seen, {"rows.parquet": own}, {})
        inputs[f"seed {seed}"] = seen.key
    config = {"experiment": experiment, "mode": mode, "parameters": parameters or {}, "model": settings}
    config |= {"corpus": corpus.config["name"], "encoder": encoder}
    config |= {"attention": "additive", "projection": "softmax"}
    cell = Cell(
        stage="finding", version=CONCLUSIONS[config["experiment"]].version, config=config, inputs=inputs
    )
    store.write(cell, {"findings.parquet": findings}, {})
    return cell


def put_everything(store, name="mine", *, encoder="bilstm", **about):
    """One grid point with every experiment; gives the finding cells by experiment."""
    corpus = put_corpus(store, name, **about)
    return {experiment: put(store, experiment, corpus, encoder=encoder) for experiment in ROWS}
