/* SPDX-License-Identifier: Apache-2.0 */

/* Rules and lines: who wins, what fits, what is never allowed. */

#include "tests/tap.h"

#include "base/util.h"
#include "policy/commands.h"
#include "policy/program-text.h"

static struct shell_line line;
static struct judgement last;

#define LIST(...)                                                              \
	(const char *const[])                                                  \
	{                                                                      \
		__VA_ARGS__, NULL                                              \
	}
#define RULES(...)                                                             \
	(const struct command_rule[])                                          \
	{                                                                      \
		__VA_ARGS__                                                    \
	}

static const char *judged(const struct command_rules *rules, const char *text)
{
	commands_judge_text(rules, text, strlen(text), &line, &last);
	return decision_name(last.decision);
}

/* Rules with one entry to allow. */
static const char *by(const struct command_rule *rule, const char *text)
{
	struct command_rules rules = {
		.allow = rule,
		.n_allow = 1,
		.hosts = LIST("api.example.org", "http://web.example.org",
			      "https://up.example.org:8443", "*.sub.example"),
	};

	return judged(&rules, text);
}

static void each(const struct command_rule *rule, const char *want,
		 const char *const *texts)
{
	for (; *texts; texts++) {
		if (strcmp(by(rule, *texts), want) == 0)
			continue;
		printf("# not %s: %s (%s)\n", want, *texts, last.why);
		CHECK(!"the line above");
	}
}

TEST(commands_nothing_allows)
{
	struct command_rules none = { 0 };

	CHECK_STR(judged(&none, "ls"), "deny");
	CHECK_STR(judged(NULL, "ls"), "deny");
	CHECK_STR(last.why, "no rules");
	CHECK(commands_preset("other") == NULL);
	none.ask_otherwise = true;
	CHECK_STR(judged(&none, "ls"), "ask");
	CHECK_STR(judged(&none, "ls >x"), "ask");
	CHECK_INT((long long)line.n_commands, 0);
}

TEST(commands_who_wins)
{
	struct command_rules r = {
		.allow = RULES({ .name = "ls" }, { .name = "curl" },
			       { .name = "cat" }, { .name = "/opt/x/tool" },
			       { .name = "git",
				 .sub = LIST("log", "push"),
				 .flags = LIST("--force", "-n") }),
		.n_allow = 5,
		.ask = RULES({ .name = "git", .sub = LIST("push") },
			     { .name = "cat",
			       .flags = LIST("-n", "--number") }),
		.n_ask = 2,
		.deny = RULES({ .name = "curl", .file = "p.yaml", .line = 7 },
			      { .name = "tool", .flags = LIST("--bad") }),
		.n_deny = 2,
	};

	CHECK_STR(judged(&r, "ls"), "allow");
	CHECK_STR(judged(&r, "ls; curl"), "deny");
	CHECK_STR(last.why, "'curl': a rule denies it (p.yaml:7)");
	CHECK_INT((long long)last.command, 1);
	CHECK(last.rule == r.deny);
	CHECK_STR(judged(&r, "git log"), "allow");
	CHECK_STR(judged(&r, "git push"), "ask");
	CHECK_STR(judged(&r, "git log push"), "ask");
	/* Understood by the rule that allows; the other still asks. */
	CHECK_STR(judged(&r, "git push --force"), "ask");
	CHECK_STR(judged(&r, "git push --receive-pack=x"), "deny");
	CHECK_STR(judged(&r, "git push; ls"), "ask");
	CHECK_INT((long long)last.command, 0);
	CHECK_STR(judged(&r, "git push | rm x"), "deny");
	CHECK_INT((long long)last.command, 1);
	CHECK_STR(judged(&r, "cat -An f"), "ask");
	CHECK_STR(judged(&r, "cat --num f"), "deny");
	CHECK_STR(judged(&r, "cat --number f"), "ask");
	/* By its path only, and denied by its name. */
	CHECK_STR(judged(&r, "/opt/x/tool a"), "allow");
	CHECK_STR(judged(&r, "tool a"), "deny");
	CHECK_STR(judged(&r, "/opt/x/../x/tool a"), "deny");
	CHECK_STR(judged(&r, "/opt/x/tool --bad=1"), "deny");
	CHECK_HAS(last.why, "a rule denies it");
	r.ask_otherwise = true;
	CHECK_STR(judged(&r, "rm x"), "ask");
	CHECK_STR(judged(&r, "ls --unknown"), "ask");
	CHECK_STR(judged(&r, "rm x; curl"), "deny");
}

