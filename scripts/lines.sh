#!/usr/bin/env bash
# Prints the lines of Go by package: those of the product, and those of tests. Helpers of
# tests count as tests; benchmarks, examples, scripts and the programs of interop count as neither.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.go' | grep -vE '^(bench|interop|examples|scripts)/' | xargs wc -l | awk '
	$2 == "total" { next }
	{
		dir = $2
		if (!sub(/\/[^\/]*$/, "", dir)) dir = "."
		split(dir, part, "/")
		top = part[1]
		if (part[2] != "" && top != "codecs" && top != "cmd") top = top "/" part[2]
		test = $2 ~ /_test\.go$/ || $2 ~ /(^|\/)([a-z]+test|must|toy)\// || $2 ~ /\/test\//
		if (test) tests[top] += $1; else product[top] += $1
		all[top] = 1
		sum[test] += $1
	}
	END {
		for (t in all) printf "%-24s %8d %8d\n", t, product[t], tests[t] | "sort"
		close("sort")
		printf "%-24s %8d %8d\n", "all", sum[0], sum[1]
	}' | { printf '%-24s %8s %8s\n' package product tests; cat; }
