#!/usr/bin/env bash
# zarrdb reads the foreign formats of other implementations, and these read what it
# writes. Each script has its packages in an environment of its own below .cache.
# Prints a line for each format; what fails goes to the standard error. Needs Go, and
# Python 3.11 or later with venv; with 3.12 or later, icechunk-python 2 takes part.
#   interop/formats.sh [NAME...]              only these scripts; default all
#   PYTHON=python3.13 interop/formats.sh      another Python
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
	for requirements in interop/formats_*-requirements.txt; do
		name=${requirements#interop/formats_}
		names+=("${name%-requirements.txt}")
	done
fi
make --no-print-directory build >&2
CGO_ENABLED=0 go build -trimpath -o .cache/ocdbt ./interop/ocdbt
results=$(mktemp)
trap 'rm -f "$results"' EXIT
status=0
for name in "${names[@]}"; do
	venv=.cache/interop-formats-$name-$version
	requirements=interop/formats_$name-requirements.txt
	if ! cmp -s "$requirements" "$venv/requirements.txt"; then
		rm -rf "$venv"
		if ! { "$python" -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"; } >&2; then
			echo "$name: its packages cannot be installed" | tee -a "$results" >&2
			status=1
			continue
		fi
		cp "$requirements" "$venv/requirements.txt"
	fi
	"$venv/bin/python" "interop/formats_$name.py" --bin ./zarrdb >>"$results" || status=1
done
cat "$results"
exit $status
