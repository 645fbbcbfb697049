/* Dense convolutions as products of matrices: part of planes_rows.h, once for each width of vectors.
 *
 * Places are taken in runs of `unit` neighbours, so that those between rows are never computed. What a few vectors of
 * places read is copied side by side, tap by tap (`panel`), and stays in the cache while all channels' weights stream by;
 * after DEEP taps the sums wait in memory for the next ones. */

/* Floats that a step needs for a panel, for sums, and to begin with a line of the cache. */
#ifndef FEWER_DENSE_ROOM
#define FEWER_DENSE_ROOM
static size_t dense_room(const Step *s) {
    const ptrdiff_t own = (s->outputs / s->groups + ROWS - 1) / ROWS * ROWS;
    return (size_t)(s->taps > DEEP ? DEEP + own : s->taps + ROWS) * TILES * WIDE + WIDE;
}
#endif

/* Runs of a known number, whose beginnings stay in registers. */
INLINE void NAMED(gather_some)(const float *x, const uint32_t *restrict offsets, ptrdiff_t taps, const ptrdiff_t *places,
                               float *restrict panel, const int units, const int unit) {
    const float *from[8];
#pragma GCC unroll 8
    for (int k = 0; k < units; k++) from[k] = x + places[k];
    for (ptrdiff_t t = 0; t < taps; t++, panel += units * unit) {
        const size_t offset = offsets[t];
#pragma GCC unroll 8
        for (int k = 0; k < units; k++) memcpy(panel + k * unit, from[k] + offset, (size_t)unit * sizeof *panel);
    }
}

#define FEW_RUNS(n)                                                     \
    case n:                                                             \
        NAMED(gather_some)(x, offsets, taps, places, panel, n, unit);   \
        return;

INLINE void NAMED(gather)(const float *x, const uint32_t *restrict offsets, ptrdiff_t taps, const ptrdiff_t *places,
                          ptrdiff_t units, float *restrict panel, const int unit) {
    if (unit >= 4) switch (units) { FEW_RUNS(1) FEW_RUNS(2) FEW_RUNS(3) FEW_RUNS(4) FEW_RUNS(6) FEW_RUNS(8) }
    for (ptrdiff_t t = 0; t < taps; t++)
        for (ptrdiff_t k = 0; k < units; k++, panel += unit)
            memcpy(panel, x + offsets[t] + places[k], (size_t)unit * sizeof *panel);
}

#undef FEW_RUNS

/* Sums of one channel to their places. */
INLINE void NAMED(scatter)(float *restrict sums, const ptrdiff_t *places, ptrdiff_t units, const float *with, float *y,
                           Activation f, const int unit) {
    for (ptrdiff_t k = 0; with && k < units; k++)
        for (int i = 0; i < unit; i++) sums[k * unit + i] += with[places[k] + i];
    if (f.kind == RELU) {
        for (ptrdiff_t i = 0; i < units * unit; i += WIDTH) {
            const VECTOR sum = *(VECTOR *)(sums + i);
            *(VECTOR *)(sums + i) = (VECTOR)((NAMED(Whole))sum & ~(sum < 0.0f));
        }
    } else if (f.kind != NOTHING) {
        activate_row(sums, units * unit, f);
    }
    for (ptrdiff_t k = 0; k < units; k++) memcpy(y + places[k], sums + k * unit, (size_t)unit * sizeof *y);
}

/* Sums of ROWS channels at `tiles` vectors of places, begun with biases or gone on with. */
INLINE void NAMED(products)(const float *restrict weights, const float *bias, const float *restrict panel, ptrdiff_t taps,
                            float *restrict sums, const int tiles) {
    for (int row = 0; row < ROWS; row += HEIGHT) {
        const float *restrict x = panel, *restrict w = weights + row;
        float *own = sums + row * tiles * WIDTH;
        VECTOR held[HEIGHT * TILES];
#pragma GCC unroll 32
        for (int k = 0; k < HEIGHT * tiles; k++)
            if (bias)
                held[k] = (VECTOR){0} + bias[row + k / tiles];
            else
                held[k] = *(const VECTOR *)(own + k * WIDTH);
        for (ptrdiff_t t = 0; t < taps; t++, w += ROWS, x += tiles * WIDTH) {
            VECTOR values[TILES];
            __builtin_prefetch(w + 64 * ROWS); /* weights of large layers come from far */
#pragma GCC unroll 4
            for (int l = 0; l < tiles; l++) values[l] = *(const VECTOR *)(x + l * WIDTH);
#pragma GCC unroll 32
            for (int k = 0; k < HEIGHT * tiles; k++) held[k] += values[k % tiles] * w[k / tiles];
        }
#pragma GCC unroll 32
        for (int k = 0; k < HEIGHT * tiles; k++) *(VECTOR *)(own + k * WIDTH) = held[k];
    }
}

