"""What other processes do in tests: a module that is imported fast."""

from __future__ import annotations

import zarrdb


def use(s: zarrdb.Session, v: zarrdb.Snapshot, i: int) -> None:
    assert v.array("a")[i % 8] == i % 8
    s.array("n")[i : i + 1] = i
    s.set(f"key{i}", str(i).encode())
