#!/usr/bin/env bats
# cordon audit, and the cases of audit.tsv that need the command.
load common

# Records by a helper; prints the number of each one that is on the disk.
ledgerer() { "$CORDON_BUILD/tests/ledgerer" "$@"; }
audit() { run --separate-stderr "$cordon" audit "$@"; }

ledger_setup() {
	export CORDON_STATE_DIR=$dir/state
	L=$CORDON_STATE_DIR/ledger
	mkdir "$CORDON_STATE_DIR"
}

@test "audit: nothing recorded yet" {
	ledger_setup
	audit list
	is "$status $output" "0 "
	has "$stderr" "nothing is recorded"
	audit verify
	is "$status" 125
}

@test "audit: list is a table, with filters" {
	ledger_setup
	ledgerer "$L" 10 runs >/dev/null
	ledgerer "$L" 4 runs agent=other >/dev/null
	audit list
	is "$status" 0
	is "${#lines[@]}" 15
	has "${lines[0]}" "TIME (UTC)"
	has "${lines[1]}" "python3 job-0.py"
	has "${lines[2]}" "exited 0"
	audit list --kind run.end
	is "${#lines[@]}" 8
	audit list --kind run --agent other
	is "${#lines[@]}" 5
	audit list --decision deny
	is "${#lines[@]}" 3
	has "${lines[1]}" "deny"
	audit list --since 1h --until 2100-01-01
	is "${#lines[@]}" 15
	audit list --until 1h
	is "$output" ""
	audit list --last 2 --json
	is "${#lines[@]}" 2
	for line in "${lines[@]}"; do python3 -m json.tool <<<"$line" >/dev/null; done
}

@test "audit: no colour in a pipe, and nothing in a record steers a terminal" {
	ledger_setup
	ledgerer "$L" 2 $'agent=a\033[2Jb' >/dev/null
	audit list
	[[ $output != *$'\033'* ]]
	run env CLICOLOR_FORCE=1 "$cordon" audit list
	[[ $output == *$'\033[32m'* && $output != *$'\033[2J'* ]]
	audit show 1
	[[ $output != *$'\033'* ]]
}

@test "audit: show tells what proves the wall" {
	ledger_setup
	ledgerer "$L" 4 runs >/dev/null
	id=$("$cordon" audit list --json --last 1 | python3 -c 'import json,sys; print(json.load(sys.stdin)["run"])')
	audit show "$id"
	is "$status" 0
	for part in "Run $id" "The wall" "no address could be reached" "How it ended" "exited" \
		"not under a seal yet" "3 run.start, 4 run.end"; do
		has "$output" "$part"
	done
	"$cordon" audit seal
	audit show "$id"
	has "$output" "under the seal in record 5"
	audit show --json "$id"
	is "${#lines[@]}" 2
	audit show ffffffffffff
	is "$status" 125
	has "$stderr" "no run or record"
}

@test "audit: the index can be deleted, damaged, and made again" {
	ledger_setup
	ledgerer "$L" 20 runs >/dev/null
	audit list
	want=$output
	rm "$L/index.sqlite"
	audit list
	is "$output" "$want"
	echo "this is no database, and long enough to be one" >"$L/index.sqlite"
	audit list
	is "$status $output" "0 $want"
	audit reindex
	is "$status" 0
	audit list
	is "$output" "$want"
	ledgerer "$L" 1 >/dev/null
	audit list
	is "${#lines[@]}" 22
	is "$(stat -c %a "$L/index.sqlite")" 600
}

@test "audit: every kind that is written is in the schema, and the schema is the table's" {
	ledger_setup
	ledgerer "$L" 24 all >/dev/null
	"$cordon" audit seal --quiet
	"$CORDON_BUILD/cordon-desk" audit schema >printed
	diff printed "$BATS_TEST_DIRNAME/../../api/ledger.schema.json"
	"$cordon" audit export >all
	python3 - <<-'END'
		import json, re
		schema = json.load(open("printed"))
		kinds = {k["title"]: k for k in schema["oneOf"]}
		types = {"string": str, "integer": int, "object": dict, "array": list, "boolean": bool}
		seen = set()
		for line in open("all"):
		    r = json.loads(line)
		    k = kinds[r["kind"]]
		    seen.add(r["kind"])
		    assert set(r) <= set(k["properties"]), r
		    assert set(k["required"]) <= set(r), r
		    for name, v in r.items():
		        p = k["properties"][name]
		        p = schema["$defs"][p["$ref"].split("/")[-1]] if "$ref" in p else p
		        if "type" in p:
		            assert isinstance(v, types[p["type"]]), (name, v)
		        if "pattern" in p:
		            assert re.search(p["pattern"], v), (name, v)
		assert seen == set(kinds) , set(kinds) - seen
	END
}

