/* Chains of sparse layers, forwards and backwards, one block of samples after the other.

   A block passes through all layers before the next one starts, so what one layer writes is still in the
   cache when the next one reads it. Threads take whole blocks. */

typedef struct {
    int64_t in, out, kept;
    int relu, wide;
    const int32_t *row_start, *column_start, *order;
    const void *column, *row;
    const int32_t *used; /* column_start of the next layer: which outputs it reads; NULL: all are wanted */
} Layer;

typedef struct { /* a block: samples of feature f from data + f * stride on, in elements */
    void *data;
    int64_t stride;
} Rows;

typedef struct {
    int lanes, most; /* samples of a vector, vectors of a block */
    void (*forward)(int, const Layer *, const void *, const void *, const Rows *, const Rows *, int);
    void (*transpose)(int, const Layer *, const void *, const Rows *, const Rows *, const Rows *, int);
    void (*gradient)(int, const Layer *, const Rows *, const Rows *, void *, void *, int);
} Kernels;

typedef struct {
    int length;
    int64_t widest;          /* the most features any layer reads or writes */
    int64_t hidden;          /* features between the layers, in all */
    int64_t weights;         /* kept weights and biases, in all */
    Layer layers[];
} Chain;

typedef struct { /* a (samples, features) tensor, strides in elements */
    char *data;
    int64_t feature_stride, sample_stride;
} Matrix;

#define MOST_LAYERS 64

typedef struct {
    const Kernels *kernels[2]; /* for narrow and for wide columns */
    const Chain *chain;
    int64_t samples, blocks;
    size_t size; /* of an element, in bytes */
    int width, threads;
    Matrix x, gy;
    char *y, *gx, *hidden;
    const char *values[MOST_LAYERS], *bias[MOST_LAYERS];
    char *gradients; /* of values and bias of each layer in turn; NULL: not wanted */
} Call;

/* Blocks of at most `most` vectors, as many as the threads can share evenly; the last one may be narrower. Seven
   measured best with 32 registers, four with 16: fewer load each weight too often. */
static void cut(Call *call, int threads) {
    const int64_t lanes = call->kernels[0]->lanes, pieces = round_up(call->samples, lanes) / lanes;
    if (threads > pieces) threads = (int)pieces;
    const int64_t most = call->kernels[0]->most, blocks = round_up(round_up(pieces, most) / most, threads);
    call->width = (int)(round_up(pieces, blocks) / blocks * lanes);
    call->blocks = round_up(call->samples, call->width) / call->width;
    call->threads = threads < call->blocks ? threads : (int)call->blocks;
}

typedef struct {
    int64_t first, count; /* samples */
    int width;
} Block;

static Block block_at(const Call *call, int64_t index) {
    Block block = {index * call->width, call->samples - index * call->width, call->width};
    if (block.count < block.width)
        block.width = (int)round_up(block.count, call->kernels[0]->lanes);
    else
        block.count = block.width;
    return block;
}

#define COPY_FEATURES(ELEMENT)                                                                              \
    const ELEMENT *source = (const ELEMENT *)from.data + first * from.sample_stride;                        \
    ELEMENT *target = (ELEMENT *)to;                                                                        \
    const int64_t step = from.feature_stride, stride = from.sample_stride;                                  \
    if (stride == 1) {                                                                                      \
        for (int64_t f = 0; f < features; f++) {                                                            \
            if (used && used[f] == used[f + 1]) continue;                                                   \
            for (int64_t s = 0; s < count && f + 8 < features; s += 64 / (int64_t)sizeof(ELEMENT))          \
                __builtin_prefetch(source + (f + 8) * step + s);                                            \
            memcpy(target + f * width, source + f * step, count * sizeof(ELEMENT));                         \
            memset(target + f * width + count, 0, (width - count) * sizeof(ELEMENT));                       \
        }                                                                                                   \
        return;                                                                                             \
    }                                                                                                       \
    for (int64_t start = 0; start < features; start += 16) {                                                \
        const int64_t end = start + 16 < features ? start + 16 : features;                                  \
        for (int64_t s = 0; s < count; s++)                                                                 \
            for (int64_t f = start; f < end; f++) target[f * width + s] = source[s * stride + f * step];    \
        for (int64_t f = start; f < end; f++)                                                               \
            memset(target + f * width + count, 0, (width - count) * sizeof(ELEMENT));                       \
    }

/* Samples first.. of a tensor into a block, zeros behind the last one. Tiles of 16 features keep a transpose
   in the cache. */
static void pack_single(char *to, Matrix from, int64_t features, const int32_t *used, Block block) {
    const int64_t first = block.first, count = block.count, width = block.width;
    COPY_FEATURES(float)
}

static void pack_double(char *to, Matrix from, int64_t features, const int32_t *used, Block block) {
    const int64_t first = block.first, count = block.count, width = block.width;
    COPY_FEATURES(double)
}

