/* Sparse products for training, called from Python with the addresses of tensors. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "train_threads.h"
#include "train_chain.h"
#include "train_draws.h"
#include "train_norm.h"
#include "train_planes.h"
#include "train_sets.h"
#include "train_steps.h"

enum { PORTABLE, AVX2, AVX512, SETS };
static const char *const set_names[SETS] = {"portable", "avx2", "avx512"};
static int best_set, current_set;

#define TABLE(set)                                                                                          \
    {{&kernels_float_narrow_##set, &kernels_float_wide_##set},                                              \
     {&kernels_double_narrow_##set, &kernels_double_wide_##set}}
static const Kernels *const tables[][2][2] = {
    TABLE(portable),
#if defined(__x86_64__)
    TABLE(avx2),
    TABLE(avx512),
#endif
};

static const Norms *const norms[] = {
    norms_portable,
#if defined(__x86_64__)
    norms_avx2,
    norms_avx512,
#endif
};

static int detect(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return AVX2;
#endif
    return PORTABLE;
}

static void free_plan(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, "fewer.chain")); }

static const Chain *chain_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, "fewer.chain"); }

/* plan([(in, out, kept, relu, wide, row_start, column, column_start, row, order), ...]): addresses of index
   arrays that the caller has checked and keeps alive. */
static PyObject *plan(PyObject *self, PyObject *layers) {
    (void)self;
    const Py_ssize_t length = PySequence_Size(layers);
    if (length < 1 || length > MOST_LAYERS) {
        if (length >= 0) PyErr_Format(PyExc_ValueError, "%zd layers; expected 1 to %d", length, MOST_LAYERS);
        return NULL;
    }
    Chain *chain = calloc(1, sizeof(Chain) + length * sizeof(Layer));
    if (!chain) return PyErr_NoMemory();
    chain->length = (int)length;
    for (int i = 0; i < chain->length; i++) {
        long long in, out, kept, row_start, column, column_start, row, order;
        int relu, wide;
        PyObject *item = PySequence_GetItem(layers, i);
        const int parsed = item && PyArg_ParseTuple(item, "LLLppLLLLL", &in, &out, &kept, &relu, &wide, &row_start,
                                                    &column, &column_start, &row, &order);
        Py_XDECREF(item);
        if (!parsed) {
            free(chain);
            return NULL;
        }
        chain->layers[i] = (Layer){in, out, kept, relu, wide, (int32_t *)row_start, (int32_t *)column_start,
                                   (int32_t *)order, (void *)column, (void *)row, NULL};
        if (i) chain->layers[i - 1].used = chain->layers[i].column_start;
        if (in > chain->widest) chain->widest = in;
        if (out > chain->widest) chain->widest = out;
        if (i < chain->length - 1) chain->hidden += out;
        chain->weights += kept + out;
    }
    return PyCapsule_New(chain, "fewer.chain", free_plan);
}

/* The integers behind (plan, ...), and the call they describe so far. */
static int begin(PyObject *const *arguments, Py_ssize_t count, int fixed, int per_layer, long long *numbers,
                 Call *call) {
    memset(call, 0, sizeof *call);
    call->chain = count ? chain_of(arguments[0]) : NULL;
    if (!call->chain) return 0;
    if (count != fixed + per_layer * call->chain->length) {
        PyErr_Format(PyExc_TypeError, "%zd arguments; expected %d", count, fixed + per_layer * call->chain->length);
        return 0;
    }
    for (Py_ssize_t i = 1; i < count; i++) numbers[i] = PyLong_AsLongLong(arguments[i]);
    if (PyErr_Occurred()) return 0;
    const int is_double = numbers[1] != 0;
    call->kernels[0] = tables[current_set][is_double][0];
    call->kernels[1] = tables[current_set][is_double][1];
    call->size = is_double ? sizeof(double) : sizeof(float);
    call->samples = numbers[3];
    if (call->samples < 1 || numbers[2] < 1) {
        PyErr_SetString(PyExc_ValueError, "no samples or no threads; expected at least one of each");
        return 0;
    }
    cut(call, (int)numbers[2]);
    return 1;
}

