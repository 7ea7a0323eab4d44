"""Uses what was added, in the copy of the package that has it, and prints what it found as JSON."""

import json
import sys
from pathlib import Path

import pandas as pd

from attentest.auditing.cards import audit_card
from attentest.auditing.run import audited
from attentest.bench.subjects import load_model
from attentest.bench.verbs import run_study
from attentest.compare.points import GridPoint
from attentest.compare.stored import Stored
from attentest.corpus.catalogue import load_corpus
from attentest.experiments.cards import CARDS
from attentest.gallery.explorer import corpus_words, explorer
from attentest.gallery.export import export_findings
from attentest.gallery.rows import PointRows
from attentest.gallery.sections import point_page
from attentest.statistics.record import completed
from attentest.store.importing import import_findings
from attentest.store.store import Store
from attentest.store.tables import from_parquet

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.serving import answered, application

url, study, older = sys.argv[1:]
assert run_study(study, url, engine="inline", device="cpu")["failed"] == []
store = Store(url)
stored = {each.cell.config["experiment"]: each for each in Stored(store).every}

count, explainers, importance = (stored[each] for each in ("word-count", "explainers", "importance"))
page, _ = point_page(
    PointRows(GridPoint([count], "x.html"), {count.cell.key: count.rows()}), [], {}, private=False
)
section = page.sections[0]

model_key = next(key for key in store.done() if store.cell(key).stage == "model")
corpus = load_corpus(count.cell.config["corpus"])
audit = audited(load_model(store, model_key, "cpu"), corpus.test[:4], "quick", questions=("agreement",))

point = GridPoint([importance], "x.html")
rows = PointRows(point, {importance.cell.key: importance.rows()})
page, files = explorer(rows, corpus_words(point.stored_corpus), [], private=False, every=False)


def taken(name):
    """What the script of a page hands to it."""
    (start,) = (text for file, text in files.items() if file == f"data/{name}.js")
    return json.loads("[" + start.removeprefix("attentest.take(").removesuffix(");\n") + "]")[1]


app, host = application(store), {"host": "127.0.0.1:8420"}
offered = json.loads(answered(app, "/api/models", "GET", host).body)["importances"]
asked = {"model": model_key, "text": "a good film", "importances": ["embedding-norm"]}
reading = answered(
    app, "/api/read", "POST", {**host, "content-type": "application/json"}, json.dumps(asked).encode()
)
live = json.loads(reading.body)["importances"]
interface = json.loads(answered(app, "/api/openapi.json", "GET", host).body)["components"]["schemas"]

export_findings(url, Path(url) / "shared.parquet")
again = Store(f"{url}/again")
import_findings(Path(url) / "shared.parquet", again.url)
import_findings(Path(older), f"{url}/older")
old = Store(f"{url}/older")
tables = {
    name: pd.concat(
        from_parquet(each.read(key, "findings.parquet"))
        for key in each.done()
        if each.holds(key, "findings.parquet")
    )
    for name, each in (("again", again), ("older", old))
}
print(
    json.dumps(
        {
            "experiment": {
                "findings": dict(count.table[["group", "estimate"]].itertuples(index=False, name=None)),
                "section": [section.title, section.asks, len([*section.lines.first, *section.lines.others])],
                "card": CARDS["word-count/units"].measure,
            },
            "importance": {
                "columns": [name for name in explainers.rows().columns if "embedding-norm" in name],
                "measures": sorted({m for m in explainers.table["measure"] if "embedding-norm" in m}),
                "audit": sorted({each.measure for each in audit.findings}),
                "card": audit_card("agreement", "embedding-norm").measure,
                "parameter": importance.cell.config["parameters"]["also"],
                "observed": [name for name in importance.rows().columns if "embedding-norm" in name],
                "whole": int(importance.rows()["embedding-norm"].notna().sum()),
                "concluded": sorted({m for m in importance.table["measure"] if "embedding-norm" in m}),
                "null_of_tau": float(
                    importance.table.query("measure == 'tau-embedding-norm' and group == 'overall'")[
                        "null"
                    ].iloc[0]
                ),
                "explored": [
                    taken("x")["importances"],
                    [each for each in taken("x")["columns"] if "embedding-norm" in each["name"]],
                    sum("embedding-norm" in text for text in taken("x-weights-0").values()),
                ],
                "offered": [each["title"] for each in offered if each["name"] == "embedding-norm"],
                "live": [live["embedding-norm"]["scores"], [*live]],
                "interface": "embedding-norm"
                in interface["ReadQuestion"]["properties"]["importances"]["items"]["enum"],
            },
            "column": {
                "concluded": float(count.table["largest"].max()),
                "shared": float(tables["again"].query("experiment == 'word-count'")["largest"].max()),
                "older": [name for name in tables["older"].columns if name == "largest"],
                "completed": completed(tables["older"])["largest"].isna().all().item(),
            },
        }
    )
)
