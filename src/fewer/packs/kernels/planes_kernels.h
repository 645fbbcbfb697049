/* The arithmetic on planes: sparse and dense convolutions, pools, and sums or activations place by place.
 *
 * A plane is one channel of several images, padded and laid out flat, so that the neighbour of a place is one fixed
 * distance away wherever the place lies: a convolution adds shifted planes, and a kept weight is one distance and one
 * number. Outputs stay in registers while an output channel's weights stream by. Places between images and rows are
 * computed along with the others and set to zero afterwards (`holes`), since they are the padding of the next layer. */
#ifndef FEWER_PLANES_KERNELS_H
#define FEWER_PLANES_KERNELS_H

#include "runtime_kernels.h"

#define AXES 5                  /* channel, image, depth, height, width */
#define ROWS 8                  /* output channels whose weights lie side by side for a dense convolution */
#define TILES 3                 /* vectors of places that a dense convolution holds for each of them */
#define DEEP 256                /* weights of a channel that pass before sums leave their registers */

typedef struct {
    uint32_t offset;
    float weight;
} Kept;

typedef enum { SPARSE, DENSE, MAP, POOL, SPACED } Kind;

typedef struct {
    Kind kind;
    int from, with, to;         /* buffers; `with` is added, or -1 */
    Activation activation;
    /* convolutions: `count` places of each output channel for one image, `image` more for each further one */
    ptrdiff_t outputs, count, image, from_first, with_first, with_channel, to_first, to_channel;
    uint32_t *starts, *holes;   /* kept weights of each output channel; pairs (first place, length) in every channel */
    ptrdiff_t hole_count, taps, groups;
    ptrdiff_t unit, units;      /* dense: places of an image in runs of `unit`, which begin at `starts` */
    Kept *kept;
    uint32_t *offsets;          /* dense: of each tap, group by group */
    float *weights, *bias;      /* dense: (groups, blocks of ROWS channels, taps, ROWS) */
    /* maps and pools: over a lattice of places */
    ptrdiff_t sizes[AXES], from_steps[AXES], with_steps[AXES], to_steps[AXES];
    float *factor, *shift;      /* by channel, or none */
    ptrdiff_t inside[3], window[3], stride[3], before[3], spacing[3];
    int mean, count_padding, spare_behind; /* behind: a number more may be read than there are */
} Step;

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t FourWhole __attribute__((vector_size(16)));

typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t EightWhole __attribute__((vector_size(32), aligned(4)));

/* Of sixteen numbers, from the first or the second on. */
INLINE Eight every_second(Eight low, Eight high, const int odd) {
#if defined(__clang__)
    return odd ? __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15)
               : __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return __builtin_shuffle(low, high, (EightWhole){0, 2, 4, 6, 8, 10, 12, 14} + odd);
#endif
}

INLINE Eight apart(const float *x) { return every_second(*(const Eight *)x, *(const Eight *)(x + 8), 0); }

/* Of the instructions that were chosen. Not inlined: there are many callers, and most networks have ReLU, which they
 * compute themselves. */
static void (*activate_row)(float *y, ptrdiff_t count, Activation f);

/* Places between images and rows are the padding of what reads them next. */
INLINE void fill_holes(const Step *s, float *y) {
    for (ptrdiff_t i = 0; s->hole_count && i < s->outputs; i++)
        for (ptrdiff_t h = 0; h < s->hole_count; h++) {
            float *hole = y + i * s->to_channel + s->holes[2 * h];
            for (uint32_t k = 0; k < s->holes[2 * h + 1]; k++) hole[k] = 0.0f;
        }
}

/* A row that is only copied, the phases of a stride among them: every second place, or every one. `beyond`: whether a
 * number after the last may be read. */
INLINE void copy_row(const float *restrict x, ptrdiff_t step, float *restrict y, ptrdiff_t n, int beyond) {
    ptrdiff_t i = 0;
    for (; step == 1 && i + 8 <= n; i += 8) *(Eight *)(y + i) = *(const Eight *)(x + i);
    for (; step == 1 && i + 4 <= n; i += 4) *(Four *)(y + i) = *(const Four *)(x + i);
    for (; step == 2 && i + 8 < n + beyond; i += 8) *(Eight *)(y + i) = apart(x + 2 * i);
    for (; step == 2 && i + 4 < n + beyond; i += 4) {
        const Four left = *(const Four *)(x + 2 * i), right = *(const Four *)(x + 2 * i + 4);
        *(Four *)(y + i) = (Four){left[0], left[2], right[0], right[2]};
    }
    for (; i < n; i++) y[i] = x[i * step];
}

/* A row of a map: y = activation((x + with) * factor + shift). */
INLINE void map_row(const Step *s, const float *x, const float *with, float *y, float factor, float shift) {
    const ptrdiff_t n = s->sizes[4], xs = s->from_steps[4], ws = s->with_steps[4], ys = s->to_steps[4];
    if (ys == 1 && !with && !s->factor && !s->shift && s->activation.kind == NOTHING) {
        copy_row(x, xs, y, n, s->spare_behind);
        return;
    }
    if (xs == 1 && ys == 1 && !with) {
        for (ptrdiff_t i = 0; i < n; i++) y[i] = x[i] * factor + shift;
        if (s->activation.kind != NOTHING) activate_row(y, n, s->activation);
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        float value = x[i * xs];
        if (with) value += with[i * ws];
        value = value * factor + shift;
        y[i * ys] = s->activation.kind == RELU && value < 0.0f ? 0.0f : value;
        if (s->activation.kind != NOTHING && s->activation.kind != RELU) activate_row(y + i * ys, 1, s->activation);
    }
}

