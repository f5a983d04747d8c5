// SPDX-License-Identifier: Apache-2.0
"use strict";
const engines = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const COLOURS = { FP32: "#3b7dd8", FP16: "#2e9e5b", Int8: "#e08a1e", Int32: "#8a63c9", UInt8: "#b0652d", BOOL: "#7d8790", Bool: "#7d8790", "?": "#9aa3ab" };
const NODE = { w: 190, h: 40, dx: 24, dy: 34 };
let engine = engines[0];
let chosen = -1;
let hits = [];
let hit = -1;
let view = { x: 0, y: 0, scale: 1 };
let sorted = { column: "index", up: true };

// Text only: names of layers are the user's.
function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  if (text !== undefined && text !== null) e.textContent = text;
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}
const time = (us) => (us >= 1000 ? (us / 1000).toFixed(2) + " ms" : us.toFixed(1) + " µs");
const percent = (x) => (100 * x).toFixed(1) + " %";
function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let i = 0;
  for (; n >= 1024 && i < 3; ++i) n /= 1024;
  return (i ? n.toFixed(1) : n) + " " + units[i];
}
// 1 is as fast as the machine allows; small layers are below what the limit does not count.
const ofLimit = (layer) => (layer.limit_us && layer.us ? Math.min(1, layer.limit_us / layer.us) : null);
// The largest difference of a layer's tensors to FP32, by root mean squares; what is no number is null in the file. null: not compared.
const toFp32 = (layer) => {
  const rows = (layer.accuracy || []).filter((row) => !row.Reason);
  return rows.length ? Math.max(...rows.map((row) => (row.RelativeRms === null ? Infinity : row.RelativeRms))) : null;
};
const rms = (x) => (x === Infinity ? "not a number" : x === 0 ? "0" : x < 1e-4 ? (100 * x).toExponential(1) + " %" : (100 * x).toPrecision(3) + " %");
const share = (layer) => (engine.total_us ? layer.us / engine.total_us : 0);

// --- layout: a rank below all that a layer reads; within a rank near its parents.
function place(e) {
  const writer = new Map(), nodes = e.layers.map((layer, index) => ({ layer, index, parents: [], children: [], rank: 0, x: 0, y: 0 }));
  nodes.forEach((n) => (n.layer.Outputs || []).forEach((t) => writer.set(t.Name, n)));
  nodes.forEach((n) => {
    for (const t of n.layer.Inputs || []) {
      const parent = writer.get(t.Name);
      if (parent && parent !== n && parent.index < n.index && !n.parents.includes(parent)) {
        n.parents.push(parent);
        parent.children.push(n);
      }
    }
  });
  const ranks = [];
  nodes.forEach((n) => {
    n.rank = n.parents.reduce((r, p) => Math.max(r, p.rank + 1), 0);
    (ranks[n.rank] = ranks[n.rank] || []).push(n);
  });
  const step = NODE.w + NODE.dx;
  ranks.forEach((rank) => {
    rank.forEach((n) => { n.wish = n.parents.length ? n.parents.reduce((s, p) => s + p.x, 0) / n.parents.length : 0; });
    rank.sort((a, b) => a.wish - b.wish || a.index - b.index);
    let right = -Infinity;
    rank.forEach((n) => { n.x = Math.max(n.wish, right); right = n.x + step; });
    // Back to the middle of what was wished, as pushing goes to the right alone.
    const shift = rank.reduce((s, n) => s + n.x - n.wish, 0) / rank.length;
    rank.forEach((n) => { n.x -= shift; });
  });
  // A long network goes on at the top of a next column, so that all of it has about the shape of the window.
  const widths = ranks.map((rank) => rank[rank.length - 1].x - rank[0].x + step).sort((a, b) => a - b);
  const usual = widths.length ? widths[Math.floor(widths.length * 0.9)] : step;
  const most = Math.max(24, Math.ceil(Math.sqrt((ranks.length * usual) / (1.6 * (NODE.h + NODE.dy)))));
  const tall = Math.ceil(ranks.length / Math.max(1, Math.ceil(ranks.length / most)));
  let offset = 0;
  for (let first = 0; first < ranks.length; first += tall) {
    const column = ranks.slice(first, first + tall).flat();
    const left = column.reduce((x, n) => Math.min(x, n.x), Infinity), right = column.reduce((x, n) => Math.max(x, n.x), -Infinity);
    column.forEach((n) => { n.x += offset - left; n.y = (n.rank - first) * (NODE.h + NODE.dy); });
    offset += right - left + NODE.w + 4 * NODE.dx;
  }
  e.nodes = nodes;
}
engines.forEach(place);

