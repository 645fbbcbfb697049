/* Sparse products for training, called from Python with the addresses of tensors. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "train_chain.h"
#include "train_draws.h"
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

static PyObject *finish(Call *call, void *(*work)(void *), size_t scratch_bytes) {
    if ((uintptr_t)call->hidden % 64) {
        PyErr_SetString(PyExc_ValueError, "hidden activations at an odd address; expected a multiple of 64");
        return NULL;
    }
    int done;
    Py_BEGIN_ALLOW_THREADS done = share_out(call, work, scratch_bytes);
    Py_END_ALLOW_THREADS if (!done) return PyErr_NoMemory();
    Py_RETURN_NONE;
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
