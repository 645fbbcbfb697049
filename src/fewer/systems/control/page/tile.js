// The first page's picture: the robot with most policies, dense and pruned side by side.
import { ask, isDense, percent, sparsity, whole } from "/static/base.js";
import { animate, surface, words } from "/static/pictures.js";
import { drawGround, drawRobot, frameAt, hasFallen, middle, state, tallest } from "./film.js";

const scored = (models) => models.filter((model) => "score" in model.metrics);

// the lightest that keeps 85 % of the best score, or else the first
function hero(models) {
  const best = Math.max(...scored(models).map((model) => model.metrics.score));
  const good = scored(models).filter((model) => model.metrics.score >= 0.85 * best && !isDense(model));
  return good.sort((a, b) => a.kept - b.kept)[0] || models[0];
}

export function sentence(models) {
  const model = hero(models);
  const dense = scored(models).find(isDense);
  const big = isDense(model) ? `${whole(model.weights)} weights` : `${sparsity(model)} fewer weights`;
  if (!dense || dense === model) return { big, model, rest: "move a robot from what it senses alone." };
  return { big, model, rest: `and the robot still runs: its score is ${model.metrics.score.toFixed(0)}.`,
    beside: `With all weights ${dense.metrics.score.toFixed(0)}; the benchmark's expert has 100.` };
}

export async function picture(canvas, models, told) {
  const model = hero(models);
  const worlds = await ask("/v1/control/worlds");
  const rivals = scored(models).filter((other) => worlds[other.name] === worlds[model.name]);
  const pair = [...(rivals.length ? rivals : [model])].sort((a, b) => a.removed - b.removed).slice(0, 3);
  const films = await Promise.all(pair.map(({ name }) => ask("/v1/control/episode", { model: name, seed: 2, seconds: 5.0 })));
  const label = (one) => (isDense(one) ? `all ${whole(one.kept)} weights` : `${whole(one.kept)} weights`);
  told(pair.map((one, n) => `${label(one)}: ${films[n].fell ? "fell" : "still going"} after ${films[n].seconds.toFixed(1)} s`).join("; "));
  const tall = Math.max(...films.map(tallest));
  animate(canvas, (clock) => {
    const seconds = Math.min(clock % 6, 5);
    const { context, width, height } = surface(canvas);
    const lane = height / films.length;
    const scale = (lane - 14) / tall;
    const front = Math.max(...films.map((film) => middle(frameAt(film, seconds))));
    const left = front - 0.62 * width / scale;
    films.forEach((film, n) => {
      const floor = lane * (n + 1) - 10;
      drawGround(context, { left, scale, floor, width });
      const frame = frameAt(film, seconds);
      const fallen = hasFallen(film, seconds);
      drawRobot(context, film, frame, { at: (x, z) => [(x - left) * scale, floor - z * scale], scale, tint: ["soft", "blue", "orange"][n] });
      words(context, label(pair[n]), 12, floor - lane + 34, { size: 13, align: "left", tint: ["soft", "blue", "orange"][n] });
      words(context, state(film, seconds), 12, floor - lane + 52, { size: 12.5, weight: 500, align: "left", tint: fallen ? "red" : "soft" });
    });
  }, { rest: 3 });
}
