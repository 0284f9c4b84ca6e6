// The ε handle of a picture.  The engine's results at every ε (dpgrams_core/figures/frames.py) come in one message and are
// drawn here while the handle is dragged, without the server; between two results the nearer one is shown, and the number
// under the handle is that of the result.  Letting go tells the server.
//
// How a page uses it (pages/_ui/handle.py does):
// - One mount of this script with handle.html and handle.css is the picture.  Its data are { name } and never change, so it
//   is sent once.  It has two triggers: "epsilon", the stop that was let go of, and "draws", when more noise is wanted.
// - Mounts of letter.js bring what changes.  A state: { name, epsilon, stops, run, frames }, where `run` marks the settings
//   with ε and `frames` those without.  Frames, as bytes (frames.py, `message`), with the mark of the settings they are of;
//   those of other settings than the state's are not shown.  More draws of the noise come under the name "<name>_draws".
// - On the figure stand, for tests and benchmarks: data-epsilon, data-seed, data-places of what is shown, and data-frames,
//   how many there are.
const packs = new Map(); // the newest message by its name
const states = new Map();
const views = new Set();
const TYPES = { f8: Float64Array, f4: Float32Array, u2: Uint16Array, u1: Uint8Array };
const LEVELS = 9;
const STOP_MS = 600;
const STEP_MS = 260;
const DRAW_MS = 650;
const MOST_PIXELS = 12e6; // of finished pictures that are kept, four bytes each
const KEY_MS = 400; // after the last key: one message for a row of presses
const GLYPHS = { truth: "★", truth_line: "━", plain: "✕", plain_line: "╍", private: "●", grey: "⌒", records: "▪",
  region: "◯", band: "═" };
const still = matchMedia("(prefers-reduced-motion: reduce)");

const post = (globalThis.dpgramsPost ??= { letters: new Map() });
post.heard = (data) => {
  if (ArrayBuffer.isView(data)) {
    const pack = unpacked(data);
    packs.set(pack.name, pack);
    for (const view of views) view.arrived(pack.name);
  } else {
    states.set(data.name, data);
    for (const view of views) if (view.name === data.name) view.update(data);
  }
};
for (const data of post.letters.values()) post.heard(data);

export default function ({ data, parentElement, setTriggerValue }) {
  let view = [...views].find((one) => one.root === parentElement);
  if (!view) views.add((view = new View(parentElement)));
  Object.assign(view, { name: data.name, send: setTriggerValue });
  if (states.has(data.name)) view.update(states.get(data.name));
  return () => {
    view.close();
    views.delete(view);
  };
}

function unpacked(bytes) {
  const buffer = bytes.slice().buffer; // its own, so that every array is aligned
  const length = new DataView(buffer).getUint32(0, true);
  const read = (_, value) => {
    if (!value?.array) return value;
    const count = value.shape.reduce((product, side) => product * side, 1);
    return { values: new TYPES[value.array](buffer, 4 + length + value.at, count), shape: value.shape };
  };
  return JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)), read);
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const rows = (array) => (array ? Array.from({ length: array.shape[0] }, (_, i) => array.values.subarray(2 * i, 2 * i + 2)) : []);
const heightOf = ({ low, high, steps }, i) => low + (steps.values[i] / 65535) * (high - low);

class View {
  constructor(root) {
    this.root = root;
    const find = (query) => root.querySelector(query);
    [this.figure, this.canvas, this.range, this.output, this.said, this.table, this.guarantee, this.legend] = [
      "figure", "canvas", "input", "output", ".said", "table", ".guarantee", ".legend",
    ].map(find);
    this.buttons = Object.fromEntries([...root.querySelectorAll("button")].map((button) => [button.dataset.play, button]));
    this.context = this.canvas.getContext("2d");
    this.pictures = new Map(); // finished ones by their frames, the one used last at the end
    this.told = new WeakMap(); // a frame's table and places, as they stand in the page
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
    this.window = () => this.resize(); // a taller window leaves the canvas as wide as it is
    addEventListener("resize", this.window);
    this.range.addEventListener("pointermove", (event) => (this.moved = event.timeStamp));
    this.range.addEventListener("pointerdown", (event) => Object.assign(this, { moved: event.timeStamp, held: true }));
    for (const end of ["pointerup", "pointercancel"]) this.range.addEventListener(end, () => (this.held = false));
    this.range.addEventListener("keydown", () => (this.moved = undefined));
    this.range.addEventListener("input", (event) => this.dragged(event));
    this.range.addEventListener("change", () => this.letGo());
    for (const [what, button] of Object.entries(this.buttons)) button.addEventListener("click", () => this.pressed(what));
  }