static PyObject *shared_out(const Work *shared, void *(*work)(void *)) {
    int done;
    Py_BEGIN_ALLOW_THREADS done = share_out(shared, work);
    Py_END_ALLOW_THREADS if (!done) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *finish(Call *call, void *(*work)(void *), size_t scratch_bytes) {
    if ((uintptr_t)call->hidden % 64) {
        PyErr_SetString(PyExc_ValueError, "hidden activations at an odd address; expected a multiple of 64");
        return NULL;
    }
    const Work shared = {call, call->blocks, call->threads, call->size, scratch_bytes, call->chain->weights, call->gradients};
    return shared_out(&shared, work);
}

/* forward(plan, is_double, threads, samples, x, feature_stride, sample_stride, y, hidden, values, bias, ...) */
static PyObject *forward(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    (void)self;
    Call call;
    long long n[9 + 2 * MOST_LAYERS];
    if (!begin(arguments, count, 9, 2, n, &call)) return NULL;
    call.x = (Matrix){(char *)n[4], n[5], n[6]};
    call.y = (char *)n[7];
    call.hidden = (char *)n[8];
    for (int i = 0; i < call.chain->length; i++) {
        call.values[i] = (char *)n[9 + 2 * i];
        call.bias[i] = (char *)n[10 + 2 * i];
    }
    return finish(&call, forward_share, 2 * block_bytes(&call, block_at(&call, 0), call.chain->widest));
}

/* backward(plan, is_double, threads, samples, x, feature_stride, sample_stride, gy, feature_stride,
   sample_stride, y, hidden, gx, gradients, values, ...); an address of 0: not wanted */
static PyObject *backward(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    (void)self;
    Call call;
    long long n[14 + MOST_LAYERS];
    if (!begin(arguments, count, 14, 1, n, &call)) return NULL;
    call.x = (Matrix){(char *)n[4], n[5], n[6]};
    call.gy = (Matrix){(char *)n[7], n[8], n[9]};
    call.y = (char *)n[10];
    call.hidden = (char *)n[11];
    call.gx = (char *)n[12];
    call.gradients = (char *)n[13];
    for (int i = 0; i < call.chain->length; i++) call.values[i] = (char *)n[14 + i];
    return finish(&call, backward_share, 3 * block_bytes(&call, block_at(&call, 0), call.chain->widest));
}

static void free_planes(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, "fewer.planes")); }

/* planes((planes, outputs, kept, channels, images, origin, distance, steps, inside, made, stride, row_start, column,
   column_start, row, order)): steps to stride have three numbers each; addresses as in a plan. */
static PyObject *planes(PyObject *self, PyObject *numbers) {
    (void)self;
    Planes *made = calloc(1, sizeof(Planes));
    if (!made) return PyErr_NoMemory();
    long long in, out, kept, n[4], address[5], axes[4][3];
    if (!PyArg_ParseTuple(numbers, "LLLLLLL(LLL)(LLL)(LLL)(LLL)LLLLL", &in, &out, &kept, &n[0], &n[1], &n[2], &n[3],
                          &axes[0][0], &axes[0][1], &axes[0][2], &axes[1][0], &axes[1][1], &axes[1][2], &axes[2][0],
                          &axes[2][1], &axes[2][2], &axes[3][0], &axes[3][1], &axes[3][2], &address[0], &address[1],
                          &address[2], &address[3], &address[4])) {
        free(made);
        return NULL;
    }
    made->layer = (Layer){in, out, kept, 0, 1, (int32_t *)address[0], (int32_t *)address[2], (int32_t *)address[4],
                          (void *)address[1], (void *)address[3], NULL};
    made->channels = n[0], made->images = n[1], made->origin = n[2], made->distance = n[3];
    for (int a = 0; a < 3; a++)
        made->steps[a] = axes[0][a], made->inside[a] = axes[1][a], made->made[a] = axes[2][a], made->stride[a] = axes[3][a];
    return PyCapsule_New(made, "fewer.planes", free_planes);
}

