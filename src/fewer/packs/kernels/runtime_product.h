/* Products of two values of which one is mostly zeros, as weights of an interpolation are: only what is not zero is
 * multiplied. Part of runtime.c. */

typedef struct {
    ptrdiff_t rows, inner, columns; /* of one pair: (rows, inner) times (inner, columns) */
    const float *left, *right;
    float *answer;
    uint32_t *places;               /* room for what is not zero in the right one: by turn, then by column */
    float *values;
} Product;

INLINE ptrdiff_t not_zero(const float *x, ptrdiff_t n) {
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 0; i < n; i++) found += x[i] != 0.0f;
    return found;
}

/* Few numbers on the left: each row of the answer is a sum of some rows of the right, two of them at a time. */
INLINE void few_on_the_left(const Product *p) {
    for (ptrdiff_t i = 0; i < p->rows; i++) {
        const float *restrict row = p->left + i * p->inner;
        float *restrict sum = p->answer + i * p->columns;
        int begun = 0;
        for (ptrdiff_t k = 0; k < p->inner; k++) {
            if (row[k] == 0.0f) continue;
            const float one = row[k], *restrict first = p->right + k * p->columns;
            while (++k < p->inner && row[k] == 0.0f);
            const float two = k < p->inner ? row[k] : 0.0f, *restrict second = two == 0.0f ? first : p->right + k * p->columns;
            if (begun)
                for (ptrdiff_t j = 0; j < p->columns; j++) sum[j] += one * first[j] + two * second[j];
            else
                for (ptrdiff_t j = 0; j < p->columns; j++) sum[j] = one * first[j] + two * second[j];
            begun = 1;
        }
        if (!begun) memset(sum, 0, (size_t)p->columns * sizeof *sum);
    }
}

/* Few numbers in each column of the right, `most` at most: each answer picks what it needs from its row. */
INLINE void few_on_the_right(const Product *p, ptrdiff_t most) {
    memset(p->places, 0, (size_t)(most * p->columns) * sizeof *p->places);
    memset(p->values, 0, (size_t)(most * p->columns) * sizeof *p->values);
    for (ptrdiff_t j = 0; j < p->columns; j++)
        for (ptrdiff_t k = 0, turn = 0; k < p->inner; k++)
            if (p->right[k * p->columns + j] != 0.0f) {
                p->places[turn * p->columns + j] = (uint32_t)k;
                p->values[turn++ * p->columns + j] = p->right[k * p->columns + j];
            }
    for (ptrdiff_t i = 0; i < p->rows; i++) {
        const float *restrict row = p->left + i * p->inner;
        float *restrict sum = p->answer + i * p->columns;
        for (ptrdiff_t j = 0; j < p->columns; j++) sum[j] = row[p->places[j]] * p->values[j];
        for (ptrdiff_t turn = 1; turn < most; turn++)
            for (ptrdiff_t j = 0; j < p->columns; j++)
                sum[j] += row[p->places[turn * p->columns + j]] * p->values[turn * p->columns + j];
    }
}

/* The most numbers that a column of the right has. */
INLINE ptrdiff_t most_in_a_column(const Product *p) {
    ptrdiff_t most = 1;
    for (ptrdiff_t j = 0; j < p->columns; j++) {
        ptrdiff_t own = 0;
        for (ptrdiff_t k = 0; k < p->inner; k++) own += p->right[k * p->columns + j] != 0.0f;
        most = own > most ? own : most;
    }
    return most;
}

#define FEW 8 /* one of so many, at most, is not zero where this pays */

/* Whether it was computed: not where neither side has few. */
INLINE int few_product(const Product *p) {
    const ptrdiff_t left = p->rows * p->inner, right = p->inner * p->columns;
    if (p->columns >= WIDE && not_zero(p->left, left) * FEW <= left) return few_on_the_left(p), 1;
    if (p->rows < WIDE || not_zero(p->right, right) * FEW > right) return 0;
    const ptrdiff_t most = most_in_a_column(p);
    if (most * FEW > p->inner) return 0;
    return few_on_the_right(p, most), 1;
}
