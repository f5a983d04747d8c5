// SPDX-License-Identifier: Apache-2.0
"use strict";
const engines = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const COLOURS = { FP32: "#3b7dd8", FP16: "#2e9e5b", Int8: "#e08a1e", Int32: "#8a63c9", UInt8: "#b0652d", BOOL: "#7d8790", Bool: "#7d8790", "?": "#9aa3ab" };
const NODE = { w: 210, h: 56, dx: 24, dy: 34, gap: 44 };
let engine = engines[0];
let chosen = -1;
let hits = [];
let hit = -1;
let view = { x: 0, y: 0, scale: 1 };
let sorted = { column: "us", up: false };

// Text only: names of layers are the user's.
function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  if (text !== undefined && text !== null) e.textContent = text;
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}
const time = (us) => (us >= 1000 ? (us / 1000).toFixed(2) + " ms" : us.toFixed(1) + " µs");
const count = (n) => (n >= 1e9 ? (n / 1e9).toFixed(2) + " G" : n >= 1e6 ? (n / 1e6).toFixed(1) + " M" : n >= 1e3 ? (n / 1e3).toFixed(1) + " k" : String(n));
const isCpu = () => engine.device.startsWith("cpu");
// The inspector has TensorRT's words for formats; these say the same in fewer, with all of them beside a GPU's.
const FORMATS = [[/^Row major/, "linear"], [/^Channel major/, "channels last"], [/^Two wide/, "channels by 2"], [/^Four wide/, "channels by 4"], [/^Sixteen wide/, "channels by 16"], [/^Thirty-two wide/, "channels by 32"]];
const shortFormat = (words) => (FORMATS.find(([pattern]) => pattern.test(words)) || [null, words])[1];
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
  const aspect = window.innerWidth > 900 ? 1.3 : 0.7;
  const most = Math.max(8, Math.ceil(Math.sqrt((ranks.length * (usual - NODE.dx + NODE.gap)) / (aspect * (NODE.h + NODE.dy)))));
  const tall = Math.ceil(ranks.length / Math.max(1, Math.ceil(ranks.length / most)));
  let offset = 0;
  for (let first = 0; first < ranks.length; first += tall) {
    const column = ranks.slice(first, first + tall).flat();
    const left = column.reduce((x, n) => Math.min(x, n.x), Infinity), right = column.reduce((x, n) => Math.max(x, n.x), -Infinity);
    column.forEach((n) => { n.x += offset - left; n.y = (n.rank - first) * (NODE.h + NODE.dy); });
    offset += right - left + NODE.w + NODE.gap;
  }
  e.nodes = nodes;
}
engines.forEach(place);

