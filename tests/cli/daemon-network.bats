#!/usr/bin/env bats
# The network of the daemon's boxes, against servers of this machine that the
# test starts.
load common.bash

setup_file() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	export place work SECRET=hunter2-is-the-value-of-a-secret
	place=$(mktemp -d /dev/shm/cordon-net-XXXXXX)
	chmod 755 "$place"
	mkdir "$place/state" "$place/run"
	work=$(mktemp -d /var/tmp/cordon-net-XXXXXX) # below /dev nothing is mounted
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
		-nodes -keyout "$place/key.pem" -out "$place/ca.pem" -days 2 \
		-subj /CN=key.test -addext subjectAltName=DNS:key.test 2>/dev/null
	cat >"$place/server.py" <<-'END'
		import http.server, ssl, sys, threading
		place = sys.argv[1]
		class H(http.server.BaseHTTPRequestHandler):
		    def do_GET(self):
		        with open(place + "/seen", "a") as f:
		            f.write(f"{self.path} {self.headers.get('Authorization')}\n")
		        text = f"{self.headers['Host']} {self.path}\n".encode()
		        self.send_response(200)
		        self.send_header("Content-Length", str(len(text)))
		        self.end_headers()
		        self.wfile.write(text)
		    def log_message(self, *a): pass
		plain, tls = (http.server.ThreadingHTTPServer(("127.0.0.1", 0), H) for _ in "ab")
		c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
		c.load_cert_chain(place + "/ca.pem", place + "/key.pem")
		tls.socket = c.wrap_socket(tls.socket, server_side=True)
		threading.Thread(target=tls.serve_forever, daemon=True).start()
		with open(place + "/ports.new", "w") as f:
		    f.write(f"{plain.server_port} {tls.server_port}\n")
		import os; os.rename(place + "/ports.new", place + "/ports")
		plain.serve_forever()
	END
	python3 "$place/server.py" "$place" 3>&- &
	echo $! >"$place/server"
	until_true [ -s "$place/ports" ]
	read -r plain tls <"$place/ports"
	cat >"$place/p.yaml" <<-END
		version: 1
		sandbox: {images: [host], mount_roots: [$work]}
		approvals: {ask: [store], expire: 60s}
		network:
		  ca: $place/ca.pem
		  allow:
		    - {host: api.test, ports: [80]}
		    - {host: two.test, ports: [80]}
		    - {host: few.test, ports: [80], bytes: 400}
		    - host: key.test
		      methods: [GET]
		      secret: {env: THE_KEY, header: Authorization, format: "Bearer {}"}
		  ask: [{host: ask.test, ports: [80]}]
		  resolve:
		    "api.test:80": "127.0.0.1:$plain"
		    "two.test:80": "127.0.0.1:$plain"
		    "few.test:80": "127.0.0.1:$plain"
		    "ask.test:80": "127.0.0.1:$plain"
		    "key.test:443": "127.0.0.1:$tls"
	END
	serve
}

# Starts a daemon; its process is $place/pid.
serve() {
	THE_KEY=$SECRET CORDON_STATE_DIR=$place/state \
		CORDON_RUNTIME_DIR=$place/run "$CORDON_BUILD/cordon" serve \
		--policy "$place/p.yaml" --socket "$place/own.sock" --mode 0666 \
		--docker-socket "$place/docker.sock" >"$place/log" 2>&1 3>&- &
	echo $! >"$place/pid"
	until_true grep -q ready: "$place/log" || { cat "$place/log"; return 1; }
}

teardown_file() {
	kill "$(cat "$place/pid")" "$(cat "$place/server")" || true
	for _ in $(seq 100); do
		kill -0 "$(cat "$place/pid")" 2>/dev/null || break
		sleep 0.1
	done
	rm -rf "$place" "$work"
}

c() {
	CORDON_STATE_DIR=$place/state CORDON_SOCKET=$place/own.sock "$cordon" "$@"
}

# gates [PID]: those of our daemon.
gates() {
	pgrep -P "${1:-$(cat "$place/pid")}" -x cordon-gate || true
}
no_gates() {
	[ -z "$(gates "$@")" ]
}

# post SOCKET PATH BODY
post() {
	curl -sS --unix-socket "$place/$1" -X POST \
		-H 'Content-Type: application/json' -d "$3" "http://x$2"
}

