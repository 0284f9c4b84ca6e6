// The bar of the presenter: next and previous by button or key, notes, full screen.  Space plays the picture's ε.
const ON = { ArrowRight: "next", PageDown: "next", ArrowLeft: "previous", PageUp: "previous", " ": "play", n: "notes", f: "full" };
const FIT_MS = 250;
const LEAST_PIXELS = 12;

export default function ({ data, parentElement, setTriggerValue }) {
  const find = (query) => parentElement.querySelector(query);
  const notes = find("aside");
  find(".where").textContent = data.scene ? `${data.scene} / ${data.scenes}  ${data.title}` : data.title; // a page outside the tour
  notes.textContent = data.notes || "This scene has no notes.";
  const acts = {
    next: () => setTriggerValue("go", 1),
    previous: () => setTriggerValue("go", -1),
    leave: () => setTriggerValue("leave", true),
    notes: () => {
      notes.hidden = !notes.hidden;
      find("[data-do=notes]").ariaExpanded = String(!notes.hidden);
    },
    // A browser may refuse, as inside another page.
    full: () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen()).catch(() => {}),
    play: () => inPictures("button[data-play=epsilon]")[0]?.click(),
  };
  const pressed = (event) => {
    const target = event.composedPath()[0];
    const act = ON[event.key.length > 1 ? event.key : event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    // Whoever has a control in hand means it; a clicker's page keys always turn the page.
    const own = target.matches?.("input, textarea, select, [contenteditable], [role=slider]");
    if ((own && !event.key.startsWith("Page")) || (event.key === " " && target.matches?.("button, summary, a"))) return;
    event.preventDefault();
    acts[act]();
  };
  // A hand that let go of the picture's handle has the keys for the scenes again.
  const letGo = (event) => {
    const target = event.composedPath()[0];
    if (target.matches?.("input[type=range]")) target.blur();
  };
  // There is one bar, and it is drawn anew with every scene: each key is heard once.
  globalThis.dpgramsBar?.();
  const buttons = [...parentElement.querySelectorAll("button")];
  for (const button of buttons) button.onclick = () => acts[button.dataset.do]();
  document.addEventListener("keydown", pressed);
  document.addEventListener("pointerup", letGo);
  const timer = setInterval(fit, FIT_MS);
  fit();
  const close = () => {
    document.removeEventListener("keydown", pressed);
    document.removeEventListener("pointerup", letGo);
    clearInterval(timer);
  };
  globalThis.dpgramsBar = close;
  return close;
}

// What a picture with a handle holds; each has a root of its own.
function inPictures(query) {
  return [...document.querySelectorAll("*")].flatMap((one) => [...(one.shadowRoot?.querySelectorAll(query) ?? [])]);
}

// One line stays one line: its letters get smaller where it would not fit.
function fit() {
  for (const line of [...document.querySelectorAll(".answer"), ...inPictures(".said")]) {
    if (line.dataset.fitted === `${line.clientWidth} ${line.textContent}`) continue;
    line.style.fontSize = "";
    const size = parseFloat(getComputedStyle(line).fontSize);
    if (line.scrollWidth > line.clientWidth) {
      line.style.fontSize = `${Math.max(LEAST_PIXELS, Math.floor((size * line.clientWidth) / line.scrollWidth))}px`;
    }
    line.dataset.fitted = `${line.clientWidth} ${line.textContent}`;
  }
}
