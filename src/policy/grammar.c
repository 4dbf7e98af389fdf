/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was left out, and why, stands with each program. The versions in mind
 * are coreutils 9.1, grep 3.8, findutils 4.9, sed 4.9, mawk 1.3.4, gawk 5.2,
 * busybox 1.35, jq 1.6, curl 7.88, python 3.11 and node 18; the tables were
 * not checked by a program against them.
 */

#include "policy/grammar.h"

#include <stddef.h>
#include <string.h>

#include "base/util.h"

#define LIST(...)                                                              \
	(const char *const[])                                                  \
	{                                                                      \
		__VA_ARGS__, NULL                                              \
	}
#define VALUES(...)                                                            \
	(const struct valued[])                                                \
	{                                                                      \
		__VA_ARGS__,                                                   \
		{                                                              \
			.name = NULL                                           \
		}                                                              \
	}
#define TAKES(name_, kind_, n_, lead_)                                         \
	{                                                                      \
		.name = (name_), .kind = (kind_), .n = (n_), .lead = (lead_)   \
	}
/* A flag with one value, two, perhaps one, one that is the first operand. */
#define VALUE(name, kind) TAKES(name, KIND_##kind, 1, false)
#define PAIR(name, kind)  TAKES(name, KIND_##kind, 2, false)
#define MAYBE(name, kind) TAKES(name, KIND_##kind, 0, false)
#define LEADS(name, kind) TAKES(name, KIND_##kind, 1, true)

