#!/usr/bin/env bash
# fsspec, kerchunk, VirtualiZarr and xarray read reference sets that zarrdb
# writes, and zarrdb reads theirs. Installs them into .cache/interop-refs, which
# nothing else uses. Needs Go and Python 3.11 or later with venv.
#   interop/refs.sh [ARGUMENTS OF refs.py]
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.cache/interop-refs
stamp=$venv/requirements.txt
if ! cmp -s interop/refs-requirements.txt "$stamp"; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r interop/refs-requirements.txt
	cp interop/refs-requirements.txt "$stamp"
fi
make --no-print-directory build
CGO_ENABLED=0 go build -trimpath -o .cache/refset ./interop/refset
"$venv/bin/python" interop/refs.py --bin ./zarrdb --refset .cache/refset "$@"
