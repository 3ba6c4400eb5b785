"""zarr-python 2 reads arrays: lines {"path"} in, lines {"path", "values"} out, where
values is the name of a file of numpy, or {"path", "error"}.

    zarr2.py STORE FOLDER
"""
import json, pathlib, sys, warnings

import numpy as np, zarr
from zarr.storage import DirectoryStore

warnings.filterwarnings("ignore")

for line in sys.stdin:
    path = json.loads(line)["path"]
    answer, out = {"path": path}, pathlib.Path(sys.argv[2]) / (path.replace("/", "-") + ".npy")
    try:
        np.save(out, zarr.open_array(DirectoryStore(f"{sys.argv[1]}/{path}"), mode="r")[...], allow_pickle=True)
        answer["values"] = str(out)
    except Exception as e:
        answer["error"] = f"{type(e).__name__}: {' '.join(str(e).split())[:300]}"
    print(json.dumps(answer))
