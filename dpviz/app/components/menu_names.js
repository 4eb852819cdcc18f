// Streamlit calls the arrow of every menu "Open": here its name also says of which menu.
if (!globalThis.dpvizNamesMenus) {
  globalThis.dpvizNamesMenus = true;
  const nameArrows = () => {
    for (const arrow of document.querySelectorAll("[role=group] button[aria-label=Open]")) {
      arrow.setAttribute("aria-label", `Open ${arrow.closest("[role=group]").querySelector("[role=combobox]").getAttribute("aria-label")}`);
    }
  };
  new MutationObserver(nameArrows).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["aria-label"] });
}
