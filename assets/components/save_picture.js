// The browser has drawn the picture already, so it saves it too, as it stands on the screen (colours, zoom, camera): on
// the page's own background, and in a font that a lone picture finds again.
export default function ({ data, parentElement }) {
  // A picture of our own is a canvas, within its component: a PNG of it on the page's background.
  const saveCanvas = (drawn, paper) => {
    const copy = Object.assign(document.createElement("canvas"), { width: drawn.width, height: drawn.height });
    const context = copy.getContext("2d");
    Object.assign(context, { fillStyle: paper }).fillRect(0, 0, copy.width, copy.height);
    context.drawImage(drawn, 0, 0);
    const epsilon = drawn.closest("figure")?.dataset.epsilon; // of what is shown, which the handle may have moved
    const download = `${data.name}${epsilon ? `-epsilon-${epsilon}` : ""}.png`;
    Object.assign(document.createElement("a"), { href: copy.toDataURL(), download }).click();
  };
  const save = (format) => {
    const drawn = document.querySelector(`[class*="st-key-${data.chart}"] .js-plotly-plot`);
    const paper = getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor;
    if (data.canvas) {
      const hosts = document.querySelectorAll(`.st-key-${data.chart} *`);
      const canvas = [...hosts].map((host) => host.shadowRoot?.querySelector("canvas")).find(Boolean);
      if (canvas) saveCanvas(canvas, paper);
      return;
    }
    if (!drawn || !window.Plotly) return;
    const font = { ...drawn.layout.font, family: "Arial, Helvetica, sans-serif" };
    const legend = { ...drawn.layout.legend, font: { ...drawn.layout.legend?.font, family: font.family } };
    const layout = { ...drawn.layout, paper_bgcolor: paper, plot_bgcolor: paper, font, legend };
    const { width, height } = drawn.getBoundingClientRect();
    window.Plotly.downloadImage({ data: drawn.data, layout }, { format, width, height, scale: 2, filename: data.name });
  };
  for (const button of parentElement.querySelectorAll("button")) {
    button.onclick = () => save(button.dataset.format);
    button.hidden = data.canvas && button.dataset.format !== "png";
  }
}
