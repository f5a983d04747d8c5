// SPDX-License-Identifier: Apache-2.0
// The panels round the graph; report.js stands before it.

// --- the chosen layer
function choose(index, centred = true) {
  if (!engine.layers[index]) return;
  chosen = index;
  details();
  table();
  memory();
  if (centred) centre(index); else redraw();
  const box = $("table"), y = order().indexOf(index) * ROW;
  if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - 3 * ROW) box.scrollTop = y - box.clientHeight / 2;
}
const KNOWN = new Set(["Name", "Inputs", "Outputs", "LayerType", "ParameterType", "TacticName", "TacticValue", "TacticConfig", "TimeMicroseconds", "EstimateMicroseconds",
  "LimitMicroseconds", "LacksFastKernel", "RunnersUp", "Precision", "Op", "Attributes", "Constants", "NetworkLayers", "LimitBytes", "LimitOperations", "type", "format", "change", "us", "limit_us", "measured", "accuracy"]);
const formatOf = (words) => (isCpu() ? `${(words.match(/FP32|FP16|BF16|UInt8|Int8|Int32|BOOL|Bool/) || [""])[0]} ${shortFormat(words)}` : words);
function details() {
  const box = $("details"), layer = engine.layers[chosen];
  box.replaceChildren();
  if (!layer) { box.append(element("p", "Choose a layer: click one, or press j.")); return; }
  const line = (text) => box.append(element("p", text));
  const head = (text) => box.append(element("h4", text));
  box.append(element("h3", layer.Name));
  // On a CPU TensorRT's kinds of layers, which are of CUDA kernels, say nothing.
  line((layer.LayerType === "NoOp" ? [layer.Op, "not run: its output is its input"] : isCpu() && layer.Op ? [layer.Op, layer.PluginType] : [layer.Op, layer.LayerType, layer.ParameterType]).filter(Boolean).join(" · "));
  if (layer.change) line("Changes the type: " + layer.change);
  head("Time");
  line(`${time(layer.us)}${layer.measured === null ? " at the build" : " measured"}, ${percent(share(layer))} of all` +
    (layer.TimeMicroseconds ? `; the tactic alone ${time(layer.TimeMicroseconds)}` : ""));
  if (layer.limit_us) line(`At least ${time(layer.limit_us)} on that machine: ${percent(ofLimit(layer) || 0)} of the limit reached`);
  const work = [layer.LimitBytes && `${bytes(layer.LimitBytes)}${layer.us ? ` (${(layer.LimitBytes / layer.us / 1000).toFixed(1)} GB/s)` : ""}`, layer.LimitOperations && `${count(layer.LimitOperations)} operations${layer.us ? ` (${(layer.LimitOperations / layer.us / 1000).toFixed(1)} G/s)` : ""}`].filter(Boolean);
  if (work.length) line(`Moves ${work.join(", computes ")}`);
  if (layer.LacksFastKernel) line("No fast kernel: " + layer.LacksFastKernel);
  if (layer.accuracy) {
    head("Beside FP32");
    layer.accuracy.forEach((row) => line(row.Reason ? `${row.EngineTensor}: not compared, ${row.Reason}` : `${row.Tensor}: ${rms(row.RelativeRms === null ? Infinity : row.RelativeRms)} off by root mean squares, ` +
      `cosine ${row.Cosine === null ? "not a number" : row.Cosine.toFixed(6)}, largest ${row.MaxAbsolute === null ? "not a number" : row.MaxAbsolute.toPrecision(3)}${row.WithinTolerance ? "" : "; beyond the tolerance"}`));
  }
  head("Tactic");
  line((layer.TacticName || "none") + (layer.TacticConfig ? `  (${[].concat(layer.TacticConfig).join(", ")})` : ""));
  for (const [title, list] of [["Inputs", layer.Inputs], ["Outputs", layer.Outputs]]) {
    if (!list || !list.length) continue;
    head(title);
    list.forEach((t) => line(`${t.Name}  [${(t.Dimensions || []).join(", ")}]  ${formatOf(t["Format/Datatype"] || "")}${t.Location === "Host" ? "  on the host" : ""}`));
  }
  if (layer.Precision) {
    head("Type");
    line(`In ${layer.Precision.Type}`);
    (layer.Precision.Others || []).forEach((o) => line(`not ${o.Type}${o.TimeMicroseconds ? ` (${time(o.TimeMicroseconds)})` : ""}: ${o.Reason || ""}`));
  }
  if (layer.RunnersUp) {
    head("What lost");
    layer.RunnersUp.forEach((r) => line(`${r.TacticName}${r.TimeMicroseconds ? ` (${time(r.TimeMicroseconds)})` : ""}: ${r.Reason || ""}`));
  }
  if (layer.NetworkLayers && layer.NetworkLayers.length) { head(layer.NetworkLayers.length > 1 ? `Fused of ${layer.NetworkLayers.length} layers of the network` : "Layer of the network"); layer.NetworkLayers.forEach((n) => line(String(n))); }
  if (layer.Constants) { head("Constants"); Object.entries(layer.Constants).forEach(([k, v]) => line(`${k}: ${v.Type} x ${v.Count}`)); }
  const rest = { ...(layer.Attributes || {}) };
  if (!isCpu() || !layer.Op) Object.keys(layer).filter((k) => !KNOWN.has(k)).forEach((k) => (rest[k] = layer[k]));
  if (Object.keys(rest).length) { head("Attributes"); Object.entries(rest).forEach(([k, v]) => line(`${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`)); }
}

