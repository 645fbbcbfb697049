// What all pages share: asking the server, building elements, the header. Nothing is loaded from elsewhere.

import { askForToken, authorization } from "./token.js";

export async function ask(path, body) {
  const headers = authorization();
  const options = { headers };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["content-type"] = "application/json";
  }
  const answer = await fetch(path, options);
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
  place.hidden = !error;
  place.textContent = error ? error.message : "";
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export function onTheme(draw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

export const whole = (number) => number.toLocaleString("en");

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
  bar.append(make("a", { class: "brand", href: "/" }, "fewer"));
  try {
    const tasks = await ask("/v1/tasks");
    for (const { task, page } of tasks) {
      if (!page) continue;
      const here = location.pathname === `/${task}`;
      bar.append(make("a", { href: `/${task}`, "aria-current": here ? "page" : undefined }, task));
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

// How a model is said in a line.
export function facts(model) {
  const share = model.kept / model.weights;
  const kept = share > 0.97 ? `all ${whole(model.weights)} weights` : `${whole(model.kept)} of ${whole(model.weights)} weights`;
  const prunable = model.prunable && share <= 0.97 ? `${whole(model.kept_prunable)} of ${whole(model.prunable)} prunable` : null;
  const size = `${Math.max(1, Math.round(model.bytes / 1000))} kB`;
  return [kept, prunable, size, model.hardened ? `hardened by ${model.hardened}` : null].filter(Boolean).join(" · ");
}
