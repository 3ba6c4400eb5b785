#!/usr/bin/env bash
# The table for those who know Icechunk, in docs/guide/coming-from.md, does the same in Icechunk and in the Python package.
# Icechunk 2 needs Python 3.12 or later: PYTHON=python3.13 interop/names.sh; an older Python has Icechunk 1.
# Needs Go and a C compiler, or ZARRDB_LIBRARY with the library of the package.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
requirements=interop/formats_icechunk-requirements.txt
venv=.cache/interop-formats-icechunk-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
	rm -rf "$venv"
	"$python" -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
	cp "$requirements" "$venv/requirements.txt"
fi
make --no-print-directory build >&2
if [ -z "${ZARRDB_LIBRARY:-}" ]; then
	make --no-print-directory library >&2
	export ZARRDB_LIBRARY=$PWD/python/zarrdb/libzarrdb.shared
fi
ZARRDB_BINARY=$PWD/zarrdb "$venv/bin/python" interop/names.py
