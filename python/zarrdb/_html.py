"""HTML for notebooks."""

from __future__ import annotations

import base64
import html
import json
import math
import os
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._errors import ZarrdbError

if TYPE_CHECKING:
    from ._client import Client
    from ._views import View

# Rows of a table; further rows are counted.
MOST = 100

# A picture that takes longer, in seconds, or is larger, in bytes, is left out.
PATIENCE = 5.0
LARGE = 1 << 20


def code(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"


def text(text: str) -> str:
    return html.escape(text)


def table(rows: Iterable[Iterable[str]], most: int = MOST) -> str:
    """A table of cells, which are HTML. At most `most` rows are shown."""
    lines = ["".join(f'<td style="text-align:left">{cell}</td>' for cell in row) for row in rows]
    more = [f"<td>… {len(lines) - most} more</td>"] if len(lines) > most else []
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines[:most] + more) + "</table>"


def picture(client: Client, *target: str) -> str:
    """A small picture of an array, which is `target` on a command line: "" without one."""
    import subprocess

    with tempfile.TemporaryDirectory() as tmp:
        file = os.path.join(tmp, "p.png")
        try:
            client.run("plot", *target, "-o", file, "--width", "300", timeout=PATIENCE)
            with open(file, "rb") as f:
                png = f.read()
        except (OSError, ZarrdbError, subprocess.TimeoutExpired):  # text, an empty array, no program
            return ""
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(png).decode()}">' if len(png) <= LARGE else ""


def tree(view: View) -> str:
    """The arrays and groups of a version or session, and a picture of the largest array with two dimensions or more."""
    head = code(repr(view))
    try:
        _, out, _ = view._client.run("tree", *view._target(), "--json")
        nodes: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    except (ZarrdbError, ValueError):  # it is shown all the same
        return head
    rows = []
    planes = [n for n in nodes if n["node_type"] == "array" and len(n.get("shape") or []) >= 2 and "string" not in str(n["data_type"])]
    largest = max(planes, key=lambda n: math.prod(n["shape"]), default=None)
    shown = picture(view._client, *view._target(largest["path"])) if largest else ""
    for node in nodes:
        depth = node["path"].count("/")
        name = "&nbsp;" * 4 * depth + text(node["path"].rpartition("/")[2] or "/")
        if node["node_type"] == "group":
            rows.append([f"<b>{name}</b>", "", "", ""])
            continue
        shape = node.get("shape") or []
        names = node.get("dimension_names") or [None] * len(shape)
        sizes = ", ".join(f"{d}: {n}" if d else str(n) for d, n in zip(names, shape, strict=False))
        chunks = ", ".join(map(str, node.get("chunk_shape") or []))
        kind = node.get("data_type", "")
        rows.append([name, f"({text(sizes)})", text(kind if isinstance(kind, str) else json.dumps(kind)), f"chunks ({chunks})"])
    return head + table(rows) + shown
