#!/usr/bin/env bats
# Boxes that stay, through all parts of the daemon as they are installed.
load common.bash

setup_file() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	export place
	place=$(mktemp -d /dev/shm/cordon-daemon-XXXXXX)
	mkdir "$place/state" "$place/run"
	serve
}

# Starts a daemon of our own; its process is $place/pid.
serve() {
	CORDON_STATE_DIR=$place/state CORDON_RUNTIME_DIR=$place/run \
		"$CORDON_BUILD/cordon" serve --socket "$place/own.sock" "$@" \
		>"$place/log" 2>&1 3>&- &
	echo $! >"$place/pid"
	for _ in $(seq 100); do
		! grep -q ready: "$place/log" || return 0
		sleep 0.1
	done
	cat "$place/log"
	return 1
}

teardown_file() {
	kill "$(cat "$place/pid")" || true
	for _ in $(seq 100); do
		kill -0 "$(cat "$place/pid")" 2>/dev/null || break
		sleep 0.1
	done
	rm -rf "$place"
}

# c ARG...: the command, asking our daemon.
c() {
	CORDON_STATE_DIR=$place/state CORDON_HOST=unix://$place/own.sock \
		CORDON_SOCKET=$place/own.sock "$cordon" "$@"
}

# ends RUN: how many ends of it the ledger has.
ends() {
	c audit list | grep -c "run.end.*$1" || true
}

# last_run: the run that was started last.
last_run() {
	c audit list | grep 'run[.]start' | tail -1 | awk '{ print $7 }'
}

@test "a policy that is read again holds for boxes that were made before" {
	cat >"$place/p.yaml" <<-END
		version: 1
		sandbox: {images: [host], memory: 256m, read_only: false}
	END
	mkdir "$place/policy" "$place/policy/state" "$place/policy/run"
	rules=$place/p.yaml
	CORDON_POLICY=$rules place=$place/policy serve
	d() { CORDON_STATE_DIR=$place/policy/state CORDON_SOCKET=$place/policy/own.sock "$cordon" "$@"; }
	shows='echo ran; head -1 /proc/meminfo'
	d create --name made -m 200m -- sh -c "$shows" >/dev/null
	d create --name small -m 32m -- sh -c "$shows" >/dev/null
	d create --name plain -- sh -c "$shows" >/dev/null
	d run -d --name live -- sleep 100 >/dev/null
	d run -d --name over -m 200m -- true >/dev/null
	d wait over
	d exec live sh -c 'echo kept >/tmp/note'
	printf 'version: 1\nsandbox: {images: [host], memory: 64m}\n' >"$place/p.yaml"
	kill -HUP "$(cat "$place/policy/pid")"
	for _ in $(seq 50); do
		[ "$(grep -c 'policy:' "$place/policy/log")" -lt 2 ] || break
		sleep 0.1
	done
	# What asks for more than there is now does not start, and nothing ran.
	for name in made over; do
		run d start "$name"
		[ "$status" -ne 0 ]
		has "$output" "p.yaml:2"
	done
	lacks "$(d logs made)" ran
	# What asks for less starts, and what did not ask has the new limit.
	d start small
	d wait small
	has "$(d logs small)" "32768 kB"
	d start plain
	d wait plain
	has "$(d logs plain)" "65536 kB"
	# What runs goes on, and a program in it is judged by the new one.
	is "$(d exec live cat /tmp/note)" kept
	printf 'version: 1\nsandbox: {images: [host], memory: 64m}\ncommands: {allow: [ls]}\n' >"$place/p.yaml"
	kill -HUP "$(cat "$place/policy/pid")"
	for _ in $(seq 50); do
		[ "$(grep -c 'policy:' "$place/policy/log")" -lt 3 ] || break
		sleep 0.1
	done
	run d exec live cat /tmp/note
	[ "$status" -ne 0 ]
	has "$output" "'cat': no rule names it"
	run d start plain
	[ "$status" -ne 0 ]
	has "$output" "'sh'"
	kill "$(cat "$place/policy/pid")"
}

