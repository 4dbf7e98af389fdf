/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/util.h"

bool sha256_is_plain;

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, unsigned int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t load(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static void store(unsigned char *p, uint32_t v)
{
	p[0] = (unsigned char)(v >> 24);
	p[1] = (unsigned char)(v >> 16);
	p[2] = (unsigned char)(v >> 8);
	p[3] = (unsigned char)v;
}

static uint32_t pick(uint32_t e, uint32_t f, uint32_t g)
{
	return g ^ (e & (f ^ g));
}

static uint32_t most(uint32_t a, uint32_t b, uint32_t c)
{
	return (a & b) | (c & (a | b));
}

/* One round; what are v[0] to v[7] on paper turns through the array. */
#define ROUND(i)                                                               \
	do {                                                                   \
		uint32_t e_ = v[(4 - (i)) & 7];                                \
		uint32_t a_ = v[(0 - (i)) & 7];                                \
		uint32_t one_ = v[(7 - (i)) & 7] +                             \
				(turn(e_, 6) ^ turn(e_, 11) ^ turn(e_, 25)) +  \
				pick(e_, v[(5 - (i)) & 7], v[(6 - (i)) & 7]) + \
				constants[t + (i)] + w[t + (i)];               \
		v[(3 - (i)) & 7] += one_;                                      \
		v[(7 - (i)) & 7] = one_ +                                      \
				   (turn(a_, 2) ^ turn(a_, 13) ^               \
				    turn(a_, 22)) +                            \
				   most(a_, v[(1 - (i)) & 7],                  \
					v[(2 - (i)) & 7]);                     \
	} while (0)

static void compress_plain(uint32_t state[8], const unsigned char *p, size_t n)
{
	uint32_t w[64];
	uint32_t v[8];

	for (; n > 0; n--, p += 64) {
		for (int i = 0; i < 16; i++)
			w[i] = load(p + 4 * i);
		for (int i = 16; i < 64; i++) {
			uint32_t a = w[i - 15];
			uint32_t b = w[i - 2];

			w[i] = w[i - 16] + w[i - 7] +
			       (turn(a, 7) ^ turn(a, 18) ^ a >> 3) +
			       (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
		}
		memcpy(v, state, sizeof(v));
		for (int t = 0; t < 64; t += 8) {
			ROUND(0);
			ROUND(1);
			ROUND(2);
			ROUND(3);
			ROUND(4);
			ROUND(5);
			ROUND(6);
			ROUND(7);
		}
		for (int i = 0; i < 8; i++)
			state[i] += v[i];
	}
}

#if defined(__x86_64__)
/*
 * The processor's own instructions, five times as fast. The state is kept as
 * they want it: ABEF in one register, CDGH in the other.
 */
__attribute__((target("sha,sse4.1,ssse3"))) static void compress_ni(
	uint32_t state[8], const unsigned char *p, size_t n)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL,
					    0x0405060700010203LL);
	__m128i low = _mm_loadu_si128((const __m128i *)state);
	__m128i high = _mm_loadu_si128((const __m128i *)(state + 4));
	__m128i one, two, m[4];

	low = _mm_shuffle_epi32(low, 0xb1);
	high = _mm_shuffle_epi32(high, 0x1b);
	one = _mm_alignr_epi8(low, high, 8);
	two = _mm_blend_epi16(high, low, 0xf0);
	for (; n > 0; n--, p += 64) {
		__m128i one_before = one;
		__m128i two_before = two;

		for (int i = 0; i < 4; i++)
			m[i] = _mm_shuffle_epi8(_mm_loadu_si128(
							(const __m128i *)p + i),
						swap);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i k = _mm_add_epi32(
				m[i & 3],
				_mm_loadu_si128((const __m128i *)constants +
						i));

			two = _mm_sha256rnds2_epu32(two, one, k);
			k = _mm_shuffle_epi32(k, 0x0e);
			one = _mm_sha256rnds2_epu32(one, two, k);
			if (i >= 12)
				continue;
			/* w[i + 4] takes the place of w[i]. */
			k = _mm_alignr_epi8(m[(i + 3) & 3], m[(i + 2) & 3], 4);
			m[i & 3] = _mm_sha256msg1_epu32(m[i & 3],
							m[(i + 1) & 3]);
			m[i & 3] = _mm_sha256msg2_epu32(_mm_add_epi32(m[i & 3],
								      k),
							m[(i + 3) & 3]);
		}
		one = _mm_add_epi32(one, one_before);
		two = _mm_add_epi32(two, two_before);
	}
	low = _mm_shuffle_epi32(one, 0x1b);
	high = _mm_shuffle_epi32(two, 0xb1);
	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

/*
 * In a virtual machine each question is a way out of it and back, as long as
 * the sums of a whole run: whoever has SHA has SSSE3 and SSE4 too, and that is
 * not asked.
 */
static bool has_instructions(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1U << 29);
}
#endif

bool sha256_has_instructions(void)
{
#if defined(__x86_64__)
	/* Asked once; two threads that ask at once get the same answer. */
	static int known;
	int how = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (how == 0) {
		how = has_instructions() ? 2 : 1;
		__atomic_store_n(&known, how, __ATOMIC_RELAXED);
	}
	return how == 2;
#else
	return false;
#endif
}

static void compress(uint32_t state[8], const unsigned char *p, size_t n)
{
#if defined(__x86_64__)
	if (!sha256_is_plain && sha256_has_instructions()) {
		compress_ni(state, p, n);
		return;
	}
#endif
	compress_plain(state, p, n);
}

void sha256_init(struct sha256 *s)
{
	static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372,
					   0xa54ff53a, 0x510e527f, 0x9b05688c,
					   0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->state, start, sizeof(start));
	s->len = 0;
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len > 0) {
		size_t at = s->len % 64;
		size_t n = MIN(len, 64 - at);

		if (at == 0 && len >= 64) {
			n = len - len % 64;
			compress(s->state, p, n / 64);
		} else {
			memcpy(s->block + at, p, n);
			if (at + n == 64)
				compress(s->state, s->block, 1);
		}
		s->len += n;
		p += n;
		len -= n;
	}
}

void sha256_end(struct sha256 *s, unsigned char ret[SHA256_SIZE])
{
	static const unsigned char pad[64] = { 0x80 };
	uint64_t bits = s->len * 8;
	unsigned char size[8];

	store(size, (uint32_t)(bits >> 32));
	store(size + 4, (uint32_t)bits);
	sha256_add(s, pad, 1 + (119 - s->len % 64) % 64);
	sha256_add(s, size, sizeof(size));
	for (int i = 0; i < 8; i++)
		store(ret + 4 * i, s->state[i]);
}
