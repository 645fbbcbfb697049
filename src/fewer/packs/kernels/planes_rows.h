/* Convolutions on planes with vectors of WIDTH floats, of which LANES are held at once for kept weights, and TILES for
 * each of HEIGHT channels of a dense product: included once for each width and number of registers that a machine may
 * have. */

typedef float NAMED(Vector) __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int32_t NAMED(Whole) __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
#define VECTOR NAMED(Vector)

/* A row of accumulators ends: the sum with another plane, the activation, the store of what lies inside. */
INLINE void NAMED(finish)(VECTOR *sums, const float *with, float *y, ptrdiff_t places, Activation f, const int lanes) {
#pragma GCC unroll 16
    for (int l = 0; l < lanes; l++) {
        VECTOR sum = sums[l];
        const ptrdiff_t room = places - l * WIDTH;
        if (with) sum += *(const VECTOR *)(with + l * WIDTH);
        if (f.kind == RELU) sum = (VECTOR)((NAMED(Whole))sum & ~(sum < 0.0f));
        if (room >= WIDTH)
            *(VECTOR *)(y + l * WIDTH) = sum;
        else if (room > 0)
            memcpy(y + l * WIDTH, &sum, (size_t)room * sizeof *y);
    }
    if (f.kind != NOTHING && f.kind != RELU) activate_row(y, places < lanes * WIDTH ? places : lanes * WIDTH, f);
}

/* Few vectors are summed in several parts, since each addition waits for the one before it. */
INLINE void NAMED(sparse_row)(const Kept *restrict kept, const Kept *restrict end, float bias, const float *restrict x,
                              const float *with, float *y, ptrdiff_t places, Activation f, const int lanes) {
    const int parts = lanes < 3 ? 4 : lanes < 5 ? 2 : 1;
    VECTOR sums[LANES];
#pragma GCC unroll 16
    for (int l = 0; l < lanes * parts; l++) sums[l] = (VECTOR){0} + (l < lanes ? bias : 0.0f);
    for (; kept + parts <= end; kept += parts) {
#pragma GCC unroll 4
        for (int p = 0; p < parts; p++) {
            const float *source = x + kept[p].offset;
            const float w = kept[p].weight;
#pragma GCC unroll 16
            for (int l = 0; l < lanes; l++) sums[p * lanes + l] += *(const VECTOR *)(source + l * WIDTH) * w;
        }
    }
    for (; kept < end; kept++) {
#pragma GCC unroll 16
        for (int l = 0; l < lanes; l++) sums[l] += *(const VECTOR *)(x + kept->offset + l * WIDTH) * kept->weight;
    }
#pragma GCC unroll 16
    for (int l = lanes; l < lanes * parts; l++) sums[l % lanes] += sums[l];
    NAMED(finish)(sums, with, y, places, f, lanes);
}

#include "planes_dense.h"
#include "planes_side.h"

#define SOME(n)                                                                                                   \
    case n:                                                                                                       \
        NAMED(sparse_row)(kept, end, s->bias[i], x + place, with ? with + i * s->with_channel + place : NULL,     \
                          y + i * s->to_channel + place, count - place, s->activation, n);                        \
        break;

/* Channel `i` at vectors `begin` to `begin + lanes`. */
INLINE void NAMED(run)(const Step *s, ptrdiff_t i, const float *x, const float *with, float *y, ptrdiff_t count,
                       ptrdiff_t begin, ptrdiff_t lanes) {
    const Kept *kept = s->kept + s->starts[i], *end = s->kept + s->starts[i + 1];
    const ptrdiff_t place = begin * WIDTH;
    switch (lanes) {
        SOME(1) SOME(2) SOME(3) SOME(4) SOME(5) SOME(6) SOME(7) SOME(8)
#if LANES > 8
        SOME(9) SOME(10) SOME(11) SOME(12)
#endif
    }
}

INLINE void NAMED(convolve)(const Step *s, float *const *buffers, ptrdiff_t images) {
    const ptrdiff_t count = s->count + (images - 1) * s->image;
    const float *x = buffers[s->from] + s->from_first;
    const float *with = s->with < 0 ? NULL : buffers[s->with] + s->with_first;
    float *y = buffers[s->to] + s->to_first;
    const int few = has_few(s); /* writing goes better along a channel and in short runs */
    const ptrdiff_t lanes = LANES > 8 && few ? 8 : LANES;
    /* all parts alike: a short one would read every weight for few places */
    const ptrdiff_t vectors = (count + WIDTH - 1) / WIDTH, parts = (vectors + lanes - 1) / lanes;
    const ptrdiff_t outer = few ? s->outputs : parts, inner = few ? parts : s->outputs;
    for (ptrdiff_t o = 0; o < outer; o++)
        for (ptrdiff_t k = 0; k < inner; k++) {
            const ptrdiff_t channel = few ? o : k, part = few ? k : o;
            const ptrdiff_t begin = vectors * part / parts, past = vectors * (part + 1) / parts;
            NAMED(run)(s, channel, x, with, y, count, begin, past - begin);
        }
    fill_holes(s, y);
}

#undef SOME
#undef VECTOR
#undef NAMED
#undef WIDTH
#undef HEIGHT
#undef LANES
