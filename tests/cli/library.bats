#!/usr/bin/env bats
# The library: which policy holds for it, and settings as JSON.
load common
eval "common_$(declare -f setup)"

setup() {
	common_setup
	export CORDON_STATE_DIR=$BATS_TEST_TMPDIR/state XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
	export CORDON_LIBEXEC=$CORDON_BUILD
	unset CORDON_POLICY
	librun=$CORDON_BUILD/tests/librun
	mkdir w
	cd w || return
}

# ends CAUSE JSON CMD...: a run that ends so; the document is in $output.
ends() {
	local cause=$1
	shift
	run --separate-stderr "$librun" "$@"
	is "$status" 0 && is "$(field cause)" "$cause"
}

# refuses PART JSON...: the library says no, and why.
refuses() {
	local part=$1
	shift
	run --separate-stderr "$librun" "$@"
	is "$status" 3 && is "$output" "" && has "$stderr" "$part"
}

# shown JSON MEMBER: of the spec that comes of it
shown() {
	run --separate-stderr "$librun" --show "$1"
	is "$status" 0 && field "$2"
}

@test "library: the policy that applies here is its ceiling too" {
	ends exited '{"memory": "70m"}' true
	mkdir -p "$XDG_CONFIG_HOME/cordon"
	echo '{version: 1, sandbox: {memory: 60m}}' >"$XDG_CONFIG_HOME/cordon/cordon.yaml"
	ends denied '{"memory": "70m"}' true
	has "$(field message)" "config/cordon/cordon.yaml:1: sandbox.memory"
	ends exited '{"memory": "60m"}' true
	echo '{version: 1, sandbox: {memory: 50m}}' >cordon.yaml
	ends denied '{"memory": "55m"}' true
	has "$(field message)" "w/cordon.yaml:1: sandbox.memory"
	echo '{version: 1, sandbox: {memory: 40m}}' >env.yaml
	export CORDON_POLICY=env.yaml
	ends denied '{"memory": "45m"}' true
	has "$(field message)" "env.yaml:1"
	echo '{version: 1, sandbox: {memory: 30m}}' >named.yaml
	ends denied '{"memory": "35m", "policy": "named.yaml"}' true
	has "$(field message)" "named.yaml:1"
	# What is not asked for is what the file states.
	ends exited '{"policy": "named.yaml"}' true
	is "$(field limits.memory)" $((30 << 20))
	# A file that is wrong or gone is an error, not no policy.
	CORDON_POLICY=gone.yaml refuses "gone.yaml" '{}' true
	unset CORDON_POLICY
	echo 'version: 2' >cordon.yaml
	refuses "cordon.yaml:1:10" '{}' true
	echo 'version: 1' >cordon.yaml
	chmod o+w cordon.yaml
	refuses "belongs to someone else" '{}' true
}

@test "library: a preset by its name" {
	ends exited '{"policy": "strict"}' true
	ends denied '{"policy": "strict", "memory": "1g"}' true
	has "$(field message)" "preset:strict:"
	ends denied '{"policy": "shell-tools"}' rm x
	ends exited '{"policy": "shell-tools"}' echo hello
	is "$(field stdout)" hello
	is "$("$cordon" run --policy shell-tools -- echo hello)" hello
	refuses "policy 'stricter'" '{"policy": "stricter"}' true
	# A file of that name is one with a directory.
	echo '{version: 1, sandbox: {memory: 30m}}' >strict
	ends denied '{"policy": "./strict", "memory": "31m"}' true
	ends exited '{"policy": "strict", "memory": "31m"}' true
}

@test "library: JSON, the names of the tutorial" {
	is "$(shown '{"max_execution_seconds": 7}' timeout_ms)" 7000
	is "$(shown '{"max_memory_mb": 100}' memory)" $((100 << 20))
	is "$(shown '{"max_cpu_percent": 50.0}' cpus)" 0.5
	is "$(shown '{"max_cpu_percent": 150}' cpus)" 1.5
	is "$(shown '{"max_output_bytes": 1000000}' output)" 1000000
	is "$(shown '{"network_enabled": false}' network)" none
	ends denied '{"network_enabled": true}' true
	has "$output" "network-enabled: there is no open network"
	is "$(shown '{"network_enabled": true, "allow_host": ["a.test"]}' network)" allow
	# All at once, as data that a program has.
	is "$(shown '
		{ "max_execution_seconds" : 30 , "max_memory_mb":256,
		  "max_cpu_percent": 50.0, "max_output_bytes": 1000000,
		  "network_enabled": false, "writable_paths": null, "allowed_commands": null }' timeout_ms)" 30000
	ends timeout '{"max_execution_seconds": 1}' sleep 30
	ends memory '{"max_memory_mb": 20}' python3 -c 'bytearray(10**8)'
	ends exited '{"max_output_bytes": 10}' seq 1000
	is "$(field truncated) $(field stdout_bytes)" "True 3893"
}

