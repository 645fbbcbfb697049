// The list of models, and how to call them.
import { ask, byId, facts, header, make, trouble } from "./base.js";

function card(model, page) {
  const metrics = Object.entries(model.metrics).slice(0, 3).map(([name, value]) =>
    make("tr", {}, make("td", {}, name.replaceAll("_", " ")), make("td", {}, value.toFixed(3))));
  const title = page ? make("a", { href: `/${model.task}${location.hash}` }, model.name) : model.name;
  return make("article", { class: "card" }, make("h2", {}, title),
    make("p", { class: "soft" }, `${model.task} · ${facts(model)}`), make("table", {}, make("tbody", {}, ...metrics)));
}

// A call that is answered as it stands; the server says what it takes.
function call({ task, example }) {
  const address = `curl ${location.origin}/v1/${task}/predict \\\n  -H 'content-type: ${example.content_type}' \\\n  `;
  return example.body
    ? `${address}-d '${JSON.stringify(example.body)}'`
    : `python -c "${example.python}"\n${address}--data-binary @input.npz -o output.npz`;
}

async function start() {
  const tasks = await header();
  const models = await ask("/v1/models");
  const pages = new Set(tasks.filter((task) => task.page).map((task) => task.task));
  byId("models").append(...models.map((model) => card(model, pages.has(model.task))));
  byId("calls").hidden = false;
  const first = tasks.map(({ task }) => models.find((model) => model.task === task));
  byId("examples").append(...first.map((model) => make("pre", {}, call(model))));
}

start().catch(trouble);
