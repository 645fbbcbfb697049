/* rows(kind, x, weight or None, bias or None, epsilon): softmax, its logarithm or a layer norm over the last axis of a
 * contiguous float32 array, or None where it is not one. Part of runtime.c. */
static int row_constant(PyObject *source, ptrdiff_t width, const float **target) {
    PyArrayObject *x = (PyArrayObject *)source;
    if (source == Py_None) return 1;
    if (!PyArray_Check(source) || PyArray_TYPE(x) != NPY_FLOAT || !PyArray_ISCARRAY_RO(x) || PyArray_SIZE(x) != width) return 0;
    *target = PyArray_DATA(x);
    return 1;
}

static PyObject *rows(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *source, *weight, *bias;
    RowRule rule = {0};
    if (!PyArg_ParseTuple(arguments, "iOOOf", &rule.kind, &source, &weight, &bias, &rule.epsilon)) return NULL;
    PyArrayObject *x = (PyArrayObject *)source;
    int right = rule.kind >= SOFTMAX && rule.kind <= LAYER_NORM && PyArray_Check(source) && PyArray_TYPE(x) == NPY_FLOAT &&
                PyArray_ISCARRAY_RO(x) && PyArray_NDIM(x) > 0 && PyArray_DIM(x, PyArray_NDIM(x) - 1) > 0;
    if (right) {
        rule.width = PyArray_DIM(x, PyArray_NDIM(x) - 1);
        right = row_constant(weight, rule.width, &rule.weight) && row_constant(bias, rule.width, &rule.bias);
    }
    if (!right) Py_RETURN_NONE;
    PyObject *answer = PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_FLOAT);
    if (!answer) return NULL;
    const ptrdiff_t count = PyArray_SIZE(x) / rule.width;
    kernels->rows(&rule, PyArray_DATA(x), PyArray_DATA((PyArrayObject *)answer), count);
    return answer;
}

/* The samples of a pair of arrays of one rank, if a product of their last two axes has nothing to repeat. */
static int product_fits(PyArrayObject *left, PyArrayObject *right, Product *p, npy_intp *pairs) {
    const int rank = PyArray_NDIM(left);
    int fits = PyArray_TYPE(left) == NPY_FLOAT && PyArray_TYPE(right) == NPY_FLOAT && PyArray_ISCARRAY_RO(left) &&
               PyArray_ISCARRAY_RO(right) && rank > 1 && PyArray_NDIM(right) == rank;
    *pairs = 1;
    for (int a = 0; fits && a < rank - 2; a++) {
        fits = PyArray_DIM(left, a) == PyArray_DIM(right, a);
        *pairs *= PyArray_DIM(left, a);
    }
    if (!fits || PyArray_DIM(left, rank - 1) != PyArray_DIM(right, rank - 2)) return 0;
    p->rows = PyArray_DIM(left, rank - 2), p->inner = PyArray_DIM(left, rank - 1), p->columns = PyArray_DIM(right, rank - 1);
    return p->rows > 0 && p->inner > 0 && p->inner <= UINT32_MAX && p->columns > 0;
}

/* product(left, right): the product, or None where neither side of every pair is mostly zeros. */
static PyObject *product(PyObject *self, PyObject *arguments) {
    (void)self;
    PyArrayObject *left, *right;
    Product p = {0};
    npy_intp pairs;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyArray_Type, &left, &PyArray_Type, &right)) return NULL;
    if (!product_fits(left, right, &p, &pairs)) Py_RETURN_NONE;
    npy_intp shape[NPY_MAXDIMS];
    const int rank = PyArray_NDIM(left);
    memcpy(shape, PyArray_DIMS(left), (size_t)rank * sizeof *shape);
    shape[rank - 1] = p.columns;
    PyObject *answer = PyArray_SimpleNew(rank, shape, NPY_FLOAT);
    const size_t room = (size_t)(p.inner * p.columns);
    p.places = malloc(room * sizeof *p.places), p.values = malloc(room * sizeof *p.values);
    int made = answer && p.places && p.values;
    if (made) {
        Py_BEGIN_ALLOW_THREADS
        for (npy_intp n = 0; made && n < pairs; n++) {
            p.left = (const float *)PyArray_DATA(left) + n * p.rows * p.inner;
            p.right = (const float *)PyArray_DATA(right) + n * p.inner * p.columns;
            p.answer = (float *)PyArray_DATA((PyArrayObject *)answer) + n * p.rows * p.columns;
            made = kernels->product(&p);
        }
        Py_END_ALLOW_THREADS
    } else if (answer) {
        PyErr_NoMemory();
    }
    free(p.places), free(p.values);
    if (made) return answer;
    Py_XDECREF(answer);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}
