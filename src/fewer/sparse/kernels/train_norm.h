/* Batch norms of images (images, channels, area): what is summed over a channel, in one reading of memory.

   A plane of an image is summed while it lies in the cache; planes are put together in double precision. Sums run in
   four vectors side by side, of the same width whatever the instructions, so that all come to the same bits. */

typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(64), aligned(8), may_alias));

typedef struct {
    int64_t images, channels, area;
    const void *x, *gy;
    double *first, *second, *third; /* of each channel */
    void *gx;
} Norm;

typedef struct {
    void (*moments)(const Norm *), (*gradient_sums)(const Norm *), (*gradient)(const Norm *);
} Norms;

/* Terms of sums at a place, of one number or of a vector. */
#define INPUT(T, l) (*(const T *)(x + (l)))
#define SPREAD(T, l) ((INPUT(T, l) - mean) * (INPUT(T, l) - mean))
#define SLOPE(T, l) (*(const T *)(gy + (l)))
#define PRODUCT(T, l) (SLOPE(T, l) * (INPUT(T, l) - mean))

#define SUM_OF(TERM, ELEMENT, VECTOR)                                                                       \
    ({                                                                                                      \
        const int64_t lanes = sizeof(VECTOR) / sizeof(ELEMENT);                                             \
        VECTOR sums[4] = {{0}};                                                                             \
        int64_t l = 0;                                                                                      \
        for (; l + 4 * lanes <= area; l += 4 * lanes) {                                                     \
            sums[0] += TERM(VECTOR, l), sums[1] += TERM(VECTOR, l + lanes);                                 \
            sums[2] += TERM(VECTOR, l + 2 * lanes), sums[3] += TERM(VECTOR, l + 3 * lanes);                 \
        }                                                                                                   \
        for (; l + lanes <= area; l += lanes) sums[0] += TERM(VECTOR, l);                                   \
        sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);                                                \
        double sum = 0;                                                                                     \
        for (int64_t k = 0; k < lanes; k++) sum += (double)sums[0][k];                                      \
        for (; l < area; l++) sum += (double)(TERM(ELEMENT, l));                                            \
        sum;                                                                                                \
    })

/* Means and variances (over count, not count - 1): those of a plane joined with those before it (Chan 1979). The sums
   of gradients: of gy, and of gy * (x - mean), where `first` holds the mean and receives the first of them. The gradient:
   first * gy + second * x + third. */
#define NORM(SET, TARGET, ELEMENT, VECTOR)                                                                  \
    TARGET static void moments_##ELEMENT##_##SET(const Norm *n) {                                           \
        const int64_t area = n->area;                                                                       \
        for (int64_t i = 0; i < n->images; i++)                                                             \
            for (int64_t c = 0; c < n->channels; c++) {                                                     \
                const ELEMENT *x = (const ELEMENT *)n->x + (i * n->channels + c) * area;                    \
                const double own = SUM_OF(INPUT, ELEMENT, VECTOR) / (double)area;                           \
                const ELEMENT mean = (ELEMENT)own;                                                          \
                const double off = own - (double)mean;                                                      \
                const double spread = SUM_OF(SPREAD, ELEMENT, VECTOR) - off * off * (double)area;           \
                if (!i) n->first[c] = n->second[c] = 0;                                                     \
                const double apart = own - n->first[c], share = 1.0 / (double)(i + 1);                      \
                n->first[c] += apart * share;                                                               \
                n->second[c] += spread + apart * apart * (double)area * (double)i * share;                  \
            }                                                                                               \
        for (int64_t c = 0; c < n->channels; c++) n->second[c] /= (double)(n->images * area);               \
    }                                                                                                       \
    TARGET static void gradient_sums_##ELEMENT##_##SET(const Norm *n) {                                     \
        const int64_t area = n->area;                                                                       \
        for (int64_t c = 0; c < n->channels; c++) {                                                         \
            const ELEMENT mean = (ELEMENT)n->first[c];                                                      \
            double sum = 0, product = 0;                                                                    \
            for (int64_t i = 0; i < n->images; i++) {                                                       \
                const ELEMENT *x = (const ELEMENT *)n->x + (i * n->channels + c) * area;                    \
                const ELEMENT *gy = (const ELEMENT *)n->gy + (i * n->channels + c) * area;                  \
                sum += SUM_OF(SLOPE, ELEMENT, VECTOR);                                                      \
                product += SUM_OF(PRODUCT, ELEMENT, VECTOR);                                                \
            }                                                                                               \
            n->first[c] = sum, n->second[c] = product;                                                      \
        }                                                                                                   \
    }                                                                                                       \
    TARGET static void gradient_##ELEMENT##_##SET(const Norm *n) {                                          \
        for (int64_t i = 0; i < n->images; i++)                                                             \
            for (int64_t c = 0; c < n->channels; c++) {                                                     \
                const int64_t plane = (i * n->channels + c) * n->area;                                      \
                const ELEMENT *x = (const ELEMENT *)n->x + plane, *gy = (const ELEMENT *)n->gy + plane;     \
                const ELEMENT a = (ELEMENT)n->first[c], b = (ELEMENT)n->second[c], d = (ELEMENT)n->third[c]; \
                ELEMENT *restrict gx = (ELEMENT *)n->gx + plane;                                            \
                for (int64_t l = 0; l < n->area; l++) gx[l] = a * gy[l] + (b * x[l] + d);                   \
            }                                                                                               \
    }

#define NORMS(SET, TARGET)                                                                                  \
    NORM(SET, TARGET, float, Floats)                                                                        \
    NORM(SET, TARGET, double, Doubles)                                                                      \
    static const Norms norms_##SET[2] = {                                                                   \
        {moments_float_##SET, gradient_sums_float_##SET, gradient_float_##SET},                             \
        {moments_double_##SET, gradient_sums_double_##SET, gradient_double_##SET},                          \
    };

NORMS(portable, )
#if defined(__x86_64__)
NORMS(avx2, __attribute__((target("avx2,fma"))))
NORMS(avx512, __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512"))))
#endif
