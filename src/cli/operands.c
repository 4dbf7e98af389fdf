/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/operands.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "box/lang.h"
#include "box/spec.h"
#include "cli/cli.h"

#define MAX_CODE (64ULL << 20)

static int read_code(const char *path, struct buf *ret, struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	char chunk[65536];
	ssize_t n;

	buf_init(ret, MAX_CODE);
	if (strcmp(path, "-") == 0) {
		if (stream_is_missing(0))
			return err_set(err, EBADF, "standard input is closed");
	} else {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return err_errno(err, errno, "open '%s'", path);
	}
	while ((n = read(fd < 0 ? 0 : fd, chunk, sizeof(chunk))) > 0)
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return err_set(err, EFBIG,
				       "'%s' is larger than %llu MiB", path,
				       MAX_CODE >> 20);
	if (n < 0)
		return err_errno(err, errno, "read %s%s%s",
				 fd < 0 ? "standard input" : "'",
				 fd < 0 ? "" : path, fd < 0 ? "" : "'");
	return 0;
}

static int take_args(struct cordon_spec *s, char **rest, struct err *err)
{
	for (; *rest; rest++)
		if (spec_set(s, "arg", *rest, err) < 0)
			return -err->code;
	return 0;
}

static int add_block(struct cordon_spec *s, const char *lang, const void *code,
		     size_t len, struct err *err)
{
	struct cordon_error why = { 0 };

	if (cordon_spec_code(s, lang, code, len, NULL, &why) < 0)
		return err_set(err, why.code, "%s", why.text);
	return 0;
}

/* Each -c is a block, in the language that was said last before it. */
static int take_codes(struct cordon_spec *s, const struct run_flags *f,
		      char **rest, struct err *err)
{
	for (size_t i = 0; i < f->n_codes; i++)
		if (add_block(s, f->codes[i].lang ? f->codes[i].lang : f->lang,
			      f->codes[i].code, strlen(f->codes[i].code),
			      err) < 0)
			return -err->code;
	return take_args(s, rest, err);
}

static int take_file(struct cordon_spec *s, const char *lang, char **rest,
		     struct err *err)
{
	const struct lang *l = lang_of_file(*rest);
	struct buf code;
	int r = read_code(*rest, &code, err);

	if (!lang)
		lang = l ? l->names[0] : "";
	if (r == 0)
		r = add_block(s, lang, code.data ? code.data : "", code.len,
			      err);
	buf_done(&code);
	return r < 0 ? r : take_args(s, rest + 1, err);
}

int operands_take(struct cordon_spec *spec, const struct run_flags *f,
		  char **rest, bool dashes, struct err *err)
{
	struct cordon_error why = { 0 };

	if (f->n_codes > 0 && !f->lang)
		return err_set(err, EINVAL,
			       "-c needs --lang, such as --lang python");
	if (f->n_codes > 0)
		return take_codes(spec, f, rest, err);
	if (f->lang && *rest)
		return take_file(spec, f->lang, rest, err);
	if (f->lang)
		return err_set(err, EINVAL,
			       "--lang needs code: -c CODE, a file, or - for "
			       "standard input");
	if (spec->command_line && *rest)
		return err_set(err, EINVAL,
			       "--command takes the whole line; nothing can "
			       "follow it");
	if (spec->command_line)
		return 0;
	if (!*rest && spec->image)
		return 0;
	if (!*rest)
		return err_set(err, EINVAL,
			       "nothing to run; write 'cordon run -- CMD' or "
			       "'cordon run --lang python -c CODE'");
	if (!dashes && lang_of_file(*rest))
		return take_file(spec, NULL, rest, err);
	if (!dashes)
		return err_set(err, EINVAL,
			       "'%s' has no ending that names a language; for "
			       "a program write 'cordon run -- %s'",
			       *rest, *rest);
	if (cordon_spec_command(spec, (const char *const *)rest, &why) < 0)
		return err_set(err, why.code, "%s", why.text);
	return 0;
}
