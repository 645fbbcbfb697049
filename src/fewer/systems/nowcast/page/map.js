// The map: forecast on the left of the swipe, what fell on the right of it, with a scale in kilometres.
import { colour } from "/static/base.js";
import { surface, words } from "/static/pictures.js";

const GRID_KM = 50;

export function drawMap(canvas, weather, { forecast, truth, time }, swipe) {
  const { context, width, height } = surface(canvas);
  context.fillStyle = colour("sky");
  context.fillRect(0, 0, width, height);
  context.imageSmoothingEnabled = false;
  const edge = swipe * width;
  for (const [picture, from, to] of [[forecast, 0, edge], [truth, edge, width]]) {
    context.save();
    context.beginPath();
    context.rect(from, 0, to - from, height);
    context.clip();
    context.drawImage(picture, 0, 0, width, height);
    context.restore();
  }
  const km = width / (weather.size * weather.pixel_km);
  context.globalAlpha = 0.35;
  context.fillStyle = colour("line");
  for (let at = GRID_KM; at * km < width; at += GRID_KM) { context.fillRect(at * km, 0, 1, height); context.fillRect(0, height - at * km, width, 1); }
  context.globalAlpha = 1;
  context.fillStyle = colour("ink");
  context.fillRect(14, height - 16, GRID_KM * km, 3);
  words(context, `${GRID_KM} km`, 14 + GRID_KM * km / 2, height - 24, { size: 13, halo: "sky" });
  words(context, "forecast ", edge - 12, 24, { size: 15, weight: 700, align: "right", halo: "sky" });
  words(context, " what fell", edge + 12, 24, { size: 15, weight: 700, align: "left", halo: "sky" });
  words(context, time, width - 12, height - 14, { size: 15, weight: 700, align: "right", halo: "sky" });
  context.fillRect(edge - 1.5, 0, 3, height);
  handle(context, edge, height / 2);
}

function handle(context, x, y) {
  context.beginPath();
  context.arc(x, y, 15, 0, 2 * Math.PI);
  context.fillStyle = colour("card");
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = colour("ink");
  context.stroke();
  words(context, "◂▸", x, y + 5, { size: 13, weight: 700 });
}

// Sideways moves the swipe, up and down scrolls the page.
export function swiped(canvas, moved) {
  let held = false;
  const to = (event) => {
    const box = canvas.getBoundingClientRect();
    moved(Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)));
  };
  canvas.addEventListener("pointerdown", (event) => {
    held = true;
    canvas.setPointerCapture(event.pointerId);
    if (event.pointerType !== "touch") to(event);
  });
  canvas.addEventListener("pointermove", (event) => { if (held) to(event); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { held = false; });
}
