// A chart that follows the pointer over another one: in the browser, so it answers at once.  Streamlit tells the server
// nothing of a hovering pointer, and a rerun would wait for a curve that is being drawn.  So what the second chart would
// show at every place x is sent along, and the browser shows the one under the pointer.
export default function ({ data }) {
  const chartOf = (key) => document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const { frames } = data;
  const places = frames.names.map(Number);
  let shown = data.rest;
  const show = (name) => {
    const target = chartOf(data.target);
    if (name === shown || !target || !window.Plotly) return;
    shown = name;
    const i = frames.names.indexOf(name);
    const y = frames.still.map((still, trace) => still ?? frames.y[i][trace]);
    window.Plotly.update(target, { x: frames.x[i], y }, { annotations: [frames.labels[i]] });
  };
  const follow = (event) => {
    const source = event.target.closest ? event.target.closest(".js-plotly-plot") : null;
    const area = source && source === chartOf(data.source) ? source.querySelector(".nsewdrag") : null;
    if (!area) return show(data.rest);
    const { left, width } = area.getBoundingClientRect();
    const [low, high] = source.layout.xaxis.range;
    const x = low + ((event.clientX - left) / width) * (high - low);
    const nearest = places.reduce((best, place, i) => (Math.abs(place - x) < Math.abs(places[best] - x) ? i : best), 0);
    show(frames.names[nearest]);
  };
  document.addEventListener("mousemove", follow);
  return () => document.removeEventListener("mousemove", follow);
}
