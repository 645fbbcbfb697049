// A robot from the side: the places of its limbs at a time, and how it is drawn.
import { colour } from "/static/base.js";

// between two frames the limbs lie in between
export function frameAt(film, seconds) {
  const place = Math.min(Math.max(seconds, 0) * film.frames_per_second, film.frames.length - 1);
  const [before, share] = [Math.floor(place), place % 1];
  const after = film.frames[Math.min(before + 1, film.frames.length - 1)];
  return film.frames[before].map((limb, n) => limb.map((value, k) => value + share * (after[n][k] - value)));
}

export const middle = (frame) => frame.reduce((sum, [x1, , x2]) => sum + (x1 + x2) / 2, 0) / frame.length;
export const hasFallen = (film, seconds) => film.fell && seconds >= film.seconds;
// until it fell: what slides on does not count
export const travelled = (film, seconds) => middle(frameAt(film, Math.min(seconds, film.seconds))) - middle(film.frames[0]);
export const state = (film, seconds) => `${hasFallen(film, seconds) ? `fell at ${film.seconds.toFixed(1)} s, ` : ""}${travelled(film, seconds).toFixed(1)} m`;
export const tallest = (film) => film.frames.flat().reduce((top, [, z1, , z2]) => Math.max(top, z1, z2), 1.3) + 0.15;

export function drawRobot(context, film, frame, { at, scale, tint }) {
  context.lineCap = "round";
  shadow(context, frame, at);
  context.strokeStyle = colour(tint);
  frame.forEach(([x1, z1, x2, z2], limb) => {
    context.globalAlpha = limb === 0 ? 1 : 0.62 + 0.3 * (limb % 2);
    context.lineWidth = Math.max(2, 2 * film.radius[limb] * scale);
    context.beginPath();
    context.moveTo(...at(x1, z1));
    context.lineTo(...at(x2, z2));
    context.stroke();
  });
  context.globalAlpha = 1;
}

// on the ground below: from how far it is one sees that a robot is in the air
function shadow(context, frame, at) {
  const ends = frame.flatMap(([x1, , x2]) => [at(x1, 0)[0], at(x2, 0)[0]]);
  const [from, to] = [Math.min(...ends) - 4, Math.max(...ends) + 4];
  context.fillStyle = colour("line");
  context.globalAlpha = 0.5;
  context.beginPath();
  context.ellipse((from + to) / 2, at(0, 0)[1] + 1, (to - from) / 2, 3, 0, 0, 2 * Math.PI);
  context.fill();
  context.globalAlpha = 1;
}

export function drawGround(context, { left, scale, floor, width, numbers }) {
  context.fillStyle = colour("line");
  context.fillRect(0, floor, width, 1.5);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  for (let metre = Math.ceil(left); metre <= left + width / scale; metre++) {
    const x = (metre - left) * scale;
    context.fillStyle = colour("line");
    context.fillRect(x - 0.5, floor, 1, 5);
    if (numbers && metre % 2 === 0 && x > 16 && x < width - 16) { context.fillStyle = colour("soft"); context.fillText(`${metre} m`, x, floor + 18); }
  }
}
