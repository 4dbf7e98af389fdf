/* SPDX-License-Identifier: Apache-2.0 */
#include "box/settings.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "box/settings-set.h"
#include "policy/policy.h"

#define PLAIN(kind_, member, min_, max_, stated_)                              \
	.kind = SETTING_##kind_, .at = offsetof(struct cordon_spec, member),   \
	.min = (min_), .max = (max_), .stated = (stated_)
#define TIME(member, min, stated)       PLAIN(TIME, member, min, 0, stated)
#define SIZE(member, min, stated)       PLAIN(SIZE, member, min, 0, stated)
#define COUNT(member, min, max, stated) PLAIN(COUNT, member, min, max, stated)
#define SWITCH(member)                  PLAIN(SWITCH, member, 0, 0, 0)

static const struct setting table[] = {
	{ "image", 0, "NAME", "root file system; 'host' is this machine's /usr",
	  "", .set = set_image },
	{ "entrypoint", 0, "PROGRAM",
	  "instead of the image's; '' for none, again for its arguments", "",
	  .set = set_entrypoint },
	{ "timeout", 0, "TIME", "wall-clock limit (30s)",
	  "max-execution-seconds", .set = set_timeout },
	{ "total-timeout", 0, "TIME", "for all blocks of code together (10m)",
	  "", TIME(total_us, 1000, SPEC_STATED_TOTAL) },
	{ "cpu-time", 0, "TIME", "CPU time limit (none)", "",
	  TIME(cpu_time_us, 1000, 1U << POLICY_CPU_TIME) },
	{ "kill-grace", 0, "TIME", "SIGTERM this long before the kill (0)", "",
	  TIME(grace_us, 0, 0) },
	{ "memory", 'm', "SIZE", "memory, without swap (256m)", "mem-limit",
	  SIZE(memory, 1 << 20, 1U << POLICY_MEMORY) },
	{ "cpus", 0, "N", "CPU quota (0.5)", "", .set = set_cpus },
	{ "cpu-period", 0, "US", "period of the CPU quota (100000)", "",
	  .set = set_cpu_period },
	{ "cpu-quota", 0, "US", "CPU time in each period (50000)", "",
	  COUNT(cpu_quota_us, 1000, 4096000000,
		1U << POLICY_CPUS | SPEC_STATED_QUOTA) },
	{ "cpu-shares", 0, "N",
	  "weight against other boxes, 2 to 262144 (1024)", "",
	  .set = set_cpu_shares },
	{ "cpuset-cpus", 0, "LIST", "only these CPUs, such as 0-2,4", "",
	  .set = set_cpuset },
	{ "memory-reservation", 0, "SIZE", "kept for it when memory is short",
	  "", SIZE(memory_low, 0, 0) },
	{ "oom-score-adj", 0, "N", "who goes first without memory (300)", "",
	  .set = set_oom_score },
	{ "ulimit", 0, "NAME=SOFT[:HARD]",
	  "a limit of each process; it can only be lower than here", "ulimits",
	  .set = set_ulimit },
	{ "pids-limit", 0, "N", "processes and threads (128)", "pids",
	  COUNT(pids, 2, 4194304, 1U << POLICY_PIDS) },
	{ "output-limit", 0, "SIZE",
	  "kept of each stream, first and last half (1m)",
	  "max-output max-output-bytes output",
	  SIZE(output, 0, 1U << POLICY_OUTPUT) },
	{ "hard-output", 0, "SIZE", "kill when a stream has written more", "",
	  SIZE(hard_output, 1, 0) },
	{ "disk", 0, "SIZE", "size of the workspace (64m)", "disk-limit",
	  SIZE(disk, 65536, 1U << POLICY_DISK) },
	{ "files", 0, "N", "open files of each process (1024)", "",
	  COUNT(nofile, 16, 1048576, 1U << POLICY_FILES) },
	{ "file-size", 0, "SIZE", "largest file (1g)", "", SIZE(fsize, 1, 0) },
	{ "network", 0, "none|allowlist",
	  "none: not even what a policy allows; or what is listed", "net",
	  .set = set_network },
	{ "allow-host", 0, "HOST[:PORT,...]",
	  "may be reached (443); *.NAME: what is below it",
	  "allow-domain allow-domains", .set = set_allow_host },
	{ "secret", 0, "NAME@HOST[:PORT]",
	  "a variable that is put in on the way to HOST", "",
	  .set = set_secret },
	{ "read-only", 0, NULL,
	  "root file system (true); =false gives a "
	  "throw-away one",
	  "read-only-root", .set = set_read_only },
	{ "volume", 'v', "SRC:DST[:ro|rw]", "bind mount; ro unless said",
	  "extra-volume volumes extra-volumes", .set = set_volume },
	{ "tmpfs", 0, "DST[:OPTIONS]",
	  "a place in memory: size=64m, mode=0755, ro, noexec", "",
	  .set = set_tmpfs },
	{ "shm-size", 0, "SIZE", "size of /dev/shm (64m)", "",
	  .set = set_shm_size },
	{ "workspace", 0, "DIR",
	  "copied to /workspace; nothing is written "
	  "back",
	  "", .set = set_workspace },
	{ "copy-out", 0, "GLOB=DIR", "files of /workspace to copy out", "",
	  .set = set_copy_out },
	{ "workdir", 'w', "DIR", "working directory (/workspace)", "",
	  .set = set_workdir },
	{ "user", 'u', "UID[:GID]|NAME",
	  "user in the box (65534); also a name of the image", "",
	  .set = set_user },
	{ "writable", 0, "PATH", "a further writable place, thrown away",
	  "writable-path", .set = set_writable },
	{ "env", 'e', "NAME=VALUE", "environment variable", "",
	  .set = set_env },
	{ "env-file", 0, "FILE", "environment variables, one a line", "",
	  .set = set_env_file },
	{ "env-from-host", 0, "NAME",
	  "pass a variable in that the policy lets through", "",
	  .set = set_env_from_host },
	{ "interactive", 'i', NULL, "keep standard input open", "",
	  SWITCH(interactive) },
	{ "tty", 't', NULL, "give it a terminal", "", SWITCH(tty) },
	{ "name", 0, "NAME", "name, also the host name in the box",
	  "container-name", .set = set_name },
	{ "hostname", 0, "NAME", "host name in the box (its name)", "",
	  .set = set_hostname },
	{ "domainname", 0, "NAME", "domain name in the box", "",
	  .set = set_domainname },
	{ "add-host", 0, "NAME:ADDRESS", "a line in /etc/hosts", "extra-hosts",
	  .set = set_add_host },
	{ "label", 0, "KEY=VALUE", "kept with the result", "",
	  .set = set_label },
	{ "isolation", 0, "LEVEL", "'native' is the one in this build", "",
	  .set = set_isolation },
	{ "policy", 0, "FILE",
	  "what decides, a file or a preset; cordon-policy(5)", "",
	  .set = set_policy },
	{ "command", 0, "STRING",
	  "a command line, without a shell: words, quotes, | && || ;", "",
	  .set = set_command_line },
	{ "ledger", 0, "on|off", "keep a record of the run (on)", "",
	  .set = set_ledger },
	{ "program", 0, "NAME", "only such programs exist in the box", "",
	  .set = set_program },
	{ "best-effort", 0, "LAYER",
	  "accept that cgroup, memory, cpu, pids or "
	  "landlock is missing here",
	  "", .set = set_best_effort },
	{ "continue-on-error", 0, NULL, "run further blocks after a failure",
	  "", SWITCH(continue_on_error) },
	/* Without help: names of others, for the library. */
	{ "arg", 0, "ARG", NULL, "", .set = set_arg },
	{ "max-memory-mb", 0, "N", NULL, "", .set = set_memory_mb },
	{ "max-cpu-percent", 0, "N", NULL, "", .set = set_cpu_percent },
	{ "writable-paths", 0, "PATH", NULL, "", .set = set_writable_only },
	{ "allowed-commands", 0, "PROGRAM", NULL, "", .set = set_allowed },
	{ "network-disabled", 0, NULL, NULL, "", .set = set_network_disabled },
	{ "network-enabled", 0, NULL, NULL, "", .set = set_network_enabled },
	{ "security-opt", 0, "OPT", NULL, "", .set = set_security_opt },
	{ "group-add", 0, "GROUP",
	  "a further group of its user, by number or the image's name", "",
	  .set = set_group_add },
	{ "memory-swap", 0, "SIZE", NULL, "memswap-limit",
	  .set = set_memory_swap },
	{ "remove", 0, NULL, NULL, "auto-remove rm", .set = set_remove },
	{ "cap-add", 0, "CAP", NULL,
	  "device devices pid ipc uts userns cgroupns", .set = set_refused },
	{ "privileged", 0, NULL, NULL, "", .set = set_privileged },
	{ "work-dir", 0, "DIR[:ro]", NULL, "", .set = set_work_dir },
	{ "bind-dir", 0, "DIR", NULL, "", .set = set_bind_dir },
	{ "container-work-dir", 0, "DIR", NULL, "", .set = set_container_dir },
	{ "allow-cwd", 0, NULL, NULL, "", SWITCH(allow_cwd) },
	{ "delete-files", 0, NULL, NULL, "delete-tmp-files",
	  .set = set_delete_files },
};