// --- colours
function heat(x) { return `hsl(${210 - 200 * Math.min(1, Math.max(0, x))} 70% 50%)`; }
function colourOf(layer, by) {
  if (by === "type") return COLOURS[layer.type] || COLOURS["?"];
  if (by === "time") return heat(Math.sqrt(share(layer) / (engine.largest || (engine.largest = Math.max(...engine.layers.map(share), 1e-9)))));
  if (by === "fp32") {
    const gap = toFp32(layer); // from 0.001 % to all of it
    return gap === null ? COLOURS["?"] : heat((Math.log10(Math.max(gap, 1e-9)) + 5) / 5);
  }
  const part = ofLimit(layer);
  return part === null ? COLOURS["?"] : heat(1 - part);
}
function legend() {
  const box = $("legend"), by = $("colour").value;
  box.replaceChildren();
  const entries = by === "type" ? Object.keys(engine.types).map((t) => [t, COLOURS[t] || COLOURS["?"]])
    : by === "time" ? [["little time", heat(0)], ["most time", heat(1)]]
    : by === "fp32" ? [["0.001 % from FP32", heat(0)], ["100 %", heat(1)], ["not compared", COLOURS["?"]]] : [["at the limit", heat(0)], ["far from it", heat(1)], ["no limit known", COLOURS["?"]]];
  for (const [text, colour] of entries) {
    const e = element("span"), dot = element("span", "", { class: "dot" });
    dot.style.background = colour;
    e.append(dot, text);
    box.append(e);
  }
}

