// Shows the top of the page, once for each place that this stands at: what was asked for further down has come.
export default function ({ parentElement }) {
  const place = parentElement.host ?? parentElement;
  place.closest("[data-testid=stMain]")?.scrollTo(0, 0);
}
