/* Images through a network of convolutions, pools and sums as one call: the type Planes. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdlib.h>

#include "planes_kernels.h"

#define MOST 4096               /* buffers */
#define SPARE_SCRATCH 8         /* threads that find buffers at hand */
#define SLACK 256               /* a row of vectors may be read past the last place of a buffer */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Py_ssize_t count, scratches, inputs, outputs;
    Step *steps;
    ptrdiff_t images;           /* that pass through together at most */
    size_t *sizes;              /* floats of each buffer: scratch for all images, inputs and outputs for one */
    size_t room;                /* floats of all scratch */
    float *spare[SPARE_SCRATCH]; /* buffers that nobody uses now, whose paddings are zero; guarded by Python's own lock */
    int spares;
    double work;                /* multiplications for one image */
} Planes;

typedef struct {
    const char *name;
    void (*run)(const Step *, float *const *, ptrdiff_t);
    void (*activate)(float *, ptrdiff_t, Activation);
} Version;

#define WIDTH 4
#define TILES 2
#define LANES 8
#define NAMED(name) name##_of_4
#include "planes_rows.h"
#define WIDTH 8
#define TILES 2
#define LANES 8
#define NAMED(name) name##_of_8
#include "planes_rows.h"
#define WIDTH 8
#define TILES 2
#define LANES 16
#define NAMED(name) name##_of_many_8
#include "planes_rows.h"
#define WIDTH 16
#define TILES 4
#define LANES 8
#define NAMED(name) name##_of_16
#include "planes_rows.h"

/* A vector that is as wide as a line of the cache crosses one wherever a row does not begin with a line: kept weights,
 * which read their inputs once, are better served by half of that; dense products, which read them for several channels,
 * are not. */
#define VERSION(suffix, attribute, sparse, dense)                                                      \
    attribute static void run_##suffix(const Step *s, float *const *buffers, ptrdiff_t images) {       \
        if (s->kind == SPARSE)                                                                         \
            convolve_of_##sparse(s, buffers, images, SPARSE);                                          \
        else if (s->kind == DENSE)                                                                     \
            convolve_of_##dense(s, buffers, images, DENSE);                                            \
        else                                                                                           \
            walk(s, buffers, images);                                                                  \
    }                                                                                                  \
    attribute static void activate_##suffix(float *y, ptrdiff_t count, Activation f) { activate(y, count, f); } \
    static const Version version_##suffix = {#suffix, run_##suffix, activate_##suffix};

VERSION(portable, , 4, 4)
#if SEVERAL
VERSION(avx2, AVX2, 8, 8)
VERSION(avx512, AVX512, many_8, 16)
#endif

static const Version *version = &version_portable;

static int pick(const char *name) {
    switch (instructions(name)) {
        case PORTABLE: version = &version_portable; break;
#if SEVERAL
        case WITH_AVX2: version = &version_avx2; break;
        case WITH_AVX512: version = &version_avx512; break;
#endif
        default: return 0;
    }
    activate_row = version->activate;
    return 1;
}

/* A copy of an array of `count` numbers of four bytes, or any number of them where count is -1. */
static void *numbers(PyObject *source, Py_ssize_t count, Py_ssize_t *found, int *failed) {
    Py_buffer view;
    if (*failed || PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS) < 0) return *failed = 1, NULL;
    void *target = NULL;
    if (view.len % 4 || (count >= 0 && view.len != count * 4))
        PyErr_Format(PyExc_ValueError, "%zd bytes where %zd numbers were expected", view.len, count);
    else if (!(target = malloc(view.len ? (size_t)view.len : 1)))
        PyErr_NoMemory();
    else
        memcpy(target, view.buf, (size_t)view.len);
    if (found) *found = view.len / 4;
    PyBuffer_Release(&view);
    if (!target) *failed = 1;
    return target;
}

