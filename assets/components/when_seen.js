// Tells the server whether a place of the page has been scrolled to, or past: what is long is computed from then on.
export default function ({ parentElement, data, setStateValue }) {
  const place = parentElement.host ?? parentElement;
  let told = data.visible;
  const tell = ([entry]) => {
    if (entry.isIntersecting === told) return;
    told = entry.isIntersecting;
    setStateValue("visible", told);
  };
  const root = place.closest("[data-testid=stMain]");
  const watcher = new IntersectionObserver(tell, { root, rootMargin: "100000px 0px 150px 0px" });
  watcher.observe(place);
  return () => watcher.disconnect();
}
