#!/usr/bin/env bats
# The daemon with a policy of its own: lists of commands in images that stay,
# volumes of images, links that are swept.
load common.bash

setup_file() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	export place
	place=$(mktemp -d /dev/shm/cordon-images-XXXXXX)
	mkdir "$place/state" "$place/run" "$place/root" "$place/root/data"
	"$BATS_TEST_DIRNAME/../clients/image" "$place/root.tar"
	echo from-the-image >"$place/root/data/old"
	tar -cf "$place/data.tar" -C "$place/root" data
	"$BATS_TEST_DIRNAME/image-layout" "$place/image.tar" small:1 \
		'{"Env": ["PATH=/usr/bin:/bin"], "Cmd": ["sh"], "Volumes": {"/data": {}}}' \
		"$place/root.tar" "$place/data.tar"
}

# serve POLICY: starts a daemon of our own with it; its process is $place/pid.
serve() {
	printf '%s\n' 'version: 1' "$@" >"$place/p.yaml"
	: >"$place/log"
	CORDON_POLICY=$place/p.yaml CORDON_STATE_DIR=$place/state CORDON_RUNTIME_DIR=$place/run \
		"$CORDON_BUILD/cordon" serve --socket "$place/own.sock" \
		>"$place/log" 2>&1 3>&- &
	echo $! >"$place/pid"
	for _ in $(seq 100); do
		! grep -q ready: "$place/log" || break
		sleep 0.1
	done
	CORDON_STATE_DIR=$place/state "$CORDON_BUILD/cordon" image load --quiet -i "$place/image.tar" >/dev/null
}

teardown() {
	[ -s "$place/pid" ] || return 0
	kill "$(cat "$place/pid")" || true
	for _ in $(seq 100); do
		kill -0 "$(cat "$place/pid")" 2>/dev/null || break
		sleep 0.1
	done
	: >"$place/pid"
}

teardown_file() {
	rm -rf "$place"
}

# c ARG...: the command, asking our daemon.
c() {
	CORDON_STATE_DIR=$place/state CORDON_SOCKET=$place/own.sock "$cordon" "$@"
}

@test "daemon: a list of commands holds in an image, for each program of a box" {
	serve 'sandbox: {images: ["*"], memory: 256m}' \
		'commands: {allow: [timeout, {name: python3, args: [{script: /workspace}]}]}'
	cat >try.py <<-'END'
	import os, subprocess
	for path in ("/usr/bin/busybox", "/usr/bin/bash", "/bin/sh"):
	    try:
	        subprocess.run([path, "-c", "true"])
	        print("ran", path)
	    except PermissionError:
	        print("denied")
	END
	c create --name only --image small:1 -- python3 /workspace/try.py >/dev/null
	c cp try.py only:/workspace/try.py
	c start only
	is "$(c wait only)" 0
	is "$(c logs only)" "denied
denied
denied"
	run c create --image small:1 -- sh -c 'echo no'
	[ "$status" -ne 0 ]
	has "$output" "'sh'"
	# its own command too
	run c create --image small:1
	[ "$status" -ne 0 ]
	has "$output" "'sh'"
	c rm only
}

@test "daemon: an image's volume is kept while its box is, and is the box's own" {
	serve 'sandbox: {images: ["*"], memory: 256m, read_only: false}'
	c create --name vol --image small:1 --read-only -- sh -c \
		'cat /data/old; cat /data/new 2>/dev/null; echo new >>/data/new; touch /etc/no 2>&1; :' >/dev/null
	c start vol
	is "$(c wait vol)" 0
	c start vol
	is "$(c wait vol)" 0
	is "$(c logs vol | tr '\n' ' ')" "from-the-image touch: /etc/no: Read-only file system from-the-image new touch: /etc/no: Read-only file system "
	c rm vol
	c create --name vol --image small:1 -- ls /data >/dev/null
	c start vol
	is "$(c wait vol)" 0
	is "$(c logs vol)" old
	c rm vol
}

@test "daemon: links that lead out of a volume are removed when the box is dead, and recorded" {
	mkdir vol
	ln -s /etc/hostname vol/mine
	sleep 0.05
	serve "sandbox: {images: [host], memory: 256m, mount_roots: ['$dir/vol']}" \
		'docker: {bind_symlinks: sweep}'
	c create --name links -v "$dir/vol:/vol:rw" -- sh -c 'mkdir /vol/d && ln -s /etc/passwd /vol/d/out &&
		ln -s ../../x /vol/d/up && ln -s d /vol/in && mkfifo /vol/pipe; ls /vol /vol/d' >/dev/null
	c start links
	c wait links
	output=$(c logs links 2>&1)
	has "$output" out
	has "$output" "Permission denied"
	[ ! -e vol/pipe ]
	is "$(cd vol && find . -type l | sort | tr '\n' ' ')" "./in ./mine "
	told=$(c inspect links)
	has "$told" "the link 'd/out' in"
	has "$told" "'/etc/passwd'; it was removed"
	has "$told" "the link 'd/up' in"
	lacks "$told" "mine"
	run=$(c audit list | grep 'run[.]start' | tail -1 | awk '{ print $7 }')
	has "$(c audit show "$run" | grep denied)" "leads out of it, to '/etc/passwd'"
	c rm links
}
