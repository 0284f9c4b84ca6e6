// A line of text with a button that copies it.
export default function ({ data, parentElement }) {
  const [box, button, said] = ["input", "button", "span"].map((query) => parentElement.querySelector(query));
  if (box.value !== data.text) said.textContent = "";
  Object.assign(box, { value: data.text, ariaLabel: data.label });
  button.textContent = data.button;
  button.onclick = async () => {
    box.select();
    try {
      await navigator.clipboard.writeText(data.text);
    } catch {
      document.execCommand("copy"); // a page without TLS has no clipboard of its own
    }
    said.textContent = "Copied.";
  };
}
