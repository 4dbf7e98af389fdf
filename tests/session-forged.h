/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Specs as nobody prepares them: what a front that was taken over could send.
 * Whatever becomes of the box, on the host nothing is made, and nothing of it
 * is seen. Part of session.c.
 */

struct forged {
	uint8_t kind;
	const char *path;
	const char *data;
};

static size_t forge_record(char *to, const struct forged *f)
{
	const struct wire_record r = { .kind = f->kind,
				       .mode = 0755,
				       .path_len = (uint32_t)strlen(f->path),
				       .data_len = strlen(f->data) };

	memcpy(to, &r, sizeof(r));
	memcpy(to + sizeof(r), f->path, r.path_len + 1);
	memcpy(to + sizeof(r) + r.path_len + 1, f->data, r.data_len);
	return (sizeof(r) + r.path_len + 1 + r.data_len + 7) & ~7ULL;
}

/* The old ones to `at`, but for the one that the first of the new replaces. */
static size_t copy_records(struct wire_box *box, size_t at, const char *but)
{
	char *base = (char *)box;
	uint64_t off = box->records.off;
	uint64_t n = box->records.count;

	box->records.off = at;
	for (uint64_t i = 0; i < n; i++) {
		struct wire_record r;
		size_t len;

		memcpy(&r, base + off, sizeof(r));
		len = (sizeof(r) + r.path_len + 1 + r.data_len + 7) & ~7ULL;
		if (strcmp(base + off + sizeof(r), but) == 0) {
			box->records.count--;
		} else {
			memcpy(base + at, base + off, len);
			at += len;
		}
		off += len;
	}
	return at;
}

/* /usr once more, there; and of the two that one has the layer for changes. */
static void forge_mount(struct wire_box *box, uint32_t target, uint8_t flags)
{
	for (uint32_t i = 0; i < box->n_mounts; i++)
		if (strcmp((char *)box + box->mounts[i].target, "/usr") == 0) {
			struct wire_mount *m = &box->mounts[box->n_mounts++];

			*m = box->mounts[i];
			m->target = target;
			m->flags |= flags;
			if (flags & WIRE_MNT_OVERLAY)
				box->mounts[i]
					.flags &= (uint8_t)~WIRE_MNT_OVERLAY;
			return;
		}
}

/* Up to three records and a mount more than an ordinary box has. */
static struct box_s *open_forged(const struct forged *add, const char *target,
				 uint8_t flags)
{
	static const struct session_events events = { on_ready, on_ended };
	struct prepared p = prepare_for(
		flags & WIRE_MNT_OVERLAY ? "read-only=false" : "");
	struct session_want want = { .peer = NO_FD };
	struct box_s *b = calloc(1, sizeof(*b));
	struct err err = { 0 };
	struct stat st;
	struct wire_box *box;
	size_t at;

	CHECK_INT(fstat(p.box, &st), 0);
	box = calloc(2, (size_t)st.st_size + 8192);
	CHECK_INT(pread(p.box, box, (size_t)st.st_size, 0), st.st_size);
	at = copy_records(box, ((size_t)st.st_size + 7) & ~7ULL, add->path);
	for (int i = 0; i < 3 && add[i].path; i++, box->records.count++)
		at += forge_record((char *)box + at, &add[i]);
	if (target) {
		memcpy((char *)box + at, target, strlen(target) + 1);
		forge_mount(box, (uint32_t)at, flags);
		at = (at + strlen(target) + 8) & ~7ULL;
	}
	box->blob.size = at;
	want.box = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK_INT(io_write_all(want.box, box, at), 0);
	CHECK_INT(fcntl(want.box, F_ADD_SEALS,
			F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW |
				F_SEAL_WRITE),
		  0);
	b->s = session_open(all, &want, &events, b, &err);
	CHECK(b->s);
	CHECK(WAIT_FOR(b->ready || b->ended, 10000));
	(void)close(want.box);
	free(box);
	prepared_done(&p);
	return b;
}

/* A directory in which everybody may make files, and a file in it. */
static char forged_dir[64];

