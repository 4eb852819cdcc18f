// Streamlit adds an entry to the browser's history whenever the address changes: the button Back would go through every setting that was
// tried. Here only pages are entries; on the same page the new address takes the place of the old one.
if (!globalThis.dpvizKeepsHistory) {
  globalThis.dpvizKeepsHistory = true;
  const push = history.pushState.bind(history), path = (address) => new URL(address, document.baseURI).pathname;
  history.pushState = (state, title, address) => {
    if (address && path(address) === location.pathname) history.replaceState(state, title, address);
    else push(state, title, address);
  };
}
