/* The type Chain: built once from checked arrays, then called with one sample or many. Part of runtime.c. */

static void *copied(PyObject *source, size_t count, size_t size, size_t room, int *failed) {
    Py_buffer view;
    if (*failed || PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS) < 0) return *failed = 1, NULL;
    void *target = NULL;
    if ((size_t)view.len == count * size) {
        target = calloc(room ? room : 1, size);
        if (target)
            memcpy(target, view.buf, count * size);
        else
            PyErr_NoMemory();
    } else {
        PyErr_Format(PyExc_ValueError, "%zd bytes where %zu were expected", view.len, count * size);
    }
    PyBuffer_Release(&view);
    if (!target) *failed = 1;
    return target;
}

static int rising(const uint32_t *starts, ptrdiff_t count, size_t kept) {
    if (starts[0] != 0 || starts[count] != kept) return 0;
    for (ptrdiff_t i = 0; i < count; i++)
        if (starts[i] > starts[i + 1]) return 0;
    return 1;
}

/* Share of kept weights from which all of them, without places, are faster for many samples. */
#define MOST_KEPT 0.45

/* All weights of a layer, TALL rows side by side; 0 where memory is short. */
static int make_tall(Stage *stage, const uint32_t *columns) {
    const size_t blocks = ((size_t)stage->outputs + TALL - 1) / TALL;
    stage->tall = calloc(blocks * TALL * (size_t)stage->inputs + TALL, sizeof *stage->tall);
    for (ptrdiff_t i = 0; stage->tall && i < stage->outputs; i++)
        for (uint32_t p = stage->row_starts[i]; p < stage->row_starts[i + 1]; p++)
            stage->tall[((size_t)(i / TALL) * (size_t)stage->inputs + columns[p]) * TALL + (size_t)(i % TALL)] =
                stage->by_row[p];
    return stage->tall != NULL;
}

/* (inputs, outputs, dense, column_starts, rows, by_column, row_starts, columns, by_row, bias, activation) */
static int read_layer(Stage *stage, PyObject *entry) {
    PyObject *column_starts, *rows, *by_column, *row_starts, *columns, *by_row, *bias;
    Py_ssize_t inputs, outputs, kept;
    if (!PyArg_ParseTuple(entry, "nnpnOOOOOOO(ifff)", &inputs, &outputs, &stage->dense, &kept, &column_starts, &rows,
                          &by_column, &row_starts, &columns, &by_row, &bias, &stage->activation.kind,
                          &stage->activation.a, &stage->activation.b, &stage->activation.c))
        return 0;
    if (inputs < 0 || outputs < 0 || kept < 0 || inputs > 65535 || outputs > 65535 || kept > (Py_ssize_t)inputs * outputs) {
        PyErr_SetString(PyExc_ValueError, "a layer of impossible size");
        return 0;
    }
    int failed = 0;
    stage->layer = 1, stage->inputs = inputs, stage->outputs = outputs;
    const size_t wide = (size_t)padded(outputs), deep = (size_t)(inputs + 3) / 4 * 4;
    const size_t cells = stage->dense ? wide * deep : (size_t)kept;
    stage->column_starts = copied(column_starts, (size_t)inputs + 1, 4, (size_t)inputs + 1, &failed);
    stage->rows = copied(rows, (size_t)kept, 2, (size_t)kept, &failed);
    stage->by_column = copied(by_column, cells, 4, cells, &failed);
    stage->row_starts = copied(row_starts, (size_t)outputs + 1, 4, (size_t)outputs + 1, &failed);
    uint32_t *wide_columns = copied(columns, (size_t)kept, 4, (size_t)kept, &failed);
    stage->by_row = copied(by_row, (size_t)kept, 4, (size_t)kept, &failed);
    stage->bias = copied(bias, (size_t)outputs, 4, wide, &failed);
    stage->columns = calloc((size_t)kept + 1, sizeof *stage->columns);
    if (failed || !stage->columns) return free(wide_columns), 0;
    int right = rising(stage->column_starts, inputs, (size_t)kept) && rising(stage->row_starts, outputs, (size_t)kept);
    for (Py_ssize_t p = 0; right && p < kept; p++) {
        right = stage->rows[p] < outputs && wide_columns[p] < (uint32_t)inputs;
        stage->columns[p] = (uint16_t)wide_columns[p];
    }
    if (!right) PyErr_SetString(PyExc_ValueError, "kept weights outside their layer");
    if (right && !stage->dense && kernels->lanes == WIDE)
        right = make_lanes(&stage->lanes, stage->row_starts, wide_columns, stage->by_row, outputs);
    if (right && kept && (double)kept >= MOST_KEPT * (double)inputs * (double)outputs) {
        right = make_tall(stage, wide_columns);
        free(stage->columns), free(stage->by_row);
        stage->columns = NULL, stage->by_row = NULL;
    }
    free(wide_columns);
    return right;
}

