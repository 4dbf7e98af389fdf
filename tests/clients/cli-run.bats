#!/usr/bin/env bats
# docker run and its life cycle, by the docker command.
# shellcheck disable=SC2154,SC2016,SC2094 # by common and bats; for shells in boxes; only read
load common

@test "run --rm: output, streams, nothing left" {
	run --separate-stderr docker run --rm --name one "$image" \
		sh -c 'echo out; echo err >&2'
	is "$status" 0
	is "$output" out
	is "$stderr" err
	is_gone one
	is "$(docker ps -aq)" ""
}

@test "run: the program's own exit code" {
	local code have
	for code in 0 1 2 3 42 63 64 100 123 124 125 126 127 128 129 130 137 \
		143 200 254 255; do
		have=0
		docker run --rm "$image" sh -c "exit $code" || have=$?
		is "$have" "$code"
	done
	is "$(docker ps -aq)" ""
}

@test "run: 125 is a refusal, 126 not executable, 127 not found" {
	run -127 docker run --rm "$image" nosuchprogram
	has "$output" 'not found'
	run docker run --rm "$image" /etc/passwd
	is "$status" 126
	has "$output" 'ermission denied'
	run docker run --rm "$image" /etc
	is "$status" 126
	has "$output" 'is a directory'
	run docker run --rm --memory 1 "$image" true
	is "$status" 125
	run docker run --rm --network nosuchnetwork "$image" true
	is "$status" 125
	is "$(docker ps -aq)" ""
}

@test "run: a program that is missing ends a container that is kept" {
	run -127 docker run --name one "$image" nosuchprogram
	is "$(state one ExitCode)" 127
	is "$(state one Running)" false
}

@test "run: 137 for kill, 143 for TERM" {
	# shellcheck disable=SC2016 # for the inner shell
	run docker run --rm "$image" sh -c 'sh -c "kill -9 \$\$"; exit $?'
	is "$status" 137
	docker run -d --name one "$image" sleep 60
	docker kill one
	is "$(docker wait one)" 137
	# Process 1 without a handler ignores TERM in a Docker Engine; --init
	# gives it Cordon's arrangement.
	docker run -d --init --name two "$image" sleep 60
	docker stop -t 5 two
	is "$(docker wait two)" 143
}

@test "run: out of memory is 137, and inspect says so" {
	run docker run --name one --memory 32m --memory-swap 32m "$image" \
		python -c 'x = bytearray(200 << 20); print(len(x))'
	is "$status" 137
	is "$output" ""
	is "$(state one OOMKilled)" true
}

@test "run: an image that is not there" {
	run docker run --rm --pull never cordon-nosuch:1 true
	is "$status" 125
	has "$output" 'No such image: cordon-nosuch:1'
	# With the pull: no registry answers, or the policy says no.
	run timeout 100 docker run --rm 127.0.0.1:9/cordon/nosuch:1 true
	is "$status" 125
	is "$(docker ps -aq)" ""
}

@test "run -d: id at once, wait gives the code, logs stay" {
	local id
	id=$(docker run -d --name one "$image" sh -c 'echo hello; sleep 0.5; exit 7')
	is "${#id}" 64
	is "$(docker wait one)" 7
	is "$(docker logs one)" hello
	is "$(docker inspect -f '{{.Id}}' one)" "$id"
	is "$(docker inspect -f '{{.Id}}' "${id:0:12}")" "$id"
	docker rm one
	is_gone one
}

@test "run -d --rm: wait gives the code, then it is gone" {
	local id
	id=$(docker run -d --rm "$image" sh -c 'sleep 1; exit 5')
	is "$(docker wait "$id")" 5
	until_true 5 is_gone "$id"
}

@test "run -it: a terminal" {
	run with_pty docker run --rm -it "$image" sh -c \
		'test -t 0 && test -t 1 && test -t 2 && echo all three' < <(sleep 2)
	is "$status" 0
	is "$output" 'all three'
}

@test "run -it: what is typed arrives, the code comes back" {
	run with_pty docker run --rm -it "$image" sh -c \
		'read -r line; echo "got $line"; exit 9' < <(sleep 1; echo hello; sleep 1)
	is "$status" 9
	has "$output" 'got hello'
}

@test "run -it: the size of the terminal, and a change of it" {
	run with_pty sh -c "stty rows 33 cols 77; docker run --rm -it $image sh -c 'sleep 1; stty size'" </dev/null
	is "$status" 0
	has "$output" '33 77'
}

