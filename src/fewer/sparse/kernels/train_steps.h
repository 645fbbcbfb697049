/* Small operations between the chains of a recorded step, each as torch computes it to the bit.

   A step is an operation on strided tensors of at most three dimensions, made ready once; the last dimension is
   the one with the closest neighbours in the result. */

enum { COPY, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, LOWEST, HIGHEST, CLAMP, SQUARE, SQUARED_DIFFERENCE,
       SLOPE_OF_SQUARES, AT_LEAST, AT_MOST, BOTH, WHERE, FILL, GATHER, WIDENED_ADD,
       COUNT_ADD, COUNT_DIVIDE, COUNT_TO_REAL };

typedef struct {
    char *data; /* NULL: the number x stands for all elements */
    int64_t stride[3]; /* in elements */
} Operand;

typedef struct {
    int64_t operation, is_double, size[3];
    Operand out, a, b, c;
    double x, y;
} Step;

typedef struct {
    int64_t length;
    Step steps[];
} Program;

/* `value` for every element, from p, q and r, the elements of a, b and c. Neighbours in memory, and numbers for
   all, are cases of their own that the compiler turns into vectors. */
#define EACH(RESULT, A, B, C, value)                                                                        \
    for (int64_t i = 0; i < step->size[0]; i++)                                                             \
        for (int64_t j = 0; j < step->size[1]; j++) {                                                       \
            RESULT *out = (RESULT *)step->out.data + i * step->out.stride[0] + j * step->out.stride[1];     \
            const A *a = (const A *)step->a.data + i * step->a.stride[0] + j * step->a.stride[1];           \
            const B *b = (const B *)step->b.data + i * step->b.stride[0] + j * step->b.stride[1];           \
            const C *c = (const C *)step->c.data + i * step->c.stride[0] + j * step->c.stride[1];           \
            const int64_t so = step->out.stride[2], sa = step->a.stride[2], sb = step->b.stride[2],         \
                          sc = step->c.stride[2], count = step->size[2];                                    \
            if (so == 1 && sa == 1 && sb == 1 && sc == 0) {                                                 \
                const C r = *c;                                                                             \
                for (int64_t k = 0; k < count; k++) {                                                       \
                    const A p = a[k];                                                                       \
                    const B q = b[k];                                                                       \
                    (void)p, (void)q, (void)r;                                                              \
                    out[k] = value;                                                                         \
                }                                                                                           \
            } else if (so == 1 && sa == 1 && sb == 0 && sc == 0) {                                          \
                const B q = *b;                                                                             \
                const C r = *c;                                                                             \
                for (int64_t k = 0; k < count; k++) {                                                       \
                    const A p = a[k];                                                                       \
                    (void)p, (void)q, (void)r;                                                              \
                    out[k] = value;                                                                         \
                }                                                                                           \
            } else {                                                                                        \
                for (int64_t k = 0; k < count; k++) {                                                       \
                    const A p = a[k * sa];                                                                  \
                    const B q = b[k * sb];                                                                  \
                    const C r = c[k * sc];                                                                  \
                    (void)p, (void)q, (void)r;                                                              \
                    out[k * so] = value;                                                                    \
                }                                                                                           \
            }                                                                                               \
        }

#define STEPS(REAL, name)                                                                                   \
    static int name(Step *step) {                                                                           \
        REAL number = (REAL)step->x; /* where an operand has no memory of its own */                        \
        const REAL low = (REAL)step->x, high = (REAL)step->y;                                               \
        const int64_t whole = isfinite(step->x) ? (int64_t)step->x : 0;                                     \
        Operand *operands[] = {&step->a, &step->b, &step->c};                                               \
        const Operand given[] = {step->a, step->b, step->c};                                                \
        for (int i = 0; i < 3; i++)                                                                         \
            if (!operands[i]->data) operands[i]->data = (char *)&number;                                    \
        int fine = 1;                                                                                       \
        switch (step->operation) {                                                                          \
        case COPY: EACH(REAL, REAL, REAL, REAL, p) break;                                                   \
        case ADD: EACH(REAL, REAL, REAL, REAL, p + q) break;                                                \
        case SUBTRACT: EACH(REAL, REAL, REAL, REAL, p - q) break;                                           \
        case MULTIPLY: EACH(REAL, REAL, REAL, REAL, p * q) break;                                           \
        case DIVIDE: EACH(REAL, REAL, REAL, REAL, p / q) break;                                             \
        case NEGATE: EACH(REAL, REAL, REAL, REAL, -p) break;                                                \
        case LOWEST: EACH(REAL, REAL, REAL, REAL, p != p || p < q ? p : q) break;                           \
        case HIGHEST: EACH(REAL, REAL, REAL, REAL, p != p || p > q ? p : q) break;                          \
        case CLAMP: EACH(REAL, REAL, REAL, REAL, p < low ? low : p > high ? high : p) break;                \
        case SQUARE: EACH(REAL, REAL, REAL, REAL, p * p) break;                                             \
        case SQUARED_DIFFERENCE: EACH(REAL, REAL, REAL, REAL, (p - q) * (p - q)) break;                     \
        case SLOPE_OF_SQUARES: EACH(REAL, REAL, REAL, REAL, low * (p - q) * r) break;                       \
        case AT_LEAST: EACH(uint8_t, REAL, REAL, REAL, p >= q) break;                                       \
        case AT_MOST: EACH(uint8_t, REAL, REAL, REAL, p <= q) break;                                        \
        case BOTH: EACH(uint8_t, uint8_t, uint8_t, REAL, p && q) break;                                     \
        case WHERE: EACH(REAL, REAL, uint8_t, REAL, q ? p : r) break;                                       \
        case FILL: EACH(REAL, REAL, REAL, REAL, low) break;                                                 \
        case WIDENED_ADD: EACH(double, double, float, REAL, p + q) break;                                   \
        case COUNT_ADD: EACH(int64_t, int64_t, REAL, REAL, p + whole) break;                                \
        case COUNT_DIVIDE: EACH(int64_t, int64_t, REAL, REAL, p / whole - (p % whole < 0)) break;           \
        case COUNT_TO_REAL: EACH(REAL, int64_t, REAL, REAL, (REAL)p) break;                                 \
        case GATHER: { /* rows of a by the numbers in b; x is how many rows there are */                    \
            const int64_t *index = (const int64_t *)step->b.data;                                           \
            for (int64_t j = 0; j < step->size[1]; j++) {                                                   \
                const int64_t row = index[j * step->b.stride[1]];                                           \
                fine = fine && row >= 0 && row < (int64_t)step->x;                                          \
                for (int64_t k = 0; fine && k < step->size[2]; k++)                                         \
                    ((REAL *)step->out.data)[j * step->out.stride[1] + k * step->out.stride[2]] =           \
                        ((const REAL *)step->a.data)[row * step->a.stride[1] + k * step->a.stride[2]];      \
            }                                                                                               \
            break;                                                                                          \
        }                                                                                                   \
        default: fine = 0;                                                                                  \
        }                                                                                                   \
        step->a = given[0], step->b = given[1], step->c = given[2];                                         \
        return fine;                                                                                        \
    }

STEPS(float, step_single)
STEPS(double, step_double)
