/* Kept weights on a panel: part of planes_rows.h, once for each width of vectors.
 *
 * What a few vectors of places read is copied side by side, tap by tap, as for a dense product (planes_dense.h): no place
 * between rows is computed, no vector crosses a line of the cache, and all that a channel may read lies in the nearest
 * cache, which planes do not. After `deep` taps the sums wait in memory for the next ones. */

/* Floats that a step needs for a panel, for sums, and to begin with a line of the cache. */
#ifndef FEWER_PANEL_ROOM
#define FEWER_PANEL_ROOM
#define PANEL_FLOATS 6144       /* floats of a panel that stay in the nearest cache beside the weights that stream by */
#define MOST_TILES 4            /* vectors of places in a panel */

static ptrdiff_t tiles_of(const Step *s, ptrdiff_t width) {
    const ptrdiff_t room = PANEL_FLOATS / (s->deep * width);
    return room < 1 ? 1 : room > MOST_TILES ? MOST_TILES : room;
}

static size_t panel_room(const Step *s) {
    const size_t near = PANEL_FLOATS, panel = (size_t)s->deep * WIDE > near ? (size_t)s->deep * WIDE : near;
    return panel + (size_t)(s->deep < s->taps ? s->outputs : 1) * MOST_TILES * WIDE + WIDE;
}
#endif

/* Sums of one channel at `tiles` vectors of places, begun with its bias or gone on with, in several parts, since each
 * addition waits for the one before it. */
INLINE void NAMED(kept_sums)(const Kept *restrict kept, const Kept *restrict end, const float *bias,
                             const float *restrict panel, float *restrict sums, const int tiles) {
    const int parts = tiles < 3 ? 4 : 2;
    VECTOR held[8];
#pragma GCC unroll 8
    for (int k = 0; k < tiles * parts; k++)
        if (k < tiles && !bias)
            held[k] = *(const VECTOR *)(sums + k * WIDTH);
        else
            held[k] = (VECTOR){0} + (k < tiles ? *bias : 0.0f);
    for (; kept + parts <= end; kept += parts) {
#pragma GCC unroll 8
        for (int k = 0; k < tiles * parts; k++) {
            const float *x = panel + (size_t)kept[k / tiles].offset * (size_t)(tiles * WIDTH);
            held[k] += *(const VECTOR *)(x + k % tiles * WIDTH) * kept[k / tiles].weight;
        }
    }
    for (; kept < end; kept++) {
#pragma GCC unroll 4
        for (int l = 0; l < tiles; l++)
            held[l] += *(const VECTOR *)(panel + (size_t)kept->offset * (size_t)(tiles * WIDTH) + l * WIDTH) * kept->weight;
    }
#pragma GCC unroll 8
    for (int k = tiles; k < tiles * parts; k++) held[k % tiles] += held[k];
#pragma GCC unroll 4
    for (int l = 0; l < tiles; l++) *(VECTOR *)(sums + l * WIDTH) = held[l];
}

/* All channels at the places of one panel. */
INLINE void NAMED(kept_panel)(const Step *s, const float *x, const float *with, float *y, const ptrdiff_t *places,
                              float *panel, const ptrdiff_t tiles, int unit) {
    const ptrdiff_t units = tiles * WIDTH / unit, step = s->deep < s->taps ? tiles * WIDTH : 0;
    const uint32_t *starts = s->starts;
    float *all = panel + s->deep * tiles * WIDTH;
    for (ptrdiff_t first = 0; first < s->taps; first += s->deep) {
        const ptrdiff_t now = s->taps - first < s->deep ? s->taps - first : s->deep;
        BY_UNIT(gather, x, s->offsets + first, now, places, units, panel)
        for (ptrdiff_t i = 0; i < s->outputs; i++, starts++) {
            float *sums = all + i * step;
            const Kept *kept = s->kept + starts[0], *end = s->kept + starts[1];
            const float *bias = first ? NULL : s->bias + i;
            switch (tiles) {
                case 1: NAMED(kept_sums)(kept, end, bias, panel, sums, 1); break;
                case 2: NAMED(kept_sums)(kept, end, bias, panel, sums, 2); break;
                case 3: NAMED(kept_sums)(kept, end, bias, panel, sums, 3); break;
                default: NAMED(kept_sums)(kept, end, bias, panel, sums, MOST_TILES); break;
            }
            if (first + now == s->taps)
                BY_UNIT(scatter, sums, places, units, with ? with + i * s->with_channel : NULL, y + i * s->to_channel,
                        s->activation)
        }
    }
}