# preparer: the process that waits for our next request.
preparer() {
	local d
	d=$(cat "$place/pid")
	for _ in $(seq 100); do
		ps --no-headers -o pid,comm --ppid "$d" | awk '$2 == "cordon" { print $1 }' | sort -n | sed 1d >"$dir/preparers"
		[ "$(wc -l <"$dir/preparers")" -ne 1 ] || break
		sleep 0.1
	done
	cat "$dir/preparers"
}

@test "what prepares requests stays for the next one of the same user, and keeps nothing" {
	c create --name one -e A=1 -w /tmp -m 64m -- sh -c 'echo $A; pwd' >/dev/null
	pid=$(preparer)
	[ -n "$pid" ]
	for i in 2 3 4; do
		c create --name "stay$i" -- sh -c 'echo "${A-none}"; pwd; head -1 /proc/meminfo' >/dev/null
		c start "stay$i"
		c wait "stay$i" >/dev/null
		is "$(c logs "stay$i" | tr -s ' \n' ' ')" "none /workspace MemTotal: 262144 kB "
	done
	# Requests that are refused are no reason to go, and nothing is left open.
	run ! c create --name refused -v /proc:/p -- true
	run ! c create --name refused --image none/such -- true
	is "$(preparer)" "$pid"
	# It cannot be looked into by its own user.
	[ "$EUID" -ne 0 ] || is "$(cd "/proc/$pid/fd" && echo *)" "0 1 2 3"
	# Another policy, another preparer; and it does not stay for ever.
	kill -HUP "$(cat "$place/pid")"
	for _ in $(seq 100); do
		[ -d "/proc/$pid" ] || break
		sleep 0.1
	done
	[ ! -d "/proc/$pid" ]
	c create --name after -- true >/dev/null
	pid=$(preparer)
	for _ in $(seq 70); do
		c create --name many -- true >/dev/null
		c rm many >/dev/null
	done
	[ "$(preparer)" != "$pid" ]
	c rm -f one after stay2 stay3 stay4 >/dev/null
}

@test "a box is made, run, read and removed" {
	id=$(c create --name life -- sh -c 'echo out; echo err >&2; exit 7')
	is "${#id}" 64
	c start life
	is "$(c wait life)" 7
	is "$(c logs life 2>/dev/null)" out
	is "$(c logs life 2>&1 >/dev/null)" err
	c rm life
	run ! c inspect life
}

@test "a network namespace is used again, and nothing is in it" {
	look='readlink /proc/self/ns/net; wc -l </proc/self/net/unix; cat /proc/self/net/sockstat | head -1'
	# Two that hold each other, in messages nobody reads; and a name, if there can be one.
	cat >"$dir/leave.py" <<-'END'
		import array, os, socket
		print(os.readlink("/proc/self/ns/net"), flush=True)
		for i in range(50):
		    a, b = socket.socketpair()
		    try:
		        a.bind("\0left%d" % i)
		        a.listen(5)
		    except OSError:
		        pass
		    fds = array.array("i", [a.fileno(), b.fileno()])
		    try:
		        a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
		        b.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
		    except OSError:
		        pass
		print(len(open("/proc/self/net/unix").readlines()))
	END
	: >"$dir/seen"
	for i in $(seq 12); do
		c run -d --name left -- python3 -c "$(cat "$dir/leave.py")" >/dev/null
		c wait left >/dev/null
		c logs left >"$dir/left"
		c rm left >/dev/null
		[ "$(tail -1 "$dir/left")" -gt 2 ] # it can make some
		head -1 "$dir/left" >>"$dir/seen"
		c run -d --name next -- sh -c "$look" >/dev/null
		c wait next >/dev/null
		c logs next >"$dir/next"
		c rm next >/dev/null
		is "$(tail -n +2 "$dir/next" | tr -s '\n' ' ')" "1 sockets: used 0 "
		head -1 "$dir/next" >>"$dir/seen"
	done
	[ "$(sort -u "$dir/seen" | wc -l)" -lt 24 ]
	# At one time no two boxes have the same.
	for i in 1 2 3 4; do
		c run -d --name "net$i" -- sleep 100 >/dev/null
	done
	is "$(for i in 1 2 3 4; do c exec "net$i" readlink /proc/self/ns/net; done | sort -u | wc -l)" 4
	c rm -f net1 net2 net3 net4 >/dev/null
}

