#!/usr/bin/env bash
# Other implementations read what zarrdb writes, and zarrdb reads what they write.
# Installs them into .cache/interop, which nothing else uses. Needs Go and
# Python 3.11 or later with venv.
#   interop/run.sh [ARGUMENTS OF interop.py]
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
make --no-print-directory build
"$venv/bin/python" interop/interop.py --bin ./zarrdb "$@"
