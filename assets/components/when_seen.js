// Tells the server whether a place of the page has been scrolled to, or past: what is long is computed from then on.
// A word that comes while the whole page is drawn anew may be lost, so it is said again until the server has it.
export default function ({ parentElement, data, setStateValue }) {
  const place = parentElement.host ?? parentElement;
  place.stopWatching?.(); // this function runs again whenever data change
  let again;
  const tell = ([entry]) => {
    clearInterval(again);
    if (entry.isIntersecting === Boolean(data.visible)) return;
    let times = 0;
    const say = () => {
      times += 1;
      setStateValue("visible", entry.isIntersecting ? times : 0);
      if (times === 10) clearInterval(again);
    };
    again = setInterval(say, 3000);
    say();
  };
  const root = place.closest("[data-testid=stMain]");
  const watcher = new IntersectionObserver(tell, { root, rootMargin: "100000px 0px 150px 0px" });
  watcher.observe(place);
  place.stopWatching = () => {
    clearInterval(again);
    watcher.disconnect();
  };
  return place.stopWatching;
}
