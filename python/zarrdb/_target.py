"""Names of the form DB@REV:NODE, also as a URL with zarrdb:// before it."""

from __future__ import annotations

import json
import os
import re
import warnings
from contextlib import suppress
from urllib.parse import unquote

from ._client import binary, exit_error, is_database
from ._errors import InvalidError, NotFoundError

SCHEME = "zarrdb://"
_rev = re.compile(r"@((?:\{[^}]*\}|[^:/{])*)")
_url = re.compile(r"(s3|gs|file)://")
_remotes: dict[str, str] = {}  # the directory of the cache of each remote that was read, by its URL


def _remote(text: str, known: bool = False) -> str:
    """If a text names a remote, or a place in one, find or make the cache of the remote, and bring it up to date, unless it is there
    and `known` is set. Its URL, or nothing."""
    import subprocess

    if not _url.match(text):
        return ""
    p = subprocess.run([binary(), "remote-dir", *["--known"] * known, text], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if p.returncode != 0:
        raise exit_error(p.returncode, p.stderr)
    if p.stderr:
        warnings.warn(p.stderr.strip().removeprefix("zarrdb: warning: "), stacklevel=3)
    found = json.loads(p.stdout)
    url: str = found["url"]
    _remotes[url] = found["dir"]
    return url


def _split(text: str) -> tuple[str, str] | None:
    """The directory of the database that a text begins with, and the rest."""
    ends = [i for i, c in enumerate(text) if c in "@:/" and i > 0] + [len(text)]
    for i in reversed(ends):
        if text[:i] in _remotes and text[i : i + 1] != "/":
            return text[:i], text[i:]
    for i in ends:
        if is_database(text[:i]):
            return text[:i], text[i:]
    return None


def is_target(text: str) -> bool:
    """Whether a text is a URL of ours, or names a database or a place in one. Files in the folder of a database are not meant, nor URLs
    that may be those of other formats: for these, engine="zarrdb" is given."""
    if _url.match(text):
        return False
    found = _split(text)
    return text.startswith(SCHEME) or found is not None and found[1][:1] in ("", "@", ":")


def parse(target: str, again: bool = True) -> tuple[str, str, str]:
    """The directory, the revision ("main" if there is none) and the path of a target. A slash
    in the name of a branch is written %2F. A remote that was read before is asked for what is new, if `again` is set."""
    text = target.removeprefix(SCHEME)
    found = None if again else _split(text)
    if found is None:
        url = _remote(text)
        found = (url, text[len(url) :]) if url else _split(text)
    if found is None:
        raise NotFoundError(f"{target}: there is no database", "no_database")
    (dir, rest), rev = found, "main"
    if m := _rev.match(rest):
        rest, rev = rest[m.end() :], unquote(m[1])
    return _remotes.get(dir) or os.path.realpath(dir), rev, rest.lstrip(":").strip("/")


def named(dir: str) -> str:
    """The name of a database for other processes and machines: the URL of the remote, if the directory is that of a cache."""
    return next((url for url, at in _remotes.items() if at == dir), dir)


def directory(path: str | os.PathLike[str], create: bool = False, known: bool = False) -> str:
    """The directory of a database that is there or is to be made, or of the cache of a remote, which is left as it is if `known` is set.
    Other URLs and places in a database are refused."""
    text = os.fspath(path)
    if known and text in _remotes:
        return _remotes[text]
    if not is_database(text):
        if not create:
            with suppress(NotFoundError):
                _remote(text, known)
        if text in _remotes:
            return _remotes[text]
        if text.startswith(SCHEME):
            raise InvalidError(f"{text} is a URL; write {text.removeprefix(SCHEME)}")
        found = _split(text)
        if found is not None and found[1][0] in "@:":
            raise InvalidError(f"{text} is a place in a database; open {found[0]}, and then a version with at() or a session")
        if "://" in text:
            raise InvalidError(f"{text} is a URL, and a database is a directory of this machine, or a remote such as s3://bucket/name")
    return os.path.realpath(text)
