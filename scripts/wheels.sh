#!/usr/bin/env bash
# Wheels of the Python package with the program and the library in them, one for each platform, and a
# source distribution, in OUT (default bench/out/wheels). Needs Go, Python with venv, and a C compiler for
# each platform: CC or gcc for this one, CC_LINUX_AMD64 and CC_LINUX_ARM64 or those of Debian for Linux. Wheels for macOS are made on macOS.
#   scripts/wheels.sh [GOOS/GOARCH]…        default Linux, and on macOS both; amd64 and arm64, where there is a compiler
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
# compiler TARGET prints the C compiler for a platform.
compiler() {
	local cc here
	here=$(go env GOHOSTOS)
	case $here-$1 in
	"$here-$here/$(go env GOHOSTARCH)") cc=$(go env CC) ;;
	*-linux/amd64) cc=${CC_LINUX_AMD64:-x86_64-linux-gnu-gcc} ;;
	*-linux/arm64) cc=${CC_LINUX_ARM64:-aarch64-linux-gnu-gcc} ;;
	darwin-darwin/amd64) cc="clang -arch x86_64" ;;
	darwin-darwin/arm64) cc="clang -arch arm64" ;;
	*)
		echo "wheels.sh: a wheel for $1 cannot be made on $here" >&2
		return 1
		;;
	esac
	if ! command -v "${cc%% *}" >/dev/null; then
		echo "wheels.sh: no wheel for $1: the C compiler $cc was not found (Debian: apt install gcc gcc-x86-64-linux-gnu gcc-aarch64-linux-gnu)" >&2
		return 1
	fi
	echo "$cc"
}
if [ $# -eq 0 ]; then
	for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
		compiler $target >/dev/null && set -- "$@" $target
	done
fi
if [ ! -x "$env/bin/hatchling" ]; then
	python3 -m venv "$env"
	"$env/bin/pip" install --quiet --disable-pip-version-check "$(grep ^hatchling== python/tests/requirements.txt)"
fi
work=$(mktemp -d)
trap 'rm -rf "$work" ${smoke:+"$out"}' EXIT
cp -r python "$work/python"
cp LICENSE "$work/python"
mkdir -p "$work/serve/local" && cp go.mod "$work" && cp serve/local/version.go "$work/serve/local" # the version
for target in "$@"; do
	os=${target%/*} arch=${target#*/}
	cc=$(compiler "$target")
	mkdir -p "$work/$os-$arch"
	export GOOS=$os GOARCH=$arch
	library=$work/$os-$arch/libzarrdb.shared
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags=-s -o "$work/$os-$arch/zarrdb" ./cmd/zarrdb
	CC=$cc make --no-print-directory library LIBRARY="$library"
	case $target in
	# The library needs the glibc that this one was linked with, or a later one.
	linux/*) platform=manylinux_$(grep -aoE 'GLIBC_2\.[0-9]+' "$library" | sort -V | tail -1 | sed 's/GLIBC_//; s/\./_/')_$([ "$arch" = amd64 ] && echo x86_64 || echo aarch64) ;;
	darwin/amd64) platform=macosx_12_0_x86_64 ;;
	darwin/arm64) platform=macosx_12_0_arm64 ;;
	esac
	unset GOOS GOARCH
	(cd "$work/python" && ZARRDB_WHEEL_BINARY=$work/$os-$arch/zarrdb ZARRDB_WHEEL_LIBRARY=$library ZARRDB_WHEEL_PLATFORM=$platform "$env/bin/hatchling" build -t wheel -d "$out")
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
