/* SPDX-License-Identifier: Apache-2.0 */
/* A box that stays, in the daemon (cordon serve). */
#include <cordon/daemon.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cordon_error err;

static int run(struct cordon *c, const char *box, const char *code)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_result *r = NULL;
	int e = -1;

	if (s && cordon_spec_set(s, "timeout", "10s", &err) == 0 &&
	    cordon_spec_code(s, "python", code, strlen(code), NULL, &err) == 0)
		e = cordon_exec(c, box, s, &r, &err);
	if (e == 0)
		printf("%s%s, exit code %d\n", cordon_result_stdout(r, NULL),
		       cordon_result_cause(r), cordon_result_exit_code(r));
	cordon_result_free(r);
	cordon_spec_free(s);
	return e;
}

static int use_box(struct cordon *c, const char *box)
{
	void *data;
	size_t len;

	if (cordon_box_start(c, box, &err) < 0 ||
	    cordon_box_put(c, box, "/workspace/in", "6*7", 3, 0444, &err) < 0 ||
	    run(c, box, "open('out', 'w').write(open('in').read())") < 0 ||
	    run(c, box, "print(eval(open('out').read()))") < 0 ||
	    cordon_box_get(c, box, "/workspace/out", &data, &len, &err) < 0)
		return -1;
	printf("%zu bytes: %s\n", len, (char *)data);
	free(data);
	return 0;
}

int main(void)
{
	struct cordon *c = cordon_connect(NULL, &err);
	struct cordon_spec *s = cordon_spec_new();
	char box[CORDON_ID_SIZE] = "";
	int e = -1;

	if (c && s && cordon_spec_set(s, "memory", "128m", &err) == 0 &&
	    cordon_box_create(c, s, box, &err) == 0)
		e = use_box(c, box);
	if (e < 0)
		fprintf(stderr, "cordon: %s\n", err.text);
	if (c)
		cordon_box_remove(c, box, 1, NULL);
	cordon_spec_free(s);
	cordon_close(c);
	return e < 0;
}
