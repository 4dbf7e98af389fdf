#!/usr/bin/env bats
# Bad calls: 125, nothing printed but one line that names the flag and says
# what it takes.
load common

@test "errors: no command, an unknown one, one that is still to come" {
	run --separate-stderr "$cordon"
	is "$status" 125
	refused "no command 'frobnicate'" frobnicate
	refused "not in this build" worker
	CORDON_SOCKET=$BATS_TEST_TMPDIR/none refused "start one with 'cordon serve'" ps
}

@test "errors: nothing to run" {
	refused "nothing to run" run
	refused "nothing to run" run --
	refused "nothing to run" run -m 64m
	refused "empty" run -- ""
}

@test "errors: unknown flags are named" {
	refused "'--frobnicate'" run --frobnicate -- true
	refused "'--frobnicate'" run --frobnicate=1 -- true
	refused "'-Z'" run -Z -- true
	refused "--$(printf 'a%.0s' {1..40})" run "--$(printf 'a%.0s' {1..5000})" -- true
}

@test "errors: a missing value" {
	for flag in timeout memory cpus pids-limit output-limit volume tmpfs \
		workspace copy-out workdir user writable env env-file name label \
		image isolation best-effort network lang; do
		refused "--$flag takes" run "--$flag"
	done
	refused "-m takes" run -m
	refused "-v takes" run -v
}

@test "errors: a switch with a value it does not take" {
	refused "--json takes no value" run --json=yes -- true
	refused "--dry-run takes no value" run --dry-run=1 -- true
	refused "--interactive" run --interactive=perhaps -- true
	refused "--read-only" run --read-only=perhaps -- true
}

@test "errors: sizes" {
	for size in "" x 5x 5mm -1 1e6 0x10 " 5m" "5 m" 99999999999999999999 9999999t 0.5; do
		refused "--memory" run --memory "$size" -- true
	done
	refused "--memory" run --memory 100k -- true
	refused "-m: '5x'" run -m 5x -- true
	refused "--output-limit" run --output-limit many -- true
	refused "--disk" run --disk 1 -- true
	refused "--file-size" run --file-size 0 -- true
	refused "--hard-output" run --hard-output 0 -- true
	refused "--tmpfs" run --tmpfs /x:size=big -- true
	refused "--tmpfs" run --tmpfs /x:mode=9 -- true
}

@test "errors: times" {
	for time in "" x 5x -1 1e3 "5 s" 5sec 99999999999999999999 0ms; do
		refused "--timeout" run --timeout "$time" -- true
	done
	refused "Timeout must be greater than or equal to 1." run --timeout 0 -- true
	refused "Timeout must be greater than or equal to 1." run --timeout 0.5 -- true
	refused "--cpu-time" run --cpu-time soon -- true
	refused "--kill-grace" run --kill-grace -1 -- true
	refused "--total-timeout" run --total-timeout x -- true
}

@test "errors: numbers" {
	for n in "" x -1 0 1.5 5x 99999999999; do
		refused "--pids-limit" run --pids-limit "$n" -- true
	done
	for n in "" x -1 0 5000 0.001; do
		refused "--cpus" run --cpus "$n" -- true
	done
	refused "--cpu-period" run --cpu-period 1 -- true
	refused "--cpu-quota" run --cpu-quota 1 -- true
	refused "--files" run --files 1 -- true
}

@test "errors: volumes" {
	mkdir there
	refused "--volume" run --volume there -- true
	refused "--volume" run --volume :/x -- true
	refused "--volume" run --volume there:x -- true
	refused "--volume" run --volume there:/x:wr -- true
	refused "--volume" run --volume "there:/x/../y" -- true
	refused "--volume" run --volume "there:/" -- true
	refused "--volume" run --volume $'there:/x\ny' -- true
	refused "missing" run --volume "$dir/missing:/x" -- true
}

@test "errors: paths" {
	refused "-w" run -w relative -- true
	refused "--workdir" run --workdir relative -- true
	refused "--writable" run --writable relative -- true
	refused "--tmpfs" run --tmpfs relative -- true
	refused "--tmpfs" run --tmpfs /a/../b -- true
	refused "missing" run --workspace "$dir/missing" -- true
	touch file
	refused "file" run --workspace "$dir/file" -- true
	refused "--copy-out" run --copy-out '*.txt' -- true
	refused "--copy-out" run --copy-out '=out' -- true
	refused "--copy-out" run --copy-out '*.txt=' -- true
}

@test "errors: environment entries" {
	refused "env: 'NOVALUE'" run --env NOVALUE -- true
	refused "--env" run --env =x -- true
	refused "-e" run -e "" -- true
	printf 'GOOD=1\nbad line\n' >vars
	refused "vars:2" run --env-file vars -- true
	refused "missing" run --env-file missing -- true
}

@test "errors: users, names, labels, layers" {
	refused "user 'someone'" run --user someone -- true
	refused "--user" run --user -1 -- true
	refused "--user" run --user 1: -- true
	refused "--user" run --user 4294967295 -- true
	refused "--name" run --name "" -- true
	refused "--name" run --name "a b" -- true
	refused "--name" run --name -x -- true
	refused "--label" run --label x -- true
	refused "--best-effort" run --best-effort everything -- true
}

@test "errors: what is refused or still to come" {
	refused "--allow-host" run --allow-host 0x7f000001 -- true
	refused "never reached" run --allow-host 169.254.169.254 -- true
	refused "--secret" run --secret example.com -- true
	refused "exclude each other" run --network none --allow-host example.com -- true
	refused "cordon.yaml" run --policy cordon.yaml -- true
	refused "not in this build" run --isolation vm -- true
	refused "not in this build" run --isolation docker -- true
	refused "not in this build" run --image debian -- true
	refused "--network" run --network host -- true
	refused "--network" run --network bridge -- true
	refused "refused" run --cap-add ALL -- true
	refused "refused" run --privileged=true -- true
}

@test "errors: code" {
	refused "-c needs --lang" run -c 'print()'
	refused "--lang needs code" run --lang python
	refused "no ending" run some-file
	refused "missing.py" run missing.py
	refused "directory" run --lang python "$dir"
}

@test "errors: other commands" {
	refused "doctor takes" doctor --frobnicate
	refused "numeric uid" doctor --grant-cgroup someone
	refused "completion takes" completion
	refused "completion takes" completion tcsh
	refused "version takes" version now
	refused "bench takes" bench 0
	refused "bench takes" bench many
}

@test "errors: control characters do not reach the terminal" {
	run --separate-stderr "$cordon" run -m $'5\033[31m' -- true
	is "$status" 125
	[[ $stderr != *$'\033'* ]]
}

@test "errors: a very long argument list is an error, not a crash" {
	run --separate-stderr "$cordon" run --env "A=$(head -c 100000 /dev/zero | tr '\0' x)" -- true
	is "$status" 0
	run --separate-stderr "$cordon" run -v "$(head -c 9000 /dev/zero | tr '\0' x):/x" -- true
	is "$status" 125
}
