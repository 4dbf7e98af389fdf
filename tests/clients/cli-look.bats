#!/usr/bin/env bats
# What the docker command shows: ps, logs, events, stats, images, info.
# shellcheck disable=SC2154,SC2016,SC2094 # by common and bats; for shells in boxes; only read
load common

@test "version and info" {
	run docker version
	is "$status" 0
	has "$output" Server:
	run docker info
	is "$status" 0
	has "$output" 'Containers: 0'
	lacks "$output" ERROR
	on_docker || has "$(docker version -f '{{range .Server.Components}}{{.Name}} {{end}}')" Cordon
	is "$(docker info -f '{{.OSType}}')" linux
}

@test "ps: running, all, filters, format, newest first" {
	docker run -d --name one "$image" sleep 60
	docker create --name two "$image" true
	docker run --name three "$image" sh -c 'exit 3' || :
	is "$(docker ps --format '{{.Names}}')" one
	is "$(docker ps -a --format '{{.Names}}')" $'three\ntwo\none'
	is "$(docker ps -n 1 --format '{{.Names}}')" three
	is "$(docker ps -a --filter status=exited --format '{{.Names}}')" three
	is "$(docker ps -a --filter status=created --format '{{.Names}}')" two
	is "$(docker ps -a --filter exited=3 --format '{{.Names}}')" three
	is "$(docker ps -a --filter name=^/t --format '{{.Names}}' | sort)" $'three\ntwo'
	is "$(docker ps -a --filter "ancestor=$image" -q | wc -l)" 3
	run docker ps -a
	has "$output" 'Exited (3)'
	has "$output" 'Up '
	has "$output" Created
	has "$output" 'sleep 60'
	has "$(docker ps -as)" virtual
}

@test "inspect: container, image, nothing" {
	docker run -d --name one -e A=b -w /tmp "$image" sleep 60
	is "$(docker inspect -f '{{.Path}} {{.Args}} {{.Config.WorkingDir}} {{.State.Status}}' one)" \
		'sleep [60] /tmp running'
	has "$(docker inspect -f '{{.Config.Env}}' one)" A=b
	is "$(docker inspect -f '{{.HostConfig.LogConfig.Type}}' one)" json-file
	has "$(docker inspect "$image" -f '{{.Id}}')" sha256:
	is "$(docker inspect one -f '{{.Image}}')" "$(docker inspect "$image" -f '{{.Id}}')"
	run docker inspect nosuch
	is "$status" 1
	has "$output" 'No such object: nosuch'
}

@test "logs: -n, -t, --since, both streams" {
	docker run --name one "$image" sh -c \
		'for i in 1 2 3 4 5; do echo line$i; done; echo err >&2' >/dev/null 2>&1
	is "$(docker logs one 2>/dev/null)" $'line1\nline2\nline3\nline4\nline5'
	is "$(docker logs one 2>&1 >/dev/null)" err
	is "$(docker logs -n 2 one 2>&1 | wc -l)" 2
	is "$(docker logs -n 0 one 2>&1)" ""
	run docker logs -t -n 1 one
	[[ $output =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z\ .* ]]
	is "$(docker logs --since 2000-01-01T00:00:00Z one 2>&1 | wc -l)" 6
	is "$(docker logs --until 2000-01-01T00:00:00Z one 2>&1)" ""
	sleep 2.2
	is "$(docker logs --since 1s one 2>&1)" ""
	run docker logs nosuch
	is "$status" 1
	has "$output" 'No such container: nosuch'
}

@test "logs --since: cuts at the moment" {
	docker run -d --name one "$image" sh -c 'echo old; sleep 2; echo new; sleep 60'
	until_true 5 sh -c 'docker logs one | grep -q new'
	local when
	when=$(docker logs -t one | sed -n 's/ new$//p')
	is "$(docker logs --since "$when" one)" new
}

@test "logs -f: follows to the end" {
	docker run -d --name one "$image" sh -c \
		'for i in 1 2 3 4 5; do echo $i; sleep 0.2; done'
	is "$(timeout 20 docker logs -f one)" $'1\n2\n3\n4\n5'
	is "$(timeout 20 docker logs -f one)" $'1\n2\n3\n4\n5'
}

