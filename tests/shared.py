"""What the processes of one test run make together: each thing once, by whichever asks first."""

import fcntl
import os


def folder_of_the_run(tmp_path_factory):
    """A temporary folder that all processes of this run have."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def made_once(tmp_path_factory, name, make):
    """A folder that `make` fills, while the others wait; what is in it may only be read."""
    run = folder_of_the_run(tmp_path_factory)
    with (run / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (run / name).exists():
            half = run / f"{name}.half"
            half.mkdir()
            make(half)
            half.rename(run / name)
    return run / name