@test "programs in a box: streams, code, many at once" {
	c create --name many -- sleep 60
	c start many
	run -9 c exec many sh -c 'echo in; exit 9'
	is "$output" in
	is "$(echo text | c exec -i many cat)" text
	for i in 1 2 3 4 5 6 7 8; do
		c exec many echo "$i" &
	done >"$dir/all"
	wait
	is "$(sort "$dir/all" | tr -d '\n')" 12345678
	c rm -f many
}

@test "files go in and out, also of a box that has ended" {
	c create --name files -- sleep 60
	c start files
	mkdir -p "$dir/tree/sub"
	echo text >"$dir/tree/sub/file"
	ln -s /etc/passwd "$dir/tree/link"
	c cp "$dir/tree" files:/workspace
	is "$(c exec files cat /workspace/tree/sub/file)" text
	c stop -t 0 files
	mkdir "$dir/back"
	c cp files:/workspace/tree "$dir/back"
	is "$(cat "$dir/back/tree/sub/file")" text
	is "$(readlink "$dir/back/tree/link")" /etc/passwd
	c rm files
}

@test "stopping an idle shell takes no ten seconds" {
	c create --name deaf -- sh -c 'trap "" TERM; sleep 60 & wait; sleep 60'
	c start deaf
	sleep 0.3
	local begin=$SECONDS
	c stop deaf
	[ $((SECONDS - begin)) -lt 5 ]
	has "$(c ps -a)" 137
	c rm deaf
}

@test "a front that was killed: boxes are lost, which is told once" {
	c create --name lost -- sleep 60
	c start lost
	c create --name made -- true
	parent=$(cat "$place/pid")
	front=$(pgrep -P "$parent" -x cordon-front)
	run=$(last_run)
	is "$(ends "$run")" 0
	kill -9 "$front"
	for _ in $(seq 100); do
		c ps >/dev/null 2>&1 && [ "$(ends "$run")" -gt 0 ] && break
		sleep 0.1
	done
	has "$(c inspect lost)" "lost: the daemon ended"
	has "$(c ps -a)" made
	is "$(ends "$run")" 1
	# and once more, by an orderly restart: nothing is told again
	kill "$parent"
	wait_for_end "$parent"
	serve
	is "$(ends "$run")" 1
	has "$(c inspect lost)" "lost: the daemon ended"
	# who owns it can start it again
	c start made
	is "$(c wait made)" 0
	c rm lost made
}

wait_for_end() {
	for _ in $(seq 150); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}

@test "an orderly end stops boxes, and nothing of them is left" {
	c create --name left -- sh -c 'echo $$; sleep 61.5'
	c start left
	parent=$(cat "$place/pid")
	keeper=$(pgrep -P "$parent" -x cordon-keeper)
	kill "$parent"
	wait_for_end "$parent"
	run ! kill -0 "$keeper"
	run ! pgrep -f 'sleep 61[.]5'
	serve
	has "$(c ps -a)" left
	lacks "$(c inspect left)" "lost: the daemon"
	c rm left
}

