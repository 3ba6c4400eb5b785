"""The table of docs/guide/coming-from.md for those who know Icechunk, to be run line by line in Icechunk and here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "coming-from.md"


def rows() -> Iterator[tuple[str, str]]:
    """The code of each line in Icechunk, and in this package."""
    text = PAGE.read_text().partition("| Icechunk |")[2].partition("\n\n")[0]
    for line in text.splitlines()[2:]:
        left, right = line.strip("| ").split(" | ")
        ours = {"the same": None, "nothing": ""}.get(right, right.strip("`"))
        for code in re.findall(r"`([^`]+)`", left):
            yield code, code if ours is None else ours


def run(code: str, names: dict[str, Any]) -> Any:
    """The value of a line, None of one that is no expression."""
    try:
        compiled = compile(code, code, "eval")
    except SyntaxError:
        exec(code, names)
        return None
    return eval(compiled, names)