/* The integers behind (planes, is_double, threads, samples, ...). */
static int begin_planes(PyObject *const *arguments, Py_ssize_t count, int expected, long long *numbers, Convolution *call) {
    memset(call, 0, sizeof *call);
    if (count != expected) {
        PyErr_Format(PyExc_TypeError, "%zd arguments; expected %d", count, expected);
        return 0;
    }
    call->planes = PyCapsule_GetPointer(arguments[0], "fewer.planes");
    if (!call->planes) return 0;
    for (Py_ssize_t i = 1; i < count; i++) numbers[i] = PyLong_AsLongLong(arguments[i]);
    if (PyErr_Occurred()) return 0;
    call->kernels = tables[current_set][numbers[1] != 0][1];
    call->size = numbers[1] ? sizeof(double) : sizeof(float);
    call->samples = numbers[3];
    if (call->samples < 1 || numbers[2] < 1) {
        PyErr_SetString(PyExc_ValueError, "no samples or no threads; expected at least one of each");
        return 0;
    }
    return 1;
}

static PyObject *finish_planes(const Convolution *call, long long threads, int64_t planes, void *(*work)(void *)) {
    const int64_t pieces = round_up(call->samples, call->planes->images) / call->planes->images;
    const Layer *layer = &call->planes->layer;
    const Work shared = {call, pieces, (int)(threads < pieces ? threads : pieces), call->size,
                         (size_t)(planes * call->planes->distance) * call->size, layer->kept + layer->out, call->gradients};
    return shared_out(&shared, work);
}

/* convolve(planes, is_double, threads, samples, x, y, values, bias); a bias at 0: none */
static PyObject *convolve(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    (void)self;
    Convolution call;
    long long n[8];
    if (!begin_planes(arguments, count, 8, n, &call)) return NULL;
    call.x = (char *)n[4], call.y = (char *)n[5], call.values = (char *)n[6], call.bias = (char *)n[7];
    return finish_planes(&call, n[2], call.planes->layer.in + call.planes->layer.out, convolve_share);
}

/* convolve_back(planes, is_double, threads, samples, x, gy, values, gx, gradients); 0: not wanted */
static PyObject *convolve_back(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    (void)self;
    Convolution call;
    long long n[9];
    if (!begin_planes(arguments, count, 9, n, &call)) return NULL;
    call.x = (char *)n[4], call.y = (char *)n[5], call.values = (char *)n[6], call.gx = (char *)n[7];
    call.gradients = (char *)n[8];
    return finish_planes(&call, n[2], 2 * call.planes->layer.in + call.planes->layer.out, convolve_back_share);
}

/* norm(is_double, images, channels, area, x, gy, gx, first, second, third): of each channel mean and variance of x; with a
   gradient gy its sums, `first` holding the means before; with gx the gradient of x by three numbers for each channel. */
static PyObject *norm(PyObject *self, PyObject *arguments) {
    (void)self;
    int is_double;
    long long images, channels, area, x, gy, gx, first, second, third;
    if (!PyArg_ParseTuple(arguments, "pLLLLLLLLL", &is_double, &images, &channels, &area, &x, &gy, &gx, &first, &second,
                          &third))
        return NULL;
    const Norm call = {images, channels, area, (void *)x, (void *)gy, (double *)first, (double *)second, (double *)third,
                       (void *)gx};
    const Norms *by = &norms[current_set][is_double];
    Py_BEGIN_ALLOW_THREADS (gx ? by->gradient : gy ? by->gradient_sums : by->moments)(&call);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

/* keep_memory(): what is freed stays with the process, up to a gibibyte, instead of being given back to the system and
   cleared anew in every step: a fifth of a step of a small residual network. */
static PyObject *keep_memory(PyObject *self, PyObject *nothing) {
    (void)self, (void)nothing;
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
    Py_RETURN_NONE;
}

/* padded(is_double, threads, samples): how many samples the blocks of a call have room for. */
static PyObject *padded(PyObject *self, PyObject *arguments) {
    (void)self;
    int is_double, threads;
    long long samples;
    if (!PyArg_ParseTuple(arguments, "piL", &is_double, &threads, &samples)) return NULL;
    if (samples < 1 || threads < 1) return PyLong_FromLong(0);
    Call call = {.samples = samples, .kernels = {tables[current_set][is_double][0]}};
    cut(&call, threads);
    return PyLong_FromLongLong(round_up(samples, call.kernels[0]->lanes));
}

/* draw(is_double, seed, step, name, count, offset, scale, to): seed and step by address, name by its hash. */
static PyObject *draw(PyObject *self, PyObject *arguments) {
    (void)self;
    int is_double;
    long long seed, step, name, count, to;
    double offset, scale;
    if (!PyArg_ParseTuple(arguments, "pLLLLddL", &is_double, &seed, &step, &name, &count, &offset, &scale, &to))
        return NULL;
    const Draw drawn = {(int64_t *)seed, (int64_t *)step, name, count, offset, scale};
    draw_numbers(&drawn, is_double, (void *)to);
    Py_RETURN_NONE;
}

static void free_program(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, "fewer.program")); }