TEST(commands_own_flags)
{
	const struct command_rule grep = {
		.name = "grep",
		.flags = LIST("-n", "-i", "-r", "-E", "-A"),
		.operands = OPERANDS_PATHS,
	};
	const struct command_rule tool = {
		.name = "tool",
		.flags = LIST("-a", "-b", "--out=", "--mode=fast", "-c="),
	};
	const struct command_rule bare = { .name = "tool" };
	const struct command_rule no_flags = { .name = "ls",
					       .flags = LIST(NULL) };
	const struct command_rule no_sub = { .name = "x", .sub = LIST(NULL) };

	each(&grep, "allow",
	     LIST("grep x f", "grep -rn x f g", "grep -nA3 x f",
		  "grep -A 3 x f", "grep 'https://x' f"));
	each(&grep, "deny",
	     LIST("grep -v x f", "grep -rv x f", "grep --recursive x f",
		  "grep x -", "grep x https://y", "grep -e x f",
		  "grep -A -f x f"));
	each(&tool, "allow",
	     LIST("tool -a x", "tool -a -b", "tool --out=f", "tool --out f",
		  "tool --mode=fast", "tool -c x"));
	each(&tool, "deny",
	     LIST("tool -ab", "tool -cx", "tool --mode=slow",
		  "tool --mode fast", "tool --out -a", "tool -a=x", "tool --",
		  "tool -- -x", "tool --out", "tool +x", "tool a::b",
		  "tool ''"));
	each(&bare, "allow", LIST("tool", "tool a b/c d=e"));
	each(&bare, "deny",
	     LIST("tool -a", "tool --", "tool -", "tool +a", "tool 'a\nb'",
		  "tool http://x"));
	each(&no_flags, "deny", LIST("ls -l", "ls --all"));
	each(&no_flags, "allow", LIST("ls", "ls x"));
	each(&no_sub, "deny", LIST("x", "x a", "x ''"));
}

/* A rule that names a program whose trade is to run others. */
TEST(commands_that_run_others)
{
	const struct command_rule env = { .name = "env" };
	const struct command_rule tar = { .name = "/bin/tar",
					  .flags = LIST("-t") };
	const struct command_rule git = { .name = "git" };
	const struct command_rule meant = { .name = "env",
					    .operands = OPERANDS_ANY };
	const struct command_rule script = { .name = "bash",
					     .script = "/workspace/bin" };

	each(&env, "deny", LIST("env", "env ls", "env A=b ls"));
	each(&tar, "deny", LIST("/bin/tar cfI x sh", "/bin/tar -t x"));
	each(&git, "deny", LIST("git status", "git"));
	each(&meant, "allow", LIST("env ls"));
	each(&meant, "deny", LIST("env -S ls"));
	each(&script, "allow",
	     LIST("bash bin/x", "bash /workspace/bin/a -c b"));
	each(&script, "deny",
	     LIST("bash", "bash -c x", "bash x", "bash bin", "bash bin/../x",
		  "bash bin/..", "bash /workspace/binx/a"));
}

TEST(commands_sub)
{
	const struct command_rule git = { .name = "git",
					  .sub = LIST("status", "fetch") };

	each(&git, "allow", LIST("git status", "git fetch origin"));
	each(&git, "deny",
	     LIST("git", "git -C x status", "git -c a=b status",
		  "git --exec-path=x status", "git status -s", "git sta",
		  "git push", "git fetch ext::sh", "git fetch --upload-pack=x",
		  "git status --", "git 'status '"));
}