// --- the table: rows in sight alone
const ROW = 26;
// Title, name, what it is sorted by, and what is shown.
const COLUMNS = [
  ["#", "index", (l, i) => i], ["Layer", "Name", (l) => l.Name], ["Time", "us", (l) => l.us, (l) => time(l.us)], ["Share", "share", share, (l) => percent(share(l))],
  ["Limit", "limit_us", (l) => l.limit_us || 0, (l) => (l.limit_us ? time(l.limit_us) : "")], ["Of limit", "limit", (l) => ofLimit(l) || 0, (l) => (ofLimit(l) === null ? "" : percent(ofLimit(l)))],
  ["Bytes", "bytes", (l) => l.LimitBytes || 0, (l) => (l.LimitBytes ? bytes(l.LimitBytes) : "")], ["Operations", "operations", (l) => l.LimitOperations || 0, (l) => (l.LimitOperations ? count(l.LimitOperations) : "")],
  ["Op", "Op", (l) => l.Op || l.LayerType || ""], ["Type", "type", (l) => l.type], ["Change", "change", (l) => l.change || ""], ["Format", "format", (l) => shortFormat(l.format)],
  ["Fused of", "made", (l) => madeOf(l).length, (l) => (madeOf(l).length > 1 ? `${madeOf(l).length}: ${madeOf(l).join(", ")}` : "")], ["Tactic", "TacticName", (l) => l.TacticName || ""],
];
const madeOf = (l) => l.NetworkLayers || [];
const NUMBERS = new Set(["index", "us", "share", "limit_us", "limit", "bytes", "operations", "fp32"]);
const DESCENDING = new Set([...NUMBERS, "change", "made"].filter((column) => column !== "index")); // at the first press
if (engines.some((e) => e.accuracy)) {
  COLUMNS.push(["To FP32", "fp32", (l) => { const gap = toFp32(l); return gap === null ? -1 : gap; }, (l) => { const gap = toFp32(l); return gap === null ? "" : rms(gap); }]);
  document.documentElement.style.setProperty("--fp32-column", "100px");
  $("colour").querySelector("[value=fp32]").hidden = false;
}
let ordered = null;
function order() {
  if (ordered) return ordered;
  const value = COLUMNS.find((c) => c[1] === sorted.column)[2];
  ordered = engine.layers.map((_, i) => i);
  const key = ordered.map((i) => value(engine.layers[i], i));
  ordered.sort((a, b) => (key[a] < key[b] ? -1 : key[a] > key[b] ? 1 : a - b) * (sorted.up ? 1 : -1));
  return ordered;
}
function table() {
  const box = $("table"), list = order(), found = new Set(hits);
  if (!box.firstChild) {
    const head = element("div", "", { class: "row head" });
    for (const [title, column] of COLUMNS) {
      const b = element("button", title, NUMBERS.has(column) ? { class: "number" } : {});
      b.addEventListener("click", () => { sorted = { column, up: sorted.column === column ? !sorted.up : !DESCENDING.has(column) }; ordered = null; box.scrollTop = 0; table(); });
      b.dataset.column = column;
      head.append(b);
    }
    box.append(head, element("div", "", { id: "rows" }));
    box.addEventListener("scroll", table);
  }
  box.querySelectorAll(".head button").forEach((b) => b.setAttribute("aria-sort", b.dataset.column !== sorted.column ? "none" : sorted.up ? "ascending" : "descending"));
  const rows = $("rows"), first = Math.max(0, Math.floor(box.scrollTop / ROW) - 5), last = Math.min(list.length, first + Math.ceil(box.clientHeight / ROW) + 12);
  rows.style.height = list.length * ROW + "px";
  rows.style.position = "relative";
  const parts = [];
  for (let k = first; k < last; ++k) {
    const i = list[k], l = engine.layers[i], row = element("div", "", { class: "row body" + (i === chosen ? " chosen" : "") + (found.has(i) ? " hit" : "") });
    row.style.top = k * ROW + "px";
    COLUMNS.forEach(([, column, value, shown]) => {
      const text = String((shown || value)(l, i));
      row.append(element("div", text, { title: text, ...(NUMBERS.has(column) ? { class: "number" } : {}) }));
    });
    row.addEventListener("click", () => choose(i));
    parts.push(row);
  }
  rows.replaceChildren(...parts);
}

