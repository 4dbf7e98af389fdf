# shellcheck shell=bash
# What the tests of the docker command share. DOCKER_HOST names the server,
# CLIENTS_IMAGE an image of tests/clients/image there, CLIENTS_SERVER is
# `cordon` or `docker`. The server is the tests' own: each test removes all
# containers when it ends.
bats_require_minimum_version 1.5.0

setup_file() {
	: "${DOCKER_HOST:?}" "${CLIENTS_IMAGE:?}" "${CLIENTS_SERVER:?}"
	export DOCKER_CONFIG=$BATS_FILE_TMPDIR DOCKER_CLI_HINTS=false
}

setup() {
	# shellcheck disable=SC2034 # the tests use it
	image=$CLIENTS_IMAGE
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	local all
	all=$(docker ps -aq)
	# shellcheck disable=SC2086 # a list
	[ -z "$all" ] || docker rm -f $all >/dev/null
}

is() {
	[ "$1" = "$2" ] || { printf 'have: %s\nwant: %s\n' "$1" "$2"; return 1; }
}

has() {
	[[ $1 == *"$2"* ]] || { printf 'have: %s\nwithout: %s\n' "$1" "$2"; return 1; }
}

lacks() {
	[[ $1 != *"$2"* ]] || { printf 'have: %s\nwith: %s\n' "$1" "$2"; return 1; }
}

# with_pty COMMAND...: as from a terminal. script(1) makes it; what the
# terminal showed is printed, without carriage returns and the zeros that
# script types at the end of its input; stdin is typed.
with_pty() {
	script -qefc "$(printf '%q ' "$@")" /dev/null | tr -d '\r\0'
	return "${PIPESTATUS[0]}"
}

# until_true SECONDS COMMAND...: tries every 0.1 s.
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || { echo "not within time: $*"; return 1; }
		sleep 0.1
	done
}

# state CONTAINER FIELD: of its state
state() {
	docker inspect -f "{{.State.$2}}" "$1"
}

is_gone() {
	! docker inspect "$1" >/dev/null 2>&1
}

on_docker() {
	[ "$CLIENTS_SERVER" = docker ]
}