@test "library: JSON, writable_paths are the only writable places" {
	try='for p in /tmp /workspace /dev/shm /opt/x; do touch $p/f 2>/dev/null && echo $p; done; true'
	ends exited '{}' sh -c "$try"
	is "$(field stdout)" $'/tmp\n/workspace\n/dev/shm'
	ends exited '{"writable_paths": ["/tmp", "/opt/x"]}' sh -c "$try"
	is "$(field stdout)" $'/tmp\n/opt/x'
	ends exited '{"writable_paths": []}' sh -c "$try"
	is "$(field stdout)" ""
	echo '{version: 1, sandbox: {writable: [/workspace]}}' >cordon.yaml
	ends exited '{"writable_paths": ["/workspace"]}' sh -c "$try"
	is "$(field stdout)" /workspace
	ends exited '{"writable_paths": []}' sh -c "$try"
	is "$(field stdout)" ""
	ends denied '{"writable_paths": ["/opt/x"]}' true
}

@test "library: JSON, allowed_commands is commands.allow by name" {
	ends exited '{"allowed_commands": ["ls", "echo"]}' echo yes
	is "$(field stdout)" yes
	ends denied '{"allowed_commands": ["ls", "echo"]}' cat /etc/passwd
	has "$(field message)" "allowed_commands"
	ends exited '{"allowed_commands": ["ls", "wc", "echo"], "command": "echo a b | wc -w"}'
	is "$(field stdout)" 2
	ends denied '{"allowed_commands": ["ls"], "command": "ls; rm -rf /"}'
	ends denied '{"allowed_commands": ["find"], "command": "find . -exec id ;"}'
	ends denied '{"allowed_commands": []}' ls
	# Only these exist in the box.
	ends exited '{"allowed_commands": ["ls"]}' ls /usr/bin
	lacks "$(field stdout)" cat
	# It narrows a policy, and never widens it.
	echo '{version: 1, commands: {allow: [ls, cat], deny: [wc]}}' >cordon.yaml
	ends denied '{"allowed_commands": ["echo", "ls"]}' echo x
	ends denied '{"allowed_commands": ["ls"]}' cat /etc/hosts
	ends denied '{"allowed_commands": ["wc"]}' wc /etc/hosts
	ends exited '{"allowed_commands": ["ls", "echo"]}' ls /usr/bin
	for name in cat echo wc; do
		lacks "$(field stdout)" "$name"
	done
	rm cordon.yaml
	ends denied '{"allowed_commands": ["ls"], "env": {"LD_PRELOAD": "/x"}}' ls
	ends exited '{"allowed_commands": ["ls"], "env": {"LANG": "C"}}' ls
	refuses "without a directory" '{"allowed_commands": ["/bin/ls"]}' ls
}