// --- memory
function memory() {
  const c = $("memory"), [g, w, h] = sized(c), live = engine.memory, most = Math.max(...live, 1), n = Math.max(1, live.length);
  g.fillStyle = style("--accent");
  g.globalAlpha = 0.35;
  g.beginPath();
  g.moveTo(0, h);
  live.forEach((b, i) => { const y = h - (b / most) * (h - 24); g.lineTo((i * w) / n, y); g.lineTo(((i + 1) * w) / n, y); });
  g.lineTo(w, h);
  g.fill();
  g.globalAlpha = 1;
  g.fillStyle = style("--fg");
  g.font = "12px system-ui, sans-serif";
  const peak = live.indexOf(Math.max(...live));
  if (live.length) {
    const text = chosen >= 0 ? `layer ${chosen}: ${bytes(live[chosen])}; ` : "";
    g.fillText(cut(g, `${text}most: ${bytes(live[peak])} at layer ${peak}, ${engine.layers[peak].Name}; an execution context takes ${bytes(engine.device_memory_bytes)}`, w - 16), 8, 15);
  }
  if (chosen >= 0) { g.fillStyle = style("--accent"); g.fillRect((chosen * w) / n, 18, Math.max(1.5, w / n), h - 18); }
}
$("memory").addEventListener("click", (e) => { const r = e.target.getBoundingClientRect(); choose(Math.min(engine.layers.length - 1, Math.floor(((e.clientX - r.left) / r.width) * engine.layers.length))); });