const struct setting *setting_at(size_t i)
{
	return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

int setting_put(const struct setting *setting, struct cordon_spec *s,
		const char *value, struct err *err)
{
	void *to = (char *)s + setting->at;

	s->stated |= setting->stated;
	switch (setting->kind) {
	case SETTING_TIME:
		return put_time(value, setting->min, to, err);
	case SETTING_SIZE:
		return put_size(value, setting->min, to, err);
	case SETTING_COUNT:
		return put_count(value, setting->min, setting->max, to, err);
	case SETTING_SWITCH:
		return put_bool(value, to, err);
	default:
		return setting->set(s, value, err);
	}
}

/* Compares up to `len` characters of b, with '_' the same as '-'. */
static bool same_name(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = a[i] == '_' ? '-' : a[i];

		if (c != b[i])
			return false;
	}
	return a[len] == '\0';
}

const struct setting *setting_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (same_name(name, table[i].name, strlen(table[i].name)))
			return &table[i];
		for (const char *p = table[i].aliases; *p;) {
			size_t len = strcspn(p, " ");

			if (same_name(name, p, len))
				return &table[i];
			p += len + (p[len] == ' ');
		}
	}
	return NULL;
}

const struct setting *setting_find_letter(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (letter && table[i].letter == letter)
			return &table[i];
	return NULL;
}