/* Copies of a known length are a few instructions, others a call. */
#if WIDTH > 8
#define WIDER(function, ...)                                   \
    case 16: NAMED(function)(__VA_ARGS__, 16); break;          \
    case 8: NAMED(function)(__VA_ARGS__, 8); break;
#elif WIDTH > 4
#define WIDER(function, ...)                                   \
    case 8: NAMED(function)(__VA_ARGS__, 8); break;
#else
#define WIDER(function, ...)
#endif
#define BY_UNIT(function, ...)                                 \
    switch (unit) {                                            \
        WIDER(function, __VA_ARGS__)                           \
        case 4: NAMED(function)(__VA_ARGS__, 4); break;        \
        case 2: NAMED(function)(__VA_ARGS__, 2); break;        \
        default: NAMED(function)(__VA_ARGS__, 1); break;       \
    }

/* All channels of a group at the places of one panel. */
INLINE void NAMED(panel)(const Step *s, ptrdiff_t group, const float *x, const float *with, float *y,
                         const ptrdiff_t *places, float *panel, const ptrdiff_t tiles, int unit) {
    const ptrdiff_t own = s->outputs / s->groups, blocks = (own + ROWS - 1) / ROWS, units = tiles * WIDTH / unit;
    float *all = panel + (s->taps < DEEP ? s->taps : DEEP) * tiles * WIDTH;
    for (ptrdiff_t deep = 0; deep < s->taps; deep += DEEP) {
        const ptrdiff_t now = s->taps - deep < DEEP ? s->taps - deep : DEEP;
        BY_UNIT(gather, x, s->offsets + group * s->taps + deep, now, places, units, panel)
        for (ptrdiff_t block = 0; block < blocks; block++) {
            const ptrdiff_t row = (group * blocks + block) * ROWS, first = block * ROWS;
            float *sums = s->taps > DEEP ? all + first * tiles * WIDTH : all;
            const float *weights = s->weights + row * s->taps + deep * ROWS, *bias = deep ? NULL : s->bias + row;
            switch (tiles) {
                case 1: NAMED(products)(weights, bias, panel, now, sums, 1); break;
                case 2: NAMED(products)(weights, bias, panel, now, sums, 2); break;
                default: NAMED(products)(weights, bias, panel, now, sums, 3); break;
            }
            for (ptrdiff_t r = 0; deep + now == s->taps && r < ROWS && first + r < own; r++) {
                const ptrdiff_t channel = group * own + first + r;
                BY_UNIT(scatter, sums + r * tiles * WIDTH, places, units, with ? with + channel * s->with_channel : NULL,
                        y + channel * s->to_channel, s->activation)
            }
        }
    }
}

#include "planes_panel.h"

/* The places of `tiles` vectors, run by run; the last ones are taken again where there are none left. */
INLINE void NAMED(places_of)(const Step *s, ptrdiff_t images, ptrdiff_t first, ptrdiff_t count, int unit, ptrdiff_t *places) {
    const ptrdiff_t split = s->unit / unit, each = s->units * split, all = images * each;
    for (ptrdiff_t k = 0; k < count; k++) {
        const ptrdiff_t at = first + k < all ? first + k : all - 1, inside = at % each;
        places[k] = at / each * s->image + (ptrdiff_t)s->places[inside / split] + inside % split * unit;
    }
}

/* Products with all weights or with kept ones. */
INLINE void NAMED(dense)(const Step *s, float *const *buffers, ptrdiff_t images, float *room) {
    const float *x = buffers[s->from] + s->from_first;
    const float *with = s->with < 0 ? NULL : buffers[s->with] + s->with_first;
    float *y = buffers[s->to] + s->to_first;
    const int unit = s->unit < WIDTH ? (int)s->unit : WIDTH;
    const ptrdiff_t all = images * s->units * (s->unit / unit), lane = WIDTH / unit;
    const ptrdiff_t most = s->kind == PANEL ? tiles_of(s, WIDTH) : TILES;
    ptrdiff_t places[MOST_TILES * WIDTH];
    room += (WIDE - (uintptr_t)room / sizeof *room % WIDE) % WIDE;
    for (ptrdiff_t first = 0; first < all;) {
        const ptrdiff_t left = (all - first + lane - 1) / lane, parts = (left + most - 1) / most;
        const ptrdiff_t tiles = (left + parts - 1) / parts;
        NAMED(places_of)(s, images, first, tiles * lane, unit, places);
        if (s->kind == PANEL)
            NAMED(kept_panel)(s, x, with, y, places, room, tiles, unit);
        for (ptrdiff_t group = 0; s->kind == DENSE && group < s->groups; group++)
            NAMED(panel)(s, group, x, with, y, places, room, tiles, unit);
        first += tiles * lane;
    }
}

#undef BY_UNIT
#undef WIDER
