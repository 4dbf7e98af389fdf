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
