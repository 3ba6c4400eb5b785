#!/usr/bin/env bash
# Makes a release of the commit HEAD, not of the working tree, in OUT (default build/release): an archive for each
# platform, what each program was built from (CycloneDX), wheels, and SHA-256 sums. Two runs of one commit with one version of Go
# make equal files. What can run here is unpacked and tried; the last lines name what was not.
#   scripts/release.sh [GOOS/GOARCH]…   default Linux, macOS and Windows, on amd64 and arm64
#   WHEELS=no                           without wheels, which need Python and C compilers
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${OUT:-build/release}")
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
most=50000000 # bytes of a program
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
export LC_ALL=C TZ=UTC
# Settings of this machine are not those of the release.
export GOENV=off GOFLAGS= GOWORK=off GOAMD64=v1 GOARM64=v8.0
unset GOOS GOARCH GOEXPERIMENT GODEBUG

git clone --quiet --shared . "$work/source"
cd "$work/source"
version=$(sed -n 's/^const Number = "\(.*\)"$/\1/p' serve/local/version.go)
export SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
commit=$(git rev-parse HEAD)
echo "zarrdb $version, commit $commit, $(go env GOVERSION)"
[ "$(git tag --points-at HEAD --list "v$version")" ] || echo "note: the commit has no tag v$version, so this is no release yet"
go build -trimpath -o "$work/release" ./scripts/release

build() { # build GOOS/GOARCH FILE
	CGO_ENABLED=0 GOOS=${1%/*} GOARCH=${1#*/} go build -trimpath -buildvcs=true -ldflags='-s -w' -o "$2" ./cmd/zarrdb
}
suffix() { case $1 in windows/*) echo .exe ;; esac; }

programs=()
for target in "$@"; do
	program=$work/programs/${target/\//-}/zarrdb$(suffix "$target")
	build "$target" "$program"
	size=$(wc -c <"$program")
	if [ "$size" -gt $most ]; then
		echo "release.sh: the program for $target has $size bytes, and may have $most; docs/design/size.md says what takes them" >&2
		exit 1
	fi
	echo "$target: $size bytes"
	programs+=("$program")
done

# The pages and completions are those of a program of this machine.
host=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
build "$host" "$work/zarrdb$(suffix "$host")"
common=$work/common
mkdir -p "$common/man/man1" "$common/completions"
"$work/zarrdb" help --man "$common/man/man1"
for shell in bash zsh fish powershell; do "$work/zarrdb" completion $shell >"$common/completions/zarrdb.$shell"; done
mv "$common/completions/zarrdb.powershell" "$common/completions/zarrdb.ps1"
cp LICENSE README.md CHANGELOG.md "$common"
"$work/release" licenses "$common/licenses" "${programs[@]}"
mkdir -p "$common/licenses/page" && cp serve/page/lib/LICENSES.txt "$common/licenses/page"

rm -rf "$out" && mkdir -p "$out"
for i in "${!programs[@]}"; do
	target=${*:i+1:1} program=${programs[i]}
	name=zarrdb-$version-${target/\//-}
	dir=$work/$name
	cp -r "$common" "$dir"
	cp "$program" "$dir"
	case $target in linux/*) cp examples/operations/Containerfile examples/operations/zarrdb.service "$dir" ;; esac
	"$work/release" sbom "$program" "$version" >"$dir/sbom.cdx.json"
	cp "$dir/sbom.cdx.json" "$out/$name.cdx.json"
	case $target in windows/*) archive=$name.zip ;; *) archive=$name.tar.gz ;; esac
	"$work/release" pack "$dir" "$out/$archive" "$SOURCE_DATE_EPOCH"
	rm -rf "$dir"
done

missing=()
if [ "${WHEELS:-yes}" = no ]; then
	missing+=("wheels were not made: WHEELS=no")
else
	OUT=$out scripts/wheels.sh 2>"$work/wheels.log" || { cat "$work/wheels.log" >&2; exit 1; }
	while read -r line; do missing+=("${line#wheels.sh: }"); done < <(grep '^wheels.sh: no wheel\|cannot be made' "$work/wheels.log" || true)
fi
(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)

# try NAME COMMAND… unpacks an archive and runs its program by a command.
try() {
	local name=$1 dir=$work/try/$1
	shift
	mkdir -p "$work/try" "$dir-work"
	case $name in
	*windows*) (cd "$work/try" && python3 -m zipfile -e "$out/$name.zip" .) ;;
	*) tar -xzf "$out/$name.tar.gz" -C "$work/try" ;;
	esac
	local program=("$@" "$dir/zarrdb$(case $name in *windows*) echo .exe ;; esac)")
	cd "$dir-work"
	"${program[@]}" version | grep -F "zarrdb version $version ${commit:0:10}, " >"$work/log"
	env -i HOME="$dir-work" PATH=/usr/bin:/bin TMPDIR="$dir-work" "${program[@]}" demo >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
	bash -n "$dir/completions/zarrdb.bash"
	grep -q "zarrdb $version" "$dir/man/man1/zarrdb.1"
	test -s "$dir/licenses/go/LICENSE" && test -s "$dir/sbom.cdx.json"
	if [[ $name == *linux* ]] && command -v readelf >/dev/null && readelf -l "$dir/zarrdb" | grep -q INTERP; then
		echo "release.sh: $name is not static" >&2
		return 1
	fi
	cd "$work/source"
	echo "tried: $name"
}
for target in "$@"; do
	name=zarrdb-$version-${target/\//-}
	case $target in
	"$host") try "$name" ;;
	linux/arm64) if command -v qemu-aarch64 >/dev/null; then try "$name" qemu-aarch64; else missing+=("$name was not tried: there is no qemu-aarch64 here"); fi ;;
	linux/amd64) if command -v qemu-x86_64 >/dev/null; then try "$name" qemu-x86_64; else missing+=("$name was not tried: there is no qemu-x86_64 here"); fi ;;
	windows/amd64) if command -v wine >/dev/null; then try "$name" wine; else missing+=("$name was not tried: there is no wine here"); fi ;;
	*) missing+=("$name was not tried: this is $host") ;;
	esac
done
[ "${WHEELS:-yes}" = no ] || missing+=("wheels were not installed: make wheels-smoke does that")
echo "in $out:"
cat "$out/SHA256SUMS"
for m in ${missing[@]+"${missing[@]}"}; do echo "not done: $m"; done
