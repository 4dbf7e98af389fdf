#!/usr/bin/env bats
# Boxes that the daemon keeps: ps, exec, logs, cp, stop, kill, rm, inspect ...
load common

setup_file() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	export CORDON_BUILD CORDON_LIBEXEC=$CORDON_BUILD
	home=$(mktemp -d -p /dev/shm cordon-boxes.XXXXXX)
	chmod 755 "$home"
	export home CORDON_STATE_DIR=$home/state CORDON_RUNTIME_DIR=$home/run
	mkdir "$home/state" "$home/run"
	"$CORDON_BUILD/cordon" serve >"$home/log" 2>&1 3>&- &
	echo $! >"$home/pid"
	for _ in $(seq 100); do
		grep -q 'ready' "$home/log" && return
		sleep 0.1
	done
	cat "$home/log"
	return 1
}

teardown_file() {
	local pid
	pid=$(cat "$home/pid")
	kill "$pid"
	for _ in $(seq 100); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	rm -rf "$home"
}

teardown() {
	"$cordon" ps -aq | xargs -r "$cordon" rm -f >/dev/null
}

# box NAME [SCRIPT]: one that runs.
box() {
	"$cordon" run -d --name "$1" -- sh -c "${2:-sleep 60}" >/dev/null
}

@test "run -d prints an id, ps shows the box, rm removes it" {
	run --separate-stderr "$cordon" run -d --name one -- sleep 60
	is "$status" 0 && is "${#output}" 64 && is "$stderr" ""
	id=$output
	run "$cordon" ps
	has "${lines[0]}" "BOX" && has "${lines[1]}" "${id:0:12}" && has "${lines[1]}" "one" && has "${lines[1]}" "sleep 60"
	has "${lines[1]}" "Up "
	is "$("$cordon" ps -q)" "${id:0:12}"
	is "$("$cordon" ps -q --no-trunc)" "$id"
	output=$("$cordon" ps --json)
	is "$(field boxes.0.state)" running
	refused "one" rm one
	is "$("$cordon" rm -f one)" one
	is "$("$cordon" ps -aq)" ""
}

@test "create makes a box that does not run; start, stop, restart, wait" {
	"$cordon" create --name two -- sh -c 'exit 7' >/dev/null
	is "$("$cordon" ps -q)" ""
	has "$("$cordon" ps -a)" "Created"
	is "$("$cordon" start two)" two
	is "$("$cordon" wait two)" 7
	has "$("$cordon" ps -a)" "Exited (7)"
	box three
	is "$("$cordon" stop three)" three
	has "$("$cordon" ps -a)" "Exited (143)"
	is "$("$cordon" restart three)" three
	is "$("$cordon" kill three)" three
	is "$("$cordon" wait three)" 137
}

@test "exec: streams, input, exit status, environment, directory" {
	box ex
	run --separate-stderr "$cordon" exec ex sh -c 'echo out; echo err >&2; exit 9'
	is "$status" 9 && is "$output" out && is "$stderr" err
	is "$(printf 'some\ninput' | "$cordon" exec -i ex cat)" "$(printf 'some\ninput')"
	is "$("$cordon" exec ex cat </dev/null)" ""
	is "$("$cordon" exec -e A=b -e C=d -w /tmp ex sh -c 'echo $A $C $PWD')" "b d /tmp"
	run -127 "$cordon" exec ex nosuchprogram
	has "$output" nosuchprogram
	run "$cordon" exec ex /etc
	is "$status" 126
	run "$cordon" exec --timeout 300ms ex sleep 20
	is "$status" 124
	run "$cordon" exec ex sh -c 'kill -9 $$'
	is "$status" 137
	refused "no box 'nobody'" exec nobody true
	refused "usage: cordon exec" exec ex
	refused "-t needs a terminal" exec -t ex true
}

@test "exec -d: its id can be attached to and killed; it has no log" {
	box ex
	id=$("$cordon" exec -d ex sh -c 'echo out; sleep 0.5; exit 7')
	run "$cordon" attach --no-stdin "$id"
	is "$status" 7
	is "$output" out
	id=$("$cordon" exec -d ex sleep 60)
	is "$("$cordon" kill "$id")" "$id"
	run "$cordon" attach --no-stdin "$id"
	is "$status" 137
	refused "whose output is in no log; 'cordon attach $id'" logs "$id"
	none=$(printf '%064d' 0)
	refused "no box '$none'" attach "$none"
	refused "no box '$none'" kill "$none"
	refused "no box '$none'" logs "$none"
}

