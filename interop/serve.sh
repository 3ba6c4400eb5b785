#!/usr/bin/env bash
# Clients of other projects read and write databases that a server on this machine
# serves over HTTP and S3. Installs them below .cache/interop-serve and uses aws,
# rclone, node, chromium and GDAL where they are; what is missing is named. docs/serving.md has
# the table that the results are compared with.
#   interop/serve.sh [-k SUBSTRING]
set -euo pipefail
cd "$(dirname "$0")/.."
venv() {
	if ! cmp -s "$2" "$1/requirements.txt"; then
		rm -rf "$1"
		python3 -m venv "$1"
		"$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
		cp "$2" "$1/requirements.txt"
	fi
}
venv .cache/interop-serve interop/serve-requirements.txt
venv .cache/interop-gdal interop/gdal-requirements.txt
more=()
if command -v npm >/dev/null; then
	js=.cache/zarrita
	if ! cmp -s interop/package.json "$js/package.json"; then
		mkdir -p "$js"
		npm install --silent --no-fund --no-audit --no-package-lock --prefix "$js" $(sed -n 's/^    "\(.*\)": "\(.*\)".*/\1@\2/p' interop/package.json) >/dev/null
		cp interop/package.json "$js/"
	fi
	more=(--zarrita "$js")
fi
make --no-print-directory build
.cache/interop-serve/bin/python interop/serve.py --bin ./zarrdb --gdal .cache/interop-gdal/bin/python --docs docs/serving.md "${more[@]}" "$@"
