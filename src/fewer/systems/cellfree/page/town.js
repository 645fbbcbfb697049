// The map of the town: access points, the phone, who is picked and who should be; coloured by signal or by rightness.
import { colour } from "/static/base.js";
import { raster, rgb, surface, words } from "/static/pictures.js";

// the strongest signal at every place, as a wash of blue; rows go with y, which points up
export function signalPicture({ strength_db: grid }) {
  const all = grid.flat();
  const [low, high] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
  const blue = rgb("blue");
  const side = grid.length;
  return raster(grid[0].length, side, (place) => {
    const share = (grid[side - 1 - Math.floor(place / side)][place % side] - low) / Math.max(high - low, 1);
    return [...blue, Math.round(140 * share * share)];
  });
}

export function rightPicture({ side, missed, needless }) {
  const tints = ["green", "alarm", "miss"].map(rgb);
  return raster(side, side, (place) => {
    const [row, column] = [side - 1 - Math.floor(place / side), place % side];
    const wrong = missed[row][column] + needless[row][column];
    return [...tints[Math.min(wrong, 2)], wrong ? 150 : 90];
  });
}

// the area begins at corner_m, and y points up
export const share = (area, value, axis) => (value - area.corner_m[axis]) / area.side_m;
export const metres = (area, part, axis) => area.corner_m[axis] + part * area.side_m;

function circle(context, [x, y], radius, { fill, stroke, width = 2 }) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  if (fill) { context.fillStyle = colour(fill); context.fill(); }
  if (stroke) { context.strokeStyle = colour(stroke); context.lineWidth = width; context.stroke(); }
}

function marks({ context, width, height }, at, area, found, phone) {
  const points = area.access_points;
  const chosen = new Set(found.access_points);
  for (const one of found.candidates) circle(context, at(points[one]), 8, { stroke: "orange", width: 1.5 });
  context.lineWidth = 3;
  context.strokeStyle = colour("blue");
  for (const one of chosen) {
    context.beginPath();
    context.moveTo(...phone);
    context.lineTo(...at(points[one]));
    context.stroke();
  }
  for (const one of chosen) circle(context, at(points[one]), 6.5, { fill: "blue" });
  for (const one of found.ideal) circle(context, at(points[one]), 11.5, { stroke: "green", width: 3 });
  // names stand on the side that looks away from the phone, and so not under the finger
  for (const one of new Set([...found.measured, ...chosen, ...found.ideal])) {
    const [x, y] = at(points[one]);
    const far = Math.hypot(x - phone[0], y - phone[1]) || 1;
    const inside = (value, most) => Math.min(Math.max(value, 12), most - 12);
    words(context, `${one}`, inside(x + 23 * (x - phone[0]) / far, width), inside(y + 23 * (y - phone[1]) / far + 5, height), { size: 13.5, weight: 700, halo: "card" });
  }
}

export function drawTown(canvas, { area, background, found, place, view = area }) {
  const { context, width, height } = surface(canvas);
  // the town is square: of a picture of another shape it fills the longer side
  const side = Math.max(width, height);
  const [left, top] = [(width - side) / 2, (height - side) / 2];
  const at = ([x, y]) => [left + share(view, x, 0) * side, top + (1 - share(view, y, 1)) * side];
  const [west, south] = area.corner_m;
  const whole = side * area.side_m / view.side_m;
  context.drawImage(background, ...at([west, south + area.side_m]), whole, whole);
  for (const point of area.access_points) circle(context, at(point), 3.2, { fill: "soft" });
  const phone = at([place.x_m, place.y_m]);
  if (found) marks({ context, width, height }, at, area, found, phone);
  circle(context, phone, 9, { fill: "red", stroke: "card", width: 3 });
  const metre = 10 ** Math.floor(Math.log10(view.side_m / 4)) * 2;
  context.fillStyle = colour("ink");
  context.fillRect(14, height - 14, metre / view.side_m * side, 3);
  words(context, metre >= 1000 ? `${metre / 1000} km` : `${metre} m`, 14 + metre / view.side_m * side / 2, height - 21, { size: 13, halo: "card" });
}
