"""Writes contents.json: what Python's zipfile reads from the archives in valid/."""

import hashlib
import json
import pathlib
import zipfile

here = pathlib.Path(__file__).parent
out = {}
for path in sorted(here.glob("valid/*.zip")):
    if path.stem == "falsesig":
        continue  # zipfile takes its comment for the end record
    with zipfile.ZipFile(path) as z:
        out[path.stem] = {
            name: [len(z.read(name)), hashlib.sha256(z.read(name)).hexdigest()]
            for name in sorted(set(z.namelist()))
            if not name.endswith("/")
        }
out["falsesig"] = out["features"]  # differs in the comment only
text = json.dumps(out, indent=1, ensure_ascii=False)
(here / "contents.json").write_text(text + "\n", encoding="utf-8")
