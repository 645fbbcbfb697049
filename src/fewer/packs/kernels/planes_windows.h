/* Pools: the largest or the mean of each window. Part of planes_kernels.h. */
#ifndef FEWER_PLANES_WINDOWS_H
#define FEWER_PLANES_WINDOWS_H

/* Taps of a window along an axis that lie inside the image, from the first on, for the window at one place. */
INLINE ptrdiff_t inside_of(const Step *s, int axis, ptrdiff_t at, ptrdiff_t *first) {
    const ptrdiff_t begin = at * s->stride[axis] - s->before[axis], gap = s->spacing[axis];
    const ptrdiff_t skipped = begin < 0 ? (gap - 1 - begin) / gap : 0, room = (s->inside[axis] - begin + gap - 1) / gap;
    *first = begin + skipped * gap;
    return (room < s->window[axis] ? room : s->window[axis]) - skipped;
}

/* A tap at all windows of a row that have it inside: NaN is larger than anything. */
INLINE void tap_row(const float *restrict x, float *restrict y, ptrdiff_t n, int mean, const ptrdiff_t step) {
    if (mean)
        for (ptrdiff_t w = 0; w < n; w++) y[w] += x[w * step];
    else
        for (ptrdiff_t w = 0; w < n; w++) {
            const float value = x[w * step];
            y[w] = value > y[w] || value != value ? value : y[w];
        }
}

/* A row of a pool, tap by tap over the whole row: each window clipped to the image. */
INLINE void pool_row(const Step *s, const float *x, float *y, ptrdiff_t d, ptrdiff_t h) {
    const ptrdiff_t n = s->sizes[4], stride = s->stride[2], gap = s->spacing[2];
    ptrdiff_t depth, height, first;
    const ptrdiff_t depths = inside_of(s, 0, d, &depth), heights = inside_of(s, 1, h, &height);
    for (ptrdiff_t w = 0; w < n; w++) y[w] = s->mean ? 0.0f : -INFINITY;
    for (ptrdiff_t i = 0; i < depths; i++)
        for (ptrdiff_t j = 0; j < heights; j++) {
            const float *row = x + (depth + i * s->spacing[0]) * s->from_steps[2] + (height + j * s->spacing[1]) * s->from_steps[3];
            for (ptrdiff_t k = 0; k < s->window[2]; k++) {
                const ptrdiff_t shift = k * gap - s->before[2], room = s->inside[2] - shift;
                const ptrdiff_t begin = shift < 0 ? (stride - 1 - shift) / stride : 0;
                const ptrdiff_t end = room < 1 ? 0 : (room - 1) / stride + 1 < n ? (room - 1) / stride + 1 : n;
                if (begin >= end) continue;
                const float *source = row + begin * stride + shift;
                if (stride == 1)
                    tap_row(source, y + begin, end - begin, s->mean, 1);
                else
                    tap_row(source, y + begin, end - begin, s->mean, stride);
            }
        }
    const float rows = (float)((depths < 0 ? 0 : depths) * (heights < 0 ? 0 : heights));
    const float volume = (float)(s->window[0] * s->window[1] * s->window[2]);
    for (ptrdiff_t w = 0; s->mean && w < n; w++) {
        const ptrdiff_t taps = inside_of(s, 2, w, &first);
        y[w] /= s->count_padding ? volume : rows * (float)(taps < 0 ? 0 : taps);
    }
}

/* The larger of each pair, without branches, which images would not let a processor foresee; NaN where one of them is. */
INLINE Four larger_of(Four a, Four b) {
    const FourWhole second = (b > a) | (b != b);
    return (Four)(((FourWhole)b & second) | ((FourWhole)a & ~second));
}

INLINE Eight larger_of_eight(Eight a, Eight b) {
    const EightWhole second = (b > a) | (b != b);
    return (Eight)(((EightWhole)b & second) | ((EightWhole)a & ~second));
}

