#!/usr/bin/env bats
# cordon run: each flag once, with what it changes.
load common

@test "run: a program, its output and its status" {
	gives 0 "hello" -- echo hello
	gives 7 "" -- sh -c 'exit 7'
	gives 124 "" -- sh -c 'exit 124'
}

@test "run: stdout and stderr stay apart" {
	run --separate-stderr "$cordon" run -- sh -c 'echo out; echo err >&2'
	is "$status $output $stderr" "0 out err"
}

@test "run: bytes pass unchanged, without a newline at the end" {
	head -c 300000 /dev/urandom >in
	"$cordon" run -i -- cat <in >out
	cmp in out
	"$cordon" run -- printf 'a\0b' >out
	is "$(od -An -c out | tr -d ' ')" 'a\0b'
}

@test "run: L14 a reader that stands still does not switch off the deadline" {
	local begun
	# shellcheck disable=SC2216 # that it does not read is the point
	{ "$cordon" run --timeout 1s -- yes 2>err || echo $? >code; } | sleep 6
	is "$(cat code)" 124
	has "$(cat err)" "timeout"
	has "$(cat err)" "standard output could not be written: nobody reads it"
	begun=$SECONDS
	# shellcheck disable=SC2216 # the same
	{ "$cordon" run --timeout 1s -- yes 2>&1 || echo $((SECONDS - begun)) >took; } | sleep 6
	[ "$(cat took)" -lt 5 ]
}

@test "run: L14 a reader that stands still does not keep a signal away" {
	mkfifo pipe
	# shellcheck disable=SC2217 # the same
	sleep 20 <pipe 3>&- &
	local reader=$! pid
	"$cordon" run --timeout 1m -- yes >pipe 2>err 3>&- &
	pid=$!
	sleep 1
	kill -TERM $pid
	local begun=$SECONDS code=0
	wait $pid || code=$?
	is "$code" 130
	[ $((SECONDS - begun)) -lt 5 ]
	has "$(cat err)" "SIGTERM"
	kill $reader
}

@test "run: what a slow reader takes is all that was written" {
	seq 300000 >want
	"$cordon" run --output-limit 8m -- seq 300000 | { sleep 1; cat; } >got
	cmp want got
	# the program waits for it, as in any pipe
	"$cordon" run -- sh -c 'head -c 400000 /dev/zero; date +%s >&2' 2>end |
		{ sleep 3; date +%s >begin; cat >/dev/null; }
	[ "$(cat end)" -ge "$(cat begin)" ]
}

@test "run: a standard output that does not wait gets every byte" {
	cat >try.py <<-'END'
		import os, subprocess, sys, time
		r, w = os.pipe()
		os.set_blocking(w, False)
		p = subprocess.Popen([sys.argv[1], "run", "--output-limit", "8m",
		                      "--", "seq", "300000"], stdout=w)
		time.sleep(1)
		assert not os.get_blocking(w)
		os.close(w)
		got = b"".join(iter(lambda: os.read(r, 65536), b""))
		assert p.wait() == 0
		assert got == b"".join(b"%d\n" % i for i in range(1, 300001))
		r, w = os.pipe()
		p = subprocess.Popen([sys.argv[1], "run", "--", "true"], stdout=w)
		assert p.wait() == 0 and os.get_blocking(w)
	END
	python3 try.py "$cordon"
}

@test "run: an output that cannot be written says why" {
	run --separate-stderr sh -c "'$cordon' run -- echo hi >/dev/full"
	[ "$status" -ne 0 ]
	has "$stderr" "standard output could not be written: No space left on device"
}

