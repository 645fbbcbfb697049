// The first page's picture: rain as it falls, by whether the lightest network had forecast it.
import { ask, isDense, percent, sparsity, whole } from "/static/base.js";
import { animate, surface, words } from "/static/pictures.js";
import { ahead, average, decoded, pictures } from "./rain.js";

const hero = (models) => [...models].sort((a, b) => (b.metrics.iou_hour_1 ?? 0) - (a.metrics.iou_hour_1 ?? 0))[0];

export function sentence(models) {
  const model = hero(models);
  const big = isDense(model) ? `${whole(model.weights)} weights` : `${sparsity(model)} fewer weights`;
  const first = model.metrics.iou_hour_1;
  const rest = first === undefined ? "say where it will rain in the next eight hours."
    : `and from four images of generated weather it says where it will rain. In the first hour ${percent(first)} of the rain, forecast or fallen, is in the right place.`;
  return { big, rest };
}

export async function picture(canvas, models, told) {
  let answer = await ask("/v1/nowcast/forecast", { window: 0 });
  while (answer.making) {
    await new Promise((done) => { setTimeout(done, 500); });
    answer = await ask("/v1/nowcast/forecast", { window: 0 });
  }
  const weather = decoded(answer);
  const name = hero(models).name in weather.models ? hero(models).name : Object.keys(weather.models)[0];
  const steps = Math.min(16, weather.leads);
  const frames = Array.from({ length: steps }, (_, step) => pictures(weather, average(weather, [name], step), step).truth);
  told("rain as it falls over four hours, blue where it was forecast, red where it was missed");
  animate(canvas, (clock) => {
    const step = Math.floor(clock * 4) % steps;
    const { context, width, height } = surface(canvas);
    context.imageSmoothingEnabled = false;
    const side = Math.max(width, height);
    context.drawImage(frames[step], (width - side) / 2, (height - side) / 2, side, side);
    words(context, `in ${ahead(weather, step)}`, 12, 24, { size: 15, weight: 700, align: "left", halo: "sky" });
    words(context, "■ rain, as forecast", 12, height - 30, { size: 13, align: "left", tint: "hit", halo: "sky" });
    words(context, "■ rain, missed", 12, height - 11, { size: 13, align: "left", tint: "miss", halo: "sky" });
  }, { rest: 0.6 });
}
