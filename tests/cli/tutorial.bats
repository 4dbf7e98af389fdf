#!/usr/bin/env bats
# A well-known way to hold an agent's shell commands: a list of seventeen names
# that the first word must be on, and some forbidden pieces of text. The list
# works here as it stands; what passes that check and does harm does not.
load common
eval "common_$(declare -f setup)"

setup() {
	common_setup
	export CORDON_STATE_DIR=$BATS_TEST_TMPDIR/state CORDON_LIBEXEC=$CORDON_BUILD
	unset CORDON_POLICY
	librun=$CORDON_BUILD/tests/librun
	names="ls cat head tail wc grep find sort uniq cut awk jq echo date python node curl"
	mkdir w
	cd w || return
	printf 'b 2\na 1\nb 2\n' >table
	echo '{"k": [1, 2]}' >doc.json
	echo 'print("from a file")' >hello.py
	printf '%s\n' "version: 1" "extends: shell-tools" "sandbox: {mount_roots: [.]}" >p.yaml
}

# naive COMMAND: whether a check of the first word and of pieces of text, such
# as is often written, lets it pass.
naive() {
	python3 - "$names" "$1" <<-'END'
		import os, shlex, sys
		names, command = sys.argv[1].split(), sys.argv[2]
		pieces = ["rm -rf", "mkfs", "dd if=", "chmod 777", "> /dev/", "| sh", "| bash", "eval ", "export ",
		          "env ", "printenv", "set ", "sudo ", "su ", "passwd"]
		try:
		    words = shlex.split(command)
		except ValueError:
		    sys.exit(1)
		known = bool(words) and os.path.basename(words[0]) in names
		sys.exit(0 if known and not any(p in command.strip().lower() for p in pieces) else 1)
	END
}

# by_flag, by_json STRING: runs it under the preset; under the bare list of names.
by_flag() { run --separate-stderr "$cordon" run --policy shell-tools --command "$1"; }
by_json() {
	run --separate-stderr "$librun" "$(python3 -c 'import json, sys
print(json.dumps({"allowed_commands": sys.argv[1].split(), "command": sys.argv[2]}))' "$names" "$1")"
}

@test "tutorial: the preset is the list" {
	run --separate-stderr "$cordon" policy compile "$BATS_TEST_DIRNAME/../../presets/shell-tools.yaml"
	is "$(grep -E '^commands\.allow\.[0-9]+\.name' <<<"$output" | cut -f2 | tr '\n' ' ')" "$names pwd true false "
}

@test "tutorial: what the list is for works" {
	local n=0
	while IFS='|' read -r want command; do
		naive "$command" || { echo "the naive check refuses: $command" && return 1; }
		run --separate-stderr "$cordon" run --policy ./p.yaml --workspace . --command "$command"
		is "$status" 0 && is "$output" "$(printf '%b' "$want")" || { echo "$command" && return 1; }
		n=$((n + 1))
	done < <(
		cat <<-'END'
			table|ls table
			b 2\na 1\nb 2|cat table
			b 2|head -n 1 table
			b 2|tail -n 1 table
			3 table|wc -l table
			2:a 1|grep -n a table
			table|find table -type f
			a 1\nb 2\nb 2|sort table
			b\na\nb|cut -d' ' -f1 table && true
			2\n1\n2|awk '{print $2}' table
			hello world|echo hello world
			1970|date -u -d @0 +%Y
			from a file|python hello.py
		END
	)
	[ "$n" -eq 13 ]
}

@test "tutorial: pipes between listed commands work, without a shell" {
	by_flag "echo 'b a' | wc -w"
	is "$status $output" "0 2"
	by_json "echo 'b a' | wc -w"
	is "$status" 0
	is "$(field cause) $(field stdout)" "exited 2"
	by_flag 'echo one && echo two; echo three'
	is "$output" $'one\ntwo\nthree'
}

@test "tutorial: what passes a check of the first word and does harm is denied" {
	local n=0
	while IFS= read -r command; do
		naive "$command" || { echo "not a bypass: $command" && return 1; }
		for way in by_flag by_json; do
			rm -f out
			"$way" "$command"
			if [ "$way" = by_flag ]; then
				is "$status" 126 && has "$stderr" "denied"
			else
				is "$status" 0 && is "$(field cause) $(field exit_code)" "denied 126"
			fi || { echo "$way: $command" && return 1; }
		done
		n=$((n + 1))
	done < <(
		cat <<-'END'
			ls ; rm -r -f /workspace
			ls ; rm  -rf /workspace
			ls -l; rm -fr /workspace
			ls && unlink table
			ls || id
			ls & id
			cat table |sh
			cat table |  bash
			cat table | /bin/sh
			cat $(id)
			cat `id`
			cat <(id)
			echo "$(id)"
			echo $HOME
			echo ${HOME}
			echo x > table
			echo x >> table
			cat < table
			echo x 2>table
			find . -exec id ;
			find . -exec id {} +
			find . -execdir id ;
			find . -ok id ;
			find . -delete
			find . -fprint out
			find . -fls out
			awk 'BEGIN { system("id") }'
			awk 'BEGIN { "id" | getline x; print x }'
			awk 'BEGIN { print "x" | "sh" }'
			awk 'BEGIN { print "x" > "out" }'
			awk -f table
			sort -o out table
			sort --output=out table
			sort --compress-program=id table
			uniq table out
			date -s 2000-01-01
			date --set=2000-01-01
			date -f table
			python -c 'import os; os.system("id")'
			python -m http.server
			python -
			python
			node -e 'require("child_process").execSync("id")'
			node -p 1
			curl https://example.com/
			curl file:///etc/hosts
			curl -o out https://example.com/
			curl -K table
			./ls
			/tmp/ls
			../bin/ls
			grep -f /proc/self/status x
			ls *
			ls ~
			ls {a,b}
			ls # rest
		END
	)
	[ "$n" -ge 50 ]
	# Several lines are several commands.
	for way in by_flag by_json; do
		naive $'ls\nid'
		"$way" $'ls\nid'
		[ "$way" = by_json ] && is "$(field cause)" denied || is "$status" 126
	done
}
