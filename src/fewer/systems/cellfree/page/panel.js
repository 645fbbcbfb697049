// What is said beside the map, in words and units.
import { byId, make, percent, whole } from "/static/base.js";
import { called } from "./town.js";

const chip = (name, kind, words = "") => make("li", { class: kind }, words ? `${name}: ${words}` : name);

function bar(share, other, name) {
  const fill = make("i");
  fill.style.width = `${Math.round(100 * share)}%`;
  return make("div", { class: other ? "bar other" : "bar", ...(name && { role: "img", "aria-label": name, title: name }) }, fill);
}

function verdict(found) {
  const [ideal, chosen] = [new Set(found.ideal), new Set(found.access_points)];
  const right = found.access_points.filter((one) => ideal.has(one)).length;
  const needless = chosen.size - right;
  const perfect = right === ideal.size && !needless;
  const place = byId("verdict");
  place.textContent = (perfect ? `Right here: ${right === 1 ? "the one" : `all ${right}`} that should serve, and no other`
    : `Here ${right} of ${ideal.size} that should serve${needless ? `, and ${needless} needlessly` : ""}`)
    + `: ${percent(found.signal.chosen)} of the signal`;
  place.className = `verdict steady tall ${perfect ? "good" : ""}`;
}

export function tell(found, area) {
  verdict(found);
  const [ideal, chosen] = [new Set(found.ideal), new Set(found.access_points)];
  const name = (one) => called(area, one);
  byId("chosen").replaceChildren(...found.access_points.map((one) => (ideal.has(one) ? chip(name(one), "right") : chip(name(one), "wrong", "needless"))));
  byId("ideal").replaceChildren(...found.ideal.map((one) => (chosen.has(one) ? chip(name(one), "right")
    : chip(name(one), "missed", found.candidates.includes(one) ? "missed" : "no candidate"))));
  const top = Math.max(...found.rsrp_db.filter((value) => value !== null));
  byId("measured").replaceChildren(...found.measured.flatMap((one, index) => {
    const value = found.rsrp_db[index];
    const who = `${name(one)}${index === 0 ? " (strongest)" : ""}`;
    if (value === null) return [make("span", {}, who), make("span", { class: "soft" }, "not heard"), make("span", {}, "")];
    return [make("span", {}, who), bar(Math.max(0.03, 1 + (value - top) / 45), index > 0), make("span", {}, `${value.toFixed(1)} dBm`)];
  }));
  const order = found.candidates.map((one, index) => [one, found.probabilities[index]]).sort((a, b) => b[1] - a[1]);
  byId("candidates").replaceChildren(...order.flatMap(([one, share]) => [
    make("span", {}, `${name(one)}${ideal.has(one) ? " ✓" : ""}`), bar(share, !chosen.has(one), percent(share)),
    make("span", {}, one === found.master ? "strongest" : `${found.below_master_db[one].toFixed(0)} dB below`)]));
}

// Over the whole map: against measuring everyone, and against the strongest alone.
export function tellMap(quality, area) {
  byId("gained").textContent = `${percent(quality.signal)} of the signal from ${area.measured} measurements instead of ${area.access_points.length}`;
  const { all_measured: every } = quality;
  byId("whole").textContent = `Without a network: the strongest alone ${percent(quality.master_signal)}; all ${area.measured} that were measured ${percent(every.signal)}.`;
  byId("right").textContent = ` (${percent(quality.right)} of ${whole(quality.side ** 2)} places; ${percent(every.right)} if all measured served)`;
}
