/* SPDX-License-Identifier: Apache-2.0 */
#include "client/frames.h"

#include <errno.h>

#include "base/util.h"

int frames_take(struct frames *f, const char *data, size_t len,
		int (*put)(void *arg, int stream, const char *data, size_t len),
		void *arg)
{
	while (len > 0) {
		size_t n;
		int r;

		if (f->left == 0) {
			f->head[f->have++] = (unsigned char)*data++;
			len--;
			if (f->have < sizeof(f->head))
				continue;
			f->have = 0;
			f->stream = f->head[0];
			f->left = (uint32_t)f->head[4] << 24 |
				  (uint32_t)f->head[5] << 16 |
				  (uint32_t)f->head[6] << 8 | f->head[7];
			if ((f->stream != 1 && f->stream != 2) || f->head[1] ||
			    f->head[2] || f->head[3])
				return -EPROTO;
			continue;
		}
		n = MIN(len, f->left);
		r = put(arg, f->stream, data, n);
		if (r < 0)
			return r;
		data += n;
		len -= n;
		f->left -= (uint32_t)n;
	}
	return 0;
}
