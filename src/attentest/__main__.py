"""`python -m attentest` and the `attentest` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; threads are pinned before torch is imported, since idle ones spin."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        from attentest.cli.main import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # before the command began, or after it was done
        sys.exit(130)


if __name__ == "__main__":
    main()
