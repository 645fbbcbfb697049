// One network's card: what it sees, what was changed, what it says, and the budget at which it changes its mind.
import { facts, make, percent } from "/static/base.js";
import { raster, unpacked } from "/static/pictures.js";

const LIKELY = 3; // answers that are shown

// What was changed is shown `times` as strong: then the largest change of all is from grey to black or white.
export function panel(model, label, times) {
  const [seen, changed] = [`the image that ${label} sees`, `what was changed for ${label}, ${times} times as strong`]
    .map((words) => make("canvas", { role: "img", "aria-label": words }));
  const verdict = make("p", { class: "verdict" }, "\u00a0");
  const bars = make("div", { class: "bars" });
  const breaks = make("p", { class: "breaks tabular" }, "\u00a0");
  const card = make("article", { class: "card network", "data-model": model.name, title: model.name }, make("h2", {}, label), make("p", { class: "soft" }, facts(model)),
    make("div", { class: "seen" }, make("figure", {}, seen, make("figcaption", { class: "soft" }, "sees")),
      make("figure", {}, changed, make("figcaption", { class: "soft" }, times > 1 ? `changed, ×${times}` : "changed")),
      make("div", {}, verdict, breaks, make("p", { class: "sure soft" }, "how sure it is"), bars)));
  const named = (number) => model.classes?.[number] ?? `${number}`;
  return { model, label, times, card, named, seen, changed, verdict, bars, breaks };
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

export function clear({ card, seen, changed, verdict, bars, breaks }, shape, words) {
  for (const canvas of [seen, changed]) paint(canvas, shape, () => 0);
  verdict.textContent = words;
  verdict.className = "verdict soft";
  breaks.textContent = "\u00a0";
  bars.replaceChildren();
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
  const { times, card, named, seen, changed, verdict, bars, breaks } = one;
  if (found.why_not) { verdict.textContent = found.why_not; return; }
  const count = shape.reduce((product, size) => product * size, 1);
  const at = (step, place) => found.bytes[step * count + place];
  paint(seen, shape, (place) => at(rung, place));
  paint(changed, shape, (place) => 128 + times * (at(rung, place) - at(0, place)));
  const [first, now] = [found.labels[0], found.labels[rung]];
  const fooled = now !== first;
  const wrong = truth === undefined ? fooled : named(now) !== truth;
  const before = truth !== undefined && named(first) !== truth;
  verdict.textContent = fooled ? `said ${named(first)}, now says ${named(now)}` : `${rung ? "still says" : "says"} ${named(now)}${wrong ? ", wrongly" : ""}`;
  verdict.className = `verdict ${wrong ? "bad" : rung ? "good" : ""}`;
  breaks.textContent = before ? "wrong without any change" : found.breaks_at === null ? "holds at every budget here" : `breaks at ${words(found.breaks_at)}`;
  card.dataset.label = now;
  card.dataset.clean = first;
  bars.replaceChildren(...likely(found.probabilities[rung], found.probabilities[0], named));
}

// All networks in a sentence about one budget. Without the truth a network is fooled when it changes its mind.
export function verdict(place, panels, found, rung, truth) {
  const all = Object.values(panels).filter(({ model }) => found[model.name]?.labels)
    .map(({ model, label, named }) => ({ label, first: named(found[model.name].labels[0]), now: named(found[model.name].labels[rung]) }));
  const told = (words, kind, chosen) => {
    const some = all.filter(chosen).map(({ label }) => label);
    return some.length ? [make("span", { class: kind }, `${words}: ${some.join(", ")}. `)] : [];
  };
  const right = ({ first, now }) => now === (truth ?? first);
  const lost = ({ first }) => truth !== undefined && first !== truth;
  const answers = [...new Set(all.map(({ first }) => first))];
  place.replaceChildren(...(rung || truth !== undefined ? [
    ...told("Wrong from the start", "bad", (one) => !right(one) && lost(one)),
    ...told("Now fooled", "bad", (one) => !right(one) && !lost(one)),
    ...told(rung ? "Still right" : "Right", "good", right)] : answers.flatMap((answer) => told(`Not attacked yet, and says ${answer}`, "", ({ first }) => first === answer))));
}
