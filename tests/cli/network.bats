#!/usr/bin/env bats
# The network of a box by the command, against servers of this machine that
# the test starts.

bats_require_minimum_version 1.5.0

setup_file() {
	export DIR="$BATS_FILE_TMPDIR"
	cat >"$DIR/server.py" <<-'EOF'
		import http.server, sys
		class H(http.server.BaseHTTPRequestHandler):
		    def do_GET(self):
		        text = f"{self.headers['Host']} {self.path}\n".encode()
		        self.send_response(200)
		        self.send_header("Content-Length", str(len(text)))
		        self.end_headers()
		        self.wfile.write(text)
		    def log_message(self, *a): pass
		s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
		open(sys.argv[1], "w").write(str(s.server_port))
		s.serve_forever()
	EOF
	python3 "$DIR/server.py" "$DIR/port" 3>&- &
	echo $! >"$DIR/pid"
	for _ in $(seq 100); do
		[ -s "$DIR/port" ] && break
		sleep 0.05
	done
	cat >"$DIR/p.yaml" <<-EOF
		version: 1
		network:
		  allow:
		    - {host: api.test, ports: [80]}
		    - {host: down.test, ports: [80]}
		  resolve:
		    "api.test:80": "127.0.0.1:$(cat "$DIR/port")"
		    "down.test:80": "127.0.0.1:1"
	EOF
}

teardown_file() {
	kill "$(cat "$DIR/pid")"
}

setup() {
	cordon="$CORDON_BUILD/cordon"
	export CORDON_STATE_DIR="$BATS_TEST_TMPDIR/state"
}

run_box() { # POLICY SCRIPT
	"$cordon" run --policy "$1" --json -- bash -c "$2; true"
}

@test "a host that a rule names is reached, without set-up in the box" {
	run "$cordon" run --policy "$DIR/p.yaml" -- curl -sS http://api.test/a?b
	[ "$status" -eq 0 ]
	[ "$output" = "api.test /a?b" ]
}