TEST(commands_curl)
{
	const struct command_rule curl = { .name = "curl" };

	each(&curl, "allow",
	     LIST("curl https://api.example.org",
		  "curl -sSf https://api.example.org/a/b",
		  "curl 'https://api.example.org?x=y&z=1'",
		  "curl https://x.sub.example/", "curl http://web.example.org",
		  "curl https://up.example.org:8443/",
		  "curl -H 'X-A: b' --data-raw @x https://api.example.org",
		  "curl -XPOST -da=b -m 5 https://api.example.org"));
	each(&curl, "deny",
	     LIST("curl api.example.org", "curl http://api.example.org",
		  "curl https://api.example.org:444/",
		  "curl https://api.example.org@evil.example/",
		  "curl https://evil.example/https://api.example.org",
		  "curl 'https://api.example.org\\@evil.example'",
		  "curl https://api.example.org.evil.example/",
		  "curl https://sub.example/", "curl https://xsub.example/",
		  "curl https://API.example.org",
		  "curl HTTPS://api.example.org",
		  "curl 'https://api.example.org#@evil.example/'",
		  "curl 'https://{api.example.org,evil.example}/'",
		  "curl 'https://api.example.org/[1-9]'",
		  "curl https://api.example.org:/",
		  "curl https://api.example.org%2eevil.example/",
		  "curl file:///etc/passwd", "curl ftp://api.example.org",
		  "curl gopher://api.example.org", "curl ''"));
	each(&curl, "deny",
	     LIST("curl -o f https://api.example.org",
		  "curl -sof https://api.example.org",
		  "curl -O https://api.example.org/f",
		  "curl -OJ https://api.example.org/f",
		  "curl -K f https://api.example.org",
		  "curl --config f https://api.example.org",
		  "curl -T f https://api.example.org",
		  "curl --upload-file f https://api.example.org",
		  "curl -d @f https://api.example.org",
		  "curl -d@f https://api.example.org",
		  "curl --data @f https://api.example.org",
		  "curl --data-binary @f https://api.example.org",
		  "curl --data-urlencode x@f https://api.example.org",
		  "curl --json @f https://api.example.org",
		  "curl -F x=@f https://api.example.org",
		  "curl -H @f https://api.example.org",
		  "curl -H 'Host: evil.example' https://api.example.org",
		  "curl -H 'hOST:x' https://api.example.org",
		  "curl -H 'A: b\nHost: x' https://api.example.org",
		  "curl -x evil:80 https://api.example.org",
		  "curl --proxy evil https://api.example.org",
		  "curl --unix-socket s https://api.example.org",
		  "curl --resolve a:443:1.1.1.1 https://api.example.org",
		  "curl --connect-to a:b:c:d https://api.example.org",
		  "curl https://api.example.org --next https://evil.example",
		  "curl -L https://api.example.org",
		  "curl -sL https://api.example.org",
		  "curl -w %{x} https://api.example.org",
		  "curl -w @f https://api.example.org",
		  "curl -b f https://api.example.org",
		  "curl -c f https://api.example.org",
		  "curl -D f https://api.example.org",
		  "curl --trace f https://api.example.org",
		  "curl --stderr f https://api.example.org",
		  "curl -n https://api.example.org",
		  "curl --out f https://api.example.org",
		  "curl --max-time=5 https://api.example.org",
		  "curl --url https://evil.example",
		  "curl -k https://api.example.org",
		  "curl -E f https://api.example.org",
		  "curl -z f https://api.example.org", "curl -- -o",
		  "curl -X 'GET /x' https://api.example.org"));
}

static const char *const sed_good[] = {
	"p",
	"1d",
	"$p",
	"2,5p",
	"1~2d",
	"/a/,/b/p",
	"/a/,+3p",
	"s/a/b/",
	"s/a/b/gI",
	"s,a/b,c,2p",
	"s|x|y|;s#a#b#g",
	"y/abc/xyz/",
	"/x/{p;d}",
	"1!G;h;$!d",
	"s/[0-9]*/<&>/",
	"s/[[:space:]]*$//",
	"s/\\/a/\\/b/",
	"5q",
	"=",
	"n;d",
	"/x/I,$ { s/a/b/ ; p }",
	"",
};
static const char *const sed_bad[] = {
	"w f",
	"1w f",
	"r f",
	"R f",
	"W f",
	"e",
	"e touch x",
	"1e x",
	"s/a/b/e",
	"s/a/b/w f",
	"s/a/b/ge",
	"s/a/b/gw f",
	"a x",
	"i\\",
	"c\\\nx",
	"s/a/b",
	"s/a",
	"y/a/b",
	"s a b ",
	"sxaxbx",
	"s/[/]/w f/;p/",
	"s/[]/]/x/",
	"s/[^]/]/x/",
	"s/[a\\]/]/b/",
	"s/a/[/;w f\n/",
	"s/a\n/b/",
	"s/a/b\\\n/",
	"\\,a,p",
	"b x",
	":x",
	"t",
	"p p",
	"p;w f",
	"{p",
	"p}",
	"#n",
	"1,p",
	"s/a/b/#",
	"/a/w f",
	"/[/]w f",
	"pw f",
	"}w f",
	"{w f}",
	"F\nw f",
	"v",
	"s/[[.a.]]/b/",
	"s[a[b[",
	"s\\a\\b\\",
	"y/[/]/]/w f",
};