static int sizes_of(PyObject *source, ptrdiff_t *target, int count, ptrdiff_t least) {
    if (!PyTuple_Check(source) || PyTuple_GET_SIZE(source) != count) return 0;
    for (int i = 0; i < count; i++) {
        target[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(source, i));
        if (target[i] < least || target[i] > (ptrdiff_t)1 << 32) return 0;
    }
    return 1;
}

/* Whether `last` is the index of a number that buffer `b` has for all images. */
static int within(const Planes *p, int b, double last) {
    const double factor = b < p->scratches ? 1.0 : (double)p->images;
    return last >= 0 && last < factor * (double)p->sizes[b];
}

static double end_of(ptrdiff_t first, const ptrdiff_t *sizes, const ptrdiff_t *steps) {
    double last = (double)first;
    for (int a = 0; a < AXES; a++) last += (double)(sizes[a] - 1) * (double)steps[a];
    return last;
}

static int rising(const uint32_t *starts, ptrdiff_t count, Py_ssize_t kept) {
    int right = starts[0] == 0 && starts[count] == kept;
    for (ptrdiff_t i = 0; right && i < count; i++) right = starts[i] <= starts[i + 1];
    return right;
}

/* What both convolutions share: everything stays inside its buffer, also the last row of vectors. */
static int convolution_fits(const Planes *p, const Step *s, const uint32_t *offsets, ptrdiff_t count) {
    const double places = (double)s->count + (double)(p->images - 1) * (double)s->image;
    uint32_t furthest = 0;
    for (ptrdiff_t i = 0; i < count; i++) furthest = offsets[i] > furthest ? offsets[i] : furthest;
    int right = s->outputs > 0 && s->count > 0 && s->image >= 0 && s->from_first >= 0 && s->to_first >= 0 &&
                s->with_first >= 0 && s->with_channel >= 0 && s->to_channel >= 0 && s->from < p->scratches &&
                s->with < p->scratches && s->to < p->scratches;
    const double channels = (double)(s->outputs - 1);
    right = right && within(p, s->from, (double)s->from_first + furthest + places - 1) &&
            within(p, s->to, (double)s->to_first + channels * (double)s->to_channel + places - 1);
    right = right && (s->with < 0 || within(p, s->with, (double)s->with_first + channels * (double)s->with_channel + places - 1));
    for (ptrdiff_t h = 0; right && h < s->hole_count; h++)
        right = (double)s->holes[2 * h] + s->holes[2 * h + 1] <= places;
    return right;
}

static int read_sparse(const Planes *p, Step *s, PyObject *rest) {
    PyObject *starts, *offsets, *weights, *bias, *holes;
    Py_ssize_t kept = 0, hole_numbers = 0;
    int failed = 0;
    if (!PyArg_ParseTuple(rest, "nnnnnnnnOOOOO", &s->outputs, &s->count, &s->image, &s->from_first, &s->with_first,
                          &s->with_channel, &s->to_first, &s->to_channel, &starts, &offsets, &weights, &bias, &holes))
        return 0;
    if (s->outputs < 1 || s->outputs > 1 << 24) return 0;
    s->starts = numbers(starts, s->outputs + 1, NULL, &failed);
    uint32_t *places = numbers(offsets, -1, &kept, &failed);
    float *values = numbers(weights, kept, NULL, &failed);
    s->bias = numbers(bias, s->outputs, NULL, &failed);
    s->holes = numbers(holes, -1, &hole_numbers, &failed);
    s->hole_count = hole_numbers / 2;
    s->kept = failed ? NULL : malloc(kept ? (size_t)kept * sizeof *s->kept : 1);
    int right = !failed && s->kept && rising(s->starts, s->outputs, kept) && convolution_fits(p, s, places, kept);
    for (Py_ssize_t i = 0; right && i < kept; i++) s->kept[i] = (Kept){places[i], values[i]};
    free(places), free(values);
    return right;
}

