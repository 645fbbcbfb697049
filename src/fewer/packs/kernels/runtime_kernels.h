/* The arithmetic of the runtime: activations, and sparse products for one sample and for many.
 *
 * Every kernel is written once, inlined into a version for AVX-512, for AVX2 and for the compiler's baseline, and
 * picked when the module is loaded. Samples of a batch lie side by side (feature-major), so that they are the
 * SIMD axis and a kept weight costs the same wherever it stands. */
#ifndef FEWER_RUNTIME_KERNELS_H
#define FEWER_RUNTIME_KERNELS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "instructions.h"

#define INLINE static inline __attribute__((always_inline))
#define WIDE 16                 /* floats of the widest vector */
#define BLOCK (4 * WIDE)        /* samples that pass through a chain together */

typedef float Vector __attribute__((vector_size(4 * WIDE), aligned(4), may_alias));

enum { NOTHING, RELU, LEAKY, ELU, TANH, SIGMOID, GELU, GELU_TANH, CLAMP, ABS, SILU };

typedef struct {
    int kind;
    float a, b, c;
} Activation;

/* e^r - 1 and 2^n, where z = n ln 2 + r: Taylor to r^8, |r| < 0.35. */
INLINE float exponential_parts(float z, float *two_to_n) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
    z = z < -87.0f ? -87.0f : z;
    z = z > 88.0f ? 88.0f : z;
    float shifted = z * 1.44269504f + magic;
    uint32_t bits;
    memcpy(&bits, &shifted, 4);
    float n = shifted - magic;
    float r = z - n * 0.693359375f;
    r = r + n * 2.12194440e-4f; /* ln 2 in two parts, so that r is exact */
    float p = 1.0f / 40320;
    p = p * r + 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r * r + r;
    uint32_t power = (bits - 0x4b400000u + 127u) << 23;
    memcpy(two_to_n, &power, 4);
    return p;
}

/* e^z - 1 without cancellation near 0. */
INLINE float exponential_less_one(float z) {
    float two_to_n;
    const float p = exponential_parts(z, &two_to_n);
    return two_to_n * p + (two_to_n - 1.0f);
}

INLINE float exponential(float z) {
    float two_to_n;
    const float p = exponential_parts(z, &two_to_n);
    return z < -87.0f ? 0.0f : two_to_n * p + two_to_n;
}

INLINE float hyperbolic_tangent(float x) {
    float e = exponential_less_one(2.0f * (x > 20.0f ? 20.0f : x));
    return e / (e + 2.0f);
}

INLINE float logistic(float x) { return 1.0f / (2.0f + exponential_less_one(-x)); }

/* Abramowitz and Stegun 7.1.26: within 1.5e-7 everywhere, and without branches. */
INLINE float error_function(float x) {
    const float a = x < 0.0f ? -x : x, t = 1.0f / (1.0f + 0.3275911f * a);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const float y = 1.0f - p * t * exponential(-a * a);
    return x < 0.0f ? -y : y;
}

#define EACH(expression)                       \
    for (ptrdiff_t i = 0; i < count; i++) {    \
        float x = y[i];                        \
        y[i] = (expression);                   \
    }                                          \
    break;

/* A comparison that is false for NaN keeps the NaN. */
INLINE void activate(float *restrict y, ptrdiff_t count, Activation f) {
    const float a = f.a, b = f.b, c = f.c;
    switch (f.kind) {
        case RELU: EACH(x < 0.0f ? 0.0f : x)
        case LEAKY: EACH(x < 0.0f ? a * x : x)
        case ELU: EACH(x > 0.0f ? b * x : a * b * exponential_less_one(c * x))
        case TANH: EACH(hyperbolic_tangent(x))
        case SIGMOID: EACH(logistic(x))
        case SILU: EACH(x * logistic(x))
        case GELU: EACH(0.5f * x * (1.0f + error_function(x * 0.70710678f)))
        case GELU_TANH: EACH(0.5f * x * (1.0f + hyperbolic_tangent(0.79788456f * (x + 0.044715f * x * x * x))))
        case CLAMP: EACH(x < a ? a : x > b ? b : x)
        case ABS: EACH(x < 0.0f ? -x : x)
        default: break;
    }
}

