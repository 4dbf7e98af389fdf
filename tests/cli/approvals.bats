#!/usr/bin/env bats
# cordon approvals, and the asking behind it.
# A function and a file are called request; bats runs each test in a subshell.
# shellcheck disable=SC2094,SC2030,SC2031
load common

setup_file() {
	# A pipe that never ends would keep bats waiting for a lost asker.
	export BATS_TEST_TIMEOUT=60
}

# What common.bash does, and a store of its own.
eval "common_$(declare -f setup)"
setup() {
	common_setup
	desk=$CORDON_BUILD/cordon-desk
	export CORDON_STATE_DIR=$dir/state CORDON_SESSION=test
	unset pid
}

teardown() {
	[ -z "${pid-}" ] || kill "$pid" 2>/dev/null || :
}

# request [KEY=JSON...]: a request, with keys replaced, added or (empty) left out.
request() {
	python3 -c 'import json, sys
r = {"version": 1, "kind": "command", "programs": [{"join": "", "argv": ["git", "push"]}],
     "why": "the policy asks", "rule": "commands.ask: git push", "file": "/w/cordon.yaml",
     "line": 12, "changes": ["the remote"], "ask": ["store"], "expire_ms": 20000}
for pair in sys.argv[1:]:
    key, value = pair.split("=", 1)
    if value: r[key] = json.loads(value)
    else: r.pop(key, None)
print(json.dumps(r))' "$@"
}

code() {
	python3 -c 'import hashlib, json, sys
text = sys.argv[1].encode()
print("text=" + json.dumps(sys.argv[1]))
print("bytes=%d" % len(text))
print("sha256=" + json.dumps(hashlib.sha256(text).hexdigest()))' "$1"
}

# ask [KEY=JSON...]: asks in the background, without a terminal; $id waits.
ask() {
	request "$@" >request
	setsid "$desk" approvals ask <request >answer 2>said 3>&- &
	pid=$!
	id=
	for _ in $(seq 100); do
		id=$(grep -o 'show [a-z0-9]*' said | cut -c6-) && [ -n "$id" ] && return
		sleep 0.05
	done
	cat said
	return 1
}

# answered STATUS DECISION: the asker ended so.
answered() {
	local have=0
	wait "$pid" || have=$?
	pid=
	is "$have" "$1"
	output=$(cat answer)
	is "$(field decision)" "$2"
}

# standing STATUS [KEY=JSON...]: asked again; allowed without a person (0), or
# it expires (1).
standing() {
	local want=$1
	shift
	run --separate-stderr setsid "$desk" approvals ask < <(request expire_ms=150 "$@")
	is "$status" "$want"
}

@test "approvals: an answer from another process reaches the asker, with its reason" {
	ask
	run --separate-stderr "$cordon" approvals approve "$id" --reason "looked at it"
	is "$status $output" "0 $id allowed, once"
	answered 0 allow
	is "$(field id) $(field scope) $(field reason)" "$id once looked at it"
	has "$(field by)" "$(id -un)"
	ask
	run --separate-stderr "$cordon" approvals deny "$id" --reason="not today"
	is "$status $output" "0 $id denied"
	answered 1 deny
	is "$(field reason)" "not today"
}

@test "approvals: list and show have everything a person needs" {
	ask 'agent="coder"' 'programs=[{"join":"","argv":["git","push","a b"]},{"join":"&&","argv":["ls"]}]'
	run --separate-stderr "$cordon" approvals list
	is "$status" 0
	has "${lines[0]}" "ID"
	has "${lines[1]}" "$id"
	has "${lines[1]}" "coder, "
	has "${lines[1]}" "git push 'a b' && ls"
	has "${lines[1]}" "commands.ask: git push"
	run --separate-stderr "$cordon" approvals show "${id:0:5}"
	is "$status" 0
	for part in "git push 'a b'" "&& ls" "the policy asks" "commands.ask: git push" \
		"/w/cordon.yaml:12" "the remote" coder "$(id -un)" waiting "named test" expires; do
		has "$output" "$part"
	done
	run --separate-stderr "$cordon" approvals list --json
	is "$(field 0.id)" "$id"
	is "$(field 0.request.programs.0.argv.2)" "a b"
	"$cordon" approvals deny "$id" >/dev/null
	answered 1 deny
	is "$("$cordon" approvals list)" "nothing waits for an answer"
	has "$("$cordon" approvals list --all)" denied
	is "$("$cordon" approvals list --json)" "[]"
}

