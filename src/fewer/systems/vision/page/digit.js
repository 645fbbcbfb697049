// Digits as strokes, and as networks see them: 28 by 28 grey pixels with the digit in the middle.

// strokes on a square of 100, for those who would rather not draw
export const EXAMPLES = [
  [[[30, 28], [45, 18], [62, 22], [66, 36], [56, 47], [46, 50], [58, 52], [69, 63], [64, 78], [46, 83], [30, 76]]],
  [[[28, 22], [50, 22], [72, 22], [60, 45], [50, 65], [44, 84]]],
  [[[60, 16], [46, 34], [34, 56], [52, 58], [74, 57]], [[62, 38], [60, 62], [58, 86]]],
  [[[32, 32], [44, 20], [60, 22], [66, 36], [56, 54], [40, 70], [30, 82], [50, 81], [72, 80]]],
  [[[70, 20], [42, 22], [38, 46], [54, 44], [68, 56], [66, 74], [50, 83], [32, 76]]],
];
export const SIDE = 280;

export function blank(ink) {
  ink.fillStyle = "#000";
  ink.fillRect(0, 0, SIDE, SIDE);
}

export function stroke(ink, points) {
  ink.strokeStyle = "#fff";
  ink.lineWidth = 22;
  ink.lineCap = ink.lineJoin = "round";
  ink.beginPath();
  ink.moveTo(...points[0]);
  // through the middles, so that a few points make a round digit
  for (let n = 1; n < points.length - 1; n++) {
    const [[x, y], [nextX, nextY]] = [points[n], points[n + 1]];
    ink.quadraticCurveTo(x, y, (x + nextX) / 2, (y + nextY) / 2);
  }
  ink.lineTo(...points.at(-1));
  ink.stroke();
}

export function drawExample(ink, number) {
  blank(ink);
  for (const points of EXAMPLES[number % EXAMPLES.length]) stroke(ink, points.map(([x, y]) => [x * SIDE / 100, y * SIDE / 100]));
}

function extent(data) {
  let [left, right, top, bottom] = [SIDE, -1, SIDE, -1];
  let [mass, middleX, middleY] = [0, 0, 0];
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const value = data[4 * (y * SIDE + x)];
      if (value < 20) continue;
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
      mass += value; middleX += value * x; middleY += value * y;
    }
  }
  return right < 0 ? null : { size: Math.max(right - left + 1, bottom - top + 1), x: middleX / mass, y: middleY / mass };
}

// As the networks were trained: the digit's box scaled to 20 of 28, its centre of mass in the middle.
export function pixels(pad, [height, width]) {
  const box = extent(pad.getContext("2d").getImageData(0, 0, SIDE, SIDE).data);
  if (!box) return null;
  const scale = (20 / 28) * Math.min(width, height) / box.size;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.translate(width / 2 - box.x * scale, height / 2 - box.y * scale);
  context.scale(scale, scale);
  context.drawImage(pad, 0, 0);
  const found = context.getImageData(0, 0, width, height).data;
  return Array.from({ length: height }, (_, y) =>
    Array.from({ length: width }, (_, x) => Math.round(found[4 * (y * width + x)] / 2.55) / 100));
}
