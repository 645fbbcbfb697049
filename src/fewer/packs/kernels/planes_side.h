/* Images side by side: sixteen of them in a vector, wherever a place lies. Part of planes_rows.h, once for each width of
 * vectors.
 *
 * Every number of a buffer is one for each image, so that a place is never between two lines of the cache and those
 * between rows are never computed. Few places are summed at once, two rows where there are, since what a block of places
 * reads of all channels is then small enough for the nearest caches. What lies outside, where numpy holds it, has
 * `from_image` or `to_image` floats from an image to the next; a scratch buffer has none. */

#ifndef FEWER_PLANES_SIDE_H
#define FEWER_PLANES_SIDE_H
#define COLUMNS 5               /* places of a row that are summed at once where there are two rows, */
#define ALONG 8                 /* and where there is one */

/* Places of all images into a block; images that are not there are the last one again. */
INLINE void side_in(const float *x, ptrdiff_t step, ptrdiff_t image, ptrdiff_t images, float *restrict block, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++)
        if (image)
            for (ptrdiff_t k = 0; k < SIDE; k++) block[i * SIDE + k] = x[(k < images ? k : images - 1) * image + i * step];
        else
            memcpy(block + i * SIDE, x + i * step * SIDE, SIDE * sizeof *block);
}

INLINE void side_out(const float *restrict block, ptrdiff_t n, float *y, ptrdiff_t step, ptrdiff_t image, ptrdiff_t images) {
    if (image)
        for (ptrdiff_t k = 0; k < images; k++)
            for (ptrdiff_t i = 0; i < n; i++) y[k * image + i * step] = block[i * SIDE + k];
    else
        for (ptrdiff_t i = 0; i < n; i++) memcpy(y + i * step * SIDE, block + i * SIDE, SIDE * sizeof *block);
}

/* activation((x + with) * factor + shift) at up to SIDE places of a row. */
INLINE void side_map(const Step *s, const float *x, const float *with, float *restrict block, ptrdiff_t n, ptrdiff_t images,
                     ptrdiff_t channel) {
    side_in(x, s->from_steps[4], s->from_image, images, block, n);
    for (ptrdiff_t i = 0; with && i < n; i++)
        for (ptrdiff_t k = 0; k < SIDE; k++) block[i * SIDE + k] += with[i * s->with_steps[4] * SIDE + k];
    const float factor = s->factor ? s->factor[channel] : 1.0f, shift = s->shift ? s->shift[channel] : 0.0f;
    if (s->factor || s->shift)
        for (ptrdiff_t k = 0; k < n * SIDE; k++) block[k] = block[k] * factor + shift;
    if (s->activation.kind != NOTHING) activate_row(block, n * SIDE, s->activation);
}

#endif

/* The larger one, or one that is a NaN: its bits are told by numbers, since of two comparisons compilers make sixteen. */
INLINE VECTOR NAMED(side_larger)(VECTOR best, VECTOR value) {
    const NAMED(Whole) bits = (NAMED(Whole))value, larger = value > best;
    const NAMED(Whole) nan = (0x7f800000 - (bits & 0x7fffffff)) >> 31;
    return (VECTOR)((((bits & larger) | ((NAMED(Whole))best & ~larger)) & ~nan) | (bits & nan));
}

/* The largest or the mean of a window, clipped to the image. */
INLINE void NAMED(side_window)(const Step *s, const float *x, const ptrdiff_t *first, const ptrdiff_t *taps,
                               float *restrict block, const int mean) {
    const ptrdiff_t all = s->window[0] * s->window[1] * s->window[2];
    const float counted = (float)(s->count_padding ? all : taps[0] * taps[1] * taps[2]);
    for (int part = 0; part < SIDE; part += WIDTH) {
        VECTOR best = (VECTOR){0} - (mean ? 0.0f : INFINITY);
        for (ptrdiff_t i = 0; i < taps[0]; i++)
            for (ptrdiff_t j = 0; j < taps[1]; j++) {
                const float *row = x + part + ((first[0] + i * s->spacing[0]) * s->from_steps[2] +
                                               (first[1] + j * s->spacing[1]) * s->from_steps[3] + first[2]) * SIDE;
                for (ptrdiff_t k = 0; k < taps[2]; k++) {
                    const VECTOR value = *(const VECTOR *)(row + k * s->spacing[2] * SIDE);
                    if (mean)
                        best += value;
                    else
                        best = NAMED(side_larger)(best, value);
                }
            }
        if (mean) best /= counted;
        *(VECTOR *)(block + part) = best;
    }
}

INLINE void NAMED(side_pool)(const Step *s, const float *x, ptrdiff_t d, ptrdiff_t h, ptrdiff_t w, float *restrict block,
                             ptrdiff_t n) {
    ptrdiff_t first[3], taps[3] = {inside_of(s, 0, d, first), inside_of(s, 1, h, first + 1), 0};
    for (int a = 0; a < 2; a++) taps[a] = taps[a] < 0 ? 0 : taps[a];
    for (ptrdiff_t i = 0; i < n; i++) {
        first[2] = (w + i) * s->stride[2] - s->before[2], taps[2] = s->window[2];
        if (first[2] < 0 || first[2] + (taps[2] - 1) * s->spacing[2] >= s->inside[2]) /* a division less for most */
            taps[2] = inside_of(s, 2, w + i, first + 2);
        if (s->mean)
            NAMED(side_window)(s, x, first, taps, block + i * SIDE, 1);
        else
            NAMED(side_window)(s, x, first, taps, block + i * SIDE, 0);
    }
}

