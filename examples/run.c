/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a piece of Python inside a cordon: cc run.c $(pkg-config ...) */
#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	const char *code = "import socket\n"
			   "print('six times seven is', 6 * 7)\n"
			   "socket.create_connection(('192.0.2.1', 80))\n";
	struct cordon_error err;
	struct cordon *c = cordon_open(&err);
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_result *r = NULL;
	int failed = 1;

	if (c && s && cordon_spec_set(s, "timeout", "10s", &err) == 0 &&
	    cordon_spec_set(s, "memory", "128m", &err) == 0 &&
	    cordon_spec_code(s, "python", code, strlen(code), NULL, &err) ==
		    0 &&
	    cordon_run(c, s, &r, &err) == 0) {
		printf("%s", cordon_result_stdout(r, NULL));
		printf("status %s, cause %s, exit code %d\n",
		       cordon_result_status(r), cordon_result_cause(r),
		       cordon_result_exit_code(r));
		failed = 0;
	} else {
		fprintf(stderr, "cordon: %s\n", err.text);
	}
	cordon_result_free(r);
	cordon_spec_free(s);
	cordon_close(c);
	return failed;
}
