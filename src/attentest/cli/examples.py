"""One example of every command, shown at the end of its help; it fits on one line of a terminal."""

from __future__ import annotations

import typer

EXAMPLES = {
    "audit": "attentest audit ./my-bert --data reviews.csv --out audit.html",
    "compare": "attentest compare jain-wallace-2019",
    "conclude": "attentest conclude --store my-store",
    "corpora remove": "attentest corpora remove mine",
    "corpora add": "attentest corpora add mine reviews.csv --text review --label stars",
    "corpora describe": "attentest corpora describe sst",
    "corpora get": "attentest corpora get sst",
    "corpora list": "attentest corpora list",
    "demo": "attentest demo --store demo-store",
    "inspect": 'attentest inspect ./my-bert "The food was not good at all."',
    "list": "attentest list --store my-store",
    "report": "attentest report --store my-store --out site",
    "run-cell": "attentest run-cell 3f1c52ab --store my-store",
    "serve": "attentest serve --store my-store --port 8000",
    "store check": "attentest store check --store my-store",
    "store heal": "attentest store heal --store my-store",
    "store prune": "attentest store prune --store my-store",
    "store export": "attentest store export --findings results.parquet",
    "store import": "attentest store import results.parquet --store my-store",
    "study": "attentest study jain-wallace-2019 --corpus sst --seeds 5",
    "train": "attentest train sst --encoder cnn --attention additive --seed 1",
}


def show_examples(app: typer.Typer, above: str = "") -> None:
    """Puts the example of each command below its help; a command without one fails here."""
    for command in app.registered_commands:
        name = command.name or command.callback.__name__  # type: ignore[union-attr]
        command.epilog = f"Example: {EXAMPLES[f'{above} {name}'.strip()]}"
    for group in app.registered_groups:
        show_examples(group.typer_instance, f"{above} {group.name}".strip())  # type: ignore[arg-type]