@test "audit: a second reader of the format agrees" {
	ledger_setup
	CORDON_LEDGER_FILE_SIZE=3000 ledgerer "$L" 30 runs >/dev/null
	"$cordon" audit seal --quiet
	python3 - "$L" <<-'END'
		import glob, hashlib, json, sys
		prev, seq, leaves = "0" * 64, 0, []
		def tree(d):
		    if len(d) == 1: return d[0]
		    k = 1
		    while k * 2 < len(d): k *= 2
		    return hashlib.sha256(b"\1" + tree(d[:k]) + tree(d[k:])).digest()
		files = sorted(glob.glob(sys.argv[1] + "/*.jsonl"))
		assert len(files) > 2
		for f in files:
		    for line in open(f, "rb").read().split(b"\n")[:-1]:
		        r = json.loads(line)
		        seq += 1
		        assert r["seq"] == seq and r["prev"] == prev
		        if r["kind"] == "seal":
		            assert r["root"] == tree(leaves).hex() and r["head"] == prev
		        leaf = hashlib.sha256(b"\0" + line).digest()
		        leaves.append(leaf)
		        prev = leaf.hex()
		assert seq == 31
	END
}

@test "audit: OCSF events have their class, category and type" {
	ledger_setup
	ledgerer "$L" 24 all >/dev/null
	"$cordon" audit export --format ocsf >all
	python3 - <<-'END'
		import json
		need = ["activity_id", "category_uid", "class_uid", "metadata", "severity_id", "time", "type_uid"]
		more = {1007: ["actor", "device", "process"], 4001: ["dst_endpoint"], 6003: ["actor", "api", "src_endpoint"]}
		category = {1007: 1, 4001: 4, 6003: 6}
		seen = set()
		for line in open("all"):
		    e = json.loads(line)
		    assert all(n in e for n in need + more[e["class_uid"]]), e
		    assert e["category_uid"] == category[e["class_uid"]]
		    assert e["type_uid"] == e["class_uid"] * 100 + e["activity_id"]
		    assert e["metadata"]["version"] == "1.8.0" and e["metadata"]["product"]["vendor_name"]
		    assert 1.7e12 < e["time"] < 1e14
		    seen.add((e["unmapped"]["record"]["kind"], e["type_uid"]))
		assert ("run.start", 100701) in seen and ("run.end", 100702) in seen
		assert ("connection", 400101) in seen and ("tool.call", 600399) in seen
	END
	is "$(wc -l <all)" 24
}

