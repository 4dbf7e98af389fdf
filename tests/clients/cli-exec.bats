#!/usr/bin/env bats
# docker exec and docker cp.
# shellcheck disable=SC2154,SC2016,SC2094 # by common and bats; for shells in boxes; only read
load common

begin() {
	docker run -d --name one "$@" "$image" sleep 600 >/dev/null
}

@test "exec: output, streams, code" {
	begin
	run --separate-stderr docker exec one sh -c 'echo out; echo err >&2; exit 5'
	is "$status" 5
	is "$output" out
	is "$stderr" err
	# Docker Engines before 23 say 126 here.
	status=0
	docker exec one nosuchprogram || status=$?
	on_docker && [ "$status" -eq 126 ] || [ "$status" -eq 127 ]
	run docker exec one /etc/passwd
	is "$status" 126
}

@test "exec: sampled codes" {
	begin
	local code have
	for code in 0 1 77 124 125 126 127 128 137 143 254 255; do
		have=0
		docker exec one sh -c "exit $code" || have=$?
		is "$have" "$code"
	done
	# shellcheck disable=SC2016 # for the inner shell
	run docker exec one sh -c 'kill -9 $$'
	is "$status" 137
}

@test "exec -i: 100 MB there and back" {
	begin
	local want
	want=$(head -c 100000000 /dev/zero | sha256sum)
	is "$(head -c 100000000 /dev/zero | docker exec -i one cat | sha256sum)" "$want"
	head -c 3000000 /dev/urandom >data
	docker exec -i one cat <data | cmp - data
	is "$(printf abc | docker exec -i one wc -c)" 3
}

@test "exec without -i: stdin is empty" {
	begin
	is "$(echo hello | docker exec one sh -c 'cat; echo end')" end
}

@test "exec -it: a terminal with its size" {
	begin
	run with_pty sh -c "stty rows 21 cols 99; docker exec -it one sh -c 'sleep 1; test -t 0 && stty size; exit 8'" </dev/null
	is "$status" 8
	has "$output" '21 99'
}

@test "exec -it: what is typed arrives" {
	begin
	run with_pty docker exec -it one sh < <(sleep 1; echo 'echo a$((40+2))b; exit 4'; sleep 1)
	is "$status" 4
	has "$output" a42b
}

@test "exec -d: runs on its own" {
	begin
	docker exec -d one sh -c 'sleep 0.5; echo done >/tmp/flag'
	until_true 5 docker exec one test -e /tmp/flag
	is "$(docker exec one cat /tmp/flag)" "done"
}

@test "exec: env, workdir" {
	begin -e BASE=b
	is "$(docker exec -e A=1 -w /etc one sh -c 'echo $A $BASE; pwd')" $'1 b\n/etc'
}

@test "exec: as other users, by number and by name" {
	begin -u 1234:1234
	is "$(docker exec one id -u)" 1234
	is "$(docker exec -u 1234:1234 one id -u)" 1234
	is "$(docker exec -u 33:44 one sh -c 'id -u; id -g; id -G')" $'33\n44\n44'
	# As the image's files say: staff has sandbox as its member, unless a
	# group is named.
	is "$(docker exec -u sandbox one sh -c 'id -u; id -g; id -G')" $'1000\n1000\n1000 50'
	is "$(docker exec -u 1000 one id -G)" '1000 50'
	is "$(docker exec -u sandbox:staff one sh -c 'id -g; id -G')" $'50\n50'
	run docker exec -u nosuchuser one true
	[ "$status" -ne 0 ]
	has "$output" 'unable to find user'
	# One cannot signal another's, and has no more rights than any.
	docker exec -d -u 33 one sleep 500
	until_true 5 docker exec -u 33 one sh -c 'ps | grep -q "sleep 50[0]"'
	docker exec -u sandbox one sh -c 'for p in $(ps | awk "/sleep 50[0]/{print \$1}"); do kill -9 $p; done' && false
	is "$(docker exec -u sandbox one grep CapEff /proc/self/status)" $'CapEff:\t0000000000000000'
	docker exec -t -u sandbox one sh -c 'echo x >$(tty)'
	docker exec -u sandbox one sh -c 'echo x >/dev/stdout; echo y >/tmp/new'
	is "$(docker exec one stat -c %u:%g /tmp/new)" 1000:1000
}

