// What all pages share: asking the server, building elements, the header. Nothing is loaded from elsewhere.

import { askForToken, authorization } from "./token.js";

async function reached(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Error(`Cannot reach the server at ${location.origin}. Is fewer serve still running?`);
  }
}

export async function ask(path, body) {
  const headers = authorization();
  const options = { headers };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["content-type"] = "application/json";
  }
  const answer = await reached(path, options);
  if (answer.status === 401) askForToken();
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.detail || `the server answered ${answer.status}`);
  return found;
}

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export const byId = (id) => document.getElementById(id);

export function trouble(error) {
  const place = byId("trouble");
  const words = error ? error.message : "";
  if (error) ready();
  place.hidden = !error;
  if (place.textContent !== words) place.textContent = words;
}

// A page that waits shows its heading alone; what is there then stays where it is.
export function ready() {
  document.querySelector("main").classList.remove("waiting");
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export function onTheme(draw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

export const whole = (number) => Math.round(number).toLocaleString("en");
// as reports and cards round, so that one figure reads the same everywhere: of a tie to the even digit
function rounded(number, digits) {
  const up = number.toFixed(digits);
  const tie = Math.abs(number * 2 ** (digits + 1)) % 2 === 1; // exact: a product with a power of two
  return tie && "13579".includes(up.at(-1)) ? (number - 1e-6).toFixed(digits) : up;
}
export const percent = (share, digits = 0) => `${rounded(100 * share, digits)}\u00a0%`;
export const kilobytes = (bytes) => `${bytes < 9500 ? (bytes / 1000).toFixed(1) : Math.round(bytes / 1000)} kB`;

// Only the newest question matters: older answers are dropped, and one question runs at a time.
export function newest(question, show) {
  let running = false;
  let next;
  let wanted;
  async function put(value) {
    next = wanted = { value };
    if (running) return;
    running = true;
    while (next) {
      const given = next;
      next = undefined;
      try {
        const answer = await question(given.value);
        trouble();
        if (given === wanted) show(answer, given.value);
      } catch (error) {
        trouble(error);
      }
    }
    running = false;
  }
  put.forget = () => { next = wanted = undefined; };
  return put;
}

export async function header() {
  const bar = document.querySelector("header");
  if (!bar.children.length) bar.append(make("a", { class: "brand", href: "/" }, "fewer"));
  try {
    const tasks = await ask("/v1/tasks");
    for (const { task, page, heading } of tasks) {
      if (!page) continue;
      const here = location.pathname === `/${task}`;
      bar.append(make("a", { href: `/${task}`, "aria-current": here ? "page" : undefined }, heading.split(":")[0]));
    }
    return tasks;
  } catch (error) {
    trouble(error);
    return [];
  }
}

export async function modelsOf(task) {
  return (await ask("/v1/models")).filter((model) => !task || model.task === task);
}

// The model that a link asked for: /TASK?model=NAME
export const asked = () => new URLSearchParams(location.search).get("model");

// Of all numbers that a model computes with, biases and tables counted.
export const isDense = (model) => model.removed < 0.03;
export const sparsity = (model) => percent(model.removed);

// Files of as many weights differ in size where one has them in 32 bits and the other in 16.
export const bits = ({ values }) => `${values.replace(/\D/g, "")} bit`;

// How a model is said in a line.
export function facts(model) {
  const kept = isDense(model) ? `all ${whole(model.weights)} weights` : `${whole(model.kept)} of ${whole(model.weights)} weights`;
  return `${kept} · ${kilobytes(model.bytes)} at ${bits(model)}`;
}
