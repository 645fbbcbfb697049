/* What is computed row by row: softmax, its logarithm and layer norms over the last axis, gates of recurrent layers.
 * Part of runtime.c. */

enum { SOFTMAX, LOG_SOFTMAX, LAYER_NORM };

typedef struct {
    int kind;
    ptrdiff_t width;
    const float *weight, *bias;
    float epsilon;
} RowRule;

/* Sixteen partial results, so that rows are not summed number after number. */
INLINE float sum_of(const float *x, ptrdiff_t n) {
    float parts[WIDE] = {0}, sum = 0.0f;
    ptrdiff_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        for (int k = 0; k < WIDE; k++) parts[k] += x[i + k];
    for (; i < n; i++) sum += x[i];
    for (int k = 0; k < WIDE; k++) sum += parts[k];
    return sum;
}

INLINE float largest_of(const float *x, ptrdiff_t n) {
    float parts[WIDE], best = -INFINITY;
    for (int k = 0; k < WIDE; k++) parts[k] = -INFINITY;
    ptrdiff_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        for (int k = 0; k < WIDE; k++) parts[k] = parts[k] > x[i + k] ? parts[k] : x[i + k];
    for (; i < n; i++) best = best > x[i] ? best : x[i];
    for (int k = 0; k < WIDE; k++) best = best > parts[k] ? best : parts[k];
    return best;
}

INLINE void softmax_row(const float *restrict x, float *restrict y, ptrdiff_t n, int logarithm) {
    const float best = largest_of(x, n);
    for (ptrdiff_t i = 0; i < n; i++) y[i] = exponential(x[i] - best);
    const float sum = sum_of(y, n);
    if (logarithm) {
        const float shift = best + logf(sum);
        for (ptrdiff_t i = 0; i < n; i++) y[i] = x[i] - shift;
    } else {
        const float share = 1.0f / sum;
        for (ptrdiff_t i = 0; i < n; i++) y[i] *= share;
    }
}

INLINE void norm_row(const RowRule *rule, const float *restrict x, float *restrict y) {
    const ptrdiff_t n = rule->width;
    const float mean = sum_of(x, n) / (float)n;
    for (ptrdiff_t i = 0; i < n; i++) y[i] = (x[i] - mean) * (x[i] - mean);
    const float factor = 1.0f / sqrtf(sum_of(y, n) / (float)n + rule->epsilon);
    for (ptrdiff_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor;
    for (ptrdiff_t i = 0; rule->weight && i < n; i++) y[i] *= rule->weight[i];
    for (ptrdiff_t i = 0; rule->bias && i < n; i++) y[i] += rule->bias[i];
}

INLINE void each_row(const RowRule *rule, const float *x, float *y, ptrdiff_t count) {
    for (ptrdiff_t i = 0; i < count; i++, x += rule->width, y += rule->width)
        if (rule->kind == LAYER_NORM)
            norm_row(rule, x, y);
        else
            softmax_row(x, y, rule->width, rule->kind == LOG_SOFTMAX);
}

enum { RNN_TANH, RNN_RELU, GRU, LSTM };

static const int gates_of[] = {1, 1, 3, 4};

/* One step of one sample: `given` and `added` hold its gates, `h` the state before, `c` the cell; `next` the new state. */
INLINE void gates(int kind, ptrdiff_t n, const float *restrict given, float *restrict added, const float *restrict h,
                  float *restrict c, float *restrict next) {
    if (kind == RNN_TANH) {
        for (ptrdiff_t i = 0; i < n; i++) next[i] = hyperbolic_tangent(given[i] + added[i]);
    } else if (kind == RNN_RELU) {
        for (ptrdiff_t i = 0; i < n; i++) {
            const float sum = given[i] + added[i];
            next[i] = sum < 0.0f ? 0.0f : sum;
        }
    } else if (kind == GRU) {
        for (ptrdiff_t i = 0; i < 2 * n; i++) added[i] = logistic(given[i] + added[i]);
        for (ptrdiff_t i = 0; i < n; i++) {
            const float fresh = hyperbolic_tangent(given[2 * n + i] + added[i] * added[2 * n + i]);
            next[i] = fresh + added[n + i] * (h[i] - fresh);
        }
    } else {
        for (ptrdiff_t i = 0; i < 2 * n; i++) added[i] = logistic(given[i] + added[i]);
        for (ptrdiff_t i = 0; i < n; i++) {
            c[i] = added[n + i] * c[i] + added[i] * hyperbolic_tangent(given[2 * n + i] + added[2 * n + i]);
            next[i] = logistic(given[3 * n + i] + added[3 * n + i]) * hyperbolic_tangent(c[i]);
        }
    }
}
