// A robot from the side, played at its own pace, for the policy that the slider chose.
import { ask, byId, colour, facts, header, make, modelsOf, newest, onTheme, trouble } from "/static/base.js";

const stage = byId("stage");
let models = [];
let worlds = {};
let film;
let began;
let seed = 2; // a start from which the policies differ as they do on average
let wanted = 0; // share removed of the policy that is watched
let tallest = 2; // metres that the stage must show

// all policies of one robot, dense first: to the right there are fewer weights
const choices = () => models.filter((model) => worlds[model.name] === byId("world").value)
  .sort((a, b) => a.removed - b.removed);
const percent = (model) => `${(100 * model.removed).toFixed(0)} %`;

function ground(context, scale, middle, floor) {
  context.strokeStyle = colour("rule");
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(0, floor);
  context.lineTo(stage.width, floor);
  context.stroke();
  context.fillStyle = colour("soft");
  context.font = `${Math.max(12, stage.width / 70)}px system-ui, sans-serif`;
  context.textAlign = "center";
  const reach = stage.width / scale / 2;
  for (let metre = Math.ceil(middle - reach); metre <= middle + reach; metre++) {
    const x = stage.width / 2 + (metre - middle) * scale;
    context.fillRect(x - 1, floor, 2, 8);
    if (metre % 2 === 0) context.fillText(`${metre} m`, x, floor + 26);
  }
}

function draw(frame) {
  const dense = Math.min(devicePixelRatio || 1, 2);
  const [width, height] = [Math.round(stage.clientWidth * dense), Math.round(Math.min(stage.clientWidth * 0.5, 420) * dense)];
  if (stage.width !== width || stage.height !== height) {
    [stage.width, stage.height] = [width, height];
    stage.style.height = `${height / dense}px`;
  }
  const context = stage.getContext("2d");
  context.fillStyle = colour("paper");
  context.fillRect(0, 0, width, height);
  const floor = Math.min(height * 0.86, height - 34); // room for the metres below it
  const scale = floor * 0.93 / tallest; // pixels a metre
  const middle = frame.reduce((sum, [x1, , x2]) => sum + x1 + x2, 0) / frame.length / 2;
  ground(context, scale, middle, floor);
  const at = (x, z) => [width / 2 + (x - middle) * scale, floor - z * scale];
  context.lineCap = "round";
  frame.forEach(([x1, z1, x2, z2], limb) => {
    context.strokeStyle = limb === 0 ? colour("blue") : colour("ink");
    context.globalAlpha = limb === 0 ? 1 : 0.55 + 0.4 * (limb % 2);
    context.lineWidth = Math.max(2, 2 * film.radius[limb] * scale);
    context.beginPath();
    context.moveTo(...at(x1, z1));
    context.lineTo(...at(x2, z2));
    context.stroke();
  });
  context.globalAlpha = 1;
}

function play(now) {
  if (film) {
    began ??= now;
    const frame = Math.floor((now - began) / 1000 * film.frames_per_second);
    const last = film.frames.length - 1;
    stage.dataset.frame = Math.min(frame, last);
    draw(film.frames[Math.min(frame, last)]);
    if (frame > last + film.frames_per_second) began = now; // a second's rest, then once more
  }
  requestAnimationFrame(play);
}

function show(found) {
  film = found;
  tallest = Math.max(1.4, ...found.frames.flat().map(([, z1, , z2]) => Math.max(z1, z2) + 0.15));
  began = undefined;
  const model = models.find((one) => one.name === found.model);
  const verdict = byId("verdict");
  const frames = found.frames;
  const far = (frame) => frame.reduce((sum, [x1, , x2]) => sum + (x1 + x2) / 2, 0) / frame.length;
  const way = far(frames.at(-1)) - far(frames[0]);
  verdict.textContent = `${found.fell ? "Fell" : "Still going"} after ${found.seconds.toFixed(1)} s and ${way.toFixed(1)} m`;
  verdict.className = `verdict apart ${found.fell ? "bad" : "good"}`;
  byId("facts").textContent = `${model.name} · ${facts(model)} · return ${found.return.toFixed(0)} in ${found.steps} steps`;
  stage.dataset.model = found.model;
}

const put = newest((wish) => ask("/v1/control/episode", wish), show);

function again() {
  const model = choices()[Number(byId("sparsity").value)];
  wanted = model.removed;
  byId("removed").textContent = percent(model);
  byId("sparsity").setAttribute("aria-valuetext", `${percent(model)} removed`);
  put({ model: model.name, seed });
}

// another robot: its policy nearest to the sparsity that was looked at
function chosen() {
  const found = choices();
  const far = (model) => Math.abs(model.removed - wanted);
  byId("sparsity").max = found.length - 1;
  byId("sparsity").value = found.indexOf(found.reduce((best, model) => (far(model) < far(best) ? model : best)));
  byId("choose").hidden = found.length < 2;
  byId("stops").replaceChildren(...found.map((model) => make("span", {}, percent(model))));
  again();
}

byId("world").addEventListener("change", chosen);
byId("sparsity").addEventListener("input", again);
byId("again").addEventListener("click", () => { seed += 1; again(); });

async function start() {
  await header();
  [models, worlds] = await Promise.all([modelsOf("control"), ask("/v1/control/worlds")]);
  // the robot with most policies first: there is something to drag
  const many = (name) => Object.values(worlds).filter((world) => world === name).length;
  const names = [...new Set(Object.values(worlds))].sort((a, b) => many(b) - many(a));
  byId("world").append(...names.map((name) => make("option", { value: name }, name)));
  chosen();
  onTheme(() => film && draw(film.frames[0]));
  requestAnimationFrame(play);
}

start().catch(trouble);
