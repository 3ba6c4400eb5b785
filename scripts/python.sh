#!/usr/bin/env bash
# Tests of the Python package with ./zarrdb. Makes environments below PYTHON_ENV
# (default a folder for temporary files), which the next run uses again: one with
# zarr-python 3, and where no arguments are given one with zarr-python 2. Needs Python
# 3.11 or later with venv.
#   scripts/python.sh [ARGUMENT OF pytest]…
set -euo pipefail
cd "$(dirname "$0")/.."
env=${PYTHON_ENV:-${TMPDIR:-/tmp}/zarrdb-python-$(id -u)}
# make FOLDER REQUIREMENTS makes an environment, unless it is there.
make() {
	local stamp
	stamp=$(cat "python/tests/$2" python/pyproject.toml | cksum)
	if [ "$(cat "$1/stamp" 2>/dev/null)" != "$stamp" ]; then
		rm -rf "$1"
		python3 -m venv "$1"
		"$1/bin/pip" install --quiet --disable-pip-version-check -r "python/tests/$2"
		if [ "$2" = requirements.txt ]; then # for its entry points
			"$1/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e python
		fi
		echo "$stamp" >"$1/stamp"
	fi
}
export ZARRDB_BINARY=$PWD/zarrdb PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/python
make "$env" requirements.txt
if [ $# -eq 0 ]; then
	make "$env-2" requirements2.txt
	(cd python && "$env-2/bin/python" -m pytest -q -p no:cacheprovider -W ignore::pytest.PytestConfigWarning tests/zarr2.py)
fi
cd python
exec "$env/bin/python" -m pytest -q -p no:cacheprovider "$@"
