// A deck in one file, without a server: `bar` is presenter.js and `handle` is handle.js, with their templates in the page.
const deck = JSON.parse(document.getElementById("deck").textContent);
const stage = document.getElementById("stage");
const line = document.querySelector(".answer");
let closing = [];

const rooted = (host, name) => {
  const root = host.attachShadow({ mode: "open" });
  root.append(document.getElementById(`${name}-template`).content.cloneNode(true));
  return root;
};
const barRoot = rooted(document.getElementById("bar"), "bar");
barRoot.querySelector("[data-do=leave]").remove(); // there is nowhere to go

function picture(place, { state, pack, figure }) {
  if (figure) {
    Plotly.newPlot(place, figure.data, figure.layout, { displaylogo: false, responsive: true });
    return () => Plotly.purge(place);
  }
  const { heard } = globalThis.dpgramsPost;
  heard(Uint8Array.from(atob(pack), (letter) => letter.charCodeAt(0)));
  heard(state);
  const setTriggerValue = (what, epsilon) => what === "epsilon" && heard({ ...state, epsilon });
  return handle({ data: { name: state.name }, parentElement: rooted(place, "handle"), setTriggerValue });
}

function show(number) {
  if (!(number >= 0 && number < deck.length)) return;
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

show(Math.min(Math.max(Number(location.hash.slice(1)) - 1 || 0, 0), deck.length - 1));
