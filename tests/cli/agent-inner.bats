#!/usr/bin/env bats
# Agents and teams as tools of other agents; no model is asked.
# shellcheck disable=SC2030,SC2031,SC2016,SC2154 # bats runs each test in a shell of its own; common sets $cordon
load common
eval "common_$(declare -f setup)"

setup() {
	common_setup
	export CORDON_STATE_DIR=$BATS_TEST_TMPDIR/state XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
	export CORDON_LIBEXEC=$CORDON_BUILD
	unset CORDON_POLICY OPENAI_API_KEY OPENAI_BASE_URL
	mkdir w w/files
	cd w || return
}

# script LINE...: a recording; a line is an answer, or NAME {arguments}
script() {
	python3 -c 'import json, re, sys
for line in sys.argv[1:]:
    call = re.fullmatch(r"(\w+) (\{.*\})", line)
    result = {"finish_reason": "stop", "content": line} if not call else {
        "finish_reason": "function_calls", "calls": [{"id": "c1", "name": call[1], "arguments": call[2]}]}
    print(json.dumps({"result": dict(result, usage={"prompt_tokens": 10, "completion_tokens": 5})}))' "$@"
}

# last MEMBER: of the last line of $output, the TaskResult
last() {
	tail -1 <<<"$output" | python3 -c 'import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."):
    value = value[int(name) if name.isdigit() else name]
print(value)' "$1"
}

play() {
	run --separate-stderr "$cordon" agent run --no-input --replay r.jsonl "$@"
}

waiting() {
	"$cordon" approvals list --json | python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["id"])'
}

@test "inner: an agent gives a task to another, whose work is told and counted" {
	printf 'name: boss\nmodel: m\ntools:\n  - agent: {name: helper, description: Computes., tools: [run_python]}\n' >a.yaml
	script 'helper {"task": "6*7?"}' 'run_python {"code": "print(6*7)"}' 'It is 42.' 'He says 42.' >r.jsonl
	play a.yaml x
	is "$status" 0
	has "$output" "---------- ToolCallRequestEvent (boss > helper) ----------"
	has "$output" "run_python: allowed; box: exited, status 0"
	has "$output" "---------- TextMessage (boss > helper) ----------"
	has "$output" "tool calls  2, denied 0"
	has "$output" "tokens      40 prompt, 20 completion"
	# On the ledger each by its own name.
	run "$cordon" audit list --kind tool.call
	has "$output" "helper       "
	[[ $output == *helper*"run_python success"*boss*"helper success"* ]]
}

@test "inner: what the other one is not given it does not get through its caller" {
	printf 'name: boss\nmodel: m\ntools:\n  - run_python\n  - agent: {name: helper, tools: [run_python]}\n' >a.yaml
	printf 'version: 1\nextends: strict\ntools:\n  run_python: {agents: [boss]}\n  helper: {agents: [boss]}\n' >p.yaml
	script 'helper {"task": "t"}' 'run_python {"code": "1"}' 'I may not.' 'Then not.' >r.jsonl
	play --policy p.yaml a.yaml x
	is "$status" 0
	has "$output" "tool 'run_python' is not given to agent 'helper'"
	# Nor is the agent itself, unless the policy names it.
	sed -i /helper/d p.yaml
	script 'helper {"task": "t"}' 'No helper.' >r.jsonl
	play --policy p.yaml a.yaml x
	is "$status" 0
	has "$output" "tool 'helper' is not given"
}

@test "inner: a question of the other one suspends the run, which goes on after yes, and after no" {
	printf 'name: boss\nmodel: m\ntools:\n  - agent: {name: helper, tools: [write_file], workspace: files}\n' >a.yaml
	for answer in yes no; do
		script 'helper {"task": "t"}' 'write_file {"path": "x.txt", "content": "hi"}' >r.jsonl
		play --json a.yaml x
		is "$status" 3
		is "$(last stop_reason)" "Approval required: write_file"
		is "$(last pending.0.approval.agent)" helper
		# Told once, and once more in the result.
		is "$(grep -o '"ApprovalRequestedEvent"' <<<"$output" | wc -l)" 2
		run=$(last run)
		# Not answered yet.
		play --json --resume "$run"
		is "$status" 3
		if [ $answer = yes ]; then
			"$cordon" approvals approve "$(waiting)"
		else
			"$cordon" approvals deny --reason "not today" "$(waiting)"
			rm files/x.txt
		fi
		script 'It is done.' 'The helper is through.' >r.jsonl
		play --json --resume "$run"
		is "$status" 0
		is "$(last messages.0.content)" x
		is "$(last usage.prompt_tokens)" 40
		if [ $answer = yes ]; then
			is "$(cat files/x.txt)" hi
		else
			has "$output" "Reason: not today"
			[ ! -e files/x.txt ]
		fi
	done
}