@test "names that the host obeys, made by a box, are moved away and told" {
	mkdir -p "$dir/vol" "$dir/old/.git/hooks"
	echo old >"$dir/old/.git/config"
	chmod 777 "$dir/vol" "$dir/old"
	c create --name swept -v "$dir/vol:/v:rw" -v "$dir/old:/o:rw" -- sh -c '
		mkdir /v/.git /v/.vscode &&
		echo x >/v/.vscode/settings.json && echo keep >/v/plain
		echo bad >/o/.git/config; echo more >/o/more; exit 3'
	c start swept
	is "$(c wait swept)" 3
	run=$(last_run)
	[ ! -e "$dir/vol/.git" ]
	[ ! -e "$dir/vol/.vscode" ]
	[ -d "$dir/vol/.git.cordon-removed-0" ]
	is "$(cat "$dir/vol/.vscode.cordon-removed-0/settings.json")" x
	# what is no such name stays, and so does what was there before
	is "$(cat "$dir/vol/plain")" keep
	is "$(cat "$dir/old/more")" more
	is "$(cat "$dir/old/.git/config")" old
	[ -d "$dir/old/.git/hooks" ]
	# told on the ledger, in the end of this very run, and by the box
	told=$(c audit show "$run" | grep denied)
	has "$told" "violation: '.git' was made in"
	has "$told" "violation: '.vscode' was made in"
	lacks "$told" "/old"
	has "$(c inspect swept)" "violation: '.git' was made in"
	# once more: the same names again, under other ones
	c start swept
	is "$(c wait swept)" 3
	[ -d "$dir/vol/.git.cordon-removed-1" ]
	[ ! -e "$dir/vol/.git" ]
	c rm swept
}

@test "a box that is removed by force is swept, and a program in it too" {
	mkdir "$dir/vol"
	chmod 777 "$dir/vol"
	c create --name forced -v "$dir/vol:/v:rw" -- sleep 60
	c start forced
	run=$(last_run)
	c exec forced sh -c 'mkdir /v/.git; touch /v/.envrc /v/plain'
	[ -d "$dir/vol/.git" ]
	c rm -f forced
	[ ! -e "$dir/vol/.git" ]
	[ -d "$dir/vol/.git.cordon-removed-0" ]
	[ -f "$dir/vol/.envrc.cordon-removed-0" ]
	[ -f "$dir/vol/plain" ]
	told=$(c audit show "$run" | grep denied)
	has "$told" "violation: '.envrc' was made in"
}

@test "a volume that is not there any more is told, and its place is not swept" {
	mkdir "$dir/vol"
	chmod 777 "$dir/vol"
	c create --name moved -v "$dir/vol:/v:rw" -- sleep 60
	c start moved
	run=$(last_run)
	mv "$dir/vol" "$dir/away"
	mkdir -p "$dir/vol/.git"
	c rm -f moved
	[ -d "$dir/vol/.git" ]
	told=$(c audit show "$run" | grep denied)
	has "$told" "another directory is there now"
}

@test "an orderly end of the daemon sweeps; so does the end of a copy" {
	mkdir "$dir/vol"
	chmod 777 "$dir/vol"
	c create --name last -v "$dir/vol:/v:rw" -- sh -c 'mkdir /v/.git; sleep 60'
	c start last
	for _ in $(seq 50); do
		[ ! -d "$dir/vol/.git" ] || break
		sleep 0.1
	done
	run=$(last_run)
	parent=$(cat "$place/pid")
	kill "$parent"
	wait_for_end "$parent"
	serve
	[ -d "$dir/vol/.git.cordon-removed-0" ]
	[ ! -e "$dir/vol/.git" ]
	has "$(c audit show "$run" | grep denied)" "violation: '.git' was made in"
	# a box that does not run has a wall while files are copied
	c rm last
	c create --name copied -v "$dir/vol:/v:rw" -- true
	echo text >"$dir/.envrc"
	c cp "$dir/.envrc" copied:/v/.envrc
	c rm -f copied
	[ ! -e "$dir/vol/.envrc" ]
	is "$(cat "$dir/vol/.envrc.cordon-removed-0")" text
	has "$(c audit list | grep decision)" deny
}

# until_told RUN: the daemon is there, and the ledger has its end.
until_told() {
	for _ in $(seq 100); do
		c ps >/dev/null 2>&1 && [ "$(ends "$1")" -gt 0 ] && return 0
		sleep 0.1
	done
	return 1
}

