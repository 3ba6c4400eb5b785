"""What is written DB@REV:NODE, also as a URL with zarrdb:// before it."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from ._client import is_database
from ._errors import NotFoundError

SCHEME = "zarrdb://"
_rev = re.compile(r"@((?:\{[^}]*\}|[^:/{])*)")


def parse(target: str) -> tuple[str, str, str]:
    """The directory, the revision ("main" if there is none) and the path of a target. A slash
    in the name of a branch is written %2F."""
    text = target.removeprefix(SCHEME)
    for i in [i for i, c in enumerate(text) if c in "@:/" and i > 0] + [len(text)]:
        if not is_database(text[:i]):
            continue
        rest, rev = text[i:], "main"
        if m := _rev.match(rest):
            rest, rev = rest[m.end() :], unquote(m[1])
        return os.path.realpath(text[:i]), rev, rest.lstrip(":").strip("/")
    raise NotFoundError(f"{target}: there is no database", "no_database")
