// A window of weather: one large map under a swipe, the score by lead time as the scrubber, playing by itself.
import { ask, asked, byId, colour, header, make, modelsOf, newest, onTheme, percent, ready, sparsity, trouble } from "/static/base.js";
import { animate, raster, still, surface } from "/static/pictures.js";
import { drawChart, leadAt } from "./chart.js";
import { drawMap, swiped } from "./map.js";
import { ahead, average, decoded, pictures, scores, typical } from "./rain.js";

const REST = 4000; // milliseconds
const [lead, map, chart] = [byId("lead"), byId("map"), byId("scores")];
let models = [];
let weather;
let found = {}; // scores by lead time
let drawn; // pictures of the time that is shown
let current = 0;
let playing = !still();
let clock = 0;

const chosen = () => [...document.querySelectorAll("#members input:checked")].map((box) => box.value).filter((name) => name in weather.models);

function measure() {
  const names = chosen();
  found = scores(weather, names);
  byId("lines").replaceChildren(...Object.entries(found).map(([name, { all }]) => make("tr", {},
    make("th", { scope: "row" }, make("i", { class: `line-${name}` }), WORDS[name] || name), make("td"), make("td", {}, shown(all)))));
  byId("verdict").textContent = said();
  byId("against").textContent = chosen().length ? against() : "";
  show();
}

const WORDS = { persistence: "the rain stays (persistence)", extrapolation: "it moves with the clouds (extrapolation)" };
const shown = (share) => (share === null ? "no rain" : percent(share));

function said() {
  if (!chosen().length) return "Choose at least one network";
  const [[, { all }], ...rivals] = Object.entries(found);
  if (all === null) return "No rain in these eight hours, neither forecast nor fallen";
  const best = Math.max(...rivals.map(([, rival]) => rival.all ?? 0));
  return `${percent(all)} of these eight hours' rain in the right place; without a network ${percent(best)} at best`;
}

// at how many times the networks do better, or worse, than the better of the others
function against() {
  const [{ line }, ...rivals] = Object.values(found);
  const gaps = line.map((share, step) => (share ?? 0) - Math.max(...rivals.map((rival) => rival.line[step] ?? 0)));
  return `Of ${line.length} times ahead, the ${chosen().length > 1 ? "networks are" : "network is"} ahead of both others at ${gaps.filter((gap) => gap > 0).length} and behind the better one at ${gaps.filter((gap) => gap < 0).length}.`;
}

function show() {
  if (!weather) return;
  const step = Number(lead.value);
  const names = chosen();
  byId("when").textContent = ahead(weather, step);
  lead.setAttribute("aria-valuetext", `${ahead(weather, step)} ahead`);
  byId("then").textContent = `in ${ahead(weather, step)}`;
  Object.values(found).forEach(({ line }, row) => { byId("lines").rows[row].cells[1].textContent = shown(line[step]); });
  drawn = { ...pictures(weather, average(weather, names, step), step), time: `in ${ahead(weather, step)}` };
  map.dataset.step = step;
  paint();
}

function paint() {
  if (!drawn) return;
  drawMap(map, weather, drawn, Number(byId("swipe").value) / 100);
  drawChart(chart, weather, found, Number(lead.value));
}

function seen(image) {
  const { size } = weather;
  const picture = raster(size, size, (place) => {
    const level = weather.seen[image * size * size + place];
    return [level, level, level, 255];
  });
  const { context, width } = surface(byId("seen"));
  context.drawImage(picture, 0, 0, width, width);
  const inner = width / 6;
  context.strokeStyle = colour("alarm");
  context.lineWidth = 2;
  context.strokeRect((width - inner) / 2, (width - inner) / 2, inner, inner);
}

// While weather is being drawn the server says how far that is.
async function asking(look) {
  for (;;) {
    const answer = await ask("/v1/nowcast/forecast", look);
    byId("making").hidden = !answer.making;
    if (!answer.making) return answer;
    byId("made").value = answer.making.done / answer.making.of;
    await new Promise((done) => { setTimeout(done, 400); });
  }
}

const put = newest(asking, (answer) => {
  weather = decoded(answer);
  current = weather.window;
  lead.max = weather.leads - 1;
  document.querySelectorAll("#members input").forEach((box) => { box.disabled = !(box.value in weather.models); });
  byId("other").textContent = `Other weather (${current + 1} of ${weather.windows})`;
  byId("about").textContent = `The weather is generated, so what fell is known: of ${weather.drawn} test windows these are the ${weather.windows} `
    + `with most rain in the first four hours; first comes the one on which the networks of the package score nearest to their mean. ${tested()}The map is ${weather.size * weather.pixel_km} km wide. Rain is ${weather.rain_mm_per_hour} mm/h and more.`;
  map.dataset.window = current;
  ready();
  measure();
  rest();
  seen(weather.seen.length / weather.size ** 2 - 1);
});

// It opens at the typical time ahead, and stays there for a moment.
function rest() {
  const [first] = Object.values(found);
  lead.value = first ? typical(first) : 0;
  clock = performance.now() + REST;
  show();
}

// where the packs say how they did on a whole test set
function tested() {
  const some = models.filter(({ metrics }) => "iou" in metrics).map(({ name, metrics }) => `${name} ${percent(metrics.iou)}`);
  return some.length ? `On all of their test windows: ${some.join(", ")}. ` : "";
}

function play(on) {
  playing = on;
  byId("play").textContent = on ? "Pause" : "Play";
  byId("play").setAttribute("aria-pressed", String(on));
}

function to(step) {
  play(false);
  lead.value = step;
  show();
}

lead.addEventListener("input", () => to(Number(lead.value)));
byId("swipe").addEventListener("input", paint);
byId("members").addEventListener("change", () => { if (weather) measure(); });
byId("play").addEventListener("click", () => play(!playing));
byId("other").addEventListener("click", () => {
  current = (current + 1) % (weather ? weather.windows : 1);
  put({ window: current });
});
swiped(map, (share) => { byId("swipe").value = 100 * share; paint(); });
chart.addEventListener("pointerdown", (event) => { if (weather) to(leadAt(chart, event, weather.leads)); });
chart.addEventListener("pointermove", (event) => { if (weather && event.buttons) to(leadAt(chart, event, weather.leads)); });

// five lead times a second, and the hour before in a loop
function run() {
  const now = performance.now();
  if (!weather || now - clock < 200) return;
  clock = now;
  const ticks = Math.floor(now / 200);
  if (playing) { lead.value = (Number(lead.value) + 1) % weather.leads; show(); }
  if (!still() && ticks % 3 === 0) seen(Math.floor(ticks / 3) % (weather.seen.length / weather.size ** 2));
}

async function start() {
  await header();
  models = await modelsOf("nowcast");
  const only = models.find((model) => model.name === asked());
  byId("members").append(...models.map((model) => make("label", {},
    make("input", { type: "checkbox", value: model.name, checked: !only || model === only }), ` ${model.name} (${sparsity(model)} removed)`)));
  byId("whose").textContent = `${models.length === 1 ? "A network" : "Networks"} with ${models.map(sparsity).join(" and ")} of the weights removed`;
  play(playing);
  put({});
  animate(map, run);
  setInterval(() => { if (still() && playing) run(); }, 200); // who asked for no motion, and then for this one
  onTheme(show);
  new ResizeObserver(paint).observe(map);
}

start().catch(trouble);
