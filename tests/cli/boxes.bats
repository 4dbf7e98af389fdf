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