@test "volumes of a box that was lost are looked at by the next front" {
	mkdir "$dir/vol"
	for part in cordon-front cordon-keeper; do
		c create --name unseen -v "$dir/vol:/v:rw" -- sh -c 'mkdir /v/.git; sleep 60'
		c start unseen
		for _ in $(seq 50); do
			[ ! -d "$dir/vol/.git" ] || break
			sleep 0.1
		done
		run=$(last_run)
		kill -9 "$(pgrep -P "$(cat "$place/pid")" -x $part)"
		until_told "$run"
		has "$(c audit show "$run")" lost
		has "$(c audit show "$run" | grep denied)" "violation: '.git' was made in"
		[ ! -e "$dir/vol/.git" ]
		[ -d "$dir/vol/.git.cordon-removed-0" ]
		rmdir "$dir/vol/.git.cordon-removed-0"
		is "$(ends "$run")" 1
		c rm unseen
	done
}

@test "so are those of a daemon that was killed itself; not another directory" {
	mkdir "$dir/vol" "$dir/other"
	c create --name unseen -v "$dir/vol:/v:rw" -v "$dir/other:/o:rw" -- \
		sh -c 'mkdir /v/.git /o/.git; sleep 60'
	c start unseen
	for _ in $(seq 50); do
		[ ! -d "$dir/other/.git" ] || break
		sleep 0.1
	done
	run=$(last_run)
	kill -9 "$(cat "$place/pid")"
	wait_for_end "$(cat "$place/pid")"
	# Somebody puts a link in the place of one.
	mv "$dir/other" "$dir/moved"
	mkdir "$dir/mine" "$dir/mine/.git"
	ln -s "$dir/mine" "$dir/other"
	serve
	until_told "$run"
	has "$(c audit show "$run" | grep denied)" "violation: '.git' was made in '$dir/vol'"
	has "$(c audit show "$run" | grep denied)" "'$dir/other' could not be looked for"
	[ ! -e "$dir/vol/.git" ]
	[ -d "$dir/mine/.git" ]
	[ -d "$dir/moved/.git" ]
	c rm unseen
}

@test "above the limit of boxes: busy, and whose limit it is" {
	mkdir "$place/small" "$place/small/state" "$place/small/run"
	place=$place/small serve --max-boxes 2
	d() { CORDON_STATE_DIR=$place/small/state CORDON_SOCKET=$place/small/own.sock "$cordon" "$@"; }
	d run -d --name one -- sleep 60
	d run -d --name two -- sleep 60
	run d run -d --name three -- sleep 60
	[ "$status" -ne 0 ]
	has "$output" "2 boxes are alive, which is the limit (--max-boxes)"
	d rm -f one
	d start three
	d rm -f two three
	kill "$(cat "$place/small/pid")"
}

@test "output is on the record where the policy wants it, and only there" {
	mkdir "$place/kept" "$place/kept/state" "$place/kept/run"
	printf 'version: 1\nsandbox: {images: [host]}\nledger: {keep_text: [commands, output]}\n' >"$place/k.yaml"
	rules=$place/k.yaml
	CORDON_POLICY=$rules place=$place/kept serve
	d() { CORDON_STATE_DIR=$place/kept/state CORDON_SOCKET=$place/kept/own.sock "$cordon" "$@"; }
	d run -d --name talks -- sh -c 'echo main-says; sleep 60' >/dev/null
	d exec talks sh -c 'echo exec-says; echo exec-errs >&2; seq 100000'
	d rm -f talks
	c create --name silent -- echo nothing-kept
	c start silent
	c wait silent
	c rm silent
	kill "$(cat "$place/kept/pid")"
	ends=$(grep -h '"kind":"run.end"' "$place/kept/state/ledger/"*.jsonl)
	has "$ends" '"text":"main-says\n"'
	has "$ends" '"text":"exec-errs\n"'
	has "$ends" 'exec-says\n1\n2\n'
	has "$ends" '99999\n100000\n"'
	has "$ends" '"kept":32768'
	lacks "$(cat "$place/state/ledger/"*.jsonl | grep '"kind":"run.end"')" nothing-kept
}
