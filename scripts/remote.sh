#!/usr/bin/env bash
# Three machines, each with a home of its own, share history through a bucket of a real server. The network between (scripts/network)
# delays, loses, cuts, repeats and reorders requests, and each machine loses it for a while now and then. Two have whole clones and
# one has a lazy one. They work, conflict, merge and are killed at random for SOAK seconds (default 60). In the end each clone
# has every byte that was pushed, and so has a clone of a clone in a directory. SEED says which run.
# Before, two servers that do not keep their promises are refused by name: s3proxy, if mvn is there, and scripts/liar.
#   scripts/remote.sh
#   scripts/remote.sh --figures [FLAGS OF bench]     # measure, beside rclone and icechunk, which are installed into .cache
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${ZARRDB_S3_ENDPOINT:-}" ]; then
	exec ./scripts/s3.sh --run "$0" "$@"
fi
if [ "${1:-}" = --figures ]; then
	shift
	bin=$PWD/.cache/rclone-v1.73.0 venv=$PWD/.cache/bench-remote
	[ -x "$bin/rclone" ] || GOFLAGS= GOBIN=$bin CGO_ENABLED=0 go install github.com/rclone/rclone@v1.73.0 || echo "rclone is not measured" >&2
	if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import icechunk, zarr' 2>/dev/null; then # Python 3.12 or later
		"${PYTHON:-python3}" -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check icechunk==2.3.0 zarr==3.4.2 || { echo "icechunk is not measured" >&2; venv=; }
	fi
	PATH=$bin:$PATH CGO_ENABLED=0 go run ./bench -only remote -python "${venv:+$venv/bin/python}" "$@"
	exit
