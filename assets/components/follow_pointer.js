// A chart that follows the pointer over another one: in the browser, so it answers at once.  Streamlit tells the server
// nothing of a hovering pointer, and a rerun would wait for a curve that is being drawn.  So what the second chart would
// show at every place x is sent along, and the browser shows the one under the pointer.
// Nobody may ever point there, so it is asked for when the pointer first comes.
let moved; // the last movement: the pointer may rest once it has asked

export default function ({ data, setStateValue }) {
  let heard = () => {};
  if (data.wanted) heard = asking(data, setStateValue);
  else
    unsqueezed(data).then((frames) => {
      heard = following(frames);
      if (moved) heard(moved);
    });
  const listen = (event) => heard((moved = event));
  document.addEventListener("mousemove", listen);
  return () => document.removeEventListener("mousemove", listen);
}

// A word that comes while the whole page is drawn anew may be lost, so it is said again while the pointer moves there.
function asking({ source, wanted }, setStateValue) {
  let last = 0;
  return (event) => {
    if (Date.now() - last < 1000 || !event.target.closest?.(`.st-key-${source}`)) return;
    last = Date.now();
    setStateValue("wanted", `${wanted} ${last}`);
  };
}

function following(data) {
  const chartOf = (key) => document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const places = data.names.map(Number);
  let shown = data.rest;
  const show = (name) => {
    const target = chartOf(data.target);
    if (name === shown || !target || !window.Plotly) return;
    shown = name;
    const i = data.names.indexOf(name);
    const y = data.still.map((still, trace) => still ?? data.y[i][trace]);
    window.Plotly.update(target, { x: data.x[i], y }, { annotations: [data.labels[i]] });
  };
  return (event) => {
    const source = event.target.closest ? event.target.closest(".js-plotly-plot") : null;
    const area = source && source === chartOf(data.source) ? source.querySelector(".nsewdrag") : null;
    if (!area) return show(data.rest);
    const { left, width } = area.getBoundingClientRect();
    const [low, high] = source.layout.xaxis.range;
    const x = low + ((event.clientX - left) / width) * (high - low);
    const nearest = places.reduce((best, place, i) => (Math.abs(place - x) < Math.abs(places[best] - x) ? i : best), 0);
    show(data.names[nearest]);
  };
}

// See `squeezed` in dpgrams_core/figures/regression.py: zlib, and of the densities the changes of their changes.
async function unsqueezed(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = JSON.parse(await new Response(stream).text());
  const summed = (bends) => {
    let [last, step] = [0, 0];
    return bends.map((bend) => (bend === null ? null : (last += step += bend) / 1e4));
  };
  data.x = data.x.map((frame) => frame.map(summed));
  return data;
}
