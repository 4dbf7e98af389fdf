#!/usr/bin/env bats
# Boxes of the daemon that connect to a host under `network.ask`: a person is
# asked in the midst of it. Servers are of this machine, and the test's own.
load common.bash
one=64011
two=64012

setup_file() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	export place
	place=$(mktemp -d /dev/shm/cordon-asknet-XXXXXX)
	chmod 755 "$place"
	mkdir "$place/state" "$place/run"
	cat >"$place/server.py" <<-'END'
		import http.server, os, sys
		class H(http.server.BaseHTTPRequestHandler):
		    def do_GET(self):
		        text = f"{self.headers['Host']} {self.path}\n".encode()
		        self.send_response(200)
		        self.send_header("Content-Length", str(len(text)))
		        self.end_headers()
		        self.wfile.write(text)
		    def log_message(self, *a): pass
		s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
		with open(sys.argv[1] + ".new", "w") as f:
		    f.write(f"{s.server_port}\n")
		os.rename(sys.argv[1] + ".new", sys.argv[1])
		s.serve_forever()
	END
	python3 "$place/server.py" "$place/port" 3>&- &
	echo $! >"$place/server"
	until_true [ -s "$place/port" ]
	policy >"$place/p.yaml"
	serve
}

# policy [EXPIRE [WAIT [ASK]]]
policy() {
	cat <<-END
		version: 1
		sandbox: {images: [host]}
		approvals: {ask: [${3:-store}], expire: ${1:-60s}}
		network:
		  ask_wait: ${2:-30s}
		  allow: [{host: free.test, ports: [80]}]
		  ask:
		    - {host: a.test, ports: [80]}
		    - {host: b.test, ports: [80]}
		    - {host: s.test, ports: [80]}
		    - {host: "*.many.test", ports: [80]}
		  resolve:
		    "free.test:80": "127.0.0.1:$(cat "$place/port")"
		    "a.test:80": "127.0.0.1:$(cat "$place/port")"
		    "s.test:80": "127.0.0.1:$(cat "$place/port")"
		    "b.test:80": "127.0.0.1:$(cat "$place/port")"
	END
}

serve() {
	: >"$place/log"
	CORDON_STATE_DIR=$place/state CORDON_RUNTIME_DIR=$place/run \
		"$CORDON_BUILD/cordon" serve --policy "$place/p.yaml" \
		--socket "$place/own.sock" --mode 0666 >"$place/log" 2>&1 3>&- &
	echo $! >"$place/pid"
	until_true grep -q ready: "$place/log" || { cat "$place/log"; return 1; }
}

# reload: with the policy on standard input; it is in force then.
loaded() {
	curl -sS --unix-socket "$place/own.sock" http://x/v1/info | jq .policy.time
}
reload() {
	cat >"$place/p.yaml"
	local was
	was=$(loaded)
	sleep 1 # its time is told in seconds
	kill -HUP "$(cat "$place/pid")"
	newer() { [ "$(loaded)" -gt "$was" ]; }
	until_true newer
}

stop() {
	kill "$(cat "$place/pid")" || return 0
	for _ in $(seq 150); do
		kill -0 "$(cat "$place/pid")" 2>/dev/null || break
		sleep 0.1
	done
}

teardown_file() {
	stop
	kill "$(cat "$place/server")" || true
	rm -rf "$place"
}

# What one test asked, no other is to find.
teardown() {
	for b in $(c ps -aq); do c rm -f "$b" >/dev/null; done
	asked 0
}

# who UID: a user that is not root, where we can be one; else ourselves.
who() {
	who=()
	[ "$(id -u)" -ne 0 ] ||
		who=(setpriv --reuid "$1" --regid "$1" --clear-groups
			env -u CORDON_STATE_DIR -u XDG_STATE_HOME HOME=/nonexistent)
}

