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
#if SEVERAL
#include <cpuid.h>
#endif

#define MOST 4096               /* buffers */
#define SPARE_SCRATCH 8         /* threads that find buffers at hand */
#define LINE 16                 /* floats in a line of the cache: results that cross one cost twice */
#define SLACK 256               /* a row of vectors may be read past the last place of a buffer */
#define MOST_NUMBERS ((Py_ssize_t)1 << 34)
#define MOST_AXES 8             /* of an answer, samples among them */

typedef struct {
    int rank;
    npy_intp sizes[MOST_AXES];  /* of one sample from the second on */
} Shape;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Py_ssize_t count, scratches, inputs, outputs;
    Step *steps;
    ptrdiff_t images, side;     /* that pass through one behind the other at most, and side by side: 1 or SIDE */
    size_t *sizes;              /* floats of each buffer: scratch for all images, inputs and outputs for one */
    Shape *shapes;              /* of each output */
    size_t room, step_room;     /* floats of all scratch, those that a step alone needs at its end */
    float *spare[SPARE_SCRATCH]; /* buffers that nobody uses now, whose paddings are zero; guarded by Python's own lock */
    int spares;
    double work;                /* multiplications for one image */
} Planes;

typedef struct {
    const char *name;
    void (*run)(const Step *, float *const *, ptrdiff_t, float *);
    void (*activate)(float *, ptrdiff_t, Activation);
} Version;

#define WIDTH 4
#define HEIGHT 4
#define LANES 8
#define NAMED(name) name##_of_4
#include "planes_rows.h"
#define WIDTH 8
#define HEIGHT 4
#define LANES 8
#define NAMED(name) name##_of_8
#include "planes_rows.h"
#define WIDTH 8
#define HEIGHT 4
#define LANES 12
#define NAMED(name) name##_of_many_8
#include "planes_rows.h"
#define WIDTH 16
#define HEIGHT 8
#define LANES 12
#define NAMED(name) name##_of_16
#include "planes_rows.h"

/* A vector that is as wide as a line of the cache crosses one wherever a row does not begin with a line: kept weights,
 * which read their inputs where they lie, are better served by half of that, but where a processor loads whole lines
 * as fast as halves and there are more than eight places, or where they are few, so that results, which do begin with a
 * line, take more time than what is read. Products that read a copy always take the whole. */
static int whole_lines;

#define ALONE(suffix, attribute, width)                                                                \
    attribute static __attribute__((noinline)) void sparse_##suffix(const Step *s, float *const *buffers, ptrdiff_t images) { \
        convolve_of_##width(s, buffers, images);                                                       \
    }

#define VERSION(suffix, attribute, half, whole, wide)                                                  \
    attribute static void run_##suffix(const Step *s, float *const *buffers, ptrdiff_t images, float *room) { \
        const int several = s->kind == SPARSE && s->count + (images - 1) * s->image > 8;               \
        if (s->side)                                                                                    \
            side_of_##wide(s, buffers, images);                                                         \
        else if (several && (whole_lines || has_few(s)))                                               \
            sparse_##whole(s, buffers, images);                                                        \
        else if (s->kind == SPARSE)                                                                    \
            sparse_##half(s, buffers, images);                                                         \
        else if (s->kind == DENSE || s->kind == PANEL)                                                 \
            dense_of_##wide(s, buffers, images, room);                                                 \
        else                                                                                           \
            walk(s, buffers, images, room);                                                             \
    }                                                                                                  \
    attribute static void activate_##suffix(float *y, ptrdiff_t count, Activation f) { activate(y, count, f); } \
    static const Version version_##suffix = {#suffix, run_##suffix, activate_##suffix};

ALONE(portable, , 4)
VERSION(portable, , portable, portable, 4)
#if SEVERAL
ALONE(avx2, AVX2, 8)
VERSION(avx2, AVX2, avx2, avx2, 8)
ALONE(avx512, AVX512, many_8)
ALONE(avx512_whole, AVX512, 16)
VERSION(avx512, AVX512, avx512, avx512_whole, 16)

/* Measured to be faster on AMD's family 26 (Zen 5), slower on 25 (Zen 4). */
static int loads_whole_lines(void) {
    unsigned a, b, c, d;
    if (!__builtin_cpu_is("amd") || !__get_cpuid(1, &a, &b, &c, &d)) return 0;
    return (a >> 8 & 15) + (a >> 20 & 255) >= 26;
}
#endif

static const Version *version = &version_portable;

static int pick(const char *name) {
    const int whole = name && !strcmp(name, "avx512_whole");
    whole_lines = 0;
    switch (instructions(whole ? "avx512" : name)) {
        case PORTABLE: version = &version_portable; break;
#if SEVERAL
        case WITH_AVX2: version = &version_avx2; break;
        case WITH_AVX512:
            version = &version_avx512, whole_lines = whole || (!name && loads_whole_lines());
            break;
#endif
        default: return 0;
    }
    activate_row = version->activate;
    return 1;
}

#include "planes_read.h"

static void planes_free(PyObject *object) {
    Planes *p = (Planes *)object;
    for (Py_ssize_t i = 0; p->steps && i < p->count; i++) {
        Step *s = p->steps + i;
        free(s->starts), free(s->holes), free(s->kept), free(s->offsets), free(s->weights), free(s->bias);
        free(s->factor), free(s->shift), free(s->places);
        for (int a = 0; a < 3; a++) free(s->low[a]), free(s->share[a]);
    }
    for (int i = 0; i < p->spares; i++) free(p->spare[i]);
    free(p->steps), free(p->sizes), free(p->shapes);
    Py_TYPE(object)->tp_free(object);
}

