"""Whether the nodes of a cluster see the store: each reads what was just written here, and writes back.

`python -m attentest.bench.sharing STORE RUN VERSION` is what a node is asked to do.
"""

from __future__ import annotations

import contextlib
import json
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import version as installed

from attentest.bench.engine.cluster import Answer, Cluster, unfit
from attentest.refusal import Refusal
from attentest.store.store import Store

FOLDER = "making"  # what a killed run leaves there is swept
HOME = "home"
PACKAGE = "attentest"


@contextlib.contextmanager
def shared(store: Store, cluster: Cluster) -> Iterator[None]:
    """Every node has seen the store; one that comes later is asked before its first cell."""
    run = f"probe-{uuid.uuid4().hex}"
    address = store.folder.address
    store.replace(run.encode(), FOLDER, run, HOME)
    try:
        command = [sys.executable, "-m", "attentest.bench.sharing", address, run, installed(PACKAGE)]
        answers = cluster.ask(command)
        for answer in answers:
            _check(store, run, answer)
        cluster.probe, cluster.probed = command, [answer.node for answer in answers]
        yield
    finally:
        store.forget(FOLDER, run)


def _check(store: Store, run: str, answer: Answer) -> None:
    if answer.status != 0:
        raise unfit(answer.name, answer.said, answer.log)
    token = json.loads(answer.said)["token"]
    if store.find(FOLDER, run, token) != run.encode():
        raise unfit(answer.name, f"a store {store.url} of which nothing written there is seen here", "")


def answer(address: str, run: str, version: str) -> str:
    """On a node: the name of the file it has written, if it reads what it should."""
    store = Store(address)
    if version != installed(PACKAGE):
        raise Refusal(
            f"{PACKAGE} {installed(PACKAGE)}",
            got="another version than where the study was started",
            needs=version,
            way_out="Install the same version on all nodes.",
        )
    if store.find(FOLDER, run, HOME) != run.encode():
        raise Refusal(
            f"store {address}",
            got="a place without what was just written",
            needs="the same store as where the study was started",
            way_out="Give a folder that every node mounts, or s3://BUCKET/PREFIX.",
        )
    token = uuid.uuid4().hex
    store.replace(run.encode(), FOLDER, run, token)
    return json.dumps({"token": token})


if __name__ == "__main__":
    try:
        print(answer(*sys.argv[1:]))
    except Refusal as refusal:
        print(f"{refusal.what} with {refusal.got}")
        sys.exit(2)
