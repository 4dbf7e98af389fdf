/* SPDX-License-Identifier: Apache-2.0 */

/* cordon completion: scripts for shells, from the tables of the flags. */

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "box/lang.h"
#include "box/settings.h"
#include "cli/box-commands.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "cli/words.h"

static struct words desk;

static void each_flag(void (*put)(const char *name, char letter,
				  const char *value, const char *help))
{
	const struct own_flag *own;
	const struct setting *s;

	for (size_t i = 0; (own = own_flag_at(i)); i++)
		put(own->name, own->letter, own->value, own->help);
	for (size_t i = 0; (s = setting_at(i)); i++)
		if (s->help)
			put(s->name, s->letter, s->value, s->help);
}

/* Of `image`, which is a program of its own (src/imagecmd). */
#define IMAGE_COMMANDS "load import save ls inspect rm prune tag"
/* Of `agent` (src/agentcmd). */
#define AGENT_COMMANDS "run check dump import ls show cancel schema"
#define AGENT_FLAGS                                                            \
	"--replay --record --resume --model --policy --trace --log --metrics " \
	"--secret --no-input --reason --stats --json --output"
#define AGENT_RUNS "cordon agent ls 2>/dev/null | tail -n +2 | cut -d' ' -f1"

static void put_commands(const char *between)
{
	const struct command *c;

	for (int i = 0; (c = command_at(i)); i++)
		printf("%s%s", i ? between : "", c->name);
}

static void put_languages(void)
{
	const struct lang *l;

	for (size_t i = 0; (l = lang_at(i)); i++)
		printf("%s%s", i ? " " : "", l->names[0]);
}

/* Whether the desk's verb `i` is the first that begins with its first word. */
static bool is_first(size_t i)
{
	size_t len = strcspn(desk.v[i].name, " ");

	for (size_t k = 0; k < i; k++)
		if (strcmp(desk.v[k].command, desk.v[i].command) == 0 &&
		    strcspn(desk.v[k].name, " ") == len &&
		    strncmp(desk.v[k].name, desk.v[i].name, len) == 0)
			return false;
	return true;
}

/* First words of a command's verbs. */
static void put_verbs(const char *command)
{
	const char *space = "";

	for (size_t i = 0; i < desk.n; i++)
		if (strcmp(desk.v[i].command, command) == 0 && is_first(i)) {
			printf("%s%.*s", space,
			       (int)strcspn(desk.v[i].name, " "),
			       desk.v[i].name);
			space = " ";
		}
}

/* What may follow the first word of a verb with two: "list remove". */
static void put_seconds(const struct words_verb *v)
{
	size_t len = strcspn(v->name, " ") + 1;
	const char *space = "";

	for (size_t i = 0; i < desk.n; i++)
		if (strcmp(desk.v[i].command, v->command) == 0 &&
		    strncmp(desk.v[i].name, v->name, len) == 0) {
			printf("%s%s", space, desk.v[i].name + len);
			space = " ";
		}
}

/*
 * The desk's part as a case statement, the same in bash and zsh: the words
 * before the one that is completed choose `known` and `files`.
 */
static void put_desk_cases(void)
{
	const char *command = "";

	for (size_t i = 0; i < desk.n; i++) {
		const struct words_verb *v = &desk.v[i];
		const char *second = strchr(v->name, ' ');

		if (strcmp(command, v->command) != 0) {
			command = v->command;
			printf("\t\t\"%s\") known=\"", command);
			put_verbs(command);
			printf("\" ;;\n");
		}
		if (second && is_first(i)) {
			printf("\t\t\"%s %.*s\") known=\"", command,
			       (int)(second - v->name), v->name);
			put_seconds(v);
			printf("\" ;;\n");
		}
		printf("\t\t\"%s %s\" | \"%s %s \"*) known=\"%s\" "
		       "files=%s ;;\n",
		       command, v->name, command, v->name, v->flags,
		       v->has_file ? "1" : "");
	}
}

/* Commands of boxes, for bash and zsh: "ps | exec", and each one's flags. */
static void put_box_commands(void)
{
	const char *name;
	struct opts o;

	for (size_t i = 0; box_command(i, &name, &o); i++)
		printf("%s%s", i ? " | " : "", name);
}