@test "library: JSON, the names of docker-py" {
	is "$(shown '{"mem_limit": "100m"}' memory)" $((100 << 20))
	is "$(shown '{"mem_limit": 104857600}' memory)" $((100 << 20))
	is "$(shown '{"cpu_period": 200000, "cpu_quota": 50000}' cpus)" 0.25
	is "$(shown '{"cpu_quota": 50000, "cpu_period": 200000}' cpus)" 0.25
	is "$(shown '{"pids_limit": 17}' pids)" 17
	is "$(shown '{"read_only": true}' read_only)" True
	is "$(shown '{"read_only": false}' read_only)" False
	is "$(shown '{"network_disabled": true}' network)" none
	ends denied '{"network_disabled": false}' true
	has "$output" "network-disabled: there is no open network"
	is "$(shown '{"user": "nobody"}' uid)" 65534
	is "$(shown '{"user": 1234}' uid)" 1234
	is "$(shown '{"user": "1234:5"}' gid)" 5
	is "$(shown '{"remove": true}' network)" none
	refuses "remove" '{"remove": false}' true
	is "$(shown '{"tmpfs": {"/a": "size=1m", "/b": "2m", "/c": ""}}' tmpfs)" "{'/a': 1048576, '/b': 2097152, '/c': 67108864}"
	for opt in '"no-new-privileges"' '["no-new-privileges"]' '["no-new-privileges:true"]'; do
		is "$(shown "{\"security_opt\": $opt}" network)" none
	done
	for opt in '"no-new-privileges:false"' '["seccomp=unconfined"]' '["apparmor=unconfined"]'; do
		refuses "security" "{\"security_opt\": $opt}" true
	done
	mkdir data
	echo text >data/file
	ends exited "{\"volumes\": {\"$PWD/data\": {\"bind\": \"/data\", \"mode\": \"ro\"}}}" cat /data/file
	is "$(field stdout)" text
	ends exited "{\"volumes\": {\"$PWD/data\": {\"bind\": \"/data\"}}}" touch /data/new
	is "$(field exit_code)" 1
	ends exited "{\"volumes\": {\"$PWD/data\": {\"bind\": \"/data\", \"mode\": \"rw\"}}}" touch /data/new
	is "$(field exit_code)" 0
	ends exited "{\"volumes\": [\"$PWD/data:/data\"]}" ls /data/new
	for bad in '{"a": "b"}' '{"a": {"bind": "/b", "mode": "z"}}' '{"a": {"mode": "ro"}}' '{"a:b": {"bind": "/b"}}' \
		'{"a": {"bind": "/b:rw"}}' '{"a": {"bind": "/b", "propagation": "shared"}}' '{"a": {"bind": "/b", "mode": ["rw"]}}'; do
		refuses "volumes takes" "{\"volumes\": $bad}" true
	done
}

@test "library: JSON, arguments for docker" {
	is "$(shown '{"extra_docker_args": {"network": "none", "pids-limit": 128}}' pids)" 128
	is "$(shown '{"extra_docker_args": {"pids-limit": 64, "memory": "32m"}}' memory)" $((32 << 20))
	is "$(shown '{"docker_args": ["--pids-limit", "64", "--memory", "256m"]}' pids)" 64
	is "$(shown '{"docker_args": ["-m", "32m", "--cpus=0.25", "--rm", "--read-only", "--network=none"]}' memory)" $((32 << 20))
	is "$(shown '{"docker_args": ["--cpu-quota", "50000", "--cpu-period", "200000"]}' cpus)" 0.25
	is "$(shown '{"docker_args": []}' pids)" 128
	for bad in '["--privileged"]' '["--cap-add", "SYS_ADMIN"]' '["--cap-add=ALL"]' '["--device", "/dev/kvm"]' '["--pid=host"]' \
		'["--network=host"]' '["--network", "bridge"]' '["--security-opt", "seccomp=unconfined"]' '["--frobnicate"]' \
		'["--memory"]' '["64"]' '["--ledger=off"]' '["--best-effort=memory"]' '["--policy=x"]' '["-x", "1"]' '["-"]' \
		'"--rm"' '[["--rm"]]' '{"a": 1}'; do
		refuses "" "{\"docker_args\": $bad}" true
	done
	for bad in '{"network": "host"}' '{"privileged": true}' '{"ledger": "off"}' '{"frobnicate": 1}' '{"pids-limit": {}}' '["--rm"]'; do
		refuses "" "{\"extra_docker_args\": $bad}" true
	done
	# They are a request like any other.
	echo '{version: 1, sandbox: {pids: 50}}' >cordon.yaml
	ends denied '{"docker_args": ["--pids-limit", "64"]}' true
}

@test "library: JSON, what is no settings" {
	for bad in '' '[]' '"a"' 'null' '{' '{}x' '{"memory"}' '{"memory": }' '{memory: 1}' '{"memory": "1g",}' "{'a': 1}" \
		'{"memory": "64m", "memory": "1g"}' '{"mem_limit": "64m", "mem-limit": "1g"}' '{"frobnicate": 1}' \
		'{"frobnicate": null}' '{"memory": {}}' '{"memory": [["1g"]]}' '{"memory": "1g\u0000"}' '{"": 1}' \
		'{"timeout": "30 s x"}' '{"memory": true}' $'{"memory": "\xff"}'; do
		run --separate-stderr "$librun" --show "$bad"
		is "$status" 3 || { echo "$bad" && return 1; }
	done
	is "$(shown '{ }' pids)" 128
	is "$(shown $'\n{\t"name" :\r"a-b" }\n' pids)" 128
	is "$(shown '{"label": ["a= \" x  \\ y", "b=\u00e9"]}' pids)" 128
	is "$(shown '{"env": {"A": "b c=d", "N": 3}}' env | grep -c "A=b c=d.*N=3")" 1
}

