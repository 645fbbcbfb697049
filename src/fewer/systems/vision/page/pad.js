// The pad: strokes by mouse, finger or keyboard. A finger draws here and does not scroll.
import { colour } from "/static/base.js";
import { SIDE, stroke } from "./digit.js";

const STEP = 10; // of the pen, by one press of a key
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function drawing(pad, overlay, { changed, cleared }) {
  const ink = pad.getContext("2d", { willReadFrequently: true });
  const pen = { x: SIDE / 2, y: SIDE / 4, down: false, shown: false };
  let last;
  overlay.width = overlay.height = SIDE;

  function ring() {
    const context = overlay.getContext("2d");
    context.clearRect(0, 0, SIDE, SIDE);
    if (!pen.shown) return;
    context.beginPath();
    context.arc(pen.x, pen.y, 13, 0, 2 * Math.PI);
    context.lineWidth = 3;
    context.strokeStyle = pen.down ? colour("alarm") : "#9fb4c8";
    context.stroke();
  }

  function place(event) {
    const box = pad.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * SIDE, (event.clientY - box.top) / box.height * SIDE];
  }

  pad.addEventListener("pointerdown", (event) => {
    pad.setPointerCapture(event.pointerId);
    last = place(event);
    pen.shown = false;
    ring();
    stroke(ink, [last, last]);
  });
  pad.addEventListener("pointermove", (event) => {
    if (!last || !event.buttons) return;
    const now = place(event);
    stroke(ink, [last, now]);
    last = now;
    changed();
  });
  for (const end of ["pointerup", "pointercancel"]) pad.addEventListener(end, () => { if (last) { last = undefined; changed(); } });

  pad.addEventListener("keydown", (event) => {
    const way = KEYS[event.key];
    if (!way && ![" ", "Delete", "Backspace"].includes(event.key)) return;
    event.preventDefault();
    pen.shown = true;
    const from = [pen.x, pen.y];
    if (event.key === " ") pen.down = !pen.down;
    else if (!way) { pen.down = false; cleared(); }
    else [pen.x, pen.y] = from.map((value, axis) => Math.min(SIDE - 8, Math.max(8, value + STEP * way[axis])));
    if (pen.down) { stroke(ink, [from, [pen.x, pen.y]]); changed(); }
    ring();
  });
  pad.addEventListener("blur", () => { pen.shown = false; ring(); });
  return ink;
}