# c ARG...: the command as who runs the daemon. u UID ARG...: as a user.
c() {
	CORDON_STATE_DIR=$place/state CORDON_SOCKET=$place/own.sock "$cordon" "$@"
}
u() {
	who "$1"
	shift
	"${who[@]}" env CORDON_SOCKET="$place/own.sock" "$cordon" "$@"
}

waiting() {
	c approvals list --json | jq -r 'if type == "array" then .[] else . end | .id'
}

# asked [N]: the first id, when so many questions wait.
asked() {
	for _ in $(seq 150); do
		if [ "$(waiting | wc -l)" -eq "${1:-1}" ]; then
			waiting | head -n 1
			return 0
		fi
		sleep 0.1
	done
	echo "waiting: $(waiting | tr '\n' ' ')" >&2
	return 1
}

# fetch UID BOX HOST [PATH]: in the box, begun behind our back; `over` waits.
fetch() {
	who "$1"
	"${who[@]}" env CORDON_SOCKET="$place/own.sock" "$cordon" exec "$2" \
		curl -sS -m 40 "http://$3/${4-}" >"$dir/out" 2>"$dir/err" 3>&- &
	child=$!
}
over() {
	code=0
	wait "$child" || code=$?
	out=$(cat "$dir/out") err=$(cat "$dir/err")
}

