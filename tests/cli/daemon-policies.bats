#!/usr/bin/env bats
# Policies that a request names: each at least as strict as the daemon's, and
# felt inside the box.
load common.bash

setup_file() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	export place work
	place=$(mktemp -d /dev/shm/cordon-named-XXXXXX)
	work=$(mktemp -d /var/tmp/cordon-named-XXXXXX) # below /dev nothing is mounted
	mkdir "$place/state" "$place/run" "$place/policies" "$work/a" "$work/b"
	echo of-a >"$work/a/file"
	echo of-b >"$work/b/file"
	python3 -c 'import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
open(sys.argv[1], "w").write(str(s.server_port))
s.serve_forever()' "$place/port" 3>&- &
	echo $! >"$place/server"
	until_true [ -s "$place/port" ]
	cat >"$place/p.yaml" <<-END
		version: 1
		sandbox: {images: [host], memory: 256m, pids: 200, disk: 96m, read_only: false, mount_roots: [$work]}
		network:
		  allow: [{host: one.test, ports: [80]}, {host: two.test, ports: [80]}]
		  resolve: {"one.test:80": "127.0.0.1:$(cat "$place/port")", "two.test:80": "127.0.0.1:$(cat "$place/port")"}
	END
	name small 'extends: ../p.yaml' 'sandbox: {memory: 64m, pids: 20}'
	name one "network: {allow: [{host: one.test, ports: [80]}]}"
	name only-a "sandbox: {mount_roots: [$work/a]}"
	name large 'sandbox: {memory: 1g}'
	name mounts "sandbox: {mounts: [{from: $work/data, to: /data}]}"
	name changes 'sandbox: {memory: 64m}'
	mkdir "$work/data"
	echo of-data >"$work/data/file"
	serve
}

# name NAME LINE...: a policy of that name.
name() {
	printf '%s\n' 'version: 1' "${@:2}" >"$place/policies/$1.yaml"
}

# serve [DIR]: a daemon of our own; its process is $place/pid.
serve() {
	CORDON_STATE_DIR=$place/state CORDON_RUNTIME_DIR=$place/run "$CORDON_BUILD/cordon" serve \
		--policy "$place/p.yaml" --socket "$place/own.sock" \
		--docker-socket "$place/docker.sock" --ask-wait 1s \
		--policies "${1:-$place/policies}" >"$place/log" 2>&1 3>&- &
	echo $! >"$place/pid"
	until_true grep -q ready: "$place/log" || { cat "$place/log"; return 1; }
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
	kill "$(cat "$place/server")" || true
	rm -rf "$place" "$work"
}

c() {
	CORDON_STATE_DIR=$place/state CORDON_SOCKET=$place/own.sock "$cordon" "$@"
}

teardown() {
	for id in $(c ps -aq); do
		c rm -f "$id" >/dev/null
	done
}

# ask METHOD PATH [BODY]: what Docker's face says, and the status behind it.
ask() {
	curl -sS -m 20 --unix-socket "$place/docker.sock" -X "$1" -w ' %{http_code}' \
		-H 'Content-Type: application/json' ${3:+-d "$3"} "http://x/v1.43$2"
}

# labelled POLICY [MORE]: asks for a container under that policy.
labelled() {
	ask POST /containers/create "{\"Image\": \"host\", \"Cmd\": [\"sleep\", \"100\"],
		\"Labels\": {\"io.cordon.policy\": \"$1\"}${2:+, $2}}"
}

# running POLICY [MORE]: one that runs; its id.
running() {
	local id
	id=$(labelled "$@" | grep -o '[0-9a-f]\{64\}')
	ask POST "/containers/$id/start" >&2
	echo "$id"
}

said() {
	grep -c 'cordon: policy: ' "$place/log"
}

# reload: and it has been done.
reload() {
	local n
	n=$(said)
	kill -HUP "$(cat "$place/pid")"
	for _ in $(seq 200); do
		[ "$(said)" -eq "$n" ] || return 0
		sleep 0.1
	done
	return 1
}

@test "policies: the label's numbers hold in the box, and in what is run in it" {
	box=$(running small)
	run c exec "$box" sh -c 'grep MemTotal /proc/meminfo; for i in $(seq 40); do sleep 3 & done; wait'
	has "$output" "65536 kB"
	has "$output" "fork"
	# Without it they are the daemon's.
	free=$(c create --name free -- sleep 100)
	c start free >/dev/null
	run c exec "$free" sh -c 'grep MemTotal /proc/meminfo; for i in $(seq 40); do sleep 1 & done; wait'
	is "$status" 0
	has "$output" "262144 kB"
	lacks "$output" "fork"
	# What it does not state is bounded by the daemon's.
	has "$(labelled changes '"HostConfig": {"Tmpfs": {"/tmp": "size=10g"}}')" "lowered to policy maximum 100663296"
	is "$(ask GET "/containers/$box/json" | sed 's/ 200$//' | jq -r '"\(.HostConfig.Memory) \(.Cordon.policy.name)"')" "67108864 small"
}

