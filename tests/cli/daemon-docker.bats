#!/usr/bin/env bats
# Docker's face through all parts of the daemon, asked as its clients ask.
load common.bash

setup_file() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	export place
	place=$(mktemp -d /dev/shm/cordon-docker-XXXXXX)
	mkdir "$place/state" "$place/run"
	printf '%s\n' 'version: 1' 'sandbox: {images: [host, "*"], memory: 256m, read_only: false}' >"$place/p.yaml"
	"$BATS_TEST_DIRNAME/../clients/image" "$place/root.tar"
	"$BATS_TEST_DIRNAME/image-layout" "$place/image.tar" small:1 \
		'{"Env": ["PATH=/usr/bin:/bin", "KIND=image"], "Cmd": ["sh"], "StopSignal": "SIGUSR1",
		"Labels": {"who": "image", "tier": "base", "io.cordon.timeout": "1"}}' \
		"$place/root.tar"
	CORDON_STATE_DIR=$place/state "$CORDON_BUILD/cordon" image load --quiet \
		-i "$place/image.tar" >/dev/null
	serve
}

# Starts a daemon of our own; its process is $place/pid.
serve() {
	CORDON_POLICY=$place/p.yaml CORDON_STATE_DIR=$place/state CORDON_RUNTIME_DIR=$place/run \
		"$CORDON_BUILD/cordon" serve --socket "$place/own.sock" \
		--docker-socket "$place/docker.sock" >"$place/log" 2>&1 3>&- &
	echo $! >"$place/pid"
	for _ in $(seq 100); do
		! grep -q ready: "$place/log" || return 0
		sleep 0.1
	done
	cat "$place/log"
	return 1
}

stop_serving() {
	kill "$(cat "$place/pid")" || true
	for _ in $(seq 100); do
		kill -0 "$(cat "$place/pid")" 2>/dev/null || return 0
		sleep 0.1
	done
}

teardown_file() {
	stop_serving
	rm -rf "$place"
}

teardown() {
	for id in $(ask GET '/containers/json?all=1' | jq -r '.[].Id'); do
		ask DELETE "/containers/$id?force=1" >/dev/null
	done
}

# ask METHOD PATH [BODY]: the answer's body.
ask() {
	curl -sS -g -m 20 --unix-socket "$place/docker.sock" -X "$1" \
		-H 'Content-Type: application/json' ${3:+-d "$3"} "http://x/v1.43$2"
}

# made IMAGE COMMAND [MORE]: a container that runs; its id.
made() {
	local id
	id=$(ask POST /containers/create "{\"Image\": \"$1\", \"Cmd\": $2${3:+, $3}}" | jq -r .Id)
	ask POST "/containers/$id/start" >&2
	echo "$id"
}

# exec_of CONTAINER COMMAND [MORE]: an exec that is made; its id.
exec_of() {
	ask POST "/containers/$1/exec" \
		"{\"AttachStdout\": true, \"AttachStderr\": true, \"Cmd\": $2${3:+, $3}}" | jq -r .Id
}

# begin EXEC...: starts them at once, with a switch; a line for each: the
# status, whether the connection came to its end, and the text.
begin() {
	python3 - "$place/docker.sock" "$@" <<-'END'
	import socket, sys

	def connect():
	    s = socket.socket(socket.AF_UNIX)
	    s.settimeout(10)
	    s.connect(sys.argv[1])
	    return s

	def rest(s, body):
	    try:
	        while more := s.recv(65536):
	            body += more
	        return body, "ended"
	    except TimeoutError:
	        return body, "open"

	def payload(body):
	    out = b""
	    while body:
	        size = int.from_bytes(body[4:8], "big")
	        out, body = out + body[8:8 + size], body[8 + size:]
	    return out

	calls = [(connect(), e.encode()) for e in sys.argv[2:]]
	for s, e in calls:
	    s.sendall(b"POST /v1.43/exec/%s/start HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
	              b"Upgrade: tcp\r\nContent-Length: 2\r\n\r\n{}" % e)
	for s, e in calls:
	    data = b""
	    while b"\r\n\r\n" not in data:
	        data += s.recv(65536)
	    head, _, body = data.partition(b"\r\n\r\n")
	    status, ended = head.split()[1].decode(), "answered"
	    if status == "101":
	        body, ended = rest(s, body)
	        body = payload(body)
	    print(status, ended, body.decode(errors="replace").strip())
	END
}

@test "Docker: an exec that may not start any more is refused before the switch" {
	box=$(made host '["sleep", "100"]')
	e=$(exec_of "$box" '["true"]')
	kill -HUP "$(cat "$place/pid")"
	sleep 1.5
	run begin "$e"
	has "$output" "403 answered"
	has "$output" "the policy was read again"
	# Anew it is another one.
	is "$(begin "$(exec_of "$box" '["echo", "hi"]')")" "101 ended hi"
}

@test "Docker: of starts at once one is it, the others are told so" {
	box=$(made host '["sleep", "100"]')
	e=$(exec_of "$box" '["sh", "-c", "echo once; sleep 1; exit 3"]')
	run begin "$e" "$e" "$e" "$e"
	is "$(grep -c '^101 ended once$' <<<"$output")" 1
	is "$(grep -c '^409 answered .*is already running' <<<"$output")" 3
	is "$(ask GET "/exec/$e/json" | jq .ExitCode)" 3
	has "$(begin "$e")" "has already run"
}

