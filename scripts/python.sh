#!/usr/bin/env bash
# Tests of the Python package with ./zarrdb. Makes an environment below PYTHON_ENV
# (default a folder for temporary files), which the next run uses again. Needs Python
# 3.11 or later with venv.
#   scripts/python.sh [ARGUMENT OF pytest]…
set -euo pipefail
cd "$(dirname "$0")/.."
env=${PYTHON_ENV:-${TMPDIR:-/tmp}/zarrdb-python-$(id -u)}
stamp=$(cat python/tests/requirements.txt python/pyproject.toml | cksum)
if [ "$(cat "$env/stamp" 2>/dev/null)" != "$stamp" ]; then
	rm -rf "$env"
	python3 -m venv "$env"
	"$env/bin/pip" install --quiet --disable-pip-version-check -r python/tests/requirements.txt
	"$env/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e python # for its entry points
	echo "$stamp" >"$env/stamp"
fi
export ZARRDB_BINARY=$PWD/zarrdb PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/python
cd python
exec "$env/bin/python" -m pytest -q -p no:cacheprovider "$@"
