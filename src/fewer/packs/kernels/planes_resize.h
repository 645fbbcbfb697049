/* Images of another size: each place lies between two along every axis, or on one. Part of planes_kernels.h.
 *
 * Rows are stretched once and kept while two rows, or four where there are planes of rows, are mixed: neighbours differ
 * in whether their number is odd, which is where a stretched row is kept. */
#ifndef FEWER_PLANES_RESIZE_H
#define FEWER_PLANES_RESIZE_H

#define KEPT_ROWS 4

/* Floats that a step needs for the rows that are kept. */
static size_t resize_room(const Step *s) { return KEPT_ROWS * (size_t)s->sizes[4]; }

INLINE void stretch_row(const Step *s, const float *restrict x, float *restrict y) {
    const uint32_t *restrict low = s->low[2];
    const float *restrict share = s->share[2];
    const ptrdiff_t n = s->sizes[4];
    if (!share)
        for (ptrdiff_t w = 0; w < n; w++) y[w] = x[low[w]];
    else
        for (ptrdiff_t w = 0; w < n; w++) {
            const ptrdiff_t place = low[w], next = place + 1 < s->inside[2] ? place + 1 : place;
            y[w] = x[place] * (1.0f - share[w]) + x[next] * share[w];
        }
}

INLINE void resize_image(const Step *s, const float *x, float *y, float *room) {
    ptrdiff_t kept[KEPT_ROWS] = {-1, -1, -1, -1};
    const ptrdiff_t n = s->sizes[4];
    for (ptrdiff_t d = 0; d < s->sizes[2]; d++)
        for (ptrdiff_t h = 0; h < s->sizes[3]; h++) {
            float *restrict target = y + d * s->to_steps[2] + h * s->to_steps[3];
            const ptrdiff_t at[2] = {s->low[0][d], s->low[1][h]};
            const float shares[2] = {s->share[0] ? s->share[0][d] : 0.0f, s->share[1] ? s->share[1][h] : 0.0f};
            int begun = 0;
            for (int corner = 0; corner < 4; corner++) {
                const int behind = corner >> 1, below = corner & 1;
                if ((behind && !s->share[0]) || (below && !s->share[1])) continue;
                const ptrdiff_t plane = at[0] + (behind && at[0] + 1 < s->inside[0]);
                const ptrdiff_t line = at[1] + (below && at[1] + 1 < s->inside[1]);
                const float weight = (behind ? shares[0] : 1.0f - shares[0]) * (below ? shares[1] : 1.0f - shares[1]);
                const int slot = (int)((plane & 1) * 2 + (line & 1));
                float *restrict row = room + slot * n;
                if (kept[slot] != plane * s->inside[1] + line) {
                    stretch_row(s, x + plane * s->from_steps[2] + line * s->from_steps[3], row);
                    kept[slot] = plane * s->inside[1] + line;
                }
                if (!begun)
                    for (ptrdiff_t w = 0; w < n; w++) target[w] = row[w] * weight;
                else
                    for (ptrdiff_t w = 0; w < n; w++) target[w] += row[w] * weight;
                begun = 1;
            }
        }
}

#endif