/* A row of a convolution that reads every second place; the channel it reads is within each weight's distance. */
INLINE void spaced_row(const Step *s, ptrdiff_t channel, const float *x, const float *with, float *y) {
    const Kept *restrict first = s->kept + s->starts[channel], *restrict end = s->kept + s->starts[channel + 1];
    const ptrdiff_t n = s->sizes[4];
    ptrdiff_t i = 0;
    for (; i + 16 <= n; i += 16) {
        Eight sums[2] = {(Eight){0} + s->bias[channel], (Eight){0} + s->bias[channel]};
        for (const Kept *kept = first; kept < end; kept++) {
            sums[0] += apart(x + kept->offset + 2 * i) * kept->weight;
            sums[1] += apart(x + kept->offset + 2 * i + 16) * kept->weight;
        }
        *(Eight *)(y + i) = sums[0], *(Eight *)(y + i + 8) = sums[1];
    }
    for (; i + 8 <= n; i += 8) {
        Eight sum = (Eight){0} + s->bias[channel];
        for (const Kept *kept = first; kept < end; kept++) sum += apart(x + kept->offset + 2 * i) * kept->weight;
        *(Eight *)(y + i) = sum;
    }
    for (; i + 4 <= n; i += 4) {
        Four sum = (Four){0} + s->bias[channel];
        for (const Kept *kept = first; kept < end; kept++) {
            const float *source = x + kept->offset + 2 * i;
            const Four left = *(const Four *)source, right = *(const Four *)(source + 4);
            sum += (Four){left[0], left[2], right[0], right[2]} * kept->weight;
        }
        *(Four *)(y + i) = sum;
    }
    for (; i < n; i++) {
        float sum = s->bias[channel];
        for (const Kept *kept = first; kept < end; kept++) sum += x[kept->offset + 2 * i] * kept->weight;
        y[i] = sum;
    }
    for (i = 0; with && i < n; i++) y[i] += with[i];
    for (i = 0; s->activation.kind == RELU && i < n; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
    if (s->activation.kind != RELU && s->activation.kind != NOTHING) activate_row(y, n, s->activation);
}

/* A row of a pool: each window clipped to the image. */
INLINE void pool_row(const Step *s, const float *x, float *y, ptrdiff_t d, ptrdiff_t h) {
    ptrdiff_t first[3], last[3];
    const ptrdiff_t at[2] = {d, h};
    const float volume = (float)(s->window[0] * s->window[1] * s->window[2]);
    for (ptrdiff_t w = 0; w < s->sizes[4]; w++) {
        for (int a = 0; a < 3; a++) {
            const ptrdiff_t begin = (a < 2 ? at[a] : w) * s->stride[a] - s->before[a], gap = s->spacing[a];
            first[a] = begin < 0 ? (gap - 1 - begin) / gap : 0;
            const ptrdiff_t room = (s->inside[a] - begin + gap - 1) / gap;
            last[a] = room < s->window[a] ? room : s->window[a];
            first[a] = begin + first[a] * gap, last[a] = begin + last[a] * gap;
        }
        float best = s->mean ? 0.0f : -INFINITY, taken = 0.0f;
        for (ptrdiff_t i = first[0]; i < last[0]; i += s->spacing[0])
            for (ptrdiff_t j = first[1]; j < last[1]; j += s->spacing[1])
                for (ptrdiff_t k = first[2]; k < last[2]; k += s->spacing[2]) {
                    const float value = x[i * s->from_steps[2] + j * s->from_steps[3] + k * s->from_steps[4]];
                    if (s->mean)
                        best += value;
                    else
                        best = value > best || value != value ? value : best;
                    taken += 1.0f;
                }
        y[w * s->to_steps[4]] = s->mean ? best / (s->count_padding ? volume : taken) : best;
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
        for (ptrdiff_t i = 0; i < s->window[0]; i++)
            for (ptrdiff_t j = 0; j < s->window[1]; j++)
                for (ptrdiff_t k = 0; k < s->window[2]; k++) sum += first[i * s->from_steps[2] + j * s->from_steps[3] + k];
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

INLINE void walk(const Step *s, float *const *buffers, ptrdiff_t images) {
    const float *x = buffers[s->from] + s->from_first, *added = s->with < 0 ? NULL : buffers[s->with] + s->with_first;
    float *y = buffers[s->to] + s->to_first;
    const int quick = s->kind == POOL && halves(s), even = s->kind == POOL && means(s);
    for (ptrdiff_t c = 0; c < s->sizes[0]; c++)
        for (ptrdiff_t n = 0; n < images; n++)
            for (ptrdiff_t d = 0; d < s->sizes[2]; d++)
                for (ptrdiff_t h = 0; h < s->sizes[3]; h++) {
                    const float *image = x + c * s->from_steps[0] + n * s->from_steps[1];
                    const float *row = image + d * s->from_steps[2] + h * s->from_steps[3];
                    const float *with = added ? added + c * s->with_steps[0] + n * s->with_steps[1] +
                                                    d * s->with_steps[2] + h * s->with_steps[3] : NULL;
                    float *target = y + c * s->to_steps[0] + n * s->to_steps[1] + d * s->to_steps[2] + h * s->to_steps[3];
                    if (quick)
                        halve_row(s, image, target, d, h);
                    else if (even)
                        mean_row(s, image, target, d, h);
                    else if (s->kind == POOL)
                        pool_row(s, image, target, d, h);
                    else if (s->kind == SPACED)
                        spaced_row(s, c, row, with, target);
                    else
                        map_row(s, row, with, target, s->factor ? s->factor[c] : 1.0f, s->shift ? s->shift[c] : 0.0f);
                }
}

#endif
