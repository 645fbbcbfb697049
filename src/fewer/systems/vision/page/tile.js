// The first page's picture: one digit, changed ever more, read by an ordinary and by a light and hardened network.
import { ask, isDense, percent, sparsity } from "/static/base.js";
import { interval } from "/static/models.js";
import { animate, raster, surface, unpacked, words } from "/static/pictures.js";
import { SIDE, drawExample, pixels } from "./digit.js";

const SUITE = "whole suite at 0.3"; // the worst of all attacks for each image
const PGD = "PGD-40 at 0.3";
const TURN = 6; // seconds
const grey = (models) => models.filter((model) => Object.values(model.inputs)[0].shape.length === 2);
const network = (model) => model.settings.find((word) => word.startsWith("network="));

// of one architecture, tried in the same way, none of their weights removed
const fullOf = (model, models) => models.filter((other) => isDense(other) && network(other) === network(model) && other.weights === model.weights && PGD in other.metrics);

// the lightest of the hardened, rather one that stands beside its full network
function hero(models) {
  const tried = models.filter((model) => model.hardened && PGD in model.metrics && !isDense(model));
  const paired = tried.filter((model) => fullOf(model, models).length);
  return [...(paired.length ? paired : tried.length ? tried : models)].sort((a, b) => a.kept - b.kept)[0];
}

export function sentence(all) {
  const models = grey(all).length ? grey(all) : all;
  const model = hero(models);
  const big = isDense(model) ? `${percent(model.metrics.accuracy ?? 0)} right` : `${sparsity(model)} fewer weights`;
  const full = fullOf(model, models).map((other) => `${other.hardened ? "" : "not hardened "}${percent(other.metrics[PGD])}`);
  const [share, how] = full.length || !(SUITE in model.metrics) ? [model.metrics[PGD], "attacked at 30 %"] : [model.metrics[SUITE], "under the worst of seven attacks at 30 %"];
  const beside = full.length ? `With all weights ${full.sort().join("; ")}.` : undefined;
  const range = model.metrics.test_images ? ` (${interval(share, model.metrics.test_images, 0)})` : "";
  const rest = share ? `and still right on ${percent(share)}${range} of handwritten digits ${how}, which it was trained for (hardened).`
    : `and right on ${percent(model.metrics.accuracy ?? 0)} of handwritten digits.`;
  return { big, rest, beside, model };
}

export async function picture(canvas, all, told) {
  const models = grey(all);
  if (!models.length) return;
  const light = hero(models);
  const plain = [...fullOf(light, models), ...models].find((model) => !model.hardened && model !== light);
  const pair = [plain, light].filter(Boolean);
  const pad = new OffscreenCanvas(SIDE, SIDE);
  drawExample(pad.getContext("2d", { willReadFrequently: true }), 0);
  const shape = Object.values(light.inputs)[0].shape;
  const climbed = await ask("/v1/vision/ladder", { pixels: pixels(pad, shape), models: pair.map(({ name }) => name), most: 0.3, rungs: 7, steps: 5 });
  const called = (model) => [model.hardened ? "hardened" : "ordinary", isDense(model) ? "all weights" : `${sparsity(model)} fewer`];
  const films = pair.map((model) => ({ ...climbed.models[model.name], names: called(model) })).filter((film) => film.images).map((film) => {
    const bytes = unpacked(film.images);
    const count = shape[0] * shape[1];
    return { ...film, frames: film.labels.map((_, rung) => raster(shape[1], shape[0], (place) => {
      const level = bytes[rung * count + place];
      return [level, level, level, 255];
    })) };
  });
  const last = climbed.budgets.length - 1;
  told(films.map(({ names, labels }) => `${names.join(", ")}: reads ${labels[0]}, under attack ${labels[last]}`).join("; "));
  animate(canvas, (clock) => {
    // it begins and rests attacked, and in between climbs there
    const rung = clock % TURN < 2.5 ? last : 1 + Math.min(last - 1, Math.floor((clock % TURN - 2.5) * 2));
    const { context, width, height } = surface(canvas);
    context.imageSmoothingEnabled = false;
    const side = Math.min((width - 36) / 2, height - 118);
    films.forEach(({ frames, labels, names }, index) => {
      const x = width / 2 + (index - films.length / 2) * (side + 12) + 6;
      const y = (height - side) / 2 + 2;
      context.drawImage(frames[rung], x, y, side, side);
      const fooled = labels[rung] !== labels[0];
      words(context, names[0], x + side / 2, y - 26, { size: 13 });
      words(context, names[1], x + side / 2, y - 9, { size: 12.5, weight: 500, tint: "soft" });
      words(context, `“${labels[rung]}” ${fooled ? "✗" : "✓"}`, x + side / 2, y + side + 26, { size: 22, weight: 700, tint: fooled ? "red" : "green" });
    });
    words(context, `every pixel changed by up to ${Math.round(100 * climbed.budgets[rung])} %`, width / 2, height - 10, { size: 12.5, weight: 500, tint: "soft" });
  });
}
