/* The compiled half of the runtime: a chain of layers as one call, and sparse products for convolutions. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdlib.h>

#include "runtime_kernels.h"
#include "runtime_lanes.h"
#include "runtime_rows.h"
#include "runtime_product.h"

/* One step of a chain. A layer has kept weights twice: by columns or in lanes (one sample), and by rows (many samples). */
typedef struct {
    int layer, dense;
    ptrdiff_t inputs, outputs;
    float *centre, *factor, *shift;     /* not a layer: y = (x - centre) * factor + shift */
    uint32_t *column_starts, *row_starts;
    uint16_t *rows, *columns;
    Lanes lanes;
    float *by_column, *by_row, *bias;
    float *tall;                        /* all weights, TALL rows side by side, where most are kept */
    Activation activation;
} Stage;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Py_ssize_t count;
    Stage *stages;
    int input_rank, output_rank, busy;
    npy_intp input_shape[8], output_shape[8];
    ptrdiff_t inputs, outputs, widest;
    size_t weights;
    float *scratch;
} Chain;

typedef struct {
    const char *name;
    int lanes;
    void (*one)(const Chain *, const float *, float *, float *);
    void (*block)(const Chain *, const float *, float *, ptrdiff_t, float *);
    void (*spread)(const uint32_t *, const uint32_t *, const float *, const float *, ptrdiff_t, const float *, float *,
                   ptrdiff_t, Activation);
    void (*gates)(int, ptrdiff_t, const float *, float *, const float *, float *, float *);
    void (*rows)(const RowRule *, const float *, float *, ptrdiff_t);
    int (*product)(const Product *);
} Kernels;

INLINE ptrdiff_t padded(ptrdiff_t count) { return (count + WIDE - 1) / WIDE * WIDE; }

INLINE void layer_of_one(const Stage *stage, ptrdiff_t outputs, const float *x, float *y) {
    memcpy(y, stage->bias, (size_t)outputs * sizeof *y);
    if (stage->lanes.steps)
        one_in_lanes(&stage->lanes, outputs, x, y);
    else if (stage->dense)
        one_dense(stage->by_column, (stage->inputs + 3) / 4 * 4, outputs, x, y);
    else
        one_sparse(stage->column_starts, stage->rows, stage->by_column, stage->inputs, x, y);
}

/* A sample from start to end; `scratch` holds two padded rows of the widest layer. */
INLINE void one_sample(const Chain *chain, const float *input, float *output, float *scratch) {
    float *x = scratch, *y = scratch + chain->widest;
    memcpy(x, input, (size_t)chain->inputs * sizeof *x);
    for (Py_ssize_t s = 0; s < chain->count; s++) {
        const Stage *stage = chain->stages + s;
        if (stage->layer) {
            const ptrdiff_t outputs = padded(stage->outputs);
            for (ptrdiff_t j = stage->inputs; j % 4; j++) x[j] = 0.0f;
            layer_of_one(stage, outputs, x, y);
            float *swap = x;
            x = y, y = swap;
        } else {
            for (ptrdiff_t i = 0; i < stage->outputs; i++)
                x[i] = (x[i] - stage->centre[i]) * stage->factor[i] + stage->shift[i];
        }
        activate(x, stage->outputs, stage->activation);
    }
    memcpy(output, x, (size_t)chain->outputs * sizeof *x);
}

/* Rows of samples to feature by feature, `width` places each; sixteen features at a time, so that lines are read once. */
INLINE void to_features(const float *restrict input, ptrdiff_t stride, ptrdiff_t features, ptrdiff_t samples,
                        ptrdiff_t width, float *restrict x) {
    for (ptrdiff_t first = 0; first < features; first += WIDE) {
        const ptrdiff_t last = first + WIDE < features ? first + WIDE : features;
        for (ptrdiff_t n = 0; n < samples; n++)
            for (ptrdiff_t j = first; j < last; j++) x[j * width + n] = input[n * stride + j];
    }
    for (ptrdiff_t j = 0; samples < width && j < features; j++)
        for (ptrdiff_t n = samples; n < width; n++) x[j * width + n] = 0.0f;
}

INLINE void to_samples(const float *restrict x, ptrdiff_t width, ptrdiff_t features, ptrdiff_t samples,
                       ptrdiff_t stride, float *restrict output) {
    for (ptrdiff_t first = 0; first < features; first += WIDE) {
        const ptrdiff_t last = first + WIDE < features ? first + WIDE : features;
        for (ptrdiff_t n = 0; n < samples; n++)
            for (ptrdiff_t j = first; j < last; j++) output[n * stride + j] = x[j * width + n];
    }
}

/* Up to BLOCK samples from start to end, feature by feature. */
INLINE void block_of_samples(const Chain *chain, const float *input, float *output, ptrdiff_t samples, float *scratch,
                             const int wide) {
    const int lanes = (int)((samples + WIDE - 1) / WIDE);
    const ptrdiff_t width = lanes * WIDE;
    float *x = scratch, *y = scratch + chain->widest * BLOCK;
    to_features(input, chain->inputs, chain->inputs, samples, width, x);
    for (Py_ssize_t s = 0; s < chain->count; s++) {
        const Stage *stage = chain->stages + s;
        if (stage->layer) {
            if (stage->tall)
                dense_layer(stage->tall, stage->bias, stage->inputs, stage->outputs, x, y, lanes, wide ? TALL : TALL / 2,
                            wide ? 2 : 1);
            else
                layer_of_samples(stage->row_starts, stage->columns, stage->by_row, stage->bias, stage->outputs, x, y, lanes);
            float *swap = x;
            x = y, y = swap;
        } else {
            for (ptrdiff_t i = 0; i < stage->outputs; i++) {
                const float centre = stage->centre[i], factor = stage->factor[i], shift = stage->shift[i];
                for (ptrdiff_t n = 0; n < width; n++) x[i * width + n] = (x[i * width + n] - centre) * factor + shift;
            }
        }
        if (stage->activation.kind != NOTHING) activate(x, stage->outputs * width, stage->activation);
    }
    to_samples(x, width, chain->outputs, samples, chain->outputs, output);
}

