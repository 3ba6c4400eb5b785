#!/usr/bin/env bash
# Runs every fuzz target of the module for a short time each, after checking that
# there is one for every parser.
#   scripts/fuzz.sh [TIME]
# Inputs are made small for 2 seconds at most: with the minute that is usual a run
# would take as long as there is luck.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-5s}
./scripts/fuzzed.sh
n=0
for pkg in $(go list ./...); do
	dir=$(go list -f '{{.Dir}}' "$pkg")
	for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | cut -c6- | sort -u); do
		echo "fuzz $pkg $target"
		go test "$pkg" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 2s -parallel 2 >/tmp/fuzz.$$ 2>&1 || { cat /tmp/fuzz.$$; rm -f /tmp/fuzz.$$; exit 1; }
		n=$((n + 1))
	done
done
rm -f /tmp/fuzz.$$
echo "$n fuzz targets, $time each"
