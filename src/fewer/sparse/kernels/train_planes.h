/* Sparse convolutions in one to three dimensions, forwards and backwards, a few images at a time.

   Images are copied into planes, one for each channel: their rows lie one behind the other with zeros between them
   wherever a convolution reads padding, so that every kept weight is one distance, wherever it is applied. A convolution
   of a stride reads phases, each a plane of its own: every stride-th place from one of the first on. A stretch of places
   is then what a block of samples is to a linear layer, and the kernels are the same:

       y[o][t] = sum of w * x[p][t + d]     gx[p][t] = sum of w * gy[o][t - d]     gw = sum over t of gy[o][t] * x[p][t + d]

   Places between the rows are computed as well and thrown away; there the gradient is zero. */

typedef struct {
    Layer layer; /* its inputs are planes; its columns and rows are distances from the place in question */
    int64_t channels, images, origin, distance; /* images that lie behind each other; first place, length of a plane */
    int64_t steps[3], inside[3], made[3], stride[3]; /* places along each axis, with what lies between; without, in and out */
} Planes;

typedef struct {
    const Planes *planes;
    const Kernels *kernels;
    int64_t samples;
    size_t size;
    const char *x, *values, *bias;
    char *y, *gx, *gradients; /* y: on the way back, its gradient */
} Convolution;

/* A row of an image that holds phases in turn, and its parts, one in each plane: into them, or back out. */
#define SPLIT_ROW(ELEMENT)                                                                                  \
    ELEMENT *row = (ELEMENT *)image, *parts = (ELEMENT *)there;                                             \
    if (phases == 2 && !out) {                                                                              \
        for (int64_t i = 0; i < count / 2; i++) {                                                           \
            const ELEMENT one = row[2 * i], other = row[2 * i + 1];                                         \
            parts[i] = one, parts[distance + i] = other;                                                    \
        }                                                                                                   \
        if (count % 2) parts[count / 2] = row[count - 1];                                                   \
    } else if (phases == 2) {                                                                               \
        for (int64_t i = 0; i < count / 2; i++) {                                                           \
            const ELEMENT one = parts[i], other = parts[distance + i];                                      \
            row[2 * i] = one, row[2 * i + 1] = other;                                                       \
        }                                                                                                   \
        if (count % 2) row[count - 1] = parts[count / 2];                                                   \
    } else {                                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                               \
            ELEMENT *part = parts + i % phases * distance + i / phases;                                     \
            if (out) row[i] = *part;                                                                        \
            else *part = row[i];                                                                            \
        }                                                                                                   \
    }

/* Rows are short: a call of memcpy takes longer than the copy. */
static inline void copy_bytes(char *restrict to, const char *restrict from, int64_t bytes) {
    int64_t at = 0;
    for (; at + 64 <= bytes; at += 64) memcpy(to + at, from + at, 64);
    for (; at + 16 <= bytes; at += 16) memcpy(to + at, from + at, 16);
    for (; at < bytes; at += 4) memcpy(to + at, from + at, 4);
}

static inline void copy_row(const Convolution *call, char *image, char *there, int64_t count, int64_t phases, int out) {
    const int64_t distance = call->planes->distance;
    if (phases == 1) {
        if (out) copy_bytes(image, there, count * (int64_t)call->size);
        else copy_bytes(there, image, count * (int64_t)call->size);
    } else if (call->size == sizeof(float)) {
        SPLIT_ROW(float)
    } else {
        SPLIT_ROW(double)
    }
}

/* `images` images of one channel into the planes of its phases, or back out of them; a place is (phase, number) along
   each axis, counted on, since divisions would take longer than a short row. */
static void copy_channel(const Convolution *call, char *planes, char *channel, int64_t between, int64_t images,
                         const int64_t *sizes, const int64_t *stride, int out) {
    const Planes *p = call->planes;
    const int64_t by_row = sizes[2] * (int64_t)call->size, down = p->steps[2] * (int64_t)call->size;
    const int64_t by_phase = stride[2] * p->distance * (int64_t)call->size;
    for (int64_t i = 0; i < images; i++) {
        char *row = channel + i * between * (int64_t)call->size;
        for (int64_t d = 0; d < sizes[0]; d++) {
            const int64_t place = p->origin + (i * p->steps[0] + d / stride[0]) * p->steps[1] * p->steps[2];
            char *there = planes + place * (int64_t)call->size + d % stride[0] * stride[1] * by_phase;
            for (int64_t h = 0, phase = 0; h < sizes[1]; h++, row += by_row) {
                copy_row(call, row, there + phase * by_phase, sizes[2], stride[2], out);
                if (++phase == stride[1]) phase = 0, there += down;
            }
        }
    }
}

