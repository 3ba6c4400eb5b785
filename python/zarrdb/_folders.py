"""Folders of plain Zarr, for tools that take only a path."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any


def checkout(repo: Any, dir: str | os.PathLike[str], rev: str, only: str | Sequence[str], discard: str | Sequence[str]) -> dict[str, Any]:
    """Repository.checkout."""
    args = ["checkout", f"{repo.path}@{rev}", os.path.abspath(dir), "--json"]
    for flag, paths in (("--only", only), ("--discard", discard)):
        args += [a for p in ([paths] if isinstance(paths, str) else paths) for a in (flag, p)]
    return dict(json.loads(repo.run(*args)))


def commit(repo: Any, dir: str | os.PathLike[str], message: str, branch: str | None, verify: bool) -> str:
    """Repository.commit_folder: the id of the commit."""
    args = ["commit", os.path.abspath(dir), "-m", message, "--json"] + ["--verify"] * verify
    out = json.loads(repo.run(*args, *(["--branch", branch] if branch else [])))
    return str(out["commit"]["id"])


def status(repo: Any, dir: str | os.PathLike[str]) -> dict[str, str]:
    """Repository.folder_status."""
    out = json.loads(repo.run("commit", os.path.abspath(dir), "--dry-run", "--json"))
    return {c["key"]: c["op"] for c in out["changes"]}
