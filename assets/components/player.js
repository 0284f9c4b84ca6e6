// A deck in one file, without a server: `bar`, `handle` and `start` are the pages' components, with their templates here.
const deck = JSON.parse(document.getElementById("deck").textContent);
const stage = document.getElementById("stage");
const line = document.querySelector(".answer");
let closing = [];
let shown = 0;

const rooted = (host, name) => {
  const root = host.attachShadow({ mode: "open" });
  root.append(document.getElementById(`${name}-template`).content.cloneNode(true));
  return root;
};
const barRoot = rooted(document.getElementById("bar"), "bar");
barRoot.querySelector("[data-do=leave]").remove(); // there is nowhere to go

// The ground and the letters of the reader's scheme; what a chart colours itself stays as it is.
function themed(layout) {
  const style = getComputedStyle(document.documentElement);
  const [ground, text, line] = ["background", "text", "border"].map((name) => style.getPropertyValue(`--st-${name}-color`).trim());
  const base = structuredClone(layout.template.layout);
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line };
  for (const name of ["xaxis", "yaxis"]) Object.assign(base[name], axis);
  for (const one of Object.values(base.scene ?? {})) Object.assign(one, axis, { backgroundcolor: ground });
  Object.assign(base, { paper_bgcolor: ground, plot_bgcolor: ground, font: { ...base.font, color: text } });
  return { ...layout, template: { ...layout.template, layout: base } };
}

function picture(place, { state, pack, figure }) {
  if (figure) {
    Plotly.newPlot(place, figure.data, themed(figure.layout), { displaylogo: false, responsive: true });
    return () => Plotly.purge(place);
  }
  const bytes = Uint8Array.from(atob(pack), (letter) => letter.charCodeAt(0));
  if (state.start) {
    start({ data: bytes });
    return start({ data: state, parentElement: rooted(place, "start") });
  }
  const { heard } = globalThis.dpgramsPost;
  heard(bytes);
  heard(state);
  const setTriggerValue = (what, epsilon) => what === "epsilon" && heard({ ...state, epsilon });
  return handle({ data: { name: state.name }, parentElement: rooted(place, "handle"), setTriggerValue });
}

function show(number) {
  if (!(number >= 0 && number < deck.length)) return;
  shown = number;
  for (const close of closing) close();
  const { title, notes, line: said, pictures } = deck[number];
  document.title = title;
  line.hidden = !said; // a picture with a handle has its own line
  line.innerHTML = said; // our own words and numbers, as on the page
  const places = pictures.map(() => document.createElement("div"));
  stage.replaceChildren(...places);
  const closed = pictures.map((one, i) => picture(places[i], one));
  const data = { scene: number + 1, scenes: deck.length, title, notes };
  closed.push(bar({ data, parentElement: barRoot, setTriggerValue: (_, step) => show(number + step) }));
  closing = closed;
  history.replaceState(null, "", `#${number + 1}`);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(shown));
show(Math.min(Math.max(Number(location.hash.slice(1)) - 1 || 0, 0), deck.length - 1));