@test "approvals: unknown, ambiguous, answered and expired ids say so" {
	for command in show approve deny; do
		refused "there is no request" approvals "$command" zzzzzz
		refused "there is no request" approvals "$command" '*'
		refused "there is no request" approvals "$command" ''
	done
	# More requests than first letters: two of them begin alike.
	for _ in $(seq 31); do
		setsid "$desk" approvals ask < <(request expire_ms=60000) >/dev/null 2>&1 3>&- &
		echo $! >>pids
	done
	for _ in $(seq 100); do
		[ "$("$cordon" approvals list --json | grep -o made_ms | wc -l)" -lt 31 ] || break
		sleep 0.1
	done
	two=$("$cordon" approvals list | tail -n +2 | cut -c1 | sort | uniq -d | head -n 1)
	[ -n "$two" ]
	refused "several requests begin with" approvals approve "$two"
	xargs kill <pids
	ask expire_ms=600
	"$cordon" approvals approve "$id" >/dev/null
	answered 0 allow
	run --separate-stderr "$cordon" approvals deny "$id"
	is "$status" 1
	has "$stderr" "already allowed by $(id -un)"
	ask expire_ms=300
	answered 1 deny
	has "$(field reason)" "in time"
	run --separate-stderr "$cordon" approvals approve "$id"
	is "$status" 1
	has "$stderr" "expired"
}

@test "approvals: bad calls" {
	refused "approvals takes" approvals
	refused "approvals takes" approvals frob
	refused "approvals takes" approvals rules frob
	refused "an id is missing" approvals approve
	refused "--scope takes" approvals approve x --scope for-ever
	refused "--scope takes" approvals approve x --scope
	refused "--reason takes" approvals deny x --reason
	refused "'--scope' is not a flag" approvals withdraw x --scope once
	refused "one argument too many" approvals list x
	refused "--resume" approvals ask --frob
}

@test "approvals: an asker that was killed finds its answer after a restart, once" {
	ask
	kill -9 "$pid"
	wait "$pid" || :
	has "$("$cordon" approvals list)" "$id"
	"$cordon" approvals approve "$id" --reason later >/dev/null
	run --separate-stderr "$desk" approvals ask --resume "$id" <request
	is "$status" 0
	is "$(field decision) $(field reason)" "allow later"
	run --separate-stderr "$desk" approvals ask --resume "$id" <request
	is "$status" 1
	has "$(field reason)" "used already"
}