#define VERSION(suffix, attribute, width)                                                                             \
    attribute static void one_##suffix(const Chain *chain, const float *input, float *output, float *scratch) {       \
        one_sample(chain, input, output, scratch);                                                                    \
    }                                                                                                                 \
    attribute static void block_##suffix(const Chain *chain, const float *input, float *output, ptrdiff_t samples,    \
                                         float *scratch) {                                                            \
        block_of_samples(chain, input, output, samples, scratch, (width) == WIDE);                                    \
    }                                                                                                                 \
    attribute static void spread_##suffix(const uint32_t *starts, const uint32_t *offsets, const float *values,       \
                                          const float *biases, ptrdiff_t outputs, const float *x, float *y,           \
                                          ptrdiff_t count, Activation f) {                                            \
        spread_over(starts, offsets, values, biases, outputs, x, y, count, f);                                        \
    }                                                                                                                 \
    attribute static void gates_##suffix(int kind, ptrdiff_t n, const float *given, float *added, const float *h,     \
                                         float *c, float *next) {                                                     \
        gates(kind, n, given, added, h, c, next);                                                                     \
    }                                                                                                                 \
    attribute static void rows_##suffix(const RowRule *rule, const float *x, float *y, ptrdiff_t count) {             \
        each_row(rule, x, y, count);                                                                                  \
    }                                                                                                                 \
    attribute static int product_##suffix(const Product *p) { return few_product(p); }                                \
    static const Kernels kernels_##suffix = {#suffix,          width,          one_##suffix, block_##suffix,          \
                                             spread_##suffix, gates_##suffix, rows_##suffix,  product_##suffix};

VERSION(portable, , 4)
#if SEVERAL
VERSION(avx2, AVX2, 8)
VERSION(avx512, AVX512, 16)
#endif

static const Kernels *kernels = &kernels_portable;

static int pick(const char *name) {
    switch (instructions(name)) {
        case PORTABLE: return kernels = &kernels_portable, 1;
#if SEVERAL
        case WITH_AVX2: return kernels = &kernels_avx2, 1;
        case WITH_AVX512: return kernels = &kernels_avx512, 1;
#endif
        default: return 0;
    }
}

#include "runtime_chain.h"
#include "runtime_functions.h"
#include "runtime_recurrent.h"

/* spread(starts, offsets, values, biases, x, y, count, (kind, a, b, c)): y[i, place] = biases[i] + sum of
 * values[p] * x[offsets[p] + place] over the kept weights p of row i, then the activation. */
static PyObject *spread(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer starts, offsets, values, biases, x, y;
    Py_ssize_t count;
    Activation f;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*w*n(ifff)", &starts, &offsets, &values, &biases, &x, &y, &count, &f.kind,
                          &f.a, &f.b, &f.c))
        return NULL;
    const Py_ssize_t rows = starts.len / 4 - 1, kept = offsets.len / 4;
    const uint32_t *start = starts.buf, *offset = offsets.buf;
    int right = rows >= 0 && count >= 0 && values.len == offsets.len && biases.len == rows * 4 &&
                y.len / 4 == rows * count && (rows == 0 || (start[0] == 0 && start[rows] == kept));
    for (Py_ssize_t i = 0; right && i < rows; i++) right = start[i] <= start[i + 1];
    for (Py_ssize_t p = 0; right && p < kept; p++) right = (Py_ssize_t)offset[p] + count <= x.len / 4;
    if (right) {
        Py_BEGIN_ALLOW_THREADS
        kernels->spread(start, offset, values.buf, biases.buf, rows, x.buf, y.buf, count, f);
        Py_END_ALLOW_THREADS
    } else {
        PyErr_SetString(PyExc_ValueError, "sizes of the sparse product disagree");
    }
    PyBuffer_Release(&starts), PyBuffer_Release(&offsets), PyBuffer_Release(&values);
    PyBuffer_Release(&biases), PyBuffer_Release(&x), PyBuffer_Release(&y);
    if (!right) return NULL;
    Py_RETURN_NONE;
}

static PyObject *use(PyObject *self, PyObject *name) {
    (void)self;
    const char *word = name == Py_None ? NULL : PyUnicode_AsUTF8(name);
    if (PyErr_Occurred()) return NULL;
    if (!pick(word)) {
        PyErr_Format(PyExc_ValueError, "no kernels called %s on this machine", word);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *chosen(PyObject *self, PyObject *nothing) {
    (void)self, (void)nothing;
    return Py_BuildValue("(si)", kernels->name, kernels->lanes);
}

static PyMethodDef methods[] = {
    {"spread", spread, METH_VARARGS, "A sparse product over many places."},
    {"rows", rows, METH_VARARGS, "Softmax or a layer norm over the last axis."},
    {"product", product, METH_VARARGS, "A product of two values of which one is mostly zeros."},
    {"recur", recur, METH_VARARGS, "All states of a recurrent layer."},
    {"use", use, METH_O, "Choose the kernels: avx512, avx2, portable, or None for the best."},
    {"chosen", chosen, METH_NOARGS, "Name and lanes of the kernels in use."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_runtime", "Chains of layers and sparse products.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__runtime(void) {
    import_array();
    pick(NULL);
    chain_type.tp_new = chain_new;
    if (PyType_Ready(&chain_type) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddObjectRef(made, "Chain", (PyObject *)&chain_type) < 0) Py_CLEAR(made);
    return made;
}