INLINE Four halved(const float *upper, const float *lower) {
    const Four left = larger_of(*(const Four *)upper, *(const Four *)lower);
    const Four right = larger_of(*(const Four *)(upper + 4), *(const Four *)(lower + 4));
    const Four even = {left[0], left[2], right[0], right[2]}, odd = {left[1], left[3], right[1], right[3]};
    return larger_of(even, odd);
}

INLINE Eight eight_halved(const float *upper, const float *lower) {
    const Eight left = larger_of_eight(*(const Eight *)upper, *(const Eight *)lower);
    const Eight right = larger_of_eight(*(const Eight *)(upper + 8), *(const Eight *)(lower + 8));
    return larger_of_eight(every_second(left, right, 0), every_second(left, right, 1));
}

/* Two by two without padding, as most networks pool; the last four of a row may be computed twice. */
INLINE void halve_row(const Step *s, const float *x, float *y, ptrdiff_t d, ptrdiff_t h) {
    const float *upper = x + d * s->from_steps[2] + 2 * h * s->from_steps[3], *lower = upper + s->from_steps[3];
    const ptrdiff_t count = s->sizes[4];
    ptrdiff_t w = 0;
    for (; w + 8 <= count; w += 8) *(Eight *)(y + w) = eight_halved(upper + 2 * w, lower + 2 * w);
    for (; w + 4 <= count; w += 4) *(Four *)(y + w) = halved(upper + 2 * w, lower + 2 * w);
    if (w < count && count > 4) {
        *(Four *)(y + count - 4) = halved(upper + 2 * (count - 4), lower + 2 * (count - 4));
        return;
    }
    for (; w < count; w++) {
        float best = upper[2 * w];
        const float others[3] = {upper[2 * w + 1], lower[2 * w], lower[2 * w + 1]};
        for (int k = 0; k < 3; k++) best = others[k] > best || others[k] != others[k] ? others[k] : best;
        y[w] = best;
    }
}

/* Means of windows that lie inside their image. */
INLINE void mean_row(const Step *s, const float *x, float *y, ptrdiff_t d, ptrdiff_t h) {
    const float share = 1.0f / (float)(s->window[0] * s->window[1] * s->window[2]);
    for (ptrdiff_t w = 0; w < s->sizes[4]; w++) {
        const float *first = x + d * s->stride[0] * s->from_steps[2] + h * s->stride[1] * s->from_steps[3] + w * s->stride[2];
        float sum = 0.0f;
        Four sums = {0}; /* an addition waits for the one before it */
        for (ptrdiff_t i = 0; i < s->window[0]; i++)
            for (ptrdiff_t j = 0; j < s->window[1]; j++) {
                const float *row = first + i * s->from_steps[2] + j * s->from_steps[3];
                ptrdiff_t k = 0;
                for (; k + 4 <= s->window[2]; k += 4) sums += *(const Four *)(row + k);
                for (; k < s->window[2]; k++) sum += row[k];
            }
        sum += (sums[0] + sums[1]) + (sums[2] + sums[3]);
        y[w * s->to_steps[4]] = sum * share;
    }
}

INLINE int means(const Step *s) {
    int right = s->mean && s->from_steps[4] == 1;
    for (int a = 0; a < 3; a++)
        right = right && s->before[a] == 0 && s->spacing[a] == 1 &&
                (s->sizes[a + 2] - 1) * s->stride[a] + s->window[a] <= s->inside[a];
    return right;
}

INLINE int halves(const Step *s) {
    int right = !s->mean && s->from_steps[4] == 1 && s->to_steps[4] == 1 && s->window[0] == 1 && s->stride[0] == 1;
    for (int a = 0; a < 3; a++) right = right && s->before[a] == 0 && s->spacing[a] == 1;
    for (int a = 1; a < 3; a++) right = right && s->window[a] == 2 && s->stride[a] == 2;
    return right;
}

#endif