fi
soak=${SOAK:-60} seed=${SEED:-1}
RANDOM=$seed
work=$(mktemp -d)
started=()
stop() {
	[ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null || true
	rm -rf "$work"
}
trap stop EXIT
export AWS_ACCESS_KEY_ID=$ZARRDB_S3_KEY AWS_SECRET_ACCESS_KEY=$ZARRDB_S3_SECRET AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
export AWS_CONFIG_FILE=$work/none AWS_SHARED_CREDENTIALS_FILE=$work/none
go build -o "$work/zarrdb" ./cmd/zarrdb
go build -o "$work/network" ./scripts/network
url=s3://bucket/shared-$$
declare -A endpoint
on() { # machine, command
	local home=$work/$1 AWS_ENDPOINT_URL_S3=${endpoint[$1]}
	export AWS_ENDPOINT_URL_S3
	shift
	(cd "$home" && HOME=$home XDG_CONFIG_HOME=$home/config XDG_CACHE_HOME=$home/cache "$work/zarrdb" "$@")
}
# begin runs a server in the background until this script ends, and sets $at to the URL that it prints.
begin() {
	local out=$work/out-$RANDOM
	mkfifo "$out"
	tail -f /dev/null --pid $$ | "$@" >"$out" 2>"$work/log" &
	started+=($!)
	read -r at <"$out"
}
fault() { # machine, change of its network
	curl -sf -X POST "${endpoint[$1]}/-/set?$2"
}
for m in 1 2 3 4 5; do mkdir -p "$work/$m"; done
endpoint=([4]=$ZARRDB_S3_ENDPOINT [5]=)

on 4 init l.zdb
refused() { # name, message
	if on 5 push ../4/l.zdb s3://bucket/lies >"$work/said" 2>&1 || ! grep -q "does not keep its promises: .*$2" "$work/said"; then
		echo "$1 is not refused:" >&2
		cat "$work/said" >&2
		exit 1
	fi
	echo "$1: $(sed 's/.*promises: //' "$work/said")"
}
(cd scripts/liar && GOFLAGS= CGO_ENABLED=0 go build -o "$work/liar" .)
begin "$work/liar"
endpoint[5]=$at
refused gofakes3 "writers of which each"
jars=$PWD/.cache/s3proxy-2.6.0
if [ ! -e "$jars/done" ] && command -v mvn >/dev/null; then
	mkdir -p "$jars"
	echo '<project><modelVersion>4.0.0</modelVersion><groupId>liar</groupId><artifactId>liar</artifactId><version>1</version><dependencies><dependency><groupId>org.gaul</groupId><artifactId>s3proxy</artifactId><version>2.6.0</version></dependency></dependencies></project>' >"$jars/pom.xml"
	(cd "$jars" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >&2) && touch "$jars/done"
fi
if [ -e "$jars/done" ]; then
	mkdir -p "$work/s3proxy/bucket"
	port=$((40000 + RANDOM % 20000))
	printf '%s\n' s3proxy.authorization=none s3proxy.endpoint=http://127.0.0.1:$port jclouds.provider=filesystem-nio2 jclouds.identity=a jclouds.credential=b \
		jclouds.filesystem.basedir="$work/s3proxy" LOG_LEVEL=warn >"$work/s3proxy.conf"
	java -cp "$jars/lib/*" org.gaul.s3proxy.Main --properties "$work/s3proxy.conf" >"$work/log" 2>&1 &
	started+=($!)
	for _ in $(seq 100); do ! curl -s -o "$work/none" "http://127.0.0.1:$port/" || break; sleep 0.3; done
	endpoint[5]=http://127.0.0.1:$port
	refused s3proxy "makes an object that exists"
	[ -z "$(find "$work/s3proxy" -type f)" ] || { echo "s3proxy: something was written" >&2; exit 1; }
else
	echo "s3proxy is left out: there is no mvn" >&2
fi

for m in 1 2 3; do
	begin "$work/network" -to "$ZARRDB_S3_ENDPOINT" -seed $((seed + m)) -delay 5ms
	endpoint[$m]=$at
done
on 1 init w.zdb
on 1 create w.zdb:x --shape 3,100000 --chunks 1,10000 --dtype int64 --codecs '[{"name":"bytes","configuration":{"endian":"little"}}]' -m x >/dev/null
on 1 push w.zdb "$url" >/dev/null
on 2 clone "$url" w.zdb >/dev/null
on 3 clone "$url" w.zdb --lazy >/dev/null
for m in 1 2 3; do fault $m all=0.02; done
end=$((SECONDS + soak))
pushes=0 killed=0 failed=0
try() { # a push, which the network may spoil: it succeeds, says that it does not, or that it does not know
	if on "$1" push w.zdb "$url" --merge >"$work/said" 2>&1; then
		pushes=$((pushes + 1))
	else
		failed=$((failed + 1))
		! grep -iE 'panic|damaged|bug:' "$work/said" || exit 1
	fi
}
while [ $SECONDS -lt $end ]; do
	m=$((RANDOM % 3 + 1))
	from=$((RANDOM % 10 * 10000))
	fault $m down=$((RANDOM % 6 == 0)) # for as long as it is its turn
	# A lazy clone that has not read the pages of a chunk cannot write it without the network.
	on $m write w.zdb:x --select "$((m - 1)),$from:$((from + 10000))" --value $RANDOM -m "of $m" >"$work/said" 2>&1 || { [ $m = 3 ] && grep -q "$url" "$work/said"; } || { cat "$work/said" >&2; exit 1; }
	if [ $((RANDOM % 3)) = 0 ]; then # killed in the middle
		{ AWS_ENDPOINT_URL_S3=${endpoint[$m]} HOME=$work/$m timeout -s KILL "0.$((RANDOM % 3))$((RANDOM % 10))" "$work/zarrdb" push "$work/$m/w.zdb" "$url" --merge; } >/dev/null 2>&1 || killed=$((killed + 1))
	else
		try $m
	fi
done
for m in 1 2 3; do fault $m 'all=0&down=0'; done
for m in 1 2 3 1 2; do on $m push w.zdb "$url" --merge >/dev/null; done
for m in 1 2 3; do
	on $m pull w.zdb "$url" >/dev/null
	on $m fsck w.zdb --full >/dev/null
	on $m read w.zdb:x -o "$work/$m.npy"
	cmp "$work/1.npy" "$work/$m.npy"
	# What a machine wrote, nobody else changed.
	[ "$(on $m log w.zdb --oneline | sort)" = "$(on 1 log w.zdb --oneline | sort)" ]
done
on 4 clone "$url" w.zdb >/dev/null
on 4 clone "$work/1/w.zdb" dir.zdb >/dev/null
on 4 clone "$work/3/w.zdb" lazy.zdb >/dev/null # what it has not read is fetched
on 4 read "$url:x" -o "$work/url.npy"
cmp "$work/1.npy" "$work/url.npy"
for db in w dir lazy; do
	on 4 read $db.zdb:x -o "$work/4.npy"
	cmp "$work/1.npy" "$work/4.npy"
	on 4 fsck $db.zdb --full >/dev/null
done
on 4 fsck "$url" --full
for m in 1 2 3; do echo "network of $m: $(curl -sf "${endpoint[$m]}/-/counts")"; done
echo "$pushes pushes, $killed killed, $failed spoilt by the network"
