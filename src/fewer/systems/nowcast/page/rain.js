// A window of weather as the server sends it, and what becomes of forecasts where the truth is known.
import { raster, rgb, unpacked } from "/static/pictures.js";

const BLIND = 255; // no radar looked
const STEPS = 200; // in which a probability is sent

const all = (texts) => Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, unpacked(text)]));

export function decoded(answer) {
  return { ...answer, seen: unpacked(answer.seen), fell: unpacked(answer.fell), models: all(answer.models), rivals: all(answer.rivals),
    wet: answer.rain_mm_per_hour * answer.rate_steps };
}

// Shares of 0 to 1: the mean of these networks' probabilities.
export function average(weather, names, step) {
  const count = weather.size ** 2;
  const total = new Float32Array(count);
  for (const name of names) {
    const share = weather.models[name].subarray(step * count, (step + 1) * count);
    for (let place = 0; place < count; place++) total[place] += share[place] / STEPS / names.length;
  }
  return total;
}

export const fallen = (weather, step) => weather.fell.subarray(step * weather.size ** 2, (step + 1) * weather.size ** 2);

// Pixels where rain was forecast and fell, and where either. Unseen ones do not count.
function agreement(weather, step, said) {
  const fell = fallen(weather, step);
  let [both, either] = [0, 0];
  for (let place = 0; place < fell.length; place++) {
    if (fell[place] === BLIND) continue;
    const [says, was] = [said(place), fell[place] >= weather.wet];
    both += says && was;
    either += says || was;
  }
  return [both, either];
}

const share = ([both, either]) => (either ? both / either : null);
const together = (counts) => counts.reduce(([a, b], [both, either]) => [a + both, b + either], [0, 0]);

// The share where both, of all pixels where rain was forecast or fell, at every time and at all of them together; null
// where there is none.
export function scores(weather, names) {
  const steps = Array.from({ length: weather.leads }, (_, step) => step);
  const found = {};
  if (names.length) {
    found[names.length > 1 ? "networks" : "network"] = steps.map((step) => {
      const mean = average(weather, names, step);
      return agreement(weather, step, (place) => mean[place] >= 0.5);
    });
  }
  for (const [name, rain] of Object.entries(weather.rivals)) {
    found[name] = steps.map((step) => agreement(weather, step, (place) => rain[step * weather.size ** 2 + place] > 0));
  }
  return Object.fromEntries(Object.entries(found).map(([name, counts]) => [name, { all: share(together(counts)), line: counts.map(share) }]));
}

// The time whose score is nearest to that of all times together.
export function typical({ all, line }) {
  const apart = line.map((share) => Math.abs((share ?? Infinity) - (all ?? 0)));
  return apart.indexOf(Math.min(...apart));
}

// Strength of a colour: probabilities from one half to one, rain from drizzle to a downpour of 10 mm/h and more.
export const byShare = (share) => 110 + Math.round(145 * Math.max(0, 2 * share - 1));
export const byRate = (rate) => 110 + Math.round(145 * Math.min(1, Math.log(rate / 0.2) / Math.log(50)));

// Two pictures of one time: rain as forecast, and rain as it fell, both by whether the other agrees.
export function pictures(weather, share, step) {
  const fell = fallen(weather, step);
  const [hit, miss, alarm, soft] = ["hit", "miss", "alarm", "line"].map(rgb);
  const blind = (place) => [...soft, ((place % weather.size) + Math.floor(place / weather.size)) % 4 ? 34 : 80];
  const forecast = raster(weather.size, weather.size, (place) => {
    if (fell[place] === BLIND) return blind(place);
    if (share[place] < 0.5) return [0, 0, 0, 0];
    return [...(fell[place] >= weather.wet ? hit : alarm), byShare(share[place])];
  });
  const truth = raster(weather.size, weather.size, (place) => {
    if (fell[place] === BLIND) return blind(place);
    if (fell[place] < weather.wet) return [0, 0, 0, 0];
    return [...(share[place] >= 0.5 ? hit : miss), byRate(fell[place] / weather.rate_steps)];
  });
  return { forecast, truth };
}

export function ahead(weather, step) {
  const minutes = (step + 1) * weather.minutes;
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  return [hours ? `${hours} h` : "", rest ? `${rest} min` : ""].filter(Boolean).join(" ");
}
