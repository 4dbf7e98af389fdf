/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/never.h"

#include <string.h>

const struct never_path never_paths[] = {
	{ "/", false, false, "the host's root" },
	{ "/proc", true, false, "the kernel's view of the host" },
	{ "/sys", true, false, "the kernel's view of the host" },
	{ "/dev", true, false, "devices" },
	{ "/run", true, true, "sockets of the host's services" },
	{ "/var/run", true, true, "sockets of the host's services" },
	{ "/etc", true, true, "the host's configuration" },
	{ "/boot", true, true, "the host's kernel" },
	{ "/var", false, true, "state of the host" },
	{ "/var/lib", true, true, "state of the host" },
	{ "/var/log", true, true, "the host's logs" },
	{ "/var/spool", true, true, "the host's queues" },
	{ "/var/backups", true, true, "the host's backups" },
	{ "/root", false, true, "a home directory" },
	{ "/home", false, true, "home directories" },
	{ NULL, false, false, NULL },
};

const char *const never_credentials[] = {
	".ssh",
	".aws",
	".azure",
	".config/gcloud",
	".config/gh",
	".config/hub",
	".config/op",
	".config/rclone",
	".config/sops",
	".config/containers/auth.json",
	".kube",
	".docker",
	".gnupg",
	".netrc",
	".git-credentials",
	".password-store",
	".local/share/keyrings",
	".mozilla",
	".config/google-chrome",
	".config/chromium",
	".pgpass",
	".my.cnf",
	".pypirc",
	".cargo/credentials",
	".cargo/credentials.toml",
	".gem/credentials",
	".terraform.d/credentials.tfrc.json",
	".vault-token",
	".claude/.credentials.json",
	".codex/auth.json",
	NULL,
};

const char *const never_made[] = {
	"cordon.yaml", ".git",         ".git/config", ".git/hooks",
	".gitconfig",  ".gitmodules",  ".bashrc",     ".bash_profile",
	".bash_login", ".bash_logout", ".profile",    ".zshrc",
	".zshenv",     ".zprofile",    ".zlogin",     ".envrc",
	".vscode",     ".idea",        ".claude",     ".codex",
	".cursor",     ".mcp.json",    ".ripgreprc",  NULL,
};

const char *const never_addresses[] = {
	"169.254.169.254", "169.254.170.2", "169.254.170.23",
	"fd00:ec2::254",   "fd20:ce::254",  "100.100.100.200",
	"168.63.129.16",   "192.0.0.192",   NULL,
};

const char *const never_words[] = {
	"mounting a unix socket, a device or a pipe",
	"mounting Cordon's own state, or the policy file itself",
	"writing the policy file where it lies in a mounted directory",
	"mounting a directory that holds Cordon's state",
	"mounting a home directory (unless mount_roots names it)",
	"a host uid of 0",
	"any capability",
	"a device",
	NULL,
};

/* Whether `name` stands in the path as whole parts. */
static bool is_in(const char *path, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = path; (p = strstr(p, name)); p++)
		if (p > path && p[-1] == '/' &&
		    (p[len] == '/' || p[len] == '\0'))
			return true;
	return false;
}

const char *never_credential_in(const char *path)
{
	for (size_t i = 0; never_credentials[i]; i++)
		if (is_in(path, never_credentials[i]))
			return never_credentials[i];
	return NULL;
}

const char *never_made_at(const char *path)
{
	size_t len = strlen(path);

	if (is_in(path, ".git"))
		return ".git";
	for (size_t i = 0; never_made[i]; i++) {
		size_t n = strlen(never_made[i]);

		if (len > n && path[len - n - 1] == '/' &&
		    strcmp(path + len - n, never_made[i]) == 0)
			return never_made[i];
	}
	return NULL;
}

const char *never_made_in(const char *relative)
{
	for (size_t i = 0; never_made[i]; i++) {
		size_t n = strlen(never_made[i]);

		for (const char *p = relative; (p = strstr(p, never_made[i]));
		     p++)
			if ((p == relative || p[-1] == '/') &&
			    (p[n] == '/' || p[n] == '\0'))
				return never_made[i];
	}
	return NULL;
}
