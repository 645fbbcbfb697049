// Six sliders in, one forecast out.
import { ask, byId, header, make, newest, trouble } from "/static/base.js";

const sliders = [];

const put = newest(
  (x) => ask("/v1/traffic/predict", { x }),
  ({ output }) => { byId("verdict").textContent = `about ${Math.max(0, Math.round(100 * output[0]))} cars`; },
);

const changed = () => put(sliders.map((slider) => Number(slider.value)));

async function start() {
  await header();
  for (let hour = 6; hour > 0; hour -= 1) {
    const slider = make("input", { type: "range", min: 0, max: 6, step: 0.1, value: 3, "aria-label": `${hour} hours ago` });
    slider.addEventListener("input", changed);
    sliders.push(slider);
    byId("hours").append(make("label", {}, `${hour} h ago `, slider));
  }
  changed();
}

start().catch(trouble);