static int read_dense(const Planes *p, Step *s, PyObject *rest) {
    PyObject *offsets, *weights, *bias, *holes;
    Py_ssize_t hole_numbers = 0;
    int failed = 0;
    if (!PyArg_ParseTuple(rest, "nnnnnnnnnnOOOO", &s->outputs, &s->count, &s->image, &s->from_first, &s->with_first,
                          &s->with_channel, &s->to_first, &s->to_channel, &s->groups, &s->taps, &offsets, &weights, &bias,
                          &holes))
        return 0;
    const ptrdiff_t most = 1 << 24;
    if (s->outputs < 1 || s->outputs > most || s->groups < 1 || s->groups > s->outputs || s->outputs % s->groups ||
        s->taps < 1 || s->taps > most)
        return 0;
    const ptrdiff_t rows = s->groups * ((s->outputs / s->groups + ROWS - 1) / ROWS) * ROWS;
    s->offsets = numbers(offsets, s->groups * s->taps, NULL, &failed);
    s->weights = numbers(weights, rows * s->taps, NULL, &failed);
    s->bias = numbers(bias, rows, NULL, &failed);
    s->holes = numbers(holes, -1, &hole_numbers, &failed);
    s->hole_count = hole_numbers / 2;
    return !failed && convolution_fits(p, s, s->offsets, s->groups * s->taps);
}

static int read_lattice(const Planes *p, Step *s, PyObject *sizes, PyObject *from, PyObject *with, PyObject *to) {
    int right = sizes_of(sizes, s->sizes, AXES, 1) && sizes_of(from, s->from_steps, AXES, 0) &&
                sizes_of(with, s->with_steps, AXES, 0) && sizes_of(to, s->to_steps, AXES, 0);
    right = right && s->sizes[1] == p->images && s->from_first >= 0 && s->with_first >= 0 && s->to_first >= 0;
    right = right && within(p, s->to, end_of(s->to_first, s->sizes, s->to_steps));
    return right && (s->with < 0 || within(p, s->with, end_of(s->with_first, s->sizes, s->with_steps)));
}

static int read_map(const Planes *p, Step *s, PyObject *rest) {
    PyObject *sizes, *from, *with, *to, *factor, *shift;
    int failed = 0;
    if (!PyArg_ParseTuple(rest, "OnOnOnOOO", &sizes, &s->from_first, &from, &s->with_first, &with, &s->to_first, &to,
                          &factor, &shift))
        return 0;
    if (!read_lattice(p, s, sizes, from, with, to)) return 0;
    if (factor != Py_None) s->factor = numbers(factor, s->sizes[0], NULL, &failed);
    if (shift != Py_None) s->shift = numbers(shift, s->sizes[0], NULL, &failed);
    return !failed && within(p, s->from, end_of(s->from_first, s->sizes, s->from_steps));
}

static int read_pool(const Planes *p, Step *s, PyObject *rest) {
    PyObject *sizes, *from, *to, *inside, *window, *stride, *before, *spacing;
    if (!PyArg_ParseTuple(rest, "OnOnOOOOOOpp", &sizes, &s->from_first, &from, &s->to_first, &to, &inside, &window,
                          &stride, &before, &spacing, &s->mean, &s->count_padding))
        return 0;
    int right = s->with < 0 && read_lattice(p, s, sizes, from, from, to) && sizes_of(inside, s->inside, 3, 1) &&
                sizes_of(window, s->window, 3, 1) && sizes_of(stride, s->stride, 3, 1) &&
                sizes_of(before, s->before, 3, 0) && sizes_of(spacing, s->spacing, 3, 1);
    const ptrdiff_t read[AXES] = {s->sizes[0], s->sizes[1], s->inside[0], s->inside[1], s->inside[2]};
    return right && within(p, s->from, end_of(s->from_first, read, s->from_steps));
}

