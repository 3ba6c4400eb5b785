#!/usr/bin/env bash
# Wheels of the Python package with the program in them, one for each platform, and a
# source distribution, in OUT (default bench/out/wheels). Needs Go, and Python with venv.
#   scripts/wheels.sh [GOOS/GOARCH]…        default linux and darwin, amd64 and arm64
#   scripts/wheels.sh --smoke               install that of this machine into a clean environment of each
#                                           Python that is found, and the source distribution into one
#                                           more, and use them without Go
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${OUT:-bench/out/wheels}")
env=${PYTHON_ENV:-${TMPDIR:-/tmp}/zarrdb-wheels-$(id -u)}
smoke=
if [ "${1:-}" = --smoke ]; then
	smoke=yes out=$(mktemp -d)
	set -- "$(go env GOOS)/$(go env GOARCH)"
fi
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
if [ ! -x "$env/bin/hatchling" ]; then
	python3 -m venv "$env"
	"$env/bin/pip" install --quiet --disable-pip-version-check "$(grep ^hatchling== python/tests/requirements.txt)"
fi
work=$(mktemp -d)
trap 'rm -rf "$work" ${smoke:+"$out"}' EXIT
cp -r python "$work/python"
cp LICENSE "$work/python"
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
(cd python && "$env/bin/hatchling" build -t sdist -d "$out")
[ -n "$smoke" ] || exit 0

# interpreter VERSION prints the path of that Python, on PATH or one of pyenv.
interpreter() {
	local p
	for p in $(type -ap "python$1") "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
		if "$p" -c 'import venv, ensurepip' 2>/dev/null; then
			echo "$p"
			return
		fi
	done
}
# smoke FOLDER PACKAGE installs a package into a clean environment and uses it without Go.
smoke() {
	"$python" -m venv "$work/$1"
	"$work/$1/bin/pip" install --quiet --disable-pip-version-check "$2"
	(cd "$work" && env -i PATH=/usr/bin:/bin TMPDIR="$work" "$work/$1/bin/python" "$OLDPWD/python/suites/smoke.py")
}
missing= built=
for version in 3.11 3.12 3.13 3.14; do
	python=$(interpreter $version)
	if [ -z "$python" ]; then
		missing+=" $version"
		continue
	fi
	smoke "$version" "$out"/*.whl
	if [ -z "$built" ]; then
		smoke sdist "$out"/*.tar.gz
		built=yes
	fi
done
[ -z "$missing" ] || echo "not tested, there is no interpreter: Python$missing"
