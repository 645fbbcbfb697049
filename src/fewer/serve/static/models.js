// The table of a task's models: how many weights are left, how large the file is, and figures with what they mean.
import { isDense, kilobytes, make, percent, sparsity, whole } from "./base.js";

const MOST = 3; // figures beside each model

const shown = (value, metric) => (metric?.share ? percent(value, 1)
  : Math.abs(value) >= 100 ? whole(value) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(3));

// the ones that the system names first, then the others, as far as any model has them
function figures({ first_metrics: first, metrics }, models) {
  const there = new Set(models.flatMap((model) => Object.keys(model.metrics)));
  const known = [...first, ...Object.keys(metrics)].filter((name) => there.has(name));
  return [...new Set(known.length ? known : there)].slice(0, MOST);
}

function line(task, names, model) {
  const title = task.page
    ? make("a", { href: `/${task.task}?model=${encodeURIComponent(model.name)}${location.hash}` }, model.name) : model.name;
  const left = isDense(model) ? "none removed" : `${sparsity(model)} removed`;
  return make("tr", {}, make("th", { scope: "row" }, title, ...(model.note ? [make("small", {}, model.note)] : [])),
    make("td", {}, whole(model.kept), make("small", {}, left)), make("td", {}, kilobytes(model.bytes)),
    ...names.map((name) => make("td", {}, name in model.metrics ? shown(model.metrics[name], task.metrics[name]) : "not measured")));
}

export function table(task, models) {
  const names = figures(task, models);
  const heads = names.map((name) => {
    const metric = task.metrics[name];
    return make("th", { scope: "col" }, metric?.label || name.replaceAll("_", " "), make("small", {}, metric?.meaning || ""));
  });
  const head = make("tr", {}, make("th", { scope: "col" }, "network"),
    make("th", { scope: "col" }, "weights left", make("small", {}, "numbers it computes with")),
    make("th", { scope: "col" }, "file", make("small", {}, "all that is needed to run it")), ...heads);
  const order = [...models].sort((a, b) => b.kept - a.kept);
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `networks of ${task.heading}` },
    make("table", { class: "later" }, make("caption", {}, task.heading.split(":")[0]), make("thead", {}, head),
      make("tbody", {}, ...order.map((model) => line(task, names, model)))));
}
