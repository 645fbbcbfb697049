/* Convolutions on planes with vectors of WIDTH floats, of which LANES are held at once for kept weights, and TILES for
 * each channel of a dense product: included once for each width and number of registers that a machine may have. */

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

INLINE void NAMED(sparse)(const Step *s, const float *x, const float *with, float *y, ptrdiff_t places, const int lanes) {
    for (ptrdiff_t i = 0; i < s->outputs; i++)
        NAMED(sparse_row)(s->kept + s->starts[i], s->kept + s->starts[i + 1], s->bias[i], x,
                          with ? with + i * s->with_channel : NULL, y + i * s->to_channel, places, s->activation, lanes);
}

INLINE void NAMED(dense)(const Step *s, const float *x, const float *with, float *y, ptrdiff_t places, const int lanes) {
    const ptrdiff_t own = s->outputs / s->groups, blocks = (own + ROWS - 1) / ROWS;
    for (ptrdiff_t block = 0; block < s->groups * blocks; block++) {
        const ptrdiff_t group = block / blocks, first = group * own + block % blocks * ROWS;
        const uint32_t *restrict offsets = s->offsets + group * s->taps;
        const float *restrict weights = s->weights + block * s->taps * ROWS, *restrict bias = s->bias + block * ROWS;
        VECTOR sums[ROWS * TILES];
#pragma GCC unroll 16
        for (int k = 0; k < ROWS * lanes; k++) sums[k] = (VECTOR){0} + bias[k / lanes];
        for (ptrdiff_t t = 0; t < s->taps; t++, weights += ROWS) {
            VECTOR values[TILES];
#pragma GCC unroll 4
            for (int l = 0; l < lanes; l++) values[l] = *(const VECTOR *)(x + offsets[t] + l * WIDTH);
#pragma GCC unroll 16
            for (int k = 0; k < ROWS * lanes; k++) sums[k] += values[k % lanes] * weights[k / lanes];
        }
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++)
            if (first + r < (group + 1) * own)
                NAMED(finish)(sums + r * lanes, with ? with + (first + r) * s->with_channel : NULL,
                              y + (first + r) * s->to_channel, places, s->activation, lanes);
    }
}

#define SOME(function, n)                                                                                         \
    case n:                                                                                                       \
        NAMED(function)(s, x + place, with ? with + place : NULL, y + place, count - place, n);                   \
        break;

INLINE void NAMED(convolve)(const Step *s, float *const *buffers, ptrdiff_t images, const Kind kind) {
    const ptrdiff_t count = s->count + (images - 1) * s->image;
    const float *x = buffers[s->from] + s->from_first;
    const float *with = s->with < 0 ? NULL : buffers[s->with] + s->with_first;
    float *y = buffers[s->to] + s->to_first;
    const ptrdiff_t most = kind == SPARSE ? LANES : TILES;
    for (ptrdiff_t place = 0; place < count; place += most * WIDTH) {
        const ptrdiff_t vectors = (count - place + WIDTH - 1) / WIDTH;
        const int now = (int)(vectors < most ? vectors : most);
        if (kind == SPARSE) switch (now) {
            SOME(sparse, 1) SOME(sparse, 2) SOME(sparse, 3) SOME(sparse, 4)
            SOME(sparse, 5) SOME(sparse, 6) SOME(sparse, 7) SOME(sparse, 8)
#if LANES > 8
            SOME(sparse, 9) SOME(sparse, 10) SOME(sparse, 11) SOME(sparse, 12)
            SOME(sparse, 13) SOME(sparse, 14) SOME(sparse, 15) SOME(sparse, 16)
#endif
        } else switch (now) {
            SOME(dense, 1) SOME(dense, 2)
#if TILES > 2
            SOME(dense, 3) SOME(dense, 4)
#endif
        }
    }
    fill_holes(s, y);
}

#undef SOME
#undef VECTOR
#undef NAMED
#undef WIDTH
#undef TILES
#undef LANES
