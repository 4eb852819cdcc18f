// Scrolls to a heading once for each word that it is given.
let last = null;

export default function mount({ data }) {
  if (data.once === last) return;
  last = data.once;
  requestAnimationFrame(() => document.getElementById(data.anchor)?.scrollIntoView({ block: "start" }));
}