// --- colours
function heat(x) { return `hsl(${210 - 200 * Math.min(1, Math.max(0, x))} 70% 50%)`; }
const largest = () => engine.largest || (engine.largest = engine.layers.reduce((most, layer) => Math.max(most, share(layer)), 1e-9));
function colourOf(layer, by) {
  if (by === "type") return COLOURS[layer.type] || COLOURS["?"];
  if (by === "time") return heat(Math.sqrt(share(layer) / largest()));
  if (by === "fp32") {
    const gap = toFp32(layer); // from 0.001 % to all of it
    return gap === null ? COLOURS["?"] : heat((Math.log10(Math.max(gap, 1e-9)) + 5) / 5);
  }
  const part = ofLimit(layer);
  return part === null ? COLOURS["?"] : heat(1 - part);
}
function legend() {
  const box = $("legend"), by = $("colour").value;
  // Of a scale: what stands at its ends and in its middle.
  const scale = (texts) => {
    const bar = element("span", "", { class: "scale" });
    bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(heat).join(", ")})`;
    const marks = element("span", "", { class: "marks" });
    texts.forEach((text) => marks.append(element("span", text)));
    const e = element("span", "", { class: "range" });
    e.append(bar, marks);
    return e;
  };
  const dot = (text, colour) => {
    const e = element("span"), d = element("span", "", { class: "dot" });
    d.style.background = colour;
    e.append(d, text);
    return e;
  };
  box.replaceChildren(...(by === "type" ? Object.keys(engine.types).map((t) => dot(t, COLOURS[t] || COLOURS["?"]))
    : by === "time" ? [element("span", "share of the time"), scale(["0 %", percent(largest() / 4), percent(largest())])]
    : by === "fp32" ? [element("span", "from FP32"), scale(["0.001 %", "0.3 %", "100 %"]), dot("not compared", COLOURS["?"])]
    : [element("span", "of the limit"), scale(["100 %", "50 %", "0 %"]), dot("no limit known", COLOURS["?"])]));
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
// As much of a text as fits: of a path its end, of others both ends.
function cut(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  const part = text.includes("/") ? (n) => "…" + text.slice(text.length - n) : (n) => text.slice(0, Math.ceil(n / 2)) + "…" + text.slice(text.length - Math.floor(n / 2));
  let low = 0, high = text.length;
  while (low < high) { const m = (low + high + 1) >> 1; if (g.measureText(part(m)).width <= width) low = m; else high = m - 1; }
  return low ? part(low) : "";
}
// A layer's name in so many lines. Of one that stands for several, where there is no room: the first, and how many more.
function nameLines(g, layer, width, lines) {
  const fits = (text) => g.measureText(text).width <= width;
  if (fits(layer.Name)) return [layer.Name];
  if (lines > 1) {
    let end = layer.Name.length;
    while (end > 1 && !fits(layer.Name.slice(0, end))) --end;
    const breaks = layer.Name.slice(0, end).match(/^.*[ /_.:+-]/);
    if (breaks && breaks[0].length > end / 2) end = breaks[0].length;
    const rest = layer.Name.slice(end).trim();
    return [layer.Name.slice(0, end).trim(), fits(rest) ? rest : cut(g, rest, width)];
  }
  const made = layer.NetworkLayers || [];
  if (made.length < 2) return [cut(g, layer.Name, width)];
  const more = ` +${made.length - 1}`, first = String(made[0]);
  return [fits(first + more) ? first + more : cut(g, first, width)];
}
// What is written into a box on a screen of scale s; the first line is the name's.
const LEAST = 9; // pixels of a letter's height that one can read
function boxText(g, layer, s) {
  const size = Math.min(14, Math.max(LEAST, 12 * s)), lines = Math.min(3, Math.floor((NODE.h * s - 2) / (1.25 * size))), width = NODE.w - 7 - 8 / Math.min(1, s);
  if (lines < 1 || width * s < 3 * LEAST) return null;
  g.font = `600 ${size / s}px system-ui, sans-serif`;
  const names = nameLines(g, layer, width, lines > 2 ? 2 : 1);
  g.font = `${size / s}px system-ui, sans-serif`;
  const op = layer.Op || layer.LayerType || "", numbers = `${time(layer.us)}  ${percent(share(layer))}`;
  const facts = [[layer.change, op, numbers], [layer.change, numbers], [numbers], [percent(share(layer))]].map((parts) => parts.filter(Boolean).join("  "));
  const below = lines > 1 ? facts.find((text) => g.measureText(text).width <= width) : undefined;
  return { names, below, size: size / s, width };
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
    const own = n.index === chosen, isHit = found.has(n.index), far = s <= 0.2;
    if (!far) {
      g.fillStyle = bg;
      g.fillRect(n.x, n.y, NODE.w, NODE.h);
    }
    g.fillStyle = colourOf(n.layer, by);
    g.fillRect(n.x, n.y, far ? NODE.w : 7, NODE.h);
    if (!far) {
      g.globalAlpha = 0.25;
      g.fillRect(n.x, n.y, NODE.w, NODE.h);
      g.globalAlpha = 1;
    }
    if (own || isHit || !far) {
      g.lineWidth = own || isHit ? 3 / Math.min(1, s) : 1;
      g.strokeStyle = own ? accent : isHit ? mark : line;
      g.strokeRect(n.x, n.y, NODE.w, NODE.h);
    }
    const text = far ? null : boxText(g, n.layer, s);
    if (text) {
      const all = text.names.length + (text.below ? 1 : 0), step = 1.25 * text.size, top = n.y + (NODE.h - all * step) / 2 + text.size;
      g.fillStyle = fg;
      g.font = `600 ${text.size}px system-ui, sans-serif`;
      text.names.forEach((line, i) => g.fillText(line, n.x + 7 + 4 / Math.min(1, s), top + i * step));
      if (text.below) {
        g.font = `${text.size}px system-ui, sans-serif`;
        g.fillStyle = dim;
        g.fillText(text.below, n.x + 7 + 4 / Math.min(1, s), top + text.names.length * step);
      }
    }
  }
  g.restore();
}
function bounds() {
  const xs = engine.nodes.map((n) => n.x), ys = engine.nodes.map((n) => n.y);
  return { x0: Math.min(...xs), x1: Math.max(...xs) + NODE.w, y0: Math.min(...ys), y1: Math.max(...ys) + NODE.h };
}
function fit() {
  if (!engine.nodes.length) return redraw();
  const { x0, x1, y0, y1 } = bounds();
  const s = Math.min(1.2, canvas.clientWidth / (x1 - x0 + 60), canvas.clientHeight / (y1 - y0 + 60));
  view = { scale: s, x: canvas.clientWidth / 2 - (s * (x0 + x1)) / 2, y: canvas.clientHeight / 2 - (s * (y0 + y1)) / 2 };
  redraw();
}
// All of it, where names can be read then; else the chosen layer and what is round it.
function start() {
  const readable = 0.45, edge = 16;
  fit();
  if (view.scale >= readable || chosen < 0) return;
  centre(chosen, readable);
  // No empty space on one side while the graph goes on at the other.
  const { x0, x1, y0, y1 } = bounds(), s = view.scale;
  const within = (at, low, high, size) => ((high - low) * s + 2 * edge <= size ? (size - (low + high) * s) / 2 : Math.min(edge - low * s, Math.max(size - edge - high * s, at)));
  view.x = within(view.x, x0, x1, canvas.clientWidth);
  view.y = within(view.y, y0, y1, canvas.clientHeight);
}
function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const s = Math.min(4, Math.max(0.002, view.scale * factor)), f = s / view.scale;
  view = { scale: s, x: x - f * (x - view.x), y: y - f * (y - view.y) };
  redraw();
}
function centre(index, least = 0.8) {
  const n = engine.nodes[index];
  if (!n) return;
  view.scale = Math.max(view.scale, least);
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
