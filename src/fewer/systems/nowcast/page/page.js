// A window of weather: the hour that was seen, eight hours of forecasts by any members, and what fell.
import { ask, byId, colour, header, make, modelsOf, newest, onTheme, trouble } from "/static/base.js";

const lead = byId("lead");
let weather;
let playing;
let hour = 0;

const unpacked = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const rgb = (name) => colour(name).match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));

function paint(canvas, side, pixel) {
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  for (let place = 0; place < side * side; place++) image.data.set(pixel(place), 4 * place);
  context.putImageData(image, 0, 0);
  return context;
}

const chosen = () => [...document.querySelectorAll("#members input:checked")].map((box) => box.value);

function average(names, first, count) {
  const total = new Float32Array(count);
  for (const name of names) {
    const share = weather.models[name];
    for (let place = 0; place < count; place++) total[place] += share[first + place] / 200 / names.length;
  }
  return total;
}

// Shares of agreement; pixels without radar do not count.
function agreement(share, fell) {
  let [both, either] = [0, 0];
  share.forEach((value, place) => {
    if (fell[place] === 255) return;
    const [said, was] = [value >= 0.5, fell[place] >= 2]; // 0.2 mm/h is rain
    both += said && was;
    either += said || was;
  });
  return either ? both / either : null;
}

function show() {
  if (!weather) return;
  const step = Number(lead.value);
  const { size } = weather;
  const [first, count] = [step * size * size, size * size];
  const names = chosen();
  const minutes = (step + 1) * weather.minutes;
  byId("when").textContent = `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min ahead`;
  byId("who").textContent = names.length > 1 ? `mean of ${names.length} networks` : names[0] || "nobody";
  const share = average(names, first, count);
  const fell = weather.fell.subarray(first, first + count);
  const [blue, green, soft] = [rgb("blue"), rgb("green"), rgb("soft")];
  paint(byId("forecast"), size, (place) => [...blue, Math.round(255 * share[place])]);
  paint(byId("fell"), size, (place) => fell[place] === 255 ? [...soft, 60]
    : [...green, fell[place] < 2 ? 0 : Math.min(255, 90 + 30 * Math.log2(fell[place]))]);
  const score = names.length ? agreement(share, fell) : null;
  byId("verdict").textContent = !names.length ? "Choose at least one network"
    : score === null ? "No rain, neither forecast nor fallen" : `${Math.round(100 * score)} % of the rain agrees`;
  byId("forecast").dataset.step = step;
}

function seen() {
  if (!weather) return;
  const { size } = weather;
  const first = (hour % 4) * size * size;
  const context = paint(byId("seen"), size, (place) => {
    const level = weather.seen[first + place];
    return [level, level, level, 255];
  });
  const inner = Math.floor(size / 6);
  context.strokeStyle = colour("orange");
  context.lineWidth = 1;
  context.strokeRect((size - inner) / 2 - 0.5, (size - inner) / 2 - 0.5, inner + 1, inner + 1);
  hour += 1;
}

const put = newest((look) => ask("/v1/nowcast/forecast", look), (answer) => {
  weather = { ...answer, seen: unpacked(answer.seen), fell: unpacked(answer.fell),
    models: Object.fromEntries(Object.entries(answer.models).map(([name, text]) => [name, unpacked(text)])) };
  lead.max = weather.leads - 1;
  document.querySelectorAll("#members input").forEach((box) => { box.disabled = !(box.value in weather.models); });
  byId("forecast").dataset.window = window.current;
  show();
  seen();
});

function stop() {
  clearInterval(playing);
  playing = undefined;
  byId("play").textContent = "Play";
  byId("play").setAttribute("aria-pressed", "false");
}

lead.addEventListener("input", () => { stop(); show(); });
byId("members").addEventListener("change", show);
byId("play").addEventListener("click", () => {
  if (playing) { stop(); return; }
  byId("play").textContent = "Pause";
  byId("play").setAttribute("aria-pressed", "true");
  playing = setInterval(() => { lead.value = (Number(lead.value) + 1) % (Number(lead.max) + 1); show(); }, 250);
});
window.current = 0;
byId("other").addEventListener("click", () => {
  window.current = (window.current + 1) % (weather ? weather.windows : 1);
  put({ window: window.current });
});

async function start() {
  await header();
  const models = await modelsOf("nowcast");
  byId("members").append(...models.map((model) => make("label", {},
    make("input", { type: "checkbox", value: model.name, checked: true }), ` ${model.name}`)));
  put({ window: 0 });
  setInterval(seen, 700);
  onTheme(show);
}

start().catch(trouble);
