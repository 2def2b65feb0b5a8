#!/bin/sh
# Ends the PostgreSQL server that test processes share. See shared.go.
#
#   reaper.sh DIR       once no process named in DIR/users lives
#   reaper.sh DIR now   at once
dir=$1

# used removes the files of dead users and says whether any lives.
used() {
	alive=1
	for user in "$dir"/users/*; do
		[ -e "$user" ] || continue
		if kill -0 "${user##*/}" 2>/dev/null; then alive=0; else rm -f "$user"; fi
	done
	return $alive
}

# postmaster prints the id of the server's process. After a reboot the number may
# be another program's, so its command line must name our directory.
postmaster() {
	pid=$(sed -n 1p "$dir/pg/pgdata/postmaster.pid") && [ -n "$pid" ] || return 1
	args=$(tr '\0' ' ' <"/proc/$pid/cmdline" || ps -o args= -p "$pid")
	case $args in *"$dir/pg/pgdata"*) echo "$pid" ;; *) return 1 ;; esac
}

stop_server() {
	pid=$(postmaster) && kill -QUIT "$pid" || return
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		kill -0 "$pid" && sleep 1 || return
	done
}

stop_container() {
	[ -f "$dir/container" ] || return
	name=$(cat "$dir/container")
	docker rm --force --volumes "$name" ||
		curl --unix-socket /var/run/docker.sock -X DELETE "http://docker/containers/$name?force=1&v=1"
}

finish() {
	stop_server
	stop_container
	for _ in 1 2 3; do
		rm -rf "$dir" && exit 0
		sleep 1
	done
	exit 1
}

exec 2>/dev/null
[ "$2" = now ] && finish
echo $$ >"$dir/reaper"
while sleep 1; do
	[ -d "$dir/users" ] || exit 0
	used && continue
	mv "$dir/ready" "$dir/closed"
	used || finish
done
