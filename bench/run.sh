#!/usr/bin/env bash
# Measures and writes bench/RESULTS.md. Takes an hour and 20 GiB of disk; cold
# reads need root, because only root may empty the page cache. The programs that
# are measured beside it are installed into .cache/bench, which nothing else uses;
# that needs Python 3.11 or later with venv. Without it their figures are missing.
#   bench/run.sh [FLAGS OF bench]
#   PYTHON=python3.13 bench/run.sh            another Python
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/.cache/bench
python=$venv/bin/python
if ! cmp -s bench/requirements.txt "$venv/requirements.txt"; then
	rm -rf "$venv"
	if "${PYTHON:-python3}" -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check -r bench/requirements.txt; then
		cp bench/requirements.txt "$venv/requirements.txt"
	else
		echo "bench: no other programs are measured" >&2
		python=
	fi
fi
python2=$PWD/.cache/bench-zarr2/bin/python # zarr-python 2, for LMDB
if [ -n "$python" ] && [ ! -x "$python2" ]; then
	if ! python3 -m venv .cache/bench-zarr2 || ! "$PWD/.cache/bench-zarr2/bin/pip" install --quiet --disable-pip-version-check zarr==2.18.7 numcodecs==0.15.1 numpy==2.2.6 lmdb==3.0.0; then
		rm -rf .cache/bench-zarr2
		echo "bench: zarr-python 2 is not measured" >&2
	fi
fi
[ -x "$python2" ] || python2=
# As the program is built: its index allocates otherwise with cgo.
CGO_ENABLED=0 go run ./bench -python "$python" -python2 "$python2" "$@"