/* One sample, columns that are dense enough: y += W x, W by columns of `outputs` (a multiple of WIDE) floats;
 * the number of inputs is padded to a multiple of 4, so that y is touched once in four columns. */
INLINE void one_dense(const float *restrict columns, ptrdiff_t inputs, ptrdiff_t outputs, const float *restrict x,
                      float *restrict y) {
    for (ptrdiff_t j = 0; j < inputs; j += 4) {
        const float *column = columns + j * outputs;
        const float x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
        if (x0 == 0.0f && x1 == 0.0f && x2 == 0.0f && x3 == 0.0f) continue;
        for (ptrdiff_t i = 0; i < outputs; i += WIDE) {
            Vector first = *(const Vector *)(column + i) * x0 + *(const Vector *)(column + outputs + i) * x1;
            Vector second = *(const Vector *)(column + 2 * outputs + i) * x2 + *(const Vector *)(column + 3 * outputs + i) * x3;
            *(Vector *)(y + i) += first + second;
        }
    }
}

/* One sample, few weights: columns whose input is 0 (half of them after a ReLU) are not read at all. */
INLINE void one_sparse(const uint32_t *restrict starts, const uint16_t *restrict rows, const float *restrict values,
                       ptrdiff_t inputs, const float *restrict x, float *restrict y) {
    for (ptrdiff_t j = 0; j < inputs; j++) {
        const float xj = x[j];
        if (xj == 0.0f) continue;
        for (uint32_t p = starts[j]; p < starts[j + 1]; p++) y[rows[p]] += values[p] * xj;
    }
}

/* `lanes` vectors of one row: bias plus the kept weights times what lies `offsets` away. */
INLINE void row_of(const uint32_t *restrict offsets, const float *restrict values, uint32_t from, uint32_t to,
                   float bias, const float *restrict x, float *restrict y, const int lanes) {
    Vector a = (Vector){0} + bias, b = a, c = a, d = a;
    for (uint32_t p = from; p < to; p++) {
        const float *source = x + offsets[p];
        const float w = values[p];
        a += *(const Vector *)source * w;
        if (lanes > 1) b += *(const Vector *)(source + WIDE) * w;
        if (lanes > 2) c += *(const Vector *)(source + 2 * WIDE) * w;
        if (lanes > 3) d += *(const Vector *)(source + 3 * WIDE) * w;
    }
    *(Vector *)y = a;
    if (lanes > 1) *(Vector *)(y + WIDE) = b;
    if (lanes > 2) *(Vector *)(y + 2 * WIDE) = c;
    if (lanes > 3) *(Vector *)(y + 3 * WIDE) = d;
}

INLINE void rows_of(const uint32_t *starts, const uint32_t *offsets, const float *values, const float *biases,
                    ptrdiff_t outputs, const float *x, float *y, ptrdiff_t stride, int lanes) {
    for (ptrdiff_t i = 0; i < outputs; i++) {
        const uint32_t from = starts[i], to = starts[i + 1];
        float *out = y + i * stride;
        switch (lanes) {
            case 1: row_of(offsets, values, from, to, biases[i], x, out, 1); break;
            case 2: row_of(offsets, values, from, to, biases[i], x, out, 2); break;
            case 3: row_of(offsets, values, from, to, biases[i], x, out, 3); break;
            default: row_of(offsets, values, from, to, biases[i], x, out, 4); break;
        }
    }
}

/* `lanes` vectors of one row, samples side by side: few vectors are summed in parts, since an addition waits for the last. */
INLINE void row_of_samples(const uint16_t *restrict columns, const float *restrict values, uint32_t from, uint32_t to,
                           float bias, const float *restrict x, float *restrict y, const int lanes) {
    const int parts = 4 / lanes;
    Vector sums[4];
#pragma GCC unroll 4
    for (int k = 0; k < lanes * parts; k++) sums[k] = (Vector){0} + (k < lanes ? bias : 0.0f);
    for (; from + (uint32_t)parts <= to; from += (uint32_t)parts) {
#pragma GCC unroll 4
        for (int k = 0; k < lanes * parts; k++) {
            const float *source = x + (size_t)columns[from + (uint32_t)(k / lanes)] * (size_t)(lanes * WIDE);
            sums[k] += *(const Vector *)(source + k % lanes * WIDE) * values[from + (uint32_t)(k / lanes)];
        }
    }
    for (; from < to; from++) {
#pragma GCC unroll 4
        for (int k = 0; k < lanes; k++)
            sums[k] += *(const Vector *)(x + ((size_t)columns[from] * (size_t)lanes + (size_t)k) * WIDE) * values[from];
    }
#pragma GCC unroll 4
    for (int k = lanes; k < lanes * parts; k++) sums[k % lanes] += sums[k];
#pragma GCC unroll 4
    for (int k = 0; k < lanes; k++) *(Vector *)(y + k * WIDE) = sums[k];
}