# What OCSF 1.8 requires of the classes and objects that are used here.
@test "audit: OCSF events have every required attribute" {
	ledger_setup
	ledgerer "$L" 24 all >/dev/null
	"$cordon" run -- sh -c 'exit 3' >/dev/null 2>&1 || :
	"$cordon" run --timeout 100ms -- sleep 5 >/dev/null 2>&1 || :
	printf 'version: 1\ncommands: {allow: [true]}\n' >p.yaml
	"$cordon" run --policy p.yaml -- ls >/dev/null 2>&1 || :
	"$cordon" audit seal --quiet
	"$cordon" audit export --format ocsf >all
	python3 - <<-'END'
		import json
		def some(o, *names):
		    assert any(o.get(n) not in (None, "") for n in names), (names, o)
		def text(o, *names):
		    for n in names: assert isinstance(o[n], str) and o[n], (n, o)
		def number(o, *names):
		    for n in names: assert type(o[n]) is int, (n, o)
		def enum(o, name, values):
		    number(o, name); assert o[name] in values, (name, o[name])
		def endpoint(o):
		    some(o, "ip", "uid", "name", "hostname", "svc_name", "instance_uid", "interface_uid", "interface_name", "domain")
		    if "port" in o: assert 0 <= o["port"] <= 65535
		def actor(o):
		    some(o, "process", "user", "invoked_by", "session", "app_name", "app_uid", "iam_role")
		    if "user" in o: some(o["user"], "account", "name", "uid")
		activities = {1007: {0, 1, 2, 3, 4, 5, 99}, 4001: {0, 1, 2, 3, 4, 5, 6, 7, 99}, 6003: {0, 1, 2, 3, 4, 99}}
		n, classes, denied = 0, set(), 0
		for line in open("all"):
		    e = json.loads(line)
		    n += 1
		    number(e, "activity_id", "category_uid", "class_uid", "severity_id", "time", "type_uid")
		    c = e["class_uid"]
		    classes.add(c)
		    assert e["category_uid"] == c // 1000 and e["type_uid"] == c * 100 + e["activity_id"]
		    enum(e, "activity_id", activities[c])
		    if e["activity_id"] == 99: text(e, "activity_name")
		    enum(e, "severity_id", {0, 1, 2, 3, 4, 5, 6, 99})
		    enum(e, "status_id", {0, 1, 2, 99})
		    m = e["metadata"]
		    assert m["version"] == "1.8.0"
		    some(m["product"], "name", "uid")
		    text(m["product"], "vendor_name")
		    if "action_id" in e or "disposition_id" in e:
		        assert "security_control" in m["profiles"]
		        enum(e, "action_id", {0, 1, 2, 3, 4, 99})
		        enum(e, "disposition_id", set(range(28)) | {99})
		        denied += e["action_id"] == 2
		    if c == 1007:
		        actor(e["actor"])
		        enum(e["device"], "type_id", set(range(16)) | {99})
		        some(e["device"], "ip", "uid", "name", "hostname", "instance_uid", "interface_uid", "interface_name")
		        some(e["process"], "pid", "uid", "cpid")
		        if e["activity_id"] == 2: number(e, "exit_code")
		    if c == 4001:
		        assert "src_endpoint" in e or "dst_endpoint" in e
		        for k in ("src_endpoint", "dst_endpoint"): endpoint(e[k])
		        enum(e["connection_info"], "direction_id", {0, 1, 2, 3, 4, 99})
		        assert e.get("traffic", True), e
		    if c == 6003:
		        actor(e["actor"])
		        endpoint(e["src_endpoint"])
		        text(e["api"], "operation")
		        some(e["api"]["service"], "name", "uid")
		    assert isinstance(e["unmapped"], dict)
		assert n > 28 and classes == {1007, 4001, 6003} and denied > 0, (n, classes, denied)
	END
}

@test "a01: verify names the first bad record" {
	ledger_setup
	ledgerer "$L" 9 >/dev/null
	audit verify
	is "$status" 0
	has "$output" "unsealed tail: 9 records"
	sed -i '4s/python3/pythonX/' "$L/000001.jsonl"
	audit verify
	is "$status" 1
	has "$output" "edited: record 4"
	audit verify --json
	is "$status $(field intact) $(field record) $(field fault)" "1 False 4 edited"
	audit list
	has "$stderr" "record 4"
	audit export
	is "$status" 1
}

@test "a03: a truncated tail is seen by a head kept elsewhere" {
	ledger_setup
	ledgerer "$L" 5 >/dev/null
	"$cordon" audit seal --export early.head
	ledgerer "$L" 5 >/dev/null
	"$cordon" audit seal --export late.head
	audit verify --head late.head
	is "$status" 0
	audit verify --head early.head
	is "$status" 0
	# With everything that lies beside it.
	head -n 8 "$L/000001.jsonl" >x && cat x >"$L/000001.jsonl"
	rm "$L/head" "$L/key"
	audit verify
	is "$status" 1
	has "$output" "unsealed tail"
	audit verify --head early.head
	is "$status" 0
	audit verify --head late.head
	is "$status" 1
	has "$output" "truncated"
}

@test "a03: a seal that is gone is missed by the key" {
	ledger_setup
	ledgerer "$L" 5 >/dev/null
	"$cordon" audit seal --quiet
	ledgerer "$L" 5 >/dev/null
	"$cordon" audit seal --quiet
	head -n 8 "$L/000001.jsonl" >x && cat x >"$L/000001.jsonl"
	rm "$L/head"
	audit verify
	is "$status" 1
	has "$output" "2 seals were made and 1 are there"
}

@test "a03: the file head is gone: that is said, also to those who read only the status" {
	ledger_setup
	ledgerer "$L" 5 >/dev/null
	cp "$L/head" old.head
	rm "$L/head"
	audit verify --quiet
	is "$status" 1
	has "$output" "truncated: the file 'head' is gone"
	audit verify --json
	is "$status $(field intact) $(field has_head)" "1 False False"
	# Put back from before: nothing is missing, and the next writer goes on.
	cp old.head "$L/head"
	ledgerer "$L" 3 >/dev/null
	cp old.head "$L/head"
	audit verify
	is "$status" 0
	ledgerer "$L" 1 >/dev/null
	audit verify
	is "$status" 0
	has "$output" "9 records"
	# And with the records behind it gone, it is seen.
	cp "$L/head" new.head
	head -n 6 "$L/000001.jsonl" >x && cat x >"$L/000001.jsonl"
	audit verify
	is "$status" 1
	has "$output" "truncated"
}

