#!/usr/bin/env bash
# Other implementations read what zarrdb writes, and zarrdb reads what they write.
# Installs them into .cache/interop, which nothing else uses. Needs Go, and
# Python 3.11 or later with venv; with node and npm, zarrita.js takes part too.
#   interop/run.sh                            everything; writes interop/verified.json
#   interop/run.sh -k SUBSTRING               what is called like this
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.cache/interop
stamp=$venv/requirements.txt
if ! cmp -s interop/requirements.txt "$stamp"; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r interop/requirements.txt
	cp interop/requirements.txt "$stamp"
fi
zarrita=()
if command -v npm >/dev/null; then
	js=.cache/zarrita
	if ! cmp -s interop/package.json "$js/package.json"; then
		mkdir -p "$js"
		npm install --silent --no-fund --no-audit --no-package-lock --prefix "$js" "zarrita@$(sed -n 's/.*"zarrita": "\(.*\)".*/\1/p' interop/package.json)" >/dev/null
		cp interop/package.json "$js/"
	fi
	zarrita=(--zarrita "$js")
fi
make --no-print-directory build
go build -o .cache/arrays ./interop/arrays
"$venv/bin/python" interop/interop.py --bin ./zarrdb "$@"
"$venv/bin/python" interop/matrix.py --arrays .cache/arrays "${zarrita[@]}" --out interop/verified.json "$@"
