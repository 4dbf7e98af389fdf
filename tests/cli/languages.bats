#!/usr/bin/env bats
# Code in each language: it runs where the program is in /usr, and where it is
# not the error names the program.
load common

# Where the box looks for programs.
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/usr/local/go/bin

# speaks LANG PROGRAM CODE [FLAG...]: the code prints "42".
speaks() {
	local lang=$1 program=$2 code=$3
	shift 3
	if PATH=$path command -v "$program" >/dev/null; then
		gives 0 42 "$@" --lang "$lang" -c "$code"
	else
		run --separate-stderr "$cordon" run --lang "$lang" -c "$code"
		is "$status" 127 && is "$output" "" && has "$stderr" "'$program'"
	fi
}

@test "languages: python, under each of its names" {
	for name in python py python3 Python PY; do
		speaks "$name" python3 'print(6 * 7)'
	done
}

@test "languages: an exact python" {
	version=$(python3 -c 'import sys; print("python3.%d" % sys.version_info[1])')
	[ -x "/usr/bin/$version" ] && gives 0 42 --lang "$version" -c 'print(6 * 7)'
	run --separate-stderr "$cordon" run --lang python3.99 -c 'print(6 * 7)'
	is "$status" 127
	has "$stderr" "python3.99"
}

@test "languages: sh" {
	speaks sh sh 'echo $((6 * 7))'
	speaks shell sh 'echo $((6 * 7))'
}

@test "languages: bash" { speaks bash bash 'a=(6 7); echo $((a[0] * a[1]))'; }

@test "languages: javascript" {
	speaks javascript node 'console.log(6 * 7)' -m 1g --cpus 1
	speaks js node 'console.log(6 * 7)' -m 1g --cpus 1
	speaks node node 'console.log(6 * 7)' -m 1g --cpus 1
}

@test "languages: perl" { speaks perl perl 'print 6 * 7, "\n"'; }
@test "languages: ruby" { speaks ruby ruby 'puts 6 * 7'; }
@test "languages: lua" { speaks lua lua 'print(6 * 7)'; }
@test "languages: php" { speaks php php '<?php echo 6 * 7, "\n";'; }
@test "languages: r" { speaks r Rscript 'cat(6 * 7, "\n", sep = "")' -m 512m; }

@test "languages: c" {
	speaks c cc $'#include <stdio.h>\n#include <math.h>\nint main(void) { printf("%.0f\\n", fmin(42, 43)); }'
}

@test "languages: c++" {
	for name in c++ cpp; do
		speaks "$name" c++ $'#include <iostream>\nint main() { std::cout << 6 * 7 << "\\n"; }' --cpus 1
	done
}

@test "languages: go" {
	speaks go go $'package main\nimport "fmt"\nfunc main() { fmt.Println(6 * 7) }' \
		--cpus 2 -m 2g --timeout 2m --tmpfs /tmp:size=512m --disk 512m
}

@test "languages: rust" {
	speaks rust rustc 'fn main() { println!("{}", 6 * 7); }' -m 1g --cpus 1
}

@test "languages: an unknown one is not found, and nothing runs" {
	run --separate-stderr "$cordon" run --lang cobol -c 'x'
	is "$status" 127
	is "$output" ""
	has "$stderr" "unknown language cobol"
	run "$cordon" run --json --lang cobol -c 'x'
	is "$(field cause) $(field status)" "not_found error"
}

@test "languages: a failing program fails, with its own words" {
	run --separate-stderr "$cordon" run --lang python -c 'nonsense'
	is "$status" 1
	has "$stderr" NameError
}

@test "languages: a compile error is an ordinary failure" {
	run --separate-stderr "$cordon" run --lang c -c 'nonsense'
	is "$status" 1
	has "$stderr" error
	run "$cordon" run --json --lang c -c 'nonsense'
	is "$(field cause)" exited
}

@test "languages: a file, its ending names the language" {
	echo 'print(6 * 7)' >a.py
	gives 0 42 a.py
	echo 'echo $((6 * 7))' >a.sh
	gives 0 42 a.sh
	echo 'print 6 * 7' >a.pl
	gives 0 42 a.pl
	printf '#include <stdio.h>\nint main(void) { puts("42"); }\n' >a.c
	gives 0 42 a.c
}

@test "languages: --lang wins over the ending" {
	echo 'print(6 * 7)' >a.sh
	gives 0 42 --lang python a.sh
}

@test "languages: - is standard input" {
	is "$(echo 'print(6 * 7)' | "$cordon" run --lang python -)" 42
}

@test "languages: code from -c and standard input for the program" {
	is "$(echo text | "$cordon" run -i --lang python -c 'print(input().upper())')" TEXT
}

@test "languages: arguments after the code" {
	gives 0 "a b c" --lang python -c 'import sys; print(*sys.argv[1:])' a "b c"
	echo 'echo "$1-$2"' >a.sh
	gives 0 "--x---y" a.sh --x --y
}

@test "languages: empty code and code with a NUL" {
	gives 0 "" --lang python -c ''
	printf 'print(6 * 7)\n' >a.py
	gives 0 42 a.py
	printf 'echo 42\n#\0\n' >a.sh
	gives 0 42 a.sh
}

@test "languages: the filename directive names the file, and stays in it" {
	gives 0 "$(printf '/workspace/sub/my file.py\n# filename: sub/my file.py')" --lang python -c \
		$'# filename: sub/my file.py\nprint(__file__); print(open(__file__).readline().strip())'
	run "$cordon" run --json --lang python -c $'# Filename:  x:y.py\npass'
	is "$(field code_file)" /workspace/x:y.py
}

@test "languages: a filename that leaves the workspace is denied" {
	for name in /etc/x ../x a/../../x; do
		run "$cordon" run --json --lang python -c "# filename: $name"
		is "$(field cause) $(field exit_code)" "denied 1"
		has "$(field message)" "Filename is not in the workspace"
	done
}

@test "languages: the file has the code's lines, in the workspace, 0600" {
	gives 0 "600" --lang python -c 'import os; print("%o" % (os.stat(__file__).st_mode & 0o7777))'
	run "$cordon" run --json --lang python -c 'pass'
	has "$(field code_file)" /workspace/code_
	is "$(field files)" "[]"
}

@test "languages: --json has one run for the block, and the joined output" {
	run "$cordon" run --json --lang sh -c 'echo out; echo err >&2; exit 4'
	is "$(field runs.0.exit_code) $(field exit_code)" "4 4"
	is "$(field output)" $'out\nerr'
}

@test "languages: go that had too little is told what it needs" {
	command -v go >/dev/null || skip "there is no go here"
	printf 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(1) }\n' >h.go
	run --separate-stderr "$cordon" run --timeout 1s h.go
	is "$status" 124
	has "$stderr" "go needs about --memory 512m --tmpfs /tmp:size=256m --cpus 2 --timeout 2m"
}