static const struct grammar grammars[] = {
	{
		.names = LIST("ls", "dir", "vdir"),
		.letters = "aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
		.words = LIST("--all", "--almost-all", "--author", "--escape",
			      "--ignore-backups", "--directory", "--dired",
			      "--classify", "--file-type", "--full-time",
			      "--group-directories-first", "--no-group",
			      "--human-readable", "--si", "--dereference",
			      "--dereference-command-line", "--inode",
			      "--kibibytes", "--numeric-uid-gid", "--literal",
			      "--hide-control-chars", "--quote-name",
			      "--reverse", "--recursive", "--size", "--context",
			      "--zero", "--color", "--help", "--version"),
		.valued = VALUES(
			VALUE("-I", TEXT), VALUE("-T", NUMBER),
			VALUE("-w", NUMBER), VALUE("--block-size", WORD),
			MAYBE("--color", WORD), MAYBE("--classify", WORD),
			VALUE("--format", WORD), VALUE("--hide", TEXT),
			MAYBE("--hyperlink", WORD), VALUE("--ignore", TEXT),
			VALUE("--indicator-style", WORD),
			VALUE("--quoting-style", WORD), VALUE("--sort", WORD),
			VALUE("--tabsize", NUMBER), VALUE("--time", WORD),
			VALUE("--time-style", TEXT), VALUE("--width", NUMBER)),
		.rest = KIND_PATH,
	},
	{
		.names = LIST("cat"),
		.letters = "AbeEnstTuv",
		.words = LIST("--show-all", "--number-nonblank", "--show-ends",
			      "--number", "--squeeze-blank", "--show-tabs",
			      "--show-nonprinting", "--help", "--version"),
		.rest = KIND_PATH,
	},
	{
		.names = LIST("head"),
		.letters = "qvz",
		.words = LIST("--quiet", "--silent", "--verbose",
			      "--zero-terminated", "--help", "--version"),
		.valued = VALUES(VALUE("-n", NUMBER), VALUE("-c", NUMBER),
				 VALUE("--lines", NUMBER),
				 VALUE("--bytes", NUMBER)),
		.digits = true,
		.rest = KIND_PATH,
	},
	{
		.names = LIST("tail"),
		.letters = "fFqvz",
		.words = LIST("--follow", "--retry", "--quiet", "--silent",
			      "--verbose", "--zero-terminated", "--help",
			      "--version"),
		.valued = VALUES(VALUE("-n", NUMBER), VALUE("-c", NUMBER),
				 VALUE("-s", NUMBER), VALUE("--lines", NUMBER),
				 VALUE("--bytes", NUMBER),
				 MAYBE("--follow", WORD),
				 VALUE("--sleep-interval", NUMBER)),
		.digits = true,
		.rest = KIND_PATH,
	},
	{
		/* Not --files0-from: names from a file. */
		.names = LIST("wc"),
		.letters = "cmlLw",
		.words = LIST("--bytes", "--chars", "--lines",
			      "--max-line-length", "--words", "--help",
			      "--version"),
		.rest = KIND_PATH,
	},
	{
		/* Not -f, --file, --exclude-from: patterns from a file. */
		.names = LIST("grep", "egrep", "fgrep"),
		.letters = "EFGPiyvwxcloLqsbHhnTZaIrRUz",
		.words = LIST("--extended-regexp", "--fixed-strings",
			      "--basic-regexp", "--perl-regexp",
			      "--ignore-case", "--no-ignore-case",
			      "--invert-match", "--word-regexp",
			      "--line-regexp", "--count", "--color", "--colour",
			      "--files-without-match", "--files-with-matches",
			      "--only-matching", "--quiet", "--silent",
			      "--no-messages", "--byte-offset",
			      "--with-filename", "--no-filename",
			      "--line-number", "--initial-tab", "--null",
			      "--text", "--recursive",
			      "--dereference-recursive", "--line-buffered",
			      "--binary", "--null-data", "--help", "--version"),
		.valued = VALUES(
			LEADS("-e", TEXT), LEADS("--regexp", TEXT),
			VALUE("-m", NUMBER), VALUE("-A", NUMBER),
			VALUE("-B", NUMBER), VALUE("-C", NUMBER),
			VALUE("-d", WORD), VALUE("-D", WORD),
			VALUE("--max-count", NUMBER),
			VALUE("--after-context", NUMBER),
			VALUE("--before-context", NUMBER),
			VALUE("--context", NUMBER), MAYBE("--color", WORD),
			MAYBE("--colour", WORD), VALUE("--label", TEXT),
			VALUE("--binary-files", WORD), VALUE("--devices", WORD),
			VALUE("--directories", WORD), VALUE("--include", TEXT),
			VALUE("--exclude", TEXT), VALUE("--exclude-dir", TEXT)),
		.digits = true,
		.lead = KIND_TEXT,
		.rest = KIND_PATH,
	},
	{
		/*
		 * Not -exec, -execdir, -ok, -okdir: programs; -delete;
		 * -fprint, -fprint0, -fprintf, -fls: files; -files0-from.
		 */
		.names = LIST("find"),
		.style = STYLE_FIND,
		.words = LIST("-H", "-L", "-P", "-a", "-and", "-o", "-or",
			      "-not", "-d", "-daystart", "-depth", "-empty",
			      "-executable", "-false", "-follow",
			      "-ignore_readdir_race", "-ls", "-mount",
			      "-nogroup", "-noignore_readdir_race", "-noleaf",
			      "-nouser", "-nowarn", "-print", "-print0",
			      "-prune", "-quit", "-readable", "-true", "-warn",
			      "-writable", "-xdev", "-help", "--help",
			      "-version", "--version"),
		.valued = VALUES(
			VALUE("-name", TEXT), VALUE("-iname", TEXT),
			VALUE("-path", TEXT), VALUE("-ipath", TEXT),
			VALUE("-wholename", TEXT), VALUE("-iwholename", TEXT),
			VALUE("-lname", TEXT), VALUE("-ilname", TEXT),
			VALUE("-regex", TEXT), VALUE("-iregex", TEXT),
			VALUE("-regextype", WORD), VALUE("-type", WORD),
			VALUE("-xtype", WORD), VALUE("-fstype", WORD),
			VALUE("-size", NUMBER), VALUE("-mtime", NUMBER),
			VALUE("-atime", NUMBER), VALUE("-ctime", NUMBER),
			VALUE("-mmin", NUMBER), VALUE("-amin", NUMBER),
			VALUE("-cmin", NUMBER), VALUE("-used", NUMBER),
			VALUE("-links", NUMBER), VALUE("-inum", NUMBER),
			VALUE("-uid", NUMBER), VALUE("-gid", NUMBER),
			VALUE("-maxdepth", NUMBER), VALUE("-mindepth", NUMBER),
			VALUE("-user", WORD), VALUE("-group", WORD),
			VALUE("-perm", PERM), VALUE("-newer", PATH),
			VALUE("-anewer", PATH), VALUE("-cnewer", PATH),
			VALUE("-newermt", TEXT), VALUE("-newerat", TEXT),
			VALUE("-newerct", TEXT), VALUE("-newermm", PATH),
			VALUE("-samefile", PATH), VALUE("-printf", TEXT)),
		.rest = KIND_PATH,
	},
	{
		/*
		 * Not -o, --output: a file; --compress-program: a program;
		 * -T, --files0-from, --random-source: other files.
		 */
		.names = LIST("sort"),
		.letters = "bdfghiMnRrVcCmsuz",
		.words = LIST("--ignore-leading-blanks", "--dictionary-order",
			      "--ignore-case", "--general-numeric-sort",
			      "--human-numeric-sort", "--ignore-nonprinting",
			      "--month-sort", "--numeric-sort", "--random-sort",
			      "--reverse", "--version-sort", "--check",
			      "--merge", "--stable", "--unique",
			      "--zero-terminated", "--debug", "--help",
			      "--version"),
		.valued = VALUES(VALUE("-k", WORD), VALUE("-t", TEXT),
				 VALUE("-S", WORD), VALUE("--key", WORD),
				 VALUE("--field-separator", TEXT),
				 VALUE("--buffer-size", WORD),
				 VALUE("--sort", WORD), MAYBE("--check", WORD),
				 VALUE("--batch-size", NUMBER),
				 VALUE("--parallel", NUMBER)),
		.rest = KIND_PATH,
	},
	{
		/* The second operand would be written. */
		.names = LIST("uniq"),
		.letters = "cdDiuz",
		.words = LIST("--count", "--repeated", "--all-repeated",
			      "--group", "--ignore-case", "--unique",
			      "--zero-terminated", "--help", "--version"),
		.valued = VALUES(VALUE("-f", NUMBER), VALUE("-s", NUMBER),
				 VALUE("-w", NUMBER),
				 VALUE("--skip-fields", NUMBER),
				 VALUE("--skip-chars", NUMBER),
				 VALUE("--check-chars", NUMBER),
				 MAYBE("--all-repeated", WORD),
				 MAYBE("--group", WORD)),
		.rest = KIND_PATH,
		.most = 1,
	},
	{
		.names = LIST("cut"),
		.letters = "nsz",
		.words = LIST("--complement", "--only-delimited",
			      "--zero-terminated", "--help", "--version"),
		.valued = VALUES(VALUE("-b", WORD), VALUE("-c", WORD),
				 VALUE("-f", WORD), VALUE("-d", TEXT),
				 VALUE("--bytes", WORD),
				 VALUE("--characters", WORD),
				 VALUE("--fields", WORD),
				 VALUE("--delimiter", TEXT),
				 VALUE("--output-delimiter", TEXT)),
		.rest = KIND_PATH,
	},
	{
		/* Not -f, -E, -i, -l, -W, --exec and all the other long ones:
		   programs from files, libraries, files that are written. */
		.names = LIST("awk", "mawk", "gawk", "nawk", "original-awk"),
		.letters = "",
		.valued = VALUES(VALUE("-F", TEXT), VALUE("-v", ASSIGN)),
		.flags_first = true,
		.lead = KIND_AWK,
		.rest = KIND_INPUT,
	},
	{
		/* Not -i, --in-place: writes; -f, --file: a script. */
		.names = LIST("sed"),
		.letters = "nErsuz",
		.words = LIST("--quiet", "--silent", "--regexp-extended",
			      "--separate", "--unbuffered", "--null-data",
			      "--posix", "--sandbox", "--help", "--version"),
		.valued = VALUES(LEADS("-e", SED), LEADS("--expression", SED),
				 VALUE("-l", NUMBER),
				 VALUE("--line-length", NUMBER)),
		.lead = KIND_SED,
		.rest = KIND_PATH,
	},
	{
		/* Not -f, --from-file, -L: programs from files; --slurpfile,
		   --rawfile: other files; --args, which changes operands. */
		.names = LIST("jq"),
		.style = STYLE_SPLIT,
		.letters = "nrcjasSCMeRh",
		.words = LIST("--null-input", "--raw-output",
			      "--compact-output", "--join-output",
			      "--ascii-output", "--slurp", "--sort-keys",
			      "--color-output", "--monochrome-output",
			      "--exit-status", "--raw-input", "--tab",
			      "--stream", "--seq", "--unbuffered", "--help",
			      "--version"),
		.valued = VALUES(VALUE("--indent", NUMBER), PAIR("--arg", TEXT),
				 PAIR("--argjson", TEXT)),
		.lead = KIND_JQ,
		.rest = KIND_PATH,
	},
	{
		.names = LIST("echo"),
		.style = STYLE_ANY,
		.rest = KIND_ANY,
	},
	{
		.names = LIST("true", "false"),
		.style = STYLE_ANY,
		.rest = KIND_ANY,
	},
	{
		.names = LIST("pwd"),
		.letters = "LP",
		.words = LIST("--logical", "--physical", "--help", "--version"),
		.rest = KIND_NONE,
	},
	{
		/* Not -s, --set: the clock; -f, --file: prints a file's lines
		   in its errors. */
		.names = LIST("date"),
		.letters = "uRI",
		.words = LIST("--utc", "--universal", "--rfc-email",
			      "--iso-8601", "--debug", "--help", "--version"),
		.valued = VALUES(VALUE("-d", TEXT), VALUE("-r", PATH),
				 MAYBE("-I", WORD), VALUE("--date", TEXT),
				 VALUE("--reference", PATH),
				 MAYBE("--iso-8601", WORD),
				 VALUE("--rfc-3339", WORD)),
		.rest = KIND_STAMP,
		.most = 1,
	},
	{
		/* Not -c, -m, -i, "-" and standard input: a script file. */
		.names = LIST("python", "python3"),
		.style = STYLE_SCRIPT,
		.words = LIST("--version", "-V"),
		.rest = KIND_SCRIPT,
	},
	{
		/* Not -e, -p, -r, -i, "-" and standard input. */
		.names = LIST("node", "nodejs"),
		.style = STYLE_SCRIPT,
		.words = LIST("--version", "-v"),
		.rest = KIND_SCRIPT,
	},
	{
		/*
		 * Not -o, -O, -J, -D, -c, --trace, --stderr, -w (%output{}):
		 * files; -K: options from a file; -T, -F, -b, -u, -n,
		 * --data-urlencode, -E: files that are sent; -L, -x,
		 * --resolve, --connect-to, --unix-socket, --doh-url,
		 * --interface, --next, --proto: other places; -k.
		 */
		.names = LIST("curl"),
		.style = STYLE_SPLIT,
		.letters = "sSfiIvGgN46",
		.words = LIST("--silent", "--show-error", "--fail", "--include",
			      "--head", "--verbose", "--get", "--globoff",
			      "--no-buffer", "--ipv4", "--ipv6", "--compressed",
			      "--http1.1", "--http2", "--tlsv1.2", "--tlsv1.3",
			      "--fail-with-body", "--no-progress-meter",
			      "--version"),
		.valued = VALUES(
			VALUE("-X", METHOD), VALUE("--request", METHOD),
			VALUE("-H", HEADER), VALUE("--header", HEADER),
			VALUE("-d", BODY), VALUE("--data", BODY),
			VALUE("--data-ascii", BODY),
			VALUE("--data-binary", BODY), VALUE("--data-raw", TEXT),
			VALUE("--json", BODY), VALUE("-A", WORD),
			VALUE("-m", NUMBER), VALUE("--max-time", NUMBER),
			VALUE("--connect-timeout", NUMBER),
			VALUE("--max-filesize", NUMBER),
			VALUE("--retry", NUMBER),
			VALUE("--retry-delay", NUMBER), VALUE("-r", WORD),
			VALUE("--range", WORD)),
		.rest = KIND_URL,
	},
};