/* (width, centre, factor, shift, activation) */
static int read_scale(Stage *stage, PyObject *entry) {
    PyObject *centre, *factor, *shift;
    Py_ssize_t width;
    if (!PyArg_ParseTuple(entry, "nOOO(ifff)", &width, &centre, &factor, &shift, &stage->activation.kind,
                          &stage->activation.a, &stage->activation.b, &stage->activation.c))
        return 0;
    if (width < 0 || width > 65535) {
        PyErr_SetString(PyExc_ValueError, "a scale of impossible size");
        return 0;
    }
    int failed = 0;
    stage->inputs = stage->outputs = width;
    stage->centre = copied(centre, (size_t)width, 4, (size_t)width, &failed);
    stage->factor = copied(factor, (size_t)width, 4, (size_t)width, &failed);
    stage->shift = copied(shift, (size_t)width, 4, (size_t)width, &failed);
    return !failed;
}

static void chain_free(PyObject *object) {
    Chain *chain = (Chain *)object;
    for (Py_ssize_t s = 0; chain->stages && s < chain->count; s++) {
        Stage *stage = chain->stages + s;
        free(stage->centre), free(stage->factor), free(stage->shift), free(stage->bias);
        free(stage->column_starts), free(stage->rows), free(stage->by_column);
        free(stage->row_starts), free(stage->columns), free(stage->by_row), free(stage->tall);
        free_lanes(&stage->lanes);
    }
    free(chain->stages), free(chain->scratch);
    Py_TYPE(object)->tp_free(object);
}

static ptrdiff_t read_shape(PyObject *shape, npy_intp *sizes, int *rank) {
    ptrdiff_t product = 1;
    if (!PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > 7) return -1;
    *rank = (int)PyTuple_GET_SIZE(shape);
    for (int i = 0; i < *rank; i++) {
        sizes[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (sizes[i] < 0 || sizes[i] > 65535 || (product *= sizes[i]) > 65535) return -1;
    }
    return product;
}

/* A vector load may start at the last place of a row, hence the room behind both buffers. */
static float *new_scratch(const Chain *chain) {
    return aligned_alloc(64, ((size_t)chain->widest * 2 + 1) * BLOCK * sizeof(float));
}

static PyObject *chain_call(PyObject *object, PyObject *const *arguments, size_t count, PyObject *names);

static PyObject *chain_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    (void)names;
    PyObject *stages, *input_shape, *output_shape;
    if (!PyArg_ParseTuple(arguments, "O!OO", &PyList_Type, &stages, &input_shape, &output_shape)) return NULL;
    Chain *chain = (Chain *)type->tp_alloc(type, 0);
    if (!chain) return NULL;
    chain->call = chain_call;
    chain->count = PyList_GET_SIZE(stages);
    chain->stages = calloc((size_t)chain->count + 1, sizeof(Stage));
    chain->inputs = read_shape(input_shape, chain->input_shape, &chain->input_rank);
    chain->outputs = read_shape(output_shape, chain->output_shape, &chain->output_rank);
    ptrdiff_t width = chain->inputs;
    chain->widest = padded(width);
    int right = chain->stages && chain->inputs >= 0 && chain->outputs >= 0;
    for (Py_ssize_t s = 0; right && s < chain->count; s++) {
        PyObject *entry = PyList_GET_ITEM(stages, s);
        Stage *stage = chain->stages + s;
        right = PyTuple_Check(entry) && (PyTuple_GET_SIZE(entry) == 5 ? read_scale(stage, entry) : read_layer(stage, entry));
        right = right && stage->inputs == width;
        width = stage->outputs;
        if (padded(width) > chain->widest) chain->widest = padded(width);
        if (stage->layer && right) chain->weights += stage->row_starts[stage->outputs];
    }
    right = right && width == chain->outputs;
    if (right) chain->scratch = new_scratch(chain);
    if (!right || !chain->scratch) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "stages of a chain that do not fit together");
        Py_DECREF(chain);
        return NULL;
    }
    return (PyObject *)chain;
}

