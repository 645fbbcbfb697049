// The stage of a race: one lane for each runner, a camera that goes with the leader, and pushes by the mouse.
import { colour, kilobytes, whole } from "/static/base.js";
import { surface, words } from "/static/pictures.js";
import { drawGround, drawRobot, frameAt, hasFallen, middle, state, tallest } from "./film.js";

const STRONGEST = 4; // m/s
const PIXELS = 60; // of a drag, for a push of 1 m/s

function lanes(stage, race) {
  const narrow = stage.clientWidth < 600;
  const height = Math.max(1, race.runners.length) * (narrow ? 104 : race.runners.length > 3 ? 104 : 136) + 22;
  const made = surface(stage, height);
  const lane = (made.height - 22) / Math.max(1, race.runners.length);
  const films = race.runners.map(({ film }) => film).filter(Boolean);
  const tall = Math.max(1.4, ...films.map(tallest));
  const scale = (lane - 8) / tall;
  const front = films.length ? Math.max(...films.map((film) => middle(frameAt(film, race.seconds)))) : 0;
  return { ...made, lane, scale, left: front - (narrow ? 0.6 : 0.55) * made.width / scale, narrow };
}

export function drawRace(stage, race) {
  const view = race.view = lanes(stage, race);
  const { context, width, lane, scale, left, narrow } = view;
  race.runners.forEach((runner, n) => {
    const floor = lane * (n + 1) - 2;
    drawGround(context, { left, scale, floor, width, numbers: n === race.runners.length - 1 });
    const { model, film, label, tint } = runner;
    words(context, label, 12, floor - lane + 26, { size: 16, weight: 700, align: "left", tint });
    words(context, `${whole(model.kept)} weights · ${kilobytes(model.bytes)}`, 12, floor - lane + 45, { size: 12.5, weight: 500, align: "left", tint: "soft" });
    if (!film) { words(context, "on its way …", width / 2, floor - lane / 2, { size: 14, tint: "soft" }); return; }
    const fallen = hasFallen(film, race.seconds);
    const frame = frameAt(film, race.seconds);
    runner.x = (middle(frame) - left) * scale;
    drawRobot(context, film, frame, { at: (x, z) => [(x - left) * scale, floor - z * scale], scale, tint });
    words(context, state(film, race.seconds), narrow ? 12 : width - 12, floor - lane + (narrow ? 64 : 26),
      { size: 14, align: narrow ? "left" : "right", tint: fallen ? "red" : "ink" });
    if (runner.x < -10) words(context, "◀", 12, floor - 12, { size: 16, align: "left", tint });
    for (const push of runner.pushes) {
      if (Math.abs(race.seconds - push.at_s - 0.25) < 0.3) arrow(context, runner.x, floor - lane * 0.55, push.metres_per_second);
    }
  });
  if (race.drag) arrow(context, race.drag.runner.x, lane * (race.drag.number + 0.45), race.drag.push);
}

function arrow(context, x, y, push) {
  const tip = x + push * PIXELS;
  context.strokeStyle = context.fillStyle = colour("red");
  context.lineWidth = 4;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(tip, y);
  context.stroke();
  context.beginPath();
  context.moveTo(tip + Math.sign(push) * 10, y);
  context.lineTo(tip, y - 7);
  context.lineTo(tip, y + 7);
  context.fill();
  words(context, `${Math.abs(push).toFixed(1)} m/s`, (x + tip) / 2, y - 10, { size: 13, tint: "red", halo: "sky" });
}

// Dragging sideways pushes the robot of that lane when the drag ends; up and down scrolls the page.
export function pushes(stage, race, { push, held }) {
  let from;
  const stop = () => { from = race.drag = undefined; held(false); };
  stage.addEventListener("pointerdown", (event) => {
    const box = stage.getBoundingClientRect();
    const number = race.view ? Math.floor((event.clientY - box.top) / race.view.lane) : -1;
    const runner = race.runners[number];
    if (!runner?.film) return;
    from = { x: event.clientX, runner, number };
    stage.setPointerCapture(event.pointerId);
    held(true);
  });
  stage.addEventListener("pointermove", (event) => {
    if (!from) return;
    const size = Math.max(-STRONGEST, Math.min(STRONGEST, (event.clientX - from.x) / PIXELS));
    race.drag = { ...from, push: size };
  });
  stage.addEventListener("pointerup", () => {
    if (race.drag) push(race.drag.runner, race.drag.push);
    stop();
  });
  stage.addEventListener("pointercancel", stop);
}
