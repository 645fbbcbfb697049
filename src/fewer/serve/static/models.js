// The table of a task's models: how many weights are left, how large the file is, and figures with what they mean.
import { bits, isDense, kilobytes, make, percent, sparsity, whole } from "./base.js";

const MOST = 3; // figures beside each model

const shown = (value, metric) => (metric?.share ? percent(value, 1)
  : Math.abs(value) >= 100 ? whole(value) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(3));

// What 95 of 100 such samples would give, by Wilson, of a share among so many that were tested.
export function interval(share, tested, digits) {
  const z = 1.96;
  const middle = (share + z * z / (2 * tested)) / (1 + z * z / tested);
  const half = z / (1 + z * z / tested) * Math.sqrt(share * (1 - share) / tested + z * z / (4 * tested * tested));
  return `${(100 * Math.max(0, middle - half)).toFixed(digits)} to ${percent(Math.min(1, middle + half), digits)}`;
}

// the ones that the system names first, then the others, as far as any model has them
function figures({ first_metrics: first, metrics }, models) {
  const there = new Set(models.flatMap((model) => Object.keys(model.metrics)));
  const known = [...first, ...Object.keys(metrics)].filter((name) => there.has(name));
  return [...new Set(known.length ? known : there)].slice(0, MOST);
}

function figure({ metrics }, name, metric) {
  const tested = metric?.cases || metrics.test_images;
  return [`${shown(metrics[name], metric)} `, ...(metric?.share && tested ? [make("small", {}, interval(metrics[name], tested, 1))] : [])];
}

// The figures of the columns; where the last of them are missing, what was measured instead.
function cells(model, names, metrics) {
  const has = (name) => name in model.metrics;
  const until = names.findLastIndex(has) + 1;
  const row = names.slice(0, until).map((name) => (has(name) ? make("td", {}, ...figure(model, name, metrics[name])) : make("td", { class: "soft" }, "not measured")));
  if (until === names.length) return row;
  const instead = Object.keys(metrics).filter((name) => has(name) && !names.includes(name))
    .map((name) => make("div", { class: "instead" }, ...figure(model, name, metrics[name]), make("span", {}, metrics[name].label)));
  return [...row, make("td", { colspan: names.length - until, class: "soft" }, ...(instead.length ? instead : ["not measured"]))];
}

function line(task, names, model) {
  const title = task.page
    ? make("a", { href: `/${task.task}?model=${encodeURIComponent(model.name)}` }, model.name) : model.name;
  const left = isDense(model) ? "none removed" : `${sparsity(model)} removed`;
  return make("tr", {}, make("th", { scope: "row" }, title, ...(model.note ? [make("small", {}, model.note)] : [])),
    make("td", {}, whole(model.kept), make("small", {}, left)), make("td", {}, kilobytes(model.bytes), make("small", {}, `at ${bits(model)}`)),
    ...cells(model, names, task.metrics));
}

export function table(task, models) {
  const names = figures(task, models);
  const heads = names.map((name) => {
    const metric = task.metrics[name];
    return make("th", { scope: "col" }, metric?.label || name.replaceAll("_", " "), make("small", {}, metric?.meaning || ""));
  });
  const head = make("tr", {}, make("th", { scope: "col" }, "network"),
    make("th", { scope: "col" }, "weights left", make("small", {}, "numbers it computes with")),
    make("th", { scope: "col" }, "file", make("small", {}, "all that is needed to run it; most numbers at 32 or at 16 bit")), ...heads);
  const order = [...models].sort((a, b) => b.kept - a.kept);
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `networks of ${task.heading}` },
    make("table", { class: "later" }, make("caption", {}, task.heading.split(":")[0]), make("thead", {}, head),
      make("tbody", {}, ...order.map((model) => line(task, names, model)))));
}