static void run_samples(const Chain *chain, const float *input, float *output, npy_intp samples, float *scratch) {
    /* below four samples the lanes would stay empty */
    if (samples < 4) {
        for (npy_intp n = 0; n < samples; n++)
            kernels->one(chain, input + n * chain->inputs, output + n * chain->outputs, scratch);
        return;
    }
    for (npy_intp n = 0; n < samples; n += BLOCK) {
        const npy_intp now = samples - n < BLOCK ? samples - n : BLOCK;
        kernels->block(chain, input + n * chain->inputs, output + n * chain->outputs, now, scratch);
    }
}

/* chain(x): the answer, or None where x is not a contiguous float32 array of the right shape. */
static PyObject *chain_call(PyObject *object, PyObject *const *arguments, size_t count, PyObject *names) {
    Chain *chain = (Chain *)object;
    if (PyVectorcall_NARGS(count) != 1 || names || !PyArray_Check(arguments[0])) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)arguments[0];
    const int rank = PyArray_NDIM(x), many = rank - chain->input_rank;
    if (PyArray_TYPE(x) != NPY_FLOAT || !PyArray_ISCARRAY_RO(x) || many < 0 || many > 1) Py_RETURN_NONE;
    for (int i = 0; i < chain->input_rank; i++)
        if (PyArray_DIM(x, i + many) != chain->input_shape[i]) Py_RETURN_NONE;
    npy_intp shape[9];
    const npy_intp samples = many ? PyArray_DIM(x, 0) : 1;
    shape[0] = samples;
    for (int i = 0; i < chain->output_rank; i++) shape[i + many] = chain->output_shape[i];
    PyObject *answer = PyArray_SimpleNew(chain->output_rank + many, shape, NPY_FLOAT);
    if (!answer) return NULL;
    const float *input = PyArray_DATA(x);
    float *output = PyArray_DATA((PyArrayObject *)answer);
    float *scratch = chain->busy ? new_scratch(chain) : chain->scratch;
    if (!scratch) {
        Py_DECREF(answer);
        return PyErr_NoMemory();
    }
    const int own = scratch == chain->scratch;
    /* letting other threads run costs more than a small batch does */
    if ((double)samples * (double)chain->weights < 1e6) {
        run_samples(chain, input, output, samples, scratch);
    } else {
        if (own) chain->busy = 1;
        Py_BEGIN_ALLOW_THREADS
        run_samples(chain, input, output, samples, scratch);
        Py_END_ALLOW_THREADS
        if (own) chain->busy = 0;
    }
    if (!own) free(scratch);
    return answer;
}

static PyTypeObject chain_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "fewer.packs._runtime.Chain",
    .tp_basicsize = sizeof(Chain),
    .tp_dealloc = chain_free,
    .tp_vectorcall_offset = offsetof(Chain, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Layers, scales and activations in one call.",
};