/* program(bytes): steps one after the other, laid out as `Step`; whoever made them keeps their memory alive. */
static PyObject *program(PyObject *self, PyObject *bytes) {
    (void)self;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &data, &size)) return NULL;
    if (size % (Py_ssize_t)sizeof(Step)) {
        PyErr_Format(PyExc_ValueError, "%zd bytes; expected steps of %zu", size, sizeof(Step));
        return NULL;
    }
    Program *made = malloc(sizeof(Program) + size);
    if (!made) return PyErr_NoMemory();
    made->length = size / (Py_ssize_t)sizeof(Step);
    memcpy(made->steps, data, size);
    return PyCapsule_New(made, "fewer.program", free_program);
}

/* play(program): all its steps. */
static PyObject *play(PyObject *self, PyObject *capsule) {
    (void)self;
    Program *played = PyCapsule_GetPointer(capsule, "fewer.program");
    if (!played) return NULL;
    for (int64_t i = 0; i < played->length; i++) {
        Step *step = &played->steps[i];
        if (!(step->is_double ? step_double : step_single)(step)) {
            PyErr_Format(PyExc_IndexError, "step %lld; expected a known operation and rows that exist", (long long)i);
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

/* select(name): another instruction set than the best one, for tests and comparisons. */
static PyObject *select_set(PyObject *self, PyObject *name) {
    (void)self;
    const char *wanted = PyUnicode_AsUTF8(name);
    if (!wanted) return NULL;
    for (int set = 0; set <= best_set; set++)
        if (!strcmp(wanted, set_names[set])) {
            current_set = set;
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_ValueError, "instruction set %s; expected one up to %s", wanted, set_names[best_set]);
}

static PyObject *sets(PyObject *self, PyObject *nothing) {
    (void)self, (void)nothing;
    PyObject *names = PyTuple_New(best_set + 1);
    for (int set = 0; names && set <= best_set; set++)
        PyTuple_SET_ITEM(names, set, PyUnicode_FromString(set_names[set]));
    return names;
}

static PyMethodDef methods[] = {
    {"plan", plan, METH_O, "A chain of layers from the addresses of their indices."},
    {"forward", (PyCFunction)(void (*)(void))forward, METH_FASTCALL, "Outputs of a chain."},
    {"backward", (PyCFunction)(void (*)(void))backward, METH_FASTCALL, "Gradients of a chain."},
    {"planes", planes, METH_O, "A convolution of images of one size."},
    {"convolve", (PyCFunction)(void (*)(void))convolve, METH_FASTCALL, "Outputs of a convolution."},
    {"convolve_back", (PyCFunction)(void (*)(void))convolve_back, METH_FASTCALL, "Gradients of a convolution."},
    {"keep_memory", keep_memory, METH_NOARGS, "Do not give freed memory back."},
    {"norm", norm, METH_VARARGS, "What a batch norm sums, and its gradient."},
    {"padded", padded, METH_VARARGS, "Samples that the blocks of a call have room for."},
    {"draw", draw, METH_VARARGS, "Random numbers of a seed, a step and a name."},
    {"program", program, METH_O, "Small operations made ready."},
    {"play", play, METH_O, "The operations of a program."},
    {"select", select_set, METH_O, "Use this instruction set."},
    {"sets", sets, METH_NOARGS, "Instruction sets of this processor, the best one last."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_train", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__train(void) {
    best_set = current_set = detect();
    if (pthread_key_create(&scratch_key, free)) return PyErr_NoMemory();
    return PyModule_Create(&definition);
}
