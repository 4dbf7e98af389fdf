/* SPDX-License-Identifier: Apache-2.0 */
#include "front/doc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/util.h"

json_t *doc_parse(const char *text, size_t len, struct err *err)
{
	json_error_t why;
	json_t *o;

	if (len > DOC_MAX) {
		(void)err_set(err, E2BIG, "the document is too long");
		return NULL;
	}
	o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (o && json_is_object(o))
		return o;
	json_decref(o);
	(void)err_set(err, EINVAL, "%.200s", o ? "not an object" : why.text);
	return NULL;
}

char *doc_read(int fd, struct err *err)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(fd, &st) < 0 || st.st_size < 0 ||
	    (uint64_t)st.st_size > DOC_MAX) {
		(void)err_set(err, E2BIG, "the document is too long");
		return NULL;
	}
	text = malloc((size_t)st.st_size + 1);
	if (!text) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	if (lseek(fd, 0, SEEK_SET) == 0 &&
	    (n = io_read_full(fd, text, (size_t)st.st_size)) >= 0) {
		text[n] = '\0';
		return text;
	}
	(void)err_errno(err, errno, "read a document");
	free(text);
	return NULL;
}

int doc_seal(const char *text, size_t len)
{
	_cleanup_fd_ int fd = memfd_create("cordon",
					   MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text, len);
	if (r == 0)
		r = io_seal(fd);
	return r < 0 ? r : take_fd(&fd);
}

bool doc_put(json_t *o, const char *name, json_t *v)
{
	return json_object_set_new(o, name, v) == 0;
}

json_t *doc_string(const char *text)
{
	size_t len = text ? strlen(text) : 0;
	struct buf out;
	json_t *s;

	if (len == 0 || utf8_check(text, len))
		return json_string(len ? text : "");
	buf_init(&out, 3 * len);
	utf8_repair(&out, text, len);
	s = out.error ? NULL : json_stringn_nocheck(out.data, out.len);
	buf_done(&out);
	return s;
}

const char *doc_str(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

int64_t doc_int(const json_t *o, const char *name, int64_t fallback)
{
	const json_t *v = json_object_get(o, name);

	return json_is_integer(v) ? json_integer_value(v) : fallback;
}

bool doc_bool(const json_t *o, const char *name)
{
	return json_is_true(json_object_get(o, name));
}

static int add_text(const char *text, size_t len, void *arg)
{
	return buf_add(arg, text, len) < 0 ? -1 : 0;
}

char *doc_text(const json_t *v)
{
	struct buf out;

	buf_init(&out, 2 * DOC_MAX);
	if (!v ||
	    json_dump_callback(v, add_text, &out,
			       JSON_COMPACT | JSON_ENCODE_ANY) < 0 ||
	    out.error) {
		buf_done(&out);
		return NULL;
	}
	return buf_take(&out);
}

char *doc_dump(const json_t *o, const char *name)
{
	return doc_text(json_object_get(o, name));
}
