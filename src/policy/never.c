/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/never.h"

#include <string.h>

#include "policy/values.h"

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
	"169.254.169.254",
	"169.254.170.2",
	"169.254.170.23",
	"fd00:ec2::254",
	"fd20:ce::254",
	"100.100.100.200",
	"168.63.129.16",
	"192.0.0.192",
	"fd00:ec2::23",
	"169.254.42.42",
	"fd00:42::42",
	"169.254.0.23",
	NULL,
};

const char *const never_hosts[] = {
	"metadata",
	"metadata.google.internal",
	"metadata.goog",
	"metadata.azure.internal",
	"instance-data",
	"instance-data.ec2.internal",
	NULL,
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

/* Whether these bytes of an address are the four, each bit turned as said. */
static bool has_at(const unsigned char a[16], const unsigned char at[4],
		   unsigned char turn, const unsigned char four[4])
{
	for (size_t i = 0; i < 4; i++)
		if ((a[at[i]] ^ turn) != four[i])
			return false;
	return true;
}

/*
 * Where translators put IPv4 behind a prefix of 96 to 32 bits (RFC 6052 2.2),
 * which also holds for mapped, compatible, ISATAP and Teredo's server; and
 * 6to4. Any prefix counts: a site may have a translator of its own, and these
 * few addresses do not come up by chance.
 */
static bool wraps(const unsigned char a[16], const unsigned char four[4])
{
	static const unsigned char places[][4] = {
		{ 12, 13, 14, 15 }, { 9, 10, 11, 12 }, { 7, 9, 10, 11 },
		{ 6, 7, 9, 10 },    { 5, 6, 7, 9 },    { 4, 5, 6, 7 },
		{ 2, 3, 4, 5 },
	};
	static const unsigned char teredo[4] = { 0x20, 0x01, 0x00, 0x00 };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (has_at(a, places[i], 0, four))
			return true;
	return memcmp(a, teredo, sizeof(teredo)) == 0 &&
	       has_at(a, places[0], 0xff, four);
}

bool never_reached(const unsigned char a[16])
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	unsigned char never[16];

	for (size_t i = 0; never_addresses[i]; i++) {
		if (value_address(never_addresses[i], never) < 0)
			continue;
		if (memcmp(a, never, sizeof(never)) == 0 ||
		    (memcmp(never, mapped, sizeof(mapped)) == 0 &&
		     wraps(a, never + 12)))
			return true;
	}
	return false;
}

bool never_resolved(const char *name)
{
	for (size_t i = 0; never_hosts[i]; i++)
		if (strcmp(name, never_hosts[i]) == 0)
			return true;
	return false;
}