@test "library: JSON, a directory that is the workspace" {
	ends exited '{"work_dir": "made"}' sh -c 'echo x >out; pwd'
	is "$(field stdout) $(cat made/out)" "/workspace x"
	ends exited '{"work_dir": "made:ro"}' touch /workspace/no
	is "$(field exit_code)" 1
	ends exited '{"work_dir": "elsewhere", "bind_dir": "made"}' cat out
	is "$(field stdout)" x
	[ ! -e elsewhere ]
	# The current directory only when it is meant.
	ends invalid '{"work_dir": "."}' true
	has "$(field message)" "allow_cwd"
	ends exited '{"work_dir": ".", "allow_cwd": true}' ls
	has "$(field stdout)" made
	has "$(field warnings)" "work_dir is the current directory"
	# It is a volume: what is never mounted is not, and nothing is left then.
	ends denied '{"work_dir": "/proc"}' true
	ends invalid '{"work_dir": "new", "workspace": "made"}' true
	[ ! -e new ]
	ends denied '{"work_dir": "no/such/../place", "volumes": {"/proc": {"bind": "/p"}}}' true
	[ ! -e no ]
	mkdir -m 555 shut
	[ "$UID" = 0 ] || ends invalid '{"work_dir": "shut/not/there"}' true
	ends invalid '{"work_dir": "made/out/there"}' true
	has "$(field message)" "'made/out/there': Not a directory"
	ends exited '{"work_dir": "not//there/"}' touch x
	[ -e not/there/x ]
	# Where the caller wants it besides; made where nothing is.
	ends exited '{"work_dir": "made", "container_work_dir": "/work"}' sh -c 'pwd; ls'
	is "$(field stdout)" $'/work\nout'
	ends exited '{"container_work_dir": "/a/b"}' pwd
	is "$(field stdout)" /a/b
}

@test "library: JSON, each block reads what it was given" {
	local long
	long=$(printf '%090000d' 1) # more than a pipe holds
	ends exited '{"blocks": [
		{"language": "sh", "code": "cat; cat /dev/stdin; test -p /dev/stdin", "stdin": "one\u0000\n"},
		{"language": "python", "code": "import sys; print(len(sys.stdin.read()))", "stdin": "'"$long"'"},
		{"language": "sh", "code": "cat | wc -c"},
		{"language": "c", "code": "#include <stdio.h>\nint main() { putchar(getchar()); }", "stdin": "c"},
		{"language": "sh", "code": "cat", "stdin": ""}]}'
	is "$(jq -c '[.runs[].stdout]' <<<"$output")" '["one\u0000\n","90000\n","0\n","c",""]'
	# One that reads some of it, or nothing, ends as it does, and at its time.
	ends exited '{"blocks": [{"language": "sh", "code": "head -c 5; exec <&-; sleep 0.1; exit 7", "stdin": "'"$long"'"}]}'
	is "$(field stdout) $(field exit_code)" "00000 7"
	ends timeout '{"timeout": "300ms", "blocks": [{"language": "sh", "code": "sleep 100", "stdin": "'"$long"'"}]}'
	is "$(shown '{"blocks": [{"language": "sh", "code": "", "stdin": "a"}]}' blocks)" "[{'language': 'sh', 'code': '', 'stdin': 'a'}]"
	ends invalid '{"tty": true, "blocks": [{"language": "sh", "code": "", "stdin": ""}]}'
	has "$(field message)" "a terminal and given input"
}

@test "library: JSON, a block that floods ends alone where others go on" {
	local blocks='"blocks": [{"language": "sh", "code": "yes"}, {"language": "sh", "code": "echo two"}, {"language": "sh", "code": "yes >&2"}]'
	ends output '{"hard_output": "100k", "continue_on_error": true, '"$blocks}"
	is "$(jq -c '[.runs[] | [.cause, .stdout[0:4]]]' <<<"$output")" '[["output","y\ny\n"],["exited","two\n"],["output",""]]'
	ends output '{"hard_output": "100k", '"$blocks}"
	is "$(jq '.runs | length' <<<"$output")" 1
	# One that was over before it was noticed is over, and the next one runs.
	blocks='"blocks": [{"language": "sh", "code": "echo more than ten bytes"}, {"language": "sh", "code": "sleep 0.2"}]'
	for _ in $(seq 20); do
		run --separate-stderr "$librun" '{"hard_output": "10", '"$blocks}"
		case $(jq -c '[.runs[].cause]' <<<"$output") in
		'["output"]' | '["exited","exited"]') ;;
		*) echo "$output" && return 1 ;;
		esac
	done
}

