/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: a pattern becomes a program, piece by piece as it is
 * read. Jumps are relative, so a piece can be moved when a quantifier behind
 * it needs an instruction before it; {m,n} reads its piece again as often as
 * it is wanted. regex_find() keeps the list of instructions that wait for the
 * next byte, each with the place where its match began, the leftmost first.
 */

#include "base/regex.h"

#include <ctype.h>
#include <string.h>

#include "base/util.h"

#define MAX_PROGRAM 2000
#define MAX_DEPTH   32
#define MAX_REPEAT  255

enum op {
	OP_SET,
	OP_SPLIT,
	OP_JUMP,
	OP_LINE,
	OP_END,
	OP_EDGE,
	OP_NO_EDGE,
	OP_MATCH
};

struct set {
	uint64_t bits[4];
};

struct inst {
	enum op op;
	int x, y; /* where to go on, from here */
	struct set set;
};

struct list {
	int *pc;
	size_t *start;
	unsigned int *seen; /* by pc: the round in which it was added */
	unsigned int round;
	int n;
};

struct regex {
	struct inst *prog;
	int n;
	struct set first; /* what a match can begin with */
	struct list now, next;
	int *stack;
	uint64_t steps; /* left for this text */
	bool is_test;   /* by regex_new_test() */
};

struct parse {
	const char *text, *p;
	struct regex *r;
	struct err *err;
	int depth;
	int pieces; /* read again, also those that make no instruction */
	bool any_case, dot_all;
};

static int alt(struct parse *s);

static void set_add(struct set *s, unsigned char c)
{
	s->bits[c >> 6] |= 1ULL << (c & 63);
}

static bool set_has(const struct set *s, unsigned char c)
{
	return s->bits[c >> 6] >> (c & 63) & 1;
}

static int fail(struct parse *s, const char *why)
{
	return err_set(s->err, EINVAL, "regex: %s, at character %zu", why,
		       (size_t)(s->p - s->text) + 1);
}

static int emit(struct parse *s, enum op op, int x, int y)
{
	struct regex *r = s->r;

	if (r->n == MAX_PROGRAM)
		return fail(s, "it is too large");
	r->prog[r->n++] = (struct inst){ .op = op, .x = x, .y = y };
	return 0;
}

static int emit_set(struct parse *s, const struct set *set)
{
	int err = emit(s, OP_SET, 1, 0);

	if (err == 0)
		s->r->prog[s->r->n - 1].set = *set;
	return err;
}

/* Makes room for one instruction before the piece that begins at `at`. */
static int insert(struct parse *s, int at, enum op op, int x, int y)
{
	struct inst *prog = s->r->prog;

	if (emit(s, op, x, y) < 0)
		return -EINVAL;
	memmove(prog + at + 1, prog + at,
		(size_t)(s->r->n - 1 - at) * sizeof(*prog));
	prog[at] = (struct inst){ .op = op, .x = x, .y = y };
	return 0;
}

/* A set that has characters beyond ASCII too: one of them is several bytes. */
static int emit_wide(struct parse *s, const struct set *ascii)
{
	struct set head = *ascii;
	struct set tail = { { 0 } };

	for (int c = 0x80; c < 0x100; c++)
		set_add(c < 0xc0 ? &tail : &head, (unsigned char)c);
	if (emit_set(s, &head) < 0 || emit(s, OP_SPLIT, 1, 3) < 0 ||
	    emit_set(s, &tail) < 0)
		return -EINVAL;
	return emit(s, OP_JUMP, -2, 0);
}

static void fold_case(struct set *s)
{
	for (int c = 'a'; c <= 'z'; c++) {
		unsigned char upper = (unsigned char)(c - 'a' + 'A');

		if (set_has(s, (unsigned char)c) || set_has(s, upper)) {
			set_add(s, (unsigned char)c);
			set_add(s, upper);
		}
	}
}

static bool is_word(unsigned char c)
{
	return isalnum(c) || c == '_';
}

