// The first page's picture.  The engine's arrays (dpgrams_core/figures/start.py) come in one message; the exact picture
// without a person is f - k_h(., x), and what is released at an ε is smooth + σ unit: both are sums of what was sent.
// Peaks, sentences and scores of each ε and each draw are the engine's own.
const packs = new Map();
const views = new Set();
const TYPES = { f8: Float64Array, f4: Float32Array };
const LEVELS = 8;
const TWITCH_MS = 450;
const FINGER = 24; // pixels within which a dot is hit
const still = matchMedia("(prefers-reduced-motion: reduce)");
const STEPS = [
  ["Where people gather is called a mode, or a peak. Here are four, among 300 people.", ".released .picture"],
  ["Take one person out: click a dot. The exact picture twitches, and that twitch gives the person away.", ".people .picture"],
  ["So we add noise as large as one person’s twitch, or larger. Press New noise three times: the peaks stay, the twitch drowns.", ".noise button"],
  ["ε trades the two. Drag it: less ε hides each person better, more ε shows the peaks better.", ".handle"],
  ["Do you believe us? You need not: an attack was played against a true claim and against a false one.", ".believe"],
];

export default function ({ data, parentElement }) {
  if (ArrayBuffer.isView(data)) {
    const pack = unpacked(data);
    packs.set(pack.name, pack);
    for (const view of views) view.arrived();
    return undefined;
  }
  let view = [...views].find((one) => one.root === parentElement);
  if (!view) views.add((view = new View(parentElement)));
  view.name = data.name;
  view.arrived();
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
const rows = (array) => Array.from({ length: array.shape[0] }, (_, i) => array.values.subarray(2 * i, 2 * i + 2));
const one = (value) => (value < 10 ? value.toFixed(1) : value.toFixed(0));

class View {
  constructor(root) {
    this.root = root;
    const find = (query) => root.querySelector(query);
    this.find = find;
    Object.assign(this, { step: 0, draw: 0, out: null, amount: 0, at: 0 });
    this.left = find(".people canvas");
    this.right = find(".released canvas");
    this.pick = find(".pick");
    this.range = find("input");
    this.observer = new ResizeObserver(() => this.paint());
    this.observer.observe(this.left);
    this.observer.observe(this.right);
    this.range.addEventListener("input", () => this.goTo(Number(this.range.value)));
    this.pick.addEventListener("click", (event) => this.clicked(event));
    this.pick.addEventListener("keydown", (event) => this.key(event));
    this.pick.addEventListener("focus", () => this.pick.matches(":focus-visible") && this.out === null && this.take(this.last ?? 0));
    find(".again").addEventListener("click", () => this.again());
    find(".previous").addEventListener("click", () => this.goOn(-1));
    find(".next").addEventListener("click", () => this.goOn(1));
    // The page's colours change with the system's.
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => setTimeout(() => this.paint(), 100);
    this.scheme.addEventListener("change", this.repaint);
  }

  close() {
    cancelAnimationFrame(this.request);
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.repaint);
  }

  arrived() {
    const pack = packs.get(this.name);
    if (!pack) return;
    const fresh = !this.pack;
    this.pack = pack;
    this.people = rows(pack.points);
    this.range.max = pack.stops.length - 1;
    this.pick.ariaValueMax = this.people.length;
    this.find(".again").disabled = pack.draws.length < 2;
    this.find("section").dataset.draws = pack.draws.length;
    if (!fresh) return this.tellMean();
    (this.root.host ?? this.root).closest?.(".st-key-start")?.setAttribute("data-drawn", ""); // what is below may come
    this.believe();
    this.stepTo(0);
    this.saidTwitch();
    this.goTo(pack.stops.indexOf(pack.first));
  }

  get frame() {
    return this.pack.draws[this.draw].frames[this.at];
  }

  // Five steps.

  stepTo(step) {
    this.step = clamp(step, 0, STEPS.length - 1);
    const [words, part] = STEPS[this.step];
    this.find(".step b").textContent = this.step + 1;
    this.find(".step span").textContent = words;
    this.find(".previous").disabled = this.step === 0;
    this.find(".next").disabled = this.step === STEPS.length - 1;
    this.find(".believe").hidden = part !== ".believe";
    this.find(".said").hidden = part === ".believe"; // it stands in their place: the page must not grow
    for (const other of this.root.querySelectorAll(".now")) other.classList.remove("now");
    if (this.step > 0 && part !== ".believe") this.find(part).classList.add("now");
    this.find("section").dataset.step = this.step + 1;
  }

  // On a phone the part that a step speaks of may be out of sight.
  goOn(by) {
    this.stepTo(this.step + by);
    const [, part] = STEPS[this.step];
    this.find(part).scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
  }

  believe() {
    const { broken_sum: wrong, functional: right } = this.pack.audits;
    const percent = `${100 * right.confidence}% confidence`;
    this.find(".right").innerHTML = `<b>The method of this page</b> claims ε = ${right.claimed}. ${right.trials} games in each of two
      worlds of ${right.people}, alike but for one person, showed ε ≥ ${right.shown.toFixed(2)} (${percent}): <b>not refuted</b>.`;
    this.find(".wrong").innerHTML = `<b>A method with too little noise</b> also claims ε = ${wrong.claimed}. The same ${wrong.trials}
      games showed ε ≥ ${wrong.shown.toFixed(2)} (${percent}): <b>caught</b>.`;
  }

  // ε and the noise.

  goTo(index) {
    if (!this.pack) return;
    this.at = this.range.value = index;
    this.range.style.setProperty("--share", `${(100 * index) / this.range.max}%`);
    this.tell();
    this.paint();
  }

  again() {
    const before = this.pack.draws[this.draw].unit.values;
    this.draw = (this.draw + 1) % this.pack.draws.length;
    const now = this.pack.draws[this.draw].unit.values;
    const moved = this.frame.sigma * now.reduce((most, value, i) => Math.max(most, Math.abs(value - before[i])), 0);
    this.tell(` This press moved the picture by up to ${one(moved)} people.`);
    this.paint();
  }

  tell(moved = "") {
    const { frame } = this;
    const output = this.find("output");
    output.textContent = `ε = ${frame.text}`;
    this.range.ariaValueText = output.textContent;
    this.find(".learned p").innerHTML = frame.learned; // our own words and numbers
    this.find(".found .words").innerHTML = frame.found;
    this.find(".learned i").style.width = `${100 * frame.sure}%`;
    this.find(".found i").style.width = `${100 * frame.share}%`;
    this.tellMean();
    this.find(".noise p").textContent = `The noise is ${frame.noise} times one person’s twitch.${moved}`;
    this.right.ariaLabel = `${this.find(".found .words").textContent} ${output.textContent}.`;
    const line = (kind) => (texts) => {
      const row = document.createElement("tr");
      row.append(...texts.map((text) => Object.assign(document.createElement(kind), { textContent: text })));
      return row;
    };
    const [head, ...body] = frame.table;
    this.find("table").replaceChildren(line("th")(head), ...body.map(line("td")));
    Object.assign(this.find("section").dataset, { epsilon: frame.epsilon, seed: this.pack.draws[this.draw].seed, sigma: frame.sigma });
    this.find("section").dataset.places = JSON.stringify(rows(frame.places).map((place) => [...place]));
  }

  // One draw may be lucky or not: what all draws that are here find, on average.
  tellMean() {
    const { draws, truth } = this.pack;
    const mean = draws.reduce((sum, draw) => sum + draw.frames[this.at].share, 0) / draws.length;
    this.find(".mean").textContent = draws.length < 2 ? "" : `Mean of ${draws.length} draws: ${(mean * truth.shape[0]).toFixed(1)} of ${truth.shape[0]}.`;
  }

  // A person is taken out.

  clicked(event) {
    const { x, y } = this.scale(this.left);
    const box = this.left.getBoundingClientRect();
    const far = this.people.map(([a, b]) => Math.hypot(x(a) - event.clientX + box.left, y(b) - event.clientY + box.top));
    const nearest = far.indexOf(Math.min(...far));
    this.take(far[nearest] > FINGER || nearest === this.out ? null : nearest);
  }

  key(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    const here = this.out ?? this.last ?? 0;
    if (way) this.take(this.out === null ? here : this.next(here, way));
    else if (event.key === "Home") this.take(0);
    else if (event.key === "End") this.take(this.people.length - 1);
    else if (event.key === "Enter" || event.key === " ") this.take(this.out === null ? here : null);
    else if (event.key === "Escape") this.take(null);
    else return;
    event.preventDefault();
  }

  // The nearest person in a direction; what lies aside of it counts twice.
  next(from, [dx, dy]) {
    const [a, b] = this.people[from];
    let [best, least] = [from, Infinity];
    this.people.forEach(([x, y], i) => {
      const along = (x - a) * dx + (y - b) * dy;
      const aside = Math.abs((x - a) * dy) + Math.abs((y - b) * dx);
      if (i !== from && along > 0 && aside <= 2 * along && along + 2 * aside < least) [best, least] = [i, along + 2 * aside];
    });
    return best;
  }

  take(person) {
    this.out = person;
    if (person !== null) this.last = person;
    this.pick.ariaValueNow = person === null ? 0 : person + 1;
    this.saidTwitch();
    cancelAnimationFrame(this.request);
    this.amount = still.matches ? 1 : 0;
    const began = performance.now();
    const go = (now) => {
      const t = clamp((now - began) / TWITCH_MS, 0, 1);
      this.amount = 1 - Math.cos(2.5 * Math.PI * t) * (1 - t); // over the mark once, then still
      if (t === 1) this.amount = 1;
      this.paint();
      if (t < 1) this.request = requestAnimationFrame(go);
    };
    if (still.matches || person === null) this.paint();
    else this.request = requestAnimationFrame(go);
  }

  saidTwitch() {
    const { enlarged, top } = this.pack;
    const text = this.out === null ? "Nobody is out. Click a dot, or use the arrow keys."
      : `Person ${this.out + 1} is out: the dent (dashed) is theirs, enlarged ${enlarged} times (a hill is ${one(top)} people high). That twitch gives you away.`;
    this.find(".twitch").textContent = text;
    this.pick.ariaValueText = text;
    const { dataset } = this.find("section");
    dataset.out = this.out === null ? "" : this.out;
    dataset.exact = JSON.stringify(this.sum(this.heights(1)));
  }

  // Two numbers of the exact picture, by which a test knows it.
  sum(heights) {
    return [heights.reduce((total, value) => total + value, 0), Math.max(...heights)];
  }

  // The exact picture, without the person who is out, so many times.
  heights(times) {
    const { heights, points, bandwidth, box: [[x0, x1], [y0, y1]] } = this.pack;
    if (this.out === null) return heights.values;
    const [columns, lines] = heights.shape;
    const [a, b] = points.values.subarray(2 * this.out, 2 * this.out + 2);
    const factor = (low, high, count, place) => Float64Array.from({ length: count }, (_, i) =>
      Math.exp(-0.5 * ((low + ((high - low) * i) / (count - 1) - place) / bandwidth) ** 2));
    const [u, v] = [factor(x0, x1, columns, a), factor(y0, y1, lines, b)];
    return heights.values.map((height, at) => height - times * u[Math.floor(at / lines)] * v[at % lines]);
  }

  released() {
    const { smooth } = this.pack;
    const { unit } = this.pack.draws[this.draw];
    return Float64Array.from(smooth.values, (height, i) => height + this.frame.sigma * unit.values[i]);
  }

  // Painting.

  scale(canvas) {
    const [[x0, x1], [y0, y1]] = this.pack.box;
    const { clientWidth: width, clientHeight: height } = canvas;
    return { width, height, x: (a) => ((a - x0) / (x1 - x0)) * width, y: (b) => ((y1 - b) / (y1 - y0)) * height };
  }

  paint() {
    if (!this.pack || !this.left.clientWidth) return;
    const style = getComputedStyle(this.find("section"));
    const tint = (name) => (alpha = 1) => `rgba(${style.getPropertyValue(`--${name}`)},${alpha})`;
    const colours = { ink: style.color, paper: style.getPropertyValue("--st-background-color"), blue: tint("non-private"), orange: tint("private"), green: tint("truth") };
    const [blue, orange] = ["non-private", "private"].map((name) => style.getPropertyValue(`--${name}`).split(",").map(Number));
    const exact = this.begin(this.left);
    const left = this.heights(this.amount * this.pack.enlarged);
    this.hills(exact, this.left, left, blue, colours.blue(0.6));
    if (this.out !== null) this.dent(exact, left, colours.ink);
    this.dots(exact, colours);
    const noisy = this.begin(this.right);
    this.hills(noisy, this.right, this.released(), orange, colours.orange(0.5));
    this.peaks(noisy, colours);
  }

  begin(canvas) {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((side) => Math.round(side * ratio));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    return context;
  }

  hills(context, canvas, heights, colour, line) {
    const [columns, lines] = this.pack.heights.shape;
    const { width, height } = this.scale(canvas);
    const { top } = this.pack;
    const image = document.createElement("canvas");
    Object.assign(image, { width: columns, height: lines });
    const inner = image.getContext("2d");
    const pixels = inner.createImageData(columns, lines);
    for (let i = 0; i < columns; i += 1) {
      for (let j = 0; j < lines; j += 1) {
        const at = 4 * ((lines - 1 - j) * columns + i);
        pixels.data.set(colour, at);
        pixels.data[at + 3] = 150 * clamp(heights[i * lines + j] / top, 0, 1);
      }
    }
    inner.putImageData(pixels, 0, 0);
    // The first and the last node lie on the edges of the box: half a pixel of the image is outside.
    const [across, down] = [width / (columns - 1), height / (lines - 1)];
    context.drawImage(image, -across / 2, -down / 2, width + across, height + down);
    Object.assign(context, { strokeStyle: line, lineWidth: 1 });
    context.stroke(contours(heights, columns, lines, top, across, down, height));
  }

  // Lines of equal depth: within a dense hill the colour alone would not show it.
  dent(context, left, ink) {
    const { heights, enlarged } = this.pack;
    const [columns, lines] = heights.shape;
    const { width, height } = this.scale(this.left);
    const depth = left.map((value, at) => heights.values[at] - value);
    context.setLineDash([5, 4]);
    Object.assign(context, { strokeStyle: ink, lineWidth: 1.5 });
    context.stroke(contours(depth, columns, lines, enlarged, width / (columns - 1), height / (lines - 1), height, 3));
    context.setLineDash([]);
  }

  dots(context, colours) {
    const { x, y } = this.scale(this.left);
    context.fillStyle = colours.ink;
    context.globalAlpha = 0.75;
    this.people.forEach(([a, b], i) => {
      if (i === this.out) return;
      context.beginPath();
      context.arc(x(a), y(b), 2.6, 0, 7);
      context.fill();
    });
    context.globalAlpha = 1;
    if (this.out === null) return;
    const [a, b] = this.people[this.out];
    for (const [size, colour, wide] of [[9, colours.paper, 5], [9, colours.ink, 2]]) {
      context.beginPath();
      context.arc(x(a), y(b), size, 0, 7);
      Object.assign(context, { strokeStyle: colour, lineWidth: wide });
      context.stroke();
    }
  }

  peaks(context, colours) {
    const { x, y } = this.scale(this.right);
    for (const [a, b] of rows(this.frame.places)) {
      context.beginPath();
      context.arc(x(a), y(b), 10, 0, 7);
      Object.assign(context, { fillStyle: colours.orange(), strokeStyle: "white", lineWidth: 2 });
      context.fill();
      context.stroke();
    }
    for (const [a, b] of rows(this.pack.truth)) {
      context.beginPath();
      for (let i = 0; i < 10; i += 1) {
        const [size, angle] = [i % 2 ? 3 : 7, (i * Math.PI) / 5];
        context.lineTo(x(a) + size * Math.sin(angle), y(b) - size * Math.cos(angle));
      }
      context.closePath();
      Object.assign(context, { fillStyle: colours.green(), strokeStyle: "white", lineWidth: 1 });
      context.fill();
      context.stroke();
    }
  }
}

// Marching squares: where each level crosses the sides of a cell, joined two by two.
function contours(heights, columns, lines, top, across, down, height, levels = LEVELS) {
  const path = new Path2D();
  for (let level = 0; level < levels; level += 1) {
    const z = ((level + 0.5) / levels) * top;
    for (let i = 0; i + 1 < columns; i += 1) {
      for (let j = 0; j + 1 < lines; j += 1) {
        const at = i * lines + j;
        const [a, b, c, d] = [heights[at] - z, heights[at + lines] - z, heights[at + lines + 1] - z, heights[at + 1] - z];
        if (a > 0 === b > 0 && b > 0 === c > 0 && c > 0 === d > 0) continue;
        const ends = [];
        if (a > 0 !== b > 0) ends.push([i + a / (a - b), j]);
        if (b > 0 !== c > 0) ends.push([i + 1, j + b / (b - c)]);
        if (c > 0 !== d > 0) ends.push([i + d / (d - c), j + 1]);
        if (d > 0 !== a > 0) ends.push([i, j + a / (a - d)]);
        ends.forEach(([u, v], k) => path[k % 2 ? "lineTo" : "moveTo"](u * across, height - v * down));
      }
    }
  }
  return path;
}
