"""What a wheel must be able to do in an environment with nothing but numpy: the program is
the one of the wheel."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import sysconfig
import tempfile

import numpy as np

import zarrdb
from zarrdb._client import binary

assert "ZARRDB_BINARY" not in os.environ and shutil.which("go") is None
assert os.path.dirname(binary()) == sysconfig.get_path("scripts"), binary()
assert "site-packages" in zarrdb.__file__

X = np.arange(60, dtype="f4").reshape(6, 10)
DOCUMENT = {
    "zarr_format": 3, "node_type": "array", "shape": X.shape, "data_type": "float32", "fill_value": 0, "attributes": {"units": "K"},
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
}  # fmt: skip

with tempfile.TemporaryDirectory() as folder, zarrdb.open(os.path.join(folder, "w.zdb"), create=True) as repo:
    s = repo.writable_session()
    s.set("x/zarr.json", json.dumps(DOCUMENT).encode())
    s.array("x")[:] = X
    pickle.loads(pickle.dumps(s)).array("x")[0, 0] = 7
    c = s.commit("first")
    a = repo.at("main").array("x")
    assert a[0, 0] == 7 and a[1:, ::3].tolist() == X[1:, ::3].tolist() and a.attrs == {"units": "K"}
    assert [c.message for c in repo.ancestry(limit=1)] == ["first"] and repo.fsck(full=True)["problems"] == []
    assert "zarr" not in sys.modules and "xarray" not in sys.modules
print(f"Python {sys.version.split()[0]}, numpy {np.__version__}: fine")
