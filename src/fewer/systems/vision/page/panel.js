// One network's card: what it sees, what was changed, what it says, and the budget at which it changes its mind.
import { byId, facts, make, percent } from "/static/base.js";
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
  const chip = make("li", {}, label);
  return { card, chip, label, seen, changed, verdict, bars, breaks };
}

function grey(canvas, [height, width], level) {
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").drawImage(raster(width, height, (place) => { const value = level(place); return [value, value, value, 255]; }), 0, 0);
}

export function clear({ card, chip, label, seen, changed, verdict, bars, breaks }, shape, words) {
  for (const canvas of [seen, changed]) grey(canvas, shape, () => 0);
  verdict.textContent = words;
  verdict.className = "verdict soft";
  breaks.textContent = "\u00a0";
  bars.replaceChildren();
  chip.textContent = label;
  chip.className = "";
  delete card.dataset.label;
  delete card.dataset.clean;
}

function likely(now, before) {
  const order = now.map((share, label) => [share, label]).sort((a, b) => b[0] - a[0]).slice(0, LIKELY);
  return order.flatMap(([share, label], place) => {
    const [fill, mark] = [make("i"), make("b")];
    fill.style.width = `${100 * share}%`;
    mark.style.width = `${100 * before[label]}%`;
    mark.hidden = before[label] < 0.02;
    const first = before.indexOf(Math.max(...before));
    const kind = place ? "bar other" : label === first ? "bar" : "bar fooled";
    return [make("span", {}, `${label}`), make("div", { class: kind }, fill, mark), make("span", { class: "tabular" }, percent(share))];
  });
}

export function unpack(found) {
  return found.images ? { ...found, bytes: unpacked(found.images) } : found;
}

// The answer at one budget of the ladder.
export function show(one, found, rung, shape) {
  const { card, chip, label, seen, changed, verdict, bars, breaks } = one;
  if (found.why_not) { verdict.textContent = found.why_not; return; }
  const count = shape[0] * shape[1];
  const at = (step, place) => found.bytes[step * count + place];
  grey(seen, shape, (place) => at(rung, place));
  grey(changed, shape, (place) => 128 + TIMES * (at(rung, place) - at(0, place)));
  const [first, now] = [found.labels[0], found.labels[rung]];
  const fooled = now !== first;
  verdict.textContent = fooled ? `said ${first}, now says ${now}` : rung ? `still says ${now}` : `says ${now}`;
  verdict.className = `verdict ${fooled ? "bad" : rung ? "good" : ""}`;
  breaks.textContent = found.breaks_at === null ? "holds at every budget here" : `breaks at ${found.breaks_at.toFixed(2)}`;
  chip.textContent = `${label}: ${now} ${fooled ? "✗" : "✓"}`;
  chip.className = fooled ? "missed" : "right";
  card.dataset.label = now;
  card.dataset.clean = first;
  bars.replaceChildren(...likely(found.probabilities[rung], found.probabilities[0]));
}

export function strip(panels) {
  byId("strip").replaceChildren(...panels.map(({ chip }) => chip));
  byId("networks").replaceChildren(...panels.map(({ card }) => card));
}
