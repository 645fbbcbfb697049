// The score by lead time: lines of the networks and of forecasts without one; the cursor is the time that is shown.
import { colour } from "/static/base.js";
import { surface, words } from "/static/pictures.js";

const TINTS = { networks: "blue", network: "blue", extrapolation: "orange", persistence: "soft" };
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 10, 12, 24];

function path(context, points) {
  context.beginPath();
  let pen = false;
  for (const [x, y] of points) {
    if (y === null) { pen = false; continue; }
    if (pen) context.lineTo(x, y); else context.moveTo(x, y);
    pen = true;
  }
  context.stroke();
}

export function drawChart(canvas, weather, scores, step) {
  const { context, width, height } = surface(canvas);
  const most = Math.max(0.2, Math.ceil(10 * Math.max(0, ...Object.values(scores).flatMap(({ line }) => line).filter((value) => value !== null))) / 10);
  const x = (lead) => LEFT + (lead / (weather.leads - 1)) * (width - LEFT - RIGHT);
  const y = (share) => (share === null ? null : height - BOTTOM - (share / most) * (height - TOP - BOTTOM));
  for (let share = 0; share <= most + 1e-9; share += most > 0.5 ? 0.2 : 0.1) {
    context.fillStyle = colour("rule");
    context.fillRect(LEFT, y(share), width - LEFT - RIGHT, 1);
    words(context, `${Math.round(100 * share)} %`, LEFT - 6, y(share) + 4, { size: 12, weight: 400, align: "right", tint: "soft" });
  }
  const hour = 60 / weather.minutes;
  for (let lead = hour; lead <= weather.leads; lead += hour) {
    context.fillStyle = colour("line");
    context.fillRect(x(lead - 1), height - BOTTOM, 1, 5);
    words(context, `${lead / hour} h`, Math.min(x(lead - 1), width - 12), height - 5, { size: 12, weight: 400, tint: "soft" });
  }
  context.fillStyle = colour("ink");
  context.fillRect(x(step) - 1, TOP - 6, 2, height - TOP - BOTTOM + 6);
  context.lineJoin = "round";
  for (const [name, { line }] of Object.entries(scores).reverse()) {
    context.strokeStyle = context.fillStyle = colour(TINTS[name] || "violet");
    context.lineWidth = name.startsWith("network") ? 3.5 : 2;
    context.setLineDash(name.startsWith("network") ? [] : name === "persistence" ? [2, 4] : [8, 4]);
    path(context, line.map((value, lead) => [x(lead), y(value)]));
    context.setLineDash([]);
    if (line[step] === null) continue;
    context.beginPath();
    context.arc(x(step), y(line[step]), 5, 0, 2 * Math.PI);
    context.fill();
  }
}

// Where on the chart a pointer is, as a lead time.
export function leadAt(canvas, event, leads) {
  const box = canvas.getBoundingClientRect();
  const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
  return Math.round(Math.min(1, Math.max(0, share)) * (leads - 1));
}
