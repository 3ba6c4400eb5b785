"""Sources of references that are objects of Python."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

References: TypeAlias = Mapping[str, Any] | Any  # a reference set, or a dataset of VirtualiZarr


@contextmanager
def as_files(sources: tuple[Any, ...]) -> Iterator[list[Any]]:
    """The sources, of which reference sets, of kerchunk's form, and datasets of VirtualiZarr are files for as long as this lasts."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="zarrdb-") as folder:
        out = []
        for i, source in enumerate(sources):
            if not isinstance(source, str | os.PathLike) and hasattr(source, "virtualize"):
                source = _unmasked(source.virtualize.to_kerchunk(format="dict"))
            if isinstance(source, Mapping):
                path = os.path.join(folder, f"{i}.json")
                with open(path, "w") as f:
                    json.dump(_absolute(source), f)
                source = path
            out.append(source)
        yield out


def _unmasked(refs: Mapping[str, Any]) -> dict[str, Any]:
    """The reference set of a dataset of VirtualiZarr, with no fill value of 0 that the dataset does not name. The dataset is of
    format 3, in which xarray reads 0 as a value; the reference set is of format 2, in which xarray takes the fill value for missing."""
    inner = dict(refs["refs"])

    def document(key: str) -> Any:
        text = inner.get(key, "{}")
        return json.loads(text) if isinstance(text, str | bytes) else text

    for key in refs["refs"]:
        if key.rpartition("/")[2] == ".zarray" and "_FillValue" not in document(key.removesuffix(".zarray") + ".zattrs"):
            array = document(key)
            if not array.get("fill_value"):
                inner[key] = json.dumps({**array, "fill_value": None})
    return {**refs, "refs": inner}


def _absolute(refs: Mapping[str, Any]) -> dict[str, Any]:
    """A reference set with absolute paths: those of Python are relative to its working directory."""
    inner = refs.get("refs", refs) if isinstance(refs.get("refs"), Mapping) else refs
    path: Callable[[str], str] = lambda url: url if "://" in url or "{{" in url else os.path.abspath(url)
    fixed = {k: [path(v[0]), *v[1:]] if isinstance(v, list | tuple) and v else v for k, v in inner.items()}
    return {**refs, "refs": fixed} if inner is not refs else fixed
