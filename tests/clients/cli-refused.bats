#!/usr/bin/env bats
# What a Docker Engine gives to whoever holds its socket, and Cordon to nobody.
# shellcheck disable=SC2154,SC2016,SC2094 # by common and bats; for shells in boxes; only read
load common

# refused FIELD OPTION...: 125, the field is named, and nothing was made.
refused() {
	local field=$1
	shift
	run docker run --name one "$@" "$image" true
	is "$status" 125
	has "$output" 'cordon: '
	has "$output" "$field"
	is_gone one
}

@test "privileges are refused, each by its name" {
	on_docker && skip "a Docker Engine gives them"
	refused Privileged --privileged
	refused CapAdd --cap-add SYS_ADMIN
	refused NetworkMode --network host
	refused PidMode --pid host
	refused IpcMode --ipc host
	refused UTSMode --uts host
	refused UsernsMode --userns host
	refused CgroupnsMode --cgroupns host
	refused Devices --device /dev/null:/dev/x
	refused DeviceCgroupRules --device-cgroup-rule 'c 1:3 rwm'
	refused DeviceRequests --gpus all
	refused SecurityOpt --security-opt seccomp=unconfined
	refused SecurityOpt --security-opt apparmor=unconfined
	refused SecurityOpt --security-opt label=disable
	refused SecurityOpt --security-opt no-new-privileges:false
	refused Sysctls --sysctl net.ipv4.ip_forward=1
	refused CgroupParent --cgroup-parent /x
	refused OomKillDisable --oom-kill-disable
	refused Runtime --runtime runc
}

@test "other containers, ports and drivers are refused" {
	on_docker && skip "a Docker Engine has them"
	docker run -d --name other "$image" sleep 60
	refused VolumesFrom --volumes-from other
	refused Links --link other:x
	refused PortBindings -p 127.0.0.1:0:80
	refused PublishAllPorts -P
	refused NetworkMode --network container:other
	refused PidMode --pid container:other
	refused olume -v named:/data
}

@test "exec --privileged is refused" {
	on_docker && skip "a Docker Engine does it"
	docker run -d --name one "$image" sleep 60
	run docker exec --privileged one true
	[ "$status" -ne 0 ]
	has "$output" Privileged
}

@test "binds: only what exists and may be mounted" {
	on_docker && skip "a Docker Engine mounts all"
	run docker run --rm -v "$PWD/nosuch:/x" "$image" true
	is "$status" 125
	[ ! -e nosuch ]
	local path
	for path in / /etc /proc /sys /dev "${DOCKER_HOST#unix://}"; do
		run docker run --rm -v "$path:/x" "$image" true
		is "$status" 125
	done
}

@test "binds: a link in the directory leads nowhere, none can be planted" {
	on_docker && skip "a Docker Engine lets it be planted"
	mkdir -m 777 share
	echo secret >secret
	run docker run --rm -v "$PWD/share:/share" "$image" sh -c "
		ln -s '$PWD/secret' /share/link; mkfifo /share/fifo
		mknod /share/dev c 1 3; cp /bin/busybox /share/su; chmod 6755 /share/su
		ls -l /share"
	[ ! -L share/link ]
	[ ! -p share/fifo ]
	[ ! -c share/dev ]
	[ ! -e share/su ] || [ ! -u share/su ]
	[ "$(cat secret)" = secret ]
}

@test "a mount is read-only, or it is refused" {
	on_docker && skip "a Docker Engine has volumes"
	refused ReadOnly --mount type=volume,dst=/b,readonly
	mkdir share
	chmod 777 share
	docker run --rm --mount "type=bind,src=$PWD/share,dst=/b,readonly" "$image" \
		sh -c '! touch /b/x'
	run docker run --rm -v "$PWD/share:/b" --tmpfs /b "$image" true
	is "$status" 125
	has "$output" 'Duplicate mount point'
}

@test "what is above what a box has is lowered, shown, and said" {
	on_docker && skip "a Docker Engine has no ceiling"
	run docker run -d --name one --ulimit nofile=90000 --ulimit core=-1 \
		--shm-size 900g --tmpfs /x:size=900g --memory-reservation 900g \
		--cpus 1.5 --cpuset-cpus 0-200 --pids-limit 1 "$image" sleep 60
	is "$status" 0
	has "$output" 'cordon: Ulimits nofile 90000 lowered to policy maximum 1024'
	has "$output" 'cordon: Ulimits core unlimited lowered to policy maximum 0'
	has "$output" 'cordon: ShmSize '
	has "$output" 'cordon: Tmpfs /x size '
	has "$output" 'cordon: MemoryReservation '
	has "$output" 'cordon: NanoCpus 1.5 CPUs lowered to policy maximum 0.5 CPUs'
	has "$output" 'cordon: CpusetCpus 0-200 lowered to policy maximum 0'
	has "$output" 'cordon: PidsLimit 1 raised to 2'
	has "$(docker inspect -f '{{json .HostConfig.Ulimits}}' one)" '"Hard":1024'
	[ "$(docker inspect -f '{{.HostConfig.ShmSize}}' one)" -lt 900000000000 ]
	is "$(docker run --rm --ulimit nofile=90000 "$image" sh -c 'ulimit -n')" 1024
	run docker create --cpuset-cpus 200 "$image" true
	[ "$status" -ne 0 ]
	has "$output" 'none of the CPUs'
}

@test "memory above the ceiling is lowered, and said" {
	on_docker && skip "a Docker Engine has no ceiling"
	run docker run -d --name one --memory 900g "$image" sleep 60
	is "$status" 0
	has "$output" 'WARNING: cordon: '
	has "$output" Memory
	[ "$(docker inspect -f '{{.HostConfig.Memory}}' one)" -lt 900000000000 ]
	[ "$(docker inspect -f '{{.HostConfig.Memory}}' one)" -gt 0 ]
}