static bool is_in(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

/* python3.11 is a python, gcc-12 a gcc: the name without its version. */
static const char *unversioned(const char *program, char *buf, size_t size)
{
	size_t len = strlen(program);

	while (len > 1 && strchr("0123456789.", program[len - 1]))
		len--;
	len -= len > 1 && program[len] && program[len - 1] == '-';
	if (len >= size)
		return program;
	memcpy(buf, program, len);
	buf[len] = '\0';
	return buf;
}

const struct grammar *grammar_find(const char *program)
{
	char buf[32];
	const char *name = unversioned(program, buf, sizeof(buf));

	for (size_t i = 0; i < ARRAY_SIZE(grammars); i++)
		if (is_in(grammars[i].names, program))
			return &grammars[i];
	/* Only where it means less: flags of another version are not known. */
	for (size_t i = 0; i < ARRAY_SIZE(grammars); i++)
		if (grammars[i].style == STYLE_SCRIPT &&
		    is_in(grammars[i].names, name))
			return &grammars[i];
	return NULL;
}

/*
 * Their plain operands are programs, commands or files full of commands, so
 * a rule that only names them says nothing. Not a wall, a help against rules
 * that are wider than they look: the wall is that nothing else is allowed.
 */
bool grammar_runs_others(const char *program)
{
	char name[32];
	/* clang-format off */
	static const char *const names[] = {
		"ansible",   "ar",                "ash",              "at",
		"bash",      "batch",             "bun",              "busybox",
		"bwrap",     "c++",               "capsh",            "cargo",
		"catchsegv", "cc",                "choom",            "chpst",
		"chroot",    "chrt",              "clang",            "clang++",
		"cmake",     "coproc",            "cpulimit",         "crontab",
		"csh",       "dash",              "dbus-run-session", "dc",
		"deno",      "doas",              "docker",           "eatmydata",
		"ed",        "elvish",            "emacs",            "entr",
		"env",       "erl",               "ex",               "expect",
		"fakeroot",  "faketime",          "find",             "fish",
		"flock",     "g++",               "gcc",              "gdb",
		"gdbserver", "ghci",              "git",              "go",
		"gosu",      "guile",             "iex",              "ionice",
		"ipython",   "java",              "julia",            "just",
		"ksh",       "ld",                "ld.so",            "less",
		"linux32",   "linux64",           "lldb",             "ltrace",
		"lua",       "m4",                "make",             "man",
		"mksh",      "more",              "mvn",              "nc",
		"ncat",      "netcat",            "newgrp",           "nice",
		"ninja",     "node",              "nodejs",           "nohup",
		"npm",       "npx",               "nsenter",          "nu",
		"numactl",   "nvim",              "osascript",        "parallel",
		"perf",      "perl",              "php",              "pip",
		"pip3",      "pkexec",            "pnpm",             "podman",
		"poetry",    "prlimit",           "pwsh",             "pypy",
		"python",    "python3",           "R",                "rake",
		"rbash",     "rlwrap",            "Rscript",          "rsync",
		"ruby",      "run-parts",         "runghc",           "runuser",
		"rustc",     "rview",             "rvim",             "scala",
		"scp",       "screen",            "script",           "setarch",
		"setpriv",   "setsid",            "sftp",             "sg",
		"sh",        "socat",             "sqlite3",          "ssh",
		"ssh-agent", "start-stop-daemon", "stdbuf",           "strace",
		"su",        "su-exec",           "sudo",             "systemd-run",
		"tar",       "taskset",           "tclsh",            "tcsh",
		"time",      "timeout",           "tini",             "tmux",
		"torsocks",  "toybox",            "ts-node",          "unbuffer",
		"unshare",   "uv",                "uvx",              "valgrind",
		"vi",        "view",              "vim",              "vimdiff",
		"watch",     "wine",              "xargs",            "xvfb-run",
		"yarn",      "yash",              "zip",              "zsh",
		NULL,
	};
	/* clang-format on */

	return is_in(names, program) ||
	       is_in(names, unversioned(program, name, sizeof(name)));
}