@test "exec -u, --group-add, cp -a: further users, or one that says so" {
	local many=1
	"$cordon" run -d --name us --user 1000:1000 -- sleep 60 >/dev/null
	is "$("$cordon" exec us id -u)" 1000
	is "$("$cordon" exec -u 1000:1000 us id -u)" 1000
	[ "$("$cordon" exec us sh -c 'wc -l </proc/self/uid_map')" -gt 1 ] || many=0
	echo x >f
	tar --numeric-owner --owner=33 --group=44 -c f | "$cordon" cp -a - us:/tmp
	if [ "$many" = 1 ]; then
		is "$("$cordon" exec -u 33:44 us sh -c 'id -u; id -g; id -G')" "$(printf '33\n44\n44')"
		is "$("$cordon" exec us stat -c %u:%g /tmp/f)" 33:44
		chown 35:36 f && "$cordon" cp -a f us:/tmp/g
		is "$("$cordon" exec us stat -c %u:%g /tmp/g)" 35:36
		"$cordon" run -d --name more --user 1000:1000 --group-add 77 -- sleep 60 >/dev/null
		is "$("$cordon" exec more id -G)" "1000 77"
		run "$cordon" exec -u 0 us id
		[ "$status" -ne 0 ]
		has "$output" "no "
	else
		run "$cordon" exec -u 33:44 us id
		[ "$status" -ne 0 ]
		has "$output" "one user and one group"
		is "$("$cordon" exec us stat -c %u:%g /tmp/f)" 1000:1000
	fi
}

@test "exec: bytes are exact, much of them, both ways" {
	box big
	head -c 20000000 /dev/urandom >data
	is "$("$cordon" exec -i big sha256sum <data)" "$(sha256sum <data)"
	"$cordon" exec -i big cat <data >back
	cmp back data
}

@test "exec -d leaves it, and it can be killed with its box" {
	box det
	run "$cordon" exec -d det sh -c 'touch /tmp/there; sleep 60'
	is "$status" 0 && is "${#output}" 64
	for _ in $(seq 50); do "$cordon" exec det test -e /tmp/there && break; sleep 0.1; done
	"$cordon" exec det test -e /tmp/there
	has "$("$cordon" top det)" "sleep 60"
	has "$("$cordon" inspect det)" "$output"
}

@test "exec -t has a terminal of our size" {
	box term
	run python3 - "$cordon" <<'END'
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], ["cordon", "exec", "-it", "term", "sh", "-c", "stty size; read x; stty size; echo got $x"])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
out, sent = b"", False
try:
    while part := os.read(fd, 1000):
        out += part
        if not sent and b"\n" in out:
            sent = True
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 77, 0, 0))
            import time; time.sleep(0.5)
            os.write(fd, b"word\n")
except OSError:
    pass
print(out.decode(), os.waitpid(pid, 0)[1])
END
	has "$output" "44 77"
	has "$output" "got word"
}

@test "logs: all, the last, with times, following" {
	box log 'echo one; sleep .1; echo two >&2; sleep .1; echo three; sleep 2; echo four'
	sleep 0.6
	run --separate-stderr "$cordon" logs log
	is "$output" "$(printf 'one\nthree')" && is "$stderr" two
	is "$("$cordon" logs -n 1 log)" three
	[[ $("$cordon" logs -t -n 1 log) =~ ^20[0-9-]+T[0-9:.]+Z\ three$ ]]
	is "$("$cordon" logs --since 1h -n 1 log)" three
	is "$("$cordon" logs --until 1h log)" ""
	is "$("$cordon" logs -f log 2>/dev/null)" "$(printf 'one\nthree\nfour')"
	refused "is no time" logs --since yesterday log
}

@test "cp: files and directories, in and out" {
	box copy
	mkdir -p tree/sub
	echo hello >tree/file
	head -c 300000 /dev/urandom >tree/sub/data
	ln -s /etc/passwd tree/link
	chmod 755 tree/file
	"$cordon" cp tree copy:/workspace/
	is "$("$cordon" exec copy cat /workspace/tree/file)" hello
	"$cordon" cp tree copy:/workspace/new
	"$cordon" cp tree/. copy:/tmp
	is "$("$cordon" exec copy cat /tmp/file /workspace/new/file)" "$(printf 'hello\nhello')"
	"$cordon" cp tree/file copy:/workspace/other
	is "$("$cordon" exec copy cat /workspace/other)" hello
	"$cordon" cp copy:/workspace/tree out
	diff -r --no-dereference tree out
	mkdir dir
	"$cordon" cp copy:/workspace/tree/file dir
	is "$(cat dir/file)" hello
	"$cordon" cp copy:/workspace/tree/file dir/renamed
	is "$(cat dir/renamed)" hello
	is "$("$cordon" cp copy:/workspace/tree - | tar t | sort | head -n 2)" "$(printf 'tree/\ntree/file')"
	tar c tree | "$cordon" cp - copy:/tmp
	is "$("$cordon" exec copy cat /tmp/tree/file)" hello
	refused "nosuch" cp copy:/nosuch .
	refused "nosuch" cp nosuch copy:/tmp
	refused "one of both" cp tree other
	refused "is a directory" cp tree copy:/workspace/other
}