@test "Docker: a variable without a value is taken away from an exec" {
	box=$(made host '["sleep", "100"]' '"Env": ["GONE=1", "KEPT=2"]')
	e=$(exec_of "$box" '["sh", "-c", "echo ${GONE-none} $KEPT ${PYTHONUNBUFFERED-none} ${NEVER-none}"]' \
		'"Env": ["GONE", "PYTHONUNBUFFERED", "NEVER"]')
	is "$(begin "$e")" "101 ended none 2 none none"
	box=$(made small:1 '["sleep", "100"]')
	e=$(exec_of "$box" '["sh", "-c", "echo ${KIND-none}"]' '"Env": ["KIND"]')
	is "$(begin "$e")" "101 ended none"
}

@test "Docker: stop signal and labels of an image are its containers', unless they have their own" {
	box=$(made small:1 '["sh", "-c", "trap \"echo usr1; exit 9\" USR1; while :; do sleep 0.1; done"]' \
		'"Labels": {"who": "me"}')
	sleep 0.5
	is "$(ask GET "/containers/$box/json" | jq -c '.Config | [.StopSignal, .Labels]')" \
		'["SIGUSR1",{"who":"me","tier":"base"}]'
	is "$(ask GET '/containers/json?filters={"label":["tier=base"]}' | jq -r '.[].Id')" "$box"
	is "$(ask GET '/containers/json?filters={"label":["who=image"]}')" '[]'
	ask POST "/containers/$box/stop?t=10"
	is "$(ask GET "/containers/$box/json" | jq .State.ExitCode)" 9
	box=$(made small:1 '["sleep", "100"]' '"StopSignal": "INT"')
	is "$(ask GET "/containers/$box/json" | jq -r .Config.StopSignal)" INT
	ask POST "/containers/$box/stop?t=10"
	is "$(ask GET "/containers/$box/json" | jq .State.ExitCode)" 130
}

@test "Docker: an exec that used up the memory is an event of its container" {
	box=$(made host '["sleep", "100"]' '"HostConfig": {"Memory": 67108864}')
	since=$(date +%s)
	e=$(exec_of "$box" '["python3", "-c", "x = bytearray(200 << 20)"]')
	begin "$e"
	is "$(ask GET "/exec/$e/json" | jq .ExitCode)" 137
	is "$(ask GET "/containers/$box/json" | jq -c '.State | [.Status, .OOMKilled]')" '["running",true]'
	has "$(ask GET "/events?since=$since&until=$(($(date +%s) + 1))&filters={\"event\":[\"oom\"]}")" "$box"
	ask POST "/containers/$box/restart?t=0"
	is "$(ask GET "/containers/$box/json" | jq .State.OOMKilled)" false
}

@test "Docker: an archive that the memory does not hold is refused, and the container lives on" {
	mkdir t
	head -c 80M /dev/zero >t/large
	echo small >t/small
	box=$(made host '["sleep", "100"]' '"HostConfig": {"Memory": 67108864}')
	# a root that can be written, too: its changes are in memory
	root=$(made small:1 '["sleep", "100"]' '"HostConfig": {"Memory": 67108864}')
	for to in "$box/archive?path=/tmp" "$box/archive?path=/workspace" "$root/archive?path=/"; do
		tar -cf - -C t large | curl -sS -m 30 --unix-socket "$place/docker.sock" -T - -w ' %{http_code}' \
			"http://x/v1.43/containers/$to" >said
		has "$(cat said)" "do not fit in the box's memory"
		has "$(cat said)" " 413"
	done
	is "$(ask GET "/containers/$root/json" | jq -r .State.Status)" running
	head -c 48M /dev/zero >t/fits
	tar -cf - -C t fits | curl -sS -m 30 --unix-socket "$place/docker.sock" -T - -w '%{http_code}' \
		"http://x/v1.43/containers/$box/archive?path=/workspace" >said
	is "$(cat said)" 200
	tar -cf - -C t small | curl -sS -m 30 --unix-socket "$place/docker.sock" -T - -w '%{http_code}' \
		"http://x/v1.43/containers/$box/archive?path=/tmp" >said
	is "$(cat said)" 200
	is "$(begin "$(exec_of "$box" '["cat", "/tmp/small"]')")" "101 ended small"
	is "$(ask GET "/containers/$box/json" | jq -c '.State | [.Status, .OOMKilled]')" '["running",false]'
}

@test "Docker: how an exec ended is known after the daemon was started again" {
	box=$(made host '["sleep", "100"]')
	e=$(exec_of "$box" '["sh", "-c", "exit 7"]')
	begin "$e"
	last=$(exec_of "$box" '["sleep", "100"]')
	ask POST "/exec/$last/start" '{"Detach": true}'
	stop_serving
	serve
	is "$(ask GET "/exec/$e/json" | jq -c '[.ExitCode, .Running, .ContainerID == "'"$box"'", .ProcessConfig.arguments]')" \
		'[7,false,true,["-c","exit 7"]]'
	# what ran then was ended with it
	is "$(ask GET "/exec/$last/json" | jq -c '[.ExitCode, .Running]')" '[137,false]'
	ask DELETE "/containers/$box"
	is "$(ask GET "/exec/$e/json" | jq .ExitCode)" 7
}
