// The map: a phone somewhere, what it measures, who is chosen, who ideally would be.
import { ask, byId, colour, header, make, modelsOf, newest, onTheme, trouble } from "/static/base.js";

const map = byId("map");
let area;
let phone;
let found;
let background;

function prepare() {
  // the strongest signal at every place, as a wash of blue behind everything
  const grid = area.strength_db;
  const all = grid.flat();
  const low = all.reduce((a, b) => Math.min(a, b));
  const high = all.reduce((a, b) => Math.max(a, b));
  background = new OffscreenCanvas(grid[0].length, grid.length);
  const context = background.getContext("2d");
  const image = context.createImageData(grid[0].length, grid.length);
  const [r, g, b] = colour("blue").match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
  grid.forEach((row, y) => row.forEach((value, x) => {
    const place = 4 * ((grid.length - 1 - y) * row.length + x); // y points up
    const share = (value - low) / Math.max(high - low, 1);
    image.data.set([r, g, b, Math.round(150 * share * share)], place);
  }));
  context.putImageData(image, 0, 0);
}

// the area begins at area.corner_m, and y points up
const share = (value, axis) => (value - area.corner_m[axis]) / area.side_m;
const metres = (part, axis) => area.corner_m[axis] + part * area.side_m;
const at = ([x, y]) => [share(x, 0) * map.width, (1 - share(y, 1)) * map.height];

function circle(context, place, radius, { fill, stroke, width = 2 }) {
  context.beginPath();
  context.arc(...at(place), radius, 0, 2 * Math.PI);
  if (fill) { context.fillStyle = fill; context.fill(); }
  if (stroke) { context.strokeStyle = stroke; context.lineWidth = width; context.stroke(); }
}

