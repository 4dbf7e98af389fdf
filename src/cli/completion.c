/* SPDX-License-Identifier: Apache-2.0 */

/* cordon completion: scripts for shells, from the tables of the flags. */

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "box/lang.h"
#include "box/settings.h"
#include "cli/cli.h"
#include "cli/flags.h"

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

static void bash_flag(const char *name, char letter, const char *value,
		      const char *help)
{
	(void)letter;
	(void)help;
	printf(" --%s%s", name, value ? "=" : "");
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
	       "\tcase ${COMP_WORDS[1]} in\n\trun)\n"
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
	       "--names 2>/dev/null)\" -- \"$cur\") ;;\n\t\tesac ;;\n"
	       "\tdoctor) mapfile -t COMPREPLY < <(compgen -W \"--json\" -- "
	       "\"$cur\") ;;\n\tesac\n}\n"
	       "complete -o nospace -F _cordon cordon\n");
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
	printf("\n\t\treturn\n\tfi\n\tcase $words[2] in\n\trun)\n"
	       "\t\tshift words; (( CURRENT-- ))\n\t\t_arguments \\\n");
	each_flag(zsh_flag);
	printf("\t\t\t'*:file:_files' ;;\n"
	       "\timage)\n\t\tif (( CURRENT == 3 )); then\n"
	       "\t\t\tcompadd " IMAGE_COMMANDS "\n"
	       "\t\telif [[ $words[3] == (load|import) ]]; then _files\n"
	       "\t\telse compadd -- ${(f)\"$(cordon image ls --names "
	       "2>/dev/null)\"}\n\t\tfi ;;\n"
	       "\tcompletion) compadd bash zsh fish ;;\n"
	       "\tdoctor) compadd -- --json ;;\n\tesac\n}\n_cordon \"$@\"\n");
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

static void fish(void)
{
	printf("complete -c cordon -f -n __fish_use_subcommand -a '");
	put_commands(" ");
	printf("'\n");
	each_flag(fish_flag);
	printf("complete -c cordon -n '__fish_seen_subcommand_from "
	       "completion' -a 'bash zsh fish'\n");
	printf("complete -c cordon -n '__fish_seen_subcommand_from image; and "
	       "not __fish_seen_subcommand_from " IMAGE_COMMANDS
	       "' -a '" IMAGE_COMMANDS "'\n");
	printf("complete -c cordon -n '__fish_seen_subcommand_from image; and "
	       "__fish_seen_subcommand_from save inspect rm tag' -a '(cordon "
	       "image ls --names 2>/dev/null)'\n");
}

int cmd_completion(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*put)(void);
	} shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(shells); i++)
		if (strcmp(argv[1], shells[i].name) == 0) {
			shells[i].put();
			return 0;
		}
	say("completion takes bash, zsh or fish");
	return EXIT_OURS;
}