  close() {
    this.stop();
    clearTimeout(this.timer);
    clearTimeout(this.idle);
    this.observer.disconnect();
    removeEventListener("resize", this.window);
  }

  update(data) {
    const fresh = data.run !== this.data?.run;
    this.data = data;
    this.range.max = data.stops.length - 1;
    this.range.closest(".row").hidden = data.stops.length < 2; // a picture that is held has nothing to drag
    if (fresh) this.draws = undefined;
    if (fresh && !this.held) {
      clearTimeout(this.timer);
      this.place(data.stops.indexOf(data.epsilon));
    }
    this.readColours();
    this.arrived(data.name);
    this.arrived(`${data.name}_draws`);
  }

  readColours() {
    const style = getComputedStyle(this.figure);
    const tint = (name) => (alpha = 1) => `rgba(${style.getPropertyValue(`--${name}`)},${alpha})`;
    this.colours = { truth: tint("truth"), plain: tint("non-private"), private: tint("private"), grey: tint("grey") };
    this.ink = style.color;
    this.letter = 0.75 * parseFloat(style.fontSize); // pixels; larger for a projector
    this.font = `${this.letter}px ${style.fontFamily}`;
    this.orange = style.getPropertyValue("--private").split(",").map(Number);
  }

  arrived(name) {
    const pack = packs.get(name);
    if (!this.data || !pack) return;
    if (name === `${this.data.name}_draws`) {
      if (pack.run !== this.data.run || pack.frames.length < pack.expected) return;
      this.draws = pack.frames.filter((frame) => !frame.gap);
      if (this.wanted && !this.playing) this.play("draws");
      return;
    }
    if (name !== this.data.name) return;
    // Frames of other settings are no results of these: the picture fades until its own are here.
    const own = pack.run === this.data.frames;
    this.figure.classList.toggle("waiting", !own);
    this.pack = own ? pack : null;
    this.frames = this.data.stops.map((stop) => this.pack?.frames.find((frame) => frame.epsilon === stop));
    if (!own) return;
    (this.root.host ?? this.root).closest?.("[class*=_chart_]")?.setAttribute("data-drawn", ""); // what is below may come
    const best = this.pack.frames.findLast((frame) => frame.layers.surface);
    this.top = best ? best.layers.surface.high : 1;
    this.legend.replaceChildren(...this.pack.legend.map(([kind, words]) => {
      const entry = document.createElement("span");
      const mark = Object.assign(document.createElement("b"), { className: kind, textContent: GLYPHS[kind] });
      mark.ariaHidden = "true";
      entry.append(mark, words);
      return entry;
    }));
    this.figure.dataset.frames = this.pack.frames.length;
    this.resize();
  }

  // The nearest stop that has a result; null before the first.
  nearest(index) {
    const known = this.frames.map((frame, i) => (frame && !frame.gap ? i : -1)).filter((i) => i >= 0);
    return known.length ? known.reduce((best, i) => (Math.abs(i - index) < Math.abs(best - index) ? i : best)) : null;
  }

  dragged(event) {
    this.stop();
    const start = this.moved ?? event.timeStamp;
    for (const view of views) view.goTo(Number(this.range.value));
    // For the benchmark. A task that an animation frame leaves behind runs after that frame was painted.
    requestAnimationFrame(() => setTimeout(() => {
      if (performance.getEntriesByName("handle").length > 2000) performance.clearMeasures("handle");
      performance.measure("handle", { start, end: performance.now() });
    }));
  }