# shell SCRIPT: that as a command, in JSON.
shell() {
	jq -cn --arg s "$1" '["sh", "-c", $s]'
}

@test "a run reaches what the policy allows, and nothing else; both are told" {
	post own.sock /v1/run "{\"command\": $(shell '
		curl -sS http://api.test/one?q=hidden; curl -sS http://evil.test/
		curl -sS -m 3 http://1.1.1.1/; curl -4 -sS -m 3 http://api.test:81/; true')}" >r
	is "$(jq -r .stdout r)" "api.test /one?q=hidden"
	has "$(jq -r .stderr r)" "resolve host: evil.test"
	is "$(jq -r '.denials[] | "\(.layer) \(.what) \(.reason)"' r | sort | xargs)" \
		"net address no_route net api.test:81 port net evil.test no_rule"
	c audit list --kind connection >l
	grep allow l | grep -q api.test
	grep deny l | grep -q evil.test
	is "$(cat "$place"/state/ledger/*.jsonl | jq -r 'select(.kind == "connection" and .decision == "deny") |
		"\(.code) \(.host):\(.port) \(.count)"' | sort | xargs)" \
		"address address:0 1 no_rule evil.test:0 null port api.test:81 null"
	run ! grep -q hidden l
	c audit verify
	until_true no_gates
}

@test "hosts of a request narrow those of the policy, and never widen them" {
	post own.sock /v1/run "{\"settings\": {\"allow_host\": [\"api.test:80\"]}, \"command\": $(shell '
		curl -sS http://api.test/; curl -sS http://two.test/')}" >r
	is "$(jq -r .stdout r)" "api.test /"
	is "$(jq -r '.denials[].what' r)" "two.test"
	c run -d --name narrow --allow-host api.test:80 -- sleep 100
	is "$(c exec narrow curl -sS http://api.test/)" "api.test /"
	run c exec narrow curl -sS http://two.test/
	has "$output" "resolve host"
	c rm -f narrow
	run c create --allow-host evil.test:80 -- true
	[ "$status" -ne 0 ]
	has "$output" "no rule of network.allow names this host and port"
	run c create --secret HOME@key.test -- true
	[ "$status" -ne 0 ]
	c create --name none --network none -- curl -sS http://api.test/
	run c start -a none
	[ "$status" -ne 0 ]
	c rm none
	until_true no_gates
}

@test "Python: hosts of a run, of a box and of AutoGen's executor" {
	cat >hosts.py <<-'END'
		import asyncio
		import cordon
		from cordon.autogen import CodeBlock, DockerCommandLineCodeExecutor
		GET = "import sys, urllib.request as u\n" \
		      "print(u.urlopen(f'http://{sys.argv[1]}/').read().decode(), end='')"
		client = cordon.Client()
		have = client.run(["python3", "-c", GET, "api.test"], allow_host=["api.test:80"])
		print(have.stdout, end="")
		have = client.run(["python3", "-c", GET, "two.test"], allow_host=["api.test:80"])
		print([(d.layer, d.what) for d in have.denials])
		with client.create(allow_host=["two.test:80"]) as box:
		    print(box.run(["python3", "-c", GET, "two.test"]).stdout, end="")
		try:
		    client.create(allow_host=["evil.test:80"])
		except cordon.CordonError as e:
		    print(e.code)
		def blocks(host):
		    code = "import sys\nsys.argv = ['', '%s']\n%s" % (host, GET)
		    return [CodeBlock(code=code, language="python")]
		async def main():
		    async with DockerCommandLineCodeExecutor(allow_hosts=["api.test:80"]) as e:
		        print((await e.execute_code_blocks(blocks("api.test"))).output, end="")
		        print((await e.execute_code_blocks(blocks("two.test"))).exit_code)
		    async with DockerCommandLineCodeExecutor() as e:
		        print((await e.execute_code_blocks(blocks("api.test"))).exit_code)
		asyncio.run(main())
	END
	CORDON_SOCKET=$place/own.sock PYTHONPATH=$BATS_TEST_DIRNAME/../../sdk/python/src \
		TMPDIR=$work PYTHONDONTWRITEBYTECODE=1 python3 hosts.py >out
	printf '%s\n' 'api.test /' "[('net', 'two.test')]" 'two.test /' denied 'api.test /' 1 1 >want
	diff want out
	until_true no_gates
}

