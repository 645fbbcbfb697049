// The first page: what each system shows, every model with its figures, and how to call them.
import { ask, byId, header, isDense, kilobytes, make, ready, trouble, whole } from "./base.js";
import { table } from "./models.js";

// what can be said of any system; its own tile.js says it better
function plainly(models) {
  const light = models.reduce((best, model) => (model.removed > best.removed ? model : best));
  return isDense(light) ? { big: `${whole(light.weights)} weights`, rest: "and none removed yet" }
    : { big: `${Math.round(100 * light.removed)} % fewer weights`, rest: `in ${light.name}` };
}

// the system's own picture and sentence, where it has them
async function own({ task, tile }) {
  return tile ? import(`/static/${task}/tile.js`).catch((error) => { trouble(error); return {}; }) : {};
}

function frame({ task, title, heading, line, tile }, { sentence }, models) {
  const { big, rest, beside: compared, model } = sentence ? sentence(models) : tile ? { big: "\u00a0", rest: line } : plainly(models);
  const canvas = make("canvas", { role: "img", "aria-label": `${heading}: a live picture` });
  const link = make("a", { href: `/${task}` }, `${title}\u00a0→`);
  const size = model ? [make("span", {}, ` · a file of ${kilobytes(model.bytes)}`)] : [];
  const beside = make("p", { class: "rest beside" }, compared ?? "\u00a0");
  const article = make("article", { class: "card tile", "data-task": task }, make("div", {}, canvas),
    make("div", {}, make("h2", {}, heading.split(":")[0], ...size), make("p", { class: "huge" }, big), make("p", { class: "rest" }, rest), ...(tile ? [beside] : []), link));
  return { article, canvas, beside };
}

// the picture says what it shows, and what it measured beside that: what a full network, or none, would give
async function draw({ article, canvas, beside }, { picture }, models) {
  if (!picture) return;
  await picture(canvas, models, (label, measured) => {
    canvas.setAttribute("aria-label", label);
    if (measured) beside.textContent = measured;
  });
  article.dataset.drawn = "yes";
}

// A call that is answered as it stands; the server knows how, this page under which scheme it is reached.
function call({ example }) {
  return example.curl.replaceAll(`http://${location.host}`, location.origin);
}

function copied(text, button) {
  const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
  if (navigator.clipboard) { navigator.clipboard.writeText(text).then(done).catch(trouble); return; }
  const area = make("textarea", { class: "unseen" }); // without https there is no clipboard to write to
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  done();
}

function example(model, { heading }) {
  const text = call(model);
  const button = make("button", { type: "button", "aria-label": `Copy the call of ${heading.split(":")[0]}` }, "Copy");
  button.addEventListener("click", () => copied(text, button));
  return make("div", {}, make("h3", { class: "later" }, heading.split(":")[0]),
    make("div", { class: "code" }, make("pre", { tabindex: 0, "aria-label": `call of ${model.task}` }, text), button));
}

async function start() {
  const [tasks, models] = await Promise.all([header(), ask("/v1/models")]);
  const of = (task) => models.filter((model) => model.task === task);
  const pages = tasks.filter((task) => task.page);
  const light = models.filter((model) => model.removed > 0.5).length;
  byId("lead").textContent = `Weights are the numbers that a network has learnt. ${light} of these ${models.length} networks lost most of theirs: try to break one.`;
  const tiles = await Promise.all(pages.map(own));
  const frames = pages.map((task, index) => frame(task, tiles[index], of(task.task)));
  byId("tiles").append(...frames.map(({ article }) => article));
  byId("models").append(...tasks.map((task) => table(task, of(task.task))));
  byId("examples").append(...tasks.map((task) => example(of(task.task)[0], task)));
  ready();
  await Promise.all(pages.map(({ task }, index) => draw(frames[index], tiles[index], of(task)).catch(trouble)));
}

start().catch(trouble);