TEST(commands_sed)
{
	for (size_t i = 0; i < ARRAY_SIZE(sed_good); i++)
		if (sed_check(sed_good[i]))
			printf("# refused: %s\n", sed_good[i]), tap_bad++;
	for (size_t i = 0; i < ARRAY_SIZE(sed_bad); i++)
		if (!sed_check(sed_bad[i]))
			printf("# accepted: %s\n", sed_bad[i]), tap_bad++;
}

TEST(commands_sed_flags)
{
	const struct command_rule sed = { .name = "sed" };

	each(&sed, "allow",
	     LIST("sed -n 5p f", "sed -e p -e d f", "sed -ne p f",
		  "sed --expression=p f", "sed -E 's/(a)/b/' f g"));
	each(&sed, "deny",
	     LIST("sed -i p f", "sed -ni p f", "sed -i.bak p f",
		  "sed --in-place p f", "sed --in p f", "sed -f x f",
		  "sed -e p -e 'w f' f", "sed p -e 'w f'", "sed -n -e 'w f' p",
		  "sed -e 'a\\' -e 'x'", "sed p --in-place f",
		  "sed --expression='e x' f", "sed -s -f f"));
}

static const char *const awk_good[] = {
	"1",
	"{print}",
	"{ print $1, $NF }",
	"NR==3",
	"NR>1",
	"$2>=5",
	"!seen[$0]++",
	"/a/,/b/",
	"{ s += $1 } END { print s/NR }",
	"END { print NR / 2, (a+b)/2, x[1]/3 }",
	"{ x /= 2; print x }",
	"{ if ($1 > 3 || $2 ~ /x|y/) print }",
	"{ for (i = NF; i > 0; i--) printf \"%s \", $i; print \"\" }",
	"{ n = split($0, a, /[,;]/); print a[n] }",
	"BEGIN { print length(\"a > b | c\") }",
	"$1 !~ /^#/ { print toupper($2) }",
	"BEGIN { while (i < 3) { i++ } }\nEND { print i }",
	"{ print ($1 > 2) ? \"a\" : \"b\" }",
	"/[[:digit:]]+\\.[^,.]/ { c++ }",
	"/\\/x\\// { print }",
};
static const char *const awk_bad[] = {
	"{system(\"x\")}",
	"{ system (\"x\") }",
	"{ print > \"f\" }",
	"{ print>\"f\" }",
	"{ print >> \"f\" }",
	"{ print | \"x\" }",
	"{ print |& \"x\" }",
	"{ printf \"x\" > \"f\" }",
	"{ getline }",
	"{ getline < \"f\" }",
	"{ \"x\" | getline }",
	"{ while ((\"x\" | getline y) > 0) print y }",
	"@include \"x\"",
	"@load \"x\"",
	"{ @f(1) }",
	"{ print; # x\n}",
	"function f(x) { print }",
	"{ f(1) }",
	"{ f (1) }",
	"{ x = /a/ }",
	"{ print /a/ }",
	"{ i++ / 2 }",
	"{ $ /a/ }",
	"{ if (x) /\"/; print > \"f\" #\"/\n}",
	"{ while (x) /\"/; print > \"f\" #\"/\n}",
	"{ a = b /\"/; print > \"f\"; \"/ 2 }",
	"{ length /\"/; print > \"f\"; \"/ }",
	"{ return /x/ }",
	"{ print \"a",
	"{ print \"a\n\" }",
	"{ print \"\\",
	"/a",
	"/a\n/",
	"/[/]/",
	"/[]/",
	"/[a\\]/]/",
	"/[[/]]/",
	"/[^]/]/ { print }",
	"{",
	"}",
	"(",
	")",
	"{ (} )",
	"{ print 'x' }",
	"{ print \\\n 1 }",
	"{ a & b }",
	"{ a | b }",
	"{ print ENVIRON[\"x\"] }",
	"{ print SYMTAB[\"x\"] }",
	"{ print PROCINFO[\"x\"] }",
	"{ ARGV[1] = 2 }",
	"{ ARGC = 2 }",
	"{ extension(\"x\", \"y\") }",
	"{ close(\"x\") }",
	"{ fflush(\"x\") }",
	"{ awk::system(1) }",
	"{ 1system(1) }",
	"{ print 1 >\n\"f\" }",
	"{ x[1 > \"f\"] }",
	"{ print a >= \"f\" }",
	"{ print `x` }",
	"{ print \"x\" /a/ }",
	"{ print 1, 2 > \"f\" }",
	"{ print(1) > \"f\" }",
	"{ print (1, 2) > \"f\" }",
	"1 { print > \"f\" } 2",
	"BEGIN { printf(\"x\") > \"f\" }",
	"\xc3\xa9",

	"{ switch (x) /\"/ }",
};

