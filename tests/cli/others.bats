#!/usr/bin/env bats
# The other commands, and what is printed about all of them.
load common

@test "others: version" {
	run --separate-stderr "$cordon" version
	is "$status" 0
	[[ $output =~ ^cordon\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
	is "$("$cordon" --version)" "$output"
}

@test "others: help lists the commands" {
	for flag in --help -h help; do
		run --separate-stderr "$cordon" "$flag"
		is "$status" 0
		for name in run doctor bench completion version; do
			has "$output" "$name"
		done
	done
}

@test "others: run --help lists every flag of the specification" {
	run --separate-stderr "$cordon" run --help
	is "$status" 0
	is "$stderr" ""
	for flag in image timeout cpu-time memory cpus cpu-period cpu-quota pids-limit \
		output-limit network allow-host secret read-only volume tmpfs workspace \
		copy-out workdir user writable env env-file interactive tty name label \
		isolation policy best-effort json dry-run lang; do
		has "$output" "--$flag"
	done
	for letter in -m -v -w -u -e -i -t -c; do
		has "$output" "$letter,"
	done
}

@test "others: help is at most 100 columns wide" {
	[ "$("$cordon" run --help | wc -L)" -le 100 ]
}

@test "others: doctor says that the default policy can be enforced" {
	run --separate-stderr "$cordon" doctor
	is "$status" 0
	has "$output" "can be enforced here"
	for layer in "user namespaces" seccomp landlock "cgroup memory" "own uid"; do
		has "$output" "$layer"
	done
}

@test "others: doctor --json" {
	run --separate-stderr "$cordon" doctor --json
	is "$status" 0
	is "$(field can_enforce)" True
	has "$(field layers)" seccomp
}

@test "others: doctor has no colour in a pipe, and NO_COLOR wins" {
	[[ $("$cordon" doctor) != *$'\033'* ]]
	[[ $(CLICOLOR_FORCE=1 "$cordon" doctor) == *$'\033'* ]]
	[[ $(NO_COLOR=1 CLICOLOR_FORCE=1 "$cordon" doctor) != *$'\033'* ]]
}

@test "others: bash completion loads and completes" {
	"$cordon" completion bash >comp
	run bash -c '. ./comp && COMP_WORDS=(cordon run --mem) COMP_CWORD=2 && _cordon && echo "${COMPREPLY[@]}"'
	is "$status $output" "0 --memory="
	run bash -c '. ./comp && COMP_WORDS=(cordon do) COMP_CWORD=1 && _cordon && echo "${COMPREPLY[@]}"'
	is "$output" doctor
	run bash -c '. ./comp && COMP_WORDS=(cordon run --lang py) COMP_CWORD=3 && _cordon && echo "${COMPREPLY[@]}"'
	is "$output" python
	run bash -c '. ./comp && COMP_WORDS=(cordon image insp) COMP_CWORD=2 && _cordon && echo "${COMPREPLY[@]}"'
	is "$output" inspect
	bash -c '. ./comp; complete -p cordon' | grep -q _cordon
}

@test "others: zsh and fish completions name every flag" {
	for shell in zsh fish; do
		run --separate-stderr "$cordon" completion "$shell"
		is "$status" 0
		for flag in memory timeout volume copy-out; do
			has "$output" "$flag"
		done
	done
}

@test "others: bench prints a table" {
	run --separate-stderr "$cordon" bench 3
	is "$status" 0
	has "$output" "plain process"
	has "$output" "box"
}

@test "others: a closed standard output is not a crash" {
	run bash -c "'$cordon' run -- yes | head -n 1"
	is "$status ${lines[0]}" "0 y"
}

@test "others: runs beside each other do not mix" {
	for i in 1 2 3 4 5 6; do
		"$cordon" run -- sh -c "echo $i; sleep 0.2; echo $i" >"out$i" &
	done
	wait
	for i in 1 2 3 4 5 6; do
		is "$(tr -d '\n' <"out$i")" "$i$i"
	done
}

@test "others: the example of the library prints what it says" {
	run --separate-stderr env CORDON_LIBEXEC="$CORDON_BUILD" "$CORDON_BUILD/examples/run"
	is "$status" 0
	has "$output" "six times seven is 42"
	has "$output" "cause exited, exit code 1"
}
