/* The entropy coder of a pack: an adaptive binary range coder, and the two models that drive it.
 *
 * Integers only, so that every machine reads what any other wrote. codec.py holds the same arithmetic in
 * Python; the two must stay equal to the bit. A decoder never reads past its data (zeros follow the end) and
 * never writes past the size it was asked for, whatever the data hold. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 2815      /* largest log-odds, in 1/256 nat */
#define PROBABILITIES 65536
#define LOG_ODDS (2 * LIMIT + 1)
#define INPUTS 5
#define BUCKETS 24

typedef struct {
    uint32_t low, high, code;
    unsigned char *data;        /* written by the encoder, read by the decoder */
    size_t length, position, capacity;
    int writing, failed;
} Coder;

static void put_byte(Coder *coder, unsigned char byte) {
    if (coder->length == coder->capacity) {
        size_t capacity = coder->capacity ? 2 * coder->capacity : 4096;
        unsigned char *grown = realloc(coder->data, capacity);
        if (!grown) {
            coder->failed = 1;
            return;
        }
        coder->data = grown;
        coder->capacity = capacity;
    }
    coder->data[coder->length++] = byte;
}

static uint32_t next_byte(Coder *coder) {
    return coder->position < coder->length ? coder->data[coder->position++] : 0;
}

static void start(Coder *coder, int writing, const void *data, size_t length) {
    memset(coder, 0, sizeof *coder);
    coder->high = 0xffffffffu;
    coder->writing = writing;
    if (!writing) {
        coder->data = (unsigned char *)data;
        coder->length = length;
        for (int i = 0; i < 4; i++) coder->code = coder->code << 8 | next_byte(coder);
    }
}

/* Codes one bit whose probability of being 1 is probability / 65536, 1 <= probability <= 65535. */
static int code_bit(Coder *coder, int bit, uint32_t probability) {
    uint32_t middle = coder->low + (uint32_t)(((uint64_t)(coder->high - coder->low) * probability) >> 16);
    if (!coder->writing) bit = coder->code <= middle;
    if (bit)
        coder->high = middle;
    else
        coder->low = middle + 1;
    while (((coder->low ^ coder->high) & 0xff000000u) == 0) {
        if (coder->writing)
            put_byte(coder, (unsigned char)(coder->high >> 24));
        else
            coder->code = coder->code << 8 | next_byte(coder);
        coder->low <<= 8;
        coder->high = coder->high << 8 | 255;
    }
    return bit;
}

/* The shortest ending: the reader sees zeros after the last byte. */
static void finish(Coder *coder) {
    if (coder->low) put_byte(coder, (unsigned char)((coder->low >> 24) + 1));
    while (coder->length && coder->data[coder->length - 1] == 0) coder->length--;
}

typedef struct {
    uint32_t probability;       /* of a 1, in 2^-22 */
    uint32_t count;
} Bit;

static void learn(Bit *state, int bit, uint32_t slowest) {
    int64_t error = ((int64_t)bit << 22) - (int64_t)state->probability;
    state->probability = (uint32_t)((int64_t)state->probability + error * 2 / (2 * (int64_t)state->count + 3));
    if (state->count < slowest) state->count++;
}

static uint32_t chance(const Bit *state) {
    uint32_t probability = state->probability >> 6;
    return probability < 1 ? 1 : probability > 65535 ? 65535 : probability;
}

typedef struct {
    const int16_t *stretch;     /* probability -> log-odds */
    const uint16_t *squash;     /* log-odds -> probability */
} Tables;

static uint32_t share(uint64_t ones, uint64_t seen, uint32_t strength, uint32_t expected) {
    uint64_t value = ((ones << 16) + (uint64_t)strength * expected) / (seen + strength);
    return value < 1 ? 1 : value > 65535 ? 65535 : (uint32_t)value;
}

