// Gives the page deck.gl under a name of our own. The bundle would overwrite the deck.gl of Streamlit's own maps: its global names are saved
// before it runs and restored afterwards, all in one script, so that nothing else runs in between.
const NAMES = JSON.stringify(["deck", "luma", "loaders", "mathgl", "probe", "createDeck", "updateDeck", "initPlayground", "jupyterTransport", "JupyterTransportView"]);
const BEFORE = `const names = ${NAMES}, before = {};
for (const name of names) {
  if (name in globalThis) before[name] = globalThis[name];
  delete globalThis[name];
}
try {
`;
const AFTER = `
  if (!globalThis.deck?.Deck) throw new Error("the bundle has no deck.gl");
  globalThis.dpvizDeck = { deck: globalThis.deck, luma: globalThis.luma };
} catch (error) {
  globalThis.dpvizDeckError = String(error);
}
for (const name of names) {
  delete globalThis[name];
  if (name in before) globalThis[name] = before[name];
}`;

export default function ({ data }) {
  const { address, ahead } = data, begin = () => { globalThis.dpvizDeckLoads ??= load(address); };
  if (ahead && globalThis.requestIdleCallback) requestIdleCallback(begin);
  else begin();
}

// A browser keeps few contexts of WebGL: this one is given back at once.
function canDraw() {
  const pen = document.createElement("canvas").getContext("webgl2");
  pen?.getExtension("WEBGL_lose_context")?.loseContext();
  return pen !== null;
}

async function load(address) {
  try {
    if (!canDraw()) throw new Error("this browser has no WebGL");
    const answer = await fetch(new URL(address, root()), { cache: "force-cache" }); // the address names the version: what was kept is right
    if (!answer.ok) throw new Error(`the bundle is not served: ${answer.status}`);
    const script = URL.createObjectURL(new Blob([BEFORE, await answer.blob(), AFTER], { type: "text/javascript" }));
    await import(script);
    URL.revokeObjectURL(script);
  } catch (error) {
    globalThis.dpvizDeckError = String(error);
  }
}

// The address of the app without that of a page: its own scripts are in the folder static/js.
function root() {
  return document.querySelector('script[src*="static/js/"]')?.src.split("static/js/")[0] ?? document.baseURI;
}