@test "a05: the key is replaced, gone or readable for others" {
	ledger_setup
	ledgerer "$L" 3 >/dev/null
	"$cordon" audit seal --quiet
	cp "$L/key" kept
	python3 -c 'import sys
epoch, key = open(sys.argv[1]).read().split()
print(epoch, key[::-1])' "$L/key" >other
	cat other >"$L/key"
	audit verify
	is "$status" 1
	has "$output" "bad seal: the file 'key' is not the key that the last seal names"
	ledgerer "$L" 1 >/dev/null
	audit seal
	is "$status" 125
	rm "$L/key"
	audit verify
	is "$status" 1
	has "$output" "the file 'key' is gone"
	# A copy without it, with the key that was kept elsewhere.
	cp "$L/key.pub" kept.pub
	audit verify --key kept.pub
	is "$status" 0
	install -m 644 kept "$L/key"
	audit seal
	is "$status" 125
	has "$stderr" "chmod 600"
	chmod 600 "$L/key"
	audit seal
	is "$status" 0
	audit verify
	is "$status" 0
	# Not a file: no hanging, and not intact.
	rm "$L/key.pub"
	mkfifo "$L/key.pub"
	run timeout 5 "$cordon" audit verify
	is "$status" 1
	has "$output" "key.pub"
}

@test "a05: verify while seals are made sees no fault" {
	ledger_setup
	ledgerer "$L" 20 >/dev/null
	"$cordon" audit seal --quiet
	ledgerer "$L" 1 >/dev/null
	command -v strace >/dev/null || skip "no strace"
	# Whenever it looks at the key, a seal is made before it sees it.
	strace -f -o /dev/null -P "$L/key" -P key -e inject=openat:delay_enter=700000 \
		"$cordon" audit verify >said 2>&1 3>&- &
	pid=$!
	for _ in 1 2 3 4; do
		sleep 0.3
		ledgerer "$L" 1 >/dev/null
		"$cordon" audit seal --quiet
	done
	wait "$pid" || { cat said; return 1; }
	grep -q intact said
	audit verify
	is "$status" 0
	has "$output" "5 seals"
}

@test "audit: the index of another ledger is not believed" {
	ledger_setup
	ledgerer "$L" 6 agent=mine >/dev/null
	ledgerer "$dir/other" 6 agent=evil >/dev/null
	"$cordon" audit list --dir "$dir/other" >/dev/null
	cp "$dir/other/index.sqlite" "$L/index.sqlite"
	audit list
	is "$status" 0
	has "$output" mine
	lacks "$output" evil
	is "$stderr" ""
	# Nor one whose last rows are gone.
	python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1]); db.execute("DELETE FROM record WHERE seq > 3"); db.commit()' "$L/index.sqlite"
	audit list
	is "${#lines[@]}" 7
	# And what is missing in the middle is not exported as the whole.
	python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1]); db.execute("DELETE FROM record WHERE seq = 3"); db.commit()' "$L/index.sqlite"
	audit export
	is "$status" 125
	has "$stderr" "reindex"
	audit reindex
	audit export
	is "$status ${#lines[@]}" "0 6"
}

@test "audit: list needs no room on the disk" {
	ledger_setup
	command -v unshare >/dev/null || skip "no unshare"
	flags=-m
	[ "$(id -u)" -eq 0 ] || flags=-Urm
	mkdir small
	# shellcheck disable=SC2016
	run unshare $flags bash -c '
		mount -t tmpfs -o size=128k,mode=700 tmpfs small && cd small || exit 9
		"$1/tests/ledgerer" "$PWD/L" 5 >/dev/null || exit 8
		cat /dev/zero >filler 2>/dev/null
		"$1/cordon" audit list --dir "$PWD/L"
	' - "$CORDON_BUILD"
	is "$status" 0 || { echo "$output"; false; }
	is "${#lines[@]}" 6
}

@test "audit: output that could not be written is said" {
	ledger_setup
	ledgerer "$L" 50 runs >/dev/null
	for what in "export" "export --format ocsf" "list" "list --json" "show 1" "verify"; do
		have=0
		# shellcheck disable=SC2086
		"$cordon" audit $what >/dev/full 2>err || have=$?
		is "$what: $have" "$what: 125"
		grep -q "No space left" err
	done
}