@test "logs: a line without an end, a long line, bytes" {
	local bytes='\377\376'
	on_docker && bytes='' # its log is JSON and keeps text only
	docker run --name one "$image" sh -c \
		"head -c 100000 /dev/zero | tr '\\0' x; printf '\\n${bytes}end'" >want
	docker logs one >have
	cmp want have
}

@test "logs: of a terminal" {
	docker run -t --name one "$image" echo hi >/dev/null
	is "$(docker logs one | tr -d '\r')" hi
}

@test "top" {
	docker run -d --name one "$image" sh -c 'sleep 61 & sleep 62; true'
	until_true 5 sh -c 'docker top one | grep -q "sleep 62"'
	run docker top one
	has "$output" 'sleep 61'
	has "$output" PID
	run docker top one aux
	is "$status" 0
	has "$output" COMMAND
}

@test "stats" {
	docker run -d --name one --memory 64m "$image" sh -c 'while :; do :; done'
	run docker stats --no-stream one
	is "$status" 0
	has "$output" one
	has "$output" 64MiB
	run docker stats --no-stream --format '{{.CPUPerc}}' one
	[[ $output =~ ^[0-9.]+%$ ]]
	[ "$output" != 0.00% ]
	run timeout 4 docker stats --format '{{.Name}} {{.PIDs}}'
	is "$status" 124
	has "$output" 'one 1'
}

@test "events: a life, in order" {
	local since
	since=$(date +%s)
	docker run --name life "$image" sh -c 'exit 3' || :
	docker rm life
	run docker events --since "$since" --until "$(($(date +%s) + 1))" \
		--filter type=container --filter container=life \
		--format '{{.Action}}'
	is "$status" 0
	local left
	left=$(grep -v '^attach$\|^exec\|^kill' <<<"$output" | tr '\n' ' ')
	is "$left" 'create start die destroy '
	run docker events --since "$since" --until "$(($(date +%s) + 1))" \
		--filter event=die --filter container=life --format '{{.Actor.Attributes.exitCode}} {{.Actor.Attributes.name}}'
	is "$output" '3 life'
}

@test "events: what the policy lowers and denies, and what ran out of time" {
	on_docker && skip "a Docker Engine has no such events"
	local before
	before=$(date +%s)
	docker run -d --name one --memory 900g --label io.cordon.timeout=1 "$image" sleep 60
	run docker exec one sleep 9
	is "$status" 124
	run docker exec --privileged one true
	run docker run --privileged "$image" true
	docker rm -f one
	run docker events --since "$before" --until "$(($(date +%s) + 1))" --filter type=cordon \
		--format '{{.Action}} {{json .Actor.Attributes}}'
	has "${lines[0]}" 'policy_clamp '
	has "${lines[0]}" '"setting":"memory"'
	has "${lines[1]}" 'timeout '
	has "${lines[1]}" '"execID":"'
	has "${lines[2]}" 'policy_deny '
	has "${lines[2]}" 'Privileged'
	has "${lines[3]}" 'HostConfig.Privileged'
}

