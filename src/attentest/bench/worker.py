"""A worker process: keys come in on standard input, events go out as JSON lines.

Several keys on one line are models to be trained together.

Standard output belongs to the protocol, so whatever else prints goes to standard error. When the input
closes the parent is gone or has finished, and so are we, whatever we were doing: the cell is not written
yet, and the next run goes on from the last save.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import TextIO

from attentest.bench.engine.contract import Event
from attentest.bench.fleets import attempt_together
from attentest.store.store import Store


def main(store_url: str, device: str) -> None:
    """Do cells until the input closes."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    store = Store(store_url)
    keys: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(keys,), daemon=True).start()
    try:
        while True:
            together = keys.get().split()
            attempt_together(together, store, device, lambda event: _say(out, event))
    except KeyboardInterrupt:
        os._exit(130)


def _listen(keys: queue.Queue[str]) -> None:
    for line in sys.stdin:
        keys.put(line.strip())
    os._exit(0)


def _say(out: TextIO, event: Event) -> None:
    try:
        out.write(json.dumps({"kind": event.kind, "key": event.key, "detail": event.detail}) + "\n")
        out.flush()
    except BrokenPipeError as error:  # nobody listens any more; that is no failure of the cell
        raise KeyboardInterrupt from error


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