/* Maps and pools, up to SIDE places of a row at once. */
INLINE void NAMED(side_walk)(const Step *s, float *const *buffers, ptrdiff_t images) {
    const ptrdiff_t in = s->from_image ? 1 : SIDE, out = s->to_image ? 1 : SIDE, n = s->sizes[4];
    float block[SIDE * SIDE];
    for (ptrdiff_t c = 0; c < s->sizes[0]; c++)
        for (ptrdiff_t d = 0; d < s->sizes[2]; d++)
            for (ptrdiff_t h = 0; h < s->sizes[3]; h++)
                for (ptrdiff_t w = 0; w < n; w += SIDE) {
                    const ptrdiff_t now = n - w < SIDE ? n - w : SIDE;
                    const float *x = buffers[s->from] + (s->from_first + c * s->from_steps[0]) * in;
                    const ptrdiff_t to = s->to_first + c * s->to_steps[0] + d * s->to_steps[2] + h * s->to_steps[3];
                    if (s->kind == POOL) {
                        NAMED(side_pool)(s, x, d, h, w, block, now);
                    } else {
                        const ptrdiff_t place = d * s->from_steps[2] + h * s->from_steps[3] + w * s->from_steps[4];
                        const ptrdiff_t with = s->with_first + c * s->with_steps[0] + d * s->with_steps[2] +
                                               h * s->with_steps[3] + w * s->with_steps[4];
                        side_map(s, x + place * in, s->with < 0 ? NULL : buffers[s->with] + with * SIDE, block, now, images, c);
                    }
                    side_out(block, now, buffers[s->to] + (to + w * s->to_steps[4]) * out, s->to_steps[4], s->to_image, images);
                }
}

/* Sums of a channel at `rows` times `columns` places, for WIDTH of the images. */
INLINE void NAMED(side_block)(const Step *s, ptrdiff_t channel, const float *restrict x, const float *with, float *y,
                              const int rows, const int columns, const ptrdiff_t step) {
    const Kept *restrict kept = s->kept + s->starts[channel], *restrict end = s->kept + s->starts[channel + 1];
    const ptrdiff_t below = s->from_steps[3] * SIDE, beside = step * SIDE;
    VECTOR sums[2 * ALONG];
#pragma GCC unroll 16
    for (int l = 0; l < rows * columns; l++) sums[l] = (VECTOR){0} + s->bias[channel];
    for (; kept < end; kept++) {
        const float *source = x + (size_t)kept->offset * SIDE;
        const float w = kept->weight;
#pragma GCC unroll 16
        for (int l = 0; l < rows * columns; l++)
            sums[l] += *(const VECTOR *)(source + l / columns * below + l % columns * beside) * w;
    }
#pragma GCC unroll 16
    for (int l = 0; l < rows * columns; l++) {
        float *place = y + (l / columns * s->to_steps[3] + l % columns) * SIDE;
        VECTOR sum = sums[l];
        if (with) sum += *(const VECTOR *)(with + (l / columns * s->with_steps[3] + l % columns) * SIDE);
        if (s->activation.kind == RELU) sum = (VECTOR)((NAMED(Whole))sum & ~(sum < 0.0f));
        *(VECTOR *)place = sum;
        if (s->activation.kind != NOTHING && s->activation.kind != RELU) activate_row(place, WIDTH, s->activation);
    }
}

/* All channels at one block of places, which read the same neighbourhood. */
INLINE void NAMED(side_channels)(const Step *s, const float *x, const float *with, float *y, const int rows, const int columns) {
    for (ptrdiff_t c = 0; c < s->sizes[0]; c++)
        for (int part = 0; part < SIDE; part += WIDTH) {
            const float *added = with ? with + c * s->with_steps[0] * SIDE + part : NULL;
            float *target = y + c * s->to_steps[0] * SIDE + part;
            if (s->from_steps[4] == 1)
                NAMED(side_block)(s, c, x + part, added, target, rows, columns, 1);
            else
                NAMED(side_block)(s, c, x + part, added, target, rows, columns, s->from_steps[4]);
        }
}

#define SHAPE(rows, columns)                                                    \
    case (rows) * 16 + (columns):                                               \
        NAMED(side_channels)(s, x, added, y, rows, columns);                    \
        break;

INLINE void NAMED(side)(const Step *s, float *const *buffers, ptrdiff_t images) {
    if (s->kind != SPACED) {
        NAMED(side_walk)(s, buffers, images);
        return;
    }
    const ptrdiff_t *size = s->sizes, most = size[3] > 1 ? COLUMNS : ALONG, parts = (size[4] + most - 1) / most;
    for (ptrdiff_t d = 0; d < size[2]; d++)
        for (ptrdiff_t h = 0; h < size[3]; h += 2)
            for (ptrdiff_t part = 0, w = 0; part < parts; part++) {
                const ptrdiff_t rows = size[3] - h < 2 ? 1 : 2, columns = size[4] * (part + 1) / parts - w;
                const ptrdiff_t from = d * s->from_steps[2] + h * s->from_steps[3] + w * s->from_steps[4];
                const ptrdiff_t with = d * s->with_steps[2] + h * s->with_steps[3] + w;
                const float *x = buffers[s->from] + (s->from_first + from) * SIDE;
                const float *added = s->with < 0 ? NULL : buffers[s->with] + (s->with_first + with) * SIDE;
                float *y = buffers[s->to] + (s->to_first + d * s->to_steps[2] + h * s->to_steps[3] + w) * SIDE;
                switch (rows * 16 + columns) {
                    SHAPE(1, 1) SHAPE(1, 2) SHAPE(1, 3) SHAPE(1, 4) SHAPE(1, 5) SHAPE(1, 6) SHAPE(1, 7) SHAPE(1, 8)
                    SHAPE(2, 1) SHAPE(2, 2) SHAPE(2, 3) SHAPE(2, 4) SHAPE(2, 5)
                }
                w += columns;
            }
}

#undef SHAPE
