#!/usr/bin/env bats
# The policy file: reading it, what it decides, and that it stays the owner's.
load common
eval "common_$(declare -f setup)"

setup() {
	common_setup
	export CORDON_STATE_DIR=$BATS_TEST_TMPDIR/state
	unset CORDON_POLICY
	dir=$BATS_TEST_TMPDIR/w
	mkdir "$dir"
	cd "$dir" || return
	export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
	top=$BATS_TEST_DIRNAME/../..
}

# policy LINE...: writes cordon.yaml.
policy() { printf '%s\n' "$@" >cordon.yaml; }

# wrong WHERE PART: `policy check` says FILE:LINE:COLUMN and PART, and a run
# with that file says the same and runs nothing.
wrong() {
	refused "cordon.yaml:$1: " policy check cordon.yaml && has "$stderr" "$2" &&
		refused "cordon.yaml:$1: " run -- touch /workspace/x && has "$stderr" "$2"
}

# denied PART ARG...: 126, and one line that names the rule.
denied() {
	local part=$1
	shift
	run --separate-stderr "$cordon" run "$@"
	is "$status" 126 && is "$output" "" && has "$stderr" "cordon: denied: " &&
		has "$stderr" "$part"
}

@test "policy: the complete file of the specification is valid, and its values arrive" {
	cp "$BATS_TEST_DIRNAME/policy-complete.yaml" cordon.yaml
	run --separate-stderr "$cordon" policy check
	is "$status" 0
	has "$output" "cordon.yaml: valid"
	run --separate-stderr "$cordon" policy compile cordon.yaml
	is "$status" 0
	for line in $'sandbox.timeout\t30s\tcordon.yaml:7' \
		$'commands.allow.0.name\tls\tcordon.yaml:41' \
		$'commands.allow.2.flags.1\t-i\tcordon.yaml:43' \
		$'commands.allow.1.args.0.script\t/workspace\tcordon.yaml:42' \
		$'sandbox.tmpfs./tmp\t64m\tcordon.yaml:18' \
		$'network.resolve.api\\.test:443\t127.0.0.1:18443\tcordon.yaml:36' \
		$'tests.4.expect.cause\tmemory\tcordon.yaml:73'; do
		has "$output" "$line"
	done
	[[ ${lines[0]} == $'cordon-policy\t2\t'* ]]
	has "${lines[0]}" "$(sha256sum <cordon.yaml | cut -d' ' -f1)"$'\t'"$(pwd -P)/cordon.yaml"
	has "${lines[0]}" "$(sha256sum <"$top/presets/strict.yaml" | cut -d' ' -f1)"$'\tpreset:strict'
}

@test "policy: an empty file is an error, never no policy" {
	: >cordon.yaml
	wrong 1:1 "states nothing; write a map"
	printf '# only a comment\n' >cordon.yaml
	wrong 1:1 "states nothing"
	policy "---"
	wrong 1:1 "states nothing"
	policy "version:"
	wrong 1:1 "no value; write 1"
	policy "[]"
	wrong 1:1 "a list does not belong here"
	policy "sandbox: {}"
	wrong 1:1 "'version' is missing"
}

@test "policy: an unreadable file is an error" {
	mkdir cordon.yaml
	refused "not a regular file" run -- true
	rmdir cordon.yaml
	ln -s nowhere-at-all cordon.yaml
	refused "cordon.yaml" policy check cordon.yaml
	rm cordon.yaml
	refused "missing.yaml" run --policy missing.yaml -- true
	refused "missing.yaml:1:1: cannot be opened" policy check missing.yaml
	CORDON_POLICY=missing.yaml refused "missing.yaml" run -- true
	head -c 1048577 /dev/zero | tr '\0' '#' >cordon.yaml
	wrong 1:1 "larger than 1 MiB"
	if [ "$(id -u)" -ne 0 ]; then
		policy "version: 1"
		chmod 0 cordon.yaml
		wrong 1:1 "cannot be opened"
	fi
}

@test "policy: duplicate and unknown keys" {
	policy "version: 1" "sandbox:" "  memory: 64m" "  pids: 10" "  memory: 128m"
	wrong 5:3 "key 'memory' is there twice, first in line 3"
	policy "version: 1" "version: 1"
	wrong 2:1 "there twice"
	policy "version: 1" "sandbox:" "  memroy: 64m"
	wrong 3:3 "unknown key 'memroy'; known here: isolation, images, timeout"
	policy "version: 1" "netwrok: {}"
	wrong 2:1 "unknown key 'netwrok'; known here: version, extends, sandbox"
	policy "version: 1" "sandbox:" "  env: {A: 1, B: 2, A: 3}"
	wrong 3:21 "there twice"
	policy "version: 1" "commands: {allow: [{name: ls, falgs: [-l]}]}"
	wrong 2:31 "unknown key 'falgs'; known here: name, sub, flags"
	policy "version: 1" "<<: {sandbox: {}}"
	wrong 2:1 "unknown key '<<'"
}

@test "policy: values are checked where they stand" {
	policy "version: 2"
	wrong 1:10 "'2' is not valid here; write 1"
	policy "version: 1" "sandbox:" "  timeout: soon"
	wrong 3:12 "'soon' is not valid here; write a time such as 30s"
	policy "version: 1" "sandbox: {memory: 12}"
	wrong 2:19 "a size of at least 1m"
	policy "version: 1" "sandbox: {read_only: yes}"
	wrong 2:22 "write true or false"
	policy "version: 1" "sandbox: {writable: [workspace]}"
	wrong 2:22 "an absolute path in the box"
	policy "version: 1" "sandbox: {writable: /tmp}"
	wrong 2:21 "a plain value does not belong here; write a list"
	policy "version: 1" "sandbox: {isolation: strong}"
	wrong 2:22 "native, oci:RUNTIME, docker or vm"
	policy "version: 1" "network: {default: allow}"
	wrong 2:20 "deny, the only value"
	policy "version: 1" "network: {allow: [{host: 0x7f000001}]}"
	wrong 2:26 "write a host such as"
	policy "version: 1" "network: {allow: [{host: 127.1}]}"
	wrong 2:26 "write a host such as"
	policy "version: 1" "network: {allow: [{ports: [443]}]}"
	wrong 2:20 "'host' is missing"
	policy "version: 1" "network: {allow: [{host: a.b, ports: [0]}]}"
	wrong 2:39 "a port from 1 to 65535"
	policy "version: 1" "network:" "  ask:" "    - {host: a.b, ports: [443, 53]}"
	wrong 4:32 "a port from 1 to 65535, but not 53"
	policy "version: 1" "commands: {allow: [/bin/ls]}"
	wrong 2:20 "without a directory"
	policy "version: 1" "tests: [{name: x, expect: denied}]"
	wrong 2:10 "exactly one of run, command, code and connect"
	policy "version: 1" "tests: [{name: x, command: ls, connect: 'a.b:1', expect: denied}]"
	wrong 2:41 "exactly one of"
	policy "version: 1" "sandbox: {timeout: !!str 3s}"
	wrong 2:26 "tags have no meaning"
}

@test "policy: what only makes sense together has its place too" {
	# at WHERE PART, the rest of the file on standard input
	at() {
		{ echo "version: 1" && cat; } >cordon.yaml
		wrong "$1" "$2"
	}
	at 2:32 "only narrow" <<<$'tools: {t: {sandbox: {timeout: 40s}}}\nsandbox: {timeout: 30s}'
	at 5:17 "only narrow" <<<$'tools:\n  t:\n    sandbox:\n      memory:   2g\nsandbox: {memory: 1g}'
	at 2:37 "not in 'writable'" <<<'sandbox: {writable: [], tmpfs: {/x: 1m}}'
	at 4:45 "takes one {script: DIR}" <<<$'commands:\n  allow:\n  - {name: a, args: [{script: /a}, {script: /b}]}'
	at 3:17 "would loosen '128'" <<<$'extends: strict\nsandbox: {pids: 129}'
	at 3:11 "an empty list over" <<<$'extends: strict\nsandbox: {require: []}'
	at 3:1 "more than one document" <<<$'---\nversion: 1'
	at 3:3 "more than one document" <<<$'---\n- version'
	at 2:10 "there is no preset" <<<'extends: none'
	at 2:20 "alias" <<<'sandbox: {env: {A: *nowhere}}'
	# Keys that are too long for the form that a run reads.
	at 3:3 "a key of 5000 bytes; at most 256" < <(printf 'tools:\n  %05000d: {approval: always}\n' 0)
	at 3:3 "a key of 257 bytes" < <(printf 'tools:\n  %0257d: {approval: always}\n' 0)
	printf 'version: 1\ntools:\n  %0100d: {approval: always}\n' 0 >cordon.yaml
	"$cordon" policy check
}

