// The runners as a table: how much each network weighs, against the largest of them, its score, and how it fares now.
import { isDense, kilobytes, make, whole } from "/static/base.js";

export function board(runners) {
  const most = Math.max(...runners.map(({ model }) => model.kept));
  return runners.map((runner) => {
    const { model, label, kind } = runner;
    const fill = make("i");
    fill.style.width = `${100 * model.kept / most}%`;
    runner.cell = make("span");
    const less = isDense(model) ? [] : [make("small", {}, `1 in ${whole(model.weights / model.kept)}`)];
    return make("tr", { class: `s${kind}`, "data-model": model.name },
      make("th", { scope: "row" }, make("span", { class: "swatch", "aria-hidden": "true" }), make("span", { class: "plain" }, label)),
      make("td", { class: "plain" }, whole(model.kept), ...less), make("td", {}, make("div", { class: "bar thin" }, fill)),
      make("td", { class: "plain" }, kilobytes(model.bytes)),
      make("td", { class: "plain" }, "score" in model.metrics ? model.metrics.score.toFixed(0) : "–"), make("td", { class: "plain" }, runner.cell));
  });
}
