// A digit drawn by hand, each network's answer, and its answer to the worst image nearby.
import { ask, byId, facts, header, make, modelsOf, newest, trouble } from "/static/base.js";

const pad = byId("pad");
const ink = pad.getContext("2d", { willReadFrequently: true });
const SIDE = 280;
let shape = [28, 28];
let last;

// strokes on a square of 100, for those who would rather not draw
const EXAMPLES = [
  [[[30, 28], [45, 18], [62, 22], [66, 36], [56, 47], [46, 50], [58, 52], [69, 63], [64, 78], [46, 83], [30, 76]]],
  [[[28, 22], [50, 22], [72, 22], [60, 45], [50, 65], [44, 84]]],
  [[[60, 16], [46, 34], [34, 56], [52, 58], [74, 57]], [[62, 38], [60, 62], [58, 86]]],
  [[[32, 32], [44, 20], [60, 22], [66, 36], [56, 54], [40, 70], [30, 82], [50, 81], [72, 80]]],
  [[[70, 20], [42, 22], [38, 46], [54, 44], [68, 56], [66, 74], [50, 83], [32, 76]]],
];
let example = -1;

function blank() {
  ink.fillStyle = "#000";
  ink.fillRect(0, 0, SIDE, SIDE);
}

function stroke(points) {
  ink.strokeStyle = "#fff";
  ink.lineWidth = 22;
  ink.lineCap = ink.lineJoin = "round";
  ink.beginPath();
  ink.moveTo(...points[0]);
  // through the middles, so that a few points make a round digit
  for (let n = 1; n < points.length - 1; n++) {
    const [[x, y], [nextX, nextY]] = [points[n], points[n + 1]];
    ink.quadraticCurveTo(x, y, (x + nextX) / 2, (y + nextY) / 2);
  }
  ink.lineTo(...points.at(-1));
  ink.stroke();
}

// As the networks were trained: the digit's box scaled to 20 of 28, its centre of mass in the middle.
function pixels() {
  const [height, width] = shape;
  const data = ink.getImageData(0, 0, SIDE, SIDE).data;
  let [left, right, top, bottom] = [SIDE, -1, SIDE, -1];
  let [mass, middleX, middleY] = [0, 0, 0];
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const value = data[4 * (y * SIDE + x)];
      if (value < 20) continue;
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
      mass += value; middleX += value * x; middleY += value * y;
    }
  }
  if (right < 0) return null;
  const scale = (20 / 28) * Math.min(width, height) / Math.max(right - left + 1, bottom - top + 1);
  const small = new OffscreenCanvas(width, height);
  const context = small.getContext("2d");
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.translate(width / 2 - (middleX / mass) * scale, height / 2 - (middleY / mass) * scale);
  context.scale(scale, scale);
  context.drawImage(pad, 0, 0);
  const found = context.getImageData(0, 0, width, height).data;
  return Array.from({ length: height }, (_, y) =>
    Array.from({ length: width }, (_, x) => Math.round(found[4 * (y * width + x)] / 2.55) / 100));
}

function picture(canvas, rows) {
  canvas.height = rows.length;
  canvas.width = rows[0].length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  rows.flat().forEach((value, place) => {
    const level = Math.round(255 * value);
    image.data.set([level, level, level, 255], 4 * place);
  });
  context.putImageData(image, 0, 0);
}

function panel(model) {
  const canvas = make("canvas", { role: "img", "aria-label": `the image that ${model.name} sees` });
  const verdict = make("p", { class: "verdict", "aria-live": "polite" }, " ");
  const bars = make("div", { class: "bars" });
  const card = make("article", { class: "card", "data-model": model.name }, make("h2", {}, model.name),
    make("p", { class: "soft" }, facts(model)),
    make("div", { class: "seen" }, canvas, make("div", {}, verdict)), bars);
  return { card, canvas, verdict, bars };
}

let panels = {};

function show({ models }, given) {
  for (const [name, said] of Object.entries(models)) {
    const { card, canvas, verdict, bars } = panels[name];
    if (said.why_not && !said.clean) {
      verdict.textContent = said.why_not;
      continue;
    }
    const now = said.attacked || said.clean;
    const fooled = now.label !== said.clean.label;
    picture(canvas, said.pixels || given.pixels);
    verdict.textContent = said.why_not ? `says ${now.label}; ${said.why_not}`
      : fooled ? `said ${said.clean.label}, now says ${now.label}`
      : `says ${now.label}${given.budget ? " and stays with it" : ""}`;
    verdict.className = `verdict ${fooled ? "bad" : given.budget ? "good" : ""}`;
    card.dataset.label = now.label;
    card.dataset.clean = said.clean.label;
    bars.replaceChildren(...now.probabilities.flatMap((share, label) => {
      const fill = make("i");
      const mark = make("b");
      fill.style.width = `${100 * share}%`;
      mark.style.width = `${100 * said.clean.probabilities[label]}%`;
      mark.hidden = said.clean.probabilities[label] < 0.02;
      const kind = label === now.label ? (fooled ? "bar fooled" : "bar") : "bar other";
      return [make("span", {}, `${label}`), make("div", { class: kind }, fill, mark),
        make("span", { class: "tabular" }, `${Math.round(100 * share)} %`)];
    }));
  }
}

const put = newest((threat) => ask("/v1/vision/attack", threat), show);

function again() {
  const drawn = pixels();
  const budget = Number(byId("budget").value);
  byId("said").textContent = budget.toFixed(2);
  if (drawn) put({ pixels: drawn, budget, steps: Number(byId("steps").value) });
}

function reset() {
  put.forget(); // an answer on its way is about a digit that is gone
  blank();
  for (const { card, canvas, verdict, bars } of Object.values(panels)) {
    canvas.width = canvas.height = 28;
    verdict.textContent = "draw something";
    verdict.className = "verdict soft";
    bars.replaceChildren();
    delete card.dataset.label;
  }
}

function place(event) {
  const box = pad.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width * SIDE, (event.clientY - box.top) / box.height * SIDE];
}

pad.addEventListener("pointerdown", (event) => {
  pad.setPointerCapture(event.pointerId);
  last = place(event);
  stroke([last, last]);
});
pad.addEventListener("pointermove", (event) => {
  if (!last || !event.buttons) return;
  const now = place(event);
  stroke([last, now]);
  last = now;
  again();
});
pad.addEventListener("pointerup", () => { last = undefined; again(); });
byId("budget").addEventListener("input", again);
byId("steps").addEventListener("change", again);
byId("clear").addEventListener("click", reset);
byId("example").addEventListener("click", () => {
  blank();
  example = (example + 1) % EXAMPLES.length;
  for (const points of EXAMPLES[example]) stroke(points.map(([x, y]) => [x * SIDE / 100, y * SIDE / 100]));
  again();
});

async function start() {
  pad.width = pad.height = SIDE;
  blank();
  await header();
  const models = (await modelsOf("vision")).sort((a, b) => b.kept / b.weights - a.kept / a.weights);
  shape = Object.values(models[0].inputs)[0].shape;
  panels = Object.fromEntries(models.map((model) => [model.name, panel(model)]));
  byId("networks").append(...Object.values(panels).map(({ card }) => card));
  if (shape.length !== 2) throw new Error("these networks read colour images; drawing is for grey ones");
  byId("example").click();
}

start().catch(trouble);
