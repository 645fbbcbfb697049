// The list of models, and how to call them.
import { ask, byId, facts, header, make, trouble } from "./base.js";

function card(model, page) {
  const metrics = Object.entries(model.metrics).slice(0, 3).map(([name, value]) =>
    make("tr", {}, make("td", {}, name.replaceAll("_", " ")), make("td", {}, value.toFixed(3))));
  const title = page ? make("a", { href: `/${model.task}` }, model.name) : model.name;
  return make("article", { class: "card" }, make("h2", {}, title),
    make("p", { class: "soft" }, `${model.task} · ${facts(model)}`), make("table", {}, make("tbody", {}, ...metrics)));
}

// A call that is answered as it stands; the server knows how, this page under which scheme it is reached.
function call({ example }) {
  return example.curl.replaceAll(`http://${location.host}`, location.origin);
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