TEST(commands_awk)
{
	for (size_t i = 0; i < ARRAY_SIZE(awk_good); i++)
		if (awk_check(awk_good[i]))
			printf("# refused: %s\n", awk_good[i]), tap_bad++;
	for (size_t i = 0; i < ARRAY_SIZE(awk_bad); i++)
		if (!awk_check(awk_bad[i]))
			printf("# accepted: %s\n", awk_bad[i]), tap_bad++;
}

TEST(commands_jq)
{
	CHECK(!jq_check(".a.env | .environment | .ENV"));
	CHECK(!jq_check("[.[] | {name, n: (.x | length)}] | sort_by(.n)"));
	CHECK(jq_check("env"));
	CHECK(jq_check(".a|env|.b"));
	CHECK(jq_check(". env"));
	CHECK(jq_check("[env]"));
	CHECK(jq_check("$ENV"));
	CHECK(jq_check("\"\\(env)\""));
	CHECK(jq_check("#\nenv"));
	CHECK(jq_check("import \"a\" as a; ."));
	CHECK(jq_check("include \"a\"; ."));
	CHECK(jq_check("input_filename"));
	CHECK(jq_check("\"m\" | modulemeta"));
}

/* A working directory of its own changes what a relative script means. */
TEST(commands_cwd)
{
	struct command_rules r = {
		.allow = RULES({ .name = "python" },
			       { .name = "python3", .script = "/srv/job" },
			       { .name = "node", .script = "relative" }),
		.n_allow = 3,
		.cwd = "/srv/job",
	};

	CHECK_STR(judged(&r, "python3 a.py"), "allow");
	CHECK_STR(judged(&r, "python3 /srv/job/a.py"), "allow");
	CHECK_STR(judged(&r, "python3 /workspace/a.py"), "deny");
	CHECK_STR(judged(&r, "python3 ../../workspace/a.py"), "deny");
	CHECK_STR(judged(&r, "node relative/a.js"), "deny");
	/* A rule that only names it means the workspace, wherever it starts. */
	CHECK_STR(judged(&r, "python a.py"), "deny");
	CHECK_STR(judged(&r, "python ../../workspace/a.py"), "allow");
	r.cwd = "/";
	CHECK_STR(judged(&r, "python3 a.py"), "deny");
	CHECK_STR(judged(&r, "python ./dev/stdin"), "deny");
	CHECK_STR(judged(&r, "python workspace/a.py"), "allow");
}

/* Named alone, an interpreter is for scripts, whatever version it is. */
TEST(commands_versions)
{
	const struct command_rules r = {
		.allow = RULES({ .name = "python3.11" }, { .name = "perl5.36" },
			       { .name = "gcc-12" }, { .name = "sort2" },
			       { .name = "python", .flags = LIST("-u") }),
		.n_allow = 5,
	};

	CHECK_STR(judged(&r, "python3.11 a.py"), "allow");
	CHECK_STR(judged(&r, "python3.11"), "deny");
	CHECK_STR(judged(&r, "python3.11 /dev/stdin"), "deny");
	CHECK_STR(judged(&r, "perl5.36 a.pl"), "deny");
	CHECK_STR(judged(&r, "gcc-12 a.c"), "deny");
	CHECK_STR(judged(&r, "sort2 a"), "allow");
	CHECK_STR(judged(&r, "sort2 -r a"), "deny");
	CHECK_STR(judged(&r, "python -u"), "deny");
}

TEST(commands_messages)
{
	static char text[5000] = "ls --";

	for (size_t i = 5; i + 1 < sizeof(text) - 1; i += 2) {
		text[i] = (char)0xc3;
		text[i + 1] = (char)0xa9;
	}
	CHECK_STR(judged(commands_preset("shell-tools"), text), "deny");
	CHECK(strlen(last.why) < sizeof(last.why) - 1);
	CHECK_HAS(last.why, "\xc3\xa9...': a flag that no rule allows");
	CHECK_STR(judged(commands_preset("shell-tools"), "ls '--a\nb\tc'"),
		  "deny");
	CHECK_STR(last.why, "'ls': '--a\\nb\\tc': a flag that no rule allows");
}

TAP_MAIN()
