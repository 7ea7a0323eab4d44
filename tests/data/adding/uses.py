"""Uses what was added, in the copy of the package that has it, and prints what it found as JSON."""

import json
import sys
from pathlib import Path

from attentest.auditing.cards import audit_card
from attentest.auditing.run import audited
from attentest.bench.subjects import load_model
from attentest.bench.verbs import run_study
from attentest.compare.points import GridPoint
from attentest.compare.stored import Stored
from attentest.corpus.catalogue import load_corpus
from attentest.experiments.cards import CARDS
from attentest.gallery.export import export_findings
from attentest.gallery.rows import PointRows
from attentest.gallery.sections import point_page
from attentest.statistics.record import completed
from attentest.store.importing import import_findings
from attentest.store.store import Store
from attentest.store.tables import from_parquet

url, study, older = sys.argv[1:]
assert run_study(study, url, engine="inline", device="cpu")["failed"] == []
store = Store(url)
stored = {each.cell.config["experiment"]: each for each in Stored(store).every}

count, explainers = stored["word-count"], stored["explainers"]
page, _ = point_page(
    PointRows(GridPoint([count], "x.html"), {count.cell.key: count.rows()}), [], {}, private=False
)
section = page.sections[0]

model_key = next(key for key in store.done() if store.cell(key).stage == "model")
corpus = load_corpus(count.cell.config["corpus"])
audit = audited(load_model(store, model_key, "cpu"), corpus.test[:4], "quick", questions=("agreement",))

export_findings(url, Path(url) / "shared.parquet")
again = Store(f"{url}/again")
import_findings(Path(url) / "shared.parquet", again.url)
import_findings(Path(older), f"{url}/older")
old = Store(f"{url}/older")
tables = {
    name: from_parquet(
        each.read(next(k for k in each.done() if each.holds(k, "findings.parquet")), "findings.parquet")
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
            },
            "column": {
                "concluded": float(count.table["largest"].max()),
                "shared": float(tables["again"]["largest"].max()),
                "older": [name for name in tables["older"].columns if name == "largest"],
                "completed": completed(tables["older"])["largest"].isna().all().item(),
            },
        }
    )
)
