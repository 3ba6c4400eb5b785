#!/usr/bin/env bash
# Lints and tests what was changed since BASE (default: where this branch left main), committed
# or not: formatting, vet and short tests of the packages with changed files, the layers, and the
# changed scripts of internal/cli. All tests of internal/cli take minutes: go test ./internal/cli.
#   scripts/quick.sh [BASE]
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:-$(git merge-base HEAD main 2>/dev/null || git rev-parse HEAD~1)}
changed=$({ git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } | sort -u)
files=$(grep '\.go$' <<<"$changed" | grep -v '^serve/page/uitest/' || true)
if [ -n "$files" ]; then
	bad=$(xargs gofmt -l <<<"$files")
	test -z "$bad" || { echo "gofmt would change: $bad"; exit 1; }
	packages=$(xargs -n1 dirname <<<"$files" | sort -u | sed 's|^|./|')
	xargs go vet <<<"$packages"
	go test -run 'TestLayers|TestSingleImporters' ./engine
	grep -v '^./internal/cli$' <<<"$packages" | xargs -r go test -short
fi
scripts=$(grep '^internal/cli/testdata/script/' <<<"$changed" | xargs -r -n1 basename -s .txtar | paste -sd'|' || true)
if [ -n "$scripts" ]; then
	go test -run "TestScripts/($scripts)\$" ./internal/cli
fi