function draw() {
  if (!area) return;
  const dense = Math.min(devicePixelRatio || 1, 2);
  map.width = map.height = Math.round(map.clientWidth * dense);
  map.style.height = `${map.clientWidth}px`;
  const context = map.getContext("2d");
  context.fillStyle = colour("paper");
  context.fillRect(0, 0, map.width, map.height);
  context.drawImage(background, 0, 0, map.width, map.height);
  const unit = Math.max(map.width / 620, 0.72 * dense); // marks stay visible on a phone
  const points = area.access_points;
  for (const point of points) circle(context, point, 3.2 * unit, { fill: colour("soft") });
  if (!found) return;
  const chosen = new Set(found.access_points);
  for (const one of found.candidates) circle(context, points[one], 8 * unit, { stroke: colour("orange"), width: 1.5 * unit });
  context.lineWidth = 2.5 * unit;
  for (const one of chosen) {
    context.strokeStyle = colour("blue");
    context.beginPath();
    context.moveTo(...at([phone.x_m, phone.y_m]));
    context.lineTo(...at(points[one]));
    context.stroke();
  }
  for (const one of chosen) circle(context, points[one], 6 * unit, { fill: colour("blue") });
  for (const one of found.ideal) circle(context, points[one], 11.5 * unit, { stroke: colour("green"), width: 3 * unit });
  context.font = `600 ${13 * unit}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.lineWidth = 3.5 * unit;
  context.lineJoin = "round";
  for (const one of new Set([...found.measured, ...chosen, ...found.ideal])) {
    const [x, y] = at(points[one]);
    const above = y > 30 * unit ? y - 15 * unit : y + 25 * unit;
    context.strokeStyle = colour("card");
    context.strokeText(one, x, above);
    context.fillStyle = colour("ink");
    context.fillText(one, x, above);
  }
  circle(context, [phone.x_m, phone.y_m], 7.5 * unit, { fill: colour("red"), stroke: colour("card"), width: 2.5 * unit });
}

function chip(one, kind, words = "") {
  return make("li", { class: kind }, words ? `${one} ${words}` : `${one}`);
}

function bar(share, other) {
  const fill = make("i");
  fill.style.width = `${Math.round(100 * share)}%`;
  return make("div", { class: other ? "bar other" : "bar" }, fill);
}

function show(answer) {
  found = answer;
  const ideal = new Set(found.ideal);
  const chosen = new Set(found.access_points);
  const right = found.access_points.filter((one) => ideal.has(one)).length;
  const missed = found.ideal.filter((one) => !chosen.has(one));
  const perfect = right === ideal.size && right === chosen.size;
  const verdict = byId("verdict");
  verdict.textContent = perfect ? `All ${right} right` : `${right} of ${ideal.size} found, ${chosen.size - right} needless`;
  verdict.className = `verdict ${perfect ? "good" : ""}`;
  byId("chosen").replaceChildren(...found.access_points.map((one) => 
    ideal.has(one) ? chip(one, "right") : chip(one, "wrong", "needless")));
  byId("ideal").replaceChildren(...found.ideal.map((one) => 
    !missed.includes(one) ? chip(one, "right")
      : chip(one, "missed", found.candidates.includes(one) ? "missed" : "no candidate")));
  const levels = found.rsrp_db.filter((value) => value !== null);
  const top = Math.max(...levels);
  byId("measured").replaceChildren(...found.measured.flatMap((one, index) => {
    const value = found.rsrp_db[index];
    const name = `${one}${index === 0 ? " (master)" : ""}`;
    if (value === null) return [make("span", {}, name), make("span", { class: "soft" }, "not reported"), make("span", {}, "")];
    return [make("span", {}, name), bar(Math.max(0.03, 1 + (value - top) / 45), index > 0), make("span", {}, `${value.toFixed(1)} dB`)];
  }));
  const order = found.candidates.map((one, index) => [one, found.probabilities[index]]).sort((a, b) => b[1] - a[1]);
  byId("candidates").replaceChildren(...order.flatMap(([one, share]) => [
    make("span", {}, `${one}${ideal.has(one) ? " ✓" : ""}`), bar(share, !chosen.has(one)),
    make("span", {}, `${Math.round(100 * share)} %  ·  ${found.below_master_db[one].toFixed(0)} dB`)]));
  draw();
}

const put = newest((place) => ask("/v1/cellfree/place", { ...place, model: byId("model").value || null }), show);

function move(x, y) {
  const within = (value, axis) => Math.min(Math.max(value, metres(0, axis)), metres(1, axis));
  phone = { x_m: within(x, 0), y_m: within(y, 1) };
  map.dataset.x = Math.round(phone.x_m);
  map.dataset.y = Math.round(phone.y_m);
  draw();
  put(phone);
}

function pointed(event) {
  if (!area || (event.type === "pointermove" && !event.buttons)) return;
  const box = map.getBoundingClientRect();
  move(metres((event.clientX - box.left) / box.width, 0), metres(1 - (event.clientY - box.top) / box.height, 1));
}

// a finger may be about to scroll the page: it counts once it drags sideways, or where it is lifted
let touched;
map.addEventListener("pointerdown", (event) => {
  map.setPointerCapture(event.pointerId);
  touched = event.pointerType === "touch" ? event : undefined;
  if (!touched) pointed(event);
});
map.addEventListener("pointermove", (event) => {
  if (touched && Math.abs(event.clientX - touched.clientX) <= Math.abs(event.clientY - touched.clientY)) return;
  touched = undefined;
  pointed(event);
});
map.addEventListener("pointerup", (event) => { if (touched) pointed(event); });
map.addEventListener("keydown", (event) => {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] || [];
  if (dx === undefined) return;
  event.preventDefault();
  move(phone.x_m + dx * area.side_m / 50, phone.y_m + dy * area.side_m / 50);
});

async function load() {
  area = await ask(`/v1/cellfree/map?model=${encodeURIComponent(byId("model").value)}`);
  byId("few").textContent = `${area.measured}`;
  byId("threshold").textContent = area.threshold_db;
  byId("scale").textContent = `${area.access_points.length} access points on ${area.side_m / 1000} km × ${area.side_m / 1000} km. `
    + "The bluer, the stronger the strongest signal.";
  found = undefined;
  prepare();
  move(metres(0.5, 0), metres(0.5, 1));
}

async function start() {
  await header();
  const models = await modelsOf("cellfree");
  byId("model").append(...models.map((model) => make("option", { value: model.name }, model.name)));
  byId("choose").hidden = models.length < 2;
  byId("model").addEventListener("change", () => load().catch(trouble));
  await load();
  new ResizeObserver(draw).observe(map.parentElement);
  onTheme(() => { prepare(); draw(); });
}

start().catch(trouble);