static void put_box_cases(void)
{
	const char *name;
	struct opts o;

	for (size_t i = 0; box_command(i, &name, &o); i++) {
		printf("\t\t%s) known=\"", name);
		for (size_t k = 0; k < o.n; k++)
			printf("%s--%s", k ? " " : "", o.v[k].name);
		printf("\" ;;\n");
	}
}

#define BOX_NAMES "cordon ps -a --names 2>/dev/null"

static void bash_boxes(void)
{
	printf("\t");
	put_box_commands();
	printf(")\n\t\tlocal known=\n\t\tcase ${COMP_WORDS[1]} in\n");
	put_box_cases();
	printf("\t\tesac\n\t\tcase $cur in\n"
	       "\t\t-*) mapfile -t COMPREPLY < <(compgen -W \"$known\" -- "
	       "\"$cur\") ;;\n"
	       "\t\t*) mapfile -t COMPREPLY < <(compgen -W \"$(" BOX_NAMES
	       ")\" -- \"$cur\"\n"
	       "\t\t\t[ \"${COMP_WORDS[1]}\" != cp ] || compgen -f -- "
	       "\"$cur\") ;;\n"
	       "\t\tesac ;;\n");
}

static void zsh_boxes(void)
{
	printf("\t");
	put_box_commands();
	printf(")\n\t\tlocal known=\n\t\tcase $words[2] in\n");
	put_box_cases();
	printf("\t\tesac\n\t\tcompadd -- ${=known}\n"
	       "\t\tcompadd -- ${(f)\"$(" BOX_NAMES ")\"}\n"
	       "\t\t[[ $words[2] != cp ]] || _files ;;\n");
}

static void bash_flag(const char *name, char letter, const char *value,
		      const char *help)
{
	(void)letter;
	(void)help;
	printf(" --%s%s", name, value ? "=" : "");
}

static void put_serve_flags(const char *before)
{
	for (size_t i = 0; serve_flag_at(i); i++)
		printf("%s%s%s", i ? " " : "", before, serve_flag_at(i));
}

static void bash_agent(void)
{
	printf("\tagent)\n\t\tif [ \"$COMP_CWORD\" -eq 2 ]; then\n"
	       "\t\t\tmapfile -t COMPREPLY < <(compgen -W "
	       "\"" AGENT_COMMANDS "\" -- \"$cur\")\n"
	       "\t\t\treturn\n\t\tfi\n"
	       "\t\tcase $prev:${COMP_WORDS[2]}:$cur in\n"
	       "\t\t--resume:* | *:show:* | *:cancel:*) mapfile -t COMPREPLY < "
	       "<(compgen -W "
	       "\"$(" AGENT_RUNS ")\" -- \"$cur\") ;;\n"
	       "\t\t*:-*) mapfile -t COMPREPLY < <(compgen -W "
	       "\"" AGENT_FLAGS "\" -- \"$cur\") ;;\n"
	       "\t\t*) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
	       "\t\tesac ;;\n");
}

static void bash(void)
{
	printf("# bash completion for cordon\n_cordon() {\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} "
	       "prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -W \"");
	put_commands(" ");
	printf("\" -- \"$cur\")\n\t\treturn\n\tfi\n"
	       "\tcase $prev in\n\t--lang)\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -W \"");
	put_languages();
	printf("\" -- \"$cur\")\n\t\treturn ;;\n\tesac\n"
	       "\tcase ${COMP_WORDS[1]} in\n\trun | create)\n"
	       "\t\tcase $cur in\n"
	       "\t\t-*) mapfile -t COMPREPLY < <(compgen -W \"");
	each_flag(bash_flag);
	printf("\" -- \"$cur\") ;;\n"
	       "\t\t*) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
	       "\t\tesac ;;\n"
	       "\tcompletion) mapfile -t COMPREPLY < <(compgen -W "
	       "\"bash zsh fish\" -- \"$cur\") ;;\n"
	       "\timage)\n\t\tif [ \"$COMP_CWORD\" -eq 2 ]; then\n"
	       "\t\t\tmapfile -t COMPREPLY < <(compgen -W "
	       "\"" IMAGE_COMMANDS "\" -- \"$cur\")\n"
	       "\t\t\treturn\n\t\tfi\n"
	       "\t\tcase ${COMP_WORDS[2]} in\n\t\tload|import)\n"
	       "\t\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
	       "\t\t*) mapfile -t COMPREPLY < <(compgen -W \"$(cordon image ls "
	       "--names 2>/dev/null)\" -- \"$cur\") ;;\n\t\tesac ;;\n");
	bash_agent();
	bash_boxes();
	printf("\tserve)\n\t\tcase $cur in\n"
	       "\t\t-*) mapfile -t COMPREPLY < <(compgen -W \"");
	put_serve_flags("--");
	printf("\" -- \"$cur\") ;;\n"
	       "\t\t*) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
	       "\t\tesac ;;\n"
	       "\tdoctor) mapfile -t COMPREPLY < <(compgen -W \"--json\" -- "
	       "\"$cur\") ;;\n\tpolicy | approvals | audit)\n"
	       "\t\tlocal known= files=\n"
	       "\t\tcase \"${COMP_WORDS[*]:1:COMP_CWORD-1}\" in\n");
	put_desk_cases();
	printf("\t\tesac\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -W \"$known\" -- "
	       "\"$cur\"\n"
	       "\t\t\t[ -z \"$files\" ] || compgen -f -- \"$cur\") ;;\n"
	       "\tesac\n}\ncomplete -o nospace -F _cordon cordon\n");
}