@test "inspect: what the last run used" {
	on_docker && skip "a Docker Engine does not tell"
	docker run --name one "$image" true
	has "$(curl -s --unix-socket "${DOCKER_HOST#unix://}" http://x/containers/one/json)" \
		'"resources_used":{"cause":"exited","execution_time_ms":'
}

@test "events: as they happen" {
	timeout 20 docker events --filter container=one --format '{{.Action}}' >seen &
	local watcher=$!
	sleep 1
	docker run -d --name one "$image" sleep 60
	docker pause one
	docker unpause one
	docker rename one two
	docker rename two one
	docker exec one true
	docker kill one
	docker wait one
	docker rm one
	until_true 5 grep -q destroy seen
	kill "$watcher"
	local action
	for action in create start pause unpause rename exec_create exec_start exec_die kill die destroy; do
		grep -q "^$action" seen || { cat seen; echo "no $action"; return 1; }
	done
}

@test "port: none" {
	docker run -d --name one "$image" sleep 60
	run docker port one
	is "$status" 0
	is "$output" ""
}

@test "diff" {
	docker run --name one -u sandbox "$image" sh -c 'echo x >/home/sandbox/new'
	run docker diff one
	is "$status" 0
	has "$output" 'A /home/sandbox/new'
}

@test "export" {
	docker run --name one -u sandbox "$image" \
		sh -c 'echo exported >/home/sandbox/new'
	docker export one >x.tar
	is "$(tar -xOf x.tar home/sandbox/new)" exported
	tar -tf x.tar usr/bin/busybox
}

@test "system df" {
	run docker system df
	is "$status" 0
	has "$output" Images
	run docker system df -v
	is "$status" 0
}

@test "images: ls, tag, rmi, history" {
	is "$(docker images -q "$image" | wc -l)" 1
	docker tag "$image" cordon-tagged:v1
	is "$(docker images -q cordon-tagged)" "$(docker images -q "$image")"
	run docker rmi cordon-tagged:v1
	is "$status" 0
	has "$output" 'Untagged: cordon-tagged:v1'
	is "$(docker images -q cordon-tagged)" ""
	is "$(docker images -q "$image" | wc -l)" 1
	run docker history "$image"
	is "$status" 0
	run docker rmi nosuch:1
	is "$status" 1
	has "$output" 'No such image: nosuch:1'
}

@test "images: import, save, load, rmi" {
	mkdir -p root/bin
	cp "$(command -v busybox)" root/bin/sh
	tar -C root -c . | docker import -c 'CMD ["/bin/sh","-c","echo imported"]' \
		-c 'ENV K=v' - cordon-small:1
	is "$(docker run --rm cordon-small:1)" imported
	is "$(docker run --rm cordon-small:1 /bin/sh -c 'echo $K')" v
	docker save cordon-small:1 >saved.tar
	docker save -o saved2.tar cordon-small:1
	tar -tf saved.tar | grep -q manifest.json
	docker rmi cordon-small:1
	run docker run --rm --pull never cordon-small:1
	is "$status" 125
	run docker load <saved.tar
	is "$status" 0
	has "$output" 'Loaded image: cordon-small:1'
	is "$(docker run --rm cordon-small:1)" imported
	docker create --name one cordon-small:1
	run docker rmi cordon-small:1
	is "$status" 1
	has "$output" 'conflict: unable to'
	docker rm one
	docker rmi cordon-small:1
	gzip saved2.tar
	run docker load -i saved2.tar.gz
	has "$output" 'Loaded image: cordon-small:1'
	docker rmi cordon-small:1
}

@test "images: a name is whose gave it" {
	on_docker && skip "whoever holds an engine's socket may do all"
	[ "$(id -u)" = 0 ] || skip "another user is needed"
	docker tag "$image" plain:1
	docker export "$(docker create "$image" true)" >root.tar
	chmod 644 root.tar
	chmod 666 "${DOCKER_HOST#unix://}"
	other() { DOCKER_CONFIG=/nowhere setpriv --reuid=61998 --regid=61998 --clear-groups docker "$@"; }
	other run --rm plain:1 true
	run other rmi plain:1
	[ "$status" -ne 0 ]
	has "$output" 'cordon: '
	has "$output" 'belongs to another user'
	run other import - plain:1 <root.tar
	[ "$status" -ne 0 ]
	has "$output" 'belongs to another user'
	other import - theirs:1 <root.tar
	run other tag theirs:1 plain:1
	has "$output" 'belongs to another user'
	other tag plain:1 theirs:2
	other rmi theirs:1 theirs:2
	is "$(docker inspect -f '{{.Id}}' plain:1)" "$(docker inspect -f '{{.Id}}' "$image")"
	chmod 660 "${DOCKER_HOST#unix://}"
	docker rmi plain:1
}

@test "load: what is no archive is refused" {
	head -c 10000 /dev/urandom >junk
	run docker load -i junk
	[ "$status" -ne 0 ]
}

@test "pull: answers, and with an error" {
	run timeout 100 docker pull 127.0.0.1:9/cordon/nosuch:1
	is "$status" 1
	[ -n "$output" ]
}
