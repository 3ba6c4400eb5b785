#!/usr/bin/env bash
# Other implementations of foreign formats read what zarrdb writes, and zarrdb reads
# theirs. Each format has its script and its packages, in .cache/interop-formats-NAME.
# Needs Go and Python 3.11 or later with venv.
#   interop/formats.sh [NAME...]              only these formats; default all
set -euo pipefail
cd "$(dirname "$0")/.."
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
	for script in interop/formats_*.py; do
		name=${script#interop/formats_}
		names+=("${name%.py}")
	done
fi
make --no-print-directory build
for name in "${names[@]}"; do
	venv=.cache/interop-formats-$name
	requirements=interop/formats_$name-requirements.txt
	if ! cmp -s "$requirements" "$venv/requirements.txt"; then
		rm -rf "$venv"
		python3 -m venv "$venv"
		"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
		cp "$requirements" "$venv/requirements.txt"
	fi
	"$venv/bin/python" "interop/formats_$name.py" --bin ./zarrdb
done