@test "run: the program is looked for along the PATH that the box gets" {
	mkdir data
	printf '#!/bin/sh\necho mine\n' >data/mine
	printf '#!/bin/sh\necho our own\n' >data/ls
	chmod 755 data data/*
	gives 0 mine -v "$PWD/data:/data" -e PATH=/data:/usr/bin -- mine
	gives 0 "our own" -v "$PWD/data:/data" -e PATH=/data:/usr/bin -- ls
	run --separate-stderr "$cordon" run -e PATH=/nowhere -- ls
	is "$status" 127
	# a host directory of that name is not the box's
	run --separate-stderr "$cordon" run -e "PATH=$PWD/data" -- mine
	is "$status" 127
	# where a policy lists the commands, a request has no say in it
	printf 'version: 1\ncommands: {allow: [ls]}\n' >p.yaml
	run --separate-stderr "$cordon" run --policy p.yaml -e PATH=/tmp -- ls /data
	is "$status" 126
	has "$stderr" "'PATH' steers"
}

@test "run: of two labels of one name the last holds" {
	run "$cordon" run --json --label a=1 --label ab=2 --label a=3 -- true
	is "$status" 0
	is "$(field labels)" "{'a': '3', 'ab': '2'}"
	is "$(grep -o '"a":' <<<"$output" | wc -l)" 1
}

@test "run: a signal is 128 and its number" {
	run --separate-stderr "$cordon" run -- sh -c 'kill -SEGV $$'
	is "$status" 139
	has "$stderr" "signal"
}

@test "run: a program that is not there is 127, one that cannot run 126" {
	run --separate-stderr "$cordon" run -- no-such-program
	is "$status" 127
	has "$stderr" "no-such-program"
	is "${#stderr_lines[@]}" 1
	run --separate-stderr "$cordon" run -- /etc/passwd
	is "$status" 126
}

@test "run: without -i standard input is empty" {
	is "$(echo secret | "$cordon" run -- cat)" ""
}

@test "run: -i passes standard input on, to its end" {
	is "$(printf 'a\nb\n' | "$cordon" run -i -- wc -l)" 2
	is "$("$cordon" run --interactive -- cat </dev/null)" ""
}

@test "run: -t gives a terminal" {
	run script -qec "'$cordon' run -t -- sh -c 'test -t 0 && test -t 1 && tty && echo \$TERM'" /dev/null
	is "$status" 0
	has "$output" "/dev/"
}

@test "run: -it passes the end of its input on" {
	is "$(echo hi | timeout 10 "$cordon" run -it -- cat | tr -d '\r')" "hi
hi"
	# also in the midst of a line, and of nothing
	is "$(printf ab | timeout 10 "$cordon" run -it -- sh -c 'cat; echo .' |
		tr -d '\r')" "abab."
	is "$(timeout 10 "$cordon" run -it -- cat </dev/null)" ""
}

@test "run: -t without -i passes nothing of standard input on" {
	is "$(echo secret | "$cordon" run -t --timeout 2s -- \
		timeout 1 cat 2>/dev/null | tr -d '\r')" ""
	run script -qec "'$cordon' run -t -- stty -a >/dev/null; stty -a" /dev/null
	has "$output" " icanon"
}

@test "run: each -c is a block of its own" {
	gives 0 "one
two" --lang sh -c 'echo one; echo x >f' -c 'cat f >/dev/null && echo two'
	gives 0 "one
2" --lang sh -c 'echo one' --lang python -c 'print(2)'
	gives 3 "one" --lang sh -c 'echo one; exit 3' -c 'echo two'
	gives 0 "one
two" --continue-on-error --lang sh -c 'echo one; exit 3' -c 'echo two'
	gives 0 "a b
a b" --lang sh -c 'echo $@' -c 'echo $@' a b
	run "$cordon" run --json --lang sh -c 'echo one' -c 'echo two'
	is "$(field runs.0.stdout) $(field runs.1.stdout)" "one two"
	# what was cut of the first comes before the second
	"$cordon" run --output-limit 10 --lang sh -c 'printf 0123456789abcdef' \
		-c 'printf XYZ' >out 2>err
	is "$(cat out)" "01234bcdefXYZ"
	has "$(cat err)" "block 1: stdout: 6 of 16 bytes are missing"
	refused "--lang" run -c 'echo one' -c 'echo two'
}

@test "run: -t has the size of our terminal" {
	run script -qec "stty rows 33 cols 101; '$cordon' run -it -- stty size" /dev/null
	has "$output" "33 101"
}

@test "run: -t passes the program's status on" {
	run script -qec "'$cordon' run --tty -- sh -c 'exit 9'" /dev/null
	is "$status" 9
}

@test "run: --timeout ends it with 124" {
	run --separate-stderr "$cordon" run --timeout 300ms -- sleep 20
	is "$status" 124
	has "$stderr" "timeout"
}

@test "run: --timeout takes units" {
	for t in 20 20s 20000ms 1m 1h 0.5m; do
		gives 0 ok --timeout "$t" -- echo ok
	done
}

@test "run: --cpu-time ends it with 137" {
	run --separate-stderr "$cordon" run --cpu-time 200ms --cpus 1 -- \
		sh -c 'while :; do :; done'
	is "$status" 137
	has "$stderr" "cpu"
}

@test "run: --kill-grace lets it clean up" {
	run --separate-stderr "$cordon" run --timeout 500ms --kill-grace 5s -- \
		sh -c 'trap "echo cleaned; exit 0" TERM; sleep 20 & wait'
	is "$status" 124
	is "$output" cleaned
}

@test "run: --memory ends it with 137" {
	run --separate-stderr "$cordon" run -m 32m --lang python -c 'b = bytearray(200000000)'
	is "$status" 137
	has "$stderr" "memory"
}

@test "run: --memory, -m and -mSIZE are the same" {
	for flag in "--memory 64m" --memory=64m "-m 64m" -m64m "-m 65536k" "-m 67108864"; do
		# shellcheck disable=SC2086 # a flag and its value
		run "$cordon" run --json $flag -- true
		is "$(field limits.memory)" 67108864
	done
}

@test "run: --cpus is what the box sees" {
	gives 0 1 --cpus 0.5 -- nproc
	run "$cordon" run --json --cpus 0.25 -- true
	is "$(field limits.cpus)" 0.25
}

@test "run: --cpu-period and --cpu-quota" {
	run "$cordon" run --json --cpu-period 50000 --cpu-quota 100000 -- true
	is "$(field limits.cpus)" 2.0
}

@test "run: --pids-limit refuses further processes" {
	run "$cordon" run --json --pids-limit 8 -- \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait'
	has "$(field cause)" pids
}

@test "run: --output-limit keeps both ends" {
	run --separate-stderr "$cordon" run --output-limit 10 -- \
		printf '%s' 0123456789abcdefghij
	is "$output" "01234fghij"
	has "$stderr" warning
	run "$cordon" run --json --output-limit 10 -- printf '%s' 0123456789abcdefghij
	is "$(field truncated) $(field stdout_bytes) $(field stdout)" "True 20 01234fghij"
}

@test "run: --rm is what always happens" {
	gives 0 x --rm -- echo x
	gives 0 x --rm=true --lang sh -c 'echo x'
	gives 0 x --rm --lang sh -c 'echo x'
}

@test "run: a standard stream that is missing is none of ours" {
	for _ in 1 2 3 4 5 6; do
		is "$(exec 0<&-; "$cordon" run -i -- sh -c 'cat; echo over')" over
		run -5 --separate-stderr sh -c '"$1" run -- sh -c "echo x >&2; exit 5" 2>&-' - "$cordon"
		(exec 0<&- 1>&- 2>&-; exec "$cordon" run -i -- sleep 0.5) 3>&- &
		sleep 0.3
		is "$(readlink "/proc/$!/fd/0" "/proc/$!/fd/1" "/proc/$!/fd/2" | sort -u)" /dev/null
		wait $!
	done
}

@test "run: whoever starts it may ignore SIGCHLD" {
	ignoring() { python3 -c 'import signal, subprocess, sys
print(subprocess.run(sys.argv[1:], timeout=20, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)).returncode)' "$@"; }
	is "$(ignoring "$cordon" run -- sh -c 'exit 3')" 3
	is "$(ignoring "$cordon" run -- sh -c 'grep SigIgn /proc/self/status | cut -f2')" $'0000000000000000\n0'
	output=$(CORDON_LIBEXEC=$CORDON_BUILD ignoring "$CORDON_BUILD/tests/librun" '{}' sh -c 'exit 3' | head -1)
	is "$(field exit_code)" 3
}

@test "run: --hard-output ends it with 137" {
	run --separate-stderr "$cordon" run --hard-output 100k -- yes
	is "$status" 137
	has "$stderr" "output"
}

@test "run: --disk is the size of the workspace" {
	run "$cordon" run --json --disk 1m -- \
		sh -c 'head -c 2000000 /dev/zero >/workspace/x'
	is "$(field cause)" disk
	gives 0 "" --disk 3m -- sh -c 'head -c 2000000 /dev/zero >/workspace/x'
}

@test "run: --files is the number of open files" {
	gives 0 40 --files 40 -- sh -c 'ulimit -n'
}

@test "run: --file-size is the largest file" {
	run "$cordon" run --json --file-size 1000 -- \
		sh -c 'trap "" XFSZ; exec head -c 2000 /dev/zero >/tmp/x'
	has "$(field status)" e
	run "$cordon" run --json --file-size 1000 -- \
		dd if=/dev/zero of=/tmp/x bs=2000 count=2 status=none
	is "$(field cause)" disk
}

@test "run: --network none is accepted, and the default" {
	gives 0 ok --network none -- echo ok
	gives 0 ok --network=none -- echo ok
}

@test "run: --read-only is the default, =false gives a throw-away root" {
	run "$cordon" run -- touch /usr/x
	[ "$status" -ne 0 ]
	run "$cordon" run --read-only -- touch /x
	[ "$status" -ne 0 ]
	gives 0 "" --read-only=false -- touch /x
	[ ! -e /x ]
}

@test "run: --volume is read-only unless said" {
	mkdir vol
	echo there >vol/f
	chmod 755 .
	chmod 777 vol
	gives 0 there -v "$dir/vol:/data" -- cat /data/f
	gives 0 there --volume vol:/data:ro -- cat /data/f
	run "$cordon" run -v "$dir/vol:/data" -- touch /data/new
	[ "$status" -ne 0 ]
	[ ! -e vol/new ]
	gives 0 "" -v "$dir/vol:/data:rw" -- sh -c 'echo new >/data/new'
	is "$(cat vol/new)" new
	is "$(stat -c %u vol/new)" "$(stat -c %u vol)"
}

@test "run: --tmpfs is a place of that size" {
	gives 0 "" --tmpfs /scratch:size=1m -- sh -c 'echo >/scratch/x'
	run "$cordon" run --tmpfs /scratch:size=1m -- \
		head -c 2000000 /dev/zero
	run "$cordon" run --tmpfs /scratch:size=1m -- \
		sh -c 'head -c 2000000 /dev/zero >/scratch/x'
	[ "$status" -ne 0 ]
	gives 0 "" --tmpfs /scratch -- sh -c 'echo >/scratch/x'
}

@test "run: --workspace goes in as a copy" {
	mkdir -p ws/sub
	echo one >ws/a
	echo two >ws/sub/b
	ln -s a ws/link
	gives 0 $'one\ntwo\none' --workspace ws -- cat a sub/b link
	gives 0 "" --workspace ws -- sh -c 'echo spoiled >a; rm sub/b'
	is "$(cat ws/a ws/sub/b)" $'one\ntwo'
}

@test "run: --workspace does not follow a link out" {
	mkdir ws
	ln -s /etc/hostname ws/away
	ln -s /etc ws/dir
	run "$cordon" run --workspace ws -- ls dir/
	is "$status" 0
	[[ $output != *shadow* ]]
}

@test "run: --copy-out takes regular files that match" {
	gives 0 "" --copy-out '*.txt=out' -- sh -c \
		'echo a >a.txt; echo b >b.dat; ln -s /etc/passwd c.txt; mkdir d.txt; mkfifo e.txt'
	is "$(ls out)" a.txt
	is "$(cat out/a.txt)" a
}

@test "run: --copy-out with ** reaches below, and several may be given" {
	gives 0 "" --copy-out '**/*.txt=out' --copy-out '*.dat=other' -- sh -c \
		'mkdir -p x/y; echo deep >x/y/z.txt; echo b >b.dat'
	is "$(cat out/x/y/z.txt)" deep
	is "$(cat other/b.dat)" b
}