static int bucket(int32_t odds) {
    int value = (odds + 2304) >> 7;
    return value < 0 ? 0 : value >= BUCKETS ? BUCKETS - 1 : value;
}

/* A mask row by row: what its row, its column, the whole and its neighbours say, mixed in log-odds. */
static void code_mask(Coder *coder, unsigned char *bits, uint32_t rows, uint32_t columns,
                      Tables tables, uint32_t *ones, Bit *table) {
    static const int32_t start_weights[INPUTS] = {49152, 49152, -49152, 16384, 0};
    int32_t weights[4][INPUTS];
    for (int set = 0; set < 4; set++) memcpy(weights[set], start_weights, sizeof start_weights);
    for (int i = 0; i < BUCKETS * BUCKETS * 4; i++) table[i].probability = 1u << 18;
    uint64_t total = 0, seen = 0;
    for (uint32_t row = 0; row < rows; row++) {
        int32_t *weight = weights[row == 0 ? 0 : row < 4 ? 1 : row < 32 ? 2 : 3];
        uint32_t row_ones = 0, before = 0;
        uint32_t whole = share(total, seen, 32, 3277);
        for (uint32_t column = 0; column < columns; column++) {
            unsigned char *cell = bits + (size_t)row * columns + column;
            uint32_t along = share(row_ones, column, 6, whole);
            uint32_t above = share(ones[column], row, 6, whole);
            int32_t odds[INPUTS];
            odds[0] = tables.stretch[along];
            odds[1] = tables.stretch[above];
            odds[2] = tables.stretch[whole];
            uint32_t over = row ? cell[-(ptrdiff_t)columns] : 0;
            size_t place = (size_t)bucket(odds[0]) * BUCKETS + (size_t)bucket(odds[1]);
            Bit *context = table + place * 4 + before * 2 + over;
            odds[3] = tables.stretch[chance(context)];
            odds[4] = 256;
            int64_t sum = 0;
            for (int i = 0; i < INPUTS; i++) sum += (int64_t)weight[i] * odds[i];
            int64_t mixed = sum >> 16;
            mixed = mixed < -LIMIT ? -LIMIT : mixed > LIMIT ? LIMIT : mixed;
            uint32_t probability = tables.squash[mixed + LIMIT];
            int bit = code_bit(coder, *cell, probability);
            *cell = (unsigned char)bit;
            int64_t error = ((int64_t)bit << 16) - (int64_t)probability;
            for (int i = 0; i < INPUTS; i++) {
                int64_t moved = weight[i] + ((odds[i] * error * 3) >> 18);
                weight[i] = (int32_t)(moved < -524288 ? -524288 : moved > 524288 ? 524288 : moved);
            }
            learn(context, bit, 250);
            ones[column] += (uint32_t)bit;
            row_ones += (uint32_t)bit;
            before = (uint32_t)bit;
        }
        total += row_ones;
        seen += columns;
    }
}

/* Words by their leading bits, one adaptive probability per prefix. */
static void code_words(Coder *coder, uint32_t *words, size_t count, int width, Bit *tree) {
    for (size_t i = 0; i < ((size_t)1 << width); i++) tree[i].probability = 1u << 21;
    for (size_t word = 0; word < count; word++) {
        uint32_t node = 1;
        for (int place = width - 1; place >= 0; place--) {
            Bit *state = tree + node;
            int bit = code_bit(coder, (int)(words[word] >> place & 1), chance(state));
            learn(state, bit, 1000);
            node = node << 1 | (uint32_t)bit;
        }
        words[word] = node - (1u << width);
    }
}

static int tables_from(Py_buffer *stretch, Py_buffer *squash, Tables *tables) {
    if (stretch->len != PROBABILITIES * 2 || squash->len != LOG_ODDS * 2) return 0;
    tables->stretch = stretch->buf;
    tables->squash = squash->buf;
    return 1;
}