static void make_forged_dir(void)
{
	char path[80];

	(void)strcpy(forged_dir, "/tmp/cordon-forged-XXXXXX");
	CHECK(mkdtemp(forged_dir));
	CHECK_INT(chmod(forged_dir, 0777), 0);
	(void)snprintf(path, sizeof(path), "%s/secret", forged_dir);
	(void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	CHECK_INT(io_write_file(AT_FDCWD, path, "of the host"), 0);
}

/* Whether only the file is in it. */
static bool is_untouched(void)
{
	DIR *d = opendir(forged_dir);
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n == 3;
}

static void remove_forged_dir(void)
{
	char line[120];

	(void)snprintf(line, sizeof(line), "rm -rf %s", forged_dir);
	(void)!system(line);
}

/* `path` with the directory's name instead of '@'. */
static const char *forged_path(const char *path)
{
	static char text[4][256];
	static unsigned int turn;
	char *to = text[turn++ % 4];
	const char *at = strchr(path, '@');

	if (at)
		(void)snprintf(to, 256, "%.*s%s%s", (int)(at - path), path,
			       forged_dir, at + 1);
	else
		(void)snprintf(to, 256, "%s", path);
	return to;
}

TEST(s95_forged_records_make_nothing_on_the_host)
{
	static const struct {
		const char *link;
		const char *to;
		uint8_t kind;
		const char *path;
	} cases[] = {
		{ "/x", ".", WIRE_FILE, "/..@/made" },
		{ "/x", ".", WIRE_DIR, "/etc/../..@/made" },
		{ "/x", ".", WIRE_LINK, "/etc/../..@/made" },
		{ "/l", "..", WIRE_FILE, "/l@/made" },
		{ "/l", "..", WIRE_DIR, "/l@/made" },
		{ "/l", "..", WIRE_LINK, "/l@/made" },
		{ "/l", "..", WIRE_FILE, "/l@/made/below" },
		{ "/etc/l", "../..", WIRE_FILE, "/etc/l@/made" },
		{ "/l", "..@/made", WIRE_FILE, "/l" },
		{ "/l", "/.proc/self/fd/4", WIRE_FILE, "/l@/made" },
		{ "/x", ".", WIRE_FILE, "/.proc/self/fd/4@/made" },
		{ "/x", ".", WIRE_FILE, "/.proc/self/fd/5@/made" },
		{ "/x", ".", WIRE_FILE, "/.proc/self/fd/6@/made" },
		{ "/x", ".", WIRE_FILE, "relative" },
		{ "/x", ".", WIRE_DIR, "/trailing/" },
	};

	begin();
	make_forged_dir();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct forged add[3] = {
			{ WIRE_LINK, cases[i].link, forged_path(cases[i].to) },
			{ cases[i].kind, forged_path(cases[i].path), "x" },
		};
		struct box_s *b = open_forged(add, NULL, 0);

		CHECK(b->ended && b->outcome.err.code);
		CHECK(is_untouched());
		if (!b->ended || !is_untouched())
			printf("# case %zu\n", i);
	}
	remove_forged_dir();
	stop_keeper();
}

static void look_in_forged(struct box_s *b, const char *path)
{
	char line[300];
	struct ran *r;

	(void)snprintf(line, sizeof(line), "cat '%s'", forged_path(path));
	r = run_sh(b, line);
	CHECK(!strstr(r->out, "of the host"));
	if (strstr(r->out, "of the host"))
		printf("# '%s' shows it\n", path);
}

TEST(s96_forged_mounts_show_nothing_of_the_host)
{
	static const struct {
		const char *link;
		const char *to;
		const char *target;
		uint8_t flags;
		bool refused;
		const char *look;
	} cases[] = {
		{ "/l", "..", "/a:/l@:/b", WIRE_MNT_OVERLAY, true, NULL },
		{ "/l", "..", "/l@,x", WIRE_MNT_OVERLAY, true, NULL },
		{ "/l", "..", "/l\\@", WIRE_MNT_OVERLAY, true, NULL },
		{ "/l", "..", "/..@", 0, true, NULL },
		{ "/l", "..", "/etc/../..@", 0, true, NULL },
		{ "/l", "..", "tmp", 0, true, NULL },
		{ "/l", "..", "", 0, true, NULL },
		{ "/.own/l", "..", "/l@", WIRE_MNT_OVERLAY, true, NULL },
		{ "/.own/l", "..", "/new/dir", WIRE_MNT_OVERLAY, false,
		  "/l@/secret" },
		{ "/l", "..", "/l@/made", 0, false, "@/secret" },
		{ "/.own", "..@", "/a", WIRE_MNT_OVERLAY, true, NULL },
		{ "/.upper", "..@", "/a", WIRE_MNT_OVERLAY, true, NULL },
		{ "/.root", "..@", "/a", WIRE_MNT_OVERLAY, true, NULL },
		{ "/proc/cpuinfo", "..@/secret", "/a", 0, false,
		  "/proc/cpuinfo" },
		{ "/proc/stat", "../../..@/secret", "/a", 0, false,
		  "/proc/stat" },
	};

	begin();
	make_forged_dir();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct forged add[3] = {
			{ WIRE_LINK, cases[i].link, forged_path(cases[i].to) },
			{ WIRE_DIR, "/a", "" },
			{ WIRE_DIR, "/b", "" },
		};
		struct box_s *b = open_forged(add, forged_path(cases[i].target),
					      cases[i].flags);

		CHECK(b->ended || !cases[i].refused);
		if (b->ready && cases[i].look)
			look_in_forged(b, cases[i].look);
		printf("# case %zu: %s\n", i,
		       b->ended ? b->outcome.err.text : "ready");
		if (b->ready)
			close_one(b, false);
		CHECK(is_untouched());
	}
	remove_forged_dir();
	stop_keeper();
}