  letGo() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.commit(), this.moved === undefined ? KEY_MS : 0);
  }

  // A stop whose result is still to come is set all the same: the page computes it.  A gap is not.
  commit() {
    if (this.frames[this.at]?.gap) for (const view of views) view.goTo(this.nearest(this.at));
    const epsilon = this.data.stops[this.at];
    if (epsilon !== this.data.epsilon) this.send("epsilon", epsilon);
  }

  goTo(index) {
    if (!this.pack) return;
    this.place(index);
    this.show();
  }

  place(index) {
    this.at = this.range.value = index;
    this.range.style.setProperty("--share", `${(100 * index) / this.range.max}%`);
  }

  show() {
    const shown = this.nearest(this.at);
    const asked = this.frames[this.at];
    if (shown === null) return this.tell({ gap: asked?.gap ?? "The first result is being computed." });
    const frame = this.frames[shown];
    const here = this.data.stops[this.at];
    const note = shown === this.at ? "" : asked?.gap ? `No result at ε = ${here}: ${asked.gap}` : `ε = ${here} is being computed.`;
    this.draw(frame);
    this.tell(frame, note);
  }

  tell(frame, note = frame.gap ?? "") {
    this.output.textContent = frame.text ? `ε = ${frame.text}` : "";
    this.range.ariaValueText = this.output.textContent;
    this.said.innerHTML = frame.sentence ?? ""; // our own words and numbers
    if (note) this.said.append(" ", Object.assign(document.createElement("em"), { textContent: note }));
    this.canvas.ariaLabel = this.said.textContent;
    this.guarantee.textContent = frame.guarantee ?? "";
    Object.assign(this.figure.dataset, { epsilon: frame.epsilon ?? "", seed: frame.seed ?? "" });
    const { places, body } = this.inWords(frame);
    this.figure.dataset.places = places;
    this.table.replaceChildren(body);
    this.buttons.tracks.hidden = !frame.layers?.tracks;
  }

  // What stands in the page for a frame, made once: most of a long table's time goes into making its rows.
  inWords(frame) {
    if (!this.told.has(frame)) {
      const line = (kind) => (texts) => {
        const row = document.createElement("tr");
        row.append(...texts.map((text) => Object.assign(document.createElement(kind), { textContent: text })));
        return row;
      };
      const [head, ...rest] = frame.table ?? [];
      const body = document.createElement("tbody");
      if (head) body.append(line("th")(head), ...rest.map(line("td")));
      this.told.set(frame, { places: JSON.stringify(rows(frame.places).map((place) => [...place])), body });
    }
    return this.told.get(frame);
  }

  // Playing: through ε, along the trajectories, or one draw of the noise after the other.

  pressed(what) {
    if (this.playing === what) return this.stop(true);
    this.stop(true);
    return this.play(what);
  }

  play(what) {
    if (!this.pack) return;
    if (what === "draws" && !this.draws?.length) {
      this.wanted = true;
      this.send("draws", this.data.epsilon);
      this.said.textContent = "More draws of the noise are being computed.";
      return;
    }
    this.playing = what;
    this.buttons[what].ariaPressed = "true";
    const [tick, pause] = this[`${what}Tick`]();
    if (still.matches) {
      // Whoever wants less motion gets one step a press.
      tick(what === "tracks" ? Infinity : pause);
      this.stop(true);
      return;
    }
    const began = performance.now();
    const next = (now) => {
      if (this.playing !== what) return;
      if (tick(now - began)) this.request = requestAnimationFrame(next);
      else this.stop(true);
    };
    this.request = requestAnimationFrame(next);
  }

  stop(ended = false) {
    if (!this.playing) return;
    const was = this.playing;
    this.playing = null;
    cancelAnimationFrame(this.request);
    this.buttons[was].ariaPressed = "false";
    if (was === "epsilon" && ended) this.commit();
    else if (was !== "draws" && ended) this.show();
  }

  epsilonTick() {
    const last = this.data.stops.length - 1;
    const first = this.at >= last ? -1 : this.at;
    return [(time) => {
      const index = first + Math.floor(time / STOP_MS);
      if (index > last) return false;
      if (index >= 0 && index !== this.at) for (const view of views) view.goTo(index);
      return index < last;
    }, STOP_MS];
  }

  tracksTick() {
    const frame = this.frames[this.nearest(this.at)];
    const steps = frame.layers.tracks.shape[0] - 1;
    return [(time) => {
      const along = Math.min(time / STEP_MS, steps);
      this.draw(frame, along);
      return along < steps;
    }, STEP_MS];
  }

  drawsTick() {
    let last = -1;
    const first = this.drawn === undefined || this.drawn >= this.draws.length ? 0 : this.drawn;
    this.wanted = false;
    return [(time) => {
      const number = first + Math.floor(time / DRAW_MS) - (still.matches ? 1 : 0);
      if (number >= this.draws.length) {
        this.drawn = 0;
        return false;
      }
      if (number !== last) {
        last = number;
        this.drawn = number + 1;
        const frame = this.draws[number];
        this.draw(frame, undefined, this.draws.slice(0, number));
        this.tell(frame, `Draw ${number + 1} of ${this.draws.length}: the noise of seed ${frame.seed}, the same data.`);
      }
      return true;
    }, DRAW_MS];
  }

  // Drawing. The axes never move: they are those of the public box.

  resize() {
    if (!this.pack) return;
    const width = this.canvas.clientWidth;
    if (!width) return;
    const [[x0, x1], [y0, y1]] = this.pack.box;
    const margin = { left: 3.4 * this.letter, right: 8, top: 8, bottom: 3 * this.letter };
    const inner = width - margin.left - margin.right;
    const tall = this.pack.equal ? (inner * (y1 - y0)) / (x1 - x0) : inner * 0.62;
    // With the handle in one view; a projector gives the picture a share of its height (assets/presenter.css).
    const share = Number(getComputedStyle(this.figure).getPropertyValue("--picture-share"));
    const room = share ? share * innerHeight - margin.top - margin.bottom : clamp(0.55 * innerHeight, 300, 520);
    const height = Math.min(tall, room);
    const across = this.pack.equal ? (height * (x1 - x0)) / (y1 - y0) : inner;
    const left = margin.left + (inner - across) / 2;
    this.area = { left, top: margin.top, width: across, height };
    this.x = (x) => left + ((x - x0) / (x1 - x0)) * across;
    this.y = (y) => margin.top + ((y1 - y) / (y1 - y0)) * height;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const full = height + margin.top + margin.bottom;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(full * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(full * ratio);
      this.canvas.style.height = `${full}px`;
    }
    this.ratio = ratio;
    const { font, ink, colours, pack } = this;
    const look = [width, full, ratio, font, ink, ...Object.values(colours).map((tint) => tint())].join();
    if (look !== this.look || pack !== this.looked) {
      Object.assign(this, { look, looked: pack, backdrop: null });
      this.lines = new WeakMap(); // contour lines and images of surfaces, which depend on size and colours
      this.pictures.clear();
    }
    this.keepRoom();
    if (!this.playing) this.show();
    this.prepare();
  }

  // The longest sentence has its room, so that what is below stays where it is while the handle is dragged.
  keepRoom() {
    const sentences = this.frames.map((frame) => frame?.sentence ?? "");
    const { said } = this;
    said.innerHTML = sentences.reduce((longest, one) => (one.length > longest.length ? one : longest), "");
    said.style.minHeight = "";
    said.style.minHeight = `${said.offsetHeight}px`;
  }

  // The pictures of all frames, one at a time while nothing else is to be done, so that a drag finds them.
  prepare() {
    clearTimeout(this.idle);
    const next = () => {
      const frame = this.frames.find((one) => one && !one.gap && !this.pictures.has(one));
      if (!frame || this.full() || !this.pack) return;
      this.inWords(frame);
      this.keep(frame);
      this.idle = setTimeout(next, 20);
    };
    this.idle = setTimeout(next, 150);
  }

  full(more = 1) {
    return (this.pictures.size + more) * this.canvas.width * this.canvas.height > MOST_PIXELS;
  }

  // Axes, records and what else is the same in every frame, drawn once.
  drawBackdrop() {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: this.canvas.width, height: this.canvas.height });
    const context = canvas.getContext("2d");
    context.scale(this.ratio, this.ratio);
    const { left, top, width, height } = this.area;
    Object.assign(context, { strokeStyle: this.colours.grey(0.5), fillStyle: this.ink, font: this.font, lineWidth: 1 });
    context.strokeRect(left, top, width, height);
    const [[x0, x1], [y0, y1]] = this.pack.box;
    context.textAlign = "center";
    for (const [tick, text] of ticks(x0, x1)) context.fillText(text, this.x(tick), top + height + 1.3 * this.letter);
    context.fillText(this.pack.names[0], left + width / 2, top + height + 2.6 * this.letter);
    context.textAlign = "right";
    for (const [tick, text] of ticks(y0, y1)) context.fillText(text, left - 5, this.y(tick) + 4);
    context.save();
    context.translate(left - 2.5 * this.letter, top + height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(this.pack.names[1], 0, 0);
    context.restore();
    this.clip(context);
    const { grey } = this.pack.still;
    if (grey) {
      context.strokeStyle = this.colours.grey(0.45);
      context.stroke(this.contours(grey, grey.high));
      context.textAlign = "left"; // said where one looks, not in the legend alone
      context.fillText("grey lines: the plain density, not private", left + 6, top + 1.2 * this.letter);
    }
    this.backdrop = canvas;
  }

  clip(context) {
    const { left, top, width, height } = this.area;
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
  }

  draw(frame, along, before = []) {
    if (!this.area) return;
    if (along !== undefined || before.length) {
      this.paint(frame, along, before);
      return;
    }
    const picture = this.pictures.get(frame) ?? this.keep(frame);
    this.pictures.delete(frame);
    this.pictures.set(frame, picture);
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.context.drawImage(picture, 0, 0);
  }

  keep(frame) {
    const picture = document.createElement("canvas");
    Object.assign(picture, { width: this.canvas.width, height: this.canvas.height });
    const screen = this.context;
    this.context = picture.getContext("2d");
    this.paint(frame);
    this.context = screen;
    while (this.pictures.size && this.full()) this.pictures.delete(this.pictures.keys().next().value);
    this.pictures.set(frame, picture);
    return picture;
  }

  paint(frame, along, before = []) {
    if (!this.backdrop) this.drawBackdrop();
    const { context, colours } = this;
    const { surface, tracks, anchors } = frame.layers;
    const { truth, plain, records, truth_line: truthLine, plain_line: plainLine } = this.pack.still;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.backdrop, 0, 0);
    context.save();
    context.scale(this.ratio, this.ratio);
    this.clip(context);
    if (surface) this.drawSurface(surface);
    if (records) this.drawRecords(records, frame.layers.tints);
    if (truthLine) this.drawLine(truthLine, colours.truth(0.6), 4);
    if (plainLine) this.drawLine(plainLine, colours.plain(), 2.5, [8, 6]);
    if (tracks) this.drawTracks(tracks, along);
    if (anchors && along === undefined) this.dots(rows(anchors), 2.5, colours.private(0.35));
    for (const old of before) this.dots(rows(old.places), 4, colours.private(0.25));
    if (along === undefined) this.drawPlaces(frame);
    if (along === undefined) this.drawSure(frame);
    this.crosses(rows(plain));
    this.stars(rows(truth));
    context.restore();
  }

  drawSurface(surface) {
    const { left, top, width, height } = this.area;
    if (!this.lines.has(surface)) {
      this.lines.set(surface, { image: this.image(surface), path: this.contours(surface, this.top) });
    }
    const { image, path } = this.lines.get(surface);
    const { context } = this;
    context.imageSmoothingQuality = "low";
    // The first and the last node lie on the edges of the box: half a pixel of the image is outside.
    const [across, down] = [width / (image.width - 1), height / (image.height - 1)];
    context.drawImage(image, left - across / 2, top - down / 2, width + across, height + down);
    context.strokeStyle = this.colours.private(0.55);
    context.lineWidth = 1;
    context.stroke(path);
  }

  image(surface) {
    const [columns, lines] = surface.steps.shape;
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: columns, height: lines });
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(columns, lines);
    for (let i = 0; i < columns; i += 1) {
      for (let j = 0; j < lines; j += 1) {
        const at = 4 * ((lines - 1 - j) * columns + i);
        pixels.data.set(this.orange, at);
        pixels.data[at + 3] = 150 * clamp(heightOf(surface, i * lines + j) / this.top, 0, 1);
      }
    }
    context.putImageData(pixels, 0, 0);
    return canvas;
  }

  // Marching squares: where each level crosses the sides of a cell, joined two by two.
  contours(surface, top) {
    const [columns, lines] = surface.steps.shape;
    const { left, top: above, width, height } = this.area;
    const path = new Path2D();
    const heights = Float32Array.from(surface.steps.values, (_, i) => heightOf(surface, i));
    const [across, down] = [width / (columns - 1), height / (lines - 1)];
    for (let level = 0; level < LEVELS; level += 1) {
      const z = ((level + 0.5) / LEVELS) * top;
      for (let i = 0; i + 1 < columns; i += 1) {
        for (let j = 0; j + 1 < lines; j += 1) {
          const at = i * lines + j;
          const corners = [heights[at] - z, heights[at + lines] - z, heights[at + lines + 1] - z, heights[at + 1] - z];
          const [a, b, c, d] = corners;
          if (a > 0 === b > 0 && b > 0 === c > 0 && c > 0 === d > 0) continue;
          const ends = [];
          if (a > 0 !== b > 0) ends.push([i + a / (a - b), j]);
          if (b > 0 !== c > 0) ends.push([i + 1, j + b / (b - c)]);
          if (c > 0 !== d > 0) ends.push([i + d / (d - c), j + 1]);
          if (d > 0 !== a > 0) ends.push([i, j + a / (a - d)]);
          ends.forEach(([u, v], k) => path[k % 2 ? "lineTo" : "moveTo"](left + u * across, above + height - v * down));
        }
      }
    }
    return path;
  }

  drawTracks({ values, shape: [steps, starts] }, along = steps - 1) {
    const { context, colours } = this;
    const place = (step, start) => {
      const at = 2 * (step * starts + start);
      return [this.x(values[at]), this.y(values[at + 1])];
    };
    const whole = Math.floor(along);
    const ends = [];
    context.beginPath();
    for (let start = 0; start < starts; start += 1) {
      let end = place(0, start);
      context.moveTo(...end);
      for (let step = 1; step <= whole; step += 1) context.lineTo(...(end = place(step, start)));
      if (along > whole) {
        const next = place(whole + 1, start);
        end = end.map((from, axis) => from + (along - whole) * (next[axis] - from));
        context.lineTo(...end);
      }
      ends.push(end);
    }
    Object.assign(context, { strokeStyle: colours.private(0.5), lineWidth: 1.3 });
    context.stroke();
    if (along < steps - 1) {
      context.beginPath();
      for (const [x, y] of ends) {
        context.moveTo(x + 4, y);
        context.arc(x, y, 4, 0, 7);
      }
      context.lineWidth = 2;
      context.stroke();
    }
  }

  // Where all three marks coincide, the cross and the star stand within the circle.
  // Many places are those of a curve, with a line for each branch where these are known.  A place is small within a
  // region that it would otherwise hide.
  drawPlaces({ places, layers: { branches, regions } }) {
    const few = places.shape[0] <= 20;
    if (branches) {
      const values = rows(places).flatMap((place, i) => {
        const goesOn = branches.values[i] === branches.values[i - 1];
        return goesOn ? [...place] : [NaN, NaN, ...place];
      });
      this.drawLine({ values }, this.colours.private(), 2.5);
    }
    const hidden = (place, i) => { // whether a large mark would hide the region around it
      const [a, b, c, d] = regions?.values.subarray(4 * i, 4 * i + 4) ?? [];
      const [x, y] = [this.x(Math.hypot(a, b)) - this.x(0), this.y(0) - this.y(Math.hypot(c, d))];
      return Math.max(x, y) > 11;
    };
    const all = [...rows(places)];
    const small = all.filter((place, i) => !few || hidden(place, i));
    this.dots(all.filter((place) => !small.includes(place)), 10, this.colours.private(0.9), "white");
    this.dots(small, 4, this.colours.private(0.9), "white");
  }

  // How sure the places are: the region around each mode, or the edges of the band along each branch.
  drawSure({ places, layers: { regions, band, branches } }) {
    const { context, colours } = this;
    const line = [];
    for (let i = 0; regions && i < places.shape[0]; i += 1) {
      const [a, b, c, d] = regions.values.subarray(4 * i, 4 * i + 4);
      for (let k = 0; k <= 60; k += 1) {
        const [u, v] = [Math.cos((k * Math.PI) / 30), Math.sin((k * Math.PI) / 30)];
        line.push(places.values[2 * i] + a * u + b * v, places.values[2 * i + 1] + c * u + d * v);
      }
      line.push(NaN, NaN);
    }
    for (const edge of band ? [0, 1] : []) {
      for (let i = 0; i < places.shape[0]; i += 1) {
        if (branches?.values[i] !== branches?.values[i - 1]) line.push(NaN, NaN);
        line.push(places.values[2 * i], heightOf(band, 2 * i + edge));
      }
      line.push(NaN, NaN);
    }
    if (line.length) this.drawLine({ values: line }, colours.private(0.8), 1.5);
  }

  // A line through places (x, y, x, y, …), broken where one is no number.
  drawLine({ values }, colour, width, dashes = []) {
    const { context } = this;
    context.beginPath();
    for (let i = 0, on = false; i < values.length; i += 2) {
      const known = !Number.isNaN(values[i]);
      if (known) context[on ? "lineTo" : "moveTo"](this.x(values[i]), this.y(values[i + 1]));
      on = known;
    }
    Object.assign(context, { strokeStyle: colour, lineWidth: width });
    context.setLineDash(dashes);
    context.stroke();
    context.setLineDash([]);
  }

  drawRecords({ values, shape: [count] }, tints) {
    const { context } = this;
    const faint = clamp(12 / Math.sqrt(count), 0.12, 0.45);
    context.globalAlpha = tints ? 0.6 : faint;
    const kinds = tints ? [...new Set(tints.values)] : [null];
    for (const kind of kinds) {
      context.fillStyle = kind === null ? this.colours.plain() : this.pack.tints[kind];
      for (let i = 0; i < count; i += 1) {
        if (kind === null || tints.values[i] === kind) {
          context.fillRect(this.x(values[2 * i]) - 1.5, this.y(values[2 * i + 1]) - 1.5, 3, 3);
        }
      }
    }
    context.globalAlpha = 1;
  }

  dots(places, size, fill, rim) {
    const { context } = this;
    context.beginPath();
    for (const [x, y] of places) {
      context.moveTo(this.x(x) + size, this.y(y));
      context.arc(this.x(x), this.y(y), size, 0, 7);
    }
    context.fillStyle = fill;
    context.fill();
    if (!rim) return;
    Object.assign(context, { strokeStyle: rim, lineWidth: 1.5 });
    context.stroke();
  }

  crosses(places) {
    const { context } = this;
    context.beginPath();
    for (const [a, b] of places) {
      const [x, y] = [this.x(a), this.y(b)];
      context.moveTo(x - 5, y - 5);
      context.lineTo(x + 5, y + 5);
      context.moveTo(x - 5, y + 5);
      context.lineTo(x + 5, y - 5);
    }
    Object.assign(context, { strokeStyle: this.colours.plain(), lineWidth: 2.5 });
    context.stroke();
  }

  stars(places) {
    const { context } = this;
    for (const [a, b] of places) {
      context.beginPath();
      for (let i = 0; i < 10; i += 1) {
        const [size, angle] = [i % 2 ? 2.5 : 6, (i * Math.PI) / 5];
        context.lineTo(this.x(a) + size * Math.sin(angle), this.y(b) - size * Math.cos(angle));
      }
      context.closePath();
      Object.assign(context, { fillStyle: this.colours.truth(), strokeStyle: "white", lineWidth: 1 });
      context.fill();
      context.stroke();
    }
  }
}

// About five round numbers over a range, with their texts.
function ticks(low, high) {
  const raw = (high - low) / 5;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= raw);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
    found.push([i * step, (i * step).toFixed(digits).replace("-", "−")]);
  }
  return found;
}
