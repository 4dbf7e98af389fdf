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
	refused "refused" run --privileged -- true
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

@test "errors: the message names the flag, the limit and what it takes" {
	refused "--env: 'FOO'" run -e FOO -- true
	refused "--user 'foo'" run -u foo -- true
	refused "take 0.01 to 4096" run --cpus 0.001 -- true
	refused "at least 1ms" run --timeout 0s -- true
	truncate -s 65M huge.py
	refused "larger than 64 MiB" run huge.py
	run --separate-stderr "$cordon" run --writable /usr/local -- true
	is "$status" 126
	has "$stderr" "denied: writable: "
	run --separate-stderr "$cordon" run --workspace /proc -- true
	is "$status" 126
	has "$stderr" "denied: workspace '/proc'"
}

@test "errors: an env file has NAME=VALUE and nothing else" {
	printf 'A=1\0B=2\n' >nul
	refused "nul:1: it has a byte 0" run --env-file nul -- env
	printf '# one\nexport C=3\n' >shell
	refused "shell:2: 'export C=3' has a blank in its name" run --env-file shell -- env
}

@test "errors: standard input that cannot be read is told" {
	run --separate-stderr bash -c '"$1" run --lang python - <&-' - "$cordon"
	is "$status $stderr" "125 cordon: standard input is closed"
	run --separate-stderr bash -c '"$1" run -i -- cat </' - "$cordon"
	has "$stderr" "read standard input: Is a directory"
}

@test "errors: standard output that cannot be written is told" {
	for line in 'run --dry-run -- true >&-' 'run --help >/dev/full' 'version >/dev/full' \
		'help >/dev/full' 'help run >/dev/full'; do
		run --separate-stderr bash -c "'$cordon' $line"
		is "$status $stderr" "125 cordon: standard output could not be written"
	done
}

@test "errors: a working directory that cannot be is refused before there is a box" {
	refused "invalid: workdir: '/usr/nonexist' does not exist" run -w /usr/nonexist -- pwd
	mkdir data
	refused "does not exist in volume '/data'" run -v "$PWD/data:/data" -w /data/nope -- pwd
}

@test "errors: a working directory that is none" {
	mkdir ws vol
	touch ws/f vol/f
	for at in /usr/bin/env /usr/bin/env/x /bin/sh/x; do
		refused "workdir: '$at' is not a directory" run -w $at -- true
	done
	refused "is not a directory" run --workspace ws -w /workspace/f -- true
	refused "is not a directory" run --workspace ws -w /workspace/f/x -- true
	refused "is not a directory" run -v "$dir/vol:/vol" -w /vol/f -- true
	# What only the box knows comes with what to do.
	refused "--workdir names another" run -w /etc/passwd -- true
}

@test "errors: a pattern of copy-out is of the workspace" {
	for glob in '/tmp/*' '../*' 'a/../b' '/workspace/../x' '/workspace/'; do
		refused "only files of /workspace are copied" run --copy-out "$glob=o" -- true
	done
	mkdir work
	refused "/workspace is a volume" run -v "$PWD/work:/workspace:rw" --copy-out '*=o' -- true
}

@test "errors: what is copied in is never written through a volume" {
	mkdir vol ws ws/sub
	echo host >vol/f
	echo copy >ws/f
	echo copy >ws/sub/f
	for at in /workspace:rw /workspace /workspace/:rw //workspace/.:rw \
		/workspace/sub:rw /workspace/sub; do
		refused "would be copied into the volume at" run -v "$dir/vol:$at" \
			--workspace ws -- true
		refused "would be copied into the volume at" run --dry-run \
			-v "$dir/vol:$at" --workspace ws -- true
	done
	is "$(cat vol/f)" host
	refused "a tmpfs that is ro" run --tmpfs /workspace:ro --workspace ws -- true
	# Where it has nothing, and beside the workspace, both may be there.
	run "$cordon" run -v "$dir/vol:/workspace/new:rw" --workspace ws -- cat new/f f
	is "$output" "host
copy"
	run "$cordon" run -v "$dir/vol:/vol:rw" --workspace ws -- cat /vol/f f
	is "$output" "host
copy"
	# And code of the request goes into such a volume, as it does to work_dir.
	run "$cordon" run -v "$dir/vol:/workspace:rw" --lang sh -c 'cat f'
	is "$output" host
	is "$(find vol -mindepth 1 -maxdepth 1 | wc -l)" 2
}

@test "errors: a target that is given twice" {
	mkdir one two
	for more in "-v $dir/two:/x" "-v $dir/two:/x/" "--tmpfs /x" \
		"--writable //x/."; do
		# shellcheck disable=SC2086
		refused "duplicate mount point '/x'" run -v "$dir/one:/x" $more -- true
	done
	# Below each other they are two places.
	run "$cordon" run -v "$dir/one:/x" --tmpfs /x2 --tmpfs /x2/y -- true
	is "$status" 0
}

@test "errors: an env file that cannot be read is not an empty one" {
	refused "Is a directory" run --env-file /tmp -- true
	refused "read '/proc/self/mem'" run --env-file /proc/self/mem -- true
	for special in /dev/zero /dev/tty0 fifo sock; do
		case $special in
		fifo) mkfifo fifo ;;
		sock) python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")' ;;
		/dev/tty0) [ -e /dev/tty0 ] || continue ;;
		esac
		run --separate-stderr timeout 10 "$cordon" run --env-file $special -- true
		is "$status ${#stderr_lines[@]}" "125 1"
		has "$stderr" "--env-file: "
	done
	head -c 1100000 /dev/zero | tr '\0' '#' >large
	refused "'large' has more than 1048576 bytes" run --env-file large -- true
	# A pipe of the shell is as good as a file.
	gives 0 "1 2" --env-file <(printf 'A=1\nB=2') -- sh -c 'echo $A $B'
	echo A=3 | (run "$cordon" run --env-file /dev/stdin -- sh -c 'echo $A'; is "$output" 3)
	gives 0 "" --env-file /dev/null -- true
}
