/* Batch norms of images (images, channels, area): what is summed over a channel, in one reading of memory.

   A plane of an image is summed while it lies in the cache; planes are put together in double precision. SUMS parts of a
   sum run side by side, which is a vector to the compiler. */

#define SUMS 16

typedef struct {
    int64_t images, channels, area;
    const void *x, *gy;
    double *first, *second, *third; /* of each channel */
    void *gx;
} Norm;

#define SUM_OF(ELEMENT, term)                                                                               \
    ({                                                                                                      \
        ELEMENT parts[SUMS] = {0};                                                                          \
        int64_t i = 0;                                                                                      \
        for (; i + SUMS <= area; i += SUMS)                                                                 \
            for (int64_t l = i; l < i + SUMS; l++) parts[l - i] += (term);                                  \
        double sum = 0;                                                                                     \
        for (int l = 0; l < SUMS; l++) sum += (double)parts[l];                                             \
        for (int64_t l = i; l < area; l++) sum += (double)(term);                                           \
        sum;                                                                                                \
    })

/* Means and variances (over count, not count - 1): those of a plane joined with those before it (Chan 1979). The sums
   of gradients: of gy, and of gy * (x - mean), where `first` holds the mean and receives the first of them. The gradient:
   first * gy + second * x + third. */
#define NORM(NAME, ELEMENT)                                                                                 \
    static void NAME##_moments(const Norm *n) {                                                             \
        const int64_t area = n->area;                                                                       \
        for (int64_t i = 0; i < n->images; i++)                                                             \
            for (int64_t c = 0; c < n->channels; c++) {                                                     \
                const ELEMENT *x = (const ELEMENT *)n->x + (i * n->channels + c) * area;                    \
                const double own = SUM_OF(ELEMENT, x[l]) / (double)area;                                    \
                const ELEMENT mean = (ELEMENT)own;                                                          \
                const double off = own - (double)mean;                                                      \
                const double spread = SUM_OF(ELEMENT, (x[l] - mean) * (x[l] - mean)) - off * off * (double)area; \
                if (!i) n->first[c] = n->second[c] = 0;                                                     \
                const double apart = own - n->first[c], share = 1.0 / (double)(i + 1);                      \
                n->first[c] += apart * share;                                                               \
                n->second[c] += spread + apart * apart * (double)area * (double)i * share;                  \
            }                                                                                               \
        for (int64_t c = 0; c < n->channels; c++) n->second[c] /= (double)(n->images * area);               \
    }                                                                                                       \
    static void NAME##_gradient_sums(const Norm *n) {                                                       \
        const int64_t area = n->area;                                                                       \
        for (int64_t c = 0; c < n->channels; c++) {                                                         \
            const ELEMENT mean = (ELEMENT)n->first[c];                                                      \
            double sum = 0, product = 0;                                                                    \
            for (int64_t i = 0; i < n->images; i++) {                                                       \
                const ELEMENT *x = (const ELEMENT *)n->x + (i * n->channels + c) * area;                    \
                const ELEMENT *gy = (const ELEMENT *)n->gy + (i * n->channels + c) * area;                  \
                sum += SUM_OF(ELEMENT, gy[l]);                                                              \
                product += SUM_OF(ELEMENT, gy[l] * (x[l] - mean));                                          \
            }                                                                                               \
            n->first[c] = sum, n->second[c] = product;                                                      \
        }                                                                                                   \
    }                                                                                                       \
    static void NAME##_gradient(const Norm *n) {                                                            \
        for (int64_t i = 0; i < n->images; i++)                                                             \
            for (int64_t c = 0; c < n->channels; c++) {                                                     \
                const int64_t plane = (i * n->channels + c) * n->area;                                      \
                const ELEMENT *x = (const ELEMENT *)n->x + plane, *gy = (const ELEMENT *)n->gy + plane;     \
                const ELEMENT a = (ELEMENT)n->first[c], b = (ELEMENT)n->second[c], d = (ELEMENT)n->third[c]; \
                ELEMENT *restrict gx = (ELEMENT *)n->gx + plane;                                            \
                for (int64_t l = 0; l < n->area; l++) gx[l] = a * gy[l] + (b * x[l] + d);                   \
            }                                                                                               \
    }

NORM(single, float)
NORM(whole, double)
