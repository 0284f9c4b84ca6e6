// One person is moved by hand, from node to node of a lattice.  How far the exact picture twitches at each node is the
// engine's (studies/lessons.py, twitch_shares); what is painted is the change |k_h(., place) - k_h(., home)| itself.
const NODES = 60;
const QUIET_MS = 400; // after the last arrow key the page hears where the person is
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const kept = new WeakMap(); // the largest twitch that was found so far, by the place of the picture

export default function ({ data, parentElement, setTriggerValue }) {
  const { box: [[x0, x1], [y0, y1]], points, home, lattice, shares, bandwidth, held, step } = data;
  const find = (query) => parentElement.querySelector(query);
  const [canvas, pick] = [find("canvas"), find(".pick")];
  let here = data.place.map((value) => lattice.indexOf(value));
  let timer;
  if (kept.get(parentElement)?.step !== step) kept.set(parentElement, { step, share: 0 });
  const most = kept.get(parentElement);
  const place = () => here.map((index) => lattice[index]);
  const percent = (share) => `${Math.round(100 * share)}%`;
  const written = ([x, y]) => `(${x}, ${y})`;

  function tell() {
    const share = shares[here[0]][here[1]];
    if (share > most.share + 1e-9) Object.assign(most, { share, place: place() });
    const told = `From ${written(home)} to ${written(place())} the exact picture twitches by ${percent(share)} of the largest twitch that anybody can cause.`;
    find(".said").textContent = told;
    find("i").style.width = `${100 * share}%`;
    find("u").style.left = `${100 * most.share}%`;
    find(".most").textContent = held || !most.place ? "" : `Largest that you found: ${percent(most.share)}, at ${written(most.place)}.`;
    Object.assign(pick, { ariaValueNow: String(Math.round(100 * share)), ariaValueText: told, ariaDisabled: String(held) });
    Object.assign(find("figure").dataset, { place: place().join(","), share });
    paint();
  }

  function paint() {
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const style = getComputedStyle(find("figure"));
    const colours = new Map(["non-private", "plain-text", "no-privacy"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
    const tint = (name) => colours.get(name);
    const [x, y] = [(a) => ((a - x0) / (x1 - x0)) * width, (b) => ((y1 - b) / (y1 - y0)) * height];
    const hill = (middle, a, b) => Math.exp((-0.5 * ((a - middle[0]) ** 2 + (b - middle[1]) ** 2)) / bandwidth ** 2);
    const to = place();
    const image = new OffscreenCanvas(NODES, NODES);
    const inner = image.getContext("2d");
    for (let i = 0; i < NODES; i += 1) {
      for (let j = 0; j < NODES; j += 1) {
        const [a, b] = [x0 + ((i + 0.5) * (x1 - x0)) / NODES, y0 + ((j + 0.5) * (y1 - y0)) / NODES];
        inner.fillStyle = `rgba(${tint("non-private")},${0.85 * Math.abs(hill(to, a, b) - hill(home, a, b))})`;
        inner.fillRect(i, NODES - 1 - j, 1, 1);
      }
    }
    context.drawImage(image, 0, 0, width, height);
    context.fillStyle = `rgba(${tint("plain-text")},0.55)`;
    for (const [a, b] of points) {
      context.beginPath();
      context.arc(x(a), y(b), 2.2, 0, 7);
      context.fill();
    }
    for (const [[a, b], full] of [[home, false], [to, true]]) {
      context.beginPath();
      for (const [right, up] of [[0, 11], [11, 0], [0, -11], [-11, 0]]) context.lineTo(x(a) + right, y(b) - up);
      context.closePath();
      Object.assign(context, { fillStyle: `rgb(${tint("no-privacy")})`, lineWidth: 2.5 });
      context.strokeStyle = full ? style.getPropertyValue("--st-background-color") : context.fillStyle;
      if (full) context.fill();
      context.stroke();
    }
  }

  const move = (wanted) => {
    here = wanted.map((index) => Math.min(lattice.length - 1, Math.max(0, index)));
    tell();
  };
  const letGo = () => setTriggerValue("place", place().join(","));
  const drag = (event) => {
    const edge = canvas.getBoundingClientRect();
    const at = [x0 + ((event.clientX - edge.left) / edge.width) * (x1 - x0), y1 - ((event.clientY - edge.top) / edge.height) * (y1 - y0)];
    move(at.map((value) => Math.round((value - lattice[0]) / (lattice[1] - lattice[0]))));
  };
  pick.onpointerdown = held ? null : (event) => {
    pick.setPointerCapture(event.pointerId);
    drag(event);
  };
  pick.onpointermove = (event) => pick.hasPointerCapture(event.pointerId) && drag(event);
  pick.onpointerup = held ? null : letGo;
  pick.onkeydown = (event) => {
    const way = KEYS[event.key];
    if (held || !way) return;
    event.preventDefault();
    move(here.map((index, axis) => index + way[axis]));
    clearTimeout(timer);
    timer = setTimeout(letGo, QUIET_MS);
  };
  const observer = new ResizeObserver(paint);
  observer.observe(canvas);
  tell();
  return () => observer.disconnect();
}
