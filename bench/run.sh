#!/usr/bin/env bash
# Measures and writes bench/RESULTS.md. Takes some minutes and 6 GiB of disk; cold
# reads need root, because only root may empty the page cache.
#   bench/run.sh [FLAGS OF bench]
set -euo pipefail
cd "$(dirname "$0")/.."
go run ./bench -out bench/RESULTS.md "$@"
