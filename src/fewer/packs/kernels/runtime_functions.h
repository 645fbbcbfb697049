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
