// A race: every policy of one robot from the same start, played, scrubbed and pushed.
import { ask, asked, byId, header, isDense, make, modelsOf, onTheme, ready, sparsity, trouble } from "/static/base.js";
import { animate, still } from "/static/pictures.js";
import { drawRace, pushes } from "./race.js";
import { board } from "./board.js";
import { hasFallen, state } from "./film.js";

const SECONDS = 8;
const stage = byId("stage");
let [models, worlds, experts] = [[], {}, []];
let race = { runners: [], seconds: 0 };
let playing = !still();
let seed = 2; // a start from which the policies differ as they do on average
let round = 0; // answers of an earlier race are dropped

const BODIES = { Hopper: "one leg", HalfCheetah: "two legs", Walker2d: "two legs" };
const inWords = (world) => { const [name] = world.split("-v"); return name in BODIES ? `${name}: ${BODIES[name]}` : name; };
const isExpert = (model) => experts.includes(model.name);
const label = (model) => (isExpert(model) ? "their teacher, an expert" : isDense(model) ? "all weights" : `${sparsity(model)} fewer weights`);

function chosen() {
  const here = models.filter((model) => worlds[model.name] === byId("world").value);
  const learners = here.filter((model) => !isExpert(model));
  const teachers = here.filter(isExpert);
  byId("teach").hidden = !teachers.length || !learners.length;
  return [...learners.sort((a, b) => a.removed - b.removed), ...(byId("teacher").checked || !learners.length ? teachers : [])];
}

async function film(runner) {
  const number = round;
  const asked = runner.asked = {};
  try {
    const found = await ask("/v1/control/episode", { model: runner.model.name, seed, seconds: SECONDS, pushes: runner.pushes });
    if (number !== round || runner.asked !== asked) return;
    runner.film = found;
    stage.dataset.films = race.runners.filter((one) => one.film).length;
    trouble();
  } catch (error) { trouble(error); }
}

function begin() {
  round += 1;
  const tints = ["soft", "blue", "orange", "green", "violet"];
  let sparse = 0;
  race.runners = chosen().map((model) => {
    const kind = isExpert(model) ? 4 : isDense(model) ? 0 : [1, 2, 3][sparse++ % 3];
    return { model, label: label(model), kind, tint: tints[kind], pushes: [] };
  });
  race.seconds = 0;
  byId("start").textContent = seed;
  stage.dataset.films = 0;
  byId("runners").replaceChildren(...board(race.runners));
  race.runners.forEach(film);
}

function push(runner, metresPerSecond) {
  if (!runner.film || Math.abs(metresPerSecond) < 0.05 || runner.pushes.length >= 20) return;
  const at = Math.min(race.seconds, SECONDS);
  runner.pushes = [...runner.pushes.filter((one) => one.at_s <= at), { at_s: at, metres_per_second: metresPerSecond }];
  stage.dataset.pushed = runner.model.name;
  film(runner);
}

// what can be seen at this moment of the race; said again only when it changes
function tell() {
  const films = race.runners.filter((runner) => runner.film);
  const fell = films.filter(({ film }) => hasFallen(film, race.seconds));
  const going = films.filter((runner) => !fell.includes(runner)).map((runner) => runner.label);
  const since = race.seconds < SECONDS ? "Still going" : `Still going after ${SECONDS} s`;
  const words = [going.length ? `${since}: ${going.join(", ")}.` : "", ...fell.map(({ label, film }) => `Fell at ${film.seconds.toFixed(1)} s: ${label}.`)].join(" ").trim();
  if (byId("verdict").textContent !== words) byId("verdict").textContent = words || "\u00a0";
}

function now() {
  byId("time").value = race.seconds;
  byId("when").textContent = `${race.seconds.toFixed(1)} s`;
  stage.dataset.seconds = race.seconds.toFixed(2);
  for (const runner of race.runners) {
    if (!runner.film) continue;
    const gone = hasFallen(runner.film, race.seconds);
    const words = state(runner.film, race.seconds);
    if (runner.cell.textContent !== words) { runner.cell.textContent = words; runner.cell.className = gone ? "bad" : ""; }
  }
  tell();
  drawRace(stage, race);
}

function play(on) {
  playing = on;
  byId("play").textContent = on ? "Pause" : "Play";
  byId("play").setAttribute("aria-pressed", String(on));
}

byId("play").addEventListener("click", () => { play(!playing); if (still()) run(); });
byId("time").max = SECONDS;
byId("time").addEventListener("input", () => { play(false); race.seconds = Number(byId("time").value); now(); });
byId("world").addEventListener("change", begin);
byId("teacher").addEventListener("change", begin);
byId("again").addEventListener("click", () => { seed += 1; begin(); });
for (const [id, sign] of [["back", -1], ["forth", 1]]) {
  byId(id).addEventListener("click", () => { for (const runner of race.runners) push(runner, sign * Number(byId("strength").value)); });
}
pushes(stage, race, { push, held: (on) => { race.held = on; } });

let before;
function run(clock) {
  const step = before === undefined || clock === undefined ? 0 : Math.min(Math.max(clock - before, 0), 0.1);
  before = clock;
  if (playing && !race.held && race.runners.some((runner) => runner.film)) {
    race.seconds += step * Number(byId("speed").value);
    if (race.seconds > SECONDS + 1.2) race.seconds = 0; // a moment's rest, then once more
  }
  now();
}

async function start() {
  await header();
  [models, worlds, experts] = await Promise.all([modelsOf("control"), ask("/v1/control/worlds"), ask("/v1/control/experts")]);
  // the robot with most policies first: there is something to compare
  const many = (name) => Object.values(worlds).filter((world) => world === name).length;
  const names = [...new Set(Object.values(worlds))].sort((a, b) => many(b) - many(a));
  byId("world").append(...names.map((name) => make("option", { value: name }, inWords(name))));
  if (worlds[asked()]) byId("world").value = worlds[asked()];
  byId("teacher").checked = experts.includes(asked());
  play(playing);
  begin();
  now();
  ready();
  onTheme(() => now());
  animate(stage, run);
}

start().catch(trouble);
