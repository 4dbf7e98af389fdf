/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/steer.h"

#include <string.h>

/*
 * From the manuals of glibc (ld.so(8), iconv_open(3), mallopt(3)), musl, bash,
 * dash, coreutils, gawk, mawk, grep, less, jq, curl, OpenSSL, Git, Python,
 * Node, Perl, Ruby, PHP, Lua, R, Java and Go. A harmless one among them
 * (PYTHONHASHSEED) is worth less than the next one that its authors add.
 */
const char *const steering[] = {
	/* the loader and the C library */
	"LD_*",
	"GLIBC_TUNABLES",
	"GCONV_PATH",
	"GETCONF_DIR",
	"LOCPATH",
	"NLSPATH",
	"HOSTALIASES",
	"RESOLV_HOST_CONF",
	"RES_OPTIONS",
	"MALLOC_*",
	"POSIXLY_CORRECT",
	"TZDIR",
	/* where programs and their settings are found */
	"PATH",
	"HOME",
	"IFS",
	"CDPATH",
	"XDG_*",
	/* shells */
	"BASH_*",
	"BASHOPTS",
	"SHELLOPTS",
	"ENV",
	"PS0",
	"PS1",
	"PS2",
	"PS4",
	"PROMPT_COMMAND",
	"SHELL",
	"ZDOTDIR",
	/* interpreters */
	"PYTHON*",
	"NODE_*",
	"NPM_*",
	"npm_*",
	"PERL*",
	"RUBY*",
	"GEM_*",
	"BUNDLE_*",
	"PHPRC",
	"PHP_*",
	"LUA_*",
	"R_*",
	"RENV_*",
	"JAVA_*",
	"_JAVA_*",
	"JDK_*",
	"CLASSPATH",
	"GOENV",
	"GOFLAGS",
	"GOPATH",
	"GOROOT",
	"RUSTC*",
	"RUSTFLAGS",
	"CARGO_*",
	"DOTNET_*",
	"AWKPATH",
	"AWKLIBPATH",
	"GAWK*",
	"MAWK_*",
	"JQ_LIBRARY_PATH",
	/* programs that are started by others */
	"PAGER",
	"MANPAGER",
	"GIT_*",
	"EDITOR",
	"VISUAL",
	"BROWSER",
	"SSH_*",
	"LESS*",
	"GREP_OPTIONS",
	"TAR_OPTIONS",
	"GZIP",
	"XZ_*",
	"ZSTD_*",
	"RIPGREP_CONFIG_PATH",
	"CC",
	"CXX",
	"GCC_*",
	"COMPILER_PATH",
	"LIBRARY_PATH",
	"CPATH",
	"MAKEFILES",
	"MAKEFLAGS",
	/* the network */
	"CURL_*",
	"NETRC",
	"*_proxy",
	"*_PROXY",
	"SSLKEYLOGFILE",
	"SSL_CERT_*",
	"OPENSSL_*",
	"QLOGDIR",
	NULL,
};

/* One * at either end. */
static bool matches(const char *pattern, const char *name, size_t len)
{
	size_t n = strlen(pattern);

	if (pattern[0] == '*')
		return len >= n - 1 &&
		       memcmp(name + len - (n - 1), pattern + 1, n - 1) == 0;
	if (pattern[n - 1] == '*')
		return len >= n - 1 && memcmp(name, pattern, n - 1) == 0;
	return len == n && memcmp(name, pattern, n) == 0;
}

bool steers(const char *variable)
{
	size_t len = strcspn(variable, "=");

	for (size_t i = 0; steering[i]; i++)
		if (matches(steering[i], variable, len))
			return true;
	return false;
}
