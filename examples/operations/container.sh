# container.sh VOLUME COMMAND… runs zarrdb as a container does: the program alone in a root that is read-only, with the
# volume as /data, as user 1000, and with processes and a network of its own.
volume=$(realpath "$1") program=$(realpath "$(command -v zarrdb)")
shift
exec unshare --user --map-root-user --mount --net sh -ec '
  volume=$1 program=$2
  shift 2
  mount -t tmpfs none /mnt
  mkdir /mnt/data /mnt/tmp /mnt/proc && touch /mnt/zarrdb
  mount --bind "$program" /mnt/zarrdb
  mount --bind "$volume" /mnt/data
  mount -t tmpfs none /mnt/tmp
  mount -o remount,ro /mnt
  exec unshare --user --map-user=1000 --map-group=1000 --pid --fork --kill-child --mount-proc=/proc --root=/mnt /zarrdb "$@"
' sh "$volume" "$program" "$@"
