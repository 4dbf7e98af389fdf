#!/usr/bin/env bats
# Where a policy asks, the daemon does: through its store, and who answers is
# whoever runs it.
load common.bash

setup_file() {
	export top
	top=$(mktemp -d /dev/shm/cordon-ask-XXXXXX)
	chmod 755 "$top"
}

teardown_file() {
	local pid
	for pid in "$top"/*/pid; do
		kill "$(cat "$pid")" 2>/dev/null || continue
		for _ in $(seq 100); do
			kill -0 "$(cat "$pid")" 2>/dev/null || break
			sleep 0.1
		done
	done
	rm -rf "$top"
}

# who UID: a user that is not root, where we can be one; else ourselves.
who() {
	who=()
	[ "$(id -u)" -ne 0 ] || [ "$1" -eq 0 ] ||
		who=(setpriv --reuid "$1" --regid "$1" --clear-groups
			env -u CORDON_STATE_DIR -u XDG_STATE_HOME HOME=/nonexistent)
}

as() {
	who "$1"
	shift
	"${who[@]}" "$@"
}
one=64001
two=64002

# serve NAME [FLAG...]: a daemon of its own with the policy on standard input.
serve() {
	place=$top/$1
	shift
	mkdir "$place" "$place/state" "$place/run"
	cat >"$place/p.yaml"
	export CORDON_STATE_DIR=$place/state CORDON_RUNTIME_DIR=$place/run CORDON_SOCKET=$place/own.sock
	# One that stands in the way of what is asked would be found.
	unset CORDON_SESSION CORDON_POLICY
	"$cordon" serve --socket "$place/own.sock" --docker-socket "$place/docker.sock" --mode 0666 \
		--policy "$place/p.yaml" "$@" >"$place/log" 2>&1 3>&- &
	echo $! >"$place/pid"
	for _ in $(seq 100); do
		! grep -q ready: "$place/log" || return 0
		sleep 0.1
	done
	cat "$place/log"
	return 1
}

stop() {
	kill "$(cat "$place/pid")"
	for _ in $(seq 100); do
		kill -0 "$(cat "$place/pid")" 2>/dev/null || break
		sleep 0.1
	done
	rm "$place/pid"
}

usual() {
	cat <<-END
		version: 1
		sandbox: {images: [host], memory: 256m}
		commands: {allow: [sleep, ls, echo]}
		approvals: {expire: ${1:-60s}, always: [commands]}
	END
}

# c UID ARG...: the command as this user, to our daemon.
c() {
	local uid=$1
	shift
	as "$uid" "$cordon" "$@"
}

# docker UID METHOD PATH [BODY]: Docker's API; the status is the last line.
docker() {
	as "$1" curl -s -o - -w '\n%{http_code}' --unix-socket "$place/docker.sock" -X "$2" \
		-H 'Content-Type: application/json' ${4:+-d "$4"} "http://d/v1.43$3"
}

waiting() {
	"$cordon" approvals list --json | grep -o '"id":"[a-z0-9]*","state"' | cut -d'"' -f4
}

# asked [N]: the id, when so many questions wait.
asked() {
	for _ in $(seq 100); do
		if [ "$(waiting | wc -l)" -eq "${1:-1}" ]; then
			waiting | head -n 1
			return 0
		fi
		sleep 0.1
	done
	echo "waiting: $(waiting | tr '\n' ' ')" >&2
	return 1
}

# A program that a person must allow, begun behind our back; ended by `over`.
begin() {
	who "$1"
	shift
	"${who[@]}" "$cordon" "$@" >"$dir/out" 2>"$dir/err" 3>&- &
	child=$!
}

over() {
	code=0
	wait "$child" || code=$?
	out=$(cat "$dir/out") err=$(cat "$dir/err")
}

@test "ask: a yes starts exactly that, and the ledger tells who asked and who said so" {
	serve yes < <(usual)
	begin $one run -d --name works -- sleep 60
	id=$(asked)
	output=$("$cordon" approvals show "$id")
	has "$output" "sleep 60"
	has "$output" "approvals.always has 'commands'"
	if [ "$(id -u)" -eq 0 ]; then has "$output" "uid $one"; fi
	"$cordon" approvals approve "$id" --reason "looked at it" >/dev/null
	over
	is "$code" 0 && is "${#out}" 64
	box=$out
	begin $one exec works echo "a b" c
	id=$(asked)
	has "$("$cordon" approvals show "$id")" "echo 'a b' c"
	"$cordon" approvals approve "$id" >/dev/null
	over
	is "$code" 0 && is "$out" "a b c"
	output=$("$cordon" audit export 2>/dev/null || cat "$place"/state/ledger/*.jsonl)
	python3 - "$box" "$place"/state/ledger/*.jsonl <<-'END'
		import json, sys, os
		records = [json.loads(l) for f in sys.argv[2:] for l in open(f) if l.strip()]
		of = {}
		for r in records:
		    if "run" in r:
		        of.setdefault(r["run"], []).append(r)
		runs = [v for v in of.values() if v[0]["kind"] == "approval.request"]
		assert len(runs) == 2, of
		for v in runs:
		    kinds = [r["kind"] for r in v]
		    assert kinds[:3] == ["approval.request", "approval.answer", "run.start"], kinds
		    ask, answer, start = v[:3]
		    uid = 64001 if os.getuid() == 0 else os.getuid()
		    for r in (ask, answer, start):
		        assert r["peer"] == uid and r["box"] == sys.argv[1] and r["face"] == "cordon", r
		    assert ask["approval"] == answer["approval"] == start["approval"], v
		    assert answer["decision"] == "allow" and start["decision"] == "ask", v
		    assert start["approved_by"] == answer["by"] and answer["by"], v
		assert runs[0][1]["reason"] == "looked at it" and runs[1][0]["subject"] == "echo a b c", runs
	END
	"$cordon" audit verify >/dev/null
	# An answer is used once: what is started again is asked for again.
	c $one stop -t 0 works >/dev/null
	begin $one start works
	"$cordon" approvals deny "$(asked)" --reason "not twice" >/dev/null
	over
	[ "$code" -ne 0 ]
	has "$err" "not twice"
	stop
}

@test "ask: a no, and no answer in time, start nothing" {
	serve no < <(usual)
	begin $one run -d --name never -- echo seen
	"$cordon" approvals deny "$(asked)" --reason "not today" >/dev/null
	over
	[ "$code" -ne 0 ]
	has "$err" "the answer is no: not today"
	is "$(c $one ps -aq)" ""
	grep -q '"cause":"denied"' "$place"/state/ledger/*.jsonl
	stop
	serve late < <(usual 1s)
	begin $one run -d --name never -- echo seen
	over
	[ "$code" -ne 0 ]
	has "$err" "nobody answered in time"
	is "$(waiting)" ""
	grep -q '"kind":"approval.answer".*"decision":"deny".*nobody answered in time' "$place"/state/ledger/*.jsonl
	stop
}

@test "ask: a client that leaves takes its question with it" {
	serve gone < <(usual)
	begin $one run -d --name left -- sleep 60
	id=$(asked)
	kill "$child"
	over
	asked 0
	run ! "$cordon" approvals approve "$id"
	has "$output" "already withdrawn"
	has "$("$cordon" approvals show "$id")" "who asked has left"
	grep -q '"kind":"approval.answer".*"decision":"withdraw".*who asked has left' "$place"/state/ledger/*.jsonl
	is "$(c $one ps -aq)" ""
	# Its name is free again, and others go on.
	begin $one run -d --name left -- sleep 60
	"$cordon" approvals approve "$(asked)" >/dev/null
	over
	is "$code" 0
	stop
}

@test "ask: only who runs the daemon sees and answers; an answer is for one user" {
	serve whose < <(usual)
	begin $one run -d --name mine -- sleep 60
	id=$(asked)
	for uid in $one $two; do
		[ "$(id -u)" -eq 0 ] || continue
		for args in list "show $id" "approve $id" "deny $id" "rules list"; do
			# shellcheck disable=SC2086
			run as $uid env CORDON_STATE_DIR="$place/state" "$cordon" approvals $args
			[ "$status" -ne 0 ]
			lacks "$output" "sleep 60"
		done
	done
	is "$(waiting)" "$id"
	"$cordon" approvals approve "$id" --scope always >/dev/null
	over
	is "$code" 0
	# Always: the same for the same user, nothing else and for nobody else.
	c $one run -d --name again -- sleep 60 >/dev/null
	begin $one run -d -- sleep 61
	id=$(asked)
	kill "$child"
	over
	asked 0
	begin $one run -d -e A=b -- sleep 60
	has "$("$cordon" approvals show "$(asked)")" "variable A=b"
	kill "$child"
	over
	asked 0
	if [ "$(id -u)" -eq 0 ]; then
		begin $two run -d --name mine -- sleep 60
		"$cordon" approvals deny "$(asked)" >/dev/null
		over
		[ "$code" -ne 0 ]
		begin 0 run -d -- sleep 60
		"$cordon" approvals deny "$(asked)" >/dev/null
		over
		[ "$code" -ne 0 ]
	fi
	begin $two run -d --name more -- sleep 62
	"$cordon" approvals approve "$(asked)" --scope session >/dev/null
	over
	is "$code" 0
	c $two run -d --name most -- sleep 62 >/dev/null
	# What was taken back does not hold any more.
	"$cordon" approvals rules list --json | grep -o '"id":"[a-z0-9]*"' | cut -d'"' -f4 |
		xargs -n 1 "$cordon" approvals rules remove >/dev/null
	for n in 60 62; do
		begin $one run -d -- sleep $n
		"$cordon" approvals deny "$(asked)" >/dev/null
		over
		[ "$code" -ne 0 ]
	done
	stop
}

@test "ask: many questions of one user are bounded, and hold up nobody" {
	serve many < <(printf 'version: 1\nsandbox: {images: [host], memory: 256m}\ncommands: {allow: [sleep, ls], ask: [echo]}\n')
	pids=
	for i in 1 2 3 4 5 6 7 8; do
		begin $one run -d --name "q$i" -- echo "$i"
		pids="$pids $child"
	done
	asked 8 >/dev/null
	run docker $one POST /containers/create '{"Image":"host","Cmd":["echo","9"]}'
	is "${lines[-1]}" 503
	has "$output" busy
	# What asks nobody goes on, for this user and for others.
	c $one run -d --name free -- sleep 60 >/dev/null
	is "$(c $one exec free ls -d /usr)" /usr
	if [ "$(id -u)" -eq 0 ]; then
		begin $two run -d --name other -- echo other
		asked 9 >/dev/null
		"$cordon" approvals list --json | grep -q "uid $two"
		kill "$child"
		over
	fi
	# shellcheck disable=SC2086
	kill $pids
	# shellcheck disable=SC2086
	wait $pids || true
	asked 0
	stop
}

@test "ask: with a list, nobody is asked about what is not in the box" {
	serve list < <(printf 'version: 1\nsandbox: {images: [host]}\ncommands: {allow: [sleep, ls], ask: [echo, date]}\n')
	c $one run -d --name plain -- sleep 60 >/dev/null
	run c $one exec plain echo x
	[ "$status" -ne 0 ]
	has "$output" "'echo' needs a person's yes"
	has "$output" "not in this box"
	is "$(waiting)" ""
	# A box that was made for it has it, and what is run there is asked for.
	begin $one run -d --name dated -- date
	"$cordon" approvals approve "$(asked)" >/dev/null
	over
	is "$code" 0
	has "$(c $one wait dated)" 0
	stop
}

@test "ask: a policy that is read again ends what is being asked" {
	serve again < <(usual)
	begin $one run -d --name old -- sleep 60
	id=$(asked)
	printf 'version: 1\nsandbox: {images: [host]}\ncommands: {allow: [ls]}\n' >"$place/p.yaml"
	kill -HUP "$(cat "$place/pid")"
	over
	[ "$code" -ne 0 ]
	has "$err" "the policy was read again"
	run ! "$cordon" approvals approve "$id"
	is "$(c $one ps -aq)" ""
	run ! c $one run -d -- sleep 60
	has "$output" "'sleep': no rule names it"
	stop
}

@test "ask: when a part of the daemon dies, or all of it, the question ends" {
	serve dies < <(usual)
	begin $one run -d --name lost -- sleep 60
	id=$(asked)
	front=
	for pid in $(pgrep -P "$(cat "$place/pid")"); do
		! grep -q cordon-front "/proc/$pid/cmdline" || front=$pid
	done
	kill -9 "$front"
	over
	[ "$code" -ne 0 ]
	asked 0
	run ! "$cordon" approvals approve "$id"
	for _ in $(seq 100); do
		[ "$(grep -c ready: "$place/log")" -lt 2 ] || break
		sleep 0.1
	done
	is "$(c $one ps -aq)" ""
	begin $one run -d --name lost -- sleep 60
	id=$(asked)
	daemon=$(cat "$place/pid")
	desks=$(pgrep -P "$daemon")
	kill -9 "$daemon"
	over
	[ "$code" -ne 0 ]
	asked 0
	for pid in $desks; do
		for _ in $(seq 50); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		run ! kill -0 "$pid"
	done
	rm "$place/pid"
}

@test "ask: stopping the daemon withdraws what is being asked" {
	serve stops < <(usual)
	begin $one run -d --name lost -- sleep 60
	id=$(asked)
	stop
	over
	[ "$code" -ne 0 ]
	is "$(waiting)" ""
	run ! "$cordon" approvals approve "$id"
}

@test "ask: a Docker client waits a while, then is told what to do, and asks again" {
	serve docker --ask-wait 1s < <(usual)
	body='{"Image":"host","Cmd":["sleep","60"]}'
	run docker $one POST '/containers/create?name=dd' "$body"
	is "${lines[-1]}" 403
	id=$(asked)
	has "$output" "cordon approvals approve $id"
	# It is asked once, however often the client comes.
	run docker $one POST '/containers/create?name=dd' "$body"
	is "${lines[-1]}" 403
	has "$output" "approve $id"
	"$cordon" approvals approve "$id" >/dev/null
	if [ "$(id -u)" -eq 0 ]; then
		run docker $two POST '/containers/create?name=dd' "$body"
		is "${lines[-1]}" 403
		"$cordon" approvals deny "$(asked)" >/dev/null
	fi
	run docker $one POST '/containers/create?name=dd' "$body"
	is "${lines[-1]}" 201
	run docker $one POST /containers/dd/start
	is "${lines[-1]}" 204
	# One that waits is answered at once.
	docker $one POST /containers/dd/exec '{"Cmd":["ls","/"],"AttachStdout":true}' >"$dir/out" &
	child=$!
	"$cordon" approvals approve "$(asked)" >/dev/null
	wait "$child"
	is "$(tail -n 1 "$dir/out")" 201
	# Used is used.
	run docker $one POST '/containers/create?name=ee' "$body"
	is "${lines[-1]}" 403
	stop
}

@test "ask: a policy that asks on terminals alone asks nobody" {
	serve terminal < <(printf 'version: 1\nsandbox: {images: [host]}\napprovals: {always: [commands], ask: [terminal]}\n')
	begin $one run -d -- ls
	over
	[ "$code" -ne 0 ]
	has "$err" "the daemon has none"
	is "$(waiting)" ""
	stop
}

# own UID BODY: a run by the own API, begun behind our back; `over` ends it.
own() {
	who "$1"
	"${who[@]}" curl -s --unix-socket "$place/own.sock" -H 'Content-Type: application/json' -d "$2" \
		http://d/v1/run >"$dir/out" 2>"$dir/err" 3>&- &
	child=$!
}

# code NAME STDIN [SETTINGS]: two blocks, of which the second imports the first if it is called so.
code() {
	printf '{"code":[{"language":"python","code":"def loads(t):\\n    return \\"other code\\"","filename":"%s"},' "$1"
	printf '{"language":"python","code":"import json, sys\\nprint(json.loads(sys.stdin.read()))","filename":"main.py"}],'
	printf '"stdin":"%s"%s}' "$2" "${3:+,\"settings\":$3}"
}

@test "ask: a yes to code is for its file names, arguments and input" {
	serve names < <(printf 'version: 1\nsandbox: {images: [host], memory: 256m, writable: [/opt, /tmp, /workspace]}\napprovals: {expire: 60s, always: [code]}\n')
	own $one "$(code helper.py '[1]')"
	id=$(asked)
	output=$("$cordon" approvals show "$id")
	has "$output" "file 1 helper.py"
	has "$output" "file 2 main.py"
	has "$output" "tmpfs /opt"
	has "$output" "stdin 3 $(printf '[1]' | sha256sum | cut -c-64)"
	"$cordon" approvals approve "$id" --scope always >/dev/null
	over
	has "$out" '"stdout":"[1]\n"'
	# The same again is not asked.
	own $one "$(code helper.py '[1]')"
	over
	has "$out" '"stdout":"[1]\n"'
	for body in "$(code json.py '[1]')" "$(code helper.py '[2]')" "$(code helper.py '[1]' '{"arg":["x"]}')"; do
		own $one "$body"
		"$cordon" approvals deny "$(asked)" >/dev/null
		over
		has "$out" "the answer is no"
	done
	stop
}

@test "ask: an input that comes later is said to be open" {
	serve open < <(usual)
	begin $one run -d -i --name in -- sleep 60
	has "$("$cordon" approvals show "$(asked)")" "stdin open"
	kill "$child"
	over
	asked 0
	begin $one run -d --name out -- sleep 60
	lacks "$("$cordon" approvals show "$(asked)")" "stdin"
	kill "$child"
	over
	stop
}

@test "ask: what is too much to be shown is refused, and nothing is hidden" {
	serve hidden < <(printf 'version: 1\nsandbox: {images: [host]}\napprovals: {always: [commands]}\n')
	args=()
	for i in $(seq 50); do args+=(-e "A$i=1"); done
	begin $one run -d "${args[@]}" -e LD_PRELOAD=/tmp/evil.so -- sleep 60
	output=$("$cordon" approvals show "$(asked)")
	has "$output" "variable A50=1"
	has "$output" "variable LD_PRELOAD=/tmp/evil.so"
	kill "$child"
	over
	asked 0
	for i in $(seq 51 64); do args+=(-e "A$i=1"); done
	begin $one run -d "${args[@]}" -e LD_PRELOAD=/tmp/evil.so -- sleep 60
	over
	[ "$code" -ne 0 ]
	has "$err" "too many to be shown"
	is "$(waiting)" ""
	stop
}
