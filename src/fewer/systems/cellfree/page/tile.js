// The first page's picture: a phone that walks, and lines to those who serve it.
import { ask, isDense, percent, sparsity, whole } from "/static/base.js";
import { animate } from "/static/pictures.js";
import { drawTown, metres, signalPicture } from "./town.js";

const PLACES = 24;

const hero = (models) => [...models].sort((a, b) => b.removed - a.removed)[0];

export function sentence(models) {
  const model = hero(models);
  const measured = Object.values(model.inputs).find(({ shape }) => shape.length === 1)?.shape[0];
  const big = isDense(model) ? `${whole(model.weights)} weights` : `${sparsity(model)} fewer weights`;
  return { big, model, rest: `and from ${measured ?? "a few"} signal readings it picks which antennas together serve your phone.` };
}

export async function picture(canvas, models, told) {
  const { name } = hero(models);
  const area = await ask(`/v1/cellfree/map?model=${encodeURIComponent(name)}`);
  const way = Array.from({ length: PLACES }, (_, n) => {
    const angle = 2 * Math.PI * n / PLACES;
    return { x_m: metres(area, 0.5 + 0.3 * Math.sin(angle), 0), y_m: metres(area, 0.5 + 0.26 * Math.sin(2 * angle + 0.6), 1) };
  });
  const asking = (place) => ask("/v1/cellfree/place", { ...place, model: name });
  const [first, quality] = await Promise.all([asking(way[0]), ask(`/v1/cellfree/quality?model=${encodeURIComponent(name)}`)]);
  const found = [first];
  const background = signalPicture(area);
  told("a phone walks across a map; lines lead to the access points that serve it",
    `They catch ${percent(quality.signal)} of the signal; the strongest alone ${percent(quality.master_signal)}.`);
  animate(canvas, (clock) => {
    const at = Math.min((clock / 0.8) % PLACES, found.length - 0.51); // no further than is known yet
    const [from, to, part] = [way[Math.floor(at)], way[(Math.floor(at) + 1) % PLACES], at % 1];
    const place = { x_m: from.x_m + part * (to.x_m - from.x_m), y_m: from.y_m + part * (to.y_m - from.y_m) };
    // half of the town, so that the lines can be seen; it follows the phone slowly
    const view = { side_m: area.side_m / 2, corner_m: [0, 1].map((axis) => metres(area, 0.25 + 0.6 * ((axis ? place.y_m : place.x_m) - metres(area, 0.5, axis)) / area.side_m, axis)) };
    drawTown(canvas, { area, view, background, found: found[Math.round(at) % PLACES], place, rings: false });
  });
  for (const place of way.slice(1)) found.push(await asking(place));
}