// --- the summary, and two engines
function card(value, text) {
  const c = element("div", "", { class: "card" });
  c.append(element("b", value), element("span", text));
  return c;
}
function summary() {
  const box = $("summary"), e = engine;
  box.replaceChildren(
    card(time(e.total_us), e.measured ? "sum of layers, measured" : "sum of layers, at the build"),
    card(e.limit_us && e.total_us ? percent(Math.min(1, e.limit_us / e.total_us)) : "-", `of the limit, ${time(e.limit_us)}`),
    card(e.layers.length, `layers, ${e.profiles} profile${e.profiles > 1 ? "s" : ""}`), card(bytes(e.plan_bytes), "plan"), card(bytes(Math.max(...e.memory, 0)), "tensors at once, at most"),
    card(e.device, e.refittable ? "device; refittable" : "device"));
  const types = element("div", "", { class: "card" }), bar = element("div", "", { class: "bar" });
  const all = Object.entries(e.types).sort((a, b) => b[1].us - a[1].us), total = all.reduce((s, t) => s + t[1].us, 0);
  all.forEach(([name, row]) => {
    const part = element("div", "", { title: `${name}: ${row.layers} layers, ${time(row.us)}` });
    part.style.cssText = `background:${COLOURS[name] || COLOURS["?"]};width:${total ? (100 * row.us) / total : (100 * row.layers) / e.layers.length}%`;
    bar.append(part);
  });
  types.append(bar, element("span", all.map(([n, r]) => `${n}: ${r.layers} layers, ${total ? percent(r.us / total) : ""}`).join("   ")));
  box.append(types);
  for (const t of e.tensors) box.append(card(t.name, `${t.input ? "input" : "output"}: ${t.type} [${t.shape.join(", ")}]` +
    (t.shape.includes(-1) ? "  " + t.profiles.map((p) => `[${p[0]}] .. [${p[2]}]`).join("; ") : "")));
  if (e.accuracy) box.append(card(`${e.accuracy.beyond} of ${e.accuracy.compared}`, "tensors beyond the tolerance, beside FP32" +
    (e.accuracy.worst === null ? "" : `; worst: ${e.accuracy.worst}`)));
  if (!e.detailed) box.append(card("names only", "built without ProfilingVerbosity.DETAILED"));
  if (e.not_measured) box.append(card("not measured", e.not_measured));
  const first = (layers) => layers[0].Name + (layers.length > 1 ? ` and ${layers.length - 1} more` : "");
  for (const reason of ((e.without_fast_kernel || {}).Reasons || []).slice(0, 3)) box.append(card(percent(reason.Share), `without a fast kernel: ${first(reason.Layers)}: ${reason.Reason}`));
  if (e.copies) box.append(card(percent(e.copies.Share), `copies and changes of format: ${first(e.copies.Layers)}`));
  if (e.changes.layers) box.append(card(e.changes.layers, `layers change the type of numbers, ${percent(e.total_us ? e.changes.us / e.total_us : 0)} of the time`));
  const fused = e.layers.filter((l) => madeOf(l).length > 1);
  if (fused.length) box.append(card(fused.length, `layers are fused of ${fused.reduce((n, l) => n + madeOf(l).length, 0)} of the network`));
}
function pairs() {
  if (engines.length < 2) return;
  $("both").hidden = false;
  const [a, b] = engines, t = element("table"), head = element("tr");
  ["Layers of the network", `${a.file}: type`, "time", `${b.file}: type`, "time", "second / first"].forEach((x) => head.append(element("th", x)));
  t.append(head);
  const total = element("tr");
  const ratio = (x, y) => (x && y ? (y / x).toFixed(2) : "");
  [["all", ""], ["", ""], [time(a.total_us), "number"], ["", ""], [time(b.total_us), "number"], [ratio(a.total_us, b.total_us), "number"]].forEach(([x, c]) => total.append(element("td", x, { class: c })));
  t.append(total);
  // Engines fuse differently: groups are the smallest sets of layers that cover the same layers of the network in both.
  const parent = new Map();
  const root = (x) => { while (parent.get(x) !== x) { parent.set(x, parent.get(parent.get(x))); x = parent.get(x); } return x; };
  const names = (l) => (l.NetworkLayers && l.NetworkLayers.length ? l.NetworkLayers : [l.Name]).map(String);
  for (const e of engines) for (const l of e.layers) {
    const ns = names(l);
    ns.forEach((n) => parent.has(n) || parent.set(n, n));
    ns.forEach((n) => parent.set(root(n), root(ns[0])));
  }
  const groups = new Map();
  engines.forEach((e, k) => e.layers.forEach((l) => {
    const r = root(names(l)[0]);
    if (!groups.has(r)) groups.set(r, { names: new Set(), us: [0, 0], types: [new Set(), new Set()] });
    const group = groups.get(r);
    names(l).forEach((n) => group.names.add(n));
    group.us[k] += l.us;
    group.types[k].add(l.type);
  }));
  [...groups.values()].sort((x, y) => Math.abs(y.us[1] - y.us[0]) - Math.abs(x.us[1] - x.us[0])).slice(0, 500).forEach((group) => {
    const row = element("tr"), list = [...group.names], text = list.slice(0, 3).join(" + ") + (list.length > 3 ? ` + ${list.length - 3} more` : "");
    [[text, ""], [[...group.types[0]].join(" "), ""], [time(group.us[0]), "number"], [[...group.types[1]].join(" "), ""], [time(group.us[1]), "number"], [ratio(...group.us), "number"]]
      .forEach(([x, c]) => row.append(element("td", x, { class: c, title: list.join("\n") })));
    t.append(row);
  });
  $("pairs").replaceChildren(t);
}