@test "exec -u root: only where the policy gives it" {
	begin
	if on_docker; then
		is "$(docker exec -u root one id -u)" 0
	else
		is "$(docker exec -u root one id -u)" 65534
		run docker exec -u 5:0 one id
		[ "$status" -ne 0 ]
		has "$output" 'no group 0'
	fi
}

@test "--group-add: in the container and in every exec" {
	begin -u 1234:1234 --group-add 77 --group-add staff
	is "$(docker exec one id -G)" '1234 50 77'
	is "$(docker exec -u sandbox one id -G | tr ' ' '\n' | sort -n | tr '\n' ' ')" '50 77 1000 '
	is "$(docker run --rm -u 5:6 --group-add 77 "$image" id -G)" '6 77'
	is "$(docker inspect -f '{{.HostConfig.GroupAdd}}' one)" '[77 staff]'
	run docker run --rm --group-add nosuchgroup "$image" true
	[ "$status" -ne 0 ]
	has "${output,,}" 'unable to find group'
	on_docker || {
		run docker run --rm --group-add 0 "$image" true
		[ "$status" -ne 0 ]
		has "$output" allow_root_inside
	}
}

@test "exec: many at once, each its own output" {
	begin
	local i clients=()
	for i in $(seq 16); do
		docker exec one sh -c "for n in \$(seq 200); do echo $i-\$n; done" >"out$i" &
		clients+=($!)
	done
	wait "${clients[@]}"
	for i in $(seq 16); do
		is "$(wc -l <"out$i")" 200
		is "$(grep -vc "^$i-" "out$i" || :)" 0
	done
}

@test "exec: a background child that holds the output delays nothing" {
	on_docker && skip "a Docker Engine waits for it"
	begin
	SECONDS=0
	run docker exec one sh -c 'sleep 30 & echo started'
	is "$status" 0
	is "$output" started
	[ "$SECONDS" -lt 5 ]
}

@test "exec: refused on a stopped one and on none" {
	docker create --name two "$image" true
	run docker exec two true
	is "$status" 1
	has "$output" 'is not running'
	run docker exec nosuch true
	is "$status" 1
	has "$output" 'No such container: nosuch'
}