/* (kind, from, with, to, activation, rest) */
static int read_step(const Planes *p, Step *s, PyObject *entry) {
    int kind;
    PyObject *rest;
    const Py_ssize_t buffers = p->scratches + p->inputs + p->outputs;
    if (!PyTuple_Check(entry) || !PyArg_ParseTuple(entry, "iiii(ifff)O!", &kind, &s->from, &s->with, &s->to,
                                                   &s->activation.kind, &s->activation.a, &s->activation.b,
                                                   &s->activation.c, &PyTuple_Type, &rest))
        return 0;
    const Py_ssize_t made = p->scratches + p->inputs;
    int right = s->from >= 0 && s->from < made && s->with >= -1 && s->with < made && s->to >= 0 && s->to < buffers &&
                (s->to < p->scratches || s->to >= made);
    if (!right) return 0;
    s->kind = (Kind)kind;
    switch (kind) {
        case SPARSE: return read_sparse(p, s, rest);
        case DENSE: return read_dense(p, s, rest);
        case MAP: return read_map(p, s, rest);
        case POOL: return read_pool(p, s, rest);
        default: return 0;
    }
}

static void planes_free(PyObject *object) {
    Planes *p = (Planes *)object;
    for (Py_ssize_t i = 0; p->steps && i < p->count; i++) {
        Step *s = p->steps + i;
        free(s->starts), free(s->holes), free(s->kept), free(s->offsets), free(s->weights), free(s->bias);
        free(s->factor), free(s->shift);
    }
    for (int i = 0; i < p->spares; i++) free(p->spare[i]);
    free(p->steps), free(p->sizes);
    Py_TYPE(object)->tp_free(object);
}

static double work_of(const Step *s) {
    if (s->kind == SPARSE) return (double)s->starts[s->outputs] * (double)s->count;
    if (s->kind == DENSE) return (double)s->taps * (double)s->outputs * (double)s->count;
    return (double)s->sizes[0] * (double)s->sizes[2] * (double)s->sizes[3] * (double)s->sizes[4];
}

static PyObject *planes_call(PyObject *object, PyObject *const *arguments, size_t count, PyObject *names);

/* Planes(steps, scratch sizes, input sizes, output sizes, images) */
static PyObject *planes_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    (void)names;
    PyObject *steps, *sizes[3];
    Py_ssize_t images;
    if (!PyArg_ParseTuple(arguments, "O!O!O!O!n", &PyList_Type, &steps, &PyTuple_Type, &sizes[0], &PyTuple_Type, &sizes[1],
                          &PyTuple_Type, &sizes[2], &images))
        return NULL;
    Planes *p = (Planes *)type->tp_alloc(type, 0);
    if (!p) return NULL;
    p->call = planes_call;
    p->count = PyList_GET_SIZE(steps), p->images = images;
    p->scratches = PyTuple_GET_SIZE(sizes[0]), p->inputs = PyTuple_GET_SIZE(sizes[1]), p->outputs = PyTuple_GET_SIZE(sizes[2]);
    const Py_ssize_t buffers = p->scratches + p->inputs + p->outputs;
    p->steps = calloc((size_t)p->count + 1, sizeof *p->steps);
    p->sizes = calloc((size_t)buffers + 1, sizeof *p->sizes);
    int right = p->steps && p->sizes && images >= 1 && images <= 65536 && buffers <= MOST;
    for (Py_ssize_t b = 0, k = 0; right && k < 3; k++)
        for (Py_ssize_t i = 0; right && i < PyTuple_GET_SIZE(sizes[k]); i++, b++) {
            const Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes[k], i));
            right = size >= 1 && size <= (Py_ssize_t)1 << 34;
            p->sizes[b] = (size_t)size;
            if (k == 0) p->room += (size_t)size + SLACK;
        }
    for (Py_ssize_t i = 0; right && i < p->count; i++) {
        right = read_step(p, p->steps + i, PyList_GET_ITEM(steps, i));
        if (right) p->work += work_of(p->steps + i);
    }
    if (right && !(p->spare[0] = calloc(p->room + 1, sizeof *p->spare[0]))) PyErr_NoMemory();
    if (right && p->spare[0]) p->spares = 1;
    if (!p->spares) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "steps on planes that do not fit together");
        Py_DECREF(p);
        return NULL;
    }
    return (PyObject *)p;
}