@test "run: --copy-out replaces a planted link, and writes not through it" {
	mkdir out
	echo mine >victim
	ln -s ../victim out/a.txt
	gives 0 "" --copy-out '*.txt=out' -- sh -c 'echo evil >a.txt'
	is "$(cat victim)" mine
	is "$(cat out/a.txt)" evil
	[ ! -L out/a.txt ]
}

@test "run: --workdir" {
	gives 0 /workspace -- pwd
	gives 0 /tmp -w /tmp -- pwd
	gives 0 /usr --workdir=/usr -- pwd
}

@test "run: --user" {
	gives 0 65534:65534 -- sh -c 'echo $(id -u):$(id -g)'
	gives 0 1000:1000 -u 1000 -- sh -c 'echo $(id -u):$(id -g)'
	gives 0 1000:100 --user 1000:100 -- sh -c 'echo $(id -u):$(id -g)'
	gives 0 0:0 -u root -- sh -c 'echo $(id -u):$(id -g)'
	gives 0 65534:65534 -u nobody:nogroup -- sh -c 'echo $(id -u):$(id -g)'
}

@test "run: --writable gives a throw-away place" {
	gives 0 "" --writable /opt/place -- sh -c 'echo x >/opt/place/file'
	[ ! -e /opt/place ]
}