/* A layer for `lanes` vectors of samples, feature by feature. */
INLINE void layer_of_samples(const uint32_t *starts, const uint16_t *columns, const float *values, const float *biases,
                             ptrdiff_t outputs, const float *x, float *y, int lanes) {
#define SOME(n)                                                                                                 \
    case n:                                                                                                     \
        for (ptrdiff_t i = 0; i < outputs; i++)                                                                 \
            row_of_samples(columns, values, starts[i], starts[i + 1], biases[i], x, y + i * n * WIDE, n);       \
        break;
    switch (lanes) { SOME(1) SOME(2) SOME(3) SOME(4) }
#undef SOME
}

#define TALL 8                  /* rows of a dense layer that lie side by side in its weights */

/* `rows` of a dense layer for `lanes` vectors of samples, of `width` numbers a feature. */
INLINE void dense_rows(const float *restrict weights, const float *restrict bias, ptrdiff_t inputs, const float *restrict x,
                       ptrdiff_t width, float *restrict y, ptrdiff_t kept, const int rows, const int lanes) {
    Vector sums[TALL * 2];
#pragma GCC unroll 16
    for (int k = 0; k < rows * lanes; k++) sums[k] = (Vector){0} + bias[k / lanes];
    for (ptrdiff_t j = 0; j < inputs; j++, weights += TALL, x += width) {
        Vector values[2];
#pragma GCC unroll 2
        for (int l = 0; l < lanes; l++) values[l] = *(const Vector *)(x + l * WIDE);
#pragma GCC unroll 16
        for (int k = 0; k < rows * lanes; k++) sums[k] += values[k % lanes] * weights[k / lanes];
    }
#pragma GCC unroll 16
    for (int k = 0; k < rows * lanes; k++)
        if (k / lanes < kept) *(Vector *)(y + k / lanes * width + k % lanes * WIDE) = sums[k];
}

/* A dense layer for `lanes` vectors of samples; with few registers fewer rows and vectors are held at once. */
INLINE void dense_layer(const float *weights, const float *bias, ptrdiff_t inputs, ptrdiff_t outputs, const float *x,
                        float *y, int lanes, const int rows, const int most) {
    for (ptrdiff_t i = 0; i < outputs; i += rows) {
        const float *block = weights + i / TALL * TALL * inputs + i % TALL;
        int l = 0;
        for (; most == 2 && l + 2 <= lanes; l += 2)
            dense_rows(block, bias + i, inputs, x + l * WIDE, lanes * WIDE, y + i * lanes * WIDE + l * WIDE, outputs - i,
                       rows, 2);
        for (; l < lanes; l++)
            dense_rows(block, bias + i, inputs, x + l * WIDE, lanes * WIDE, y + i * lanes * WIDE + l * WIDE, outputs - i,
                       rows, 1);
    }
}

/* Many places at once, any number of them: what a sparse convolution of stride 1 is on a flat padded image. */
INLINE void spread_over(const uint32_t *starts, const uint32_t *offsets, const float *values, const float *biases,
                        ptrdiff_t outputs, const float *x, float *y, ptrdiff_t count, Activation f) {
    ptrdiff_t place = 0;
    for (; place + BLOCK <= count; place += BLOCK)
        rows_of(starts, offsets, values, biases, outputs, x + place, y + place, count, 4);
    for (; place + WIDE <= count; place += WIDE)
        rows_of(starts, offsets, values, biases, outputs, x + place, y + place, count, 1);
    for (; place < count; place++)
        for (ptrdiff_t i = 0; i < outputs; i++) {
            float sum = biases[i];
            for (uint32_t p = starts[i]; p < starts[i + 1]; p++) sum += values[p] * x[offsets[p] + place];
            y[i * count + place] = sum;
        }
    activate(y, outputs * count, f);
}

#endif
