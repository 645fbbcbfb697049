/* The arithmetic on planes: sparse and dense convolutions, there or on copies, pools, and sums or activations place by
 * place.
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
#define SIDE 16                 /* images in a vector where they lie side by side */

typedef struct {
    uint32_t offset;
    float weight;
} Kept;

typedef enum { SPARSE, DENSE, MAP, POOL, SPACED, RESIZE, PANEL } Kind;

typedef struct {
    Kind kind;
    int from, with, to;         /* buffers; `with` is added, or -1 */
    Activation activation;
    /* convolutions: `count` places of each output channel for one image, `image` more for each further one */
    ptrdiff_t outputs, count, image, from_first, with_first, with_channel, to_first, to_channel;
    uint32_t *starts, *holes;   /* kept weights of each output channel; pairs (first place, length) in every channel */
    ptrdiff_t hole_count, taps, groups;
    ptrdiff_t unit, units;      /* dense and panels: places of an image in runs of `unit`, which begin at `places` */
    uint32_t *places;
    Kept *kept;
    uint32_t *offsets;          /* dense and panels: of each tap, group by group */
    ptrdiff_t deep;             /* panels: taps that are copied at once; kept weights come by these, then by channel */
    float *weights, *bias;      /* dense: (groups, blocks of ROWS channels, taps, ROWS) */
    /* maps and pools: over a lattice of places */
    ptrdiff_t sizes[AXES], from_steps[AXES], with_steps[AXES], to_steps[AXES];
    float *factor, *shift;      /* by channel, or none */
    ptrdiff_t inside[3], window[3], stride[3], before[3], spacing[3];
    uint32_t *low[3];           /* resizes: for each place along an axis the two that it lies between, and the shares */
    float *share[3];            /* of the second; where both are the same place, there is one */
    int mean, count_padding, spare_behind; /* behind: a number more may be read than there are */
    /* images side by side: whether they are, and floats from one to the next where they are not, outside */
    int side;
    ptrdiff_t from_image, to_image;
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

/* Whether few weights stream by, so that writing is what takes time. */
INLINE int has_few(const Step *s) { return s->starts[s->outputs] < 8 * (size_t)s->outputs; }

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
    const int relu = s->activation.kind == RELU;
    ptrdiff_t i = 0;
    /* sums end in their registers: what was just written in halves is slow to read as a whole */
    for (; i + 16 <= n; i += 16) {
        Eight sums[2] = {(Eight){0} + s->bias[channel], (Eight){0} + s->bias[channel]};
        for (const Kept *kept = first; kept < end; kept++) {
            sums[0] += apart(x + kept->offset + 2 * i) * kept->weight;
            sums[1] += apart(x + kept->offset + 2 * i + 16) * kept->weight;
        }
        for (int k = 0; k < 2; k++) {
            if (with) sums[k] += *(const Eight *)(with + i + 8 * k);
            *(Eight *)(y + i + 8 * k) = relu ? (Eight)((EightWhole)sums[k] & ~(sums[k] < 0.0f)) : sums[k];
        }
    }
    for (; i + 8 <= n; i += 8) {
        Eight sum = (Eight){0} + s->bias[channel];
        for (const Kept *kept = first; kept < end; kept++) sum += apart(x + kept->offset + 2 * i) * kept->weight;
        if (with) sum += *(const Eight *)(with + i);
        *(Eight *)(y + i) = relu ? (Eight)((EightWhole)sum & ~(sum < 0.0f)) : sum;
    }
    for (; i + 4 <= n; i += 4) {
        Four sum = (Four){0} + s->bias[channel];
        for (const Kept *kept = first; kept < end; kept++) {
            const float *source = x + kept->offset + 2 * i;
            const Four left = *(const Four *)source, right = *(const Four *)(source + 4);
            sum += (Four){left[0], left[2], right[0], right[2]} * kept->weight;
        }
        if (with) sum += *(const Four *)(with + i);
        *(Four *)(y + i) = relu ? (Four)((FourWhole)sum & ~(sum < 0.0f)) : sum;
    }
    for (; i < n; i++) {
        float sum = s->bias[channel];
        for (const Kept *kept = first; kept < end; kept++) sum += x[kept->offset + 2 * i] * kept->weight;
        if (with) sum += with[i];
        y[i] = relu && sum < 0.0f ? 0.0f : sum;
    }
    if (!relu && s->activation.kind != NOTHING) activate_row(y, n, s->activation);
}

#include "planes_windows.h"
#include "planes_resize.h"

INLINE void walk(const Step *s, float *const *buffers, ptrdiff_t images, float *room) {
    const float *x = buffers[s->from] + s->from_first, *added = s->with < 0 ? NULL : buffers[s->with] + s->with_first;
    float *y = buffers[s->to] + s->to_first;
    const int quick = s->kind == POOL && halves(s), even = s->kind == POOL && means(s);
    for (ptrdiff_t c = 0; c < s->sizes[0]; c++)
        for (ptrdiff_t n = 0; n < images; n++) {
            if (s->kind == RESIZE) {
                resize_image(s, x + c * s->from_steps[0] + n * s->from_steps[1], y + c * s->to_steps[0] + n * s->to_steps[1], room);
                continue;
            }
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
}

#endif
