"""Makes docs/demo.svg, the README's picture, from a real run of the demo: `python docs/picture.py STORE`."""

import io
import sys
from pathlib import Path

from rich.console import Console

from attentest.bench.showcase import run_demo
from attentest.cli.results import look_back
from attentest.terminal.demonstration import show_demo

if __name__ == "__main__":
    console = Console(record=True, width=96, force_terminal=True, file=io.StringIO())
    document = run_demo(sys.argv[1], full=True)
    document |= look_back({finding["cell"] for finding in document["findings"]}, sys.argv[1])
    document["store"] = "demo-store"
    document["site"] = {"index": "demo-store/site/index.html"}
    document["findings"] = [f for f in document["findings"] if f["corpus"] == "planted-keyword"]
    document["texts"] = [document["texts"][n] for n in (0, 2, 4)]
    show_demo(document, console)
    Path(__file__).with_name("demo.svg").write_text(console.export_svg(title="attentest demo"))