/* Square brackets and quotes would end the description. */
static void put_plain(const char *text)
{
	for (; *text; text++)
		(void)putchar(strchr("'[]:", *text) ? ' ' : *text);
}

static void zsh_flag(const char *name, char letter, const char *value,
		     const char *help)
{
	(void)letter;
	printf("\t\t\t'--%s%s[", name, value ? "=" : "");
	put_plain(help);
	printf("]%s%s' \\\n", value ? ":" : "", value ? "value" : "");
}

static void zsh(void)
{
	printf("#compdef cordon\n_cordon() {\n\tif (( CURRENT == 2 )); then\n"
	       "\t\tcompadd ");
	put_commands(" ");
	printf("\n\t\treturn\n\tfi\n\tcase $words[2] in\n\trun | create)\n"
	       "\t\tshift words; (( CURRENT-- ))\n\t\t_arguments \\\n");
	each_flag(zsh_flag);
	printf("\t\t\t'*:file:_files' ;;\n"
	       "\timage)\n\t\tif (( CURRENT == 3 )); then\n"
	       "\t\t\tcompadd " IMAGE_COMMANDS "\n"
	       "\t\telif [[ $words[3] == (load|import) ]]; then _files\n"
	       "\t\telse compadd -- ${(f)\"$(cordon image ls --names "
	       "2>/dev/null)\"}\n\t\tfi ;;\n"
	       "\tagent)\n\t\tif (( CURRENT == 3 )); then\n"
	       "\t\t\tcompadd " AGENT_COMMANDS "\n"
	       "\t\telif [[ $words[CURRENT-1] == --resume || $words[3] == "
	       "(show|cancel) ]]; then\n\t\t\tcompadd -- ${(f)\"$(" AGENT_RUNS
	       ")\"}\n"
	       "\t\telse compadd -- " AGENT_FLAGS "; _files\n\t\tfi ;;\n"
	       "\tcompletion) compadd bash zsh fish ;;\n"
	       "\tserve) compadd -- ");
	put_serve_flags("--");
	printf("; _files ;;\n");
	zsh_boxes();
	printf("\tdoctor) compadd -- --json ;;\n"
	       "\tpolicy | approvals | audit)\n\t\tlocal known= files=\n"
	       "\t\tcase \"${words[2,CURRENT-1]}\" in\n");
	put_desk_cases();
	printf("\t\tesac\n\t\tcompadd -- ${=known}\n"
	       "\t\t[[ -z $files ]] || _files ;;\n"
	       "\tesac\n}\n_cordon \"$@\"\n");
}

static void fish_flag(const char *name, char letter, const char *value,
		      const char *help)
{
	printf("complete -c cordon -n '__fish_seen_subcommand_from run' -l %s",
	       name);
	if (letter)
		printf(" -s %c", letter);
	printf("%s -d '", value ? " -r" : "");
	put_plain(help);
	printf("'\n");
}

#define FISH_SEEN "__fish_seen_subcommand_from "

