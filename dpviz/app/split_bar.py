"""The budget split as a bar of parts whose boundaries can be dragged, or moved with the arrow keys."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpviz.errors import BudgetError
from dpviz.privacy.shares import checked_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NAME = "dpviz_split_bar"
_UNCHANGED = 1e-6

_HTML = """<div class="bar" role="group" aria-label="Split of the privacy budget"></div><div class="note" aria-hidden="true"></div>"""

_CSS = """
.bar { position: relative; height: 34px; touch-action: pan-y; user-select: none; }
.part { position: absolute; inset: 0 auto 0 0; box-sizing: border-box; overflow: hidden; border-right: 1px solid transparent;
  background-clip: padding-box; display: flex; flex-direction: column; justify-content: center; align-items: center;
  font: 11px/13px var(--st-font, sans-serif); white-space: nowrap; }
.part:first-child { border-radius: 4px 0 0 4px; }
.part.last { border-radius: 0 4px 4px 0; border-right: 0; }
.part.locked::after { content: ""; position: absolute; inset: 0;
  background: repeating-linear-gradient(135deg, rgba(0, 0, 0, .3) 0 1px, transparent 1px 5px); }
.part b { font-weight: 600; }
.part [hidden] { display: none; }
.handle { position: absolute; top: -3px; bottom: -3px; width: 3px; margin-left: -2px; border-radius: 2px; outline: none;
  pointer-events: none; background: var(--st-text-color, #222); opacity: 0; }
.handle.near { opacity: .55; }
.handle.moving, .handle:focus { opacity: 1; }
.handle:focus-visible { box-shadow: 0 0 0 2px var(--st-background-color, #fff), 0 0 0 4px var(--st-primary-color, #0b6e8f); }
.note { height: 18px; margin-top: 5px; font: 11px/18px var(--st-font, sans-serif); color: var(--st-text-color, #222); opacity: .75;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
"""

_JS = r"""
const STEP = 0.01, BIG = 0.05, PAUSE = 150, PATIENCE = 3000, REACH = { mouse: 8, pen: 12, touch: 18 };
const LIGHT = [199, 227, 235], STRONG = [11, 110, 143], HINT = "Drag a boundary, or use arrow keys";
const bars = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".bar");
  if (!bars.has(root)) bars.set(root, create(root, parentElement.querySelector(".note")));
  const bar = bars.get(root);
  bar.send = (shares) => setTriggerValue("moved", { shares, serial: bar.serial });
  receive(bar, data);
}

function create(root, note) {
  const bar = { root, note, serial: 0, waitUntil: 0, timer: 0, drag: null, shares: [], frame: "" };
  root.addEventListener("pointerdown", (event) => press(bar, event));
  root.addEventListener("pointermove", (event) => (bar.drag ? pull(bar, event) : hover(bar, event)));
  root.addEventListener("pointerup", () => release(bar));
  root.addEventListener("pointercancel", () => cancel(bar));
  root.addEventListener("pointerleave", () => hover(bar, null));
  root.addEventListener("keydown", (event) => key(bar, event));
  root.addEventListener("focusin", () => tell(bar));
  root.addEventListener("focusout", () => tell(bar));
  new ResizeObserver(() => fit(bar)).observe(root);
  return bar;
}

// What Python says is shown, but for an answer to an older move while a newer one is on its way.
function receive(bar, data) {
  bar.data = data;
  const frame = JSON.stringify([data.labels, data.locked]);
  const waiting = data.serial < bar.serial && performance.now() < bar.waitUntil;
  if (frame === bar.frame && (bar.drag || bar.timer || waiting)) return;
  if (bar.timer) clearTimeout(bar.timer);
  Object.assign(bar, { drag: null, timer: 0, serial: Math.max(bar.serial, data.serial), shares: data.shares.slice() });
  if (frame !== bar.frame) build(bar, frame);
  draw(bar);
}

function build(bar, frame) {
  const focused = bar.frame ? bar.handles.indexOf(bar.root.getRootNode().activeElement) : -1;
  bar.frame = frame;
  bar.root.textContent = "";
  bar.parts = bar.data.labels.map((_, i) => add(bar.root, "div", "part", { role: "img" }, paint(i, bar.data.labels.length)));
  bar.parts.at(-1).classList.add("last");
  bar.handles = bar.data.labels.slice(1).map(() => add(bar.root, "div", "handle", { role: "slider" }, {}));
  for (const part of bar.parts) part.append(document.createElement("b"), document.createElement("span"));
  if (bar.handles[focused]) bar.handles[focused].focus({ preventScroll: true });
}

function add(parent, tag, name, attributes, style) {
  const element = document.createElement(tag);
  element.className = name;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  Object.assign(element.style, style);
  return parent.appendChild(element);
}

function paint(i, count) {
  const t = count > 1 ? i / (count - 1) : 1;
  const color = LIGHT.map((from, k) => Math.round(from + t * (STRONG[k] - from)));
  const [r, g, b] = color.map((c) => (c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return { backgroundColor: `rgb(${color})`, color: 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff" };
}

const broken = (number) => number < 9.95 && Math.abs(number - Math.round(number)) > 0.04;
const percent = (share) => `${(100 * share).toFixed(broken(100 * share) ? 1 : 0)}\u00a0%`;
const named = (bar, i) => `${bar.data.labels[i]}: ${percent(bar.shares[i])}${bar.data.locked[i] ? ", locked" : ""}`;

// The two unlocked parts between which boundary i moves share, or null.
function pair(bar, i) {
  let a = i, b = i + 1;
  while (a >= 0 && bar.data.locked[a]) a -= 1;
  while (b < bar.shares.length && bar.data.locked[b]) b += 1;
  return a < 0 || b >= bar.shares.length ? null : [a, b];
}

function move(bar, from, i, delta) {
  const [a, b] = pair(bar, i), both = from[a] + from[b], wanted = Math.round(1e6 * (from[a] + delta)) / 1e6;
  bar.shares = from.slice();
  bar.shares[a] = Math.min(both, Math.max(0, wanted));
  bar.shares[b] = both - bar.shares[a];
  draw(bar);
}

function draw(bar) {
  let sum = 0;
  bar.parts.forEach((part, i) => {
    Object.assign(part.style, { left: `${100 * sum}%`, width: `${100 * bar.shares[i]}%` });
    part.classList.toggle("locked", bar.data.locked[i]);
    part.title = named(bar, i);
    part.setAttribute("aria-label", part.title);
    part.firstChild.textContent = bar.data.labels[i];
    part.lastChild.textContent = percent(bar.shares[i]);
    sum += bar.shares[i];
    if (i < bar.handles.length) place(bar, i, sum);
  });
  fit(bar);
  tell(bar);
}

function place(bar, i, sum) {
  const handle = bar.handles[i], [a, b] = pair(bar, i) ?? [i, i + 1], free = pair(bar, i) !== null;
  handle.style.left = `${100 * sum}%`;
  handle.tabIndex = free ? 0 : -1;
  const [now, both] = [bar.shares[a], bar.shares[a] + bar.shares[b]].map((share) => Math.round(1000 * share) / 10);
  const values = { valuemin: free ? 0 : now, valuemax: free ? both : now, valuenow: now, disabled: !free };
  for (const [name, value] of Object.entries(values)) handle.setAttribute(`aria-${name}`, value);
  handle.setAttribute("aria-valuetext", `${named(bar, a)}; ${named(bar, b)}`);
  handle.setAttribute("aria-label", `Boundary between ${bar.data.labels[a]} and ${bar.data.labels[b]}`);
}

// Texts are shown only in parts that have room for them.
function fit(bar) {
  const texts = bar.parts?.flatMap((part) => [...part.children]) ?? [];
  for (const text of texts) text.hidden = false;
  const tight = texts.map((text) => text.scrollWidth + 4 > text.parentElement.clientWidth);
  texts.forEach((text, k) => { text.hidden = tight[k]; });
}

function tell(bar) {
  const i = bar.drag?.handle ?? bar.handles.indexOf(bar.root.getRootNode().activeElement), near = bar.over ?? -1;
  const ends = i >= 0 ? pair(bar, i) : null;
  bar.note.textContent = ends ? ends.map((k) => named(bar, k)).join("   \u00b7   ") : near >= 0 ? named(bar, near) : HINT;
  bar.handles.forEach((handle, k) => handle.classList.toggle("moving", bar.drag?.handle === k));
}

// Boundaries under the pointer: several where parts between them are empty.
function reach(bar, event) {
  const box = bar.root.getBoundingClientRect(), x = event.clientX - box.left, limit = REACH[event.pointerType] ?? 8;
  let sum = 0;
  const places = bar.handles.map((_, i) => box.width * (sum += bar.shares[i]));
  const gaps = places.map((at, i) => (pair(bar, i) ? Math.abs(at - x) : Infinity)), least = Math.min(...gaps, limit);
  const best = places[gaps.indexOf(least)];
  return places.map((at, i) => i).filter((i) => gaps[i] < Infinity && Math.abs(places[i] - best) < 0.5);
}

function hover(bar, event) {
  const near = event ? reach(bar, event) : [];
  bar.root.style.cursor = near.length ? "col-resize" : "default";
  bar.handles.forEach((handle, i) => handle.classList.toggle("near", i === near[0]));
  bar.over = event ? bar.parts.indexOf(event.target.closest(".part")) : -1;
  tell(bar);
}

function press(bar, event) {
  const near = reach(bar, event);
  if (event.button !== 0 || !near.length) return;
  event.preventDefault();
  if (bar.timer) flush(bar);
  bar.root.setPointerCapture(event.pointerId);
  bar.drag = { near, handle: null, pointer: event.pointerId, x: event.clientX, from: bar.shares.slice() };
  bar.handles[near[0]].focus({ preventScroll: true });
}

function pull(bar, event) {
  const drag = bar.drag, way = event.clientX - drag.x, side = way < 0 ? 0 : 1;
  if (drag.handle === null && way !== 0) {
    const order = side ? drag.near.slice().reverse() : drag.near;
    drag.handle = order.find((i) => drag.from[pair(bar, i)[side]] > 0) ?? drag.near[0];
    bar.handles[drag.handle].focus({ preventScroll: true });
  }
  if (drag.handle !== null) move(bar, drag.from, drag.handle, way / bar.root.clientWidth);
}

function release(bar) {
  const drag = bar.drag;
  bar.drag = null;
  if (drag && drag.from.some((share, i) => share !== bar.shares[i])) flush(bar);
  else if (drag) receive(bar, bar.data);
  tell(bar);
}

function cancel(bar) {
  if (!bar.drag) return;
  const { from, pointer } = bar.drag;
  bar.drag = null;
  bar.root.releasePointerCapture(pointer);
  bar.shares = from;
  draw(bar);
  receive(bar, bar.data);
}

function key(bar, event) {
  const i = bar.handles.indexOf(event.target);
  if (event.key === "Escape" && bar.drag) return cancel(bar);
  if (i < 0 || bar.drag || !pair(bar, i) || event.ctrlKey || event.altKey || event.metaKey) return;
  const step = event.shiftKey ? BIG : STEP;
  const ways = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step, PageDown: -BIG, PageUp: BIG, Home: -1, End: 1 };
  if (!(event.key in ways)) return;
  event.preventDefault();
  event.stopPropagation();
  move(bar, bar.shares, i, ways[event.key]);
  clearTimeout(bar.timer);
  bar.timer = setTimeout(() => flush(bar), PAUSE);
}

function flush(bar) {
  clearTimeout(bar.timer);
  Object.assign(bar, { timer: 0, serial: bar.serial + 1, waitUntil: performance.now() + PATIENCE });
  if (bar.root.isConnected) bar.send(bar.shares);
}
"""

_bar = st.components.v2.component(_NAME, html=_HTML, css=_CSS, js=_JS)


def split_bar(
    labels: list[str],
    shares: list[float],
    *,
    locked: list[bool],
    key: str,
    on_change: Callable[[list[float]], None] | None = None,
) -> list[float]:
    """A bar of parts with widths in proportion to `shares`; moving a boundary moves share between its two unlocked neighbours.

    The caller's `shares` are the truth: hand in others and the bar shows them. Not for use inside `st.form`.

    Args:
        labels: (n,) names of the parts.
        shares: (n,) at least 0, one of them greater; brought to a total of 1.
        locked: (n,) parts that do not change.
        key: unique in the app.
        on_change: called with the new shares before the script runs again; it should store what is handed in as `shares`.

    Returns:
        (n,) shares with a total of 1; without `on_change`, the moved ones in the run that a move starts.

    Raises:
        BudgetError: `shares` are not one finite number of at least 0 per label, or all of them are 0.
    """
    truth = checked_shares(list(shares), len(labels))
    memory: dict[str, Any] = st.session_state.setdefault(f"{key}.moved", {"serial": 0})

    def receive() -> None:
        event = (st.session_state.get(key) or {}).get("moved")
        if isinstance(event, dict) and isinstance(event.get("serial"), int):
            memory["serial"] = event["serial"]
            with suppress(BudgetError):
                moved = _moved(event.get("shares"), truth, locked)
                memory["shares"] = moved
                if on_change is not None:
                    on_change(moved)

    pending = memory.pop("shares", None)
    shown = pending if on_change is None and pending is not None and len(pending) == len(truth) else truth
    data = {"labels": list(labels), "shares": shown, "locked": list(locked), "serial": memory["serial"]}
    _bar(key=key, data=data, on_moved_change=receive)
    return shown


def _moved(values: object, before: Sequence[float], locked: Sequence[bool]) -> list[float]:
    """Checked shares from the browser; refused if a locked one has changed."""
    shares = checked_shares(values, len(before))
    if any(fixed and abs(new - old) > _UNCHANGED for new, old, fixed in zip(shares, before, locked, strict=True)):
        raise BudgetError("A locked share does not change.")
    return shares