@test "a secret of a request is refused, that of the policy reaches its host alone" {
	run c create --secret THE_KEY@key.test -- true
	[ "$status" -ne 0 ]
	has "$output" "a request brings none"
	c run -d --name keyed -- sh -c 'curl -sS https://key.test/main; sleep 100'
	until_true grep -q "^/main" "$place/seen"
	# shellcheck disable=SC2016
	c exec keyed sh -c 'curl -sS https://key.test/more
		echo $THE_KEY; curl -sS http://api.test/$THE_KEY' >out
	is "$(grep -c "Bearer $SECRET" "$place/seen")" 2
	grep -q "^cordon_secret_" out
	grep -q '"reason":"placeholder"' out
	# Nowhere else: not in what is kept, told or logged, nor in the front.
	c inspect keyed >i
	c audit list >l
	c logs keyed >said
	run ! grep -rqs "$SECRET" "$place/state" "$place/log" i l said out
	cat >scan.py <<-'END'
		import re, sys
		found = 0
		with open(f"/proc/{sys.argv[1]}/maps") as maps, \
		        open(f"/proc/{sys.argv[1]}/mem", "rb") as mem:
		    for line in maps:
		        span, mode = line.split()[:2]
		        if "r" not in mode or "[v" in line: continue
		        a, b = (int(x, 16) for x in span.split("-"))
		        try:
		            mem.seek(a)
		            found += mem.read(b - a).count(sys.argv[2].encode())
		        except OSError: pass
		print(found)
	END
	if [ "$(id -u)" -eq 0 ]; then
		front=$(pgrep -P "$(cat "$place/pid")" -x cordon-front)
		# The scan finds what is there: the box's name, but no value.
		[ "$(python3 scan.py "$front" keyed)" -gt 0 ]
		is "$(python3 scan.py "$front" "$SECRET")" 0
		for g in $(gates); do
			[ "$(stat -c %u "/proc/$g")" -ne 65534 ]
			[ "$(awk '/^Uid:/ { print $2 }' "/proc/$g/status")" -ne 0 ]
		done
	fi
	c rm -f keyed
}

@test "a box that is started again has a new gate" {
	c create --name again -- sh -c 'curl -sS http://api.test/x; sleep 100' >/dev/null
	for n in 1 2; do
		c start again
		until_true eval "[ \"\$(c logs again | grep -c 'api.test /x')\" -eq $n ]"
		is "$(c exec again curl -sS http://two.test/)" "two.test /"
		is "$(gates | wc -l)" 1
		c stop -t 0 again
		until_true no_gates
	done
	c rm again
}

@test "bytes that a box has used stay used when it is started again" {
	c create --name few -- sleep 100 >/dev/null
	c start few
	is "$(c exec few curl -sS http://few.test/)" "few.test /"
	c restart -t 0 few
	# Some 220 each: the second does not fit any more.
	run c exec few curl -sS http://few.test/
	[ "$status" -ne 0 ]
	c restart -t 0 few
	run c exec few curl -sS http://few.test/
	[ "$status" -ne 0 ]
	# shellcheck disable=SC2317 # until_true calls it
	told() { c inspect few | grep -q '"reason": *"bytes"'; }
	until_true told
	is "$(c exec few curl -sS http://two.test/)" "two.test /"
	c rm -f few
}

@test "a gate that is killed leaves a box without a network, and that is told" {
	c run -d --name shut -- sleep 100
	is "$(c exec shut curl -sS http://api.test/)" "api.test /"
	kill -9 "$(gates)"
	until_true no_gates
	run c exec shut curl -sS -m 5 http://api.test/
	[ "$status" -ne 0 ]
	told() { c inspect shut | grep -q "the gate ended before the box"; }
	until_true told
	c restart -t 0 shut
	is "$(c exec shut curl -sS http://api.test/)" "api.test /"
	c rm -f shut
}

@test "a host under ask that the request names waits for a person" {
	c run -d --name asked --allow-host ask.test:80 -- sleep 100 3>&- >out 2>&1 &
	waits() { c approvals list | grep -q sleep; }
	until_true waits
	id=$(c approvals list | awk '/sleep/ { print $1 }')
	c approvals show "$id" >shown
	grep -q ask.test:80 shown
	c approvals approve "$id"
	wait
	# It was said once, for the box: its programs are not asked about.
	is "$(timeout 20 env CORDON_STATE_DIR="$place/state" CORDON_SOCKET="$place/own.sock" \
		"$cordon" exec asked curl -sS http://ask.test/)" "ask.test /"
	c rm -f asked
}

