#!/usr/bin/env bash
# Three machines, each with a home of its own, share history through a bucket of a real server: they work, conflict, merge and are
# killed at random for SOAK seconds (default 60). In the end each clone has every byte that was pushed. SEED says which run.
#   scripts/remote.sh
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${ZARRDB_S3_ENDPOINT:-}" ]; then
	exec ./scripts/s3.sh --run "$0" "$@"
fi
soak=${SOAK:-60}
RANDOM=${SEED:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AWS_ENDPOINT_URL_S3=$ZARRDB_S3_ENDPOINT AWS_ACCESS_KEY_ID=$ZARRDB_S3_KEY AWS_SECRET_ACCESS_KEY=$ZARRDB_S3_SECRET AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
export AWS_CONFIG_FILE=$work/none AWS_SHARED_CREDENTIALS_FILE=$work/none
go build -o "$work/zarrdb" ./cmd/zarrdb
url=s3://bucket/shared-$$
on() { # machine, command
	local home=$work/$1
	shift
	(cd "$home" && HOME=$home XDG_CONFIG_HOME=$home/config "$work/zarrdb" "$@")
}
for m in 1 2 3; do mkdir -p "$work/$m"; done
on 1 init w.zdb
on 1 create w.zdb:x --shape 3,100000 --chunks 1,10000 --dtype int64 --codecs '[{"name":"bytes","configuration":{"endian":"little"}}]' -m x >/dev/null
on 1 push w.zdb "$url" >/dev/null
for m in 2 3; do on $m clone "$url" w.zdb >/dev/null; done
end=$((SECONDS + soak))
pushes=0 killed=0
while [ $SECONDS -lt $end ]; do
	m=$((RANDOM % 3 + 1))
	from=$((RANDOM % 10 * 10000))
	on $m write w.zdb:x --select "$((m - 1)),$from:$((from + 10000))" --value $RANDOM -m "of $m" >/dev/null
	if [ $((RANDOM % 3)) = 0 ]; then # killed in the middle
		{ HOME=$work/$m timeout -s KILL "0.$((RANDOM % 3))$((RANDOM % 10))" "$work/zarrdb" push "$work/$m/w.zdb" "$url" --merge; } >/dev/null 2>&1 || killed=$((killed + 1))
	else
		on $m push w.zdb "$url" --merge >/dev/null && pushes=$((pushes + 1))
	fi
done
for m in 1 2 3 1 2; do on $m push w.zdb "$url" --merge >/dev/null; done
for m in 1 2 3; do
	on $m pull w.zdb "$url" >/dev/null
	on $m fsck w.zdb --full >/dev/null
	on $m read w.zdb:x -o "$work/$m.npy"
	cmp "$work/1.npy" "$work/$m.npy"
	# What a machine wrote, nobody else changed.
	[ "$(on $m log w.zdb --oneline | sort)" = "$(on 1 log w.zdb --oneline | sort)" ]
done
mkdir "$work/4"
on 4 clone "$url" w.zdb >/dev/null
on 4 read w.zdb:x -o "$work/4.npy"
cmp "$work/1.npy" "$work/4.npy"
on 4 fsck "$url" --full
echo "$pushes pushes, $killed killed"