@test "run -t: only a terminal for output, streams merged" {
	run --separate-stderr docker run --rm -t "$image" sh -c \
		'tty; echo e >&2'
	is "$status" 0
	is "$stderr" ""
	has "$output" /dev/
	has "$output" e
}

@test "run -it: the detach keys leave it running" {
	run with_pty docker run --name one -it "$image" sh -c \
		'sleep 60' < <(sleep 1; printf '\020\021'; sleep 1)
	is "$status" 0
	is "$(state one Running)" true
}

@test "run -i: 100 MB through stdin and back, every byte" {
	local want have
	want=$(head -c 100000000 /dev/zero | sha256sum)
	have=$(head -c 100000000 /dev/zero |
		docker run --rm -i "$image" cat | sha256sum)
	is "$have" "$want"
	# and bytes that are no text
	head -c 3000000 /dev/urandom >data
	docker run --rm -i "$image" cat <data | cmp - data
}

@test "run -i: the end of stdin is seen" {
	run docker run --rm -i "$image" wc -c < <(printf 12345)
	is "$status" 0
	is "$output" 5
	run docker run --rm -i "$image" wc -c </dev/null
	is "$output" 0
}

@test "run without -i: stdin is empty" {
	run docker run --rm "$image" sh -c 'cat; echo end' < <(echo hello)
	is "$output" end
}

@test "run -i: a program that ends early, while stdin goes on" {
	run timeout 20 docker run --rm -i "$image" sh -c 'head -c 3; exit 4' \
		< <(echo abcdef; sleep 2)
	is "$status" 4
	is "$output" abc
}

@test "run: env, workdir, hostname, entrypoint, label" {
	export FROM_HERE=here
	run docker run --rm -e A=1 -e FROM_HERE -w /tmp/made/dir -h myhost \
		"$image" sh -c 'echo $A $FROM_HERE; pwd; hostname'
	is "$output" $'1 here\n/tmp/made/dir\nmyhost'
	is "$(docker run --rm --entrypoint echo "$image" a b)" 'a b'
	docker run -d --name one --label k=v "$image" sleep 60
	is "$(docker ps -q --filter label=k=v | wc -l)" 1
	is "$(docker ps -q --filter label=k=w | wc -l)" 0
	is "$(docker inspect -f '{{.Config.Labels.k}}' one)" v
	is "$(docker inspect -f '{{.Config.Hostname}}' one)" "$(docker exec one hostname)"
}

@test "run: nothing of this process' environment arrives" {
	export SECRET_OF_HOST=x
	run docker run --rm "$image" env
	is "$status" 0
	lacks "$output" SECRET_OF_HOST
	lacks "$output" "$BATS_TEST_TMPDIR"
}

@test "run: limits are those asked for" {
	docker run -d --name one --memory 64m --cpus 0.25 --pids-limit 20 \
		--ulimit nofile=100:100 --shm-size 8m "$image" sleep 60
	is "$(docker inspect -f '{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}} {{.HostConfig.PidsLimit}}' one)" \
		'67108864 250000000 20'
	is "$(docker exec one sh -c 'ulimit -n')" 100
	is "$(docker exec one df -m /dev/shm | awk 'END { print $2 }')" 8
	# more than 20 processes cannot be
	run docker exec one sh -c \
		'for i in $(seq 40); do sleep 5 & done; echo started'
	lacks "$output" started
}

@test "run: read-only root, tmpfs" {
	run docker run --rm --read-only --tmpfs /scratch:size=1m,mode=1777 \
		"$image" sh -c 'echo x >/scratch/f && cat /scratch/f
		echo y >/usr/f || echo refused
		head -c 2000000 /dev/zero >/scratch/g || echo full'
	has "$output" x
	has "$output" refused
	has "$output" full
}

@test "run: user by number and by name" {
	is "$(docker run --rm -u 1234:1235 "$image" sh -c 'id -u; id -g')" $'1234\n1235'
	is "$(docker run --rm -u nobody "$image" id -u)" 65534
	is "$(docker run --rm -u sandbox "$image" id -u)" 1000
	run docker run --rm -u nosuchuser "$image" true
	is "$status" 125
}

