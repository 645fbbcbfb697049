// One network's card: what it sees, what was changed, what it says, and the budget at which it changes its mind.
import { byId, facts, isDense, make, percent, sparsity } from "/static/base.js";
import { raster, unpacked } from "/static/pictures.js";

const TIMES = 5; // what changed is shown so many times as strong
const LIKELY = 3; // answers that are shown

export function panel(model, label) {
  const [seen, changed] = [`the image that ${label} sees`, `what was changed for ${label}, ${TIMES} times as strong`]
    .map((words) => make("canvas", { role: "img", "aria-label": words }));
  const verdict = make("p", { class: "verdict" }, "\u00a0");
  const bars = make("div", { class: "bars" });
  const breaks = make("p", { class: "breaks tabular" }, "\u00a0");
  const card = make("article", { class: "card network", "data-model": model.name }, make("h2", {}, label),
    make("p", { class: "soft" }, `${model.name} · ${facts(model)}`),
    make("div", { class: "seen" }, make("figure", {}, seen, make("figcaption", { class: "soft" }, "sees")),
      make("figure", {}, changed, make("figcaption", { class: "soft" }, `changed, ×${TIMES}`)), make("div", {}, verdict, breaks)), bars);
  const mark = make("b");
  const chip = make("li", {}, `${label} `, mark);
  const named = (number) => model.classes?.[number] ?? `${number}`;
  return { model, label, card, chip, mark, named, seen, changed, verdict, bars, breaks };
}

// Grey where an image has two axes; of three the first are its channels, red, green and blue.
function paint(canvas, shape, level) {
  const [height, width] = shape.slice(-2);
  const count = height * width;
  const channels = shape.length === 3 ? [0, count, 2 * count] : [0, 0, 0];
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").drawImage(raster(width, height, (place) => [...channels.map((from) => level(from + place)), 255]), 0, 0);
}

export function clear({ card, chip, mark, seen, changed, verdict, bars, breaks }, shape, words) {
  for (const canvas of [seen, changed]) paint(canvas, shape, () => 0);
  verdict.textContent = words;
  verdict.className = "verdict soft";
  breaks.textContent = "\u00a0";
  bars.replaceChildren();
  mark.textContent = "";
  chip.className = "";
  delete card.dataset.label;
  delete card.dataset.clean;
}

function likely(now, before, named) {
  const order = now.map((share, label) => [share, label]).sort((a, b) => b[0] - a[0]).slice(0, LIKELY);
  return order.flatMap(([share, label], place) => {
    const [fill, mark] = [make("i"), make("b")];
    fill.style.width = `${100 * share}%`;
    mark.style.width = `${100 * before[label]}%`;
    mark.hidden = before[label] < 0.02;
    const first = before.indexOf(Math.max(...before));
    const kind = place ? "bar other" : label === first ? "bar" : "bar fooled";
    return [make("span", {}, named(label)), make("div", { class: kind }, fill, mark), make("span", { class: "tabular" }, percent(share))];
  });
}

export function unpack(found) {
  return found.images ? { ...found, bytes: unpacked(found.images) } : found;
}

// The answer at one budget of the ladder; a budget in words, and what the image shows where that is known.
export function show(one, found, rung, shape, { words, truth }) {
  const { card, chip, mark, named, seen, changed, verdict, bars, breaks } = one;
  if (found.why_not) { verdict.textContent = found.why_not; return; }
  const count = shape.reduce((product, size) => product * size, 1);
  const at = (step, place) => found.bytes[step * count + place];
  paint(seen, shape, (place) => at(rung, place));
  paint(changed, shape, (place) => 128 + TIMES * (at(rung, place) - at(0, place)));
  const [first, now] = [found.labels[0], found.labels[rung]];
  const fooled = now !== first;
  const wrong = truth === undefined ? fooled : named(now) !== truth;
  const before = truth !== undefined && named(first) !== truth;
  verdict.textContent = fooled ? `said ${named(first)}, now says ${named(now)}` : `${rung ? "still says" : "says"} ${named(now)}${wrong ? ", wrongly" : ""}`;
  verdict.className = `verdict ${wrong ? "bad" : rung ? "good" : ""}`;
  breaks.textContent = before ? "wrong without any change" : found.breaks_at === null ? "holds at every budget here" : `breaks at ${words(found.breaks_at)}`;
  mark.textContent = `${named(now)} ${wrong ? "✗" : "✓"}`;
  chip.className = wrong ? "missed" : "right";
  card.dataset.label = now;
  card.dataset.clean = first;
  bars.replaceChildren(...likely(found.probabilities[rung], found.probabilities[0], named));
}

// What stands above: the largest of those that were not hardened and the lightest of those that were.
export function verdict(panels, found, { words, truth }) {
  const all = Object.values(panels).sort((a, b) => a.model.kept - b.model.kept);
  const light = all.find(({ model }) => model.hardened);
  const plain = all.findLast(({ model }) => !model.hardened);
  return [plain, light].filter((one) => one && found[one.model.name].labels).map(({ model, label, named }) => {
    const { labels, breaks_at: breaks } = found[model.name];
    const wrong = truth !== undefined && named(labels[0]) !== truth;
    const when = wrong ? "Wrong without any change" : breaks === null ? "Not fooled here" : `Fooled at ${words(breaks)}`;
    return `${when}: ${label}${isDense(model) ? "" : ` (${sparsity(model)} fewer weights)`}.`;
  }).join(" ");
}

export function strip(panels) {
  byId("strip").replaceChildren(...panels.map(({ chip }) => chip));
  byId("networks").replaceChildren(...panels.map(({ card }) => card));
}
