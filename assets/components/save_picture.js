// The browser has drawn the picture already, so it saves it too, as it stands on the screen (colours, zoom, camera): on
// the page's own background, without the buttons of an animation, and in a font that a lone picture finds again.
export default function ({ data, parentElement }) {
  const save = (format) => {
    const drawn = document.querySelector(`[class*="st-key-${data.chart}"] .js-plotly-plot`);
    if (!drawn || !window.Plotly) return;
    const paper = getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor;
    const font = { ...drawn.layout.font, family: "Arial, Helvetica, sans-serif" };
    const legend = { ...drawn.layout.legend, font: { ...drawn.layout.legend?.font, family: font.family } };
    const layout = { ...drawn.layout, paper_bgcolor: paper, plot_bgcolor: paper, font, legend };
    Object.assign(layout, { sliders: [], updatemenus: [] });
    const { width, height } = drawn.getBoundingClientRect();
    window.Plotly.downloadImage({ data: drawn.data, layout }, { format, width, height, scale: 2, filename: data.name });
  };
  for (const button of parentElement.querySelectorAll("button")) button.onclick = () => save(button.dataset.format);
}