/* All planes of what the convolution reads; channels that no kept weight reads only on the way out, as zeros. */
static void copy_inputs(const Convolution *call, char *planes, char *images, int64_t first, int64_t count, int out) {
    const Planes *p = call->planes;
    const int64_t area = p->inside[0] * p->inside[1] * p->inside[2], phases = p->layer.in / p->channels;
    for (int64_t c = 0; c < p->channels; c++)
        if (out || p->layer.column_start[c * phases] < p->layer.column_start[(c + 1) * phases])
            copy_channel(call, planes + c * phases * p->distance * call->size,
                         images + (first * p->channels + c) * area * call->size, p->channels * area, count, p->inside,
                         p->stride, out);
}

static void copy_outputs(const Convolution *call, char *planes, char *images, int64_t first, int64_t count, int out) {
    const Planes *p = call->planes;
    const int64_t area = p->made[0] * p->made[1] * p->made[2], each[3] = {1, 1, 1};
    for (int64_t o = 0; o < p->layer.out; o++)
        copy_channel(call, planes + o * p->distance * call->size, images + (first * p->layer.out + o) * area * call->size,
                     p->layer.out * area, count, p->made, each, out);
}

static inline int64_t places_of(const Planes *p, int64_t images) { return images * p->steps[0] * p->steps[1] * p->steps[2]; }

/* Vectors of the next block of a stretch, in places. */
static inline int width_at(const Convolution *call, int64_t place, int64_t places) {
    const int64_t most = (int64_t)call->kernels->most * call->kernels->lanes, left = round_up(places - place, call->kernels->lanes);
    return (int)(left < most ? left : most);
}

static inline Rows from_place(const Convolution *call, char *planes, int64_t place, int64_t stride) {
    return (Rows){planes + (call->planes->origin + place) * call->size, stride};
}

static void *convolve_share(void *argument) {
    const Share *share = argument;
    const Convolution *call = share->call;
    const Planes *p = call->planes;
    char *x = share->scratch, *y = x + p->layer.in * p->distance * call->size;
    for (int64_t piece = share->first; piece < share->last; piece++) {
        const int64_t first = piece * p->images, left = call->samples - first, count = left < p->images ? left : p->images;
        if (piece == share->first || count < p->images) memset(x, 0, (size_t)(y - x));
        copy_inputs(call, x, (char *)call->x, first, count, 0);
        for (int64_t place = 0, places = places_of(p, count); place < places; place += width_at(call, place, places)) {
            const Rows from = from_place(call, x, place, 1), to = from_place(call, y, place, p->distance);
            const int width = width_at(call, place, places);
            call->kernels->forward(width, &p->layer, call->values, call->bias, &from, &to, width);
        }
        copy_outputs(call, y, call->y, first, count, 1);
    }
    return NULL;
}

static void *convolve_back_share(void *argument) {
    const Share *share = argument;
    const Convolution *call = share->call;
    const Planes *p = call->planes;
    char *x = share->scratch, *gx = x + p->layer.in * p->distance * call->size;
    char *gy = gx + p->layer.in * p->distance * call->size, *end = gy + p->layer.out * p->distance * call->size;
    char *of_bias = share->gradients ? share->gradients + p->layer.kept * call->size : NULL;
    for (int64_t piece = share->first; piece < share->last; piece++) {
        const int64_t first = piece * p->images, left = call->samples - first, count = left < p->images ? left : p->images;
        if (piece == share->first || count < p->images) memset(x, 0, (size_t)(end - x));
        copy_outputs(call, gy, call->y, first, count, 0);
        if (share->gradients) copy_inputs(call, x, (char *)call->x, first, count, 0);
        for (int64_t place = 0, places = places_of(p, count); place < places; place += width_at(call, place, places)) {
            const int width = width_at(call, place, places);
            const Rows by_output = from_place(call, gy, place, p->distance), from = from_place(call, x, place, 1);
            const Rows back = from_place(call, gy, place, 1), to = from_place(call, gx, place, p->distance);
            if (share->gradients)
                call->kernels->gradient(width, &p->layer, &by_output, &from, share->gradients, of_bias,
                                        place || piece > share->first);
            if (call->gx) call->kernels->transpose(width, &p->layer, call->values, &back, NULL, &to, width);
        }
        if (call->gx) copy_inputs(call, gx, call->gx, first, count, 1);
    }
    return NULL;
}
