#!/usr/bin/env bash
# Other implementations read what zarrdb writes, and zarrdb reads what they write.
# Installs them below .cache/interop*, which nothing else uses. Needs Go, and
# Python 3.11 or later with venv; with node and npm, zarrita.js takes part too.
#   interop/run.sh                            everything; writes interop/verified.json
#   interop/run.sh -k SUBSTRING               what is called like this
set -euo pipefail
cd "$(dirname "$0")/.."
# venv FOLDER REQUIREMENTS makes the folder hold these packages.
venv() {
	if ! cmp -s "$2" "$1/requirements.txt"; then
		rm -rf "$1"
		python3 -m venv "$1"
		"$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
		cp "$2" "$1/requirements.txt"
	fi
}
venv .cache/interop interop/requirements.txt
venv .cache/interop-old interop/old-requirements.txt
venv .cache/interop-gdal interop/gdal-requirements.txt
zarrita=()
if command -v npm >/dev/null; then
	js=.cache/zarrita
	if ! cmp -s interop/package.json "$js/package.json"; then
		mkdir -p "$js"
		npm install --silent --no-fund --no-audit --no-package-lock --prefix "$js" $(sed -n 's/^    "\(.*\)": "\(.*\)".*/\1@\2/p' interop/package.json) >/dev/null
		cp interop/package.json "$js/"
	fi
	zarrita=(--zarrita "$js")
fi
make --no-print-directory build
go build -o .cache/arrays ./interop/arrays
.cache/interop/bin/python interop/interop.py --bin ./zarrdb "$@"
.cache/interop/bin/python interop/matrix.py --arrays .cache/arrays "${zarrita[@]}" --old .cache/interop-old/bin/python --out interop/verified.json "$@"
.cache/interop-old/bin/python interop/old.py --bin ./zarrdb --out interop/verified.json "$@"
.cache/interop-gdal/bin/python interop/gdal.py --bin ./zarrdb --out interop/verified.json "$@"