static bool is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(unsigned char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* \d and its relatives; false: it is none. */
static bool add_class(struct set *s, char letter, bool *is_wide)
{
	bool (*is)(unsigned char) = NULL;

	switch (tolower((unsigned char)letter)) {
	case 'd':
		is = is_digit;
		break;
	case 'w':
		is = is_word;
		break;
	case 's':
		is = is_space;
		break;
	default:
		return false;
	}
	*is_wide |= isupper((unsigned char)letter) != 0;
	for (int c = 0; c < 0x80; c++)
		if (is((unsigned char)c) == !isupper((unsigned char)letter))
			set_add(s, (unsigned char)c);
	return true;
}

static int hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The character that an escape stands for; s->p is behind the backslash. */
static int escape(struct parse *s)
{
	static const char from[] = "tnrfv0", to[] = "\t\n\r\f\v";
	char c = *s->p;
	const char *at = c ? strchr(from, c) : NULL;

	if (!c)
		return fail(s, "nothing follows the backslash");
	if (c == 'x') {
		int high = hex(s->p[1]);
		int low = high < 0 ? -1 : hex(s->p[2]);

		if (low < 0 || high > 7)
			return fail(s, "\\x takes two digits, up to 7f");
		s->p += 3;
		return high * 16 + low;
	}
	if (c >= '1' && c <= '9')
		return fail(s, "a reference to a group is not supported, since "
			       "it can take for ever");
	if (isalnum((unsigned char)c) && (!at || c == '0'))
		return fail(s, "this escape is not known");
	s->p++;
	return at ? to[at - from] : (unsigned char)c;
}

static int class_item(struct parse *s, struct set *set, bool *is_wide)
{
	int from;
	int to;

	if ((unsigned char)*s->p >= 0x80)
		return fail(s, "a set takes ASCII only; write (a|b) instead");
	if (strncmp(s->p, "[:", 2) == 0)
		return fail(s, "write \\d, \\w, \\s or a range instead");
	if (*s->p == '\\') {
		s->p++;
		if (add_class(set, *s->p, is_wide)) {
			s->p++;
			return 0;
		}
		from = escape(s);
	} else {
		from = (unsigned char)*s->p++;
	}
	to = from;
	if (from >= 0 && *s->p == '-' && s->p[1] && s->p[1] != ']') {
		s->p++;
		to = (unsigned char)*s->p++;
		if (to == '\\')
			to = escape(s);
	}
	if (from < 0 || to < 0)
		return -EINVAL;
	if (to < from || to >= 0x80)
		return fail(s, "the range is the wrong way round");
	for (int c = from; c <= to; c++)
		set_add(set, (unsigned char)c);
	return 0;
}

static int class(struct parse *s)
{
	struct set set = { { 0 } };
	bool is_not = s->p[1] == '^';
	bool is_wide = false;
	const char *first;

	s->p += is_not ? 2 : 1;
	first = s->p;
	while (*s->p && (*s->p != ']' || s->p == first))
		if (class_item(s, &set, &is_wide) < 0)
			return -EINVAL;
	if (!*s->p)
		return fail(s, "a '[' is not closed");
	s->p++;
	if (s->any_case)
		fold_case(&set);
	for (int i = 0; is_not && i < 2; i++)
		set.bits[i] = ~set.bits[i];
	return is_wide != is_not ? emit_wide(s, &set) : emit_set(s, &set);
}

static int group(struct parse *s)
{
	if (++s->depth > MAX_DEPTH)
		return fail(s, "too many groups in each other");
	s->p++;
	if (*s->p == '?') {
		if (s->p[1] != ':')
			return fail(
				s,
				strchr("=!<", s->p[1]) && s->p[1]
					? "looking ahead or behind is not "
					  "supported"
					: "of (? only (?: is known here; flags "
					  "such as (?i) stand at the "
					  "beginning");
		s->p += 2;
	}
	if (alt(s) < 0)
		return -EINVAL;
	if (*s->p != ')')
		return fail(s, "a '(' is not closed");
	s->p++;
	s->depth--;
	return 0;
}

static int literal(struct parse *s, int c)
{
	struct set set = { { 0 } };

	set_add(&set, (unsigned char)c);
	if (s->any_case)
		fold_case(&set);
	return emit_set(s, &set);
}

static int escaped(struct parse *s)
{
	struct set set = { { 0 } };
	bool is_wide = false;
	int c;

	s->p++;
	if (*s->p == 'b' || *s->p == 'B')
		return emit(s, *s->p++ == 'b' ? OP_EDGE : OP_NO_EDGE, 1, 0);
	if (add_class(&set, *s->p, &is_wide)) {
		s->p++;
		return is_wide ? emit_wide(s, &set) : emit_set(s, &set);
	}
	c = escape(s);
	return c < 0 ? c : literal(s, c);
}

static int dot(struct parse *s)
{
	struct set set = { { ~0ULL, ~0ULL, 0, 0 } };

	if (!s->dot_all)
		set.bits[0] &= ~(1ULL << '\n');
	s->p++;
	return emit_wide(s, &set);
}

static int atom(struct parse *s)
{
	switch (*s->p) {
	case '(':
		return group(s);
	case '[':
		return class(s);
	case '.':
		return dot(s);
	case '\\':
		return escaped(s);
	case '^':
	case '$':
		return emit(s, *s->p++ == '^' ? OP_LINE : OP_END, 1, 0);
	case '*':
	case '+':
	case '?':
		return fail(s, "there is nothing to repeat");
	default:
		break;
	}
	if (literal(s, (unsigned char)*s->p++) < 0)
		return -EINVAL;
	/* The rest of a character of several bytes belongs to it. */
	while (((unsigned char)*s->p & 0xc0) == 0x80)
		if (literal(s, (unsigned char)*s->p++) < 0)
			return -EINVAL;
	return 0;
}

/* "{m}", "{m,}", "{m,n}"; *ret_max -1: no end. 0: it is none of them. */
static int braces(const char *p, int *ret_min, int *ret_max)
{
	const char *start = p++;
	int n[2] = { 0, 0 };
	bool has[2] = { false, false };
	int i = 0;

	for (; *p && *p != '}'; p++) {
		if (*p == ',' && i == 0) {
			i = 1;
		} else if (is_digit((unsigned char)*p) && n[i] < 1000) {
			n[i] = n[i] * 10 + (*p - '0');
			has[i] = true;
		} else {
			return 0;
		}
	}
	if (!*p || !has[0])
		return 0;
	*ret_min = n[0];
	*ret_max = i == 0 ? n[0] : has[1] ? n[1] : -1;
	return (int)(p + 1 - start);
}

/* The piece at prog[at] once more, from its text. */
static int again(struct parse *s, const char *from)
{
	const char *back = s->p;
	int err;

	if (++s->pieces > MAX_PROGRAM)
		return fail(s, "it is too large");
	s->p = from;
	err = atom(s);
	s->p = err < 0 ? s->p : back;
	return err;
}

static int star(struct parse *s, int at)
{
	int len = s->r->n - at;

	if (insert(s, at, OP_SPLIT, 1, len + 2) < 0)
		return -EINVAL;
	return emit(s, OP_JUMP, -len - 1, 0);
}

static int repeat(struct parse *s, const char *from, int at, int min, int max)
{
	if (min > MAX_REPEAT || max > MAX_REPEAT || (max >= 0 && max < min) ||
	    max == 0)
		return fail(s, "a repetition is from 1 to 255 times, the "
			       "smaller number first");
	if (min == 0 && max < 0)
		return star(s, at);
	if (min == 0 && insert(s, at, OP_SPLIT, 1, s->r->n - at + 1) < 0)
		return -EINVAL;
	for (int i = 1; i < min; i++)
		if (again(s, from) < 0)
			return -EINVAL;
	if (max < 0) {
		at = s->r->n;
		return again(s, from) < 0 ? -EINVAL : star(s, at);
	}
	for (int i = MAX(min, 1); i < max; i++) {
		at = s->r->n;
		if (again(s, from) < 0 ||
		    insert(s, at, OP_SPLIT, 1, s->r->n - at + 1) < 0)
			return -EINVAL;
	}
	return 0;
}

static int quantifier(struct parse *s, const char *from, int at)
{
	int min = *s->p == '+';
	int max = *s->p == '?' ? 1 : -1;
	int len = 1;

	if (*s->p == '{')
		len = braces(s->p, &min, &max);
	else if (!*s->p || !strchr("*+?", *s->p))
		return 0;
	if (len == 0)
		return 0;
	s->p += len;
	if (s->r->is_test && *s->p == '?')
		s->p++;
	if (*s->p == '?' || *s->p == '+' || *s->p == '*')
		return fail(s, "lazy, possessive and double quantifiers are "
			       "not supported; write [^x]* and the like");
	return repeat(s, from, at, min, max);
}

static int sequence(struct parse *s)
{
	while (*s->p && *s->p != '|' && *s->p != ')') {
		const char *from = s->p;
		int at = s->r->n;

		if (atom(s) < 0 || quantifier(s, from, at) < 0)
			return -EINVAL;
	}
	return 0;
}

static int alt(struct parse *s)
{
	int at = s->r->n;
	int len;

	if (sequence(s) < 0)
		return -EINVAL;
	if (*s->p != '|')
		return 0;
	s->p++;
	len = s->r->n - at;
	if (insert(s, at, OP_SPLIT, 1, len + 2) < 0 ||
	    emit(s, OP_JUMP, 0, 0) < 0)
		return -EINVAL;
	at = s->r->n - 1;
	if (alt(s) < 0)
		return -EINVAL;
	s->r->prog[at].x = s->r->n - at;
	return 0;
}

/* "(?i)" and "(?s)" at the beginning; m is always so. */
static int flags(struct parse *s)
{
	const char *p = s->p;

	if (strncmp(p, "(?", 2) != 0 || !p[2] || !strchr("ims", p[2]))
		return 0;
	for (p += 2; *p && strchr("ims", *p); p++) {
		s->any_case |= *p == 'i';
		s->dot_all |= *p == 's';
	}
	s->p = p;
	if (*p != ')')
		return fail(s, "of flags, i, m and s are known");
	s->p++;
	return 0;
}

static int list_init(struct list *l, int n)
{
	l->pc = calloc((size_t)n, sizeof(*l->pc));
	l->start = calloc((size_t)n, sizeof(*l->start));
	l->seen = calloc((size_t)n, sizeof(*l->seen));
	return l->pc && l->start && l->seen ? 0 : -ENOMEM;
}

static void list_done(struct list *l)
{
	free(l->pc);
	free(l->start);
	free(l->seen);
}

static void list_clear(struct list *l, int n)
{
	l->n = 0;
	if (++l->round == 0) { /* once in 4 G bytes */
		memset(l->seen, 0, (size_t)n * sizeof(*l->seen));
		l->round = 1;
	}
}

struct where {
	const char *text;
	size_t len, at;
};

static bool is_edge(const struct where *w)
{
	bool before = w->at > 0 && is_word((unsigned char)w->text[w->at - 1]);
	bool after = w->at < w->len && is_word((unsigned char)w->text[w->at]);

	return before != after;
}

/* Whether an instruction that takes no byte lets us through; NULL: always. */
static bool may_pass(const struct regex *r, enum op op, const struct where *w)
{
	if (!w || op == OP_SPLIT || op == OP_JUMP)
		return true;
	if (op == OP_LINE)
		return w->at == 0 ||
		       (!r->is_test && w->text[w->at - 1] == '\n');
	if (op == OP_END)
		return w->at == w->len ||
		       (!r->is_test && w->text[w->at] == '\n');
	return is_edge(w) == (op == OP_EDGE);
}

/* Adds pc and all that is reached from it without a byte; whether it ends. */
static bool follow(struct regex *r, struct list *l, int pc, size_t start,
		   const struct where *w)
{
	bool is_match = false;
	int n = 0;

	r->stack[n++] = pc;
	while (n > 0) {
		const struct inst *i = &r->prog[r->stack[--n]];

		pc = r->stack[n];
		if (l->seen[pc] == l->round)
			continue;
		l->seen[pc] = l->round;
		if (i->op == OP_MATCH) {
			is_match = true;
		} else if (i->op == OP_SET) {
			l->start[l->n] = start;
			l->pc[l->n++] = pc;
		} else if (may_pass(r, i->op, w)) {
			if (i->op == OP_SPLIT)
				r->stack[n++] = pc + i->y;
			r->stack[n++] = pc + i->x;
		}
	}
	return is_match;
}

/* What a match may begin with; -EINVAL where it may be empty. */
static int find_first(struct parse *s)
{
	struct regex *r = s->r;

	list_clear(&r->now, r->n);
	if (follow(r, &r->now, 0, 0, NULL))
		return fail(s, "it matches the empty text, and so everything");
	for (int i = 0; i < r->now.n; i++)
		for (int k = 0; k < 4; k++)
			r->first.bits[k] |= r->prog[r->now.pc[i]].set.bits[k];
	return 0;
}

static int compile(struct parse *s)
{
	struct regex *r = s->r;

	if (strlen(s->text) > REGEX_PATTERN)
		return fail(s, "it is longer than 1024 bytes");
	r->prog = calloc(MAX_PROGRAM, sizeof(*r->prog));
	if (!r->prog)
		return err_set(s->err, ENOMEM, "out of memory");
	if (flags(s) < 0 || alt(s) < 0)
		return -EINVAL;
	if (*s->p)
		return fail(s, "a ')' is too many");
	if (emit(s, OP_MATCH, 0, 0) < 0)
		return -EINVAL;
	r->stack = calloc(2 * (size_t)r->n + 2, sizeof(*r->stack));
	if (!r->stack || list_init(&r->now, r->n) < 0 ||
	    list_init(&r->next, r->n) < 0)
		return err_set(s->err, ENOMEM, "out of memory");
	return r->is_test ? 0 : find_first(s);
}

static int make(const char *pattern, bool is_test, struct regex **ret,
		struct err *err)
{
	struct regex *r = calloc(1, sizeof(*r));
	struct parse s = { .text = pattern, .p = pattern, .r = r, .err = err };
	int code;

	if (!r)
		return err_set(err, ENOMEM, "out of memory");
	r->is_test = is_test;
	code = compile(&s);
	if (code < 0) {
		regex_free(r);
		return code;
	}
	regex_renew(r);
	*ret = r;
	return 0;
}

void regex_renew(struct regex *r)
{
	r->steps = REGEX_STEPS;
}

int regex_new(const char *pattern, struct regex **ret, struct err *err)
{
	return make(pattern, false, ret, err);
}

int regex_new_test(const char *pattern, struct regex **ret, struct err *err)
{
	return make(pattern, true, ret, err);
}

void regex_free(struct regex *r)
{
	if (!r)
		return;
	list_done(&r->now);
	list_done(&r->next);
	free(r->stack);
	free(r->prog);
	free(r);
}

struct best {
	bool is_there;
	size_t from, to;
};

/* Takes a byte with each that waits for it. */
static void step(struct regex *r, struct where *w, struct best *b)
{
	unsigned char c = (unsigned char)w->text[w->at++];
	struct list done = r->now;

	list_clear(&r->next, r->n);
	for (int i = 0; i < r->now.n; i++) {
		int pc = r->now.pc[i];
		size_t start = r->now.start[i];

		if (b->is_there && start > b->from)
			break;
		if (set_has(&r->prog[pc].set, c) &&
		    follow(r, &r->next, pc + 1, start, w))
			*b = (struct best){ true, start, w->at };
	}
	r->now = r->next;
	r->next = done;
}

/* Where nothing has begun yet, only some bytes are worth a look. */
static bool skip_to_first(const struct regex *r, struct where *w)
{
	while (w->at < w->len &&
	       !set_has(&r->first, (unsigned char)w->text[w->at]))
		w->at++;
	return w->at < w->len;
}

int regex_find(struct regex *r, const char *text, size_t len, size_t at,
	       size_t *ret_from, size_t *ret_to)
{
	struct where w = { text, len, at };
	struct best b = { 0 };

	list_clear(&r->now, r->n);
	while (w.at < len) {
		if (r->now.n == 0) {
			if (b.is_there || !skip_to_first(r, &w))
				break;
			list_clear(&r->now, r->n);
		}
		if (!b.is_there &&
		    set_has(&r->first, (unsigned char)text[w.at]))
			(void)follow(r, &r->now, 0, w.at, &w);
		if (r->steps < (uint64_t)r->now.n + 1)
			return -E2BIG;
		r->steps -= (uint64_t)r->now.n + 1;
		step(r, &w, &b);
	}
	*ret_from = b.from;
	*ret_to = b.to;
	return b.is_there;
}

int regex_test(struct regex *r, const char *text, size_t len)
{
	struct where w = { text, len, 0 };
	struct best b = { 0 };

	r->steps = REGEX_STEPS;
	list_clear(&r->now, r->n);
	for (;;) {
		if (follow(r, &r->now, 0, w.at, &w))
			return 1;
		if (w.at == len)
			return 0;
		if (r->steps < (uint64_t)r->now.n + 1)
			return -E2BIG;
		r->steps -= (uint64_t)r->now.n + 1;
		step(r, &w, &b);
		if (b.is_there)
			return 1;
	}
}
