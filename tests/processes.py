"""Whether a process has ended, and which ones it has started."""

import os
from pathlib import Path


def is_gone(pid):
    """Whether the process has ended; a zombie that waits for its parent has."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except ProcessLookupError:
        return True
    except FileNotFoundError:
        return Path("/proc/self").exists()  # it has just gone; without /proc it is still there
    return state == "Z"


def children(pid):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(")", 1)[1].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found