@test "cp: a link that a box planted is not followed on the host" {
	box evil 'mkdir /tmp/d; ln -s / /tmp/d/root; sleep 60'
	mkdir target
	ln -s "$PWD" target/root
	"$cordon" exec evil sh -c 'rm /tmp/d/root; mkdir /tmp/d/root; echo bad >/tmp/d/root/victim'
	echo mine >victim
	# target/d/root is a link on the host: nothing is written through it
	mkdir target/d && ln -s "$PWD" target/d/root
	run "$cordon" cp evil:/tmp/d target
	is "$(cat victim)" mine
}

@test "inspect, stats, top, pause, rename" {
	box look
	output=$("$cordon" inspect look)
	is "$(field 0.state)" running
	is "$(field 0.spec.network)" none
	run "$cordon" inspect look nobody
	is "$status" 125
	has "$output" "no box 'nobody'"
	run "$cordon" stats look
	has "${lines[0]}" MEMORY && has "${lines[1]}" MiB
	output=$("$cordon" stats --json look)
	[ "$(field usage.memory_limit)" -gt 0 ]
	has "$("$cordon" top look)" "sleep 60"
	"$cordon" pause look
	has "$("$cordon" ps)" "(paused)"
	run "$cordon" exec look true
	is "$status" 125
	"$cordon" unpause look
	"$cordon" exec look true
	"$cordon" rename look seen
	has "$("$cordon" ps)" seen
	run ! "$cordon" exec look true
}

@test "attach joins the main program" {
	"$cordon" create -i --name att -- sh -c 'read x; echo got $x; exit 5' >/dev/null
	(sleep 0.5; "$cordon" start att >/dev/null; sleep 0.3; echo word) | {
		run "$cordon" attach att
		is "$status" 5 && is "$output" "got word"
	}
}

@test "what is denied is denied here, too" {
	run "$cordon" run -d --memory 900g -- true
	is "$status" 126
	has "$output" "memory"
	is "$("$cordon" ps -aq)" ""
	"$cordon" run -d --read-only --name walled -- sleep 60 >/dev/null
	run ! "$cordon" exec walled sh -c 'echo x >/usr/x'
	is "$("$cordon" exec walled sh -c 'ls /sys/class/net 2>/dev/null; cat /proc/net/dev | grep -vc :')" 2
}

@test "without a daemon, what to do is said" {
	CORDON_SOCKET=$PWD/none refused "start one with 'cordon serve'" ps
	CORDON_SOCKET=$PWD/none refused "$PWD/none" exec one true
	CORDON_SOCKET=$PWD/none refused "cordon serve" run -d -- true
}

@test "a run over HTTP answers with the document, and is on the record" {
	output=$(curl -sS --unix-socket "$CORDON_RUNTIME_DIR/cordon.sock" http://x/v1/run \
		-d '{"code": [{"language": "python", "code": "print(6 * 7)"}]}')
	is "$(field cause)" exited && is "$(field stdout)" 42 && is "$(field runs.0.exit_code)" 0
	id=$(field id)
	has "$("$cordon" audit show "$id")" "$id"
	box sess
	output=$(curl -sS --unix-socket "$CORDON_RUNTIME_DIR/cordon.sock" http://x/v1/run \
		-d '{"box": "sess", "command": ["sh", "-c", "echo $A"], "env": ["A=b"]}')
	is "$(field stdout)" b && is "$(field cause)" exited
}

@test "the example of the library prints what docs/library.md says" {
	local doc=$BATS_TEST_DIRNAME/../../docs/library.md
	run --separate-stderr "$CORDON_BUILD/examples/daemon"
	is "$stderr" "" && is "$status" 0
	is "$output" "$(sed -n '/^It prints:/,$p' "$doc" | sed -n '/^```/,/^```/p' | sed '1d;/^```/,$d')"
	is "$("$cordon" ps -aq)" ""
	# The text there is the program.
	has "$(cat "$doc")" "$(sed 1d "$BATS_TEST_DIRNAME/../../examples/daemon.c")"
	CORDON_SOCKET=$PWD/none run "$CORDON_BUILD/examples/daemon"
	is "$status" 1 && has "$output" "cordon serve"
}

