"""Run the table of docs/guide/coming-from.md line by line in Icechunk and in the Python package, and compare the values."""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "python"), str(Path(__file__).parents[1] / "python" / "tests")]

import icechunk  # noqa: E402
import numpy as np  # noqa: E402
import zarr  # noqa: E402
from names import rows, run  # noqa: E402

import zarrdb  # noqa: E402


def main() -> int:
    wrong = n = 0
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        np.full(4, 7, "f4").tofile("numbers.bin")
        theirs, ours = ({"zarr": zarr, "datetime": datetime, "os": os, module.__name__: module} for module in (icechunk, zarrdb))
        for left, right in rows():
            n += 1
            try:
                got, want = run(right, ours), run(left, theirs)
            except Exception as e:
                got, want = f"{type(e).__name__}: {e}", ""
            if got != want:
                wrong += 1
                print(f"{left}\n  {right}\n  Icechunk: {want!r}\n  zarrdb:   {got!r}", file=sys.stderr)
        ours["repo"].close()
    print(f"Icechunk {icechunk.__version__}: {n - wrong} of {n} lines do the same")
    return wrong > 0 or n < 30


if __name__ == "__main__":
    sys.exit(main())