static void pack(const Call *call, char *to, Matrix from, int64_t features, const int32_t *used, Block block) {
    (call->size == sizeof(float) ? pack_single : pack_double)(to, from, features, used, block);
}

/* A block of a tensor for the kernels: in place where the layout allows it and rows are read too seldom to
   earn an aligned copy, which costs about four readings. */
static Rows rows_of(const Call *call, char *room, Matrix from, int64_t features, const int32_t *used,
                    int64_t readings, Block block) {
    if (from.sample_stride == 1 && block.count == block.width && readings < 4 * features)
        return (Rows){from.data + block.first * call->size, from.feature_stride};
    pack(call, room, from, features, used, block);
    return (Rows){room, block.width};
}

static Rows input_rows(const Call *call, char *room, Block block) {
    const Layer *first = &call->chain->layers[0];
    return rows_of(call, room, call->x, first->in, first->column_start, first->kept, block);
}

/* g = 0 where y <= 0, over the samples of a block: the relu behind the last layer, backwards. */
#define GATE(ELEMENT)                                                                                       \
    for (int64_t f = 0; f < features; f++) {                                                                \
        ELEMENT *row = (ELEMENT *)g + f * block.width;                                                      \
        const ELEMENT *of = (const ELEMENT *)call->y + f * call->samples + block.first;                     \
        for (int64_t s = 0; s < block.count; s++) row[s] = of[s] <= 0 ? 0 : row[s];                         \
    }

static void gate(const Call *call, char *g, int64_t features, Block block) {
    if (call->size == sizeof(float)) {
        GATE(float)
    } else {
        GATE(double)
    }
}

static inline size_t block_bytes(const Call *call, Block block, int64_t features) {
    return (size_t)features * block.width * call->size;
}

static inline char *hidden_at(const Call *call, Block block) {
    return call->hidden + block.first * call->chain->hidden * call->size;
}

static void *forward_share(void *argument) {
    const Share *share = argument;
    const Call *call = share->call;
    const Chain *chain = call->chain;
    for (int64_t index = share->first; index < share->last; index++) {
        const Block block = block_at(call, index);
        const size_t half = block_bytes(call, block, chain->widest);
        char *kept = call->hidden ? hidden_at(call, block) : NULL;
        Rows x = input_rows(call, share->scratch, block);
        for (int i = 0; i < chain->length; i++) {
            const Layer *layer = &chain->layers[i];
            const int last = i == chain->length - 1;
            Rows y = {kept ? kept : share->scratch + ((i & 1) ? 0 : half), block.width};
            if (last) y = (Rows){call->y + block.first * call->size, call->samples};
            call->kernels[layer->wide]->forward(block.width, layer, call->values[i], call->bias[i], &x, &y,
                                                last ? (int)block.count : block.width);
            x = y;
            if (kept) kept += block_bytes(call, block, layer->out);
        }
    }
    return NULL;
}

/* The gradient that enters a chain from behind, past the relu of its last layer. */
static Rows entering(const Call *call, char *room, Block block) {
    const Layer *last = &call->chain->layers[call->chain->length - 1];
    if (!last->relu) return rows_of(call, room, call->gy, last->out, NULL, last->kept, block);
    pack(call, room, call->gy, last->out, NULL, block);
    gate(call, room, last->out, block);
    return (Rows){room, block.width};
}

static void *backward_share(void *argument) {
    const Share *share = argument;
    const Call *call = share->call;
    const Chain *chain = call->chain;
    for (int64_t index = share->first; index < share->last; index++) {
        const Block block = block_at(call, index);
        const size_t third = block_bytes(call, block, chain->widest);
        char *room[2] = {share->scratch + third, share->scratch + 2 * third};
        char *hidden = hidden_at(call, block) + block_bytes(call, block, chain->hidden);
        char *gradients = share->gradients ? share->gradients + chain->weights * call->size : NULL;
        Rows gy = entering(call, room[0], block), x = {NULL, 0};
        if (share->gradients) x = input_rows(call, share->scratch, block);
        for (int i = chain->length - 1, turn = 1; i >= 0; i--, turn ^= 1) {
            const Layer *layer = &chain->layers[i];
            const Kernels *kernels = call->kernels[layer->wide];
            if (i) hidden -= block_bytes(call, block, layer->in);
            const Rows below = {hidden, block.width};
            if (share->gradients) {
                gradients -= (layer->kept + layer->out) * call->size;
                kernels->gradient(block.width, layer, &gy, i ? &below : &x, gradients,
                                  gradients + layer->kept * call->size, index > share->first);
            }
            if (!i && !call->gx) break;
            const Rows gx = i ? (Rows){room[turn], block.width}
                              : (Rows){call->gx + block.first * call->size, call->samples};
            kernels->transpose(block.width, layer, call->values[i], &gy,
                               i && chain->layers[i - 1].relu ? &below : NULL, &gx,
                               i ? block.width : (int)block.count);
            gy = gx;
        }
    }
    return NULL;
}