static void run_all(const Planes *p, float *scratch, float *const *given, npy_intp samples) {
    float *buffers[MOST];
    for (Py_ssize_t b = 0; b < p->scratches; b++) buffers[b] = scratch, scratch += p->sizes[b] + SLACK;
    for (npy_intp n = 0; n < samples; n += p->images) {
        const npy_intp images = samples - n < p->images ? samples - n : p->images;
        for (Py_ssize_t b = 0; b < p->inputs + p->outputs; b++)
            buffers[p->scratches + b] = given[b] + (size_t)n * p->sizes[p->scratches + b];
        for (Py_ssize_t i = 0; i < p->count; i++) version->run(p->steps + i, buffers, images);
    }
}

/* planes(x, ...): a tuple of answers (samples, numbers), from contiguous float32 arrays of as many samples. */
static PyObject *planes_call(PyObject *object, PyObject *const *arguments, size_t count, PyObject *names) {
    Planes *p = (Planes *)object;
    float *given[MOST];
    npy_intp samples = -1;
    int right = PyVectorcall_NARGS(count) == p->inputs && !names && p->inputs > 0;
    for (Py_ssize_t b = 0; right && b < p->inputs; b++) {
        PyArrayObject *x = (PyArrayObject *)arguments[b];
        right = PyArray_Check(arguments[b]) && PyArray_TYPE(x) == NPY_FLOAT && PyArray_ISCARRAY_RO(x) &&
                PyArray_NDIM(x) > 0 && (samples < 0 || PyArray_DIM(x, 0) == samples);
        if (!right) break;
        samples = PyArray_DIM(x, 0);
        right = (size_t)PyArray_SIZE(x) == (size_t)samples * p->sizes[p->scratches + b];
        given[b] = PyArray_DATA(x);
    }
    if (!right) {
        PyErr_SetString(PyExc_ValueError, "images of another shape or type");
        return NULL;
    }
    PyObject *answer = PyTuple_New(p->outputs);
    for (Py_ssize_t b = 0; answer && b < p->outputs; b++) {
        npy_intp shape[2] = {samples, (npy_intp)p->sizes[p->scratches + p->inputs + b]};
        PyObject *one = PyArray_SimpleNew(2, shape, NPY_FLOAT);
        if (!one) return Py_DECREF(answer), NULL;
        PyTuple_SET_ITEM(answer, b, one);
        given[p->inputs + b] = PyArray_DATA((PyArrayObject *)one);
    }
    if (!answer) return NULL;
    float *scratch = p->spares ? p->spare[--p->spares] : calloc(p->room + 1, sizeof *scratch);
    if (!scratch) return Py_DECREF(answer), PyErr_NoMemory();
    if (p->work * (double)samples < 1e6) { /* letting other threads run costs more than a small network does */
        run_all(p, scratch, given, samples);
    } else {
        Py_BEGIN_ALLOW_THREADS
        run_all(p, scratch, given, samples);
        Py_END_ALLOW_THREADS
    }
    if (p->spares < SPARE_SCRATCH)
        p->spare[p->spares++] = scratch;
    else
        free(scratch);
    return answer;
}

static PyTypeObject planes_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fewer.packs._planes.Planes",
    .tp_basicsize = sizeof(Planes),
    .tp_dealloc = planes_free,
    .tp_vectorcall_offset = offsetof(Planes, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Convolutions, pools and sums in one call.",
};

static PyObject *use(PyObject *self, PyObject *name) {
    (void)self;
    const char *word = name == Py_None ? NULL : PyUnicode_AsUTF8(name);
    if (PyErr_Occurred()) return NULL;
    if (!pick(word)) return PyErr_Format(PyExc_ValueError, "no kernels called %s on this machine", word);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"use", use, METH_O, "Choose the kernels: avx512, avx2, portable, or None for the best."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_planes", "Images through convolutions.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__planes(void) {
    import_array();
    pick(NULL);
    planes_type.tp_new = planes_new;
    if (PyType_Ready(&planes_type) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddObjectRef(made, "Planes", (PyObject *)&planes_type) < 0) Py_CLEAR(made);
    return made;
}