@test "exec: timeout ends all that a program started (Cordon's shim)" {
	on_docker && skip "a Docker Engine sends TERM to one process"
	begin
	SECONDS=0
	run docker exec one timeout 2 python -c '
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("partial", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(0.05)
            open("/tmp/alive", "w").write(str(time.time()))
    os._exit(0)
time.sleep(60)'
	is "$status" 124
	has "$output" partial
	[ "$SECONDS" -le 4 ]
	local before
	before=$(docker exec one cat /tmp/alive)
	sleep 0.5
	is "$(docker exec one cat /tmp/alive)" "$before"
}

@test "exec: pkill -f needs no pkill in the image (Cordon's shim)" {
	on_docker && skip "a Docker Engine needs the program"
	begin
	docker exec one sleep 61 &
	local client=$! code=0
	until_true 5 sh -c 'docker top one | grep -q "sleep 61"'
	docker exec one pkill -f 'sleep 61'
	run docker top one
	lacks "$output" 'sleep 61'
	wait "$client" || code=$?
	is "$code" 137
	run docker exec one pkill -f 'no such command line'
	is "$status" 1
}

@test "cp in: a file, to a directory and under a name" {
	begin
	echo content >f
	chmod 640 f
	docker cp f one:/tmp
	docker cp f one:/tmp/g
	is "$(docker exec one cat /tmp/f /tmp/g)" $'content\ncontent'
	is "$(docker exec one stat -c %a /tmp/f)" 640
	run docker cp f one:/nosuch/dir/f
	is "$status" 1
	run docker cp nosuch one:/tmp
	is "$status" 1
}

@test "cp in: a directory with links" {
	begin
	mkdir -p d/sub
	echo 1 >d/sub/f
	ln -s sub/f d/link
	chmod 755 d/sub/f
	docker cp d one:/tmp/
	is "$(docker exec one cat /tmp/d/sub/f)" 1
	is "$(docker exec one readlink /tmp/d/link)" sub/f
	docker cp d/. one:/tmp/d/again 2>/dev/null || {
		docker exec one mkdir /tmp/d/again
		docker cp d/. one:/tmp/d/again
	}
	is "$(docker exec one cat /tmp/d/again/link)" 1
}

@test "cp in: a tar from stdin" {
	begin
	mkdir d
	echo x >d/f
	tar -c d | docker cp - one:/tmp
	is "$(docker exec one cat /tmp/d/f)" x
}

@test "cp -a: owners that the container has" {
	! on_docker || skip "an Engine looks for the container's user among the host's"
	begin -u 1234:1234
	mkdir -p tree/sub
	echo a >tree/a
	echo b >tree/sub/b
	ln tree/a tree/hard
	ln -s a tree/link
	tar --numeric-owner --owner=33 --group=44 -cf t.tar tree
	docker cp -a - one:/tmp <t.tar
	is "$(docker exec -u 33 one sh -c 'cd /tmp/tree && stat -c "%n %u:%g %h" a hard link sub/b')" \
		$'a 33:44 2\nhard 33:44 2\nlink 33:44 1\nsub/b 33:44 1'
	# Again, into what is another's by now.
	docker cp -a - one:/tmp <t.tar
	# Back, they are what they are inside.
	is "$(docker cp one:/tmp/tree - | tar --numeric-owner -tvf - | awk '{print $2}' | sort -u)" 33/44
	# Without it, they are not the archive's.
	mkdir plain
	echo c >plain/c
	docker cp plain one:/tmp
	on_docker || is "$(docker exec one stat -c %u:%g /tmp/plain/c)" 1234:1234
}

@test "cp in: hard links, to what is inside" {
	begin
	mkdir d
	echo one >d/one
	ln d/one d/two
	tar -cf t.tar d
	docker cp - one:/tmp <t.tar
	is "$(docker exec one sh -c 'cat /tmp/d/two; stat -c %h /tmp/d/one')" $'one\n2'
	tar -cf bad.tar --transform 's,^d/two$,x/two,' --transform 's,^d/one$,../../etc/passwd,' d/one d/two -P
	run docker cp - one:/tmp <bad.tar
	on_docker || [ "$status" -ne 0 ]
}

@test "cp out: a file, a directory, a link, a tar to stdout" {
	begin
	docker exec one sh -c 'mkdir -p /tmp/d/sub; echo 1 >/tmp/d/sub/f
		ln -s sub/f /tmp/d/link; head -c 3000000 /dev/urandom >/tmp/big'
	docker cp one:/tmp/d/sub/f .
	is "$(cat f)" 1
	docker cp one:/tmp/d .
	is "$(cat d/sub/f)" 1
	is "$(readlink d/link)" sub/f
	docker cp -L one:/tmp/d/link followed
	is "$(cat followed)" 1
	docker cp one:/tmp/d/link .
	is "$(readlink link)" sub/f
	is "$(docker cp one:/tmp/d - | tar -t | sort | tr '\n' ' ')" \
		'd/ d/link d/sub/ d/sub/f '
	docker cp one:/tmp/big .
	is "$(sha256sum <big)" "$(docker exec one sha256sum <<<"" /tmp/big | sed 's,/tmp/big,-,')"
	run docker cp one:/tmp/nosuch .
	is "$status" 1
	# The server's words; the command of Debian 12 has its own for any 404.
	[[ $output == *'No such container:path: one:/tmp/nosuch'* ]] ||
		has "$output" 'Could not find the file /tmp/nosuch'
}

@test "cp: on one that was created, and on one that ended" {
	echo before >f
	docker create --name two "$image" sh -c 'cat /tmp/f; echo after >/tmp/g'
	docker cp f two:/tmp/f
	run docker start -a two
	is "$output" before
	docker cp two:/tmp/g .
	is "$(cat g)" after
	docker cp f two:/tmp/h
	docker cp two:/tmp/h .
	is "$(cat h)" before
}

@test "cp: a directory that is a link leads nowhere outside" {
	begin
	mkdir outside
	echo victim >outside/f
	docker exec one ln -s "$PWD/outside" /tmp/out
	echo evil >f
	docker cp f one:/tmp/out/f || :
	is "$(cat outside/f)" victim
	docker exec one ln -s ../../../../../../../../etc/hostname /tmp/name
	docker cp -L one:/tmp/name copied || :
	[ ! -e copied ] || [ "$(cat copied)" != "$(cat /etc/hostname)" ]
}

@test "cp: into a read-only root is refused" {
	docker run -d --read-only --name one "$image" sleep 60
	echo x >f
	run docker cp f one:/etc/f
	is "$status" 1
	has "$output" 'read-only'
}
