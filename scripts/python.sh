#!/usr/bin/env bash
# Tests of the Python package with ./zarrdb. Makes environments at PYTHON_ENV
# (default a folder for temporary files), which the next run with the same Python uses again: one with
# zarr-python 3, and where no arguments are given one with zarr-python 2. Needs Python
# 3.11 or later with venv, and a C compiler for the library of the package; ZARRDB_LIBRARY names one that is made.
#   scripts/python.sh [ARGUMENT OF pytest]…
#   scripts/python.sh --fast      the part for continuous integration: some minutes
#   scripts/python.sh --suites    tests of zarr-python and xarray with our store: half an hour
#   scripts/python.sh --env       makes the environment and prints its Python
#   scripts/python.sh --lint      types and style, without the program
#   PYTHON=python3.13 scripts/python.sh       another Python
set -euo pipefail
cd "$(dirname "$0")/.."
env=${PYTHON_ENV:-${TMPDIR:-/tmp}/zarrdb-python-$(id -u)}
python=${PYTHON:-python3}
# make FOLDER REQUIREMENTS makes an environment, unless it is there.
make() {
	local stamp
	stamp=$("$python" -V && cat python/tests/requirements*.txt python/pyproject.toml | cksum)
	if [ "$(cat "$1/stamp" 2>/dev/null)" != "$stamp" ]; then
		rm -rf "$1"
		"$python" -m venv "$1"
		"$1/bin/pip" install --quiet --disable-pip-version-check -r "python/tests/$2"
		if [ "$2" = requirements.txt ]; then # for its entry points
			"$1/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e python
		fi
		echo "$stamp" >"$1/stamp"
	fi
}
# suites runs tests that other projects wrote: those of zarr-python are in the source
# distribution of the version that is tested with, those of xarray in its wheel.
suites() {
	local zarr=$env/zarr-source version
	if [ ! -d "$zarr" ]; then
		rm -rf "$zarr.new"
		version=$("$env/bin/python" -c 'import importlib.metadata as m; print(m.version("zarr"))')
		"$env/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary zarr -d "$zarr.new" "zarr==$version"
		tar -xzf "$zarr.new"/zarr-*.tar.gz -C "$zarr.new" --strip-components 1
		mv "$zarr.new" "$zarr"
	fi
	export PYTHONPATH=$PYTHONPATH:$PWD/python/suites HYPOTHESIS_PROFILE=ci
	local run=("$env/bin/python" -m pytest -q -p no:cacheprovider -c "$PWD/python/suites/pytest.ini" --tb=short)
	(cd python/suites && "${run[@]}" -W default test_xarray_backend.py)
	cd "$zarr"
	for pipeline in 0 1; do
		PIPELINE=$pipeline "${run[@]}" --rootdir=. -p zarr_stores tests/test_array.py tests/test_group.py tests/test_indexing.py
	done
}
# lint checks types against the interfaces of the zarr-python and numpy that the tests use.
lint() {
	make "$env-lint" requirements_lint.txt
	cd python
	"$env-lint/bin/ruff" check --no-cache .
	"$env-lint/bin/mypy" --cache-dir "$env-lint/mypy" zarrdb
	PYTHONPATH=. "$env-lint/bin/python" tests/typed.py >"$env-lint/typed.py"
	MYPYPATH=. "$env-lint/bin/mypy" --strict --cache-dir "$env-lint/mypy" "$env-lint/typed.py"
	"$env-lint/bin/pyright" --pythonpath "$env-lint/bin/python"
}
if [ "${1:-}" = --lint ]; then
	lint
	exit
fi
if [ "${1:-}" = --fast ] || [ "${1:-}" = --env ]; then
	if ! "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
		echo "python.sh: the Python package is not tested: there is no Python 3.11 or later with venv" >&2
		exit 0
	fi
	[ "$1" = --env ] || set -- tests/test_store.py tests/test_array.py tests/test_repository.py tests/test_seen.py tests/test_guard.py tests/test_docs.py tests/test_forks.py
fi
if [ -z "${ZARRDB_LIBRARY:-}" ]; then
	command make --no-print-directory library >&2
	ZARRDB_LIBRARY=$PWD/python/zarrdb/libzarrdb.shared
fi
export ZARRDB_LIBRARY ZARRDB_BINARY=$PWD/zarrdb PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/python
make "$env" requirements.txt
if [ "${1:-}" = --env ]; then
	echo "$env/bin/python"
	exit
fi
if [ "${1:-}" = --suites ]; then
	suites
	exit
fi
if [ $# -eq 0 ]; then
	make "$env-2" requirements2.txt
	(cd python && "$env-2/bin/python" -m pytest -q -p no:cacheprovider -W ignore::pytest.PytestConfigWarning tests/zarr2.py)
fi
cd python
exec "$env/bin/python" -m pytest -q -p no:cacheprovider "$@"
