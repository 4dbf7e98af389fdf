# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# What the guest's scripts share: groups and people, and tests as TAP.
# shellcheck disable=SC2034 # for those who read this file
# shellcheck disable=SC2034
cg=/sys/fs/cgroup
tap_n=0
tap_failed=0

# delegate GROUP [UID]: a cgroup that belongs to a user, as systemd does it.
delegate() {
	mkdir -p "$1"
	chown "${2:-1000}:${2:-1000}" "$1" "$1/cgroup.procs" \
		"$1/cgroup.threads" "$1/cgroup.subtree_control"
}

# as_user UID GROUP COMMAND...: in that group, with nothing of root's.
as_user() {
	(
		sh -c 'echo $PPID' >"$2/cgroup.procs"
		uid=$1
		shift 2
		cd "/home/$uid" || exit 1
		export HOME="/home/$uid" XDG_RUNTIME_DIR="/run/user/$uid"
		# By its path: busybox's shell would take its own.
		exec /usr/bin/setpriv --reuid "$uid" --regid "$uid" \
			--clear-groups --inh-caps=-all "$@"
	)
}

# answer GOOD NAME STATUS OUTPUT
answer() {
	tap_n=$((tap_n + 1))
	if [ "$1" -eq 1 ]; then
		echo "ok $tap_n - $2"
	else
		echo "not ok $tap_n - $2"
		echo "# status $3"
		echo "$4" | sed 's/^/# /'
		tap_failed=1
	fi
}

# prints NAME STATUS TEXT COMMAND...: it ends so, and TEXT is in what it said.
prints() {
	name=$1 status=$2 text=$3
	shift 3
	out=$("$@" 2>&1)
	got=$?
	good=0
	case $out in *"$text"*) [ $got -eq "$status" ] && good=1 ;; esac
	answer $good "$name" $got "$out"
}

# holds NAME COMMAND...: it succeeds.
holds() {
	name=$1
	shift
	prints "$name" 0 '' "$@"
}

tap_end() {
	echo "1..$tap_n"
	exit $tap_failed
}