static void fish_desk(void)
{
	const char *command = "";

	for (size_t i = 0; i < desk.n; i++) {
		const struct words_verb *v = &desk.v[i];
		const char *second = strchr(v->name, ' ');
		char flags[1024];
		char *rest = flags;
		char *flag;

		if (strcmp(command, v->command) != 0) {
			command = v->command;
			printf("complete -c cordon -f -n '" FISH_SEEN
			       "%s; and not " FISH_SEEN,
			       command);
			put_verbs(command);
			printf("' -a '");
			put_verbs(command);
			printf("'\n");
		}
		if (second && is_first(i)) {
			printf("complete -c cordon -f -n '" FISH_SEEN
			       "%s; and " FISH_SEEN "%.*s' -a '",
			       command, (int)(second - v->name), v->name);
			put_seconds(v);
			printf("'\n");
		}
		(void)snprintf(flags, sizeof(flags), "%s", v->flags);
		while ((flag = strsep(&rest, " ")))
			if (*flag)
				printf("complete -c cordon -n '" FISH_SEEN
				       "%s; and " FISH_SEEN "%s' -l %s\n",
				       command, second ? second + 1 : v->name,
				       flag + 2);
	}
}

static void fish_boxes(void)
{
	const char *name;
	struct opts o;

	for (size_t i = 0; box_command(i, &name, &o); i++) {
		for (size_t k = 0; k < o.n; k++) {
			printf("complete -c cordon -n '" FISH_SEEN
			       "%s; and not " FISH_SEEN "image' -l %s",
			       name, o.v[k].name);
			if (o.v[k].letter)
				printf(" -s %c", o.v[k].letter);
			printf("%s -d '", o.v[k].value ? " -r" : "");
			put_plain(o.v[k].help);
			printf("'\n");
		}
		if (strcmp(name, "ps") != 0)
			printf("complete -c cordon -n '" FISH_SEEN
			       "%s; and not " FISH_SEEN "image' -a '(" BOX_NAMES
			       ")'\n",
			       name);
	}
}

static void fish_agent(void)
{
	char flags[] = AGENT_FLAGS;
	char *rest = flags;
	char *flag;

	printf("complete -c cordon -n '" FISH_SEEN
	       "agent; and not " FISH_SEEN AGENT_COMMANDS
	       "' -a '" AGENT_COMMANDS "'\n");
	while ((flag = strsep(&rest, " ")))
		printf("complete -c cordon -n '" FISH_SEEN "agent' -l %s\n",
		       flag + 2);
	printf("complete -c cordon -n '" FISH_SEEN "agent; and " FISH_SEEN
	       "show' -a \"(" AGENT_RUNS ")\"\n");
}

static void fish(void)
{
	printf("complete -c cordon -f -n __fish_use_subcommand -a '");
	put_commands(" ");
	printf("'\n");
	each_flag(fish_flag);
	printf("complete -c cordon -n '__fish_seen_subcommand_from "
	       "completion' -a 'bash zsh fish'\n");
	printf("complete -c cordon -n '__fish_seen_subcommand_from doctor' "
	       "-l json\n");
	for (size_t i = 0; serve_flag_at(i); i++)
		printf("complete -c cordon -n '__fish_seen_subcommand_from "
		       "serve' -l %s -r\n",
		       serve_flag_at(i));
	fish_boxes();
	fish_desk();
	printf("complete -c cordon -n '__fish_seen_subcommand_from image; and "
	       "not __fish_seen_subcommand_from " IMAGE_COMMANDS
	       "' -a '" IMAGE_COMMANDS "'\n");
	printf("complete -c cordon -n '__fish_seen_subcommand_from image; and "
	       "__fish_seen_subcommand_from save inspect rm tag' -a '(cordon "
	       "image ls --names 2>/dev/null)'\n");
	fish_agent();
}

int cmd_completion(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*put)(void);
	} shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

	struct err err = { 0 };

	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(shells); i++) {
		int r;

		if (strcmp(argv[1], shells[i].name) != 0)
			continue;
		r = words_read(&desk, &err);
		if (r == 0)
			shells[i].put();
		else
			say("%s", err.text);
		words_done(&desk);
		return r < 0 ? EXIT_OURS : 0;
	}
	say("completion takes bash, zsh or fish");
	return EXIT_OURS;
}
