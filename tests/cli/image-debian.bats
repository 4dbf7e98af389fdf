#!/usr/bin/env bats
# A root made of Debian packages by mmdebstrap, imported and run, as anybody
# does who has no registry. (Through Docker's socket: tests/clients.)
# shellcheck disable=SC2030,SC2031 # bats runs each test in a shell of its own
load common

setup_file() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	# Kept in the build tree, for the client tests and the next time; an
	# ordinary user may not be able to.
	root=$CORDON_BUILD/debian-root.tar
	[ -s "$root" ] || [ -w "$CORDON_BUILD" ] || root=$BATS_FILE_TMPDIR/root.tar
	"$BATS_TEST_DIRNAME/../debian-root" "$root" 2>"$BATS_FILE_TMPDIR/why" || :
	[ -s "$root" ] || return 0
	export CORDON_STATE_DIR=$BATS_FILE_TMPDIR/state
	CORDON_LIBEXEC=$CORDON_BUILD "$CORDON_BUILD/cordon" image import --quiet \
		-c 'ENV PATH=/usr/local/bin:/usr/bin:/bin' -c 'CMD ["python3", "--version"]' \
		"$root" debian:packages
}

setup() {
	cordon=$CORDON_BUILD/cordon
	cd "$BATS_TEST_TMPDIR" || return
	[ "${CORDON_STATE_DIR:-}" = "$BATS_FILE_TMPDIR/state" ] ||
		skip "$(tail -n 1 "$BATS_FILE_TMPDIR/why")"
}

@test "image-debian: its programs run, as its own system" {
	run --separate-stderr "$cordon" run --image debian:packages
	is "$status" 0
	has "$output" "Python 3."
	gives 0 "debian
dash" --image debian:packages -- sh -c '. /etc/os-release; echo "$ID"; readlink /bin/sh'
	gives 0 "[1, 4]" --image debian:packages -- python3 -c \
		'import json, sqlite3, ssl; print(json.dumps([x * x for x in (1, 2)]))'
	# Its own package list, not this machine's: few.
	run "$cordon" run --image debian:packages -- sh -c 'ls /usr/bin | wc -l'
	[ "$output" -gt 100 ] && [ "$output" -lt 600 ]
}

@test "image-debian: as root and as ordinary users, by its own accounts" {
	gives 0 "0:0" --image debian:packages --user root -- sh -c 'echo $(id -u):$(id -g)'
	gives 0 "1000:1000" --image debian:packages --user 1000 -- sh -c 'echo $(id -u):$(id -g)'
	gives 0 "5:60" --image debian:packages --user games -- sh -c 'echo $(id -u):$(id -g)'
	gives 0 "www-data" --image debian:packages --user www-data -- id -un
	gives 0 "65534" --image debian:packages -- id -u
	# root of the box has no rights
	run "$cordon" run --image debian:packages --user root -- sh -c \
		'busybox grep CapEff /proc/self/status && busybox mount -t tmpfs x /home'
	is "$status" 1
	has "$output" "0000000000000000"
	has "$output" "permission denied"
}

@test "image-debian: read-only, or with a layer for changes that goes with the box" {
	run "$cordon" run --image debian:packages --user root -- touch /usr/new
	[ "$status" -ne 0 ]
	has "$output" "Read-only file system"
	gives 0 "" --image debian:packages --read-only=false -- sh -c \
		'rm /usr/bin/python3 && echo x >/etc/debian_version && mkdir /home/new'
	gives 0 "yes" --image debian:packages -- sh -c \
		'test -L /usr/bin/python3 -a ! -e /home/new && echo yes'
}

@test "image-debian: code, in the image's own interpreter" {
	gives 0 "/usr/bin/python3 True" --image debian:packages --lang python --code \
		'import sys, os; print(sys.executable, os.path.exists("/var/lib/dpkg/status"))'
	run "$cordon" run --image debian:packages --lang python --code \
		'import socket; socket.create_connection(("192.0.2.1", 80), 2)'
	[ "$status" -ne 0 ]
	has "$output" "Address family not supported"
}