@test "library: JSON, what came first is the cause" {
	local code='"blocks": [{"language": "sh", "code": "trap yes TERM; while :; do sleep 0.05; done"}]'
	ends timeout '{"timeout": "300ms", "kill_grace": "1s", "hard_output": "1k", '"$code}"
	ends timeout '{"timeout": "300ms", "kill_grace": "1s", "hard_output": "1k", "continue_on_error": true, '"$code}"
	ends timeout '{"timeout": "300ms", "total_timeout": "400ms", "kill_grace": "500ms", "continue_on_error": true, "blocks": [
		{"language": "sh", "code": "trap : TERM; while :; do sleep 0.05; done"}, {"language": "sh", "code": "sleep 5"}]}'
	is "$(jq -c '[.runs[].cause]' <<<"$output")" '["timeout","timeout"]'
	has "$(field message)" total
}

@test "library: JSON, blocks, and files that go" {
	ends exited '{"work_dir": "made", "delete_files": true, "blocks": [
		{"language": "sh", "code": "echo $1 >one; exit 0", "args": ["first"], "filename": "d/a.sh"},
		{"language": "python", "code": "import sys; print(sys.argv[1:]); sys.exit(3)", "args": ["x", "y"], "filename": null}]}'
	is "$(field exit_code) $(field stdout) $(cat made/one) $(field warnings)" "3 ['x', 'y'] first []"
	is "$(find made -type f)" made/one
	ends exited '{"work_dir": "made", "blocks": [{"language": "sh", "code": "cat", "stdin": "in", "filename": "kept.sh"}]}'
	is "$(field stdout) $(cat made/kept.sh)" "in cat"
	# One that cannot be removed is named.
	ends exited '{"work_dir": "made", "delete_tmp_files": true, "blocks": [
		{"language": "sh", "code": "rm -f gone.sh; mkdir gone.sh", "filename": "gone.sh"}]}'
	has "$(field warnings)" "delete_files: 'gone.sh' could not be removed"
	for bad in '[]' '{}' '[1]' '[{}]' '[{"language": "sh"}]' '[{"language": "sh", "code": 1}]' \
		'[{"language": "sh", "code": "", "args": "x"}]' '[{"language": "sh", "code": "", "args": [1]}]' \
		'[{"language": "sh", "code": "", "more": 1}]'; do
		refuses "blocks" "{\"blocks\": $bad}"
	done
}

@test "library: JSON, hosts, ulimits and networks as others write them" {
	ends exited '{"extra_hosts": {"db": "10.0.0.7"}}' grep -c '^10.0.0.7 db$' /etc/hosts
	is "$(field stdout)" 1
	for ulimits in '[{"name": "nofile", "soft": 100, "hard": 200}]' '[{"Name": "nofile", "Soft": 100, "Hard": 200}]' \
		'{"nofile": "100:200"}' '{"nofile": {"soft": 100, "hard": 200}}' '["nofile=100:200"]'; do
		ends exited "{\"ulimits\": $ulimits}" sh -c 'ulimit -Sn; ulimit -Hn'
		is "$(field stdout)" $'100\n200'
	done
	refuses "ulimits takes" '{"ulimits": [{"soft": 1}]}' true
	is "$(shown '{"network": "allowlist", "allow_domains": ["example.org"]}' allow_host)" "['example.org:443']"
	is "$(shown '{"network": "allowlist"}' network)" none
	refuses "'allowlist'" '{"network": "bridge"}' true
}

@test "library: JSON, what is refused is named, what is elsewhere is said" {
	ends exited '{"privileged": false, "devices": [], "cap_add": []}' true
	refuses "privileged: refused" '{"privileged": true}' true
	refuses "devices: refused" '{"devices": ["/dev/kvm"]}' true
	refuses "userns: refused" '{"userns": "host"}' true
	for name in idle_timeout init_command stop_container keep_background; do
		refuses "it is of a box that stays" "{\"$name\": 1}" true
	done
	refuses "not in this build" '{"functions": [{"source": "x"}]}' true
	refuses "not in this build" '{"functions_module": "f"}' true
	ends exited '{"functions": null, "idle_timeout": null}' true
}