@test "run: --env and --env-file are all it gets" {
	export SECRET_OF_THE_HOST=x
	run "$cordon" run -e A=1 --env 'B=two words' -- env
	has "$output" "A=1"
	has "$output" "B=two words"
	[[ $output != *SECRET_OF_THE_HOST* ]]
	printf '# comment\nC=3\n\nD=a=b\n' >vars
	gives 0 "3 a=b" --env-file vars -- sh -c 'echo "$C $D"'
	gives 0 2 -e A=1 -e A=2 -- sh -c 'echo $A'
	gives 0 /x -e HOME=/x -- sh -c 'echo $HOME'
}

@test "run: --name is the host name in the box, and in the document" {
	gives 0 box-1 --name box-1 -- cat /proc/sys/kernel/hostname
	run "$cordon" run --json --name box-1 -- true
	is "$(field name)" box-1
}

@test "run: --label is in the document" {
	run "$cordon" run --json --label team=a --label run=7 -- true
	is "$(field labels.team)$(field labels.run)" a7
}

@test "run: --image host and --isolation native are the defaults" {
	gives 0 ok --image host --isolation native -- echo ok
}

@test "run: a processor has no more cores and threads than the box" {
	grep -q '^siblings' /proc/cpuinfo || skip "this kernel does not tell"
	run "$cordon" run --cpus 1 -- sed -nE 's/^(siblings|cpu cores|processor)[[:space:]]*: //p' /proc/cpuinfo
	is "$status ${lines[*]}" "0 0 1 1"
}