@test "run: root is the policy's user, whatever the image's is" {
	on_docker && skip "a Docker Engine gives it"
	docker export "$(docker create "$image" true)" >root.tar
	docker import -c 'USER 1000' root.tar with-user >/dev/null
	is "$(docker run --rm with-user id -u)" 1000
	run docker run --rm -u root with-user id -u
	has "$output" 'replaced by the policy'
	is "${lines[-1]}" 65534
	run docker run --rm -u 0 host id -u
	has "$output" 'replaced by the policy'
	is "${lines[-1]}" 65534
	docker ps -aq | xargs docker rm -f >/dev/null
	docker rmi with-user >/dev/null
}

@test "run: an argument that is too long is called so" {
	on_docker && skip "a Docker Engine fails at the start"
	run curl -s --unix-socket "${DOCKER_HOST#unix://}" -H 'Content-Type: application/json' \
		-d "@$(python3 -c 'import json; open("body","w").write(json.dumps(
			{"Image": "host", "Cmd": ["echo", "x" * 3000000]})); print("body")')" \
		http://x/containers/create
	has "$output" 'longer than 131071 bytes'
}

@test "wait: one that was removed is known by its id alone" {
	docker run --name one "$image" sh -c 'exit 3' || :
	local id
	id=$(docker inspect -f '{{.Id}}' one)
	docker rm one
	run curl -s -X POST --unix-socket "${DOCKER_HOST#unix://}" "http://x/containers/one/wait?condition=removed"
	has "$output" 'No such container'
	on_docker && return
	run curl -s -X POST --unix-socket "${DOCKER_HOST#unix://}" "http://x/containers/$id/wait?condition=removed"
	has "$output" '"StatusCode":3'
}

@test "a name may come with its slash" {
	docker create --name one "$image" true
	run curl -s --path-as-is --unix-socket "${DOCKER_HOST#unix://}" http://x/containers//one/json
	has "$output" '"Name":"/one"'
	run curl -s --path-as-is --unix-socket "${DOCKER_HOST#unix://}" http://x/containers///one/json
	lacks "$output" '"Name":"/one"'
}

@test "run: a bind, read-write and read-only" {
	mkdir -m 777 share
	echo from host >share/in
	run docker run --rm -v "$PWD/share:/share" "$image" sh -c \
		'cat /share/in; echo from box >/share/out'
	is "$status" 0
	is "$output" 'from host'
	is "$(cat share/out)" 'from box'
	run docker run --rm -v "$PWD/share:/share:ro" "$image" sh -c \
		'cat /share/in; echo x >/share/out2'
	has "$output" 'from host'
	[ ! -e share/out2 ]
	[ "$status" -ne 0 ]
	run docker run --rm --mount \
		"type=bind,source=$PWD/share,target=/share,readonly" "$image" cat /share/in
	is "$output" 'from host'
}

@test "run: --add-host" {
	run docker run --rm --add-host name.test:127.0.0.9 "$image" \
		sh -c 'grep name.test /etc/hosts'
	has "$output" 127.0.0.9
}

@test "create, start -a, start, restart" {
	docker create --name one -i "$image" sh -c 'echo run; exit 3' >/dev/null
	is "$(state one Status)" created
	run docker start -a one
	is "$status" 3
	is "$output" run
	run docker start one
	is "$status" 0
	is "$(docker wait one)" 3
	is "$(docker logs one)" $'run\nrun'
	docker create --name two "$image" sleep 60
	docker start two
	local before
	before=$(docker inspect -f '{{.Id}} {{.State.StartedAt}}' two)
	docker restart -t 1 two
	is "$(state two Running)" true
	[ "$before" != "$(docker inspect -f '{{.Id}} {{.State.StartedAt}}' two)" ]
}

@test "start of a running one, stop of a stopped one: no error" {
	docker run -d --name one "$image" sleep 60
	docker start one
	docker stop -t 0 one
	docker stop -t 0 one
}

@test "attach: output, exit code" {
	docker run -d --name one "$image" sh -c \
		'sleep 1; for i in 1 2 3; do echo $i; done; exit 6'
	run docker attach --no-stdin one
	is "$status" 6
	is "$output" $'1\n2\n3'
}

@test "attach: stdin" {
	docker run -di --name one "$image" sh -c 'read -r x; echo "got $x"; exit 2'
	run docker attach one < <(sleep 0.5; echo word; sleep 1)
	is "$status" 2
	is "$output" 'got word'
}

