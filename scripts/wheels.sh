#!/usr/bin/env bash
# Wheels of the Python package with the program in them, one for each platform, in
# OUT (default bench/out/wheels). Needs Go, and Python with venv.
#   scripts/wheels.sh [GOOS/GOARCH]…        default linux and darwin, amd64 and arm64
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${OUT:-bench/out/wheels}")
env=${PYTHON_ENV:-${TMPDIR:-/tmp}/zarrdb-wheels-$(id -u)}
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
if [ ! -x "$env/bin/hatchling" ]; then
	python3 -m venv "$env"
	"$env/bin/pip" install --quiet --disable-pip-version-check "$(grep ^hatchling== python/tests/requirements.txt)"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r python "$work/python"
for target in "$@"; do
	os=${target%/*} arch=${target#*/}
	case $target in
	# The program is linked statically: any libc will do.
	linux/amd64) platform=manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64 ;;
	linux/arm64) platform=manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64 ;;
	darwin/amd64) platform=macosx_12_0_x86_64 ;;
	darwin/arm64) platform=macosx_12_0_arm64 ;;
	*)
		echo "wheels.sh: no wheel is made for $target" >&2
		exit 2
		;;
	esac
	mkdir -p "$work/$os-$arch"
	GOOS=$os GOARCH=$arch CGO_ENABLED=0 go build -trimpath -ldflags=-s -o "$work/$os-$arch/zarrdb" ./cmd/zarrdb
	(cd "$work/python" && ZARRDB_WHEEL_BINARY=$work/$os-$arch/zarrdb ZARRDB_WHEEL_PLATFORM=$platform "$env/bin/hatchling" build -t wheel -d "$out")
done