// --- the graph
const canvas = $("graph");
let pending = false;
function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; draw(); });
}
function sized(c) {
  const ratio = window.devicePixelRatio || 1, w = c.clientWidth, h = c.clientHeight;
  if (c.width !== Math.round(w * ratio) || c.height !== Math.round(h * ratio)) { c.width = Math.round(w * ratio); c.height = Math.round(h * ratio); }
  const g = c.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  return [g, w, h];
}
function style(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
function cut(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) { const m = (low + high + 1) >> 1; if (g.measureText("…" + text.slice(-m)).width <= width) low = m; else high = m - 1; }
  return "…" + text.slice(text.length - low);
}
function draw() {
  const [g, w, h] = sized(canvas), s = view.scale;
  const top = (-view.y) / s - NODE.h, bottom = (h - view.y) / s, left = (-view.x) / s - NODE.w, right = (w - view.x) / s;
  g.save();
  g.translate(view.x, view.y);
  g.scale(s, s);
  g.lineWidth = Math.max(1, 0.7 / s);
  g.strokeStyle = style("--dim");
  g.globalAlpha = 0.55;
  g.beginPath();
  for (const n of engine.nodes) {
    for (const p of n.parents) {
      if (n.y < top || p.y > bottom || (n.x < left && p.x < left) || (n.x > right && p.x > right)) continue;
      if (n.y < p.y && s < 0.15) continue; // to the next column: a line through all of it
      const x1 = p.x + NODE.w / 2, y1 = p.y + NODE.h, x2 = n.x + NODE.w / 2, y2 = n.y, bend = Math.min(60, Math.abs(y2 - y1) / 2);
      g.moveTo(x1, y1);
      if (s < 0.15) g.lineTo(x2, y2);
      else g.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
    }
  }
  g.stroke();
  g.globalAlpha = 1;
  const by = $("colour").value, found = new Set(hits), fg = style("--fg"), bg = style("--card"), accent = style("--accent"), mark = style("--hit"), line = style("--line"), dim = style("--dim");
  for (const n of engine.nodes) {
    if (n.y < top || n.y > bottom || n.x < left || n.x > right) continue;
    const own = n.index === chosen, isHit = found.has(n.index), far = s <= 0.25;
    if (!far) {
      g.fillStyle = bg;
      g.fillRect(n.x, n.y, NODE.w, NODE.h);
    }
    g.fillStyle = colourOf(n.layer, by);
    g.fillRect(n.x, n.y, far ? NODE.w : 7, NODE.h);
    if (own || isHit || !far) {
      g.lineWidth = own || isHit ? 3 / Math.min(1, s) : 1;
      g.strokeStyle = own ? accent : isHit ? mark : line;
      g.strokeRect(n.x, n.y, NODE.w, NODE.h);
    }
    if (s > 0.4) {
      g.fillStyle = fg;
      g.font = "600 12px system-ui, sans-serif";
      g.fillText(cut(g, n.layer.Name, NODE.w - 20), n.x + 13, n.y + 16);
      g.font = "11px system-ui, sans-serif";
      g.fillStyle = dim;
      g.fillText(`${n.layer.Op || n.layer.LayerType || ""}  ${time(n.layer.us)}  ${percent(share(n.layer))}`, n.x + 13, n.y + 32);
    }
  }
  g.restore();
}
function fit() {
  const xs = engine.nodes.map((n) => n.x), ys = engine.nodes.map((n) => n.y);
  if (!xs.length) return redraw();
  const x0 = Math.min(...xs), x1 = Math.max(...xs) + NODE.w, y0 = Math.min(...ys), y1 = Math.max(...ys) + NODE.h;
  const s = Math.min(1.2, canvas.clientWidth / (x1 - x0 + 60), canvas.clientHeight / (y1 - y0 + 60));
  view = { scale: s, x: canvas.clientWidth / 2 - (s * (x0 + x1)) / 2, y: canvas.clientHeight / 2 - (s * (y0 + y1)) / 2 };
  redraw();
}
function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const s = Math.min(4, Math.max(0.002, view.scale * factor)), f = s / view.scale;
  view = { scale: s, x: x - f * (x - view.x), y: y - f * (y - view.y) };
  redraw();
}
function centre(index) {
  const n = engine.nodes[index];
  if (!n) return;
  view.scale = Math.max(view.scale, 0.8);
  view.x = canvas.clientWidth / 2 - view.scale * (n.x + NODE.w / 2);
  view.y = canvas.clientHeight / 2 - view.scale * (n.y + NODE.h / 2);
  redraw();
}
function at(event) {
  const r = canvas.getBoundingClientRect(), x = (event.clientX - r.left - view.x) / view.scale, y = (event.clientY - r.top - view.y) / view.scale;
  return engine.nodes.find((n) => x >= n.x && x <= n.x + NODE.w && y >= n.y && y <= n.y + NODE.h);
}
canvas.addEventListener("wheel", (e) => { e.preventDefault(); const r = canvas.getBoundingClientRect(); zoom(Math.exp(-e.deltaY / 400), e.clientX - r.left, e.clientY - r.top); }, { passive: false });
let drag = null;
canvas.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, y: e.clientY, moved: false }; canvas.setPointerCapture(e.pointerId); });
canvas.addEventListener("pointermove", (e) => {
  if (!drag) return;
  const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
  if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
  drag = { x: e.clientX, y: e.clientY, moved: true };
  view.x += dx; view.y += dy;
  redraw();
});
canvas.addEventListener("pointerup", (e) => { if (drag && !drag.moved) { const n = at(e); if (n) choose(n.index, false); } drag = null; });
