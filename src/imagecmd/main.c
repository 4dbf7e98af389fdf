/* SPDX-License-Identifier: Apache-2.0 */

/* cordon-image: finds the command and runs it; the small ones are here. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/num.h"
#include "base/json.h"
#include "imagecmd/imagecmd.h"
#include "image/reference.h"

#define MANY 1000

int shut_in(struct call *c, int input, struct err *err)
{
	return image_confine(c->store, input, c->is_landlock_optional, err);
}

static void print_removed(const struct image_removed *gone)
{
	for (size_t i = 0; i < gone->untagged.n; i++)
		printf("Untagged: %s\n", image_ref_short(gone->untagged.v[i]));
	for (size_t i = 0; i < gone->deleted.n; i++)
		printf("Deleted: %s\n", gone->deleted.v[i]);
}

static void print_removed_json(const struct image_removed *gone)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, (size_t)8 << 20);
	json_open(&j, NULL, '{');
	json_open(&j, "untagged", '[');
	for (size_t i = 0; i < gone->untagged.n; i++)
		json_str(&j, NULL, image_ref_short(gone->untagged.v[i]));
	json_close(&j, ']');
	json_open(&j, "deleted", '[');
	for (size_t i = 0; i < gone->deleted.n; i++)
		json_str(&j, NULL, gone->deleted.v[i]);
	json_close(&j, ']');
	json_int(&j, "freed", (int64_t)gone->freed);
	json_close(&j, '}');
	if (!out.error)
		printf("%s\n", out.data);
	buf_done(&out);
}

/* Each by itself: one that fails does not keep the others. */
static int run_rm(struct call *c, struct err *err)
{
	struct err first = { 0 };

	if (shut_in(c, NO_FD, err) < 0)
		return -err->code;
	for (size_t i = 0; i < c->n; i++) {
		struct image_removed gone = { 0 };
		struct err one = { 0 };

		if (image_remove(c->store, c->operands[i], c->force, &gone,
				 &one) == 0) {
			if (c->json)
				print_removed_json(&gone);
			else
				print_removed(&gone);
		} else if (first.code) {
			say("%s", one.text);
		} else {
			first = one;
		}
		image_removed_done(&gone);
	}
	*err = first;
	return -err->code;
}

static int run_prune(struct call *c, struct err *err)
{
	struct image_removed gone = { 0 };
	char size[24];
	int r = shut_in(c, NO_FD, err);

	if (r == 0)
		r = image_prune(c->store, c->all, &gone, err);
	if (r < 0)
		return r;
	if (c->json) {
		print_removed_json(&gone);
	} else {
		print_removed(&gone);
		format_size(gone.freed, size, sizeof(size));
		printf("freed: %s\n", size);
	}
	image_removed_done(&gone);
	return 0;
}

static int run_tag(struct call *c, struct err *err)
{
	if (shut_in(c, NO_FD, err) < 0)
		return -err->code;
	return image_tag(c->store, c->operands[0], c->operands[1], err);
}

static int run_pull(struct call *c, struct err *err)
{
	(void)c;
	return err_set(
		err, ENOTSUP,
		"fetching images is not in this build; save one where it "
		"is ('docker save -o FILE NAME', 'skopeo copy ... "
		"oci-archive:FILE') and use 'cordon image load FILE'");
}

static const struct command commands[] = {
	{ "load", "[FLAGS] [FILE|DIR]",
	  "take images from an archive or an OCI layout", CMD_LOAD, 0, 1,
	  run_load },
	{ "import", "[FLAGS] FILE|- [NAME[:TAG]]",
	  "make an image from a root file system's tar", CMD_IMPORT, 1, 2,
	  run_import },
	{ "save", "[-o FILE] IMAGE...", "write images to an archive", CMD_SAVE,
	  1, MANY, run_save },
	{ "ls", "[-q] [--names] [--json]", "what images there are", CMD_LS, 0,
	  0, run_ls },
	{ "inspect", "IMAGE...", "all about an image, as JSON", CMD_INSPECT, 1,
	  MANY, run_inspect },
	{ "rm", "[-f] IMAGE...", "remove names, and images without one", CMD_RM,
	  1, MANY, run_rm },
	{ "prune", "[-a]", "remove images that have no name", CMD_PRUNE, 0, 0,
	  run_prune },
	{ "tag", "IMAGE NAME[:TAG]", "give an image one more name", CMD_TAG, 2,
	  2, run_tag },
	{ "pull", "NAME", "not in this build: use load", CMD_PULL, 0, MANY,
	  run_pull },
};

static int usage(void)
{
	printf("usage: cordon image COMMAND ...\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-8s %-28s %s\n", commands[i].name, commands[i].usage,
		       commands[i].help);
	printf("\n'cordon image COMMAND --help' lists its flags; "
	       "cordon-image(1) says more.\n");
	return 0;
}

static int help(const struct command *cmd)
{
	printf("usage: cordon image %s %s\n\n%s\n\n", cmd->name, cmd->usage,
	       cmd->help);
	args_help(cmd);
	return 0;
}

static bool asks_help(char **args)
{
	for (; *args && strcmp(*args, "--") != 0; args++)
		if (strcmp(*args, "--help") == 0 || strcmp(*args, "-h") == 0)
			return true;
	return false;
}

static int status_of(const struct err *err)
{
	switch (err->code) {
	case IMAGE_NOT_FOUND:
	case IMAGE_AMBIGUOUS:
	case IMAGE_IN_USE:
	case IMAGE_NOT_YOURS:
		return EXIT_NO;
	default:
		return EXIT_OURS;
	}
}

/* By the daemon, which knows from the kernel who asks (serve/image.c). */
static int act_for(struct image_store *s, struct err *err)
{
	const char *text = getenv("CORDON_IMAGE_FOR");
	uint64_t uid = 0;

	if (!text)
		return 0;
	if (num_parse(text, UINT32_MAX - 1, &uid) < 0)
		return err_set(err, EINVAL, "CORDON_IMAGE_FOR is no user");
	image_store_for(s, (uint32_t)uid);
	return 0;
}

static int run(const struct command *cmd, char **args)
{
	struct call c = { 0 };
	struct err err = { 0 };
	int r;

	if (asks_help(args))
		return help(cmd);
	if (args_read(cmd, args, &c, &err) < 0) {
		say("%s; usage: cordon image %s %s", err.text, cmd->name,
		    cmd->usage);
		return EXIT_OURS;
	}
	r = cmd->run == run_pull ? 0 : image_store_open(&c.store, &err);
	if (r == 0 && c.store)
		r = act_for(c.store, &err);
	if (r == 0)
		r = cmd->run(&c, &err);
	if (fflush(stdout) != 0 && r == 0)
		r = err_errno(&err, errno, "write to standard output");
	if (r < 0 && err.text[0])
		say("%s", err.text);
	image_store_close(c.store);
	strv_done(&c.changes);
	return r == 0 ? 0 : status_of(&err);
}

int main(int argc, char **argv)
{
	/* cordon-image image COMMAND ... */
	const char *name = argc > 2 ? argv[2] : "";

	io_hold_below(STDERR_FILENO + 1);
	(void)umask(077);
	if (argc < 2 || strcmp(argv[1], "image") != 0) {
		say("this program is started by 'cordon image'");
		return EXIT_OURS;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return usage();
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return run(&commands[i], argv + 3);
	say("image takes load, import, save, ls, inspect, rm, prune or tag; "
	    "'cordon image --help' says more");
	return EXIT_OURS;
}