@test "run: what of /etc is the host's" {
	for name in ld.so.conf ld.so.conf.d alternatives ca-certificates ssl/certs mime.types; do
		[ -e "/etc/$name" ] || continue
		gives 0 "" -- test -e "/etc/$name"
	done
	is "$("$cordon" run -- cat /etc/ld.so.conf)" "$(cat /etc/ld.so.conf)"
	run "$cordon" run -- sh -c 'echo x >/etc/ld.so.conf.d/x.conf'
	[ "$status" -ne 0 ]
}

@test "run: a working directory is made where it is missing" {
	for place in /nonexist /a/b/c /workspace/x/y /tmp/q /var/x /data/in; do
		gives 0 "$place" --tmpfs /data -w "$place" -- pwd
	done
	gives 0 "" -w /workspace/x -- touch made
	mkdir -p work/sub
	ln -s sub work/link
	gives 0 /workspace/sub/new --workspace work -w /workspace/sub/new -- pwd
	gives 0 /workspace/sub --workspace work -w /workspace/link -- pwd -P
}

@test "run: a pattern of copy-out may begin with the workspace" {
	gives 0 "" --copy-out '/workspace/*=one' --copy-out './*=two' -- touch x
	is "$(echo one/* two/*)" "one/x two/x"
}

@test "run: a ulimit that is more than the box has is told" {
	run --separate-stderr "$cordon" run --ulimit nofile=99999 -- sh -c 'ulimit -n'
	is "$status $output" "0 1024"
	has "$stderr" "ulimit nofile is 1024: it can only be lowered (--files raises it)"
	gives 0 2000 --files 4000 --ulimit nofile=2000 -- sh -c 'ulimit -n'
}

@test "run: a limit that is not in force is null, and a warning says so" {
	[ "$(id -u)" -eq 0 ] || return 0 # only root can take the cgroups away
	output=$("$BATS_TEST_DIRNAME/../as-user" --no-cgroup "$cordon" run --json --best-effort cgroup -- true)
	is "$(field limits.memory) $(field limits.cpus) $(field limits.pids)" "None None None"
	for layer in memory cpu pids; do
		has "$(field warnings)" "$layer is not enforced on this machine"
	done
}