/*
 * Settings of code executors that are not of a single run: who gives them here
 * is told where they are.
 */
static const struct {
	const char *name;
	const char *where;
} elsewhere[] = {
	{ "idle-timeout",
	  "it is of a box that stays: 'idle_timeout' of a request to the "
	  "daemon, or the label io.cordon.idle-timeout" },
	{ "init-command",
	  "it is of a box that stays: make one in the daemon and run it there "
	  "first (cordon create, cordon exec)" },
	{ "stop-container",
	  "it is of a box that stays: one of the daemon's does until it is "
	  "stopped (cordon create, cordon stop)" },
	{ "keep-background",
	  "it is of a box that stays: in one of the daemon's, what a program "
	  "leaves goes on (cordon exec)" },
	{ "functions",
	  "function modules are not in this build; put the module into the "
	  "workspace" },
	{ "functions-module",
	  "function modules are not in this build; put the module into the "
	  "workspace" },
};

int setting_unknown(const char *name, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
		if (same_name(name, elsewhere[i].name,
			      strlen(elsewhere[i].name)))
			return err_set(err, EOPNOTSUPP, "%s: %s", name,
				       elsewhere[i].where);
	return err_set(err, EINVAL, "there is no setting '%s'", name);
}

const char *setting_said(const struct setting *setting, const char *name)
{
	/* One row for many names, none of which is the others' word. */
	return setting->set == set_refused ? name : setting->name;
}