@test "any other fails at once, with a reason; the ledger has both" {
	run_box "$DIR/p.yaml" \
		"curl -sS http://api.test/x?token=hunter2; curl -sS http://evil.test/" >"$DIR/r"
	[ "$(jq -r .stdout "$DIR/r")" = "api.test /x?token=hunter2" ]
	[[ $(jq -r .stderr "$DIR/r") == *"resolve host: evil.test"* ]]
	[ "$(jq -r '.denials[0] | .layer, .what, .reason' "$DIR/r" | xargs)" = \
		"net evil.test no_rule" ]
	[ "$(jq .execution_time_ms "$DIR/r")" -lt 5000 ]
	cat "$CORDON_STATE_DIR"/ledger/*.jsonl >"$DIR/l"
	grep '"connection"' "$DIR/l" | grep '"allow"' | grep -q api.test
	grep '"connection"' "$DIR/l" | grep '"deny"' | grep -q evil.test
	# The program's arguments are the run's; a connection has no query.
	run ! grep -q 'connection.*hunter2' "$DIR/l"
	"$cordon" audit verify
}

@test "an address, another port, UDP: nothing is reached" {
	run_box "$DIR/p.yaml" "
		curl -sS -m 3 http://1.1.1.1/
		curl -sS -m 3 http://api.test:81/
		echo x >/dev/udp/1.1.1.1/53
		echo x >/dev/udp/api.test/443
		exec 3<>/dev/tcp/127.0.0.1/$(cat "$DIR/port")" >"$DIR/r"
	[ "$(jq -r .stdout "$DIR/r")" = "" ]
	[ "$(jq .execution_time_ms "$DIR/r")" -lt 3000 ]
	jq -e '.denials | map(select(.what == "address" and .count >= 2)) |
		length == 1' "$DIR/r"
	# What the kernel refused by itself is told with its host and port.
	[ "$(jq -r '.denials[] | "\(.what) \(.reason)"' "$DIR/r" | sort | xargs)" = \
		"address no_route api.test:443 udp api.test:81 port" ]
	id=$(jq -r .id "$DIR/r")
	[ "$(cat "$CORDON_STATE_DIR"/ledger/*.jsonl | jq -r --arg id "$id" 'select(.kind == "connection" and
		.run == $id) | "\(.decision) \(.code) \(.host):\(.port) \(.protocol)"' | sort -u | xargs)" = \
		"deny address address:0 ip deny port api.test:81 tcp deny udp api.test:443 udp" ]
}

@test "a server that is down is told apart from a rule" {
	run_box "$DIR/p.yaml" "curl -sS -m 5 http://down.test/" >"$DIR/r"
	[ "$(jq -r '.denials[0] | .what, .reason' "$DIR/r" | xargs)" = \
		"down.test:80 unreachable" ]
}

@test "without hosts there is no network, and no gate" {
	run "$cordon" run -- python3 -c 'import socket; socket.socket()'
	[ "$status" -ne 0 ]
	[[ "$output" == *"not supported"* ]]
	run "$cordon" run -- cat /etc/resolv.conf
	[ "$output" = "# no network" ]
	run "$cordon" run --network none --policy "$DIR/p.yaml" -- \
		python3 -c 'import socket; socket.socket()'
	[[ "$output" == *"not supported"* ]]
}

@test "nothing of a gate is left, however the command ends" {
	"$cordon" run --policy "$DIR/p.yaml" -- sleep 30 3>&- &
	pid=$!
	sleep 0.5
	child=$(pgrep -P "$pid" -f cordon-gate || true)
	[ -n "$child" ]
	kill -9 "$pid"
	for _ in $(seq 40); do
		[ -e "/proc/$child" ] || break
		sleep 0.05
	done
	[ ! -e "/proc/$child" ]
}

# A directory of our programs, but for the gate.
other_programs() {
	bin="$BATS_TEST_TMPDIR/bin"
	mkdir "$bin"
	ln -s "$CORDON_BUILD"/cordon-* "$bin"
	rm "$bin/cordon-gate"
}

with_others() {
	env CORDON_LIBEXEC="$bin" "$cordon" "$@"
}

@test "a gate that cannot be started ends the run, and is the reason" {
	other_programs
	run with_others run --policy "$DIR/p.yaml" --json -- sleep 5
	[ "$status" -eq 125 ]
	[[ "$output" == *"cordon-gate"* ]]
	# Found, but no program: that is seen when the box is there.
	echo "no program" >"$bin/cordon-gate"
	chmod +x "$bin/cordon-gate"
	run with_others run --policy "$DIR/p.yaml" --json -- sleep 5
	[ "$status" -eq 125 ]
	[[ "$output" == *'"cause":"setup"'* ]]
	[[ "$output" == *"in stage 'gate': start"*"Exec format error"* ]]
	[[ "$output" == *'"warnings":[]'* ]]
	run "$cordon" audit list --json
	[[ "$output" == *'"cause":"setup"'* ]]
	# One that may end before that: it is told either way.
	for _ in 1 2 3 4 5; do
		run with_others run --policy "$DIR/p.yaml" --json -- true
		[[ "$output" == *"start '"*"cordon-gate': Exec format error"* ]]
	done
}

@test "a gate that comes up late tells of all that was tried" {
	other_programs
	printf '#!/bin/sh\n/usr/bin/sleep 0.8\nexec "%s" "$@"\n' \
		"$CORDON_BUILD/cordon-gate" >"$bin/cordon-gate"
	chmod +x "$bin/cordon-gate"
	# A question that nobody waits for.
	question='\1\1\1\0\0\1\0\0\0\0\0\0\4evil\4test\0\0\1\0\1'
	with_others run --policy "$DIR/p.yaml" --json -- bash -c \
		"read -r _ server < <(grep nameserver /etc/resolv.conf)
		printf '$question' >/dev/udp/\$server/53" >"$DIR/r"
	[ "$(jq -r '.denials[] | "\(.what) \(.reason)"' "$DIR/r")" = \
		"evil.test no_rule" ]
	# A port that nobody listens at, by a program that is killed.
	with_others run --policy "$DIR/p.yaml" --timeout 500ms --json -- bash -c \
		"echo >/dev/tcp/198.18.0.9/81; sleep 5" >"$DIR/r" || :
	[ "$(jq -r .cause "$DIR/r")" = timeout ]
	[ "$(jq -r '.denials[] | "\(.what) \(.reason)"' "$DIR/r")" = \
		"198.18.0.9:81 port" ]
	# Nothing was tried: nobody waits for the gate.
	sed -i 's/sleep 0.8/sleep 5/' "$bin/cordon-gate"
	start=$(date +%s%N)
	with_others run --policy "$DIR/p.yaml" -- true
	[ $((($(date +%s%N) - start) / 1000000)) -lt 1400 ]
}

@test "what a policy asks about waits for a person, who allows it" {
	cat >"$DIR/ask.yaml" <<-EOF
		version: 1
		network:
		  ask: [{host: api.test, ports: [80]}]
		  resolve: {"api.test:80": "127.0.0.1:$(cat "$DIR/port")"}
		approvals: {expire: 10s, ask: [store]}
	EOF
	run_box "$DIR/ask.yaml" "curl -sS -m 8 http://api.test/asked" \
		>"$DIR/r" 2>"$DIR/e" 3>&- &
	pid=$!
	for _ in $(seq 100); do
		id=$("$cordon" approvals list --json 2>/dev/null |
			jq -r '.. | .id? // empty' | head -1) || true
		[ -z "$id" ] || break
		sleep 0.05
	done
	[ -n "$id" ]
	"$cordon" approvals show "$id" | grep -q api.test:80
	"$cordon" approvals approve "$id"
	wait "$pid"
	[ "$(jq -r .stdout "$DIR/r")" = "api.test /asked" ]
}

@test "an answer of no is a denial" {
	cat >"$DIR/ask.yaml" <<-EOF
		version: 1
		network:
		  ask: [{host: api.test, ports: [80]}]
		approvals: {expire: 1s, ask: [store]}
	EOF
	run_box "$DIR/ask.yaml" "curl -sS -m 8 http://api.test/asked" >"$DIR/r"
	[ "$(jq -r '.denials[0] | .what, .reason' "$DIR/r" | xargs)" = \
		"api.test:80 not_approved" ]
}

@test "the spec says which hosts" {
	run "$cordon" run --dry-run --allow-host api.test:443 -- true
	[ "$status" -eq 0 ]
	[[ "$output" == *"api.test:443"* ]]
	# What the gate has itself is refused where it is written.
	for port in 53 80,53; do
		run "$cordon" run --dry-run --allow-host "api.test:$port" -- true
		[ "$status" -eq 125 ]
		[[ "$output" == *"--allow-host"*"port 53 cannot be in a rule"* ]]
	done
	# A secret may have several ports, and none of Cordon's own names.
	run env KEY=a "$cordon" run --dry-run --secret KEY@api.test:443,8443 -- true
	[ "$status" -eq 0 ]
	[[ "$output" == *"KEY@api.test:443"*"KEY@api.test:8443"* ]]
	run env SSL_CERT_FILE=a "$cordon" run --dry-run --secret SSL_CERT_FILE@api.test -- true
	[ "$status" -eq 125 ]
	[[ "$output" == *"Cordon sets this variable itself"* ]]
}

@test "an image has the same network, and trusts its gate" {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p root/{bin,etc/ssl/certs,etc/pki/tls/certs,tmp}
	cp "$(command -v busybox)" root/bin/busybox
	ln -s busybox root/bin/sh
	echo of-the-image >root/etc/ssl/certs/ca-certificates.crt
	ln -s /etc/ssl/certs/ca-certificates.crt root/etc/pki/tls/certs/ca-bundle.crt
	echo wrong >root/etc/resolv.conf
	tar -cf root.tar -C root .
	"$cordon" image import --quiet root.tar small >/dev/null
	{ cat "$DIR/p.yaml" && echo 'sandbox: {images: [small]}'; } >"$DIR/i.yaml"
	run "$cordon" run --policy "$DIR/i.yaml" --image small -- \
		sh -c 'busybox cat /etc/resolv.conf /etc/ssl/certs/*; busybox nc 198.18.0.1 53 </dev/null && echo listens'
	[[ "$output" == *"nameserver 198.18.0.1"* ]]
	[[ "$output" != *wrong* ]]
	[[ "$output" == *of-the-image* ]]
	[[ "$output" != *BEGIN* ]]
	[[ "$output" == *listens* ]]
	cat >"$DIR/m.yaml" <<-EOF
		version: 1
		sandbox: {images: [small]}
		network: {allow: [{host: api.test, methods: [GET]}]}
	EOF
	run "$cordon" run --policy "$DIR/m.yaml" --image small -- \
		sh -c 'busybox cat $SSL_CERT_FILE; busybox cat /etc/pki/tls/certs/ca-bundle.crt; busybox ls /etc/ssl/certs'
	[ "$status" -eq 0 ]
	[ "$(grep -c of-the-image <<<"$output")" -eq 2 ]
	[ "$(grep -c 'BEGIN CERTIFICATE' <<<"$output")" -eq 2 ]
	grep -q '^[0-9a-f]\{8\}\.0$' <<<"$output"
}

@test "what a program sent before it ended still goes out" {
	python3 - "$DIR/sink" <<-'EOF' 3>&- &
		import socket, sys
		s = socket.socket()
		s.bind(("127.0.0.1", 0))
		s.listen()
		open(sys.argv[1] + ".port", "w").write(str(s.getsockname()[1]))
		s.settimeout(20)
		with open(sys.argv[1], "wb") as f:
		    for _ in range(2):
		        c, _ = s.accept()
		        while data := c.recv(65536): f.write(data)
	EOF
	pid=$!
	for _ in $(seq 100); do
		[ -s "$DIR/sink.port" ] && break
		sleep 0.05
	done
	cat >"$DIR/sink.yaml" <<-EOF
		version: 1
		network:
		  allow: [{host: sink.test, ports: [2003]}]
		  resolve: {"sink.test:2003": "127.0.0.1:$(cat "$DIR/sink.port")"}
	EOF
	"$cordon" run --policy "$DIR/sink.yaml" -- bash -c \
		'echo one >/dev/tcp/sink.test/2003'
	"$cordon" run --policy "$DIR/sink.yaml" -- bash -c \
		'exec 3<>/dev/tcp/sink.test/2003; { echo two; head -c 300000 /dev/zero; } >&3'
	wait "$pid"
	[ "$(head -c 4 "$DIR/sink")" = one ]
	[ "$(stat -c %s "$DIR/sink")" -eq 300008 ]
}
