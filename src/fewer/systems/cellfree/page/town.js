// The map of the town: access points, the phone, who is picked and who should be; coloured by signal or by rightness.
import { colour } from "/static/base.js";
import { raster, rgb, surface, words } from "/static/pictures.js";

export function strengths({ strength_db: grid }) {
  const all = grid.flat();
  return [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
}

// the strongest signal at every place, as a wash of blue; rows go with y, which points up
export function signalPicture(area) {
  const { strength_db: grid } = area;
  const [low, high] = strengths(area);
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

// what its owner calls an access point; the numbers of nameless ones are said to be access points
export const called = ({ names }, one) => (names[one] === `${one}` ? `AP ${one}` : names[one]);

function circle(context, [x, y], radius, { fill, stroke, width = 2 }) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  if (fill) { context.fillStyle = colour(fill); context.fill(); }
  if (stroke) { context.strokeStyle = colour(stroke); context.lineWidth = width; context.stroke(); }
}

function marks({ context, width, height, rings }, at, area, found, phone) {
  const points = area.access_points;
  const chosen = new Set(found.access_points);
  if (rings) for (const one of found.candidates) circle(context, at(points[one]), 8, { stroke: "orange", width: 1.5 });
  context.lineWidth = 3;
  context.strokeStyle = colour("blue");
  for (const one of chosen) {
    context.beginPath();
    context.moveTo(...phone);
    context.lineTo(...at(points[one]));
    context.stroke();
  }
  for (const one of chosen) circle(context, at(points[one]), 6.5, { fill: "blue" });
  if (!rings) return;
  for (const one of found.ideal) circle(context, at(points[one]), 11.5, { stroke: "green", width: 3 });
  const named = new Set([...chosen, ...found.ideal, ...found.measured]);
  const taken = [{ x: phone[0] - 14, y: phone[1] - 14, width: 28, height: 28 },
    ...[...new Set([...named, ...found.candidates])].map((one) => at(points[one])).map(([x, y]) => ({ x: x - 11, y: y - 11, width: 22, height: 22 }))];
  for (const one of named) label(context, called(area, one), at(points[one]), { phone, taken, width, height });
}

// from a name that found no room nearby to its access point
function line(context, from, to) {
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.lineWidth = 1.5;
  context.strokeStyle = colour("ink");
  context.stroke();
}

const NEAREST = 14; // pixels from an access point to its name
const LONGEST = 16; // letters of a name on the map; the panel has all of it
const overlap = (a, b) => Math.max(0, Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x))
  * Math.max(0, Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y));

// A name stands beside its access point where it covers least, rather on the side that looks away from the phone, and
// so not under the finger.
export function label(context, name, [x, y], { phone, taken, width, height }) {
  const text = name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
  context.font = "700 13.5px system-ui, sans-serif";
  const [wide, tall] = [context.measureText(text).width + 4, 17];
  const away = Math.atan2(y - phone[1], x - phone[0]);
  let best;
  for (const [ring, turn] of [NEAREST, 26, 40].flatMap((ring) => [0, 1, -1, 2, -2, 3, -3, 4].map((turn) => [ring, turn]))) {
    const angle = (Math.round(away / (Math.PI / 4)) + turn) * Math.PI / 4;
    const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
    const box = { x: x + cosine * ring + (cosine - 1) * wide / 2, y: y + sine * ring + (sine - 1) * tall / 2, width: wide, height: tall };
    const outside = wide * tall - overlap(box, { x: 2, y: 2, width: width - 4, height: height - 30 }); // the scale stands below
    const cost = 4 * outside + taken.reduce((sum, other) => sum + (other.name ? 4 : 1) * overlap(box, other), 0) + 2 * Math.abs(turn) + ring;
    if (best === undefined || cost < best.cost) best = { cost, box, ring, cosine, sine };
  }
  taken.push({ ...best.box, name });
  if (best.ring > NEAREST) line(context, [x + 12 * best.cosine, y + 12 * best.sine], [x + best.ring * best.cosine, y + best.ring * best.sine]);
  words(context, text, best.box.x + wide / 2, best.box.y + 13, { size: 13.5, weight: 700, halo: "card" });
}

// `rings` around candidates and those that should serve, and names, belong where a legend explains them
export function drawTown(canvas, { area, background, found, place, view = area, rings = true }) {
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
  if (found) marks({ context, width, height, rings }, at, area, found, phone);
  circle(context, phone, 9, { fill: "red", stroke: "card", width: 3 });
  const metre = 10 ** Math.floor(Math.log10(view.side_m / 4)) * 2;
  context.fillStyle = colour("ink");
  context.fillRect(14, height - 14, metre / view.side_m * side, 3);
  words(context, metre >= 1000 ? `${metre / 1000} km` : `${metre} m`, 14 + metre / view.side_m * side / 2, height - 21, { size: 13, halo: "card" });
}
