#!/usr/bin/env bats
# cordon agent: files, the console, recordings, checkpoints; no model is asked.
# shellcheck disable=SC2030,SC2031,SC2016 # bats runs each test in a shell of its own
load common
eval "common_$(declare -f setup)"

setup() {
	common_setup
	export CORDON_STATE_DIR=$BATS_TEST_TMPDIR/state XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
	export CORDON_LIBEXEC=$CORDON_BUILD
	unset CORDON_POLICY OPENAI_API_KEY OPENAI_BASE_URL
	top=$BATS_TEST_DIRNAME/../..
	examples=$top/examples
	mkdir w
	cd w || return
}

agent() {
	"$cordon" agent "$@"
}

# answer TEXT, calls NAME JSON: lines of a recording
answer() {
	python3 -c 'import json, sys
print(json.dumps({"result": {"finish_reason": "stop", "content": sys.argv[1], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}}))' "$1"
}
calls() {
	python3 -c 'import json, sys
print(json.dumps({"result": {"finish_reason": "function_calls", "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    "calls": [{"id": "c1", "name": sys.argv[1], "arguments": sys.argv[2]}]}}))' "$1" "$2"
}

without_times() {
	sed 's/[0-9.]* m\?s$//'
}

# last MEMBER: of the last line of $output, the TaskResult
last() {
	tail -1 <<<"$output" | python3 -c 'import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."):
    value = value[int(name) if name.isdigit() else name]
print(value)' "$1"
}

# example NAME TASK...: by its recording
example() {
	run --separate-stderr "$cordon" agent run --replay "$examples/$1.replay.jsonl" "${@:3}" "$examples/$1.yaml" "$2"
}

@test "agent: the coder computes Fibonacci numbers in a box" {
	example coder "Write Python code to compute the first 10 Fibonacci numbers and run it."
	is "$status" 0
	is "$stderr" ""
	has "$output" "---------- TextMessage (user) ----------"
	has "$output" "---------- ToolCallRequestEvent (sandboxed_coder) ----------"
	has "$output" "run_python: allowed; box: exited, status 0"
	has "$output" "  [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]"
	has "$output" "ended       completed: 'sandboxed_coder' answered"
	has "$output" "tool calls  1, denied 0"
	has "$output" "345 prompt, 93 completion"
	lacks "$output" $'\033'
}

@test "agent: the analyst reads a snapshot and cannot change it" {
	example analyst "Which region sold most, and in which month?"
	is "$status" 0
	has "$output" "  west 4165.5"
	has "$output" "Read-only file system: '/workspace/data/totals.txt'"
	has "$output" "ended       completed: 'analyst' answered"
	[ ! -e "$examples/data/totals.txt" ]
}

@test "agent: the assistant's shell knows a list, and says why not" {
	example assistant "How large is the project, and do its tests pass?"
	is "$status" 0
	has "$output" "run_shell: denied; box: denied"
	has "$output" "a host that the policy does not allow"
	has "$output" "   38 total"
	has "$output" "Ran 3 tests"
	has "$output" "tool calls  5, denied 1"
	run --separate-stderr "$cordon" audit verify
	is "$status" 0
	has "$("$cordon" audit list)" "coding_assistant"
}

@test "agent: a team takes turns until the critic is content" {
	example team "Write a function that tells whether a year is a leap year." --stats
	is "$status" 0
	has "$output" "---------- TextMessage (critic) ----------"
	has "$output" "[Prompt tokens: 180, Completion tokens: 22]"
	has "$output" "Finish reason: Text 'APPROVE' mentioned"
	has "$output" "turns       4"
	has "$output" "Duration: "
}

@test "agent: --json is one document a line, the last one the TaskResult" {
	example coder "Fibonacci" --json
	is "$status" 0
	is "$(last type)" TaskResult
	is "$(last status)" completed
	is "$(last usage.prompt_tokens)" 345
	is "$(last messages.0.content)" Fibonacci
	python3 -c 'import json, sys
lines = [json.loads(l) for l in sys.stdin]
types = [l["type"] for l in lines]
assert types[0] == "TextMessage" and types[-1] == "TaskResult", types
assert "ModelClientStreamingChunkEvent" in types and "ToolCallExecutionEvent" in types
assert all("ModelClientStreamingChunkEvent" != m["type"] for m in lines[-1]["messages"])
assert all("id" in l and "source" in l and "created_at" in l for l in lines[:-1])' <<<"$output"
}

@test "agent: a long history is summed up, and what that used is counted" {
	cat >long.yaml <<-'EOF'
		team: round_robin
		model: m
		agents:
		  a: {context: {summary: {messages: 2, keep: 1}}}
		  b: {}
		max_turns: 3
		budget: {tokens: 1000}
	EOF
	{
		echo '{"recording": 1, "model": "m", "match": "order"}'
		answer one
		answer two
		answer "They count."
		answer three
	} >long.jsonl
	run --separate-stderr "$cordon" agent run --json --replay long.jsonl long.yaml "count"
	is "$status" 0
	is "$(last stop_reason)" "Maximum number of turns 3 reached."
	is "$(last usage.prompt_tokens)" 40
	is "$(last messages.3.type)" ContextSummaryEvent
	is "$(last messages.3.content)" "They count."
	is "$(last messages.4.content)" three
	sed -i 's/1000/50/' long.yaml
	run --separate-stderr "$cordon" agent run --json --replay long.jsonl long.yaml "count"
	is "$status" 1
	is "$(last stop_reason)" "Budget exceeded: tokens"
}

@test "agent: thoughts are shown as they come, and once" {
	cat >t.jsonl <<-'EOF'
		{"recording": 1, "model": "m", "match": "order"}
		{"chunks": [{"thought": "Six "}, {"thought": "times seven."}, "4", "2"], "result": {"thought": "Six times seven.", "content": "42"}}
	EOF
	printf 'name: a\nmodel: m\n' >t.yaml
	run --separate-stderr "$cordon" agent run --replay t.jsonl t.yaml "6*7"
	is "$status" 0
	has "$output" $'---------- ThoughtEvent (a) ----------\nSix times seven.\n---------- TextMessage (a) ----------\n42\n'
	is "$(grep -c "Six times" <<<"$output")" 1
	run --separate-stderr "$cordon" agent run --json --replay t.jsonl t.yaml "6*7"
	is "$(grep -c '"ThoughtChunkEvent"' <<<"$output")" 2
	lacks "$(tail -1 <<<"$output")" ThoughtChunkEvent
	is "$(last messages.1.content)" "Six times seven."
}

@test "agent: a limit in dollars needs prices, and they are those of one model" {
	printf 'name: a\nmodel: gpt-4o-mini\nbudget: {cost: 0.001}\nmax_turns: 3\n' >c.yaml
	for command in "check c.yaml" "run c.yaml task"; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr "$cordon" agent $command
		is "$status" 125
		has "$stderr" "c.yaml:3:10: /budget/cost: a limit in dollars needs the prices of 'gpt-4o-mini'"
	done
	sed -i 's/^model:.*/model: {model: gpt-4o-mini, info: {price_prompt: 100, price_completion: 200}}/' c.yaml
	agent check c.yaml
	run --separate-stderr "$cordon" agent run --model gpt-4o c.yaml task
	is "$status" 125
	has "$stderr" "its prices are not those of 'gpt-4o'"
	# Ten tokens and five more, and what a recording says of its model's prices.
	{
		echo '{"recording": 1, "model": "m", "info": {"price_prompt": 100, "price_completion": 200}}'
		answer one
	} >r.jsonl
	run --separate-stderr "$cordon" agent run --json --replay r.jsonl c.yaml task
	is "$status" 1
	is "$(last stop_reason)" "Budget exceeded: cost"
	is "$(last usage.cost)" 0.002
	# Without prices nothing is said of it.
	answer one >r.jsonl
	printf 'name: a\nmodel: m\n' >c.yaml
	run --separate-stderr "$cordon" agent run --replay r.jsonl c.yaml task
	is "$status" 0
	lacks "$output" cost
	lacks "$output" '$'
}

@test "agent: functions are those of a program; the command has none" {
	printf 'team: selector\nmodel: m\nmax_turns: 2\nagents: {a: {}, b: {}}\nselector_func: who\n' >f.yaml
	for command in "check f.yaml" "dump f.yaml" "run f.yaml task"; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr "$cordon" agent $command
		is "$status" 125
		has "$stderr" "f.yaml:5:1: /selector_func: no function is registered as 'who'"
		has "$stderr" "libcordon-agent"
	done
	printf 'model: m\nstop: {function: full}\n' >f.yaml
	run --separate-stderr "$cordon" agent check f.yaml
	is "$status" 125
	has "$stderr" "f.yaml:2:8: /stop/function/name: no function is registered as 'full'"
}

@test "agent: a handoff has its own name, description and message" {
	cat >h.yaml <<-'EOF'
		team: round_robin
		model: m
		agents:
		  a:
		    handoffs:
		      - {target: b, name: over_to_you, description: b knows better, message: Please go on.}
		  b: {}
		stop: {handoff: b, messages: 9}
	EOF
	calls over_to_you '{}' >r.jsonl
	run --separate-stderr "$cordon" agent run --json --replay r.jsonl h.yaml x
	is "$status" 0
	is "$(last stop_reason)" "Handoff to b from a detected."
	has "$output" "Please go on."
	agent dump h.yaml >dump.json
	is "$(agent dump dump.json)" "$(cat dump.json)"
	has "$(cat dump.json)" "b knows better"
}

@test "agent: the library runs a C tool and a box" {
	run --separate-stderr "$CORDON_BUILD/examples/agent" "$examples/agent.replay.jsonl"
	is "$status" 0
	is "$(last status)" completed
	has "$(last messages.2.content)" "0.35 EUR"
	is "$(last messages.4.content.0.detail.stdout)" 7.63
	[ "$(wc -l <"$examples/agent.c")" -le 80 ]
}

@test "agent: files that are wrong name their line" {
	printf 'name: a\nmodel: x\ntools: [run_pyhton]\n' >a.yaml
	for command in "check a.yaml" "dump a.yaml" "run a.yaml task"; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr "$cordon" agent $command
		is "$status" 125
		is "$output" ""
		has "$stderr" "a.yaml:3:9: /tools/0: no such tool 'run_pyhton'"
	done
	printf 'model: {model: x, api_key: sk-4711}\n' >a.yaml
	run --separate-stderr "$cordon" agent check a.yaml
	is "$status" 125
	has "$stderr" "{env: NAME} or {file: PATH}"
	lacks "$stderr" 4711
	printf 'model: x\npolicy: gone.yaml\ntools: [run_python]\n' >a.yaml
	run --separate-stderr "$cordon" agent check a.yaml
	is "$status" 125
	has "$stderr" gone.yaml
	run --separate-stderr "$cordon" agent check none.yaml
	is "$status" 125
}

@test "agent: bad calls" {
	for bad in "" frobnicate "run" "run $examples/coder.yaml" "run --replay" "check" "dump a b" "ls x" "show" \
		"run --replay a --record b x y" "schema --json" "run --resume nonsense" "show nonsense"; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr "$cordon" agent $bad
		is "$status" 125
		has "$stderr" "cordon: "
	done
	run --separate-stderr "$cordon" agent run --replay none.jsonl "$examples/coder.yaml" x
	is "$status" 125
	has "$stderr" none.jsonl
}

@test "agent: dump, load, dump" {
	for name in coder analyst assistant team; do
		agent dump "$examples/$name.yaml" >$name.json
		agent dump $name.json >again.json
		cmp $name.json again.json
	done
	has "$(agent check "$examples/team.yaml")" "critic           assistant, gpt-4o-mini"
}

@test "agent: the schema is the reader's own table, and holds the examples" {
	local name
	is "$(agent schema)" "$(cat "$top/api/agent.schema.json")"
	for name in coder analyst assistant team; do
		agent dump "$examples/$name.yaml" >$name.json
		# The short form as JSON, by the reader's own parser.
		python3 "$BATS_TEST_DIRNAME/agent-schema.py" "$top/api/agent.schema.json" $name.json
	done
	cat >short.json <<-END
		{"name": "a", "model": {"model": "m", "api_key": {"env": "K"}}, "tools": ["run_python", {"run_shell": {"approval": "always"}}, {"./p": {}}],
		 "box": {"memory": "1g"}, "context": {"last": 3}, "stop": {"text": "X", "all": [{"messages": 3}, {"time": "2m"}]}, "budget": {"time": "1m"},
		 "toolsets": ["sandbox", {"static": {"tools": ["read_file"], "names": {"read_file": "read"}}}]}
	END
	echo '{"team": "selector", "model": "m", "agents": {"a": {"system": "s"}, "u": {"kind": "user"}}, "max_turns": 3}' >team-short.json
	python3 "$BATS_TEST_DIRNAME/agent-schema.py" "$top/api/agent.schema.json" short.json team-short.json
	agent dump team-short.json >/dev/null
	# What the reader refuses, the schema refuses.
	for bad in '{"name": "a b", "model": "m"}' '{"modle": "m"}' '{"model": {"model": "m", "api_key": "k"}}' \
		'{"model": "m", "stop": {"mesages": 3}}' '{"provider": "os.system"}' \
		'{"provider": "cordon.agent.assistant", "config": {"name": "a"}}'; do
		echo "$bad" >bad.json
		run agent dump bad.json
		is "$status" 125
		run python3 "$BATS_TEST_DIRNAME/agent-schema.py" "$top/api/agent.schema.json" bad.json
		is "$status" 1
	done
}

@test "agent: import lists what it left out" {
	cat >theirs.json <<-'END'
		{"provider": "autogen_agentchat.teams.RoundRobinGroupChat", "component_type": "team", "version": 1, "config": {
		 "participants": [{"provider": "autogen_agentchat.agents.AssistantAgent", "config": {"name": "writer",
		  "model_client": {"provider": "autogen_ext.models.openai.OpenAIChatCompletionClient", "config": {"model": "gpt-4o", "api_key": "sk-4711"}},
		  "tools": [{"provider": "autogen_core.tools.FunctionTool", "config": {"source_code": "import os"}}]}}],
		 "termination_condition": {"provider": "autogen_agentchat.conditions.MaxMessageTermination", "config": {"max_messages": 4}}}}
	END
	run --separate-stderr "$cordon" agent import --output ours.json theirs.json
	is "$status" 1
	has "$stderr" "left out: /config/participants/0/config/tools/0: autogen_core.tools.FunctionTool"
	has "$stderr" "left out: /config/participants/0/config/model_client/config/api_key"
	lacks "$(cat ours.json)" 4711
	has "$(agent check ours.json)" "writer           assistant, gpt-4o"
	echo '{"provider": "test_evil.Run"}' >theirs.json
	run --separate-stderr "$cordon" agent import theirs.json
	is "$status" 125
	is "$output" ""
}

@test "agent: nothing of a model steers the terminal" {
	answer $'red\x1b[31m bell\x07 back\xe2\x80\xae' >r.jsonl
	printf 'model: m\nstream: false\n' >a.yaml
	run --separate-stderr "$cordon" agent run --replay r.jsonl a.yaml $'do\x1b[2J'
	is "$status" 0
	has "$output" "red<U+001B>[31m bell<U+0007> back<U+202E>"
	has "$output" "do<U+001B>[2J"
	lacks "$output" $'\x1b'
	[[ $(CLICOLOR_FORCE=1 agent run --replay r.jsonl a.yaml x) == *$'\x1b[1m----------'* ]]
	[[ $(NO_COLOR=1 CLICOLOR_FORCE=1 agent run --replay r.jsonl a.yaml x) != *$'\x1b'* ]]
}

@test "agent: what asks suspends, and goes on when the answer is there" {
	{ calls run_python '{"code": "print(6 * 7)"}'; answer "It is 42."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [{run_python: {approval: always}}]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --json --no-input --replay r.jsonl a.yaml "six times seven"
	is "$status" 3
	is "$(last status)" suspended
	is "$(last stop_reason)" "Approval required: run_python"
	local run id
	run=$(last run)
	id=$("$cordon" approvals list --json | python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["id"])')
	has "$(agent ls)" "$run"
	# Not answered: it waits on.
	run --separate-stderr "$cordon" agent run --no-input --resume "$run"
	is "$status" 3
	has "$output" "cordon agent run --resume"
	"$cordon" approvals approve "$id"
	tail -1 r.jsonl >rest.jsonl
	run --separate-stderr "$cordon" agent run --json --no-input --replay rest.jsonl --resume "$run"
	is "$status" 0
	is "$(last status)" completed
	is "$(last messages.0.content)" "six times seven"
	has "$output" '\"output\": \"42\\n\"'
}

@test "agent: who approved by code has every run asked, and settings of approval are kept" {
	cat >theirs.json <<-'END'
		{"provider": "autogen_agentchat.agents.CodeExecutorAgent", "config": {"name": "runner", "approval_func": "my.module.approve",
		 "code_executor": {"provider": "autogen_ext.code_executors.local.LocalCommandLineCodeExecutor", "config": {}}}}
	END
	run --separate-stderr "$cordon" agent import --output ours.json theirs.json
	is "$status" 1
	has "$stderr" "left out: /config/approval_func: approval_func: code that approves is not loaded"
	printf '%s\n' '```python' 'print(1)' '```' >task
	run --separate-stderr "$cordon" agent run --json --no-input ours.json - <task
	is "$status" 3
	has "$(last stop_reason)" "Approval required"
	# Once more through dump: of an agent, and of a tool.
	has "$(agent dump ours.json)" '"approval": "always"'
	printf 'name: a\nmodel: m\napproval: always\ntools: [{run_shell: {approval: always}}, read_file]\n' >a.yaml
	agent dump a.yaml >one.json
	agent dump one.json >two.json
	diff one.json two.json
	is "$(grep -c '"approval": "always"' two.json)" 2
}

# suspend: a run that waits for an answer; $run and $id.
suspend() {
	{ calls run_python '{"code": "print(6 * 7)"}'; answer "It is 42."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [{run_python: {approval: always}}]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --json --no-input --replay r.jsonl a.yaml "six times seven"
	is "$status" 3
	run=$(last run)
	id=$("$cordon" approvals list --json | python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["id"])')
}

@test "agent: a run that waits can be cancelled later, and its question is withdrawn" {
	local run id
	suspend
	run --separate-stderr "$cordon" agent cancel --reason "not needed" "$run"
	is "$status" 0
	is "$output" "$run cancelled; withdrawn: $id"
	is "$("$cordon" approvals list)" "nothing waits for an answer"
	has "$("$cordon" approvals show "$id")" "state      withdrawn"
	has "$("$cordon" approvals show "$id")" "the run was cancelled: not needed"
	# An answer is an error, and is told why.
	run --separate-stderr "$cordon" approvals approve "$id"
	is "$status" 1
	has "$stderr" "was already withdrawn"
	run --separate-stderr "$cordon" approvals deny "$id"
	is "$status" 1
	has "$("$cordon" audit export)" '"decision":"withdraw"'
	has "$(agent ls)" "Cancelled: not needed"
	# A second time there is nothing to cancel.
	run --separate-stderr "$cordon" agent cancel "$run"
	is "$status" 1
	has "$stderr" "waits for nobody"
	# The turn has not happened; it can be made another way.
	answer "Another way." >rest.jsonl
	run --separate-stderr "$cordon" agent run --json --no-input --replay rest.jsonl --resume "$run"
	is "$status" 0
	is "$(last messages.0.content)" "Another way."
}

@test "agent: a yes that was not used yet is void when its run is cancelled" {
	local run id point
	suspend
	point=$(last checkpoint)
	"$cordon" approvals approve "$id"
	run --separate-stderr "$cordon" agent cancel --json "$run"
	is "$status" 0
	is "$(field withdrawn.0) $(field status)" "$id cancelled"
	# Who goes on from the earlier checkpoint hears it.
	tail -1 r.jsonl >rest.jsonl
	run --separate-stderr "$cordon" agent run --json --no-input --replay rest.jsonl --resume "$point"
	is "$status" 0
	has "$output" "Tool call was not approved. Reason: the run was cancelled: by hand"
	lacks "$output" '42\\n'
	# Only the end of a run can be cancelled, and only one that there is.
	run --separate-stderr "$cordon" agent cancel "$point"
	is "$status" 125
	has "$stderr" "has gone on since"
	run --separate-stderr "$cordon" agent cancel 01a1e48f-3310-7000-82fa-b24982ecae6b
	is "$status" 125
}

@test "agent: after a crash within an approved call everything says that the outcome is unknown" {
	local run id pid i
	{ calls run_python '{"code": "import time; print(1, flush=True); time.sleep(25)"}'; answer "Well."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [{run_python: {approval: always}}]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --json --no-input --replay r.jsonl a.yaml x
	is "$status" 3
	run=$(last run)
	id=$("$cordon" approvals list --json | python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["id"])')
	"$cordon" approvals approve "$id"
	tail -1 r.jsonl >rest.jsonl
	"$cordon" agent run --json --no-input --replay rest.jsonl --resume "$run" >out.jsonl 2>err 3>&- </dev/null &
	pid=$!
	for ((i = 0; i < 200; i++)); do
		! "$cordon" approvals show "$id" | grep -q 'used       yes' || break
		sleep 0.05
	done
	kill -KILL "$pid"
	wait "$pid" || :
	run --separate-stderr "$cordon" agent run --no-input --replay rest.jsonl --metrics figures --resume "$run"
	is "$status" 0
	has "$output" "run_python: outcome unknown"
	has "$output" "approved before, outcome unknown"
	has "$output" "Tool call was not made again. It was approved, and the answer to '$id' was used already"
	has "$output" "denied 0, outcome unknown 1"
	lacks "$output" "not approved"
	has "$("$cordon" audit export)" '"status":"unknown"'
	has "$(cat figures)" 'cordon_approvals_total{outcome="unknown"} 1'
}

@test "agent: the record of an approval has everything, and show shows it" {
	local run id text
	suspend
	# Of the event and of the checkpoint: the same record.
	python3 - <<-'END' "$output" "$id"
		import hashlib, json, re, sys
		events = [json.loads(line) for line in sys.argv[1].splitlines()]
		r = next(e for e in events if e["type"] == "ApprovalRequestedEvent")["approval"]
		for name in ("id", "agent", "team", "run", "tool", "arguments", "code_blocks", "limits",
		             "context", "digest", "requested_at", "expires_at", "asked_of"):
		    assert r.get(name), name
		assert r["id"] == sys.argv[2] and r["agent"] == "a" and r["tool"] == "run_python"
		assert json.loads(r["arguments"]) == {"code": "print(6 * 7)"}
		block, = r["code_blocks"]
		assert block["sha256"] == hashlib.sha256(b"print(6 * 7)").hexdigest(), block
		assert re.fullmatch("[0-9a-f]{64}", r["context"]) and re.fullmatch("[0-9a-f]{64}", r["digest"])
		open("record.json", "w").write(json.dumps(r))
	END
	text=$("$cordon" approvals show "$id")
	for part in id agent team run tool context digest; do
		has "$text" "$(python3 -c 'import json, sys; print(json.load(open("record.json"))[sys.argv[1]])' "$part")"
	done
	for part in "code       python, 12 bytes, sha256 " 'arguments  {"code":"print(6 * 7)"}' "limits: timeout" \
		"asked of   terminal, store" "made " "expires "; do
		has "$text" "$part"
	done
}

# at_terminal ANSWER CMD...: on a terminal, where a question gets this answer
at_terminal() {
	python3 - "$@" <<-'END'
		import os, pty, sys
		pid, fd = pty.fork()
		if pid == 0:
		    os.execvp(sys.argv[2], sys.argv[2:])
		said, waiting = b"", [(b"Why not", b"not now"), (b"Allow this?", sys.argv[1].encode())]
		while True:
		    try:
		        chunk = os.read(fd, 4096)
		    except OSError:
		        break
		    if not chunk:
		        break
		    said += chunk
		    if waiting and waiting[-1][0] in said:
		        os.write(fd, waiting.pop()[1] + b"\n")
		sys.stdout.write(said.decode(errors="replace"))
		sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	END
}

@test "agent: at a terminal the question is asked in place" {
	{ calls run_python '{"code": "print(6 * 7)"}'; answer "Done."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [{run_python: {approval: always}}]\n' >a.yaml
	run at_terminal y "$cordon" agent run --replay r.jsonl a.yaml x
	is "$status" 0
	has "$output" "print(6 * 7)"
	has "$output" "approved"
	has "$output" "run_python: "
	has "$output" "exited, status 0"
	run at_terminal n "$cordon" agent run --replay r.jsonl a.yaml x
	is "$status" 0
	has "$output" "not approved"
	has "$output" "Reason: not now"
	has "$output" "denied 1"
}

@test "agent: no is an answer, and the model hears it" {
	{ calls run_python '{"code": "print(1)"}'; answer "Then not."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [{run_python: {approval: always}}]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --json --no-input --replay r.jsonl a.yaml x
	is "$status" 3
	local run
	run=$(last run)
	"$cordon" approvals deny --reason "not today" "$("$cordon" approvals list --json | python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["id"])')"
	tail -1 r.jsonl >rest.jsonl
	run --separate-stderr "$cordon" agent run --no-input --replay rest.jsonl --resume "$run"
	is "$status" 0
	has "$output" "not today"
	has "$output" "denied 1"
}

@test "agent: an interrupt ends the box and leaves a checkpoint" {
	{ calls run_python '{"code": "import time; print(1, flush=True); time.sleep(25)"}'; answer "Done."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [run_python]\n' >a.yaml
	"$cordon" agent run --json --replay r.jsonl a.yaml x >out.jsonl 2>err 3>&- </dev/null &
	local pid=$! i
	for ((i = 0; i < 100; i++)); do
		! grep -q ToolCallRequestEvent out.jsonl || break
		sleep 0.05
	done
	sleep 0.3
	kill -INT "$pid"
	SECONDS=0
	status=0
	wait "$pid" || status=$?
	is "$status" 130
	[ "$SECONDS" -le 5 ]
	output=$(cat out.jsonl)
	is "$(last status)" cancelled
	local run
	run=$(last run)
	# The turn has not happened; it is made again.
	{ answer "Another way."; } >rest.jsonl
	run --separate-stderr "$cordon" agent run --json --replay rest.jsonl --resume "$run"
	is "$status" 0
	is "$(last messages.0.content)" "Another way."
	has "$(agent show "$(last run)")" "---------- TextMessage (user) ----------"
}

@test "agent: after a crash it goes on" {
	{ answer "first"; calls run_python '{"code": "import time; time.sleep(25)"}'; } >r.jsonl
	printf 'model: m\nmax_turns: 2\nagents:\n  a: {stream: false}\n  b: {tools: [run_python]}\n' >a.yaml
	"$cordon" agent run --json --replay r.jsonl a.yaml x >out.jsonl 2>err 3>&- </dev/null &
	local pid=$! i
	for ((i = 0; i < 100; i++)); do
		! grep -q ToolCallRequestEvent out.jsonl || break
		sleep 0.05
	done
	kill -KILL "$pid"
	wait "$pid" || :
	answer "second" >rest.jsonl
	run --separate-stderr "$cordon" agent run --json --replay rest.jsonl \
		--resume "$(agent ls --json | head -1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])')"
	is "$status" 0
	is "$(last stop_reason)" "Maximum number of turns 2 reached."
	is "$(last messages.1.content)" first
	is "$(last messages.2.content)" second
}

@test "agent: a person in a team answers here, or later" {
	printf 'model: m\nmax_turns: 2\nagents:\n  a: {stream: false}\n  me: {kind: user, prompt: "Well? "}\n' >a.yaml
	answer "What colour?" >r.jsonl
	run --separate-stderr bash -c "echo blue | '$cordon' agent run --json --replay r.jsonl a.yaml x"
	is "$status" 0
	has "$stderr" "Well?"
	is "$(last messages.3.content)" blue
	run --separate-stderr "$cordon" agent run --json --no-input --replay r.jsonl a.yaml x
	is "$status" 3
	is "$(last stop_reason)" "Input required: me"
	local id
	id=$(last run)
	run --separate-stderr "$cordon" agent run --json --no-input --resume "$id"
	is "$status" 3
	has "$stderr" "'me' waits for words of a person"
	run --separate-stderr "$cordon" agent run --json --no-input --resume "$id" green
	is "$status" 0
	has "$output" green
}

@test "agent: a program is a tool, with its schema beside it" {
	printf '#!/bin/sh\nwc -w\n' >count
	chmod +x count
	echo '{"name": "count", "description": "counts words", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}' >count.json
	{ calls count '{"text": "a b c"}'; calls count '{"txt": 1}'; answer "Three."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [./count]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --replay r.jsonl a.yaml x
	is "$status" 0
	has "$output" "count: allowed; box: exited, status 0"
	has "$output" "'text' is missing"
}

@test "agent: a toolset's tools have names of their own, and the policy's rules" {
	{ calls py '{"code": "print(6*7)"}'; calls run_shell '{"command": "ls"}'; answer "42."; } >r.jsonl
	printf 'name: a\nmodel: m\ntoolsets:\n  - sandbox: {tools: [run_python], names: {run_python: py}}\n' >a.yaml
	run --separate-stderr "$cordon" agent run --replay r.jsonl a.yaml x
	is "$status" 0
	has "$output" "py: allowed; box: exited, status 0"
	has "$output" "There is no tool 'run_shell'. There are: py"
	printf 'version: 1\nextends: strict\ntools:\n  py: {agents: [a]}\n  run_python: {agents: [b]}\n' >p.yaml
	run --separate-stderr "$cordon" agent run --policy p.yaml --replay r.jsonl a.yaml x
	has "$output" "tool 'run_python' is not given to agent 'a'"
	printf 'name: a\nmodel: m\ntools: [run_python]\ntoolsets: [sandbox]\n' >a.yaml
	run --separate-stderr "$cordon" agent check a.yaml
	is "$status" 125
	has "$stderr" "'a' has two tools called 'run_python'"
	printf 'name: a\nmodel: m\ntoolsets: [{mcp: {}}]\n' >a.yaml
	run --separate-stderr "$cordon" agent check a.yaml
	is "$status" 125
	has "$stderr" "a.yaml:3"
	has "$stderr" "not in this build"
}

@test "agent: filters of the policy hold for every word, and secrets are kept nowhere" {
	printf 'version: 1\nextends: strict\nfilters:\n  - {on: [user, tool], match: [secrets], do: mask}\n' >p.yaml
	printf 'name: a\nmodel: m\nstream: false\npolicy: p.yaml\n' >a.yaml
	answer "Fine." >r.jsonl
	run --separate-stderr "$cordon" agent run --replay r.jsonl a.yaml "log in with AKIAIOSFODNN7EXAMPLE"
	is "$status" 0
	has "$output" "log in with [masked"
	lacks "$output" AKIAIOSFODNN7EXAMPLE
	has "$("$cordon" audit list --kind message.filter)" "taken out"
	run --separate-stderr "$cordon" agent run --json --replay r.jsonl a.yaml "log in with AKIAIOSFODNN7EXAMPLE"
	is "$status" 0
	is "$("$cordon" audit list --kind message.filter --json | tail -1 | grep -o '"run":"[^"]*"')" "\"run\":\"$(last run)\""
	# Without such a policy the person's words are as they are; the list of runs has no key.
	sed -i /policy/d a.yaml
	agent run --replay r.jsonl a.yaml "log in with AKIAIOSFODNN7EXAMPLE" >/dev/null
	has "$(agent ls)" "log in with AKIA[redacted]"
	lacks "$(agent ls --json)" AKIAIOSFODNN7EXAMPLE
	lacks "$(cat "$CORDON_STATE_DIR"/ledger/*.jsonl)" AKIAIOSFODNN7EXAMPLE
}

@test "agent: an answer that a filter refuses is not told, and pieces of it neither" {
	printf 'version: 1\nextends: strict\nfilters:\n  - {on: [assistant], match: {regex: "(?i)internal only"}, do: reject, reason: marked internal}\n' >p.yaml
	printf 'name: a\nmodel: m\npolicy: p.yaml\n' >a.yaml
	answer "This is INTERNAL only." >r.jsonl
	run --separate-stderr "$cordon" agent run --replay r.jsonl a.yaml x
	is "$status" 1
	has "$output" "marked internal"
	lacks "$output" INTERNAL
	answer "This is for everybody." >r.jsonl
	run --separate-stderr "$cordon" agent run --replay r.jsonl a.yaml x
	is "$status" 0
	has "$output" "This is for everybody."
	printf 'version: 1\nfilters:\n  - {on: [user], match: {regex: "(a)\\\\1"}, do: mask}\n' >p.yaml
	run --separate-stderr "$cordon" agent run --replay r.jsonl a.yaml x
	[ "$status" -ne 0 ]
	has "$stderr" "p.yaml:3"
	has "$stderr" "no back references"
}

@test "agent: one trace, a log and figures, without a word of what was said" {
	{ calls run_python '{"code": "print(6 * 7)"}'; answer "Forty-two it is."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [run_python]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --replay r.jsonl --trace t --log l --metrics m a.yaml "six times seven"
	is "$status" 0
	python3 - <<-'END'
		import json
		spans = [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for line in open("t")]
		assert len({s["traceId"] for s in spans}) == 1, "more than one trace"
		by = {s["spanId"]: s for s in spans}
		def path(s):
		    above = by.get(s.get("parentSpanId"))
		    return (path(above) if above else []) + [s["name"]]
		code = [path(s) for s in spans if s["name"] == "execute_code"]
		assert len(code) == 1 and code[0][0] == "invoke_agent team", code
		assert code[0][-3:] == ["invoke_agent a", "execute_tool run_python", "execute_code"], code
		events = [json.loads(line)["event"] for line in open("l")]
		assert {"send", "deliver", "llm_call", "tool_call", "tool_result"} <= set(events), events
	END
	grep -q '^cordon_tool_calls_total{tool="run_python",outcome="ok"} 1$' m
	grep -q '^cordon_tokens_total{agent="a",direction="prompt"} 20$' m
	run grep -iE "six times|forty-two|6 \* 7" t l m
	is "$status" 1
}

@test "agent: the answers are recorded, and play again" {
	answer "Hello." >r.jsonl
	printf 'name: a\nmodel: m\nstream: false\n' >a.yaml
	printf '{"provider": "cordon.agent.assistant", "config": {"name": "a", "model": {"provider": "cordon.model.replay", "config": {"file": "r.jsonl"}}}}' >b.json
	run --separate-stderr "$cordon" agent run --json b.json x
	is "$status" 0
	is "$(last messages.1.content)" "Hello."
	# Nobody is there: an error, in the result.
	printf 'name: a\nmodel: {model: m, base_url: "http://127.0.0.1:9/v1", max_retries: 0, timeout: 3}\nstream: false\n' >a.yaml
	run --separate-stderr "$cordon" agent run --json --record new.jsonl a.yaml x
	is "$status" 1
	is "$(last status)" failed
	has "$(last error)" "unavailable"
}

@test "agent: with an endpoint and a key in the environment, one command" {
	local i server text
	python3 "$BATS_TEST_DIRNAME/agent-server.py" port log 3>&- &
	server=$!
	for ((i = 0; i < 100; i++)); do
		[ ! -e port ] || break
		sleep 0.05
	done
	OPENAI_BASE_URL=http://127.0.0.1:$(cat port)/v1
	export OPENAI_BASE_URL OPENAI_API_KEY=sk-only-for-the-server
	run --separate-stderr "$cordon" agent run --record new.jsonl "$examples/coder.yaml" "six times seven"
	kill "$server"
	is "$status" 0
	has "$output" "run_python: allowed; box: exited, status 0"
	has "$output" "Six times seven is 42."
	has "$output" "40 prompt, 16 completion"
	text=$output
	is "$(wc -l <log)" 2
	has "$(cat log)" "Bearer sk-only-for-the-server"
	has "$(cat log)" '"model": "gpt-4o-mini"'
	# The key is nowhere else.
	lacks "$text" sk-only
	run grep -r sk-only "$CORDON_STATE_DIR" new.jsonl
	is "$status" 1
	# Without the server, from what was written down: the same.
	unset OPENAI_BASE_URL OPENAI_API_KEY
	run --separate-stderr "$cordon" agent run --replay new.jsonl "$examples/coder.yaml" "six times seven"
	is "$status" 0
	is "$(without_times <<<"$output")" "$(without_times <<<"$text")"
}

@test "agent: a file's wish to send a key somewhere is only a wish" {
	local bad host
	export AWS_SECRET_ACCESS_KEY=x OPENAI_API_KEY=y
	for bad in 'base_url: "https://evil.example/v1", api_key: {env: AWS_SECRET_ACCESS_KEY}' \
		'base_url: "https://evil.example/v1", api_key: {env: OPENAI_API_KEY}' \
		'base_url: "http://evil.example/v1", api_key: {env: OPENAI_API_KEY}' \
		'base_url: "https://127.0.0.1.evil.example/v1", api_key: {env: OPENAI_API_KEY}' \
		'base_url: "http://[::1].evil.example/v1", api_key: {env: OPENAI_API_KEY}' \
		'base_url: "http://localhost:1@evil.example/v1", api_key: {env: OPENAI_API_KEY}' \
		'api_key: {env: AWS_SECRET_ACCESS_KEY}' 'api_key: {file: ./key}' \
		'base_url: "http://127.0.0.1:9/v1", api_key: {file: /root/.aws/credentials}'; do
		printf 'model: {model: m, %s}\n' "$bad" >a.yaml
		run --separate-stderr "$cordon" agent check a.yaml
		is "$status" 125
		has "$stderr" "key"
	done
	printf 'model: {model: m, base_url: "https://api.example/v1", api_key: {env: MY_KEY}}\n' >a.yaml
	run --separate-stderr "$cordon" agent check a.yaml
	is "$status" 125
	has "$stderr" "--secret MY_KEY@api.example"
	agent check --secret MY_KEY@api.example a.yaml
	CORDON_AGENT_SECRETS="A@b.example, MY_KEY@api.example" agent check a.yaml
	run agent check --secret MY_KEY@api.example.org a.yaml
	is "$status" 125
	# In the clear: not even then.
	sed -i s/https/http/ a.yaml
	run agent check --secret MY_KEY@api.example a.yaml
	is "$status" 125
	for host in 127.0.0.1:9 '[::1]:9' '[::1]' localhost; do
		printf 'model: {model: m, base_url: "http://%s/v1", api_key: {env: MY_KEY}}\n' "$host" >a.yaml
		agent check a.yaml
	done
}

@test "agent: spans of a run, and nothing that was said in it" {
	example coder "Fibonacci" --trace "$PWD/spans"
	is "$status" 0
	python3 -c 'import json, sys
text = open("spans").read()
spans = [s for line in text.splitlines() for r in json.loads(line)["resourceSpans"] for p in r["scopeSpans"] for s in p["spans"]]
names = {s["name"] for s in spans}
assert any(n.startswith("invoke_agent") for n in names) and "execute_tool run_python" in names, names
assert "Fibonacci" not in text'
}

@test "agent: help, manual and completion know the same" {
	local name flag
	for name in $(agent --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
		has "$(cat "$top/man/cordon-agent.1")" "cordon agent $name"
		[[ $("$cordon" completion bash) =~ compgen\ -W\ \"([a-z]+\ )*$name(\ schema|\ [a-z]+)*\" ]]
		for flag in $(agent "$name" --help | sed -n 's/^  --\([a-z-]*\).*/\1/p'); do
			has "$(sed 's/\\-/-/g' "$top/man/cordon-agent.1")" "--$flag"
			has "$("$cordon" completion bash)" "--$flag"
		done
	done
	[ "$(agent --help | wc -L)" -le 100 ]
	"$cordon" completion bash | bash -n
	has "$("$cordon" --help)" agent
	has "$("$cordon" help agent)" "usage: cordon agent"
}

@test "agent: a policy that comes with a file opens nothing; --policy does" {
	mkdir dl other
	echo old >other/notes
	printf 'name: a\nmodel: m\npolicy: p.yaml\ntools: [write_file: {workspace: %s}]\n' "$PWD/other" >dl/a.yaml
	{ calls write_file '{"path": "notes", "content": "new"}'; answer "Done."; } >r.jsonl
	for rule in "sandbox: {mount_roots: [$PWD/other]}" "sandbox: {mounts: [{from: $PWD/other, to: /workspace/o, mode: ro}]}" \
		'tools: {"*": {agents: ["*"], approval: never}}' 'network: {allow: [{host: example.com}]}' \
		'sandbox: {env_from_host: [HOME]}'; do
		printf 'version: 1\n%s\n' "$rule" >dl/p.yaml
		run --separate-stderr "$cordon" agent run --no-input --replay r.jsonl dl/a.yaml x
		[ "$status" -ne 0 ]
		has "$stderr" "brings the policy"
		has "$stderr" "--policy"
		is "$(cat other/notes)" old
	done
	printf 'version: 1\nsandbox: {mount_roots: [%s]}\ntools: {"*": {agents: ["*"], approval: never}}\n' "$PWD/other" >dl/p.yaml
	run --separate-stderr "$cordon" agent run --no-input --policy dl/p.yaml --replay r.jsonl dl/a.yaml x
	is "$status" 0
	is "$(cat other/notes)" new
}

@test "agent: a run goes on under its policy, and what was asked waits whatever applies now" {
	printf 'version: 1\nextends: strict\ntools:\n  run_python: {agents: [a], approval: always}\n' >ask.yaml
	{ calls run_python '{"code": "print(6 * 7)"}'; answer "Done."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [run_python]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --json --no-input --policy ask.yaml --replay r.jsonl a.yaml x
	is "$status" 3
	local run
	run=$(last run)
	tail -1 r.jsonl >rest.jsonl
	mkdir elsewhere
	for where in . elsewhere; do
		cd "$where"
		run --separate-stderr "$cordon" agent run --no-input --replay "$OLDPWD/rest.jsonl" --resume "$run"
		is "$status" 3
		lacks "$output" $'\n  42'
	done
	cd ..
	# Another policy is not taken unsaid; and under one that asks for nothing it is not made either.
	CORDON_POLICY=strict run --separate-stderr "$cordon" agent run --no-input --replay rest.jsonl --resume "$run"
	[ "$status" -ne 0 ]
	has "$stderr" "--policy"
	run --separate-stderr "$cordon" agent run --no-input --policy strict --replay rest.jsonl --resume "$run"
	has "$output" "not approved"
	lacks "$output" "42"
}

@test "agent: an answer is for its run, not for the next one that asks the same" {
	{ calls run_python '{"code": "print(6 * 7)"}'; answer "It is 42."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [{run_python: {approval: always}}]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --json --no-input --replay r.jsonl a.yaml x
	is "$status" 3
	"$cordon" approvals approve "$(last pending.0.id)"
	local first
	first=$(last run)
	run --separate-stderr "$cordon" agent run --json --no-input --replay r.jsonl a.yaml x
	is "$status" 3
	tail -1 r.jsonl >rest.jsonl
	run --separate-stderr "$cordon" agent run --json --no-input --replay rest.jsonl --resume "$first"
	is "$status" 0
	has "$output" '\"output\": \"42\\n\"'
}

@test "agent: another name for a tool is the same tool" {
	printf 'version: 1\nextends: shell-tools\ntools:\n  run_python: {agents: [a]}\n  run_shell: {agents: [b]}\n' >p.yaml
	{ calls run_python '{"command": "echo hello"}'; answer "Done."; } >r.jsonl
	printf 'name: a\nmodel: m\ntools: [{run_shell: {name: run_python}}]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --no-input --policy p.yaml --replay r.jsonl a.yaml x
	lacks "$output" "status 0"
}

@test "agent: files of tools are those beside the agent, or those of the policy" {
	mkdir d
	echo here >d/f
	{ calls read_file '{"path": "f"}'; answer "Read."; } >r.jsonl
	for bad in /proc/self /etc /; do
		printf 'name: a\nmodel: m\ntools: [{read_file: {workspace: %s}}]\n' "$bad" >d/a.yaml
		run --separate-stderr "$cordon" agent run --no-input --replay r.jsonl d/a.yaml x
		[ "$status" -ne 0 ]
		has "$stderr" "read_file"
	done
	ln -s /etc d/link
	printf 'name: a\nmodel: m\ntools: [{read_file: {workspace: link}}]\n' >d/a.yaml
	run --separate-stderr "$cordon" agent run --no-input --replay r.jsonl d/a.yaml x
	[ "$status" -ne 0 ]
	printf 'name: a\nmodel: m\ntools: [{read_file: {workspace: .}}]\n' >d/a.yaml
	run --separate-stderr "$cordon" agent run --no-input --replay r.jsonl d/a.yaml x
	is "$status" 0
	has "$output" "here"
}

@test "agent: the policy that applies here is not replaced by a file's" {
	printf 'version: 1\nextends: strict\ntools: {run_shell: {agents: [a]}}\n' >cordon.yaml
	{ calls run_python '{"code": "print(6 * 7)"}'; answer "It is 42."; } >r.jsonl
	printf 'name: a\nmodel: m\npolicy: strict\ntools: [run_python]\n' >a.yaml
	run --separate-stderr "$cordon" agent run --no-input --replay r.jsonl a.yaml x
	[ "$status" -ne 0 ]
	has "$stderr" "choose one of them by --policy"
	run --separate-stderr "$cordon" agent run --no-input --policy strict --replay r.jsonl a.yaml x
	is "$status" 0
}

@test "agent: only a person is named user; code that an agent runs counts" {
	answer '```python
print(1)
```' >r.jsonl
	cat r.jsonl r.jsonl r.jsonl >all.jsonl
	printf 'agents:\n  a: {model: m}\n  x: {kind: code_executor}\nstop: {messages: 7}\nbudget: {tool_calls: 1}\n' >a.yaml
	run --separate-stderr "$cordon" agent run --no-input --replay all.jsonl a.yaml x
	is "$status" 1
	has "$output" "Budget exceeded: tool_calls"
	printf 'name: user\nmodel: m\n' >a.yaml
	run --separate-stderr "$cordon" agent run --no-input --replay r.jsonl a.yaml x
	[ "$status" -ne 0 ]
	has "$stderr" "named 'user'"
}

@test "agent: an answer that does not follow its schema is one error" {
	printf 'agents:\n  a: {model: m, output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}}\n' >a.yaml
	printf 'on_agent_error: skip\nstop: {errors: 2}\n' >>a.yaml
	{ answer no; answer "no, no"; answer no; answer "no, no"; } >r.jsonl
	run --separate-stderr "$cordon" agent run --json --no-input --replay r.jsonl a.yaml x
	is "$(last stop_reason)" "Error limit reached: 2"
	is "$(last usage.errors)" 2
}
