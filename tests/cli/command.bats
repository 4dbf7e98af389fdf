#!/usr/bin/env bats
# cordon run --command: a command line without a shell.
load common

# line STATUS OUTPUT TEXT
line() {
	gives "$1" "$2" --command "$3"
}

@test "command: words and quotes" {
	line 0 "a b  c" "echo a b '' 'c'"
	line 0 'x;y | z && $HOME' "echo 'x;y | z && \$HOME'"
	line 0 'a"b' 'echo "a\"b"'
	line 0 "a b" 'echo a\ b'
}

@test "command: && and || go by the status, ; does not" {
	line 0 "yes" "true && echo yes"
	line 1 "" "false && echo yes"
	line 0 "no" "false || echo no"
	line 0 "" "true || echo no"
	line 0 "c" "false && echo a || false || echo c"
	line 0 "b" "false ; echo b"
	line 1 "a" "echo a ; false"
	line 0 "a
b" "echo a
echo b"
}

@test "command: a pipe joins what runs at once" {
	line 0 "2" "printf 'a\nb\n' | wc -l"
	line 0 "3" "printf '%s\n' b a c | sort | uniq | wc -l"
	line 0 "y" "yes | head -n 1"
	line 1 "" "true | false"
	line 0 "" "false | true"
	line 0 "ok" "printf a | grep -q a && echo ok"
}

@test "command: standard input goes to the first program" {
	is "$(printf 'a\nb\n' | "$cordon" run -i --command "cat | wc -l")" 2
}

@test "command: both streams of all programs are kept" {
	run --separate-stderr "$cordon" run --command "ls /nowhere | cat ; echo out"
	is "$status" 0
	is "$output" out
	has "$stderr" nowhere
}

@test "command: a program that is not there is 127, and nothing after it runs" {
	run --separate-stderr "$cordon" run --command "echo a | no-such-program | cat ; echo b"
	is "$status" 127
	has "$stderr" no-such-program
	lacks "$output" b
}

@test "command: the time limit is for the whole line, and ends all of it" {
	run --separate-stderr "$cordon" run --timeout 1s --command "sleep 30 | sleep 30 ; sleep 30"
	is "$status" 124
}

@test "command: what is not understood is not run" {
	for text in 'echo $(id)' 'echo `id`' 'echo $HOME' 'echo a > b' 'cat < a' \
		'echo a &' 'a=b echo c' '(echo a)' 'echo *' 'if true; then id; fi' \
		'echo "$x"' 'echo a #b' 'echo ~' '! true' 'echo {a,b}'; do
		run --separate-stderr "$cordon" run --command "$text"
		is "$status" 126
		is "$output" ""
		has "$stderr" "denied"
	done
}

@test "command: no words after it" {
	refused "" run --command 'echo a' -- echo b
	refused "" run --command ''
}