# Every message about a file begins FILE:LINE:COLUMN, whatever is wrong with it.
@test "policy: no error without a place" {
	local n=0
	while IFS= read -r text; do
		printf 'version: 1\n%b\n' "$text" >cordon.yaml
		run --separate-stderr "$cordon" policy check cordon.yaml
		is "$status" 125
		[[ $stderr =~ ^cordon:\ (/.*/)?cordon\.yaml:[1-9][0-9]*:[1-9][0-9]*:\ . ]] ||
			{ echo "$text: $stderr" && return 1; }
		# No line is behind the end of the file, which is a place too.
		[ "$(cut -d: -f3 <<<"$stderr")" -le "$(($(wc -l <cordon.yaml) + 1))" ]
		n=$((n + 1))
	done <<'END'
sandbox
sandbox:
sandbox: []
sandbox: {timeout: }
sandbox: {timeout: [1s]}
sandbox: {timeout: {a: b}}
sandbox: {timeout: -1s}
sandbox: {cpus: much}
sandbox: {pids: 0}
sandbox: {user: nobody-else}
sandbox: {images: host}
sandbox: {images: ['']}
sandbox: {writable: [/a/../b]}
sandbox: {tmpfs: {tmp: 1m}}
sandbox: {tmpfs: {/tmp: lots}}
sandbox: {writable: [/a], tmpfs: {/b: 1m}}
sandbox: {mounts: [{from: x}]}
sandbox: {mounts: [{to: /x}]}
sandbox: {mounts: [{from: x, to: y}]}
sandbox: {mounts: [{from: x, to: /y, mode: wo}]}
sandbox: {mounts: [x]}
sandbox: {env: {1A: b}}
sandbox: {env: [A]}
sandbox: {env_from_host: [A=b]}
sandbox: {require: [magic]}
sandbox: {? [a] : b}
network: {allow: [{}]}
network: {allow: [{host: 'a b'}]}
network: {allow: [{host: a.b, ports: [x]}]}
network: {allow: [{host: a.b, methods: [get it]}]}
network: {allow: [{host: a.b, paths: [x]}]}
network: {allow: [{host: a.b, secret: {env: A}}]}
network: {allow: [{host: a.b, bytes: some}]}
network: {resolve: {a.b: c}}
network: {inspect: all}
commands: {allow: ls}
commands: {allow: [{flags: [-l]}]}
commands: {allow: [{name: a/b}]}
commands: {allow: [{name: a, flags: [l]}]}
commands: {allow: [{name: a, operands: some}]}
commands: {allow: [{name: a, args: [{}]}]}
commands: {allow: [{name: a, args: [{script: a}]}]}
commands: {allow: [{name: a, args: [{script: /a}, {script: /b}]}]}
commands: {otherwise: allow}
tools: [a]
tools: {a: {approval: sometimes}}
tools: {a: {sandbox: {user: 1}}}
tools: {a: {sandbox: {pids: 5}}}\nsandbox: {pids: 4}
filters: [{on: [user], match: [secrets]}]
filters: [{on: [user], match: [x], do: mask}]
filters: [{on: [user], match: {regexp: x}, do: mask}]
approvals: {expire: never}
approvals: {ask: [phone]}
images: {pull: maybe}
docker: {exec: {shims: 3}}
ledger: {keep_text: [everything]}
tests: [{}]
tests: [{name: a, run: [b]}]
tests: [{name: a, run: [b], expect: maybe}]
tests: [{name: a, run: [b], expect: {cause: bad}}]
tests: [{name: a, run: [b], expect: {}}]
tests: [{name: a, code: {lang: b}, expect: denied}]
tests: [{name: a, run: [], expect: denied}]
tests: [{name: a, run: [b], expect: ask, layer: net}]
tests: [{name: a, run: [b], expect: denied, layer: roof}]
extends: strict\nsandbox: {timeout: 1h}
extends: strict\ncommands: {}\nextends: strict
extends: ./no-such-file.yaml
extends: nowhere
extends: ./cordon.yaml
&a sandbox: {}\n*a : {}
sandbox: *a
sandbox: !!map {}
"sand\tbox": {}
sandbox: {a
sandbox: "a
\tsandbox: {}
---\nversion: 1
...\n---\n[a]
END
	[ "$n" -ge 75 ]
}

@test "policy: bytes, documents, aliases and YAML itself" {
	printf 'version: 1\nsandbox: {env: {A: "\xff"}}\n' >cordon.yaml
	wrong 2:21 "not UTF-8"
	policy "version: 1" "sandbox: {timeout: 30s"
	run --separate-stderr "$cordon" policy check
	is "$status" 125
	[[ $stderr =~ cordon.yaml:[23]:[0-9]+:\  ]]
	policy "version: 1" "---" "version: 1"
	run --separate-stderr "$cordon" policy check
	is "$status" 125
	has "$stderr" "more than one document"
	policy "version: 1" "sandbox:" "  env: {A: &a one, B: *a}"
	run --separate-stderr "$cordon" policy compile cordon.yaml
	is "$status" 0
	has "$output" $'sandbox.env.B\tone'
	policy "version: 1" "sandbox: {env: {A: *nowhere}}"
	run --separate-stderr "$cordon" policy check
	is "$status" 125
	# A list of 500, written out 500 times.
	python3 - >cordon.yaml <<-'END'
		print("version: 1\ncommands:\n  allow:")
		print("    - {name: a, sub: &x [" + ", ".join(["b"] * 500) + "]}")
		for i in range(500):
		    print("    - {name: a, sub: *x}")
	END
	run --separate-stderr "$cordon" policy check
	is "$status" 125
	has "$stderr" "more than 32768 values"
	# Text may have everything; it arrives as it is.
	policy "version: 1" "sandbox:" "  env: {A: \"tab\\there\\nnew \\\\ line\"}"
	run --separate-stderr "$cordon" run -- printenv A
	is "$output" $'tab\there\nnew \\ line'
}

@test "policy: extends tightens and adds, and never loosens or hides" {
	policy "version: 1" "extends: strict" "sandbox:" "  memory: 64m" "  require: [cgroup, own-uid]"
	run --separate-stderr "$cordon" policy compile cordon.yaml
	is "$status" 0
	has "$output" $'sandbox.memory\t64m\tcordon.yaml:4'
	has "$output" $'sandbox.pids\t128\tpreset:strict:11'
	has "$output" $'sandbox.require.4\town-uid\tcordon.yaml:5'
	[[ $output != *"sandbox.require.5"* ]]
	policy "version: 1" "extends: strict" "sandbox: {memory: 1g}"
	wrong 3:19 "'1g' would loosen '256m' of preset:strict:9"
	policy "version: 1" "extends: strict" "sandbox: {read_only: false}"
	wrong 3:22 "would loosen"
	policy "version: 1" "extends: shell-tools" "commands: {allow: []}"
	wrong 3:12 "an empty list over the one of preset:shell-tools"
	policy "version: 1" "extends: nothing"
	wrong 2:10 "there is no preset 'nothing'; write a preset (strict,"
	policy "version: 1" "extends: ./base.yaml" "sandbox: {timeout: 5s}"
	wrong 2:10 "cannot be opened"
	printf 'version: 1\nextends: strict\nsandbox: {timeout: 10s}\n' >base.yaml
	run --separate-stderr "$cordon" policy compile cordon.yaml
	is "$status" 0
	has "$output" $'sandbox.timeout\t5s\tcordon.yaml:3'
	printf 'version: 1\nsandbox: {timout: 10s}\n' >base.yaml
	refused "base.yaml:2:11: unknown key" policy check
	policy "version: 1" "extends: ./cordon.yaml"
	refused "extend each other" policy check
}

@test "policy: which file applies" {
	mkdir -p "$XDG_CONFIG_HOME/cordon"
	echo "{version: 1, sandbox: {memory: 50m}}" >"$XDG_CONFIG_HOME/cordon/cordon.yaml"
	denied "cordon/cordon.yaml:1: sandbox.memory" -m 60m -- true
	echo "{version: 1, sandbox: {memory: 40m}}" >cordon.yaml
	denied "w/cordon.yaml:1: sandbox.memory" -m 45m -- true
	echo "{version: 1, sandbox: {memory: 30m}}" >env.yaml
	CORDON_POLICY=env.yaml denied "env.yaml:1" -m 35m -- true
	echo "{version: 1, sandbox: {memory: 20m}}" >flag.yaml
	CORDON_POLICY=env.yaml denied "flag.yaml:1" --policy flag.yaml -m 25m -- true
	gives 0 "" -m 40m -- true
}

@test "policy: numbers are ceilings where stated, and the default" {
	policy "version: 1" "sandbox:" "  timeout: 5s" "  memory: 64m" "  cpus: 0.25" \
		"  pids: 20" "  output: 64k" "  disk: 1m" "  files: 64" "  cpu_time: 2s"
	denied "timeout 6s is above the ceiling 5s ($PWD/cordon.yaml:3: sandbox.timeout)" --timeout 6s -- true
	denied "memory 65m is above the ceiling 64m ($PWD/cordon.yaml:4: sandbox.memory)" -m 65m -- true
	denied "cordon.yaml:5: sandbox.cpus" --cpus 0.26 -- true
	denied "cordon.yaml:5: sandbox.cpus" --cpu-quota 25001 -- true
	denied "cordon.yaml:5: sandbox.cpus" --cpu-period 10000 --cpu-quota 2600 -- true
	denied "cordon.yaml:6: sandbox.pids" --pids-limit 21 -- true
	denied "cordon.yaml:7: sandbox.output" --output-limit 65537 -- true
	denied "cordon.yaml:8: sandbox.disk" --disk 2m -- true
	denied "cordon.yaml:9: sandbox.files" --files 65 -- true
	denied "cordon.yaml:10: sandbox.cpu_time" --cpu-time 3s -- true
	run --separate-stderr "$cordon" run --json --timeout 4s -m 32m -- true
	is "$status" 0
	is "$(field limits.timeout_ms) $(field limits.memory) $(field limits.pids)" "4000 33554432 20"
	is "$(field limits.cpus) $(field limits.output) $(field limits.files)" "0.25 65536 64"
	is "$(field limits.cpu_time_ms)" 2000
	# The stream is passed on up to the policy's limit, not the default one.
	run --separate-stderr "$cordon" run -- head -c 1000000 /dev/zero
	is "$("$cordon" run -- head -c 1000000 /dev/zero 2>/dev/null | wc -c)" 65536
	# What is not stated is not a ceiling.
	policy "version: 1"
	gives 0 "" -m 512m --timeout 60s --pids-limit 500 -- true
}

@test "policy: a denial is a result" {
	policy "version: 1" "sandbox: {memory: 64m}"
	run --separate-stderr "$cordon" run --json -m 65m -- true
	is "$status" 126
	is "$(field cause) $(field status) $(field exit_code)" "denied error 126"
	has "$(field message)" "cordon.yaml:2: sandbox.memory"
	run --separate-stderr "$cordon" run --dry-run -m 65m -- true
	is "$status" 126
	run --separate-stderr "$cordon" run --dry-run -- true
	is "$status" 0
	has "$output" '"memory":67108864'
}

@test "policy: permissions that are not stated are not given" {
	mkdir data other
	echo text >data/file
	policy "version: 1"
	denied "states neither sandbox.mount_roots nor this mount" -v ./data:/data -- true
	denied "states neither" --workspace data -- true
	denied "may not be writable" --writable /opt/x -- true
	denied "may not be writable" --tmpfs /opt/x -- true
	denied "read-only" --read-only=false -- true
	denied "env_from_host" --env-from-host HOME -- true
	gives 0 "" -u 1000 -- true
	policy "version: 1" "sandbox:" "  mounts: [{from: ./data, to: /data}]" \
		"  mount_roots: [./other]" "  env_from_host: [GIVEN]" "  user: 1234" \
		"  env: {A: b}" "  tmpfs: {/opt/x: 2m}"
	gives 0 text -- cat /data/file
	denied "not below a directory that may be mounted" -v ./data:/x -- true
	denied "not below" -v "$dir:/x" -- true
	denied "not below" -v ./other/../data:/x -- true
	ln -s ../data other/link
	denied "not below" -v ./other/link:/x -- true
	gives 0 /x -v ./other:/x -- ls -d /x
	denied "is not 1234" -u 0 -- true
	gives 0 1234 -- id -u
	GIVEN=yes gives 0 yes --env-from-host GIVEN -- printenv GIVEN
	denied "does not name it" --env-from-host HOME -- true
	gives 0 b -- printenv A
	denied "variable 'A' is fixed" -e A=c -- true
	denied "above the ceiling 2m" --tmpfs /opt/x:size=3m -- true
	gives 0 "" --tmpfs /opt/x:size=1m -- touch /opt/x/y
	gives 0 "" -- touch /opt/x/y
}

@test "policy: a variable does not go around a list of commands" {
	policy "version: 1" "commands: {allow: [echo, {name: python, args: [{script: /workspace}]}]}"
	for name in LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT GCONV_PATH GLIBC_TUNABLES PATH HOME BASH_ENV ENV BASH_FUNC_x%% \
		PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONINSPECT NODE_OPTIONS NODE_PATH PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS \
		GIT_SSH_COMMAND PAGER LESSOPEN CURL_HOME https_proxy ALL_PROXY SSLKEYLOGFILE OPENSSL_CONF POSIXLY_CORRECT; do
		denied "variable '$name' steers what listed commands do ($PWD/cordon.yaml:2: commands)" -e "$name=/workspace" -- echo x
	done
	run --separate-stderr "$cordon" policy show --never
	for name in 'LD_*' 'PYTHON*' 'NODE_*' PATH '*_proxy'; do
		has "$output" "$name"
	done
	printf 'LD_PRELOAD=/x\n' >vars
	denied "'LD_PRELOAD' steers" --env-file vars -- echo x
	denied "'LD_PRELOAD' steers" -e A=b -e LD_PRELOAD= -- echo x
	# Others are set, also names that only look alike.
	for name in A LANG LC_ALL TZ XLD_PRELOAD LDX PYTHO PATHS HOMES NODE http_proxyx; do
		gives 0 x -e "$name=1" -- echo x
	done
	# The policy itself may say it, in these very words.
	policy "version: 1" "sandbox: {env: {PYTHONPATH: /workspace/lib}, env_from_host: [PERL5LIB]}" \
		"commands: {allow: [echo, {name: printenv, operands: any}]}"
	gives 0 /workspace/lib -- printenv PYTHONPATH
	gives 0 /workspace/lib -e PYTHONPATH=/workspace/lib -- printenv PYTHONPATH
	denied "variable 'PYTHONPATH' is fixed" -e PYTHONPATH=/tmp -- printenv PYTHONPATH
	PERL5LIB=/p gives 0 /p --env-from-host PERL5LIB -- printenv PERL5LIB
	denied "'PERL5LIB' steers" -e PERL5LIB=/x -- printenv PERL5LIB
	# Without a list the box holds them, and they are the caller's own.
	policy "version: 1"
	gives 0 /x -e PYTHONPATH=/x -- printenv PYTHONPATH
}

@test "policy: P53, an empty list allows nothing" {
	mkdir data
	policy "version: 1" "sandbox:" "  writable: []" "  mount_roots: []" "  env_from_host: []"
	for place in /workspace /tmp /dev/shm; do
		run --separate-stderr "$cordon" run -- touch "$place/x"
		is "$status" 1
		has "$stderr" "Read-only file system"
	done
	denied "sandbox.writable" --lang python -c 'print(1)'
	denied "sandbox.mount_roots" -v ./data:/x -- true
	denied "env_from_host" --env-from-host HOME -- true
	policy "version: 1" "sandbox: {images: []}"
	denied "cordon.yaml:2: sandbox.images" -- true
	policy "version: 1" "commands: {allow: []}"
	denied "" -- true
	policy "version: 1" "network: {allow: []}"
	run --separate-stderr "$cordon" policy explain --connect example.org:443
	is "$status" 1
	# The control: not stated is not empty.
	policy "version: 1"
	gives 0 "" -- touch /workspace/x /tmp/x
}

@test "policy: an empty list or 0 that would mean everything is an error where it stands" {
	# rule WHERE PART REST: of a rule for a host
	rule() {
		policy "version: 1" "network:" "  allow:" "    - host: a.test" "      $3"
		wrong "$1" "$2" || { echo "# $3" && return 1; }
	}
	rule 5:7 "an empty list; write a list of ports, such as [443]" "ports: []"
	rule 5:7 "an empty list; write a list of HTTP methods" "methods: []"
	rule 5:7 "an empty list; write a list of paths" "paths: []"
	rule 5:14 "a size of at least 1 byte" "bytes: 0"
	rule 5:14 "a size of at least 1 byte" "bytes: 0g"
	rule 5:20 "a number from 1 to 65535" "connections: 0"
	rule 5:13 "new connections a minute" "rate: 0"
	policy "version: 1" "network: {ask: [{host: a.test, methods: []}]}"
	wrong 2:32 "an empty list"
	policy "version: 1" "filters: [{on: [], match: [urls], do: mask}]"
	wrong 2:12 "an empty list; write a list of user, assistant"
	policy "version: 1" "filters: [{on: [user], match: [], do: mask}]"
	wrong 2:24 "an empty list; write a list of secrets, host_paths"
	# Nobody can be asked: what would ask, denies.
	policy "version: 1" "approvals: {ask: []}"
	run "$cordon" policy check cordon.yaml
	is "$status" 0
	policy "version: 1" "docker: {log_max: 0}"
	wrong 2:19 "a size of at least 1 byte"
	policy "version: 1" "docker: {exec: {max_output: 0}}"
	wrong 2:29 "a size of at least 1 byte such as 64m, or none"
	# To the kernel a file system of size 0 has no bound.
	policy "version: 1" "sandbox: {disk: 0}"
	wrong 2:17 "a size of at least 1 byte"
	policy "version: 1" "sandbox: {tmpfs: {/x: 0}}"
	wrong 2:23 "a size of at least 1 byte"
	policy "version: 1" "tools: {t: {sandbox: {disk: 0}}}"
	wrong 2:29 "a size of at least 1 byte"
	# The control: nothing kept of the output is what it says.
	policy "version: 1" "sandbox: {output: 0}"
	run --separate-stderr "$cordon" run -- echo x
	is "$output" ""
	is "$("$cordon" policy schema | jq -c '.properties.network.properties.allow.items.properties |
		[.ports, .methods, .paths] | map(.minItems)')" "[1,1,1]"
}

@test "policy: parts that are still to come refuse only where they are needed" {
	policy "version: 1" "sandbox: {images: ['some/image', host]}"
	run --separate-stderr "$cordon" run -- true
	is "$status" 125
	has "$stderr" "No such image: some/image"
	gives 0 "" --image host -- true
	policy "version: 1" "sandbox: {isolation: vm}"
	denied "not in this build" -- true
	denied "is less than 'vm'" --isolation native -- true
	policy "version: 1" "network: {allow: [{host: example.org}]}" "docker: {over_ceiling: deny}" \
		"filters: [{on: [user], match: [secrets], do: mask}]" "images: {pull: true}"
	gives 0 "" -- true
}

@test "policy: require" {
	policy "version: 1" "sandbox: {require: [landlock, memory]}"
	gives 0 "" -- true
	denied "layer 'landlock' must be there" --best-effort landlock -- true
	denied "layer 'memory' must be there" --best-effort cgroup -- true
	gives 0 "" --best-effort pids -- true
}

@test "policy: approvals.always asks" {
	policy "version: 1" "approvals: {always: [code]}"
	gives 0 "" -- true
	run --separate-stderr "$cordon" run --dry-run --lang python -c 'print(1)'
	is "$status" 0
	has "$stderr" "a person would be asked: $PWD/cordon.yaml:2: approvals.always has 'code'"
}

@test "policy: the list never, without a policy and with one" {
	mkdir -p home/.ssh socks deep/x
	echo key >home/.ssh/id
	python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socks/s")'
	mkfifo pipe
	for with in "" "version: 1" "{version: 1, sandbox: {mount_roots: [/]}}"; do
		rm -f cordon.yaml
		[ -z "$with" ] || policy "$with"
		for source in / /proc /proc/self /sys /dev /dev/shm /etc /etc/ssl /boot /var /run; do
			[ -e "$source" ] || continue
			denied "never mounted" -v "$source:/x" -- true
		done
		denied "a home directory is never mounted" -v "$HOME:/x" -- true ||
			denied "never mounted" -v "$HOME:/x" -- true
		denied "holds credentials ('.ssh')" -v ./home:/x -- true
		denied "holds credentials ('.ssh')" -v ./home/.ssh:/x -- true
		denied "holds credentials ('.ssh')" -v ./home/.ssh/id:/x -- true
		denied "holds credentials" --workspace home -- true
		denied "never mounted" -v ./socks/s:/x -- true
		denied "never mounted" -v ./pipe:/x -- true
	done
	# Named exactly, and only that.
	policy "{version: 1, sandbox: {mount_roots: [./home, /etc/ssl]}}"
	gives 0 key -v ./home:/x -- cat /x/.ssh/id
	denied "holds credentials" -v ./home/.ssh:/x -- true
	gives 0 /x -v /etc/ssl:/x -- ls -d /x
	denied "never mounted" -v /etc:/x -- true
	rm cordon.yaml
	gives 0 /x -v ./deep:/x -- ls -d /x
}

@test "policy: the list never is printed" {
	run --separate-stderr "$cordon" policy show --never
	is "$status" 0
	for part in /proc /etc .ssh .aws .config/gcloud .kube .docker .gnupg .netrc \
		.git-credentials 169.254.169.254 "a host uid of 0" "any capability" cordon.yaml .git/hooks; do
		has "$output" "$part"
	done
	run --separate-stderr "$cordon" policy show --never --json
	is "$status" 0
	python3 -c 'import json, sys; json.load(sys.stdin)' <<<"$output"
}

@test "policy: P54, state and policy cannot be written from inside" {
	local writes='echo "version: 1" > $1 || rm -f $1 || mv $1 $1.old || ln -sf /x $1 || chmod 777 $1'
	mkdir sub
	policy "version: 1" "sandbox: {mount_roots: [.], writable: [/w, /tmp, /workspace]}"
	cp cordon.yaml before
	# The control: the directory is writable, and it is the real one.
	gives 0 "" -v .:/w:rw -- touch /w/made
	[ -e made ]
	run --separate-stderr "$cordon" run -v .:/w:rw -- sh -c "$writes" sh /w/cordon.yaml
	[ "$status" -ne 0 ]
	cmp cordon.yaml before
	run --separate-stderr "$cordon" run -v .:/w:rw -- python3 -c '
import os
for call in (lambda: os.rename("/w", "/tmp/w"), lambda: os.replace("/w/made", "/w/cordon.yaml"),
             lambda: os.link("/w/cordon.yaml", "/w/second"), lambda: os.truncate("/w/cordon.yaml", 0)):
    try:
        call()
        print("done")
    except OSError as e:
        print("refused")'
	is "$output" $'refused\nrefused\nrefused\nrefused'
	cmp cordon.yaml before
	# Under another name, and by --policy.
	mv cordon.yaml mine.yaml
	run --separate-stderr "$cordon" run --policy mine.yaml -v .:/w:rw -- sh -c "$writes" sh /w/mine.yaml
	[ "$status" -ne 0 ]
	cmp mine.yaml before
	# One that it extends.
	printf 'version: 1\nextends: ./mine.yaml\n' >child.yaml
	run --separate-stderr "$cordon" run --policy child.yaml -v .:/w:rw -- sh -c "$writes" sh /w/mine.yaml
	[ "$status" -ne 0 ]
	cmp mine.yaml before
	# Deeper in it, as the mount itself, with a second name: not at all.
	cp mine.yaml sub/cordon.yaml
	printf '%s\n' "version: 1" "sandbox: {mount_roots: [..], writable: [/w]}" >sub/cordon.yaml
	denied "lies deeper in it" --policy sub/cordon.yaml -v .:/w:rw -- true
	gives 0 "" --policy sub/cordon.yaml -v .:/w:ro -- true
	denied "the policy file is never mounted" --policy sub/cordon.yaml -v ./sub/cordon.yaml:/w:rw -- true
	ln sub/cordon.yaml sub/second
	denied "hard links" --policy sub/cordon.yaml -v ./sub:/w:rw -- true
	denied "the policy file is never mounted" --policy sub/cordon.yaml -v ./sub/second:/w:rw -- true
	# State: neither it, nor what is in it, nor what it is in.
	mkdir -p "$CORDON_STATE_DIR/policies"
	for source in "$CORDON_STATE_DIR" "$CORDON_STATE_DIR/policies" "$BATS_TEST_TMPDIR"; do
		denied "Cordon's own state" -v "$source:/x" -- true
		denied "Cordon's own state" -v "$source:/x:rw" -- true
		denied "Cordon's own state" --workspace "$source" -- true
	done
}

@test "policy: P44, protected names that are there are read-only" {
	mkdir -p p/.git/hooks p/.vscode
	echo 'a=b' >p/.git/config
	echo 'x' >p/.bashrc
	gives 0 "" -v ./p:/w:rw -- touch /w/file /w/.git/index
	for attack in 'echo x >> /w/.bashrc' 'echo x > /w/.git/hooks/pre-commit' 'echo x >> /w/.git/config' \
		'mv /w/.git /w/.git2' 'rm -rf /w/.git/hooks && test ! -e /w/.git/hooks' 'mv /w/.bashrc /w/b' \
		'echo x > /w/.vscode/tasks.json' 'rmdir /w/.vscode'; do
		run --separate-stderr "$cordon" run -v ./p:/w:rw -- sh -c "$attack"
		[ "$status" -ne 0 ]
	done
	is "$(cat p/.bashrc) $(cat p/.git/config) $(ls p/.git/hooks)" "x a=b "
	denied "tools of the host obey '.git'" -v ./p/.git:/w:rw -- true
	denied "tools of the host obey '.git'" -v ./p/.git/hooks:/w:rw -- true
	denied "tools of the host obey '.bashrc'" -v ./p/.bashrc:/w:rw -- true
	ln -s /etc/profile p/.profile
	denied "'.profile' in it is neither a file nor a directory" -v ./p:/w:rw -- true
	gives 0 "" -v ./p:/w:ro -- true
}

@test "policy: P44, protected names that are not there are moved away and told" {
	mkdir -p p
	run --separate-stderr "$cordon" run -v ./p:/w:rw -- sh -c 'echo x > /w/.bashrc; mkdir -p /w/.git/hooks;
		echo x > /w/.git/hooks/pre-commit; ln -s /etc /w/.vscode; echo x > /w/cordon.yaml; echo x > /w/file'
	is "$status" 0
	for name in .bashrc .git .vscode cordon.yaml; do
		[ ! -e "p/$name" ] && [ ! -L "p/$name" ]
		has "$stderr" "violation: '$name' was made in './p'"
	done
	[ -e p/file ]
	[ -e p/.git.cordon-removed-0/hooks/pre-commit ]
	# and on the ledger
	local id
	id=$("$cordon" audit list | grep 'run[.]start' | tail -1 | awk '{ print $7 }')
	has "$("$cordon" audit show "$id" | grep denied)" "violation: '.bashrc' was made in './p'"
	mkdir -p q/.git
	run --separate-stderr "$cordon" run --json -v ./q:/w:rw -- sh -c 'mkdir /w/.git/hooks; echo x > /w/.git/config'
	is "$status" 0
	is "$(ls q/.git)" $'config.cordon-removed-0\nhooks.cordon-removed-0'
	has "$(field denials)" ".git/hooks"
	# A link in place of a directory leads nowhere for us.
	mkdir -p r victim/hooks
	run --separate-stderr "$cordon" run -v ./r:/w:rw -- ln -s ../victim /w/.git
	is "$(ls victim)" hooks
	[ ! -L r/.git ]
}

@test "policy: a kept form is used only while it is true" {
	policy "version: 1" "sandbox: {memory: 64m}"
	denied "ceiling 64m" -m 65m -- true
	local kept
	kept=$(echo "$CORDON_STATE_DIR"/policies/*.flat)
	is "$(stat -c %a "$kept")" 600
	is "$(stat -c %a "$CORDON_STATE_DIR/policies")" 700
	# It is used: without the desk it still works.
	mkdir bin
	cp "$cordon" bin/
	is "$(CORDON_LIBEXEC=$dir/bin bin/cordon run -m 65m -- true 2>&1 | grep -c 'ceiling 64m')" 1
	policy "version: 1" "sandbox: {memory: 32m}"
	has "$(CORDON_LIBEXEC=$dir/bin bin/cordon run -m 33m -- true 2>&1)" "cordon-desk"
	denied "ceiling 32m" -m 33m -- true
	# Broken, foreign or open to others: made anew.
	sed -i 's/32m/999m/' "$kept"
	sed -i 's/sandbox.memory/sandbox.nothing/' "$kept"
	denied "ceiling 32m" -m 33m -- true
	chmod 666 "$kept"
	sed -i 's/\t32m/\t999m/' "$kept"
	denied "ceiling 32m" -m 33m -- true
	has "$(cat "$kept")" $'sandbox.memory\t32m'
	# A source that it extends counts too.
	printf 'version: 1\nsandbox: {pids: 50}\n' >base.yaml
	policy "version: 1" "extends: ./base.yaml"
	denied "ceiling 50" --pids-limit 51 -- true
	printf 'version: 1\nsandbox: {pids: 40}\n' >base.yaml
	denied "ceiling 40" --pids-limit 41 -- true
	# Where nothing can be kept nothing can be recorded, and nothing runs.
	: >file
	CORDON_STATE_DIR=$dir/file/x run --separate-stderr "$cordon" run \
		--policy cordon.yaml -- echo ran
	is "$status" 125
	is "$output" ""
}

@test "policy: explain --connect" {
	policy "version: 1" "network:" "  allow:" "    - host: api.example.org" \
		"    - {host: '*.example.net', ports: [80, 443]}" "    - {host: 192.0.2.0/24, ports: [22]}" \
		"  ask: [{host: '*.ask.example'}]"
	# answer STATUS ENDPOINT PART
	answer() {
		run --separate-stderr "$cordon" policy explain --connect "$2"
		is "$status" "$1" && has "$output" "$3"
	}
	answer 0 api.example.org:443 "(cordon.yaml:4)"
	answer 0 API.Example.ORG.:443 "allow"
	answer 1 api.example.org:80 "no rule"
	answer 1 x.api.example.org:443 "no rule"
	answer 0 a.example.net:80 "cordon.yaml:5"
	answer 0 a.b.example.net:443 "allow"
	answer 1 example.net:443 "no rule"
	answer 1 evilexample.net:443 "no rule"
	answer 0 192.0.2.7:22 "cordon.yaml:6"
	answer 1 192.0.3.7:22 "no rule"
	answer 3 x.ask.example:443 "ask"
	answer 1 169.254.169.254:80 "metadata"
	answer 1 '[::ffff:169.254.169.254]:80' "metadata"
	for odd in 3221225991:22 0xc0000207:22 0300.0.2.7:22 192.0.519:22 "a b:1" api.example.org 'api.example.org:443:1' ':443' 'api.example.org:0' 'api.example.org:99999'; do
		answer 1 "$odd" "deny"
	done
	run --separate-stderr "$cordon" policy explain --json --connect api.example.org:443
	is "$(field decision) $(field line)" "allow 4"
	for bad in "" "--connect" "--connect a:1 --command ls" "--frobnicate" "--command"; do
		# shellcheck disable=SC2086
		refused "policy explain takes" policy explain $bad
	done
}

@test "policy: what a rule for a host says, and what it cannot say" {
	policy "version: 1" "network:" "  allow:" \
		"    - {host: api.test, methods: [GET], paths: ['/v1/**'], secret: {env: KEY, query: key}, bytes: 1k, connections: 2, rate: 1/s}" \
		"    - {host: 10.0.0.0/8}" \
		"  resolve: {api.test: 127.0.0.1, 'api.test:443': '[::1]:8443'}" "  ask_wait: 0" "  connections: 7" "  ca: ./ca.pem"
	run --separate-stderr "$cordon" policy explain --connect api.test:443
	is "$status" 0
	for part in "methods GET" "paths /v1/**" "secret KEY in query key" "TLS is opened" "1024 bytes" "2 connections" \
		"1 new ones a second" "resolve says [::1]:8443"; do
		has "$output" "$part"
	done
	# Each rule that requests may use, and TLS only where there is any.
	policy "version: 1" "network:" "  allow:" \
		"    - {host: n.test, ports: [80, 443], methods: [GET], paths: ['/a/**'], connections: 2}" \
		"    - {host: m.test}" \
		"    - {host: '*.example.org', ports: [443], methods: [PUT]}" \
		"    - {host: n.test, ports: [80, 443], methods: [POST], secret: {env: KEY, header: X-Key}, connections: 3}" \
		"    - {host: x.example.org}"
	run --separate-stderr "$cordon" policy explain --connect n.test:80
	is "${#lines[@]}" 2
	has "${lines[0]}" "methods GET; paths /a/**; requests are read; at most 2 connections (cordon.yaml:4)"
	has "${lines[1]}" "also: network.allow names host 'n.test'; methods POST; secret KEY in header X-Key (cordon.yaml:7)"
	run --separate-stderr "$cordon" policy explain --connect n.test:443
	has "${lines[0]}" "TLS is opened"
	run --separate-stderr "$cordon" policy explain --connect x.example.org:443
	has "${lines[0]}" "methods PUT; TLS is opened"
	has "${lines[1]}" "also: network.allow names host 'x.example.org' (cordon.yaml:8)"
	run --separate-stderr "$cordon" policy explain --connect m.test:443
	is "${#lines[@]}" 1
	lacks "$output" "TLS"
	is "$("$cordon" policy explain --json --connect n.test:80 | jq -c '.also | length')" 1
	policy "version: 1" "network: {ask_wait: 0, allow: [{host: 10.0.0.0/8}], ca: ./ca.pem}"
	run --separate-stderr "$cordon" policy show
	has "$output" "these addresses, also if they are private"
	has "$output" "$PWD/ca.pem"
	local rule
	while read -r rule; do
		policy "version: 1" "network: $rule"
		run --separate-stderr "$cordon" policy check
		is "$status" 125 || { echo "# $rule" && return 1; }
		has "$stderr" "cordon.yaml:2:"
	done <<'END'
{allow: [{host: '*.com'}]}
{ask: [{host: '*.co.uk'}]}
{allow: [{host: '*.github.io'}]}
{allow: [{host: '*.test'}]}
{allow: [{host: '*'}]}
{allow: [{host: '*.*.example.org'}]}
{allow: [{host: 0.0.0.0/0}]}
{allow: [{host: '::/0'}]}
{allow: [{host: 169.254.169.254}]}
{allow: [{host: metadata.google.internal}]}
{allow: [{host: 198.18.3.4}]}
{allow: [{host: '2001:2::/64'}]}
{allow: [{host: 'fe80::1%lo'}]}
{allow: [{host: a.test, secret: {env: A}}]}
{allow: [{host: a.test, secret: {header: A}}]}
{allow: [{host: a.test, secret: {env: SSL_CERT_FILE, header: A}}]}
{allow: [{host: a.test, secret: {env: A, header: B, format: 'Bearer'}}]}
{allow: [{host: a.test, secret: {env: A, header: B, format: '{}{}'}}]}
{allow: [{host: a.test, secret: {env: A, query: b, format: 'x {}'}}]}
{allow: [{host: a.test, secret: {env: A, query: 'b c'}}]}
{allow: [{host: a.test, secret: {env: A, header: Host}}]}
{allow: [{host: a.test, secret: {env: A, header: content-length}}]}
{allow: [{host: a.test, connections: 0}]}
{allow: [{host: a.test, methods: [GET, QUERY]}]}
{allow: [{host: a.test, methods: [TRACE]}]}
{allow: [{host: a.test, methods: [CONNECT]}]}
{allow: [{host: a.test, methods: [get]}]}
{allow: [{host: a.test, rate: 1/d}]}
{allow: [{host: a.test, rate: 0/h}]}
{resolve: {a.test: 169.254.169.254}}
{resolve: {a.test: '[::ffff:169.254.169.254]:80'}}
{resolve: {'*.a.test': 10.0.0.1}}
{resolve: {10.0.0.1: 10.0.0.2}}
{ask_wait: 2h}
{connections: 70000}
END
	# Those that are known are named.
	policy "version: 1" "network: {allow: [{host: a.test, methods: [FOO]}]}"
	refused "PROPFIND" policy check
	policy "version: 1" "network: {allow: [{host: a.test, methods: [M-SEARCH, PURGE, WEBSOCKET]}]}"
	run -0 "$cordon" policy check
	# A pattern on the command line is judged the same.
	rm cordon.yaml
	refused "public suffix" run --allow-host '*.com' -- true
}

@test "policy: a URL of a command is at a host and port that are allowed" {
	policy "version: 1" "extends: shell-tools" "network:" "  allow:" "    - {host: api.test, ports: [80, 8443]}" \
		"    - host: '*.sub.test'"
	# judged STATUS URL
	judged() {
		run --separate-stderr "$cordon" policy explain --command "curl $2"
		is "$status" "$1" || { echo "# $2: $output" && return 1; }
	}
	for url in http://api.test/ https://api.test:8443/x http://api.test:8443/ https://a.sub.test/; do
		judged 0 "$url"
	done
	for url in https://api.test/ http://a.sub.test/ https://api.test:9/ https://sub.test/ http://api.test:80@evil.test/ \
		https://a.sub.test:8443/; do
		judged 1 "$url"
	done
}

@test "policy: show says what is in force and where it comes from" {
	policy "version: 1" "extends: strict" "sandbox:" "  memory: 64m" "network: {allow: [{host: '*.example.org'}]}"
	run --separate-stderr "$cordon" policy show
	is "$status" 0
	[[ $output =~ memory:\ 64m\ +\#\ cordon.yaml:4 ]]
	[[ $output =~ pids:\ 128\ +\#\ preset:strict:11 ]]
	has "$output" "subdomains only"
	has "$output" "not stated, so defaults and no ceilings: cpu_time none"
	# What is shown is itself a policy.
	NO_COLOR=1 "$cordon" policy show >shown.yaml
	run --separate-stderr "$cordon" policy compile shown.yaml
	is "$status" 0
	is "$(cut -f1,2 <<<"$output" | tail -n +2)" "$("$cordon" policy compile cordon.yaml | cut -f1,2 | tail -n +2)"
	run --separate-stderr "$cordon" policy show --json
	is "$(python3 -c 'import json, sys
print(next(v["file"] for v in json.load(sys.stdin)["values"] if v["path"] == "sandbox.memory"))' <<<"$output")" cordon.yaml
}

@test "policy: test runs in real boxes and fails when it should" {
	policy "version: 1" "sandbox: {memory: 64m, timeout: 5s}" "tests:" \
		"  - {name: runs, run: ['true'], expect: allowed}" \
		"  - {name: root, run: [touch, /usr/x], expect: denied}" \
		"  - {name: memory, code: {lang: python, text: 'x = bytearray(10**9)'}, expect: {cause: memory}}" \
		"  - {name: net, connect: 'example.org:443', expect: denied}"
	run --separate-stderr "$cordon" policy test
	is "$status" 0
	is "$output" $'1..4\nok 1 - runs\nok 2 - root\nok 3 - memory\nok 4 - net'
	policy "version: 1" "tests:" "  - {name: a, run: ['false'], expect: allowed}" \
		"  - {name: b, run: ['true'], expect: denied}" "  - {name: c, run: ['true'], expect: ask}" \
		"  - {name: d, run: ['true'], expect: {cause: memory}}" "  - {name: e, connect: 'a.b:1', expect: allowed}"
	run --separate-stderr "$cordon" policy test
	is "$status" 1
	is "$(grep -c '^not ok' <<<"$output")" 5
	has "$output" "cordon.yaml:3: expected allowed"
	policy "version: 1"
	refused "has no 'tests'" policy test
}

# layer EXPECT LAYER TEST: one test of a policy with that layer; its status.
layer() {
	policy "version: 1" "sandbox: {memory: 64m, timeout: 10s, pids: 30, disk: 1m, mount_roots: [.], writable: [/w, /workspace, /tmp]}" \
		"commands: {allow: [], otherwise: deny}" "tests:" "  - {name: t, $3, expect: $1${2:+, layer: $2}}"
	[[ $3 == command:* ]] || sed -i '/^commands/d' cordon.yaml
	run --separate-stderr "$cordon" policy test
	is "$stderr" ""
}

# shellcheck disable=SC2034 # variables that are used by name
@test "policy: test, the layer that denies is the one that was named" {
	local net memory pids disk other
	net="run: [python3, -c, 'import socket; socket.create_connection((\"192.0.2.1\", 53), 2)']"
	caught="code: {lang: python, text: \"import socket\\ntry: socket.socket()\\nexcept OSError: pass\"}"
	child="run: [sh, -c, 'python3 -c \"import socket; socket.socket()\" 2>/dev/null; true']"
	memory="code: {lang: python, text: 'x = bytearray(10**9)'}"
	pids="run: [sh, -c, 'for i in \$(seq 60); do sleep 3 & done; wait']"
	disk="run: [sh, -c, 'head -c 9000000 /dev/zero > /workspace/x']"
	other="run: [sh, -c, 'exit 3']"
	command="command: 'rm -rf /'"
	connect="connect: 'example.org:443'"
	for row in "net net" "net child" "net connect" "memory memory" "pids pids" "disk disk" \
		"policy command"; do
		read -r want what <<<"$row"
		layer denied "$want" "${!what}"
		is "$status $output" $'0 1..1\nok 1 - t'
		# Any other layer is wrong, and so is a failure of another kind.
		for wrong in policy net memory pids disk mount cpu output; do
			[ "$wrong" != "$want" ] || continue
			[ "$what" != connect ] || continue
			[ "$what$wrong" != diskmemory ] || continue
			layer denied "$wrong" "${!what}"
			is "$status" 1
			has "$output" "expected denied by layer $wrong"
			has "$output" "denied by $want"
		done
	done
	layer denied "" "$other"
	is "$status" 0
	for wrong in policy net memory pids disk mount cpu output; do
		layer denied "$wrong" "$other"
		is "$status" 1
		has "$output" "denied by no layer"
	done
	# A program that takes it well was denied all the same.
	layer allowed "" "$caught"
	is "$status" 0
	layer denied net "$caught"
	is "$status" 0
	policy "version: 1" "network: {allow: [{host: example.org}]}" \
		"tests: [{name: t, connect: 'example.org:443', expect: denied, layer: net}]"
	run --separate-stderr "$cordon" policy test
	is "$status" 1
	policy "version: 1" "tests: [{name: t, run: ['true'], expect: denied, layer: nte}]"
	wrong 2:57 "a layer that tells what it denied"
	policy "version: 1" "tests: [{name: t, run: ['true'], expect: allowed, layer: net}]"
	wrong 2:58 "goes with 'expect: denied' only"
	policy "version: 1" "tests: [{name: t, connect: 'a.b:1', expect: denied, layer: policy}]"
	wrong 2:60 "denied by the layer net"
}

# shellcheck disable=SC2034 # variables that are used by name
@test "policy: test, a cause is the one that was named" {
	local memory timeout exited signal not_found
	memory="code: {lang: python, text: 'x = bytearray(10**9)'}"
	timeout="run: [sleep, 60]"
	exited="run: [sh, -c, 'exit 3']"
	signal="run: [sh, -c, 'kill -9 \$\$']"
	not_found="run: [no-such-program]"
	for row in memory exited signal not_found; do
		layer "{cause: $row}" "" "${!row}"
		is "$status $output" $'0 1..1\nok 1 - t'
		for wrong in memory exited signal not_found timeout denied; do
			[ "$wrong" != "$row" ] || continue
			layer "{cause: $wrong}" "" "${!row}"
			is "$status" 1
			has "$output" "expected $wrong"
			has "$output" "cause $row"
		done
	done
	policy "version: 1" "sandbox: {timeout: 1s}" "tests: [{name: t, $timeout, expect: {cause: timeout}}]"
	run --separate-stderr "$cordon" policy test
	is "$status" 0
	layer "{cause: denied}" "" "command: 'rm -rf /'"
	is "$status" 0
	layer "{cause: denied}" "" "connect: 'example.org:443'"
	is "$status" 0
}

@test "policy: the presets are valid and pass their tests" {
	for name in strict data-analysis shell-tools build cautious daemon; do
		run --separate-stderr "$cordon" policy check "$top/presets/$name.yaml"
		is "$status" 0
		printf 'version: 1\nextends: %s\n' "$name" >cordon.yaml
		run --separate-stderr "$cordon" policy check
		is "$status" 0
		run --separate-stderr "$cordon" policy test "$top/presets/$name.yaml"
		is "$status" 0
		lacks "$output" "SKIP"
	done
}

@test "policy: the schema is the reader's own table" {
	is "$("$cordon" policy schema)" "$(cat "$top/api/policy.schema.json")"
	python3 - "$top/api/policy.schema.json" "$BATS_TEST_DIRNAME/policy-complete.yaml" <<-'END'
		import json, re, sys
		schema = json.load(open(sys.argv[1]))
		keys = set()
		def walk(s):
		    if isinstance(s, dict):
		        keys.update(s.get("properties", {}))
		        for v in s.values():
		            walk(v)
		    elif isinstance(s, list):
		        for v in s:
		            walk(v)
		walk(schema)
		text = open(sys.argv[2]).read()
		used = set(re.findall(r"^\s*(?:- )?([a-z_]+):", text, re.M))
		used -= {"run_shell", "run_python"}  # names of tools
		assert len(keys) > 80 and used <= keys, used - keys
	END
}

@test "policy: bad calls" {
	policy "version: 1"
	for bad in "" frobnicate "check a b" "check --json" "show --frob" "compile" "schema x" "show --never x"; do
		# shellcheck disable=SC2086
		run --separate-stderr "$cordon" policy $bad
		is "$status" 125
		has "$stderr" "takes"
	done
	rm cordon.yaml
	refused "there is no policy" policy check
	refused "there is no policy" policy show
}

@test "policy: a file that somebody else may write is not obeyed unless it is named" {
	policy "version: 1" "sandbox: {memory: 64m}"
	"$cordon" run -- true
	chmod o+w cordon.yaml
	refused "belongs to someone else" run -- true
	"$cordon" run --policy cordon.yaml -- true
}

@test "policy: P54 the state of a first run is not in what that run may write" {
	mkdir w
	for place in "$dir/w/a/state" "$dir/w/state"; do
		export CORDON_STATE_DIR=$place
		run --separate-stderr "$cordon" run -v "$dir/w:/w:rw" -- sh -c 'ls /w'
		is "$status" 126
		has "$stderr" "own state"
		"$cordon" audit verify
		rm -rf w/* && run --separate-stderr "$cordon" run -v "$dir/w:/w" -- true
		[ "$status" -ne 0 ]
		rm -rf w/*
	done
	export CORDON_STATE_DIR=$dir/elsewhere
	"$cordon" run -v "$dir/w:/w:rw" -- touch /w/x
}

@test "copy-out: a link that the box leaves in a volume leads nowhere" {
	mkdir proj victim
	"$cordon" run -v "$PWD/proj:/data:rw" --copy-out '*=proj/out' -- \
		sh -c "rmdir /data/out; ln -s '$PWD/victim' /data/out; echo x > authorized_keys" || true
	[ -L proj/out ] # the box did its part
	is "$(ls victim)" ""
	# Nor the next time: it is a link already.
	run --separate-stderr "$cordon" run --copy-out '*=proj/out' -- sh -c 'echo x > authorized_keys'
	is "$status" 125
	has "$stderr" "is a link"
	is "$(ls victim)" ""
}

@test "copy-out: works into a directory, old or new, and leaves out what tools of the host obey" {
	mkdir old
	run --separate-stderr "$cordon" run --copy-out '**/*=old' --copy-out '.git/*=old' --copy-out 'a=new' -- \
		sh -c 'mkdir -p s .git; echo 1 > a; echo 2 > s/b; for f in cordon.yaml s/cordon.yaml .git/config; do echo "version: 1" > $f; done'
	is "$status" 0
	is "$(cat old/a old/s/b new/a)" $'1\n2\n1'
	[ ! -e old/cordon.yaml ]
	[ ! -e old/s/cordon.yaml ]
	[ ! -e old/.git/config ]
	has "$stderr" "cordon.yaml"
}

@test "copy-out: under a policy only where a volume could be written" {
	mkdir out
	policy 'version: 1' 'sandbox: {timeout: 9s}'
	denied "mount_roots" --copy-out '*=out' -- touch a
	policy 'version: 1' 'sandbox: {mount_roots: [./out]}'
	denied "mount_roots" --copy-out "*=$BATS_TEST_TMPDIR/elsewhere" -- touch a
	denied "mount_roots" --copy-out '*=out/../other' -- touch a
	gives 0 "" --copy-out '*=out' -- touch a
	gives 0 "" --copy-out '*=out/sub' -- touch a
	[ -e out/a ] && [ -e out/sub/a ]
	[ ! -e other ]
	# Not over the policy, whatever its name.
	policy 'version: 1' 'sandbox: {mount_roots: [.]}'
	mv cordon.yaml mine.yaml
	denied "lies in it" --policy mine.yaml --copy-out '*=.' -- sh -c 'echo x > mine.yaml'
	denied "state" --policy mine.yaml --copy-out "*=$(printenv CORDON_STATE_DIR)" -- touch a
}

@test "copy-out: never into Cordon's own state" {
	denied "state" --copy-out "*=$(printenv CORDON_STATE_DIR)" -- touch a
	denied "state" --copy-out "*=$(printenv CORDON_STATE_DIR)/ledger" -- touch a
}

@test "commands: a relative script is the one that will be run" {
	command -v python3 >/dev/null || skip "no python3"
	mkdir ws
	printf 'print("ran")\n' >ws/x.py
	policy 'version: 1' 'sandbox: {mount_roots: [.]}' \
		'commands: {allow: [{name: python, args: [{script: /workspace}]}]}'
	gives 0 "ran" --workspace ws --command 'python x.py'
	denied "outside the allowed directory" -v "$PWD/ws:/tmp/ws:ro" -w /tmp/ws --command 'python x.py'
	denied "outside the allowed directory" -v "$PWD/ws:/tmp/ws:ro" -w /tmp/ws -- python x.py
	gives 0 "ran" --workspace ws -w /tmp --command 'python ../workspace/x.py'
}

@test "commands: code is not a script of a workspace that is read-only" {
	command -v python3 >/dev/null || skip "no python3"
	mkdir ws
	printf 'print("ran")\n' >ws/x.py
	policy 'version: 1' 'sandbox:' '  mounts: [{from: ./ws, to: /workspace, mode: ro}]' \
		'commands: {allow: [{name: python, args: [{script: /workspace}]}]}'
	gives 0 "ran" --command 'python x.py'
	denied "(commands, " --lang python -c 'print(1)'
}

@test "policy: a writable volume has no link on the way to the policy" {
	mkdir ws conf
	policy 'version: 1' "sandbox: {mount_roots: [$PWD/ws]}"
	mv cordon.yaml conf/real.yaml
	ln -s ../conf/real.yaml ws/pol.yaml
	ln -s ../conf ws/dir
	ln -s ws/pol.yaml out.yaml
	for name in ws/pol.yaml "$PWD/ws/pol.yaml" ws/dir/real.yaml out.yaml ws/../ws/pol.yaml; do
		denied "through a link in it" --policy "$name" -v "$PWD/ws:/data:rw" -- true
		gives 0 "" --policy "$name" -v "$PWD/ws:/data:ro" -- true
	done
	gives 0 "" --policy conf/real.yaml -v "$PWD/ws:/data:rw" -- true
	# What it extends, in the volume, by a way from outside.
	ln -s ws way
	echo 'version: 1' >ws/base.yaml
	printf '%s\n' 'version: 1' 'extends: ./way/base.yaml' "sandbox: {mount_roots: [$PWD/ws]}" >top.yaml
	run --separate-stderr "$cordon" run --policy top.yaml -v "$PWD/ws:/data:rw" -- \
		sh -c 'echo x >>/data/base.yaml || mv /data/base.yaml /data/b || rm /data/base.yaml'
	[ "$status" -ne 0 ]
	is "$(cat ws/base.yaml)" "version: 1"
}

@test "policy: a writable volume has no link on the way to the policy that was found" {
	mkdir -p vol real/cordon home
	printf '%s\n' 'version: 1' "sandbox: {mount_roots: [$PWD/vol]}" >real/cordon/cordon.yaml
	ln -s ../real vol/cfg
	ln -s "$PWD/vol/cfg" home/.config
	ln -s ../real/cordon/cordon.yaml vol/pol.yaml
	mkdir away
	cd away
	rw=(-v "$dir/vol:/data:rw")
	HOME=$dir/home XDG_CONFIG_HOME='' denied "through a link in it" "${rw[@]}" -- true
	XDG_CONFIG_HOME=$dir/vol/cfg denied "through a link in it" "${rw[@]}" -- true
	CORDON_POLICY=$dir/vol/pol.yaml denied "through a link in it" "${rw[@]}" -- true
	XDG_CONFIG_HOME=$dir/real gives 0 "" "${rw[@]}" -- true
	# In the directory itself.
	ln -s "$dir/vol/pol.yaml" cordon.yaml
	denied "through a link in it" "${rw[@]}" -- true
	# The same for a program with the library.
	rm cordon.yaml
	CORDON_POLICY=$dir/vol/pol.yaml run "$CORDON_BUILD/tests/librun" \
		"{\"volumes\": {\"$dir/vol\": {\"bind\": \"/data\", \"mode\": \"rw\"}}}" true
	has "$output" "through a link in it"
}

@test "commands: no variable steers what a command loads, unless the policy sets it" {
	command -v python3 >/dev/null || skip "no python3"
	mkdir -p ws/ok
	echo 'print("evil")' >ws/sitecustomize.py
	echo 'print("ok")' >ws/ok/x.py
	rules='commands: {allow: [{name: python, args: [{script: /workspace/ok}]}]}'
	policy 'version: 1' 'sandbox: {mount_roots: [.]}' "$rules"
	for v in PYTHONPATH=/workspace LD_PRELOAD=/workspace/x.so LD_LIBRARY_PATH=/workspace NODE_OPTIONS=-r/x \
		PATH=/workspace GCONV_PATH=/workspace BASH_ENV=x PYTHONINSPECT=1 PYTHONPATH=; do
		denied "variable '${v%%=*}'" --workspace ws -e "$v" --command 'python ok/x.py'
	done
	gives 0 "ok" --workspace ws -e TZ=UTC -e LDX=1 -e MY_PATH=x --command 'python ok/x.py'
	policy 'version: 1' 'sandbox: {mount_roots: [.], env: {PYTHONPATH: /workspace}}' "$rules"
	gives 0 $'evil\nok' --workspace ws -e PYTHONPATH=/workspace --command 'python ok/x.py'
}

@test "policy: what it extends is not found through a link" {
	mkdir "$dir/base" "$dir/vol"
	printf 'version: 1\nsandbox: {memory: 64m}\n' >"$dir/base/base.yaml"
	ln -s "$dir/base/base.yaml" "$dir/vol/link.yaml"
	ln -s "$dir/base" "$dir/linked"
	for name in vol/link.yaml linked/base.yaml "$dir/vol/link.yaml"; do
		printf 'version: 1\nextends: %s\n' "$name" >"$dir/p.yaml"
		run "$cordon" run --policy "$dir/p.yaml" -- true
		is "$status" 125
		has "$output" "p.yaml:2:10: "
		has "$output" "symbolic link"
	done
	# The same file by its own name.
	printf 'version: 1\nextends: ./base/base.yaml\n' >"$dir/p.yaml"
	run "$cordon" run --policy "$dir/p.yaml" -- true
	is "$status" 0
}