@test "policies: the ledger has the one that decided" {
	box=$(running small)
	c exec "$box" true
	is "$(cat "$place"/state/ledger/*.jsonl | jq -r "select(.kind == \"run.start\" and .box == \"$box\") |
		.policy.file" | sort | uniq -c | xargs)" "2 $place/policies/small.yaml"
}

@test "policies: what is looser than the daemon's is refused, and says in what" {
	has "$(labelled large)" "not as strict as the daemon's: sandbox.memory 1g ($place/policies/large.yaml:2) is above 256m"
	has "$(labelled large)" " 403"
	has "$(cat "$place"/state/ledger/*.jsonl | jq -c 'select(.decision == "deny")' | tail -n 1)" "not as strict"
	has "$(labelled build)" "sandbox.memory 2g (preset:build:7) is above 256m"
	has "$(cat "$place/log")" "policy 'large' cannot be asked for by its name: sandbox.memory"
	for wrong in none ../p ../policies/small small.yaml "$place/p.yaml"; do
		run labelled "$wrong"
		has "$output" "there is no policy '${wrong:0:64}' here; there are: "
		has "$output" "small"
		lacks "$output" "large"
		has "$output" " 400"
	done
	has "$(labelled '')" " 400"
	is "$(c ps -aq)" ""
}

@test "policies: a preset's list of commands is all that is there" {
	box=$(ask POST /containers/create '{"Image": "host", "Cmd": ["ls", "/"],
		"Labels": {"io.cordon.policy": "shell-tools"}}' | grep -o '[0-9a-f]\{64\}')
	ask POST "/containers/$box/start"
	c wait "$box" >/dev/null
	has "$(c logs "$box")" "usr"
	has "$(ask POST /containers/create '{"Image": "host", "Cmd": ["sh", "-c", "id"],
		"Labels": {"io.cordon.policy": "shell-tools"}}')" "(commands, preset:shell-tools:"
}

@test "policies: one that asks, asks; the daemon's own does not" {
	run labelled cautious
	has "$output" "asked, and not answered"
	id=$(grep -o 'approvals approve [a-z0-9]*' <<<"$output" | cut -d' ' -f3)
	CORDON_STATE_DIR=$place/state "$cordon" approvals deny "$id"
}

@test "policies: of two hosts a narrower one has one" {
	try='for h in one two; do curl -sS -m 5 http://$h.test/ 2>&1; done; true'
	box=$(c create -- sleep 100)
	c start "$box" >/dev/null
	is "$(c exec "$box" sh -c "$try" | xargs)" "ok ok"
	box=$(running one)
	run c exec "$box" sh -c "$try"
	is "${lines[0]}" "ok"
	has "${lines[1]}" "resolve host: two.test"
	# One without a network has none.
	box=$(running changes)
	run c exec "$box" sh -c "$try"
	lacks "$output" "ok"
}

@test "policies: a volume is what both give" {
	bind() { echo "\"HostConfig\": {\"Binds\": [\"$1:/v\"]}"; }
	box=$(running only-a "$(bind "$work/a")")
	is "$(c exec "$box" cat /v/file)" of-a
	has "$(labelled only-a "$(bind "$work/b")")" "$place/policies/only-a.yaml:2: sandbox.mount_roots"
	# Not stated, it is not given, whatever the daemon gives.
	has "$(labelled small "$(bind "$work/b")")" '"Id"'
	has "$(labelled changes "$(bind "$work/b")")" "sandbox.mount_roots"
}

@test "policies: a mount of its own must be the daemon's to give, wherever it leads" {
	box=$(running mounts)
	is "$(c exec "$box" cat /data/file)" of-data
	mv "$work/data" "$work/moved"
	ln -s /opt "$work/data"
	run labelled mounts
	rm "$work/data"
	mv "$work/moved" "$work/data"
	has "$output" "$place/p.yaml:2: sandbox.mount_roots"
}

