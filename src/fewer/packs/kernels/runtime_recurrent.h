/* Recurrent layers: what the inputs add to the gates is given, the states' part is a chain in every step.
 *
 * Part of runtime.c. Gates lie one after another in each sample, as torch orders them. */

typedef struct {
    const Chain *chain;
    int kind, reverse;
    npy_intp steps, samples;
    const float *given, *first;
    float *cell, *states;
} Recurrence;

static void recur_all(const Recurrence *r, float *added, float *scratch) {
    const ptrdiff_t n = r->chain->inputs, wide = r->chain->outputs;
    const float *h = r->first;
    for (npy_intp k = 0; k < r->steps; k++) {
        const npy_intp t = r->reverse ? r->steps - 1 - k : k;
        float *next = r->states + t * r->samples * n;
        run_samples(r->chain, h, added, r->samples, scratch);
        for (npy_intp s = 0; s < r->samples; s++)
            kernels->gates(r->kind, n, r->given + (t * r->samples + s) * wide, added + s * wide, h + s * n,
                           r->cell ? r->cell + s * n : NULL, next + s * n);
        h = next;
    }
}

/* A contiguous float32 array of this shape. */
static int shaped(PyObject *object, int rank, npy_intp first, npy_intp second, npy_intp third) {
    PyArrayObject *x = (PyArrayObject *)object;
    const npy_intp wanted[3] = {first, second, third};
    if (!PyArray_Check(object) || PyArray_TYPE(x) != NPY_FLOAT || !PyArray_ISCARRAY_RO(x) || PyArray_NDIM(x) != rank) return 0;
    for (int i = 0; i < rank; i++)
        if (PyArray_DIM(x, i) != wanted[i]) return 0;
    return 1;
}

/* recur(chain, kind, given, h, c or None, reverse): every state (time, samples, size); c becomes the last cell. */
static PyObject *recur(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *chain, *given, *h, *c;
    Recurrence r = {0};
    if (!PyArg_ParseTuple(arguments, "O!iOOOp", &chain_type, &chain, &r.kind, &given, &h, &c, &r.reverse)) return NULL;
    r.chain = (const Chain *)chain;
    int right = r.kind >= 0 && r.kind <= LSTM && r.chain->outputs == r.chain->inputs * gates_of[r.kind] &&
                PyArray_Check(given) && PyArray_NDIM((PyArrayObject *)given) == 3 && (r.kind == LSTM) == (c != Py_None);
    if (right) {
        r.steps = PyArray_DIM((PyArrayObject *)given, 0), r.samples = PyArray_DIM((PyArrayObject *)given, 1);
        right = shaped(given, 3, r.steps, r.samples, r.chain->outputs) && shaped(h, 2, r.samples, r.chain->inputs, 0) &&
                (c == Py_None || (shaped(c, 2, r.samples, r.chain->inputs, 0) && PyArray_ISWRITEABLE((PyArrayObject *)c)));
    }
    if (!right) return PyErr_SetString(PyExc_ValueError, "gates and states that do not fit together"), NULL;
    npy_intp shape[3] = {r.steps, r.samples, r.chain->inputs};
    PyObject *answer = PyArray_SimpleNew(3, shape, NPY_FLOAT);
    float *scratch = new_scratch(r.chain), *added = calloc((size_t)(r.samples * r.chain->outputs) + 1, sizeof *added);
    if (!answer || !scratch || !added) {
        Py_XDECREF(answer), free(scratch), free(added);
        return PyErr_NoMemory();
    }
    r.given = PyArray_DATA((PyArrayObject *)given), r.first = PyArray_DATA((PyArrayObject *)h);
    r.cell = c == Py_None ? NULL : PyArray_DATA((PyArrayObject *)c);
    r.states = PyArray_DATA((PyArrayObject *)answer);
    Py_BEGIN_ALLOW_THREADS
    recur_all(&r, added, scratch);
    Py_END_ALLOW_THREADS
    free(scratch), free(added);
    return answer;
}