/* What a coder that is done gives: the code it wrote, or what it read. */
static PyObject *ended(Coder *coder, int writing, const void *read, Py_ssize_t length) {
    PyObject *answer = NULL;
    if (coder->failed) PyErr_NoMemory();
    else if (writing) answer = PyBytes_FromStringAndSize((char *)coder->data, (Py_ssize_t)coder->length);
    else answer = PyBytes_FromStringAndSize((const char *)read, length);
    if (writing) free(coder->data);
    return answer;
}

/* mask(data, rows, columns, stretch, squash, writing): bytes of cells to code, or code to bytes of cells. */
static PyObject *mask(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer data, stretch, squash;
    unsigned int rows, columns;
    int writing;
    if (!PyArg_ParseTuple(arguments, "y*IIy*y*p", &data, &rows, &columns, &stretch, &squash, &writing))
        return NULL;
    PyObject *answer = NULL;
    Tables tables;
    size_t cells = (size_t)rows * columns;
    int right = tables_from(&stretch, &squash, &tables) && cells <= (size_t)1 << 40 &&
                (!writing || data.len == (Py_ssize_t)cells);
    unsigned char *bits = right ? malloc(cells ? cells : 1) : NULL;
    uint32_t *ones = right ? calloc(columns ? columns : 1, sizeof *ones) : NULL;
    Bit *table = right ? calloc(BUCKETS * BUCKETS * 4, sizeof *table) : NULL;
    if (!right) {
        PyErr_SetString(PyExc_ValueError, "sizes of the mask and the tables disagree");
    } else if (!bits || !ones || !table) {
        PyErr_NoMemory();
    } else {
        Coder coder;
        start(&coder, writing, data.buf, (size_t)data.len);
        if (writing) memcpy(bits, data.buf, cells);
        Py_BEGIN_ALLOW_THREADS
        code_mask(&coder, bits, rows, columns, tables, ones, table);
        if (writing) finish(&coder);
        Py_END_ALLOW_THREADS
        answer = ended(&coder, writing, bits, (Py_ssize_t)cells);
    }
    free(bits), free(ones), free(table);
    PyBuffer_Release(&data), PyBuffer_Release(&stretch), PyBuffer_Release(&squash);
    return answer;
}

/* words(data, count, width, writing): uint32 prefixes to code, or code to uint32 prefixes. */
static PyObject *words(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer data;
    Py_ssize_t count;
    int width, writing;
    if (!PyArg_ParseTuple(arguments, "y*nip", &data, &count, &width, &writing)) return NULL;
    PyObject *answer = NULL;
    int right = count >= 0 && count <= (Py_ssize_t)1 << 40 && width >= 1 && width <= 16 &&
                (!writing || data.len == count * 4);
    uint32_t *values = right ? malloc(count ? (size_t)count * 4 : 1) : NULL;
    Bit *tree = right ? calloc((size_t)1 << width, sizeof *tree) : NULL;
    if (!right) {
        PyErr_SetString(PyExc_ValueError, "sizes of the words disagree");
    } else if (!values || !tree) {
        PyErr_NoMemory();
    } else {
        Coder coder;
        start(&coder, writing, data.buf, (size_t)data.len);
        if (writing) memcpy(values, data.buf, (size_t)count * 4);
        else memset(values, 0, (size_t)count * 4);
        Py_BEGIN_ALLOW_THREADS
        code_words(&coder, values, (size_t)count, width, tree);
        if (writing) finish(&coder);
        Py_END_ALLOW_THREADS
        answer = ended(&coder, writing, values, count * 4);
    }
    free(values), free(tree);
    PyBuffer_Release(&data);
    return answer;
}

static PyMethodDef methods[] = {
    {"mask", mask, METH_VARARGS, "Code a mask, or decode one."},
    {"words", words, METH_VARARGS, "Code leading bits of words, or decode them."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_codec", "Entropy coder of a pack.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__codec(void) { return PyModule_Create(&module); }
