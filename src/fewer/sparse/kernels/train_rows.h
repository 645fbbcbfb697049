/* The three sparse products on one block of samples; a template for one (REAL, INDEX, instruction set).

   A block is `vectors` vectors of samples of every feature: row f starts at data + f * stride. At most MOST
   vectors, so that rows of sums live in registers while kept weights stream past them. The batch is the SIMD
   axis: sparsity costs no gathers.

   The including file defines REAL, INDEX, LANES, VEC, MASK, TARGET, NAME(x), SPLAT(s), FMA(a, b, c), MOST, GROUP
   and REDUCE(totals, sums), which writes the GROUP totals of GROUP vectors. */

#define INLINE static inline __attribute__((always_inline)) TARGET
typedef VEC NAME(loose) __attribute__((aligned(sizeof(REAL)))); /* rows need not be aligned */
#define ROW(rows, index) ((NAME(loose) *)((REAL *)(rows)->data + (int64_t)(index) * (rows)->stride))

/* sums += weight * row over kept weights first..last. The few vectors of one weight would wait for each other's
   additions, so several weights are summed side by side. */
INLINE void NAME(gather)(const int vectors, int32_t first, int32_t last, const REAL *values, const int32_t *order,
                         const INDEX *index, const Rows *rows, VEC *sums) {
    const int beside = vectors == 1 ? 4 : 2;
    VEC more[4][MOST];
    int32_t k = first;
    if (last - first >= beside) {
        for (int b = 1; b < beside; b++)
            for (int v = 0; v < vectors; v++) more[b][v] = SPLAT((REAL)0);
        for (; k + beside <= last; k += beside)
            for (int b = 0; b < beside; b++) {
                const VEC weight = SPLAT(values[order ? order[k + b] : k + b]);
                const NAME(loose) *row = ROW(rows, index[k + b]);
                for (int v = 0; v < vectors; v++) {
                    if (b) more[b][v] = FMA(weight, row[v], more[b][v]);
                    else sums[v] = FMA(weight, row[v], sums[v]);
                }
            }
        for (int b = 1; b < beside; b++)
            for (int v = 0; v < vectors; v++) sums[v] += more[b][v];
    }
    for (; k < last; k++) {
        const VEC weight = SPLAT(values[order ? order[k] : k]);
        const NAME(loose) *row = ROW(rows, index[k]);
        for (int v = 0; v < vectors; v++) sums[v] = FMA(weight, row[v], sums[v]);
    }
}

INLINE void NAME(put)(const int vectors, const Rows *rows, int64_t index, int columns, const VEC *sums) {
    if (columns == vectors * LANES) {
        for (int v = 0; v < vectors; v++) ROW(rows, index)[v] = sums[v];
    } else {
        VEC whole[MOST]; /* a copy, so that the sums themselves stay in registers */
        for (int v = 0; v < vectors; v++) whole[v] = sums[v];
        memcpy(ROW(rows, index), whole, columns * sizeof(REAL));
    }
}

/* y[o] = bias[o] + sum over kept (o, i) of weight * x[i], then relu where asked. Units that the next layer does
   not read are left out; units without kept weights are constants and cost one store. */
INLINE void NAME(forward_rows)(const int vectors, const Layer *layer, const REAL *values, const REAL *bias,
                               const Rows *x, const Rows *y, int columns) {
    const int32_t *start = layer->row_start, *used = layer->used;
    const VEC zero = SPLAT((REAL)0);
    for (int64_t o = 0; o < layer->out; o++) {
        if (used && used[o] == used[o + 1]) continue;
        VEC sums[MOST];
        const VEC first = SPLAT(bias ? bias[o] : (REAL)0);
        for (int v = 0; v < vectors; v++) sums[v] = first;
        NAME(gather)(vectors, start[o], start[o + 1], values, NULL, layer->column, x, sums);
        if (layer->relu) /* not (sum <= 0): a NaN stays a NaN, as in torch */
            for (int v = 0; v < vectors; v++) sums[v] = (VEC)((MASK)sums[v] & ~(MASK)(sums[v] <= zero));
        NAME(put)(vectors, y, o, columns, sums);
    }
}

