// The list of models, and how to call them.
import { ask, byId, facts, header, make, trouble } from "./base.js";

const EXAMPLES = {
  cellfree: '{"master": 21, "rsrp_db": [-113.8, -131.9, null]}',
  control: '{"observation": [1.25, 0, ...]}',
  vision: '{"pixels": [[0, 0.5, ...], ...]}',
};

function card(model, page) {
  const figures = Object.entries(model.figures).slice(0, 3).map(([name, value]) =>
    make("tr", {}, make("td", {}, name.replaceAll("_", " ")), make("td", {}, value.toFixed(3))));
  const title = page ? make("a", { href: `/${model.task}${location.hash}` }, model.name) : model.name;
  return make("article", { class: "card" }, make("h2", {}, title),
    make("p", { class: "soft" }, `${model.task} · ${facts(model)}`), make("table", {}, make("tbody", {}, ...figures)));
}

async function start() {
  const tasks = await header();
  const models = await ask("/v1/models");
  const pages = new Set(tasks.filter((task) => task.page).map((task) => task.task));
  byId("models").append(...models.map((model) => card(model, pages.has(model.task))));
  byId("calls").hidden = false;
  byId("examples").append(...tasks.map(({ task }) => make("pre", {}, EXAMPLES[task]
    ? `curl ${location.origin}/v1/${task}/predict \\\n  -H 'content-type: application/json' \\\n  -d '${EXAMPLES[task]}'`
    : `curl ${location.origin}/v1/${task}/predict \\\n  -H 'content-type: application/x-npz' \\\n  --data-binary @input.npz -o output.npz`)));
}

start().catch(trouble);
