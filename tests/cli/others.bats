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

@test "others: no message steers the terminal or turns text around" {
	local odd
	# Escape, C1 as UTF-8 and as a bare byte, bytes that are no UTF-8, bidi.
	for odd in $'\x1b[31m:<U+001B>[31m' $'\xc2\x9b:<U+009B>' $'\x9b:<0x9B>' $'\xff:<0xFF>' $'\xe2\x80:<0xE2><0x80>' \
		$'\xe2\x80\xae:<U+202E>' $'\xe2\x81\xa6:<U+2066>' $'\xd7\x90:<U+05D0>' $'\xe2\x80\x8b:<U+200B>' $'\n:<U+000A>' \
		$'\xc0\xaf:<0xC0><0xAF>' $'\xed\xa0\x80:<0xED><0xA0><0x80>'; do
		for command in "a${odd%%:*}b" run; do
			run --separate-stderr "$cordon" "$command" "--a${odd%%:*}b"
			is "$status" 125
			has "$stderr" "a${odd#*:}b"
			lacks "$stderr" "${odd%%:*}"
		done
		run --separate-stderr "$cordon" audit list "--a${odd%%:*}b"
		has "$stderr" "a${odd#*:}b"
	done
	# What people write stays as it is.
	run --separate-stderr "$cordon" $'gr\xc3\xbc\xc3\x9fe-\xe6\xbc\xa2'
	has "$stderr" $'gr\xc3\xbc\xc3\x9fe-\xe6\xbc\xa2'
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
	run bash -c '. ./comp && COMP_WORDS=(cordon run --memory-r) COMP_CWORD=2 && _cordon && echo "${COMPREPLY[@]}"'
	is "$status $output" "0 --memory-reservation="
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

# The desk's own table, a line a sub-command: command, name, takes, about.
words() { "$CORDON_BUILD/cordon-desk" words; }

flags_of() { grep -o -e '--[a-z-]*' <<<"$1"; }
verbs_of() { sed 's/.*takes//; s/;.*//; s/[,|]/ /g; s/ or / /g' <<<"$1"; }

# undocumented PAGE...: sub-commands and flags of the desk that no page names.
undocumented() {
	local text command name takes flag
	text=$(cat "$@" | sed 's/\\-/-/g; s/\\f[BIR]//g; s/^\.B[IR]* //; s/"//g')
	words | while IFS=$'\t' read -r command name takes _; do
		[[ $text == *"cordon $command $name"* ]] || echo "$command $name"
		for flag in $(flags_of "$takes"); do
			grep -F "cordon $command $name" <<<"$text" | grep -qF -e "$flag" ||
				echo "$command $name $flag"
		done
	done
}

@test "others: every sub-command and flag of the desk is in the manual" {
	[ "$(words | wc -l)" -ge 18 ]
	is "$(undocumented "$CORDON_BUILD/man/cordon.1")" ""
	# The check finds what is missing: a whole entry, a single flag.
	grep -v 'cordon audit verify' "$CORDON_BUILD/man/cordon.1" >less
	has "$(undocumented less)" "audit verify"
	sed 's/\\-\\-scope//' "$CORDON_BUILD/man/cordon.1" >less
	is "$(undocumented less)" "approvals approve --scope
approvals deny --scope"
	# Each verb that a command's own refusal names is in that table.
	for command in policy approvals audit; do
		run --separate-stderr "$cordon" "$command" frobnicate
		is "$status" 125
		for verb in $(verbs_of "$stderr"); do
			words | cut -f1,2 | grep -qE "^$command"$'\t'"(rules )?$verb( |\$)"
		done
		# And none is there that the command does not know.
		while IFS=$'\t' read -r name; do
			# shellcheck disable=SC2086
			run --separate-stderr "$cordon" "$command" $name --no-such-flag
			is "$status" 125
			[[ $stderr != *"$command takes "* && $stderr != *"audit' takes "* ]]
		done < <(words | grep "^$command" | cut -f2)
	done
}

@test "others: help for one command" {
	for command in policy approvals audit; do
		run --separate-stderr "$cordon" help "$command"
		is "$status" 0
		is "$stderr" ""
		is "$output" "$("$cordon" "$command" --help)"
		while read -r name; do
			has "$output" "  $name "
		done < <(words | grep "^$command" | cut -f2)
	done
	is "$("$cordon" help run)" "$("$cordon" run --help)"
	has "$("$cordon" help doctor)" "usage: cordon doctor [--json]"
	refused "there is no command 'frobnicate'" help frobnicate
}

@test "others: completions know the desk's sub-commands and flags" {
	"$cordon" completion bash >comp
	# completes WORD...: what bash offers for the last one
	completes() {
		# shellcheck disable=SC2016
		bash -c '. ./comp && COMP_WORDS=(cordon "$@") COMP_CWORD=$# && _cordon && echo "${COMPREPLY[*]}"' bash "$@"
	}
	is "$(completes policy '')" "check show explain test compile schema"
	is "$(completes approvals '')" "list show approve deny withdraw rules"
	is "$(completes approvals rules '')" "list remove"
	is "$(completes approvals rules list --)" "--json"
	is "$(completes approvals approve x --sc)" "--scope"
	is "$(completes audit ver)" verify
	is "$(completes audit verify --h)" "--head"
	is "$(completes policy explain --co)" "--command --connect"
	: >mine.yaml
	is "$(completes policy check mi)" mine.yaml
	for shell in bash zsh fish; do
		"$cordon" completion "$shell" >comp
		while IFS=$'\t' read -r command name takes _; do
			grep -q "$command.*${name##* }" comp
			for flag in $(flags_of "$takes"); do
				[ "$shell" != fish ] || flag="-l ${flag#--}"
				grep -q -e "$command.*${name##* }.*$flag" comp
			done
		done < <(words)
	done
	bash -n <("$cordon" completion bash)
	# Without the desk there is a message, not half a script.
	mkdir bin && cp "$cordon" bin/
	CORDON_LIBEXEC=$PWD/bin run --separate-stderr bin/cordon completion bash
	is "$status $output" "125 "
	has "$stderr" cordon-desk
}

@test "others: a fuzz target that is missing or fails is a failure" {
	local fuzz=$BATS_TEST_DIRNAME/../fuzz
	mkdir -p b/tests/fuzz
	run "$fuzz/run" b 1
	is "$status" 1
	has "$output" "there is no target"
	lacks "$output" "no target failed"
	for corpus in "$fuzz"/corpus/*/; do
		printf '#!/bin/sh\necho "Done 1 runs"\n' >"b/tests/fuzz/$(basename "$corpus")-fuzz"
	done
	chmod +x b/tests/fuzz/*
	run "$fuzz/run" b 1
	is "$status" 0
	is "$(grep -c '^Done' <<<"$output")" "$(find "$fuzz/corpus" -mindepth 1 -maxdepth 1 | wc -l)"
	has "$output" "no target failed"
	rm b/tests/fuzz/wire-fuzz
	run "$fuzz/run" b 1
	is "$status" 1
	run "$fuzz/run" b 1 no-such
	is "$status" 1
	printf '#!/bin/sh\nexit 77\n' >b/tests/fuzz/wire-fuzz && chmod +x b/tests/fuzz/wire-fuzz
	run "$fuzz/run" b 1 wire
	is "$status" 1
	has "$output" "status 77"
	# Each corpus has a replay in the ordinary build, and each replay a corpus.
	is "$(cd "$CORDON_BUILD/tests/fuzz" && printf '%s\n' *-replay | sed 's/-replay//' | sort)" "$(ls "$fuzz/corpus")"
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