@test "policies: read again with the daemon's; what is gone or too loose starts nothing" {
	box=$(labelled changes | grep -o '[0-9a-f]\{64\}')
	name changes 'sandbox: {memory: 32m}'
	reload
	ask POST "/containers/$box/start"
	has "$(c exec "$box" grep MemTotal /proc/meminfo)" "32768 kB"
	ask POST "/containers/$box/stop?t=0"
	name changes 'sandbox: {memory: 512m}'
	reload
	has "$(ask POST "/containers/$box/start")" "is not as strict as the daemon's"
	rm "$place/policies/changes.yaml"
	reload
	has "$(ask POST "/containers/$box/start")" "there is no policy 'changes'"
	is "$(ask GET "/containers/$box/json" | sed 's/ 200$//' | jq .State.Running)" false
	# What cannot be read leaves all as it was.
	echo nonsense: 1 >"$place/policies/small.yaml"
	kill -HUP "$(cat "$place/pid")"
	until_true grep -q "the policy stays as it was: .*small.yaml" "$place/log"
	running small >/dev/null
	name small 'extends: ../p.yaml' 'sandbox: {memory: 64m, pids: 20}'
	name changes 'sandbox: {memory: 64m}'
	reload
}

@test "policies: after a restart a box has the one it was made with" {
	box=$(labelled small | grep -o '[0-9a-f]\{64\}')
	stop_serving
	serve
	ask POST "/containers/$box/start"
	has "$(c exec "$box" grep MemTotal /proc/meminfo)" "65536 kB"
}

@test "policies: the own socket takes the name too, and no file of the client's" {
	c create --name nn --policy small -- sleep 100
	c start nn >/dev/null
	has "$(c exec nn grep MemTotal /proc/meminfo)" "65536 kB"
	echo 'version: 1' >mine.yaml
	run c create --policy "$PWD/mine.yaml" -- sleep 100
	is "$status" 125
	has "$output" "there is no policy"
	run c create --policy large -- sleep 100
	is "$status" 126
	has "$output" "not as strict"
}

@test "policies: where they lie nothing is mounted that could change them" {
	stop_serving
	mkdir "$work/policies"
	printf '%s\n' 'version: 1' 'sandbox: {memory: 64m}' >"$work/policies/p.yaml"
	printf '%s\n' 'version: 1' >"$work/b/base.yaml"
	printf '%s\n' 'version: 1' 'extends: ../b/base.yaml' >"$work/policies/other.yaml"
	ln -s "$work" "$work/a/link"
	serve "$work/a/link/policies"
	bind() { echo "\"HostConfig\": {\"Binds\": [\"$1\"]}"; }
	has "$(labelled small)" "no policy 'small'"
	box=$(running p)
	has "$(c exec "$box" grep MemTotal /proc/meminfo)" "65536 kB"
	plain() { ask POST /containers/create "{\"Image\": \"host\", \"Cmd\": [\"sleep\", \"100\"], $(bind "$1")}"; }
	has "$(plain "$work:/v")" "cannot be writable: the policies"
	has "$(plain "$work:/v:ro")" '"Id"'
	has "$(plain "$work/policies:/v:ro")" "never mounted"
	has "$(plain "$work/a:/v")" "is found through a link in it"
	# A file that one of them extends, whichever this box has.
	id=$(plain "$work/b:/v" | grep -o '[0-9a-f]\{64\}')
	ask POST "/containers/$id/start"
	run c exec "$id" sh -c 'echo x >/v/new && echo x >/v/base.yaml'
	has "$output" "Read-only"
	[ -e "$work/b/new" ]
	stop_serving
	rm -r "$work/policies" "$work/a/link" "$work/b/base.yaml" "$work/b/new"
	serve
}

@test "policies: a directory or file that others can write is no policy" {
	bad() {
		run env CORDON_STATE_DIR="$dir/state" CORDON_RUNTIME_DIR="$dir/run" timeout 20 "$cordon" serve \
			--policies "$dir/policies" --socket "$dir/s.sock"
		is "$status" 1
		has "$output" "$1"
	}
	mkdir state run policies
	echo 'version: 1' >policies/x.yaml
	chmod 666 policies/x.yaml
	bad "x.yaml' belongs to someone else or may be written by all"
	chmod 644 policies/x.yaml
	chmod 777 policies
	bad "policies' belongs to someone else or may be written by all"
	chmod 755 policies
	mv policies/x.yaml policies/strict.yaml
	bad "a preset has that name"
	mv policies/strict.yaml 'policies/a b.yaml'
	bad "a policy's name has at most 64"
	rm policies/*
	ln -s nowhere policies/x.yaml
	bad "No such file"
	rm -r policies
	bad "No such file"
}