static double work_of(const Step *s) {
    if (s->kind == PANEL) return (double)s->starts[(s->taps + s->deep - 1) / s->deep * s->outputs] * (double)s->count;
    if (s->kind == SPARSE) return (double)s->starts[s->outputs] * (double)s->count;
    if (s->kind == DENSE) return (double)s->taps * (double)s->outputs * (double)s->count;
    if (s->kind == SPACED) return (double)s->starts[s->sizes[0]] * (double)s->sizes[2] * (double)s->sizes[3] * (double)s->sizes[4];
    return (double)s->sizes[0] * (double)s->sizes[2] * (double)s->sizes[3] * (double)s->sizes[4];
}

/* Floats that a step alone needs. */
static size_t room_of(const Step *s) {
    if (s->kind == DENSE) return dense_room(s);
    if (s->kind == PANEL) return panel_room(s);
    return s->kind == RESIZE ? resize_room(s) : 0;
}

static PyObject *planes_call(PyObject *object, PyObject *const *arguments, size_t count, PyObject *names);

/* How many numbers an answer has: one size, or one for each axis; below 1 for what is neither. */
static Py_ssize_t read_shape(PyObject *source, Shape *shape) {
    const int several = PyTuple_Check(source);
    const Py_ssize_t axes = several ? PyTuple_GET_SIZE(source) : 1;
    Py_ssize_t whole = axes < MOST_AXES;
    for (Py_ssize_t a = 0; whole > 0 && a < axes; a++) {
        const Py_ssize_t size = PyLong_AsSsize_t(several ? PyTuple_GET_ITEM(source, a) : source);
        whole = size < 1 || size > MOST_NUMBERS / whole ? 0 : whole * size;
        shape->sizes[a + 1] = size;
    }
    shape->rank = (int)axes + 1;
    return whole;
}

/* Planes(steps, scratch sizes, input sizes, output sizes or shapes, images[, side by side]): either several images one
 * behind the other, or SIDE side by side, whose steps are those of one. */
static PyObject *planes_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    (void)names;
    PyObject *steps, *sizes[3];
    Py_ssize_t images;
    int side = 0;
    if (!PyArg_ParseTuple(arguments, "O!O!O!O!n|p", &PyList_Type, &steps, &PyTuple_Type, &sizes[0], &PyTuple_Type, &sizes[1],
                          &PyTuple_Type, &sizes[2], &images, &side))
        return NULL;
    Planes *p = (Planes *)type->tp_alloc(type, 0);
    if (!p) return NULL;
    p->call = planes_call;
    p->count = PyList_GET_SIZE(steps), p->images = images, p->side = side ? SIDE : 1;
    p->scratches = PyTuple_GET_SIZE(sizes[0]), p->inputs = PyTuple_GET_SIZE(sizes[1]), p->outputs = PyTuple_GET_SIZE(sizes[2]);
    const Py_ssize_t buffers = p->scratches + p->inputs + p->outputs;
    p->steps = calloc((size_t)p->count + 1, sizeof *p->steps);
    p->sizes = calloc((size_t)buffers + 1, sizeof *p->sizes);
    p->shapes = calloc((size_t)p->outputs + 1, sizeof *p->shapes);
    int right = p->steps && p->sizes && p->shapes && images >= 1 && images <= 65536 && buffers <= MOST && (!side || images == 1);
    for (Py_ssize_t b = 0, k = 0; right && k < 3; k++)
        for (Py_ssize_t i = 0; right && i < PyTuple_GET_SIZE(sizes[k]); i++, b++) {
            PyObject *entry = PyTuple_GET_ITEM(sizes[k], i);
            const Py_ssize_t size = k == 2 ? read_shape(entry, p->shapes + i) : PyLong_AsSsize_t(entry);
            right = size >= 1 && size <= MOST_NUMBERS;
            p->sizes[b] = (size_t)size;
            if (k == 0) p->room += (size_t)size * (size_t)p->side + SLACK;
        }
    for (Py_ssize_t i = 0; right && i < p->count; i++) {
        right = read_step(p, p->steps + i, PyList_GET_ITEM(steps, i));
        if (!right) break;
        p->work += work_of(p->steps + i);
        const size_t wanted = room_of(p->steps + i);
        p->step_room = wanted > p->step_room ? wanted : p->step_room;
    }
    p->room += p->step_room + LINE;
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
    scratch += (LINE - (uintptr_t)scratch / sizeof *scratch % LINE) % LINE;
    for (Py_ssize_t b = 0; b < p->scratches; b++) buffers[b] = scratch, scratch += p->sizes[b] * (size_t)p->side + SLACK;
    const npy_intp together = p->images * p->side;
    for (npy_intp n = 0; n < samples; n += together) {
        const npy_intp images = samples - n < together ? samples - n : together;
        for (Py_ssize_t b = 0; b < p->inputs + p->outputs; b++)
            buffers[p->scratches + b] = given[b] + (size_t)n * p->sizes[p->scratches + b];
        for (Py_ssize_t i = 0; i < p->count; i++) version->run(p->steps + i, buffers, images, scratch);
    }
}

/* planes(x, ...): a tuple of answers (samples, ...) of their shapes, from contiguous float32 arrays of as many samples. */
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
        Shape shape = p->shapes[b];
        shape.sizes[0] = samples;
        PyObject *one = PyArray_SimpleNew(shape.rank, shape.sizes, NPY_FLOAT);
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
    {"use", use, METH_O, "Choose the kernels: avx512_whole, avx512, avx2, portable, or None for the best."},
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
