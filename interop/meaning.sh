#!/usr/bin/env bash
# Readers of other projects show the same values before and after conversions of
# zarrdb. Installs them below .cache/interop-meaning. Needs Python 3.11 or later with venv.
#   interop/meaning.sh                  every writer, door and reader
#   interop/meaning.sh --fast           the part for continuous integration
#   interop/meaning.sh -k SUBSTRING     the writers that are called like this
set -euo pipefail
cd "$(dirname "$0")/.."
venv() {
	local dir=$1
	shift
	if ! cat "$@" | cmp -s - "$dir/requirements.txt"; then
		rm -rf "$dir"
		python3 -m venv "$dir"
		"$dir/bin/pip" install --quiet --disable-pip-version-check "${@/#/-r}"
		cat "$@" >"$dir/requirements.txt"
	fi
}
light=interop/meaning-requirements.txt
python=.cache/interop-meaning old=()
if [[ " $* " == *" --fast "* ]]; then
	venv $python $light
else
	python=.cache/interop-meaning-full
	venv $python $light interop/meaning-full-requirements.txt
	venv .cache/interop-old interop/old-requirements.txt
	old=(--old .cache/interop-old/bin/python)
fi
make --no-print-directory build
$python/bin/python interop/meaning.py --bin ./zarrdb "${old[@]}" "$@"
