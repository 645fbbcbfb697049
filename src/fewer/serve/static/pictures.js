// Pictures on canvases: sharp on any screen, still where motion is not wanted, idle where nobody looks.
import { colour } from "./base.js";

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// The canvas at the screen's own pixels, drawn in the page's; `height` in pixels of the page, or as the style has it.
export function surface(canvas, height) {
  const dense = Math.min(devicePixelRatio || 1, 2);
  if (height !== undefined) canvas.style.height = `${Math.round(height)}px`;
  const [width, tall] = [canvas.clientWidth, canvas.clientHeight];
  const [w, h] = [Math.max(1, Math.round(width * dense)), Math.max(1, Math.round(tall * dense))];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(dense, 0, 0, dense, 0, 0);
  context.clearRect(0, 0, width, tall);
  return { context, width, height: tall };
}

// Draw with the seconds that have passed, as long as the picture is on the screen; once where motion is not wanted.
export function animate(canvas, draw, { rest = 0 } = {}) {
  let seen = true;
  let clock = 0;
  let before;
  let waiting;
  const step = (now) => {
    waiting = undefined;
    if (still()) { draw(rest); return; }
    if (before !== undefined) clock += Math.min(now - before, 100) / 1000;
    before = now;
    draw(clock);
    if (seen && !document.hidden) next();
  };
  const next = () => { waiting ??= requestAnimationFrame(step); };
  new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    if (seen) { before = undefined; next(); }
  }).observe(canvas);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { before = undefined; next(); } });
  new ResizeObserver(() => next()).observe(canvas);
  next();
}

export const unpacked = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
export const rgb = (name) => colour(name).match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));

// A small picture of its own pixels, to be drawn larger: pixel(place) gives [red, green, blue, opacity].
export function raster(width, height, pixel) {
  const made = new OffscreenCanvas(width, height);
  const context = made.getContext("2d");
  const image = context.createImageData(width, height);
  for (let place = 0; place < width * height; place++) image.data.set(pixel(place), 4 * place);
  context.putImageData(image, 0, 0);
  return made;
}

export function words(context, text, x, y, { size = 14, weight = 600, tint = "ink", align = "center", halo } = {}) {
  context.font = `${weight} ${size}px system-ui, sans-serif`;
  context.textAlign = align;
  if (halo) {
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = colour(halo);
    context.strokeText(text, x, y);
  }
  context.fillStyle = colour(tint);
  context.fillText(text, x, y);
}