# records JQ: of the ledger, one by one.
records() {
	cat "$place"/state/ledger/*.jsonl | jq -c "$1"
}

@test "a yes lets the connection go on, once asked for this box; the ledger has it all" {
	box=$(u $one run -d --name yes -- sleep 100)
	lacks "$(u $one inspect yes)" "is denied in a box"
	fetch $one yes a.test first
	id=$(asked)
	shown=$(c approvals show "$id")
	has "$shown" "a.test:80"
	has "$shown" "p.yaml:8"
	has "$shown" "cordon-gate"
	if [ "$(id -u)" -eq 0 ]; then has "$shown" "uid $one"; fi
	kill -0 "$child"
	c approvals approve "$id" --reason "looked at it" >/dev/null
	over
	is "$code $out" "0 a.test /first"
	# The answer holds as long as the gate does, and for this host alone.
	is "$(u $one exec yes curl -sS http://a.test/again)" "a.test /again"
	fetch $one yes b.test
	has "$(c approvals show "$(asked)")" "b.test:80"
	c approvals deny "$(asked)" >/dev/null
	over
	[ "$code" -ne 0 ]
	uid=$one
	[ "$(id -u)" -eq 0 ] || uid=$(id -u)
	is "$(records "select(.approval == \"$id\") | [.kind, .decision, .peer, .box, .face, .reason, .subject]")" \
		"[\"approval.request\",null,$uid,\"$box\",\"cordon\",\"the policy asks before this host is connected to\",\"a.test:80\"]
[\"approval.answer\",\"allow\",$uid,\"$box\",\"cordon\",\"looked at it\",null]"
	ran=$(records "select(.approval == \"$id\") | .run" | sort -u)
	is "$(records "select(.kind == \"connection\" and .run == $ran and .host == \"a.test\") | .decision" | sort -u)" '"allow"'
	c audit verify >/dev/null
	# Another start is another gate.
	u $one restart -t 0 yes
	fetch $one yes a.test
	c approvals deny "$(asked)" >/dev/null
	over
	[ "$code" -ne 0 ]
}

@test "a no is a denial, at once from then on, and told everywhere" {
	u $one run -d --name no -- sleep 100 >/dev/null
	fetch $one no a.test
	id=$(asked)
	c approvals deny "$id" --reason "not there" >/dev/null
	over
	[ "$code" -ne 0 ]
	has "$err" "reset"
	SECONDS=0
	run u $one exec no curl -sS -m 20 http://a.test/
	[ "$status" -ne 0 ] && [ "$SECONDS" -lt 10 ]
	is "$(waiting)" ""
	# What needs no answer goes on.
	is "$(u $one exec no curl -sS http://free.test/)" "free.test /"
	has "$(u $one inspect no | jq -c '.. | .denials? // empty')" '"what":"a.test:80","reason":"not_approved"'
	is "$(records 'select(.kind == "approval.answer" and .reason == "not there") | .decision')" '"deny"'
	records 'select(.kind == "connection" and .decision == "deny" and .host == "a.test")' | grep -q not_approved
}

@test "nobody answers: the connection fails, and an answer that comes later holds" {
	reload < <(policy 60s 1s)
	u $one run -d --name late -- sleep 100 >/dev/null
	fetch $one late a.test
	over
	[ "$code" -ne 0 ]
	has "$err" "reset"
	id=$(asked)
	run ! u $one exec late curl -sS http://a.test/
	is "$(waiting)" "$id" # nobody is asked twice
	c approvals approve "$id" >/dev/null
	passes() { [ "$(u $one exec late curl -sS http://a.test/)" = "a.test /" ]; }
	until_true passes
	is "$(waiting)" ""
	# One whose time is over is a no.
	reload < <(policy 1s 20s)
	fetch $one late b.test
	SECONDS=0
	over
	[ "$code" -ne 0 ] && [ "$SECONDS" -lt 15 ]
	records 'select(.kind == "approval.answer" and .decision == "deny")' | grep -q "nobody answered in time"
	reload < <(policy)
}

@test "an answer for one user's box is none for another's, for a session neither" {
	[ "$(id -u)" -eq 0 ] || return 0 # other users are needed
	u $one run -d --name first -- sleep 100 >/dev/null
	u $two run -d --name second -- sleep 100 >/dev/null
	u $one run -d --name third -- sleep 100 >/dev/null
	fetch $one first s.test
	c approvals approve "$(asked)" --scope session >/dev/null
	over
	is "$out" "s.test /"
	# The same user's other box is answered by that, the other user's is not.
	is "$(u $one exec third curl -sS http://s.test/)" "s.test /"
	fetch $two second s.test
	has "$(c approvals show "$(asked)")" "uid $two"
	c approvals deny "$(asked)" >/dev/null
	over
	[ "$code" -ne 0 ]
	# Who holds the socket sees no question and answers none.
	fetch $two second b.test
	id=$(asked)
	for uid in $one $two; do
		who "$uid"
		for args in list "approve $id" "deny $id"; do
			# shellcheck disable=SC2086
			run "${who[@]}" env CORDON_STATE_DIR="$place/state" "$cordon" approvals $args
			[ "$status" -ne 0 ]
			lacks "$output" b.test
		done
	done
	is "$(waiting)" "$id"
	c approvals deny "$id" >/dev/null
	over
}

@test "a box that goes withdraws its question, and so does a daemon whose front dies" {
	u $one run -d --name goes -- sleep 100 >/dev/null
	fetch $one goes a.test
	id=$(asked)
	u $one rm -f goes
	over
	[ "$code" -ne 0 ]
	asked 0
	run ! c approvals approve "$id"
	has "$output" "already withdrawn"
	is "$(records "select(.kind == \"approval.answer\" and .approval == \"$id\") | .decision")" '"withdraw"'
	u $one run -d --name lost -- sleep 100 >/dev/null
	fetch $one lost a.test
	id=$(asked)
	n=$(grep -c ready: "$place/log")
	kill -9 "$(pgrep -P "$(cat "$place/pid")" -x cordon-front)"
	over
	asked 0
	run ! c approvals approve "$id"
	again() { [ "$(grep -c ready: "$place/log")" -gt "$n" ]; }
	until_true again
	until_true c ps
}

@test "so many questions of a box and of a user wait, and the next one is a no" {
	u $one run -d --name many -- sh -c '
		for i in 1 2 3 4 5 6 7 8; do curl -sS http://h$i.many.test/ & done; sleep 100' >/dev/null
	asked 8 >/dev/null
	SECONDS=0
	run u $one exec many curl -sS -m 20 http://h9.many.test/
	[ "$status" -ne 0 ] && [ "$SECONDS" -lt 15 ]
	grep -q "nobody can be asked: too many" "$place/log"
	is "$(waiting | wc -l)" 8
	for b in more most; do
		u $one run -d --name $b -- sh -c '
			for i in 1 2 3 4 5 6 7 8; do curl -sS http://h$i.many.test/ & done; sleep 100' >/dev/null
		asked 16 >/dev/null
	done
	sleep 1
	is "$(waiting | wc -l)" 16
	# A request of that user can be asked about all the same.
	who $one
	"${who[@]}" env CORDON_SOCKET="$place/own.sock" "$cordon" run -d --name req \
		--allow-host a.test:80 -- sleep 100 >"$dir/out" 2>"$dir/err" 3>&- &
	child=$!
	asked 17 >/dev/null
	c approvals approve "$(c approvals list | awk '/sleep/ { print $1 }')" >/dev/null
	over
	is "$code" 0
	if [ "$(id -u)" -eq 0 ]; then
		u $two run -d --name other -- sleep 100 >/dev/null
		fetch $two other a.test
		asked 17 >/dev/null
		u $two rm -f other
		over
	fi
	u $one rm -f many more most >/dev/null
	asked 0
}

@test "a policy that is read again withdraws what it does not ask about" {
	u $one run -d --name old -- sleep 100 >/dev/null
	fetch $one old b.test
	id=$(asked)
	policy | reload # the same: it waits on
	is "$(waiting)" "$id"
	policy | grep -v 'host: b.test' | reload
	over
	[ "$code" -ne 0 ]
	asked 0
	# The box has the table that it began with; who is asked, the policy of today.
	fetch $one old a.test
	c approvals approve "$(asked)" >/dev/null
	over
	is "$out" "a.test /"
	policy | reload
}

@test "where only a terminal may be asked, that is told before, and denied" {
	reload < <(policy 60s 20s terminal)
	u $one run -d --name deaf -- sleep 100 >/dev/null
	has "$(u $one inspect deaf)" "since 'approvals.ask' has no 'store'"
	SECONDS=0
	run u $one exec deaf curl -sS -m 20 http://a.test/
	[ "$status" -ne 0 ] && [ "$SECONDS" -lt 15 ]
	is "$(waiting)" ""
	policy | reload
}

@test "a desk that cannot be asked is a no" {
	mkdir "$place/bin"
	for p in "$CORDON_BUILD"/cordon-*; do ln -sf "$p" "$place/bin/"; done
	stop
	CORDON_LIBEXEC=$place/bin serve
	u $one run -d --name mute -- sleep 100 >/dev/null
	n=0
	for desk in 'exit 0' 'echo "{\"id\":\"x\",\"decision\":\"allow\",\"scope\":\"once\",\"reason\":\"\",\"by\":\"me\"}"; exit 1' \
		'echo yes; exit 0' 'kill -9 $$'; do
		u $one restart -t 0 mute
		printf '#!/bin/sh\n%s\n' "$desk" >"$place/desk"
		chmod 755 "$place/desk"
		ln -sf "$place/desk" "$place/bin/cordon-desk"
		SECONDS=0
		run u $one exec mute curl -sS -m 20 http://a.test/
		echo "status $status: $output"
		# Reset, which curl has several words for, by when it sees that.
		[ "$status" -ne 0 ] && [ "$status" -ne 28 ]
		lacks "$output" "a.test /"
		n=$((n + 1))
		is "$(grep -c 'nobody answered about a.test:80' "$place/log")" "$n"
		[ "$SECONDS" -lt 15 ]
	done
	ln -sf "$CORDON_BUILD/cordon-desk" "$place/bin/cordon-desk"
	stop
	serve
}
