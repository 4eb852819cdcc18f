// Escape closes the open drawer, and the focus goes back to its icon. Drawers that open by themselves take the focus. Two links come first on the page: to the map, and to ε.
const FOCUSABLE = "a[href], button:not(:disabled), input, [tabindex='0']";
const PLACES = [["To the map", ".st-key-map"], ["To ε", ".st-key-rail"]];

let shown = "";  // the drawer that was open

export default function ({ data }) {
  if (data.opened !== shown) setTimeout(() => takeFocus(data.opened), 200);
  shown = data.opened;
  const links = skipLinks(), listening = new AbortController(), { signal } = listening;
  let isBusy = false;  // a menu is open, which Escape closes first
  document.addEventListener("keydown", () => { isBusy = Boolean(document.querySelector("[role=listbox], [role=dialog]")); }, { capture: true, signal });
  document.addEventListener("keydown", (event) => {
    const icon = document.querySelector(".st-key-drawer [aria-checked=true]");
    if (event.key !== "Escape" || event.defaultPrevented || isBusy || !icon) return;
    icon.click();
    icon.focus();
  }, { signal });
  return () => { listening.abort(); links.remove(); };
}

// The focus goes on to the drawer that took the place of the one that had it.
function takeFocus(opened) {
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