@test "Docker: the network is the policy's, and labels only narrow it" {
	mk() { post docker.sock /v1.43/containers/create "$1"; }
	has "$(mk '{"Image": "host", "HostConfig": {"NetworkMode": "foo"}}')" "network foo not found"
	has "$(mk '{"Image": "host", "Cmd": ["true"], "Labels": {"io.cordon.egress": "evil.test:80"}}')" \
		"no rule of network.allow"
	lacks "$(mk '{"Image": "host", "Cmd": ["true"], "HostConfig": {"NetworkMode": "bridge"}}')" \
		"NetworkMode bridge"
	curl -sSN --unix-socket "$place/docker.sock" \
		"http://x/v1.43/events" 3>&- >events 2>/dev/null &
	events=$!
	id=$(mk "{\"Image\": \"host\", \"Cmd\": $(shell 'curl -sS http://api.test/d
		curl -sS http://two.test/; curl -sS -m 3 http://x.test/; true'),
		\"Labels\": {\"io.cordon.egress\": \"api.test:80\"},
		\"HostConfig\": {\"ExtraHosts\": [\"x.test:1.1.1.1\"]}}" | jq -r .Id)
	post docker.sock "/v1.43/containers/$id/start" ""
	post docker.sock "/v1.43/containers/$id/wait" "" >/dev/null
	until_true grep -q '"Type":"cordon","Action":"egress_deny".*two.test' events
	kill "$events"
	is "$(c logs "$id" 2>/dev/null)" "api.test /d"
	curl -sS --unix-socket "$place/docker.sock" "http://x/v1.43/containers/$id/json" >i
	has "$(jq -c '.. | .denials? // empty' i)" '"what":"two.test"'
	id=$(mk "{\"Image\": \"host\", \"NetworkDisabled\": true,
		\"Cmd\": [\"cat\", \"/etc/resolv.conf\"]}" | jq -r .Id)
	post docker.sock "/v1.43/containers/$id/start" ""
	post docker.sock "/v1.43/containers/$id/wait" "" >/dev/null
	is "$(c logs "$id")" "# no network"
	for b in $(c ps -aq); do c rm -f "$b"; done
	until_true no_gates
}

@test "two users: each box has its own gate, that neither can look into" {
	[ "$(id -u)" -eq 0 ] || return 0 # other users are needed
	for uid in 61901 61902; do
		setpriv --reuid $uid --regid $uid --clear-groups curl -sS \
			--unix-socket "$place/own.sock" -X POST \
			-H 'Content-Type: application/json' \
			-d "{\"command\": $(shell 'curl -sS http://api.test/; sleep 100')}" \
			http://x/v1/run 3>&- >"out$uid" 2>&1 &
	done
	both() { [ "$(gates | wc -l)" -eq 2 ]; }
	until_true both
	uids=$(for g in $(gates); do awk '/^Uid:/ { print $2 }' "/proc/$g/status"; done | sort -u)
	is "$(wc -l <<<"$uids")" 2
	for g in $(gates); do
		run ! setpriv --reuid 61901 --regid 61901 --clear-groups \
			cat "/proc/$g/environ"
		run ! setpriv --reuid 61901 --regid 61901 --clear-groups kill "$g"
	done
	for b in $(c ps -q); do c rm -f "$b"; done
	wait
	until_true no_gates
}

@test "nothing of a gate is left when the daemon is killed, or its front" {
	c run -d --name last -- sleep 100
	pid=$(cat "$place/pid")
	was=$(gates)
	[ -n "$was" ]
	kill -9 "$(pgrep -P "$pid" -x cordon-front)"
	until_true [ ! -e "/proc/$was" ]
	until_true c ps
	until_true c run -d --name next -- sleep 100
	was=$(gates)
	[ -n "$was" ]
	kill -9 "$pid"
	until_true [ ! -e "/proc/$was" ]
	serve
	is "$(c run -d --name new -- sleep 100 >/dev/null && c exec new curl -sS http://api.test/)" "api.test /"
	c rm -f new
	until_true no_gates
}
