/* Steps as Python gives them, checked: whatever a file claims, a step stays inside its buffers. Part of planes.c. */
#ifndef FEWER_PLANES_READ_H
#define FEWER_PLANES_READ_H

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
static int convolution_fits(const Planes *p, const Step *s, uint32_t furthest) {
    const double places = (double)s->count + (double)(p->images - 1) * (double)s->image;
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

/* Kept weights by row, each a distance and a number; there are several rows of an output where it is summed in parts. */
static int read_kept(Step *s, ptrdiff_t rows, ptrdiff_t outputs, PyObject *starts, PyObject *offsets, PyObject *weights, PyObject *bias,
                     Py_ssize_t *kept) {
    int failed = 0;
    s->starts = numbers(starts, rows + 1, NULL, &failed);
    uint32_t *places = numbers(offsets, -1, kept, &failed);
    float *values = numbers(weights, *kept, NULL, &failed);
    s->bias = numbers(bias, outputs, NULL, &failed);
    s->kept = failed ? NULL : malloc(*kept ? (size_t)*kept * sizeof *s->kept : 1);
    const int right = !failed && s->kept && rising(s->starts, rows, *kept);
    for (Py_ssize_t i = 0; right && i < *kept; i++) s->kept[i] = (Kept){places[i], values[i]};
    free(places), free(values);
    return right;
}

static uint32_t furthest_of(const Kept *kept, Py_ssize_t count) {
    uint32_t furthest = 0;
    for (Py_ssize_t i = 0; i < count; i++) furthest = kept[i].offset > furthest ? kept[i].offset : furthest;
    return furthest;
}

static int read_sparse(const Planes *p, Step *s, PyObject *rest) {
    PyObject *starts, *offsets, *weights, *bias, *holes;
    Py_ssize_t kept = 0, hole_numbers = 0;
    int failed = 0;
    if (!PyArg_ParseTuple(rest, "nnnnnnnnOOOOO", &s->outputs, &s->count, &s->image, &s->from_first, &s->with_first,
                          &s->with_channel, &s->to_first, &s->to_channel, &starts, &offsets, &weights, &bias, &holes))
        return 0;
    if (s->outputs < 1 || s->outputs > 1 << 24 || !read_kept(s, s->outputs, s->outputs, starts, offsets, weights, bias, &kept)) return 0;
    s->holes = numbers(holes, -1, &hole_numbers, &failed);
    s->hole_count = hole_numbers / 2;
    return !failed && convolution_fits(p, s, furthest_of(s->kept, kept));
}

/* Where taps lie, and where runs of places begin. */
static int read_runs(const Planes *p, Step *s, PyObject *offsets, PyObject *places) {
    int failed = 0;
    s->offsets = numbers(offsets, s->groups * s->taps, NULL, &failed);
    s->places = numbers(places, -1, &s->units, &failed);
    uint32_t furthest = 0;
    for (ptrdiff_t i = 0; !failed && i < s->groups * s->taps; i++)
        furthest = s->offsets[i] > furthest ? s->offsets[i] : furthest;
    int right = !failed && s->units > 0 && convolution_fits(p, s, furthest);
    for (ptrdiff_t i = 0; right && i < s->units; i++) right = (ptrdiff_t)s->places[i] + s->unit <= s->count;
    return right;
}

static int read_dense(const Planes *p, Step *s, PyObject *rest) {
    PyObject *offsets, *weights, *bias, *starts;
    int failed = 0;
    if (!PyArg_ParseTuple(rest, "nnnnnnnnnnnOOOO", &s->outputs, &s->count, &s->image, &s->from_first, &s->with_first,
                          &s->with_channel, &s->to_first, &s->to_channel, &s->groups, &s->taps, &s->unit, &offsets,
                          &weights, &bias, &starts))
        return 0;
    const ptrdiff_t most = 1 << 24;
    if (s->outputs < 1 || s->outputs > most || s->groups < 1 || s->groups > s->outputs || s->outputs % s->groups ||
        s->taps < 1 || s->taps > most || s->unit < 1 || s->unit > WIDE || (s->unit & (s->unit - 1)))
        return 0;
    const ptrdiff_t rows = s->groups * ((s->outputs / s->groups + ROWS - 1) / ROWS) * ROWS;
    s->weights = numbers(weights, rows * s->taps, NULL, &failed);
    s->bias = numbers(bias, rows, NULL, &failed);
    return !failed && read_runs(p, s, offsets, starts);
}

/* Kept weights on panels: their distances are numbers of taps among those that are copied at once. */
static int read_panel(const Planes *p, Step *s, PyObject *rest) {
    PyObject *offsets, *starts, *taps, *weights, *bias, *places;
    Py_ssize_t kept = 0;
    if (!PyArg_ParseTuple(rest, "nnnnnnnnnnnOOOOOO", &s->outputs, &s->count, &s->image, &s->from_first, &s->with_first,
                          &s->with_channel, &s->to_first, &s->to_channel, &s->taps, &s->deep, &s->unit, &offsets,
                          &starts, &taps, &weights, &bias, &places))
        return 0;
    const ptrdiff_t most = 1 << 24;
    if (s->outputs < 1 || s->outputs > most || s->taps < 1 || s->taps > most || s->deep < 1 || s->deep > s->taps ||
        s->unit < 1 || s->unit > WIDE || (s->unit & (s->unit - 1)))
        return 0;
    s->groups = 1;
    const ptrdiff_t parts = (s->taps + s->deep - 1) / s->deep;
    if (!read_kept(s, parts * s->outputs, s->outputs, starts, taps, weights, bias, &kept)) return 0;
    for (ptrdiff_t part = 0; part < parts; part++) {
        const ptrdiff_t left = s->taps - part * s->deep, here = left < s->deep ? left : s->deep;
        const uint32_t first = s->starts[part * s->outputs], end = s->starts[(part + 1) * s->outputs];
        if (end > first && furthest_of(s->kept + first, end - first) >= here) return 0;
    }
    return read_runs(p, s, offsets, places);
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

/* Every second place of rows, or any where images lie side by side; the last vector of a row may reach past it, into the
 * room behind a scratch buffer. */
static int read_spaced(const Planes *p, Step *s, PyObject *rest) {
    PyObject *sizes, *from, *with, *to, *starts, *offsets, *weights, *bias;
    Py_ssize_t kept = 0;
    if (!PyArg_ParseTuple(rest, "OnOnOnOOOOO", &sizes, &s->from_first, &from, &s->with_first, &with, &s->to_first, &to,
                          &starts, &offsets, &weights, &bias))
        return 0;
    int right = read_lattice(p, s, sizes, from, with, to) && s->from < p->scratches && s->to < p->scratches &&
                s->with < p->scratches && (s->side || s->from_steps[4] == 2) && s->to_steps[4] == 1 &&
                (s->with < 0 || s->with_steps[4] == 1) && s->sizes[0] <= 1 << 24;
    if (!right || !read_kept(s, s->sizes[0], s->sizes[0], starts, offsets, weights, bias, &kept)) return 0;
    return within(p, s->from, end_of(s->from_first, s->sizes, s->from_steps) + furthest_of(s->kept, kept));
}

static int read_pool(const Planes *p, Step *s, PyObject *rest) {
    PyObject *sizes, *from, *to, *inside, *window, *stride, *before, *spacing;
    if (!PyArg_ParseTuple(rest, "OnOnOOOOOOpp", &sizes, &s->from_first, &from, &s->to_first, &to, &inside, &window,
                          &stride, &before, &spacing, &s->mean, &s->count_padding))
        return 0;
    int right = s->with < 0 && read_lattice(p, s, sizes, from, from, to) && sizes_of(inside, s->inside, 3, 1) &&
                sizes_of(window, s->window, 3, 1) && sizes_of(stride, s->stride, 3, 1) &&
                sizes_of(before, s->before, 3, 0) && sizes_of(spacing, s->spacing, 3, 1);
    right = right && s->from_steps[4] == 1 && s->to_steps[4] == 1;
    const ptrdiff_t read[AXES] = {s->sizes[0], s->sizes[1], s->inside[0], s->inside[1], s->inside[2]};
    return right && within(p, s->from, end_of(s->from_first, read, s->from_steps));
}

/* Along each axis the places below, and the shares of those after them unless none has any. */
static int read_resize(const Planes *p, Step *s, PyObject *rest) {
    PyObject *sizes, *from, *to, *inside, *low[3], *share[3];
    int failed = 0;
    if (!PyArg_ParseTuple(rest, "OnOnOOOOOOOO", &sizes, &s->from_first, &from, &s->to_first, &to, &inside, &low[0],
                          &low[1], &low[2], &share[0], &share[1], &share[2]))
        return 0;
    int right = s->with < 0 && read_lattice(p, s, sizes, from, from, to) && sizes_of(inside, s->inside, 3, 1) &&
                s->from_steps[4] == 1 && s->to_steps[4] == 1;
    for (int a = 0; right && a < 3; a++) {
        const ptrdiff_t count = s->sizes[a + 2];
        s->low[a] = numbers(low[a], count, NULL, &failed);
        if (share[a] != Py_None) s->share[a] = numbers(share[a], count, NULL, &failed);
        for (ptrdiff_t i = 0; !failed && i < count; i++) right = right && (ptrdiff_t)s->low[a][i] < s->inside[a];
    }
    const ptrdiff_t read[AXES] = {s->sizes[0], s->sizes[1], s->inside[0], s->inside[1], s->inside[2]};
    return right && !failed && within(p, s->from, end_of(s->from_first, read, s->from_steps));
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
    s->spare_behind = s->from < p->scratches; /* SLACK */
    s->side = p->side > 1;
    if (s->side && (kind == SPARSE || kind == DENSE || kind == PANEL || kind == RESIZE || s->with >= p->scratches ||
                    (kind == POOL && s->from >= p->scratches)))
        return 0;
    s->from_image = s->from < p->scratches ? 0 : (ptrdiff_t)p->sizes[s->from];
    s->to_image = s->to < p->scratches ? 0 : (ptrdiff_t)p->sizes[s->to];
    switch (kind) {
        case SPARSE: return read_sparse(p, s, rest);
        case DENSE: return read_dense(p, s, rest);
        case PANEL: return read_panel(p, s, rest);
        case MAP: return read_map(p, s, rest);
        case POOL: return read_pool(p, s, rest);
        case SPACED: return read_spaced(p, s, rest);
        case RESIZE: return read_resize(p, s, rest);
        default: return 0;
    }
}

#endif
