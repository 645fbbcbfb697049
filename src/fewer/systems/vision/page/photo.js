// Photographs of 32 by 32 pixels: the first test picture of each class of CIFAR-10, as JPEG files.
import { byId, make } from "/static/base.js";

export const PHOTOS = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

async function read(name, [, height, width]) {
  const picture = new Image();
  picture.src = `/static/vision/photos/${name}.jpg`;
  await picture.decode();
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(picture, 0, 0, width, height);
  const found = context.getImageData(0, 0, width, height).data;
  return [0, 1, 2].map((channel) => Array.from({ length: height }, (_, y) =>
    Array.from({ length: width }, (_, x) => Math.round(found[4 * (y * width + x) + channel] / 0.0255) / 1e4)));
}

// A row of pictures to choose from; `chosen` is called with the pixels of one, as channels of rows, and what it shows.
export function album(place, shape, chosen) {
  async function choose(name) {
    for (const button of place.children) button.setAttribute("aria-pressed", button.dataset.photo === name);
    byId("shown").textContent = `This is ${/^[aeiou]/.test(name) ? "an" : "a"} ${name}.`;
    chosen(await read(name, shape), name);
  }
  place.replaceChildren(...PHOTOS.map((name) => {
    const picture = make("img", { src: `/static/vision/photos/${name}.jpg`, alt: name, width: 32, height: 32 });
    const button = make("button", { type: "button", "data-photo": name, "aria-pressed": "false" }, picture);
    button.addEventListener("click", () => choose(name));
    return button;
  }));
  return choose;
}
