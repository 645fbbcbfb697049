// The town: a phone walks or is dragged, measures a few access points, and is served by those the network picks.
import { ask, asked, byId, header, isDense, make, modelsOf, newest, onTheme, ready, sparsity, trouble } from "/static/base.js";
import { animate, still } from "/static/pictures.js";
import { tell, tellMap } from "./panel.js";
import { drawTown, metres, rightPicture, signalPicture, strengths } from "./town.js";

const map = byId("map");
const ABOVE = 44; // pixels that the phone stays above a finger, so that one sees it
const LAP = 60; // seconds of a round
const REST = 5; // seconds that the phone stays where it opens
let models = [];
let area;
let quality;
let phone;
let found;
let background;
let walking = false;
let clock = 0;
let opening; // the most typical place, where the walk begins and ends
let asking = 0;

function draw() {
  if (area && phone) drawTown(map, { area, background, found, place: phone });
}

function paint() {
  const right = byId("layer").checked && quality;
  background = right ? rightPicture(quality) : signalPicture(area);
  byId("rightness").hidden = !right;
  byId("strength").hidden = Boolean(right);
  map.dataset.layer = right ? "right" : "signal";
  draw();
}

const put = newest((place) => ask("/v1/cellfree/place", { ...place, model: byId("model").value || null }), (answer) => {
  found = answer;
  tell(found, area);
  draw();
  ready();
});

function move(x, y) {
  const within = (value, axis) => Math.min(Math.max(value, metres(area, 0, axis)), metres(area, 1, axis));
  phone = { x_m: within(x, 0), y_m: within(y, 1) };
  map.dataset.x = Math.round(phone.x_m);
  map.dataset.y = Math.round(phone.y_m);
  draw();
}

// on whole metres, so that what is told is what was asked for
const placed = (x, y) => { move(Math.round(x), Math.round(y)); put(phone); };

function walk(on) {
  walking = on;
  byId("walk").textContent = on ? "Stop" : "Walk";
  byId("walk").setAttribute("aria-pressed", String(on));
}

// a closed way through the whole town; the network is asked five times a second
function stroll(seconds) {
  if (seconds < REST) return;
  const angle = 2 * Math.PI * (seconds - REST) / LAP;
  const way = (turn) => [metres(area, 0.5 + 0.36 * Math.sin(turn), 0), metres(area, 0.5 + 0.34 * Math.sin(2 * turn + 0.6), 1)];
  const near = (1 + Math.cos(angle)) / 2;
  const [from, now] = [way(0), way(angle)];
  move(now[0] + near * (opening.x_m - from[0]), now[1] + near * (opening.y_m - from[1]));
  if (performance.now() - asking > 200) { asking = performance.now(); put(phone); }
}

function pointed(event, above = 0) {
  if (!area || (event.type === "pointermove" && !event.buttons)) return;
  walk(false);
  const box = map.getBoundingClientRect();
  placed(metres(area, (event.clientX - box.left) / box.width, 0), metres(area, 1 - (event.clientY - above - box.top) / box.height, 1));
}

// a finger may be about to scroll the page: it counts once it drags sideways, or where it is lifted
let touched;
let dragged = false;
map.addEventListener("pointerdown", (event) => {
  map.setPointerCapture(event.pointerId);
  touched = event.pointerType === "touch" ? event : undefined;
  dragged = false;
  if (!touched) pointed(event);
});
map.addEventListener("pointermove", (event) => {
  if (touched && Math.abs(event.clientX - touched.clientX) <= Math.abs(event.clientY - touched.clientY)) return;
  touched = undefined;
  dragged = event.pointerType === "touch";
  pointed(event, dragged ? ABOVE : 0);
});
map.addEventListener("pointerup", (event) => { if (touched && !dragged) pointed(event); });
map.addEventListener("keydown", (event) => {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] || [];
  if (dx === undefined || !area) return;
  event.preventDefault();
  walk(false);
  placed(phone.x_m + dx * area.side_m / 50, phone.y_m + dy * area.side_m / 50);
});
byId("walk").addEventListener("click", () => { clock = Math.max(clock, REST); walk(!walking); });
byId("layer").addEventListener("change", paint);

async function load() {
  put.forget(); // an answer on its way is about another network
  const name = encodeURIComponent(byId("model").value);
  area = await ask(`/v1/cellfree/map?model=${name}`);
  [found, quality] = [undefined, undefined];
  const model = models.find((one) => one.name === area.model);
  byId("removed").textContent = model && !isDense(model) ? ` with ${sparsity(model)} fewer weights` : "";
  byId("few").textContent = area.measured;
  byId("many").textContent = area.access_points.length;
  byId("threshold").textContent = area.threshold_db;
  const wide = area.side_m < 1000 ? `${Math.round(area.side_m)} m` : `${Math.round(area.side_m / 10) / 100} km`;
  [byId("weakest").textContent, byId("loudest").textContent] = strengths(area).map((value) => `${value} dBm`);
  byId("candidates").style.minHeight = `${1.66 * (area.candidates + 1)}rem`;
  byId("scale").textContent = `${area.access_points.length} access points on ${wide} × ${wide}. `
    + (area.sends_dbm === null ? "Signals as they were measured." : `Signals are simulated, in dBm for access points (AP) that send ${area.sends_dbm} dBm (1 mW).`)
    + " Share of the signal: the power of those picked that should serve, as a share of the power of all that should.";
  paint();
  quality = await ask(`/v1/cellfree/quality?model=${name}`);
  tellMap(quality, area);
  opening = quality.typical;
  clock = 0;
  move(opening.x_m, opening.y_m);
  put(phone);
  paint();
}

async function start() {
  await header();
  models = await modelsOf("cellfree");
  byId("model").append(...models.map((model) => make("option", { value: model.name }, model.name)));
  if (models.some((model) => model.name === asked())) byId("model").value = asked();
  byId("choose").hidden = models.length < 2;
  byId("model").addEventListener("change", () => load().catch(trouble));
  await load();
  walk(!still());
  let before;
  animate(map, (now) => {
    if (walking && before !== undefined) { clock += Math.max(0, now - before); stroll(clock); }
    before = now;
    draw();
  });
  setInterval(() => { if (still() && walking) { clock += 0.2; stroll(clock); } }, 200); // who asked for no motion, and then for this one
  onTheme(paint);
}

start().catch(trouble);
