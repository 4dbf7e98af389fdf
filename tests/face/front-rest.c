/* SPDX-License-Identifier: Apache-2.0 */
/* Until the manager has them. */
#include "front/front.h"
#include "front/exec.h"
#define WEAK __attribute__((weak))
#define NONE(call) { call; return NULL; }
WEAK uv_loop_t *manager_loop(const struct manager *m) { return m->loop; }
WEAK const struct wire_outcome *box_outcome(const struct box *b) { return b->has_outcome ? &b->outcome : NULL; }
WEAK const struct wire_outcome *exec_outcome(const struct exec *e) { return e->state == EXEC_ENDED ? &e->outcome : NULL; }
WEAK struct call *files_stat(struct box *b, const char *p, file_stat_fn *d, void *a) { (void)b;(void)p;(void)d;(void)a; return NULL; }
WEAK struct call *files_read(struct box *b, const char *p, const struct sink *s, struct feed **f, file_stat_fn *d, void *a) { (void)b;(void)p;(void)s;(void)f;(void)d;(void)a; return NULL; }
WEAK struct files_writer *files_write(struct box *b, const char *p, bool n, mgr_done_fn *d, void *a, struct err *e) { (void)b;(void)p;(void)n;(void)d;(void)a; (void)err_set(e, MGR_UNSUPPORTED, "not yet"); return NULL; }
WEAK size_t files_writer_add(struct files_writer *w, const char *d, size_t l) { (void)w;(void)d; return l; }
WEAK void files_writer_on_ready(struct files_writer *w, void (*r)(void *)) { (void)w;(void)r; }
WEAK void files_writer_end(struct files_writer *w) { (void)w; }
WEAK void files_writer_drop(struct files_writer *w) { (void)w; }
WEAK struct call *files_changes(struct box *b, files_changed_fn *d, void *a) { (void)b;(void)d;(void)a; return NULL; }
WEAK struct call *box_usage(struct box *b, box_usage_fn *d, void *a) { (void)b;(void)d;(void)a; return NULL; }
WEAK struct call *box_top(struct box *b, box_top_fn *d, void *a) { (void)b;(void)d;(void)a; return NULL; }
WEAK struct image_run *image_run(struct manager *m, const struct peer *p, const char *const *a, bool i, const struct sink *s, mgr_done_fn *d, void *g, struct err *e) { (void)m;(void)p;(void)a;(void)i;(void)s;(void)d;(void)g; (void)err_set(e, MGR_UNSUPPORTED, "not yet"); return NULL; }
WEAK size_t image_run_add(struct image_run *r, const char *d, size_t l) { (void)r;(void)d; return l; }
WEAK void image_run_on_ready(struct image_run *r, void (*f)(void *)) { (void)r;(void)f; }
WEAK void image_run_end_input(struct image_run *r) { (void)r; }
WEAK void image_run_ready(struct image_run *r) { (void)r; }
WEAK void image_run_drop(struct image_run *r) { (void)r; }
