#!/usr/bin/env bash
# Every function that parses or decodes is reached by the seeds of a fuzz target.
# Those in scripts/unfuzzed.txt need not be, for the reason that stands there.
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
module=$(go list -m)
packages=$(grep -l '^func Fuzz' $(git ls-files '*_test.go') | xargs -n1 dirname | sort -u | sed 's#^#./#')
go test -run '^Fuzz' -coverpkg=./... -coverprofile="$tmp/profile" $packages >"$tmp/log" || { cat "$tmp/log"; exit 1; }
go tool cover -func="$tmp/profile" | awk -v module="$module/" '
	$2 ~ /^(Parse|parse|Decode|decode|Unmarshal|unmarshal)/ {
		sub(module, "", $1); sub(/[^\/]*$/, "", $1)
		count++
		if ($3 == "0.0%") print $1 $2
	}
	END { if (count < 100) print "only " count+0 " functions found" }' | sort >"$tmp/missing"
sed -e 's/#.*//' -e 's/ *$//' -e '/^$/d' scripts/unfuzzed.txt | sort >"$tmp/known"
if ! diff "$tmp/known" "$tmp/missing" >"$tmp/diff"; then
	sed -n -e 's/^> /no fuzz target reaches /p' -e 's/^< /is reached, or gone, but listed in unfuzzed.txt: /p' "$tmp/diff"
	exit 1
fi
echo "fuzz targets reach every parser and decoder"
