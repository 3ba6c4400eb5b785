#!/usr/bin/env bash
# Readers of other projects show the same values before and after conversions of
# zarrdb. Installs them below .cache/interop-meaning. Needs Python 3.11 or later with venv.
#   interop/meaning.sh                  every writer, door and reader
#   interop/meaning.sh --fast           the part for continuous integration
#   interop/meaning.sh -k SUBSTRING     the writers that are called like this
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
venv .cache/interop-meaning interop/meaning-requirements.txt
old=()
if [[ " $* " != *" --fast "* ]]; then
	venv .cache/interop-old interop/old-requirements.txt
	old=(--old .cache/interop-old/bin/python)
fi
make --no-print-directory build
.cache/interop-meaning/bin/python interop/meaning.py --bin ./zarrdb "${old[@]}" "$@"
