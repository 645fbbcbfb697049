/* The engine's random numbers (core/seed.py): a hash of seed, step, name and position, the same to the bit. */

static uint64_t mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static inline uint32_t mix32(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
}

typedef struct {
    const int64_t *seed, *step;
    int64_t name, count;
    double offset, scale; /* numbers are (bits + offset) * scale, of 24 random bits */
} Draw;

#define DRAW(ELEMENT)                                                                                       \
    for (int64_t i = 0; i < draw->count; i++) {                                                             \
        const uint32_t bits = mix32(mix32((uint32_t)i + low) ^ high) >> 8;                                  \
        ((ELEMENT *)to)[i] = ((ELEMENT)(int32_t)bits + (ELEMENT)draw->offset) * (ELEMENT)draw->scale;       \
    }

static void draw_numbers(const Draw *draw, int is_double, void *to) {
    const uint64_t moment = mix64((uint64_t)*draw->seed * 0x9E3779B97F4A7C15u + (uint64_t)*draw->step);
    const uint64_t key = mix64(moment ^ (uint64_t)draw->name);
    const uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
    if (is_double) {
        DRAW(double)
    } else {
        DRAW(float)
    }
}