@test "audit: a run without an end says so" {
	ledger_setup
	ledgerer "$L" 1 runs >/dev/null
	id=$("$cordon" audit list --json --last 1 | python3 -c 'import json,sys; print(json.load(sys.stdin)["run"])')
	audit show "$id"
	has "$output" "no end is recorded"
	audit show 1
	lacks "$output" "no end is recorded"
}

@test "a04: a ledger written anew is seen by a head or a key kept elsewhere" {
	ledger_setup
	ledgerer "$L" 5 >/dev/null
	"$cordon" audit seal --quiet --export kept.head
	cp "$L/key.pub" kept.pub
	mv "$L" old
	ledgerer "$L" 5 agent=innocent >/dev/null
	"$cordon" audit seal --quiet
	audit verify
	is "$status" 0
	audit verify --head kept.head
	is "$status" 1
	has "$output" "written anew"
	audit verify --key kept.pub
	is "$status" 1
	has "$output" "bad seal"
	audit verify --dir "$dir/old" --head kept.head --key kept.pub
	is "$status" 0
}

@test "a10: a full disk: nothing is acknowledged that is not there" {
	ledger_setup
	command -v unshare >/dev/null || skip "no unshare"
	flags=-m
	[ "$(id -u)" -eq 0 ] || flags=-Urm
	mkdir small
	# shellcheck disable=SC2016
	run unshare $flags bash -c '
		mount -t tmpfs -o size=128k,mode=700 tmpfs small && cd small || exit 9
		head -c 64k /dev/zero >filler
		"$1/tests/ledgerer" "$PWD/L" 1000 >../acked 2>../err && exit 8
		grep -q "No space left" ../err || { cat ../err; exit 7; }
		"$1/cordon" audit verify --dir "$PWD/L" || exit 6
		told=$(wc -l <../acked) have=$(wc -l <L/000001.jsonl)
		[ "$told" -gt 5 ] && [ "$have" -ge "$told" ] || exit 5
		# Room again, and it goes on.
		rm filler
		"$1/tests/ledgerer" "$PWD/L" 5 >/dev/null || exit 4
		"$1/cordon" audit verify --dir "$PWD/L"
	' - "$CORDON_BUILD"
	is "$status" 0 || { echo "$output"; false; }
}

@test "l05: each call of a writer fails once" {
	ledger_setup
	command -v strace >/dev/null || skip "no strace"
	for call in write pwrite64 fdatasync fsync openat fcntl ftruncate pread64 newfstatat; do
		for error in EIO ENOSPC; do
			for i in 1 2 3 4 5 6; do
				rm -rf "$L"
				ledgerer "$L" 2 >/dev/null
				strace -f -o /dev/null -P "$L" -P "$L/head" -P "$L/000001.jsonl" \
					-e inject=$call:error=$error:when=$i \
					"$CORDON_BUILD/tests/ledgerer" "$L" 3 >acked 2>err ||
					[ -s err ] || { echo "$call $i: no message"; return 1; }
				last=$(tail -n 1 acked)
				ledgerer "$L" 1 >/dev/null || { echo "$call $error $i: not mended"; return 1; }
				audit verify
				is "$status" 0 || { echo "$call $error $i: $output"; return 1; }
				[ "$(cat "$L"/*.jsonl | wc -l)" -gt "${last:-2}" ] ||
					{ echo "$call $error $i: $last was acknowledged"; return 1; }
			done
		done
	done
}

@test "a12: eight writers at once" {
	ledger_setup
	for i in 1 2 3 4 5 6 7 8; do
		CORDON_LEDGER_FILE_SIZE=20k ledgerer "$L" 50 "agent=w$i" >"out$i" &
	done
	wait
	is "$(cat out? | sort -n | uniq | wc -l)" 400
	is "$(cat out? | sort -n | tail -n 1)" 400
	audit verify
	is "$status" 0
	has "$output" "400 records"
	audit list --agent w3
	is "${#lines[@]}" 51
}

@test "audit: follow shows what comes" {
	ledger_setup
	ledgerer "$L" 2 >/dev/null
	timeout 5 "$cordon" audit follow >seen 3>&- &
	pid=$!
	sleep 0.7
	ledgerer "$L" 1 agent=late >/dev/null
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		! grep -q late seen || break
		sleep 0.2
	done
	kill "$pid"
	grep -q late seen
	is "$(grep -c run.start seen)" 3
}

