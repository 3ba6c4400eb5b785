#!/usr/bin/env bash
# Runs every fuzz target of the module for a short time each, after checking that
# there is one for every parser.
#   scripts/fuzz.sh [TIME]
# Inputs are made small for 2 seconds at most: with the minute that is usual a run
# would take as long as there is luck.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-5s}
# A number of inputs (500x) is too few to be led by coverage: the tests are compiled as for go test.
guided=(-fuzz .)
[[ $time != *x ]] || guided=()
./scripts/fuzzed.sh
n=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz
while read -r pkg dir; do
	targets=$(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | cut -c6- | sort -u) || continue
	go test -c "${guided[@]}" -o "$work/test" "$pkg" # once for all targets of a package
	for target in $targets; do
		echo "fuzz $pkg $target"
		(cd "$dir" && "$work/test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" -test.fuzzminimizetime 2s \
			-test.fuzzcachedir "$cache/$pkg" -test.parallel 2 >"$work/out" 2>&1) || { cat "$work/out"; exit 1; }
		n=$((n + 1))
	done
done < <(go list -f '{{.ImportPath}} {{.Dir}}' ./...)
echo "$n fuzz targets, $time each"