/* gx[i] = sum over kept (o, i) of weight * gy[o], zero where `active` (the layer below after its relu) is. */
INLINE void NAME(transpose_rows)(const int vectors, const Layer *layer, const REAL *values, const Rows *gy,
                                 const Rows *active, const Rows *gx, int columns) {
    const int32_t *start = layer->column_start;
    const VEC zero = SPLAT((REAL)0);
    for (int64_t i = 0; i < layer->in; i++) {
        VEC sums[MOST];
        for (int v = 0; v < vectors; v++) sums[v] = zero;
        NAME(gather)(vectors, start[i], start[i + 1], values, layer->order, layer->row, gy, sums);
        if (active && start[i] < start[i + 1]) {
            const NAME(loose) *gate = ROW(active, i);
            for (int v = 0; v < vectors; v++) sums[v] = (VEC)((MASK)sums[v] & ~(MASK)(gate[v] <= zero));
        }
        NAME(put)(vectors, gx, i, columns, sums);
    }
}

/* One group of kept-weight gradients: count <= GROUP dots of the row in registers with rows of x. */
INLINE void NAME(dots)(const int vectors, const int count, const VEC *g, const INDEX *column, const Rows *x,
                       REAL *out, int add) {
    VEC sums[GROUP];
    for (int j = 0; j < count; j++) {
        const NAME(loose) *row = ROW(x, column[j]);
        sums[j] = g[0] * row[0];
        for (int v = 1; v < vectors; v++) sums[j] = FMA(g[v], row[v], sums[j]);
    }
    for (int j = count; j < GROUP; j++) sums[j] = SPLAT((REAL)0);
    REAL totals[GROUP] __attribute__((aligned(64)));
    REDUCE(totals, sums);
    for (int j = 0; j < count; j++) out[j] = add ? out[j] + totals[j] : totals[j];
}

/* gw[k] = gy[o] . x[i] at kept (o, i) and gb[o] = sum of gy[o]; `add` sums over the blocks of a batch. */
INLINE void NAME(gradient_rows)(const int vectors, const Layer *layer, const Rows *gy, const Rows *x, REAL *gw,
                                REAL *gb, int add) {
    const int32_t *start = layer->row_start, *used = layer->used;
    const INDEX *column = layer->column;
    for (int64_t o = 0; o < layer->out; o++) {
        int32_t k = start[o];
        const int32_t last = start[o + 1];
        if (used && used[o] == used[o + 1]) { /* nobody reads this unit: its gradients are zero */
            for (; k < last && !add; k++) gw[k] = 0;
            if (!add) gb[o] = 0;
            continue;
        }
        VEC g[MOST];
        for (int v = 0; v < vectors; v++) g[v] = ROW(gy, o)[v];
        for (; k + GROUP <= last; k += GROUP) NAME(dots)(vectors, GROUP, g, column + k, x, gw + k, add);
        if (k < last) NAME(dots)(vectors, last - k, g, column + k, x, gw + k, add);
        VEC sum = g[0];
        for (int v = 1; v < vectors; v++) sum += g[v];
        REAL total = 0;
        for (int lane = 0; lane < LANES; lane++) total += sum[lane];
        gb[o] = add ? gb[o] + total : total;
    }
}

/* The number of vectors as a constant lets the compiler keep the sums in registers. */
#if MOST == 7
#define WIDER(call)                                                                                         \
    case 4: call(4); break;                                                                                 \
    case 5: call(5); break;                                                                                 \
    case 6: call(6); break;
#else
#define WIDER(call)
#endif
#define BY_WIDTH(call)                                                                                      \
    switch (width / LANES) {                                                                                \
    case 1: call(1); break;                                                                                 \
    case 2: call(2); break;                                                                                 \
    case 3: call(3); break;                                                                                 \
    WIDER(call)                                                                                             \
    default: call(MOST); break;                                                                             \
    }

static TARGET void NAME(forward)(int width, const Layer *layer, const void *values, const void *bias,
                                 const Rows *x, const Rows *y, int columns) {
#define CALL(vectors) NAME(forward_rows)(vectors, layer, values, bias, x, y, columns)
    BY_WIDTH(CALL)
#undef CALL
}

static TARGET void NAME(transpose)(int width, const Layer *layer, const void *values, const Rows *gy,
                                   const Rows *active, const Rows *gx, int columns) {
#define CALL(vectors) NAME(transpose_rows)(vectors, layer, values, gy, active, gx, columns)
    BY_WIDTH(CALL)
#undef CALL
}

static TARGET void NAME(gradient)(int width, const Layer *layer, const Rows *gy, const Rows *x, void *gw,
                                  void *gb, int add) {
#define CALL(vectors) NAME(gradient_rows)(vectors, layer, gy, x, gw, gb, add)
    BY_WIDTH(CALL)
#undef CALL
}

static const Kernels NAME(kernels) = {LANES, MOST, NAME(forward), NAME(transpose), NAME(gradient)};

#undef BY_WIDTH
#undef WIDER
#undef ROW
#undef INLINE