// --- search, keys, start
function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  hits = !words.length ? [] : engine.layers.flatMap((l, i) => {
    const text = [l.Name, l.Op, l.LayerType, l.TacticName, l.type, ...(l.NetworkLayers || [])].join(" ").toLowerCase();
    return words.every((word) => text.includes(word)) ? [i] : [];
  });
  hit = -1;
  $("found").textContent = words.length ? `${hits.length} found` : "";
  table();
  redraw();
}
function next(step) {
  if (!hits.length) return;
  hit = (hit + step + hits.length) % hits.length;
  $("found").textContent = `${hit + 1} of ${hits.length}`;
  choose(hits[hit]);
}
function show(index) {
  engine = engines[index];
  chosen = engine.total_us ? engine.layers.reduce((most, l, i) => (l.us > engine.layers[most].us ? i : most), 0) : -1;
  ordered = null;
  document.querySelectorAll("#engines button").forEach((b, i) => b.setAttribute("aria-pressed", String(i === index)));
  $("title").textContent = engine.file + (engine.name && !/^Unnamed Network/.test(engine.name) ? ` — ${engine.name}` : "");
  if (!engine.total_us && $("colour").value === "time") $("colour").value = "type";
  search();
  summary();
  legend();
  details();
  memory();
  start();
}
function dark(on) {
  document.documentElement.classList.toggle("dark", on);
  $("dark").setAttribute("aria-pressed", String(document.documentElement.classList.contains("dark")));
  redraw();
  memory();
}
$("search").addEventListener("input", search);
$("search").addEventListener("keydown", (e) => {
  if (e.key === "Enter") { e.preventDefault(); next(e.shiftKey ? -1 : 1); }
  if (e.key === "Escape") { $("search").value = ""; search(); canvas.focus(); }
  e.stopPropagation();
});
$("colour").addEventListener("change", () => { legend(); redraw(); });
$("dark").addEventListener("click", () => dark());
$("help").addEventListener("click", () => $("keys").showModal());
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || ["SELECT", "INPUT"].includes(e.target.tagName) || $("keys").open) return;
  const pan = 80;
  const keys = {
    "/": () => $("search").focus(), j: () => choose(Math.min(chosen + 1, engine.layers.length - 1)), k: () => choose(Math.max(chosen - 1, 0)),
    "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), f: fit, c: () => centre(chosen), d: () => dark(), "?": () => $("keys").showModal(),
    e: () => engines.length > 1 && show((engines.indexOf(engine) + 1) % engines.length),
  };
  if (document.activeElement !== $("table")) Object.assign(keys, {
    ArrowLeft: () => { view.x += pan; redraw(); }, ArrowRight: () => { view.x -= pan; redraw(); }, ArrowUp: () => { view.y += pan; redraw(); }, ArrowDown: () => { view.y -= pan; redraw(); },
  });
  if (keys[e.key] && !(e.key.startsWith("Arrow") && document.activeElement !== canvas)) { e.preventDefault(); keys[e.key](); }
});
window.addEventListener("resize", () => { redraw(); memory(); table(); });
if (engines.length > 1) engines.forEach((e, i) => { const b = element("button", e.file); b.addEventListener("click", () => show(i)); $("engines").append(b); });
pairs();
dark(window.matchMedia("(prefers-color-scheme: dark)").matches);
show(0);
