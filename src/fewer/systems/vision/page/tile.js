// The first page's picture: one digit, changed ever more, read by an ordinary and by a light and hardened network.
import { ask, isDense, percent, sparsity } from "/static/base.js";
import { animate, raster, surface, unpacked, words } from "/static/pictures.js";
import { SIDE, drawExample, pixels } from "./digit.js";

const SUITE = "whole suite at 0.3";
const worst = (model) => model.metrics[SUITE] ?? 0;

// the lightest of the hardened that were tried by every attack
function hero(models) {
  const tried = models.filter((model) => SUITE in model.metrics && !isDense(model));
  return tried.sort((a, b) => a.kept - b.kept)[0] || [...models].sort((a, b) => a.kept - b.kept)[0];
}

export function sentence(all) {
  const grey = all.filter((model) => Object.values(model.inputs)[0].shape.length === 2);
  const model = hero(grey.length ? grey : all);
  const big = isDense(model) ? `${percent(model.metrics.accuracy ?? 0)} right` : `${sparsity(model)} fewer weights`;
  const rest = worst(model)
    ? `and still right on ${percent(worst(model))} of handwritten digits while somebody changes the image in the worst of seven ways.`
    : `and right on ${percent(model.metrics.accuracy ?? 0)} of handwritten digits.`;
  return { big, rest };
}

export async function picture(canvas, all, told) {
  const models = all.filter((model) => Object.values(model.inputs)[0].shape.length === 2);
  if (!models.length) return;
  const light = hero(models);
  const plain = models.find((model) => !model.hardened && model !== light);
  const pair = [plain, light].filter(Boolean);
  const pad = new OffscreenCanvas(SIDE, SIDE);
  drawExample(pad.getContext("2d", { willReadFrequently: true }), 0);
  const shape = Object.values(light.inputs)[0].shape;
  const climbed = await ask("/v1/vision/ladder", { pixels: pixels(pad, shape), models: pair.map(({ name }) => name), most: 0.3, rungs: 7, steps: 5 });
  const names = { [light.name]: light.hardened ? "hardened" : light.name, ...(plain && { [plain.name]: "ordinary" }) };
  const films = pair.map(({ name }) => ({ ...climbed.models[name], name })).filter((film) => film.images).map((film) => {
    const bytes = unpacked(film.images);
    const count = shape[0] * shape[1];
    return { ...film, frames: film.labels.map((_, rung) => raster(shape[1], shape[0], (place) => {
      const level = bytes[rung * count + place];
      return [level, level, level, 255];
    })) };
  });
  const last = climbed.budgets.length - 1;
  told(films.map(({ name, labels }) => `${names[name]}: reads ${labels[0]}, under attack ${labels[last]}`).join("; "));
  animate(canvas, (clock) => {
    const rung = Math.min(last, Math.floor(Math.max(0, (clock % 6) - 0.8) * 1.8));
    const { context, width, height } = surface(canvas);
    context.imageSmoothingEnabled = false;
    const side = Math.min((width - 36) / 2, height - 96);
    films.forEach(({ frames, labels, name }, index) => {
      const x = width / 2 + (index - films.length / 2) * (side + 12) + 6;
      const y = (height - side) / 2 - 6;
      context.drawImage(frames[rung], x, y, side, side);
      const fooled = labels[rung] !== labels[0];
      words(context, names[name], x + side / 2, y - 10, { size: 13, tint: "soft" });
      words(context, `“${labels[rung]}” ${fooled ? "✗" : "✓"}`, x + side / 2, y + side + 27, { size: 22, weight: 700, tint: fooled ? "red" : "green" });
    });
    words(context, `every pixel changed by up to ${Math.round(100 * climbed.budgets[rung])} %`, width / 2, height - 10, { size: 12.5, weight: 500, tint: "soft" });
  }, { rest: 5 });
}
