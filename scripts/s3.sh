#!/usr/bin/env bash
# The tests of buckets against a real server that checks signatures. It is built
# into .cache (some minutes, once), started on the loopback device with an empty
# bucket, and stopped again.
#   scripts/s3.sh [FLAGS OF go test]
#   scripts/s3.sh --run PROGRAM…       # run a program beside the server in place of tests
set -euo pipefail
cd "$(dirname "$0")/.."
version=v1.8.0
server=$PWD/.cache/s3-$version/versitygw
if [ ! -x "$server" ]; then
	mkdir -p "${server%/*}"
	GOFLAGS= GOBIN=${server%/*} CGO_ENABLED=0 go install "github.com/versity/versitygw/cmd/versitygw@$version"
fi
work=$(mktemp -d)
pid=
stop() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	[ -z "$pid" ] || wait "$pid" 2>/dev/null || true
	rm -rf "$work"
}
trap stop EXIT
mkdir -p "$work/root/bucket"

export ZARRDB_S3_ROOT=$work/root ZARRDB_S3_KEY=testkey ZARRDB_S3_SECRET=testsecret ZARRDB_S3_DOMAIN=s3.test
for try in 1 2 3 4 5; do # a port may be taken
	port=$((20000 + RANDOM % 20000))
	"$server" --access "$ZARRDB_S3_KEY" --secret "$ZARRDB_S3_SECRET" --port "127.0.0.1:$port" --virtual-domain "$ZARRDB_S3_DOMAIN" \
		--quiet posix "$work/root" >"$work/log" 2>&1 &
	pid=$!
	for _ in $(seq 200); do
		kill -0 "$pid" 2>/dev/null || break
		if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && kill -0 "$pid"; then
			export ZARRDB_S3_ENDPOINT=http://127.0.0.1:$port
			break 2
		fi
		sleep 0.1
	done
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	pid=
done
[ -n "${ZARRDB_S3_ENDPOINT:-}" ] || { echo "the server does not start:" >&2; cat "$work/log" >&2; exit 1; }
if [ "${1:-}" = --run ]; then
	shift
	"$@"
	exit
fi
# One package after the other: they share the bucket, and empty it.
go test -p 1 -count=1 -run '^TestServer' "$@" ./kv/s3kv ./engine