@test "run: limits has all that was in force" {
	output=$("$cordon" run --json --total-timeout 9s --kill-grace 2s --user 7:8 \
		--read-only=false --tmpfs /data:size=1m -- true)
	is "$(field limits.total_timeout_ms) $(field limits.kill_grace_ms)" "9000 2000"
	is "$(field limits.user) $(field limits.read_only) $(field limits.network)" "7:8 False none"
	is "$(field limits.tmpfs)" "{'/tmp': 67108864, '/dev/shm': 67108864, '/data': 1048576}"
	is "$(field limits.memory) $(field warnings)" "268435456 []"
}

@test "run: limits are those that held, not those that were asked for" {
	limits() { # NAME ARG...: of `cordon run --json ARG...`
		local name=$1
		shift
		output=$("$cordon" run --json "$@")
		field "limits.$name"
	}
	mkdir vol
	is "$(limits disk --tmpfs /workspace:size=1m --disk 2m -- true)" 1048576
	is "$(limits disk -v "$dir/vol:/workspace:rw" -- true)" None
	is "$(limits disk --disk 2m -- true)" 2097152
	is "$(limits files --ulimit nofile=20:30 -- true)" 20
	is "$(limits file_size --ulimit fsize=4096 -- true)" 4096
	hard=$(ulimit -Hn)
	inside=$("$cordon" run -- sh -c 'ulimit -n')
	is "$(limits files -- true)" "$inside"
	(
		ulimit -n 100
		is "$("$cordon" run -- sh -c 'ulimit -n')" 100
		is "$(limits files -- true)" 100
		output=$("$cordon" run --json --files 200 -- true)
		is "$(field limits.files)" 100
		has "$(field warnings)" "files is 100 and not as asked for: that is the hard limit here (ulimit -Hn)"
	)
	[ "$hard" = unlimited ] || [ "$hard" -ge 1048576 ] ||
		is "$(limits files --files 1048576 -- true)" "$hard"
	output=$("$cordon" run --json --tmpfs /workspace:size=1m --disk 2m -- true)
	has "$(field warnings)" "disk is 1048576 and not as asked for"
	# What nobody asked for is no news.
	output=$("$cordon" run --json -- true)
	is "$(field warnings)" "[]"
	# A workspace fits into what is there, whatever --disk says.
	mkdir ws
	head -c 200000 /dev/zero >ws/f
	gives 0 f --tmpfs /workspace:size=1m --disk 64k --workspace ws -- ls
}

@test "run: a low limit for files of ours is told" {
	export CORDON_STATE_DIR=$dir/state
	(
		ulimit -f 1
		run --separate-stderr "$cordon" run -- true
		is "$status ${#stderr_lines[@]}" "125 1"
		has "$stderr" "File too large; raise the file size limit (ulimit -f)"
	)
	# In the box the signal is as usual, and ends a program for `disk`.
	output=$("$cordon" run --json --file-size 4k -- dd if=/dev/zero of=f bs=8k count=1) || true
	is "$(field cause) $(field signal)" "disk 25"
}

@test "run: the example of cordon-result(5) has what a document has" {
	: "${CORDON_TOP:=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}"
	"$cordon" run --json -- true | python3 -c 'import json, re, sys
man = open(sys.argv[1]).read()
example = json.loads(re.search(r"^\{\"id\".*?^\.fi", man, re.M | re.S)[0][:-3])
real = json.load(sys.stdin)
assert list(example) == list(real), set(example) ^ set(real)
assert list(example["limits"]) == list(real["limits"]), set(example["limits"]) ^ set(real["limits"])
' "$CORDON_TOP/man/cordon-result.5"
}

@test "run: memory that the box sees is not more than the machine has" {
	has=$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)
	gives 0 "$has" -m 100000g -- awk '/^MemTotal/ { print $2 }' /proc/meminfo
	gives 0 65536 -m 64m -- awk '/^MemTotal/ { print $2 }' /proc/meminfo
}

@test "run: --best-effort is accepted for each layer" {
	for layer in cgroup memory cpu pids landlock; do
		gives 0 ok --best-effort "$layer" -- echo ok
	done
}