@test "audit: bad calls" {
	ledger_setup
	refused "audit" audit
	refused "takes list" audit nonsense
	refused "--kind" audit list --kind nonsense
	refused "--since" audit list --since yesterday-ish
	refused "--decision" audit list --decision maybe
	refused "--head" audit verify --head
	refused "--format" audit export --format xml
	refused "does not take" audit list extra
	refused "takes ID" audit show
	refused "no flag" audit list --head x
}

@test "audit: a program at the end of a long line is on the record, by hash" {
	export CORDON_STATE_DIR=$dir/long-state
	pad=$(seq -s ' ' 400)
	"$cordon" run --command "echo $pad ; true" >/dev/null
	"$cordon" run --command "echo $pad ; false" >/dev/null || true
	"$cordon" run -- printf '%s' $'\xff' >/dev/null
	"$cordon" run -- printf '%s' $'\xfe' >/dev/null
	"$cordon" run -- echo short >/dev/null
	# Two that differ only where it is not shown, twice; one that is shown.
	is "$(cat "$CORDON_STATE_DIR"/ledger/*.jsonl | grep -c argv_sha256)" 4
	is "$(cat "$CORDON_STATE_DIR"/ledger/*.jsonl | grep -o 'argv_sha256":"[0-9a-f]*' | sort -u | wc -l)" 4
	is "$(cat "$CORDON_STATE_DIR"/ledger/*.jsonl | grep -c '"argc":403')" 2
	"$cordon" audit verify
}

# Runs a command and code under a policy that keeps this; prints the ledger.
kept() {
	rm -rf "$L"
	printf 'version: 1\nledger: {keep_text: [%s]}\n' "$1" >"$dir/p.yaml"
	"$cordon" run --policy "$dir/p.yaml" -- test -n word-of-a-command
	"$cordon" run --policy "$dir/p.yaml" --lang sh -c \
		'echo "$((6 * 7))-out"; : word-of-code password=hunter2' >/dev/null
	"$cordon" audit export
}

@test "audit: the policy says what is kept as text" {
	ledger_setup
	text=$(kept '')
	lacks "$text" word-of
	lacks "$text" 42-out
	has "$text" '"argv":[],"argc":3,"argv_sha256":"'
	text=$(kept commands)
	has "$text" word-of-a-command
	lacks "$text" word-of-code
	lacks "$text" 42-out
	text=$(kept code)
	has "$text" word-of-code
	lacks "$text" word-of-a-command
	lacks "$text" 42-out
	lacks "$text" hunter2
	text=$(kept output)
	has "$text" '"text":"42-out'
	lacks "$text" word-of
}

# mounted ARG...: a run with these flags, what the record says is mounted, and
# the same of the box's own table: target, mode, size in KiB.
mounted() {
	rm -rf "$dir/state"
	"$cordon" run "$@" -- awk '$2 ~ "^/(usr|tmp|workspace|dev/shm|data)?$" {
		size = match($4, /size=[0-9]+k/) ? substr($4, RSTART + 5, RLENGTH - 6) : "-"
		print $2, substr($4, 1, 2), size }' /proc/mounts >"$dir/box"
	cat "$L"/*.jsonl | jq -r 'select(.kind == "run.start") | .mounts[] |
		"\(.target) \(.mode) \(if .size then .size / 1024 else "-" end)"' >"$dir/record"
}

@test "audit: the mounts of a run's record are those that its box sees" {
	ledger_setup
	work=$(mktemp -d /var/tmp/cordon-audit-XXXXXX)
	chmod 755 "$work" # as an ordinary user a box is somebody else
	# The root itself is a tmpfs of Cordon's, frozen.
	for flags in '' "--volume $work:/workspace" "--volume $work:/data:rw --tmpfs /tmp:size=1m" \
		'--tmpfs /tmp:size=2m,ro --disk 32m'; do
		# shellcheck disable=SC2086
		mounted $flags
		is "$(sort record)" "$(grep -v '^/ ' box | sort)" || { echo "flags: $flags"; rmdir "$work"; return 1; }
	done
	rmdir "$work"
	# A layer for changes is told as what it is, and no /usr that could be written.
	mounted --read-only=false
	has "$(cat record)" "/ rw 65536"
	has "$(cat record)" "/usr ro -"
	"$cordon" run --ulimit nofile=100:200 -- true
	is "$(cat "$L"/*.jsonl | jq 'select(.kind == "run.start") | .limits.files' | tail -n 1)" 100
}
