/* One sample, kept weights in lanes: sixteen rows of a layer side by side, a weight of each in every step.
 *
 * The inputs of a step lie within a window of 32, which two registers hold, so that one permutation fetches all sixteen.
 * A row whose next weight lies outside of the window waits with a weight of 0. Part of runtime.c. */
#ifndef FEWER_RUNTIME_LANES_H
#define FEWER_RUNTIME_LANES_H

#include "instructions.h"

#define WINDOW (2 * WIDE)
#define SPARE 3                 /* kept weights in a step on average, below which columns are faster */

typedef struct {
    size_t steps;
    uint32_t *ends;             /* steps of each group of rows, summed up */
    uint16_t *windows;          /* where the window of a step begins, a multiple of half a line of the cache */
    uint8_t *places;            /* of each lane's input in the window */
    float *weights;
} Lanes;

static void free_lanes(Lanes *lanes) {
    free(lanes->ends), free(lanes->windows), free(lanes->places), free(lanes->weights);
    memset(lanes, 0, sizeof *lanes);
}

/* Steps through a group of rows; written to `lanes` from step `at` on where that is not NULL. */
static size_t lane_steps(const uint32_t *starts, const uint32_t *columns, const float *values, ptrdiff_t rows,
                         Lanes *lanes, size_t at) {
    uint32_t next[WIDE];
    size_t steps = 0;
    for (ptrdiff_t r = 0; r < rows; r++) next[r] = starts[r];
    for (;; steps++) {
        uint32_t first = UINT32_MAX;
        for (ptrdiff_t r = 0; r < rows; r++)
            if (next[r] < starts[r + 1] && columns[next[r]] < first) first = columns[next[r]];
        if (first == UINT32_MAX) return steps;
        first = first / 8 * 8;
        if (lanes) lanes->windows[at + steps] = (uint16_t)first;
        for (ptrdiff_t r = 0; r < rows; r++) {
            if (next[r] == starts[r + 1] || columns[next[r]] >= first + WINDOW) continue;
            if (lanes) {
                lanes->places[(at + steps) * WIDE + (size_t)r] = (uint8_t)(columns[next[r]] - first);
                lanes->weights[(at + steps) * WIDE + (size_t)r] = values[next[r]];
            }
            next[r]++;
        }
    }
}

static void *aligned_zeros(size_t count, size_t size) {
    const size_t bytes = (count * size / 64 + 1) * 64;
    void *made = aligned_alloc(64, bytes);
    if (made) memset(made, 0, bytes);
    return made;
}

/* Rows of ascending columns as lanes; 0 where memory is short, and no steps where columns serve better. */
static int make_lanes(Lanes *lanes, const uint32_t *starts, const uint32_t *columns, const float *values,
                      ptrdiff_t outputs) {
    size_t steps = 0;
    for (uint32_t i = 0; i < (uint32_t)outputs; i++)
        for (uint32_t p = starts[i] + 1; p < starts[i + 1]; p++)
            if (columns[p] <= columns[p - 1]) return 1;
    for (ptrdiff_t i = 0; i < outputs; i += WIDE)
        steps += lane_steps(starts + i, columns, values, outputs - i < WIDE ? outputs - i : WIDE, NULL, 0);
    if (!steps || steps * SPARE > starts[outputs] || steps > UINT32_MAX) return 1;
    lanes->ends = calloc((size_t)outputs / WIDE + 1, sizeof *lanes->ends);
    lanes->windows = calloc(steps, sizeof *lanes->windows);
    lanes->places = aligned_zeros(steps, WIDE);
    lanes->weights = aligned_zeros(steps, WIDE * sizeof(float));
    if (!lanes->ends || !lanes->windows || !lanes->places || !lanes->weights) return 0;
    for (ptrdiff_t i = 0; i < outputs; i += WIDE) {
        const ptrdiff_t rows = outputs - i < WIDE ? outputs - i : WIDE;
        lanes->steps += lane_steps(starts + i, columns, values, rows, lanes, lanes->steps);
        lanes->ends[i / WIDE] = (uint32_t)lanes->steps;
    }
    return 1;
}

#if SEVERAL
#include <immintrin.h>

#define STEP(sum, k)                                                                                                  \
    {                                                                                                                 \
        const float *window = x + lanes->windows[k];                                                                  \
        const __m512i place = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)(lanes->places + (k) * WIDE)));     \
        const __m512 taken = _mm512_permutex2var_ps(_mm512_loadu_ps(window), place, _mm512_loadu_ps(window + WIDE));   \
        sum = _mm512_fmadd_ps(_mm512_load_ps(lanes->weights + (k) * WIDE), taken, sum);                                \
    }

/* y += W x; x can be read for WINDOW places past its end. */
AVX512 static void one_in_lanes(const Lanes *lanes, ptrdiff_t outputs, const float *restrict x, float *restrict y) {
    size_t k = 0;
    for (ptrdiff_t i = 0; i < outputs; i += WIDE) {
        __m512 a = _mm512_loadu_ps(y + i), b = _mm512_setzero_ps();
        const size_t end = lanes->ends[i / WIDE];
        for (; k + 2 <= end; k += 2) {
            STEP(a, k)
            STEP(b, k + 1)
        }
        if (k < end) {
            STEP(a, k)
            k++;
        }
        _mm512_storeu_ps(y + i, _mm512_add_ps(a, b));
    }
}
#undef STEP
#else
static void one_in_lanes(const Lanes *lanes, ptrdiff_t outputs, const float *restrict x, float *restrict y) {
    (void)lanes, (void)outputs, (void)x, (void)y;
}
#endif

#endif