@test "run: --json is the document, with the same exit status" {
	run --separate-stderr "$cordon" run --json -- sh -c 'echo out; echo err >&2; exit 3'
	is "$status" 3
	is "$stderr" ""
	python3 -m json.tool <<<"$output" >/dev/null
	is "$(field status) $(field cause) $(field exit_code) $(field signal)" "error exited 3 None"
	is "$(field stdout)" out
	is "$(field stderr)" err
	is "$(field stdout_bytes)" 4
}

@test "run: --json carries bytes that are no text as base64" {
	run "$cordon" run --json -- printf '\377\0a'
	is "$(field stdout_b64)" "/wBh"
	is "$(field stdout_bytes)" 3
}

@test "run: --json lists new files" {
	run "$cordon" run --json -- sh -c 'printf abc >new.txt'
	is "$(field files.0.path) $(field files.0.size)" "new.txt 3"
}

@test "run: --json lists a file that was changed, whatever its times say" {
	mkdir ws ws/sub
	echo aaa >ws/f
	echo bbb >ws/sub/g
	: >ws/empty
	files() { "$cordon" run --json "$@" | jq -c '[.files[].path]'; }
	is "$(files --workspace ws -- true)" '[]'
	is "$(files --workspace ws -- sh -c 'touch -r f /tmp/r; echo ccc >f; touch -r /tmp/r f')" '["f"]'
	is "$(files --workspace ws -- sh -c 'cp -p sub/g x; mv x sub/g')" '[]'
	is "$(files --workspace ws -- sh -c 'cp -p sub/g x; echo ddd >x; touch -r sub/g x; mv x sub/g')" '["sub/g"]'
	is "$(files --lang sh -c 'cat $0')" '[]'
	is "$(files --lang sh -c '# filename: a/b.sh
		echo >>$0')" '["a/b.sh"]'
}

@test "run: --dry-run has all that was asked for, and fails as the run would" {
	run --separate-stderr "$cordon" run --dry-run --name n --label a=b --kill-grace 2s \
		--total-timeout 7s --lang sh -c 'echo $1' x y
	is "$status" 0
	is "$(field args)" "['x', 'y']"
	is "$(field name) $(field labels.a)" "n b"
	is "$(field kill_grace_ms) $(field total_timeout_ms)" "2000 7000"
	is "$(field default_tmpfs)" "{'/tmp': 67108864, '/dev/shm': 67108864, '/workspace': 67108864}"
	run --separate-stderr "$cordon" run --dry-run --tmpfs /tmp:size=1m -- true
	is "$(field default_tmpfs)" "{'/dev/shm': 67108864, '/workspace': 67108864}"
	is "$(field tmpfs)" "{'/tmp': 1048576}"
	run -127 --separate-stderr "$cordon" run --dry-run --lang cobol -c 1
	is "$output" ""
	has "$stderr" "unknown language cobol"
	run -1 --separate-stderr "$cordon" run --dry-run --lang sh -c '# filename: ../x'
	has "$stderr" "Filename is not in the workspace"
}

@test "run: --dry-run and the run say the same" {
	same() {
		run --separate-stderr "$cordon" run "$@"
		local was=$status
		run --separate-stderr "$cordon" run --dry-run "$@"
		is "$status" "$was"
		[ "$was" -eq 0 ] || is "$output ${#stderr_lines[@]}" " 1"
	}
	mkdir ws in
	head -c 100000 /dev/zero >ws/f
	same --copy-out '*=/dev/null' -- true
	same --copy-out '*=no/such' -- true
	same --work-dir new -- true
	rmdir new
	same --work-dir new/er -- true
	same -v "$dir/in:/usr/x" -- true
	same --workspace ws --disk 64k -- true
	same -w /usr/nosuch -- true
	same -- no-such-program
	same -- /usr/bin/no-such-program
	same -- /usr/bin/env true
	same -- python -c pass
	is "$status" 0
	same -e PATH=/nowhere:/usr/bin -- true
	run "$cordon" run --dry-run --work-dir other -- true
	[ ! -e other ]
}