@test "inner: a person within a team that is a tool is asked, and answered later" {
	cat >a.yaml <<-END
		name: boss
		model: m
		tools:
		  - team:
		      name: desk
		      agents: {asker: {system: Ask.}, person: {kind: user, prompt: "Which colour?"}}
		      max_turns: 2
	END
	script 'desk {"task": "find a colour"}' 'I ask.' >r.jsonl
	play --json a.yaml x
	is "$status" 3
	is "$(last stop_reason)" "Input required: boss"
	is "$(last pending.0.prompt)" "Which colour?"
	run=$(last run)
	script 'They like green.' >r.jsonl
	play --json --resume "$run" green
	is "$status" 0
	has "$output" "[The team 'desk' completed: Maximum number of turns 2 reached.]"
	has "$output" '"content":"green'
	is "$(last status)" completed
}

@test "inner: a team's end is told as it was" {
	cat >a.yaml <<-END
		name: boss
		model: m
		tools:
		  - team: {name: pair, agents: {one: {system: a}, two: {system: b}}, stop: {text: DONE, messages: 9}}
		    name: ask_pair
		    description: Two who think.
	END
	script 'ask_pair {"task": "t"}' 'Hm.' 'Yes. DONE' 'Good.' >r.jsonl
	play a.yaml x
	is "$status" 0
	has "$output" "[The team 'pair' completed: Text 'DONE' mentioned]"
	has "$output" "---------- TextMessage (boss > two) ----------"
	# One that fails is an error that the model reads.
	sed -i 's/, messages: 9/&}, budget: {tokens: 20/' a.yaml
	script 'ask_pair {"task": "t"}' 'Hm.' 'Yes.' 'Too bad.' >r.jsonl
	play a.yaml x
	is "$status" 0
	has "$output" "ask_pair: error"
	has "$output" "[The team 'pair' cancelled: Budget exceeded: tokens]"
	has "$output" "Too bad."
}

@test "inner: what the other one uses counts against the budget of all" {
	printf 'name: boss\nmodel: m\nbudget: {tokens: 40}\ntools:\n  - agent: {name: helper, tools: [run_python]}\n' >a.yaml
	script 'helper {"task": "t"}' 'run_python {"code": "1"}' 'One.' 'Never asked.' >r.jsonl
	play --json a.yaml x
	is "$(last stop_reason)" "Budget exceeded: tokens"
	lacks "$output" "Never asked."
	sed -i 's/tokens: 40/tool_calls: 1/' a.yaml
	play --json a.yaml x
	is "$(last stop_reason)" "Budget exceeded: tool_calls"
	sed -i 's/^budget.*/stop: {tokens: 40}/' a.yaml
	play --json a.yaml x
	has "$(last stop_reason)" "Token usage limit reached, total token count: 60"
	# The turn's own limit, too.
	sed -i 's/^stop.*/max_tokens_per_turn: 50/' a.yaml
	play --json a.yaml x
	has "$(last stop_reason)" "Budget exceeded: tokens of the turn"
}

@test "inner: filters hold for the other one's words" {
	printf 'version: 1\nextends: strict\nfilters:\n  - {on: [assistant, tool], match: [secrets], do: mask}\n' >p.yaml
	printf 'name: boss\nmodel: m\ntools:\n  - agent: {name: helper, tools: [run_python]}\n' >a.yaml
	script 'helper {"task": "t"}' 'run_python {"code": "print(\"AKIAIOSFODNN\" + \"7EXAMPLE\")"}' 'It is AKIAIOSFODNN7EXAMPLE.' 'Fine.' >r.jsonl
	play --json --policy p.yaml a.yaml x
	is "$status" 0
	lacks "$output" AKIAIOSFODNN7EXAMPLE
	has "$output" "It is [masked"
}

@test "inner: what cannot be is refused where it is written" {
	head=$'name: boss\nmodel: m\ntools:\n'
	refused() {
		printf '%s%s\n' "$head" "$1" >a.yaml
		run --separate-stderr "$cordon" agent check a.yaml
		is "$status" 125
		has "$stderr" "$2"
	}
	refused '  - agent: {system: x}' "'name' is missing"
	refused '  - agent: {name: boss}' "two agents are called 'boss'"
	refused $'  - agent: {name: a}\n  - agent: {name: b}\n    name: a' "'boss' has two tools called 'a'"
	refused '  - team: {name: t, agents: {a: {system: x}}}' "this would never end"
	refused '  - team: {name: t, policy: strict, max_turns: 1, agents: {a: {system: x}}}' "names no policy"
	refused $'  - agent: {name: a}\n    colour: red' "a.yaml:5"
	refused '  - agent: {name: a, tools: [{agent: {name: b, tools: [{agent: {name: c, tools: [{agent: {name: d, tools: [{agent: {name: e}}]}}]}}]}}]}' \
		"more than 4 agents deep"
	printf '%s%s\n' "$head" '  - agent: {name: a, tools: [{agent: {name: b}}]}' >a.yaml
	"$cordon" agent check a.yaml
	"$cordon" agent dump a.yaml >a.json
	"$cordon" agent dump a.json | cmp - a.json
}
