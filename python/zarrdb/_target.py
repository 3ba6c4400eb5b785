"""Names of the form DB@REV:NODE, also as a URL with zarrdb:// before it."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from ._client import is_database
from ._errors import InvalidError, NotFoundError

SCHEME = "zarrdb://"
_rev = re.compile(r"@((?:\{[^}]*\}|[^:/{])*)")


def _split(text: str) -> tuple[str, str] | None:
    """The directory of the database that a text begins with, and the rest."""
    for i in [i for i, c in enumerate(text) if c in "@:/" and i > 0] + [len(text)]:
        if is_database(text[:i]):
            return text[:i], text[i:]
    return None


def is_target(text: str) -> bool:
    """Whether a text is a URL of ours, or names a database or a place in one. Files in the folder of a database are not meant."""
    found = _split(text)
    return text.startswith(SCHEME) or found is not None and found[1][:1] in ("", "@", ":")


def parse(target: str) -> tuple[str, str, str]:
    """The directory, the revision ("main" if there is none) and the path of a target. A slash
    in the name of a branch is written %2F."""
    found = _split(target.removeprefix(SCHEME))
    if found is None:
        raise NotFoundError(f"{target}: there is no database", "no_database")
    (dir, rest), rev = found, "main"
    if m := _rev.match(rest):
        rest, rev = rest[m.end() :], unquote(m[1])
    return os.path.realpath(dir), rev, rest.lstrip(":").strip("/")


def directory(path: str | os.PathLike[str]) -> str:
    """The directory of a database that is there or is to be made. URLs and places in a database are refused."""
    text = os.fspath(path)
    if not is_database(text):
        if text.startswith(SCHEME):
            raise InvalidError(f"{text} is a URL; write {text.removeprefix(SCHEME)}")
        if "://" in text:
            raise InvalidError(f"{text} is a URL, and a database is a directory of this machine")
        found = _split(text)
        if found is not None and found[1][0] in "@:":
            raise InvalidError(f"{text} is a place in a database; open {found[0]}, and then a version with at() or a session")
    return os.path.realpath(text)