@test "run: a directory for results is not left where nothing was run" {
	[ "$(id -u)" -eq 0 ] || return 0 # only root can take the cgroups away
	chmod 777 .
	run "$BATS_TEST_DIRNAME/../as-user" --no-cgroup "$cordon" run --copy-out '*=o' -- true
	is "$status" 125
	run "$BATS_TEST_DIRNAME/../as-user" --no-cgroup "$cordon" run --work-dir w -- true
	is "$status" 125
	is "$(ls -A)" ""
}

@test "run: --json has a document also for a bad call" {
	local args
	for args in "--json --memory 1x" "--memory 1x --json" "--json --nonsense" \
		"--json --timeout" "--json"; do
		# shellcheck disable=SC2086
		run -125 --separate-stderr "$cordon" run $args
		is "$(field cause) $(field status) $(field exit_code)" "invalid error 125"
		is "cordon: $(field message)" "$stderr"
	done
	run -125 --separate-stderr "$cordon" run --memory 1x -- true --json
	is "$output" ""
}

@test "run: --dry-run prints the spec and runs nothing" {
	mkdir vol
	chmod 777 . vol
	run --separate-stderr "$cordon" run --dry-run -m 64m -v "$dir/vol:/data:rw" -- touch /data/x
	is "$status" 0
	python3 -m json.tool <<<"$output" >/dev/null
	has "$output" 67108864
	[ ! -e vol/x ]
}

@test "run: --total-timeout and --continue-on-error are accepted" {
	gives 0 ok --total-timeout 1m --continue-on-error -- echo ok
}

@test "run: names of others mean the same" {
	run "$cordon" run --json --mem-limit 64m --pids 40 --max-output 100 -- true
	is "$(field limits.memory) $(field limits.pids) $(field limits.output)" "67108864 40 100"
	run "$cordon" run --json --mem_limit 64m -- true
	is "$(field limits.memory)" 67108864
}

@test "run: -- ends the flags" {
	gives 0 "--help -m" -- echo --help -m
}

@test "run: one letter after another" {
	is "$(echo x | "$cordon" run -ie A=1 -- cat)" x
}

@test "run: Ctrl-C kills the tree and says so" {
	"$cordon" run -- sh -c 'sleep 77 & sleep 77' 2>err &
	pid=$!
	sleep 0.5
	kill -INT "$pid"
	code=0
	wait "$pid" || code=$?
	is "$code" 130
	has "$(cat err)" cancelled
}

@test "run: Ctrl-C at a terminal is the command's alone, at any moment" {
	cat >"$BATS_TEST_TMPDIR/keys.py" <<-'EOF'
		import json, os, random, signal, subprocess, sys, time
		argv = [sys.argv[1], "run", "--json", "--", "sleep", "0.004"]
		for i in range(300):
		    p = subprocess.Popen(argv, stdout=subprocess.PIPE,
		                         start_new_session=True)
		    time.sleep(random.uniform(0, 0.007))
		    os.killpg(p.pid, signal.SIGINT)
		    text = p.communicate(timeout=20)[0]
		    # Before it could listen it ends as others do, without a box.
		    cause = json.loads(text)["cause"] if text else p.returncode
		    if cause not in ("cancelled", "exited", -signal.SIGINT):
		        sys.exit(f"run {i}: {cause} {text}")
	EOF
	python3 "$BATS_TEST_TMPDIR/keys.py" "$cordon"
}

@test "run: when it has ended its mounts are gone" {
	[ "$(id -u)" -eq 0 ] || return 0 # needs a mount of its own
	mkdir disk
	# Not a moment later: umount would find the place in use.
	unshare -m sh -ec '
		for i in $(seq 25); do
			mount -t tmpfs none "$2"
			"$1" run -v "$2:/data:rw" -- sh -c "echo > /data/f"
			umount "$2"
		done' sh "$cordon" "$PWD/disk"
}

@test "run: the end waits for who takes the mounts down" {
	[ "$(nproc)" -gt 1 ] || return 0 # then init does it
	# A program that has ended before anybody looks needs no such child.
	strace -f -qq -o log -e trace=ppoll,exit_group \
		-e inject=ppoll:delay_exit=300000 "$cordon" run -- sleep 0.5
	child=$(awk '/ppoll/ { print $1; exit }' log)
	# First it, then the command.
	awk -v child="$child" '/exit_group/ { n[$1] = ++i; last = $1 }
		END { exit !(n[child] && last != child) }' log
}
