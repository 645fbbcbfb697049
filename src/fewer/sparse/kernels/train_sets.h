/* The sparse products compiled for every element type, index width and instruction set, chosen at run time. */

#define PASTE_(a, b, c, d) a##_##b##_##c##_##d
#define PASTE(a, b, c, d) PASTE_(a, b, c, d)
#define NAME(x) PASTE(x, TYPE, KIND, SET)

/* Totals of vectors one by one: right everywhere, fast nowhere. */
#define REDUCE_PLAIN(totals, sums)                                                                          \
    for (int j = 0; j < GROUP; j++) {                                                                       \
        REAL total = 0;                                                                                     \
        for (int lane = 0; lane < LANES; lane++) total += sums[j][lane];                                    \
        totals[j] = total;                                                                                  \
    }

typedef float float_portable __attribute__((vector_size(16), may_alias));
typedef int32_t float_portable_mask __attribute__((vector_size(16), may_alias));
typedef double double_portable __attribute__((vector_size(16), may_alias));
typedef int64_t double_portable_mask __attribute__((vector_size(16), may_alias));

#define SET portable
#define TARGET
#define MOST 4
#define SPLAT(s) ((VEC){0} + (s))
#define FMA(a, b, c) ((a) * (b) + (c))
#define REDUCE REDUCE_PLAIN
#define GROUP 4
#define TYPE float
#define VEC float_portable
#define MASK float_portable_mask
#include "train_kinds.h"
#define TYPE double
#define VEC double_portable
#define MASK double_portable_mask
#include "train_kinds.h"
#undef GROUP
#undef REDUCE
#undef FMA
#undef SPLAT
#undef TARGET
#undef SET

#if defined(__x86_64__)
#include <immintrin.h>

typedef float float_avx2 __attribute__((vector_size(32), may_alias));
typedef int32_t float_avx2_mask __attribute__((vector_size(32), may_alias));
typedef double double_avx2 __attribute__((vector_size(32), may_alias));
typedef int64_t double_avx2_mask __attribute__((vector_size(32), may_alias));

#define SET avx2
#define TARGET __attribute__((target("avx2,fma")))
#define GROUP 4
#define TYPE float
#define VEC float_avx2
#define MASK float_avx2_mask
#define SPLAT(s) ((VEC)_mm256_set1_ps(s))
#define FMA(a, b, c) ((VEC)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define REDUCE reduce_float_avx2
/* Four vectors to four totals: two rounds of pairwise sums, then the halves. */
static inline TARGET __attribute__((always_inline)) void reduce_float_avx2(float *totals, const VEC *sums) {
    const __m256 pairs = _mm256_hadd_ps((__m256)sums[0], (__m256)sums[1]);
    const __m256 others = _mm256_hadd_ps((__m256)sums[2], (__m256)sums[3]);
    const __m256 quarters = _mm256_hadd_ps(pairs, others);
    _mm_store_ps(totals, _mm_add_ps(_mm256_castps256_ps128(quarters), _mm256_extractf128_ps(quarters, 1)));
}
#include "train_kinds.h"
#undef SPLAT
#undef FMA
#undef REDUCE
#define TYPE double
#define VEC double_avx2
#define MASK double_avx2_mask
#define SPLAT(s) ((VEC)_mm256_set1_pd(s))
#define FMA(a, b, c) ((VEC)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define REDUCE REDUCE_PLAIN
#include "train_kinds.h"
#undef SPLAT
#undef FMA
#undef REDUCE
#undef GROUP
#undef TARGET
#undef SET

typedef float float_avx512 __attribute__((vector_size(64), may_alias));
typedef int32_t float_avx512_mask __attribute__((vector_size(64), may_alias));
typedef double double_avx512 __attribute__((vector_size(64), may_alias));
typedef int64_t double_avx512_mask __attribute__((vector_size(64), may_alias));

#undef MOST
#define MOST 7
#define SET avx512
#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define TYPE float
#define GROUP 16
#define VEC float_avx512
#define MASK float_avx512_mask
#define SPLAT(s) ((VEC)_mm512_set1_ps(s))
#define FMA(a, b, c) ((VEC)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define REDUCE reduce_float_avx512
/* Sixteen vectors to sixteen totals by four rounds of interleaving and adding, 45 instructions in all. */
static inline TARGET __attribute__((always_inline)) void reduce_float_avx512(float *totals, const VEC *sums) {
    __m512 eight[8], four[4], two[2];
    for (int j = 0; j < 8; j++) {
        const __m512 a = (__m512)sums[2 * j], b = (__m512)sums[2 * j + 1];
        eight[j] = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    }
    for (int j = 0; j < 4; j++) {
        const __m512d a = _mm512_castps_pd(eight[2 * j]), b = _mm512_castps_pd(eight[2 * j + 1]);
        four[j] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                                _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    for (int j = 0; j < 2; j++)
        two[j] = _mm512_add_ps(_mm512_shuffle_f32x4(four[2 * j], four[2 * j + 1], 0x88),
                               _mm512_shuffle_f32x4(four[2 * j], four[2 * j + 1], 0xdd));
    _mm512_store_ps(totals, _mm512_add_ps(_mm512_shuffle_f32x4(two[0], two[1], 0x88),
                                          _mm512_shuffle_f32x4(two[0], two[1], 0xdd)));
}
#include "train_kinds.h"
#undef SPLAT
#undef FMA
#undef REDUCE
#undef GROUP
#define TYPE double
#define GROUP 4
#define VEC double_avx512
#define MASK double_avx512_mask
#define SPLAT(s) ((VEC)_mm512_set1_pd(s))
#define FMA(a, b, c) ((VEC)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define REDUCE REDUCE_PLAIN
#include "train_kinds.h"
#undef SPLAT
#undef FMA
#undef REDUCE
#undef GROUP
#undef TARGET
#undef SET
#endif
#undef MOST
