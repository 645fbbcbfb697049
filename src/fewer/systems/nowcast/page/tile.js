// The first page's picture: rain as it was forecast and as it fell, where they agree and where not.
import { ask, isDense, percent, sparsity, whole } from "/static/base.js";
import { animate, surface, words } from "/static/pictures.js";
import { ahead, average, decoded, pictures, scores, typical } from "./rain.js";

const REST = 12; // quarters of a second
const KEYS = [["hit", "forecast, and it fell"], ["alarm", "forecast, but dry"], ["miss", "fell, not forecast"]];
const hero = (models) => [...models].sort((a, b) => (b.metrics.iou_hour_1 ?? 0) - (a.metrics.iou_hour_1 ?? 0))[0];

export function sentence(models) {
  const model = hero(models);
  const big = isDense(model) ? `${whole(model.weights)} weights` : `${sparsity(model)} fewer weights`;
  return { big, model, rest: "and from four images of generated weather it says where it will rain for eight hours." };
}

export async function picture(canvas, models, told) {
  let answer = await ask("/v1/nowcast/forecast", {});
  while (answer.making) {
    await new Promise((done) => { setTimeout(done, 500); });
    answer = await ask("/v1/nowcast/forecast", {});
  }
  const weather = decoded(answer);
  const name = hero(models).name in weather.models ? hero(models).name : Object.keys(weather.models)[0];
  const steps = Math.min(16, weather.leads);
  const frames = Array.from({ length: steps }, (_, step) => pictures(weather, average(weather, [name], step), step));
  const [score, ...rivals] = Object.values(scores(weather, [name]));
  const without = rivals.length ? `; without a network ${percent(Math.max(...rivals.map((rival) => rival.all ?? 0)))} at best` : "";
  told("rain over four hours: blue where it was forecast and fell, yellow where it was forecast alone, red where it fell alone",
    `In the weather shown, ${percent(score.all ?? 0)} of the rain is in the right place${without}.`);
  const first = Math.min(typical(score), steps - 1);
  animate(canvas, (clock) => {
    // it begins and rests at the typical time, and in between goes once around
    const step = (first + Math.max(0, Math.floor((clock * 4) % (steps + REST) - REST))) % steps;
    const { context, width, height } = surface(canvas);
    context.imageSmoothingEnabled = false;
    const side = Math.max(width, height);
    for (const picture of [frames[step].forecast, frames[step].truth]) context.drawImage(picture, (width - side) / 2, (height - side) / 2, side, side);
    words(context, `in ${ahead(weather, step)}`, 12, 24, { size: 15, weight: 700, align: "left", halo: "sky" });
    KEYS.forEach(([tint, text], row) => {
      words(context, "■", 12, height - 49 + 19 * row, { size: 14, align: "left", tint, halo: "sky" });
      words(context, text, 28, height - 49 + 19 * row, { size: 13, align: "left", halo: "sky" });
    });
  });
}
