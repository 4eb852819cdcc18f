// Escape closes the open drawer, and the focus goes back to its icon. Drawers that open by themselves take the focus. Two links come first on the page: to the map, and to ε.
const FOCUSABLE = "a[href], button:not(:disabled), input, [tabindex='0']";
const PLACES = [["To the map", ".st-key-map"], ["To ε", ".st-key-rail"]];

let shown = "";  // the drawer that was open, and its turn

export default function ({ data }) {
  const now = `${data.opened} ${data.turn}`;
  if (now !== shown) setTimeout(() => showFromTop(data.opened), 200);
  shown = now;
  const links = skipLinks(), listening = new AbortController(), { signal } = listening;
  let isBusy = false;  // a menu is open, which Escape closes first
  document.addEventListener("keydown", () => { isBusy = Boolean(document.querySelector("[role=listbox], [role=dialog]")); }, { capture: true, signal });
  document.addEventListener("keydown", (event) => {
    const icon = document.querySelector(".st-key-drawer [aria-checked=true]");
    if (event.key !== "Escape" || event.defaultPrevented || isBusy || !icon) return;
    icon.click();
    icon.focus();
  }, { signal });
  document.addEventListener("click", (event) => {
    const number = event.target.closest?.("[class*=st-key-missing-]")?.className.match(/st-key-missing-(\d+)/)?.[1];
    if (number) setTimeout(() => document.querySelector(`.dpviz-question-${number}`)?.scrollIntoView({ block: "center" }), 800);
  }, { signal });  // a press on what is missing leads to its question
  return () => { listening.abort(); links.remove(); };
}

// A drawer opens at its top, and takes the focus of the one whose place it took.
function showFromTop(opened) {
  const column = document.querySelector("[class*=st-key-opened]")?.parentElement;
  if (column) column.scrollTop = 0;
  const title = document.querySelector(`.st-key-card-${opened.toLowerCase().replace(" ", "-")} h2`);
  if (!title || document.activeElement !== document.body) return;
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
}

function skipLinks() {
  const links = document.createElement("nav");
  links.className = "dpviz-skip";
  links.setAttribute("aria-label", "Skip");
  for (const [words, place] of PLACES) {
    const link = links.appendChild(document.createElement("a"));
    Object.assign(link, { href: "#", textContent: words });
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const found = document.querySelector(place);
      (found && firstStop(found))?.focus();
    });
  }
  document.body.prepend(links);
  return links;
}

// The first part that can have the focus, within components, too.
function firstStop(root) {
  for (const each of root.querySelectorAll("*")) {
    const found = each.matches(FOCUSABLE) ? each : each.shadowRoot && firstStop(each.shadowRoot);
    if (found) return found;
  }
  return null;
}
