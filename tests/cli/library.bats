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
