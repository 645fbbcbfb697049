/* Pieces of a batch shared out over threads. Each has its own weight gradients, which are added up in a fixed order, so
   a given number of threads always gives the same bits. */

static inline int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

typedef struct {
    const void *call;
    int64_t pieces;
    int threads;
    size_t size, scratch; /* bytes of an element, and of what each thread works in */
    int64_t weights;
    char *gradients;      /* of all weights; NULL: not wanted */
} Work;

typedef struct {
    const void *call;
    int64_t first, last; /* pieces */
    char *scratch, *gradients;
} Share;

/* Scratch memory of the calling thread: grows to what the largest call needs, goes with the thread. */
static pthread_key_t scratch_key;

static char *scratch(size_t bytes) {
    struct Held { size_t bytes; } *held = pthread_getspecific(scratch_key);
    if (!held || held->bytes < bytes) {
        free(held);
        held = NULL;
        if (posix_memalign((void **)&held, 64, bytes + 64)) held = NULL;
        if (held) held->bytes = bytes;
        pthread_setspecific(scratch_key, held);
    }
    return held ? (char *)held + 64 : NULL;
}

static void add(size_t size, char *to, const char *from, int64_t count) {
    if (size == sizeof(float))
        for (int64_t i = 0; i < count; i++) ((float *)to)[i] += ((const float *)from)[i];
    else
        for (int64_t i = 0; i < count; i++) ((double *)to)[i] += ((const double *)from)[i];
}

/* Runs the pieces on the caller's thread and on threads - 1 others; 0 when memory runs out. */
static int share_out(const Work *work, void *(*run)(void *)) {
    Share shares[work->threads];
    pthread_t others[work->threads];
    const size_t each = (size_t)round_up((int64_t)work->scratch, 64);
    const size_t gradient_bytes = work->gradients ? (size_t)round_up(work->weights * (int64_t)work->size, 64) : 0;
    char *memory = scratch(each * work->threads + gradient_bytes * (work->threads - 1));
    if (!memory) return 0;
    for (int t = 0; t < work->threads; t++) {
        char *own = memory + each * work->threads + gradient_bytes * (t - 1);
        shares[t] = (Share){work->call, work->pieces * t / work->threads, work->pieces * (t + 1) / work->threads,
                            memory + each * t, work->gradients && t ? own : work->gradients};
    }
    int started = 1;
    while (started < work->threads && !pthread_create(&others[started], NULL, run, &shares[started])) started++;
    for (int t = 0; t < work->threads; t++)
        if (!t || t >= started) run(&shares[t]); /* what no thread could be had for is done here */
    for (int t = 1; t < started; t++) pthread_join(others[t], NULL);
    for (int t = 1; work->gradients && t < work->threads; t++)
        add(work->size, work->gradients, shares[t].gradients, work->weights);
    return 1;
}
