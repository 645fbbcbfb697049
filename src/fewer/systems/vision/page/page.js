// A digit drawn by hand, or a photograph, and what each network says of it as the attack's budget grows.
import { ask, asked, byId, header, make, modelsOf, newest, ready, trouble } from "/static/base.js";
import { EXAMPLES, SIDE, blank, drawExample, pixels } from "./digit.js";
import { drawing } from "./pad.js";
import { clear, panel, show, unpack, verdict } from "./panel.js";
import { PHOTOS, album } from "./photo.js";

const KINDS = {
  digit: { axes: 2, most: 0.5, rungs: 26, words: (budget) => `${Math.round(100 * budget)}\u00a0%`, empty: "draw something" },
  photo: { axes: 3, most: 16 / 255, rungs: 17, words: (budget) => `${(100 * budget).toFixed(1)}\u00a0% (${Math.round(255 * budget)}/255)`, empty: "choose a photograph" },
};
const pad = byId("pad");
const truth = () => (kind === KINDS.photo ? photo?.truth : undefined);
const shapeOf = (model) => Object.values(model.inputs)[0].shape;
let kind = KINDS.digit;
let models = [];
let photo; // the one that was chosen: its pixels, and what it shows
let shape = [28, 28];
let groups = [];
let panels = {};
let puts = {}; // how each network is asked
let found = {}; // the answers at every budget, by network
let waiting = new Set(); // networks that have not answered about this image
let touched = false; // whether somebody chose a budget
let example = -1;

// networks of one architecture compare fairly: they stand together, the largest such group first
function grouped(models) {
  const by = new Map();
  for (const model of models) {
    const key = model.settings.filter((word) => /^(network|contrast|data)=/.test(word)).join(", ") || "network";
    by.set(key, [...(by.get(key) || []), model]);
  }
  const some = [...by].map(([key, members]) => ({ title: `${members.length} of one architecture (${key.replaceAll(/\w+=/g, "")})`, members }));
  some.sort((a, b) => b.members.length - a.members.length);
  if (some.length > 1 && models.length <= 8) some.push({ title: "all of them", members: models });
  const here = some.findIndex(({ members }) => members.some((model) => model.name === asked()));
  const first = here >= 0 ? here : some[0].members.length > 2 || some.length === 1 ? 0 : some.length - 1;
  return { some, first };
}

// The budget at which most networks disagree with the others: there the difference shows.
function telling(answers) {
  const all = answers.filter((one) => one.labels);
  const apart = Array.from({ length: kind.rungs }, (_, rung) => {
    const fooled = all.filter((one) => one.labels[rung] !== one.labels[0]).length;
    return Math.min(fooled, all.length - fooled);
  });
  const best = Math.max(...apart);
  const rungs = apart.map((value, rung) => [value, rung]).filter(([value, rung]) => value === best && rung).map(([, rung]) => rung);
  return rungs[Math.floor(rungs.length / 2)] ?? 0;
}

function paint() {
  const rung = Number(byId("budget").value);
  byId("said").textContent = kind.words(kind.most * rung / (kind.rungs - 1));
  byId("budget").setAttribute("aria-valuetext", `${byId("said").textContent} of the way from black to white`);
  for (const [name, one] of Object.entries(panels)) if (found[name]) show(one, found[name], rung, shape, { words: kind.words, truth: truth() });
  if (!waiting.size) verdict(byId("verdict"), panels, found, rung, truth());
}

// networks are asked one by one, so that each card is there as soon as it can be
function arrived(name, { models }) {
  found[name] = unpack(models[name]);
  waiting.delete(name);
  const all = !waiting.size;
  if (!touched && all) byId("budget").value = telling(Object.values(found));
  paint();
}

function again() {
  const drawn = kind === KINDS.photo ? photo?.pixels : pixels(pad, shape);
  if (!drawn) return;
  waiting = new Set(Object.keys(panels));
  for (const put of Object.values(puts)) put({ pixels: drawn, most: kind.most, rungs: kind.rungs, steps: Number(byId("steps").value) });
}

function forget() {
  for (const put of Object.values(puts)) put.forget(); // an answer on its way is about a digit that is gone
  found = {};
  byId("verdict").textContent = "\u00a0";
}

function reset() {
  forget();
  blank(ink);
  for (const one of Object.values(panels)) clear(one, shape, kind.empty);
}

function chosen() {
  forget();
  const { members } = groups[Number(byId("group").value)];
  const order = [...members].sort((a, b) => (a.hardened ? 1 : 0) - (b.hardened ? 1 : 0) || b.kept - a.kept).slice(0, 8);
  const alike = (model) => order.filter((other) => other.note === model.note).length > 1;
  shape = shapeOf(order[0]);
  panels = Object.fromEntries(order.map((model) => [model.name, panel(model, alike(model) ? model.name : model.note, Math.round(0.5 / kind.most))]));
  puts = Object.fromEntries(order.map(({ name }) => [name,
    newest((climb) => ask("/v1/vision/ladder", { ...climb, models: [name] }), (answer) => arrived(name, answer))]));
  for (const one of Object.values(panels)) clear(one, shape, "…");
  byId("networks").replaceChildren(...Object.values(panels).map(({ card }) => card));
  byId("networks").classList.toggle("photographs", kind === KINDS.photo);
  again();
}

byId("budget").addEventListener("input", () => { touched = true; paint(); });
byId("steps").addEventListener("change", again);
byId("group").addEventListener("change", chosen);
byId("clear").addEventListener("click", reset);
function another() {
  example = (example + 1) % EXAMPLES.length;
  drawExample(ink, example);
}

byId("example").addEventListener("click", () => { another(); again(); });
pad.width = pad.height = SIDE;
const ink = drawing(pad, byId("pen"), { changed: again, cleared: reset });
blank(ink);

// Networks of one kind of image, and what belongs to it.
function turn(name) {
  forget();
  kind = KINDS[name];
  touched = false;
  for (const button of byId("kinds").children) button.setAttribute("aria-pressed", button.dataset.kind === name);
  byId("drawing").hidden = kind !== KINDS.digit;
  byId("choosing").hidden = kind !== KINDS.photo;
  byId("budget").max = kind.rungs - 1;
  byId("grain").textContent = kind.words(kind.most / (kind.rungs - 1));
  const { some, first } = grouped(models.filter((model) => shapeOf(model).length === kind.axes));
  groups = some;
  byId("group").replaceChildren(...some.map(({ title }, number) => make("option", { value: number }, title)));
  byId("group").value = first;
  byId("choose").hidden = some.length < 2;
  chosen();
  if (kind === KINDS.photo && !photo) {
    album(byId("album"), shape, (pixels, truth) => { photo = { pixels, truth }; again(); })(PHOTOS[0]).catch(trouble);
  }
}

async function start() {
  await header();
  models = await modelsOf("vision");
  const there = Object.keys(KINDS).filter((name) => models.some((model) => shapeOf(model).length === KINDS[name].axes));
  byId("kinds").hidden = there.length < 2;
  for (const button of byId("kinds").children) button.addEventListener("click", () => turn(button.dataset.kind));
  another();
  const wanted = models.find((model) => model.name === asked());
  turn(there.find((name) => wanted && shapeOf(wanted).length === KINDS[name].axes) || there[0]);
  ready();
}

start().catch(trouble);