@test "library: JSON, a block that leaves no room, or no right, for the next" {
	limits='"disk": "64k", "continue_on_error": true, "blocks":'
	next='{"language": "sh", "code": "echo two"}'
	blocks() {
		run --separate-stderr "$librun" "{$limits [{\"language\": \"sh\", \"code\": \"$1\"}, $next]}"
		is "$status" 0
	}

	blocks 'dd if=/dev/zero of=fill bs=1k; exit 0'
	is "$(field runs.0.cause)" exited
	is "$(field runs.1.cause)" disk
	is "$(field runs.1.status)" resource_exceeded
	is "$(field exit_code)" 137
	has "$(field message)" "No space left on device"
	has "$(field message)" "--disk"
	# Half of a file is not left there.
	is "$(field files)" "[{'path': 'fill', 'size': 61440}]"

	blocks 'i=0; while true >f$i; do i=$((i+1)); done; exit 0'
	is "$(field runs.1.cause)" disk

	blocks 'chmod 555 /workspace'
	is "$(field runs.0.cause)" exited
	is "$(field runs.1.cause)" denied
	is "$(field exit_code)" 126
	has "$(field message)" "Permission denied"

	run --separate-stderr "$librun" "{\"disk\": \"64k\", \"blocks\": [{\"language\": \"sh\", \"code\": \"#$(printf '%0100000d' 0)\"}]}"
	is "$(field cause)" disk
	is "$(field exit_code)" 137
}

# untouched COMMAND...: nothing is made in here, not even for a moment.
untouched() {
	local before after
	before=$(stat -c %Z.%Y .; ls -A)
	sleep 0.02
	"$@"
	after=$(stat -c %Z.%Y .; ls -A)
	is "$after" "$before"
}

@test "library: a directory is made for a run, and for nothing else" {
	local block='"blocks": [{"language": "sh", "code": "true"'
	mkdir top
	cd top
	untouched ends not_found '{"work_dir": "x/y", "blocks": [{"language": "nolang", "code": "x"}]}'
	untouched ends denied '{"work_dir": "x/y", '"$block"', "filename": "../x"}]}'
	untouched ends not_found '{"copy_out": "*=o", "blocks": [{"language": "nolang", "code": "x"}]}'
	untouched ends denied '{"work_dir": "x/y", "volumes": {"/proc": {"bind": "/p"}}}' true
	untouched ends invalid '{"work_dir": "x", "disk": "64k", "workspace": "y"}' true
	# What is found later is taken back: there is no such program.
	ends not_found '{"work_dir": "x/y", "copy_out": []}' nosuch
	ends not_found '{"copy_out": "*=o"}' nosuch
	is "$(ls -A)" ""
	# The policy sees the path that it will have, and nothing is made before.
	mkdir ../may ../not
	ln -s ../not link
	echo "{version: 1, sandbox: {mount_roots: ['$dir/w/may']}}" >../cordon.yaml
	untouched ends denied '{"policy": "../cordon.yaml", "work_dir": "../not/x/y"}' true
	untouched ends denied '{"policy": "../cordon.yaml", "work_dir": "link/x"}' true
	untouched ends denied '{"policy": "../cordon.yaml", "work_dir": "../may/x/../../../top/z"}' true
	is "$(ls -A ../not ../may)" $'../may:\n\n../not:'
	ends exited '{"policy": "../cordon.yaml", "work_dir": "../may/x/y"}' touch here
	[ -e ../may/x/y/here ]
	# And names that tools of the host obey are moved away from there, too.
	ends exited '{"policy": "../cordon.yaml", "work_dir": "../may/z"}' touch .gitconfig
	[ ! -e ../may/z/.gitconfig ]
	has "$(field denials)" .gitconfig
	# A link that leads nowhere, and a file, are no directories.
	ln -s nowhere broken
	ends invalid '{"work_dir": "broken/x"}' true
	has "$(field message)" "work_dir: 'broken' is a link that leads nowhere"
	touch file
	ends invalid '{"work_dir": "file"}' true
	is "$(field message)" "work_dir: 'file' is not a directory"
	# Home directories are not mounted, also before they are there.
	HOME=$PWD/home ends denied '{"work_dir": "home"}' true
	[ ! -e home ]
}