# shellcheck disable=SC2030 # as every test
@test "a box that is to be removed with its end is" {
	"$cordon" run -d --rm --name brief -- true >/dev/null
	for _ in $(seq 100); do
		[ -n "$("$cordon" ps -aq)" ] || break
		sleep 0.1
	done
	is "$("$cordon" ps -aq)" ""
	# What nobody would do is not taken.
	refused "copy-out" run -d --copy-out '*=/tmp' -- true
}

# liar ANSWER ARG...: what the command makes of a daemon that answers so.
# shellcheck disable=SC2031 # run, in it, sets status and output
liar() {
	local answer=$1
	shift
	python3 - "$answer" <<-'EOF' 3>&- &
		import os, socket, sys
		head, _, body = sys.argv[1].encode().decode("unicode_escape").partition("|")
		s = socket.socket(socket.AF_UNIX)
		s.bind("new.sock")
		s.listen(8)
		s.settimeout(20)
		os.rename("new.sock", "liar.sock")
		c = s.accept()[0]
		c.recv(65536)
		text = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}"
		try:
		    c.sendall((head * 1000 + text).encode())
		except OSError:
		    pass
	EOF
	for _ in $(seq 100); do
		[ ! -S liar.sock ] || break
		sleep 0.05
	done
	CORDON_SOCKET=$PWD/liar.sock run --separate-stderr timeout 10 "$cordon" "$@"
	wait $! || :
	rm -f liar.sock
	is "$status" 125 && is "$output" "" && has "$stderr" "the daemon"
}

@test "an answer that is none is an error, not an empty list" {
	for bad in '' '[' '{}' '{"boxes":' '{"boxes":1}' 'hello'; do
		liar "|$bad" ps
		liar "|$bad" ps -q
		liar "|$bad" ps --json
		liar "|$bad" stats
		liar "|$bad" top one
	done
	liar '|{}' wait one
	liar '|x' create -- true
	liar '|{}' create -- true
	liar 'HTTP/1.1 100 Continue\r\n\r\n|{"boxes":[]}' ps
}

# listener DIR UID: somebody makes DIR/cordon.sock; what it hears is in ./heard.
listener() {
	python3 - "$1" "$2" >heard <<-'EOF' 3>&- &
		import os, socket, sys
		path, uid = sys.argv[1], int(sys.argv[2])
		os.setgroups([]); os.setgid(uid); os.setuid(uid)
		os.umask(0)
		os.mkdir(path, 0o755)
		s = socket.socket(socket.AF_UNIX)
		s.bind(path + "/cordon.sock")
		s.listen(8)
		s.settimeout(20)
		while True:
		    c = s.accept()[0]
		    print(c.recv(65536).decode(), flush=True)
		    try:
		        c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"boxes":[]}')
		    except OSError:
		        pass
		    c.close()
	EOF
	listener=$!
	for _ in $(seq 100); do
		[ ! -S "$1/cordon.sock" ] || return 0
		sleep 0.05
	done
	return 1
}

@test "a socket that another user made in /tmp gets no command" {
	[ "$(id -u)" -eq 0 ] || return 0 # two other users are needed
	local uid=$((61000 + RANDOM % 400)) bin
	while [ -e "/tmp/cordon-$uid" ]; do uid=$((uid + 1)); done
	bin=$(mktemp -d)
	chmod 755 "$bin"
	cp "$cordon" "$bin/cordon"
	victim=(setpriv --reuid "$uid" --regid "$uid" --clear-groups env -i
		PATH=/usr/bin:/bin HOME=/nonexistent "$bin/cordon")
	listener "/tmp/cordon-$uid" $((uid + 500))
	run "${victim[@]}" run -d -e TOKEN=s3cret -- true
	refusal=$output code=$status
	run "${victim[@]}" stop one two
	kill "$listener" || :
	wait "$listener" || :
	rm -rf "/tmp/cordon-$uid"
	heard=$(cat heard)
	# root's is the machine's own
	listener "/tmp/cordon-$uid" 0
	run --separate-stderr "${victim[@]}" ps -q
	ps=$status
	kill "$listener" || :
	wait "$listener" || :
	rm -rf "/tmp/cordon-$uid" "$bin"
	is "$code" 125
	has "$refusal" "user $((uid + 500)) listens at '/tmp/cordon-$uid/cordon.sock'"
	is "${heard//[$'\n ']/}" ""
	is "$ps" 0 && has "$(cat heard)" "GET /v1/boxes"
}