@test "stop: a program that handles TERM ends by itself" {
	docker run -d --name one "$image" sh -c \
		'trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.1; done'
	until_true 5 sh -c 'docker logs one | grep -q ready'
	docker stop -t 5 one
	is "$(state one ExitCode)" 0
	has "$(docker logs one)" bye
}

@test "stop: one that ignores TERM is killed" {
	docker run -d --name one "$image" sh -c \
		'trap "" TERM; while :; do sleep 0.1; done'
	SECONDS=0
	docker stop -t 1 one
	[ "$SECONDS" -lt 6 ]
	is "$(state one ExitCode)" 137
}

@test "stop: a bare shell costs nothing (10 s with a Docker Engine)" {
	on_docker && skip "a Docker Engine waits for 10 s here"
	docker run -dt --name one "$image" /bin/sh
	SECONDS=0
	docker stop one
	[ "$SECONDS" -lt 3 ]
	is "$(state one Running)" false
}

@test "kill: a signal by name and by number" {
	docker run -d --name one "$image" sh -c \
		'trap "exit 31" USR1; echo ready; while :; do sleep 0.1; done'
	until_true 5 sh -c 'docker logs one | grep -q ready'
	docker kill -s USR1 one
	is "$(docker wait one)" 31
	run docker kill one
	is "$status" 1
	has "$output" 'is not running'
	docker run -d --name two "$image" sleep 60
	docker kill -s 9 two
	is "$(docker wait two)" 137
}

@test "kill -9: nothing of it lives on" {
	mkdir -m 777 share
	docker run -d --name one -v "$PWD/share:/share" "$image" sh -c \
		'setsid sh -c "while :; do date >/share/tick; sleep 0.05; done" & sleep 60'
	until_true 5 test -s share/tick
	docker kill one
	is "$(docker wait one)" 137
	rm share/tick
	sleep 0.5
	[ ! -e share/tick ]
}

@test "rm: refused while it runs, -f removes, the name is free at once" {
	docker run -d --name one "$image" sleep 60
	run docker rm one
	is "$status" 1
	has "$output" 'container is running' ||
		has "$output" 'running container'
	for _ in 1 2 3; do
		docker rm -f one
		docker run -d --name one "$image" sleep 60
	done
}

@test "a name is given once; rename" {
	docker create --name one "$image" true
	run docker create --name one "$image" true
	is "$status" 1
	has "$output" 'The container name "/one" is already in use by container'
	docker rename one other
	docker create --name one "$image" true
	is "$(docker inspect -f '{{.Name}}' other)" /other
	run docker rename one other
	is "$status" 1
	run docker create --name 'bad name' "$image" true
	is "$status" 1
}

@test "pause and unpause" {
	docker run -d --name one "$image" sh -c \
		'while :; do echo x; sleep 0.05; done'
	sleep 0.5
	docker pause one
	is "$(state one Status)" paused
	local before
	before=$(docker logs one | wc -l)
	sleep 0.5
	is "$(docker logs one | wc -l)" "$before"
	docker unpause one
	is "$(state one Status)" running
	sleep 0.5
	[ "$(docker logs one | wc -l)" -gt "$before" ]
}

@test "wait: several, and one that ended" {
	docker run -d --name one "$image" sh -c 'sleep 0.3; exit 1'
	docker run -d --name two "$image" sh -c 'exit 2'
	is "$(docker wait one two)" $'1\n2'
	is "$(docker wait two)" 2
	run docker wait nosuch
	is "$status" 1
	has "$output" 'No such container: nosuch'
}

@test "container prune" {
	docker run --name one "$image" true
	docker run -d --name two "$image" sleep 60
	docker container prune -f
	is_gone one
	is "$(state two Running)" true
}

@test "run: an image of Debian packages, as root and as an ordinary user" {
	[ -n "${CLIENTS_DEBIAN:-}" ] || skip "mmdebstrap's image cannot be had"
	run -0 docker run --rm "$CLIENTS_DEBIAN" sh -c '. /etc/os-release; echo "$ID"'
	is "$output" debian
	run -0 docker run --rm --user games "$CLIENTS_DEBIAN" sh -c 'echo $(id -u):$(id -g)'
	is "$output" 5:60
	run -0 docker run --rm --user 0 "$CLIENTS_DEBIAN" python3 -c \
		'import os; print(os.getuid())'
	# Root is not given by the policy of the tests' daemon, and that is said.
	on_docker && is "$output" 0 || { has "$output" 65534 && has "$output" allow_root_inside; }
	run -0 docker run --rm "$CLIENTS_DEBIAN" sh -c \
		'echo x >/usr/new && rm /usr/bin/tac && ls /usr/new /usr/bin/tac 2>/dev/null; :'
	is "$output" /usr/new
	run -0 docker run --rm "$CLIENTS_DEBIAN" sh -c 'ls /usr/bin/tac'
}

