# shellcheck shell=bash
# What the tests of the command line share. $CORDON_BUILD is the build tree.
bats_require_minimum_version 1.5.0

setup() {
	: "${CORDON_BUILD:=$(cd "$BATS_TEST_DIRNAME/../../build" && pwd)}"
	cordon=$CORDON_BUILD/cordon
	dir=$BATS_TEST_TMPDIR
	cd "$dir" || return
}

# is HAVE WANT: compares, and shows both.
is() {
	[ "$1" = "$2" ] || { printf 'have: %s\nwant: %s\n' "$1" "$2"; return 1; }
}

# has HAVE PART
has() {
	[[ $1 == *"$2"* ]] || { printf 'have: %s\nwithout: %s\n' "$1" "$2"; return 1; }
}

# lacks HAVE PART
lacks() {
	[[ $1 != *"$2"* ]] || { printf 'have: %s\nwith: %s\n' "$1" "$2"; return 1; }
}

# gives STATUS OUTPUT ARG...: `cordon run ARG...` ends so, and says nothing else.
gives() {
	local want=$1 text=$2
	shift 2
	run --separate-stderr "$cordon" run "$@"
	is "$status" "$want" && is "$output" "$text" && is "$stderr" ""
}

# refused PART ARG...: a bad call: 125, nothing on stdout, one line on stderr
# that starts with our name and has PART in it.
refused() {
	local part=$1
	shift
	run --separate-stderr "$cordon" "$@"
	is "$status" 125 && is "$output" "" && is "${#stderr_lines[@]}" 1 &&
		has "$stderr" "cordon: " && has "$stderr" "$part"
}

# field NAME: of the result document in $output, as Python prints it.
field() {
	python3 -c 'import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."):
    value = value[int(name) if name.isdigit() else name]
print(value)' "$1" <<<"$output"
}

# Waits until a command is true, for 20 s at most.
until_true() {
	for _ in $(seq 200); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	echo "never true: $*"
	return 1
}