@test "approvals: of one that nobody waits for the ledger has no command, where the policy says so" {
	for keep in commands code; do
		printf 'version: 1\nledger: {keep_text: [%s]}\ncommands: {ask: [echo]}\n' $keep >p.yaml
		: >said
		setsid "$cordon" run --policy p.yaml --timeout 5s -- echo "much-ado-$keep" >answer 2>said 3>&- &
		pid=$!
		for _ in $(seq 100); do
			id=$(grep -o 'show [a-z0-9]*' said | cut -c6-) && [ -n "$id" ] && break
			sleep 0.05
		done
		kill -9 "$pid"
		wait "$pid" || :
		# The desk sees its asker go.
		sleep 0.3
		"$cordon" approvals approve "$id" >/dev/null
		grep -h '"kind":"approval' "$CORDON_STATE_DIR"/ledger/*.jsonl >"records.$keep"
	done
	has "$(cat records.commands)" "echo much-ado-commands"
	lacks "$(grep -vxFf records.commands records.code)" much-ado-code
	has "$(grep -vxFf records.commands records.code)" "a command"
}

@test "approvals: the same request again takes up what its killed asker left, once" {
	ask
	first=$id
	kill -9 "$pid"
	wait "$pid" || :
	"$cordon" approvals approve "$id" --reason "while you were out" >/dev/null
	standing 1 'programs=[{"join":"","argv":["git"]}]'
	standing 0
	is "$(field id) $(field reason)" "$first while you were out"
	standing 1
	# One that still waits is the same request, with its whole time again.
	ask expire_ms=3000
	first=$id
	kill -9 "$pid"
	wait "$pid" || :
	ask expire_ms=20000
	is "$id" "$first"
	# While its asker lives it is not taken over.
	standing 1
	[ "$(field id)" != "$first" ]
	"$cordon" approvals approve "$id" >/dev/null
	answered 0 allow
}

@test "approvals: resuming waits where there is no answer yet, and only for the same" {
	ask
	kill -9 "$pid"
	wait "$pid" || :
	run --separate-stderr "$desk" approvals ask --resume "$id" < <(request 'why="x"' 'changes=["more"]')
	is "$status $(field decision)" "125 deny"
	has "$stderr" "something else"
	run --separate-stderr "$desk" approvals ask --resume zzzzzz <request
	is "$status $(field decision)" "125 deny"
	setsid "$desk" approvals ask --resume "$id" <request >answer 2>said 3>&- &
	pid=$!
	sleep 0.3
	"$cordon" approvals approve "$id" >/dev/null
	answered 0 allow
}

@test "approvals: an end by SIGTERM denies now and leaves the request, SIGINT withdraws it" {
	ask
	kill "$pid"
	answered 1 deny
	has "$("$cordon" approvals list)" "$id"
	ask
	kill -INT "$pid"
	answered 1 deny
	is "$(field reason)" interrupted
	[[ $("$cordon" approvals list) != *"$id"* ]]
}

@test "approvals: nobody answers: denied when the time is over" {
	start=$(date +%s%N)
	ask expire_ms=700
	answered 1 deny
	has "$(field reason)" "nobody answered"
	took=$((($(date +%s%N) - start) / 1000000))
	[ "$took" -ge 650 ] && [ "$took" -lt 5000 ]
	run --separate-stderr "$desk" approvals ask --resume "$id" <request
	is "$status" 1
}

@test "approvals: always allows exactly the same request, and is taken back" {
	ask
	"$cordon" approvals approve "$id" --scope always --reason "every day" >/dev/null
	answered 0 allow
	is "$(field scope)" always
	unset CORDON_SESSION
	standing 0
	is "$(field decision) $(field scope) $(field reason)" "allow always every day"
	# The line may move, the words of the question may change.
	standing 0 line=99 'why="other words"'
	standing 1 'programs=[{"join":"","argv":["git","push","origin"]}]'
	standing 1 'programs=[{"join":"","argv":["git"]}]'
	standing 1 'programs=[{"join":"","argv":["git push"]}]'
	standing 1 'programs=[{"join":"","argv":["git","push"]},{"join":";","argv":["ls"]}]'
	standing 1 'rule="commands.ask: git"'
	standing 1 'file="/other/cordon.yaml"'
	standing 1 'agent="coder"'
	standing 1 'changes=["the remote","more"]'
	run --separate-stderr "$cordon" approvals rules list
	has "$output" "$id"
	has "$output" "git push"
	has "$output" "every day"
	refused "there is no" approvals rules remove || is "$status" 125
	run --separate-stderr "$cordon" approvals rules remove "$id"
	is "$status $output" "0 $id removed"
	run --separate-stderr "$cordon" approvals rules remove "$id"
	is "$status" 1
	standing 1
}

@test "approvals: joiners and code count: always for one is not for another" {
	mapfile -t text < <(code 'print(1)')
	ask 'kind="code"' programs= 'language="python"' "${text[@]}"
	"$cordon" approvals approve "$id" --scope always >/dev/null
	answered 0 allow
	standing 0 'kind="code"' programs= 'language="python"' "${text[@]}"
	standing 1 'kind="code"' programs= 'language="node"' "${text[@]}"
	mapfile -t text < <(code 'print(1) ')
	standing 1 'kind="code"' programs= 'language="python"' "${text[@]}"
	ask 'programs=[{"join":"","argv":["a"]},{"join":"&&","argv":["b"]}]'
	"$cordon" approvals approve "$id" --scope always >/dev/null
	answered 0 allow
	standing 0 'programs=[{"join":"","argv":["a"]},{"join":"&&","argv":["b"]}]'
	standing 1 'programs=[{"join":"","argv":["a"]},{"join":"||","argv":["b"]}]'
}

@test "approvals: a session's answer is for that session alone" {
	ask
	"$cordon" approvals approve "$id" --scope session >/dev/null
	answered 0 allow
	is "$(field scope)" session
	standing 0
	is "$(field scope)" session
	CORDON_SESSION=other standing 1
	CORDON_SESSION='' standing 1
	standing 1 'programs=[{"join":"","argv":["git","pull"]}]'
	has "$("$cordon" approvals rules list)" session
	[ ! -e "$CORDON_STATE_DIR/rules.json" ]
	"$cordon" approvals rules remove "$id" >/dev/null
	standing 1
}

@test "approvals: without CORDON_SESSION the session is the terminal session's leader" {
	unset CORDON_SESSION
	request >request
	# One leader, which asks twice; then another one.
	cat >leader <<-'EOS'
		"$1" approvals ask <request >answer1 2>said
		"$1" approvals ask <request >answer2 2>/dev/null
	EOS
	setsid bash leader "$desk" 3>&- &
	pid=$!
	for _ in $(seq 100); do
		id=$(grep -o 'show [a-z0-9]*' said 2>/dev/null | cut -c6-) && [ -n "$id" ] && break
		sleep 0.05
	done
	"$cordon" approvals approve "$id" --scope session >/dev/null
	wait "$pid"
	pid=
	has "$(cat answer1)" '"decision":"allow","scope":"session"'
	has "$(cat answer2)" '"decision":"allow","scope":"session"'
	standing 1
}

@test "approvals: rules that cannot be read allow nothing, are said, and are not written over" {
	ask
	"$cordon" approvals approve "$id" --scope always >/dev/null
	answered 0 allow
	rules=$CORDON_STATE_DIR/rules.json
	cp "$rules" good
	for broken in '' '[]' 'text' '{"version": 1}' '{"version": 2, "rules": []}' \
		'{"version": 1, "rules": [], "more": 1}' "$(head -c 100 good)" "$(cat good good)"; do
		printf '%s' "$broken" >"$rules"
		standing 1
		has "$stderr" "nothing is allowed by it"
	done
	ask
	run --separate-stderr "$cordon" approvals approve "$id" --scope always
	is "$status" 125
	has "$stderr" "rules.json"
	is "$(cat "$rules")" "$(cat good good)"
	run --separate-stderr "$cordon" approvals rules list
	is "$status" 125
	"$cordon" approvals deny "$id" >/dev/null
	answered 1 deny
	cp good "$rules"
	standing 0
	chmod 622 "$rules"
	standing 1
	chmod 600 "$rules"
	mv "$rules" "$dir/elsewhere"
	ln -s "$dir/elsewhere" "$rules"
	standing 1
	has "$stderr" "nothing is allowed by it"
}

@test "approvals: a damaged store denies, and says so" {
	ask
	"$cordon" approvals approve "$id" --scope session >/dev/null
	answered 0 allow
	standing 0
	db=$CORDON_STATE_DIR/approvals.sqlite
	cp "$db" good
	echo 'this is text' >"$db"
	standing 125
	is "$(field decision)" deny
	has "$stderr" "damaged"
	head -c 5000 good >"$db"
	standing 125
	is "$(field decision)" deny
	refused "damaged" approvals list
	cp good "$db"
	python3 - "$db" <<-'EOS'
		import sys
		data = bytearray(open(sys.argv[1], "rb").read())
		at = data.rindex(b"git push")
		data[at] ^= 1
		open(sys.argv[1], "wb").write(data)
	EOS
	run --separate-stderr setsid "$desk" approvals ask < <(request expire_ms=150)
	[ "$status" -ne 0 ]
	cp good "$db"
	standing 0
	: >"$db"
	standing 1
}

@test "approvals: a store or directory that is not ours alone is refused" {
	standing 1
	state=$CORDON_STATE_DIR
	is "$(stat -c %a "$state" "$state/approvals.sqlite" | tr '\n' ' ')" "700 600 "
	chmod 777 "$state"
	standing 125
	has "$stderr" "written by others"
	chmod 700 "$state"
	chmod 666 "$state/approvals.sqlite"
	standing 125
	chmod 600 "$state/approvals.sqlite"
	standing 1
	mv "$state/approvals.sqlite" "$dir/elsewhere.sqlite"
	ln -s "$dir/elsewhere.sqlite" "$state/approvals.sqlite"
	standing 125
	rm "$state/approvals.sqlite"
	ln "$dir/elsewhere.sqlite" "$state/approvals.sqlite"
	standing 125
	ln -s "$state" "$dir/link"
	CORDON_STATE_DIR=$dir/link standing 125
	CORDON_STATE_DIR=relative standing 125
	CORDON_STATE_DIR=/proc/nowhere standing 125
	is "$(field decision)" deny
}

@test "approvals: a store that cannot be read denies" {
	standing 1
	if [ "$(id -u)" -eq 0 ]; then
		chown 65534 "$CORDON_STATE_DIR/approvals.sqlite"
	else
		chmod 000 "$CORDON_STATE_DIR/approvals.sqlite"
	fi
	standing 125
	is "$(field decision)" deny
}

@test "approvals: where only the terminal may be asked and there is none, it is denied at once" {
	run --separate-stderr setsid "$desk" approvals ask < <(request 'ask=["terminal"]')
	is "$status $(field decision)" "1 deny"
	has "$(field reason)" "no terminal"
	# With both, the store is left.
	ask 'ask=["terminal","store"]'
	"$cordon" approvals approve "$id" >/dev/null
	answered 0 allow
}

@test "approvals: requests that are not exactly understood are denied" {
	for bad in '' '{}' '[]' 'x' '{"version":1}' "$(request)x" "$(request) $(request)" \
		"$(request 'more=1')" "$(request version=2)" "$(request 'kind="frob"')" \
		"$(request programs=)" "$(request 'programs=[]')" \
		"$(request 'programs=[{"join":"","argv":[]}]')" \
		"$(request 'programs=[{"join":"|","argv":["a"]}]')" \
		"$(request 'programs=[{"join":"","argv":["a\u0000b"]}]')" \
		"$(request 'programs=[{"join":"","argv":[1]}]')" \
		"$(request 'ask=[]')" "$(request 'ask=["all"]')" "$(request rule=)" \
		"$(request 'why=""')" "$(request expire_ms=0)" "$(request expire_ms=-1)" \
		"$(request 'target="x"')" "$(request 'kind="code"')" \
		"$(request 'kind="code"' programs= 'language="sh"' 'text="a"' bytes=1 "sha256=\"$(printf '%064d' 0)\"")"; do
		run --separate-stderr "$desk" approvals ask <<<"$bad"
		is "$status" 125
		is "$(field decision)" deny
		has "$stderr" "not approved: "
	done
	head -c 3000000 /dev/zero | tr '\0' ' ' >large
	run --separate-stderr "$desk" approvals ask <large
	is "$status" 125
	is "$("$cordon" approvals list)" "nothing waits for an answer"
}

@test "approvals: what a model wrote cannot steer the terminal or hide itself" {
	mapfile -t text < <(code $'x = 1 \u202e}\u2066 if admin\n\x1b[2Jclear\tit\r\n\u200bzero \u05d0')
	ask 'kind="code"' programs= 'language="python"' "${text[@]}" \
		'why="line\nbreak \u001b]0;title\u0007"' 'agent="\u009b31m"' 'changes=["\u2028"]'
	"$cordon" approvals show "$id" >shown
	"$cordon" approvals list >>shown
	LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' shown && return 1
	for bytes in '\xe2\x80\xae' '\xe2\x81\xa6' '\xe2\x80\x8b' '\xd7\x90' '\xc2\x9b' '\xe2\x80\xa8'; do
		LC_ALL=C grep -qP "$bytes" shown && return 1
	done
	for part in '<U+202E>' '<U+2066>' '<U+001B>[2Jclear<TAB>it<U+000D>' '<U+200B>zero <U+05D0>' \
		'line<U+000A>break' '<U+009B>31m' '<U+2028>'; do
		grep -qF -- "$part" shown || { cat shown; echo "without $part"; return 1; }
	done
	"$cordon" approvals deny "$id" >/dev/null
	answered 1 deny
	ask 'programs=[{"join":"","argv":["rm","-rf","a\u202eb","c\nd","e\u001b[0m","it'"'"'s",{"base64":"/w=="},""]}]'
	run --separate-stderr "$cordon" approvals show "$id"
	has "$output" "rm -rf \$'a\\u202eb' \$'c\\nd' \$'e\\x1b[0m' \$'it\\'s' \$'\\xff' ''"
	has "$output" "outside ASCII"
	"$cordon" approvals deny "$id" >/dev/null
	answered 1 deny
}

@test "approvals: long text is cut, with its length and hash, and shown whole on demand" {
	long=$(printf 'x%.0s' $(seq 20000))END
	mapfile -t text < <(code "$long")
	ask 'kind="code"' programs= 'language="sh"' "${text[@]}"
	run --separate-stderr "$cordon" approvals show "$id"
	[[ $output != *END* ]]
	has "$output" "20003 bytes, sha256 $(printf %s "$long" | sha256sum | cut -d' ' -f1)"
	has "$output" "(cut; "
	run --separate-stderr "$cordon" approvals show "$id" --full
	has "$output" "xEND"
	"$cordon" approvals deny "$id" >/dev/null
	answered 1 deny
}

@test "approvals: the asker's terminal alone may answer where the policy says so" {
	request 'ask=["terminal"]' 'expire_ms=3000' >request
	(sleep 2) | script -qec "$desk approvals ask <request >answer" /dev/null >screen 2>&1 &
	pid=$!
	for _ in $(seq 100); do
		id=$("$cordon" approvals list --json | grep -o '"id":"[^"]*' | cut -c7-) && [ -n "$id" ] && break
		sleep 0.02
	done
	refused "terminal only" approvals approve "$id"
	wait "$pid" || :
	pid=
	output=$(cat answer)
	is "$(field decision)" deny
}

@test "approvals: a run that asks waits for its answer, and both are on the record" {
	printf 'version: 1\nextends: cautious\napprovals: {expire: 30s}\n' >p.yaml
	export CORDON_STATE_DIR=$dir/run-state
	setsid "$cordon" run --policy p.yaml -- echo ended --password hunter2 >out 2>err &
	asker=$!
	for _ in $(seq 100); do
		id=$("$cordon" approvals list --json | grep -o '"id":"[^"]*"' | head -1 | cut -d'"' -f4)
		[ -z "$id" ] || break
		sleep 0.1
	done
	"$cordon" approvals approve "$id" --reason "seen"
	wait "$asker"
	is "$(cat out)" "ended --password hunter2"
	run "$cordon" audit list
	has "$output" "approval.request"
	has "$output" "seen"
	lacks "$(cat "$CORDON_STATE_DIR"/ledger/*.jsonl)" hunter2
	"$cordon" audit verify
}

# asking_run [ARG...]: a run that waits for its answer; $asker is it, $id waits.
asking_run() {
	printf 'version: 1\nextends: cautious\napprovals: {expire: 30s}\n' >p.yaml
	export CORDON_STATE_DIR=$dir/run-state
	setsid "$cordon" run --policy p.yaml -- "$@" >out 2>err 3>&- &
	asker=$!
	for _ in $(seq 100); do
		id=$("$cordon" approvals list --json | grep -o '"id":"[^"]*"' | head -1 | cut -d'"' -f4)
		[ -z "$id" ] || return 0
		sleep 0.1
	done
	return 1
}

@test "approvals: SIGINT to a run alone withdraws what it asks, SIGTERM leaves it" {
	asking_run echo one
	kill -INT "$asker"
	have=0
	start=$(date +%s)
	wait "$asker" || have=$?
	[ $(($(date +%s) - start)) -lt 5 ]
	is "$have $(cat out)" "126 "
	has "$("$cordon" approvals list)" "nothing waits"
	has "$("$cordon" approvals list --all)" "$id"
	run "$cordon" approvals approve "$id"
	is "$status" 1
	has "$output" withdrawn
	asking_run echo two
	kill "$asker"
	have=0
	wait "$asker" || have=$?
	is "$have $(cat out)" "126 "
	has "$("$cordon" approvals list)" "$id"
	"$cordon" audit verify
}

@test "approvals: an answer that nobody waits for is on the record" {
	asking_run echo --password hunter2
	kill -KILL "$asker"
	wait "$asker" || :
	# The desk that waited is told to go, and goes.
	sleep 1
	# Not where it cannot be recorded.
	mkdir -p "$CORDON_STATE_DIR/ledger"
	chmod 777 "$CORDON_STATE_DIR/ledger"
	run "$cordon" approvals approve "$id"
	is "$status" 125
	has "$output" "does not hold"
	has "$("$cordon" approvals list)" "$id"
	chmod 700 "$CORDON_STATE_DIR/ledger"
	"$cordon" approvals approve "$id" --reason "seen with token=hunter3" --scope always
	run "$cordon" audit list --kind approval
	is "${#lines[@]}" 3
	has "${lines[1]}" "echo --password [redacted]"
	has "${lines[2]}" "always"
	lacks "$(cat "$CORDON_STATE_DIR"/ledger/*.jsonl)" hunter
	"$cordon" audit verify
	# And it holds.
	"$cordon" run --policy p.yaml -- echo --password hunter2
}

# Starts a run that asks, answers it, and waits for it; out and err are files.
asked() {
	setsid "$cordon" run --policy p.yaml --workspace ws --command "$1" \
		>out 2>err &
	asker=$!
	for _ in $(seq 100); do
		id=$("$cordon" approvals list --json | grep -o '"id":"[^"]*"' | head -1 | cut -d'"' -f4)
		[ -z "$id" ] || break
		sleep 0.1
	done
	"$cordon" approvals approve "$id"
	wait "$asker"
}

@test "approvals: a program that asks is not there until a person was asked about it" {
	export CORDON_STATE_DIR=$dir/run-state
	printf 'version: 1\ncommands:\n  allow: [{name: python, args: [{script: /workspace}]}]\n  ask: [id]\n  otherwise: ask\nsandbox: {mount_roots: [.]}\napprovals: {expire: 30s}\n' >p.yaml
	mkdir ws
	cat >ws/x.py <<-'END'
	import os, shutil
	print(shutil.which("id"), os.path.exists("/usr/bin/id"))
	END
	run "$cordon" run --policy p.yaml --workspace ws --command 'python x.py'
	is "$status $output" "0 None False"
	asked 'id -u'
	is "$(cat out)" 65534
	# What no rule names, likewise.
	asked 'env'
	has "$(cat out)" PATH=
}

# sized BYTES: a request that has exactly so many as the desk writes it, less the peer.
sized() {
	python3 -c 'import json, sys
size = int(sys.argv[1])
r = {"version": 1, "kind": "command", "programs": [{"join": "", "argv": ["git"]}], "why": "w",
     "rule": "r", "line": 0, "changes": [], "expire_ms": 3000, "ask": ["store"]}
text = lambda: json.dumps(r, separators=(",", ":"))
argv = r["programs"][0]["argv"]
while size - len(text()) > 60000:
    argv.append("x" * 50000)
argv.append("x" * (size - len(text()) - 3))
assert len(text()) == size
print(text(), end="")' "$1"
}

@test "approvals: what is stored can be read again; what is too large by a byte is not asked" {
	# ,"peer":64001 is 13 bytes
	sized $((2097152 - 12)) | {
		run --separate-stderr "$desk" approvals ask --peer 64001 1
		is "$status" 125
		has "$stderr" "larger than 2097152 bytes"
	}
	has "$("$cordon" approvals list --all)" "nothing was ever asked"
	sized $((2097152 - 13)) >request
	"$desk" approvals ask --peer 64001 1 <request >answer 2>said 3>&- &
	pid=$!
	for _ in $(seq 100); do
		! grep -q show said || break
		sleep 0.05
	done
	run --separate-stderr "$cordon" approvals list
	is "$status" 0
	has "$output" "uid 64001"
	lacks "$output" "cannot be read"
	kill -INT "$pid"
	wait "$pid" || :
	pid=
}

@test "approvals: a request that cannot be read hides no other" {
	ask
	first=$id
	kill -9 "$pid"
	wait "$pid" || :
	ask 'programs=[{"join":"","argv":["git","pull"]}]'
	python3 - "$CORDON_STATE_DIR/approvals.sqlite" "$first" <<-'END'
		import hashlib, sqlite3, struct, sys
		db = sqlite3.connect(sys.argv[1])
		names = [c[1] for c in db.execute("PRAGMA table_info(requests)")]
		ints = ["pid", "waiter", "started", "made", "expires", "answered", "taken"]
		order = ("id content document session user program pid waiter started made expires state "
		         "scope reason by answered taken").split()
		row = dict(zip(names, db.execute("SELECT * FROM requests WHERE id = ?", (sys.argv[2],)).fetchone()))
		def seal():
		    h = hashlib.sha256()
		    for text in ["request"] + [row[n] or "" for n in order if n not in ints]:
		        h.update(struct.pack("=Q", len(text.encode())) + text.encode())
		    for n in order:
		        if n in ints: h.update(struct.pack("=q", row[n]))
		    return h.hexdigest()
		assert seal() == row["seal"]
		row["document"] = "{}"
		db.execute("UPDATE requests SET document = '{}', seal = ? WHERE id = ?", (seal(), row["id"]))
		db.commit()
	END
	run --separate-stderr "$cordon" approvals list
	is "$status" 0
	has "$output" "git pull"
	has "$(grep "$first" <<<"$output")" "cannot be read"
	run --separate-stderr "$cordon" approvals list --json
	is "$status" 0
	python3 -c 'import json, sys
l = {e["id"]: e for e in json.loads(sys.argv[1])}
assert "cannot_be_read" in l[sys.argv[2]] and "request" in l[sys.argv[3]], l' "$output" "$first" "$id"
	for word in show approve deny; do
		run "$cordon" approvals $word "$first"
		is "$status" 125
		has "$output" "cannot be read"
	done
	"$cordon" approvals approve "$id"
	answered 0 allow
}

# run_asks [ARG...]: a run of code that waits for a person, who says no; what was shown.
run_asks() {
	asks "$cordon" run --policy p.yaml "$@"
}

# asks COMMAND...: starts it; its question is $id and $shown.
asks() {
	setsid "$@" >out 2>err 3>&- </dev/null &
	asker=$!
	id=
	for _ in $(seq 100); do
		id=$("$cordon" approvals list --json | grep -o '"id":"[^"]*"' | head -1 | cut -d'"' -f4)
		[ -z "$id" ] || break
		sleep 0.1
	done
	shown=$("$cordon" approvals show "$id")
}

@test "approvals: a yes to a run of code is for its arguments and an input that was told" {
	printf 'version: 1\napprovals: {expire: 30s, always: [code]}\n' >p.yaml
	export CORDON_STATE_DIR=$dir/run-state
	print='import sys; print(sys.argv[1:])'
	run_asks --lang python -c "$print" one
	has "$shown" "argument one"
	lacks "$shown" stdin
	"$cordon" approvals approve "$id" --scope always
	wait "$asker"
	is "$(cat out)" "['one']"
	run --separate-stderr "$cordon" run --policy p.yaml --lang python -c "$print" one
	is "$status $output" "0 ['one']"
	run_asks --lang python -c "$print" two
	"$cordon" approvals deny "$id"
	wait "$asker" || :
	is "$(cat out)" ""
	run_asks -i --lang python -c "$print" one
	has "$shown" "stdin open"
	"$cordon" approvals deny "$id"
	wait "$asker" || :
	is "$(cat out)" ""
}

@test "approvals: a yes to blocks is for what each of them reads" {
	printf 'version: 1\napprovals: {expire: 30s, always: [code]}\n' >p.yaml
	export CORDON_STATE_DIR=$dir/run-state CORDON_LIBEXEC=$CORDON_BUILD
	for input in one two; do
		asks "$CORDON_BUILD/tests/librun" '{"policy": "p.yaml", "blocks": [{"language": "sh", "code": "true"},
			{"language": "sh", "code": "cat", "stdin": "'$input'"}]}'
		has "$shown" "stdin 2 3 $(printf %s $input | sha256sum | cut -d' ' -f1)"
		"$cordon" approvals approve "$id" --scope always
		wait "$asker"
		output=$(cat out)
		is "$(field stdout)" $input
	done
}