@test "run: an anonymous volume can be written, and has what the image has there" {
	run docker run --name one --read-only -v /home -v /new/deep "$image" sh -c \
		'ls /home; touch /home/x /new/deep/x && ls /home/x /new/deep; touch /usr/no'
	[ "$status" -ne 0 ]
	has "$output" sandbox
	has "$output" /home/x
	has "$output" "Read-only file system"
	is "$(docker inspect -f '{{range .Mounts}}{{.Type}} {{.Destination}} {{.RW}} {{end}}' one | tr ' ' '\n' | sort | tr '\n' ' ')" \
		" /home /new/deep true true volume volume "
	docker start one
	docker wait one >/dev/null
	is "$(docker logs one 2>/dev/null | grep -cx x)" 3
	# Gone with the container; another one has the image's.
	docker rm -v one
	is "$(docker run --rm --read-only -v /home "$image" ls /home)" sandbox
}

@test "run: the volumes that an image has of itself" {
	docker import -c 'VOLUME /home' -c 'ENV PATH=/usr/bin:/bin' -c 'CMD ["sh"]' \
		"$CLIENTS_TMP/../image.tar" with-volume >/dev/null
	is "$(docker image inspect -f '{{json .Config.Volumes}}' with-volume)" '{"/home":{}}'
	is "$(docker run --rm --read-only with-volume sh -c 'touch /home/x && ls /home')" "sandbox
x"
	run docker run --rm --read-only with-volume touch /etc/x
	is "$status" 1
	# A bind in its place is used instead.
	mkdir bound
	chmod 777 bound
	is "$(docker run --rm --read-only -v "$PWD/bound:/home" with-volume sh -c 'touch /home/x && ls /home')" x
	[ -e bound/x ]
	docker rmi with-volume >/dev/null
}

@test "host: what is written to its root stays until it is removed" {
	[ "$CLIENTS_SERVER" = cordon ] || skip 'an image of Cordon alone'
	docker run --name one host sh -c 'echo m >>/mark; echo u >/usr/added; cat /mark'
	is "$(docker cp one:/mark - | tar -xO)" m
	echo given >given
	docker cp given one:/given
	is "$(docker start -a one)" "$(printf 'm\nm')"
	docker restart one
	docker wait one
	is "$(docker cp one:/mark - | tar -xO)" "$(printf 'm\nm\nm')"
	is "$(docker cp one:/given - | tar -xO)" given
	is "$(docker diff one | sort)" "$(printf 'A /given\nA /mark\nA /usr/added\nC /usr')"
	docker export one >all.tar
	tar -tf all.tar | grep -qx mark
	lacks "$(tar -tf all.tar)" layer
	docker rm one
	docker run --name one host sh -c 'ls -A /'
	lacks "$(docker logs one)" mark
	lacks "$(docker logs one)" .
}

@test "host: the working directory is made, also in a read-only root" {
	[ "$CLIENTS_SERVER" = cordon ] || skip 'an image of Cordon alone'
	is "$(docker run --rm -w /new/dir --read-only host pwd)" /new/dir
	is "$(docker run --rm -w /new/dir host pwd)" /new/dir
}

@test "cp: what cannot be read is an error; times are kept; nothing half" {
	docker run -d --name one "$image" sleep 60
	docker exec one sh -c 'echo s >/tmp/no; chmod 0 /tmp/no; mkdir -p /tmp/full/x'
	if [ "$CLIENTS_SERVER" = cordon ]; then
		run docker cp one:/tmp/no -
		is "$status" 1
		has "$output" "read '/tmp/no': not permitted"
		run docker cp one:/dev/null -
		is "$status" 1
	fi
	mkdir -p dir/sub
	echo x >dir/sub/file
	touch -d 2001-01-01 dir/sub
	touch -d 2002-01-01 dir
	docker cp dir one:/tmp/
	is "$(docker exec one stat -c %Y /tmp/dir /tmp/dir/sub)" \
		"$(stat -c %Y dir dir/sub)"
}
