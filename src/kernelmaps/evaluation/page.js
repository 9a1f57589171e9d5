"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const $ = s => document.querySelector(s);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const CYCLE = ["#c8553d", "#1b4965", "#2a9d8f", "#d9a441", "#8f6bb3", "#5b8e55", "#b05a7a", "#4f7cac", "#8a6d3b", "#666"];
const make = (name, attributes = {}, text) => {
  const svg = ["svg", "g", "line", "path", "circle", "text", "rect", "title"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
};
const short = v => v === null || v === undefined ? "–" : v === 0 ? "0" :
  Math.abs(v) >= 1e15 || Math.abs(v) < 1e-3 ? v.toExponential(1).replace("e+", "e").replace("e", "·10^").replace(/\^(.*)/, (_, p) => sup(p)).replace(/^1\.0·/, "") :
  Math.abs(v) >= 1e6 ? +(v / 1e6).toPrecision(4) + "M" : String(+v.toPrecision(Math.abs(v) < 1e4 ? 3 : 5));
const sup = s => [...s].map(c => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || (c === "-" ? "⁻" : c)).join("");
function evenTicks(lo, hi) {
  const raw = (hi - lo) / 5, p = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * p).find(s => s >= raw), t = [];
  for (let v = Math.ceil(lo / step) * step; v <= hi + 1e-12; v += step) t.push(+v.toPrecision(12));
  return t;
}
const UP = "#1b4965";
const shade = (k, n) => n === 1 ? UP : CYCLE[k % CYCLE.length];
const signed = v => (v > 0 ? "+" : "") + short(v);
const clip = (text, n) => text.length > n ? text.slice(0, Math.max(1, n - 1)) + "…" : text;
// Numbers on an axis: as many digits as its extent asks for.
function along(lo, hi) {
  const span = Math.abs(hi - lo) || Math.abs(hi) || 1, digits = Math.max(0, Math.min(8, 2 - Math.floor(Math.log10(span))));
  return v => span >= 1e6 || span < 1e-6 ? short(v) : String(+v.toFixed(digits));
}
// One function of a display's panel: curves, bands, density, and the value where it is missing.
function curve(f, lo, hi, W) {
  const H = 168, L = 46, R = 10, T = 8, B = 34, D0 = 20, svg = make("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "function of " + f.name});
  const gap = f.missing ? 56 : 0, a = f.edges[0], b = f.edges[f.edges.length - 1], num = along(a, b), tick = along(lo, hi);
  const x = v => L + (v - a) / ((b - a) || 1) * (W - L - R - gap), bottom = H - B - D0;
  const y = v => Math.max(T - 2, Math.min(bottom + 2, T + (hi - v) / ((hi - lo) || 1) * (bottom - T)));
  for (const v of evenTicks(lo, hi).filter((_, i, t) => t.length < 6 || i % 2 === 0)) svg.append(make("line", {class: v === 0 ? "axis" : "grid", x1: L, x2: W - R, y1: y(v), y2: y(v)}), make("text", {x: L - 5, y: y(v) + 4, "text-anchor": "end"}, tick(v)));
  f.heights.forEach((d, i) => { const h = (D0 - 2) * d, x0 = x(f.edges[i]); if (d > 0) svg.append(make("rect", {class: "density", x: x0, y: H - B - h, width: Math.max(1, x(f.edges[i + 1]) - x0 - 0.5), height: h})); });
  svg.append(make("line", {class: "axis", x1: L, x2: W - R - gap, y1: H - B, y2: H - B}));
  const names = new Map(f.ticks || []), label = v => names.has(v) ? names.get(v) : num(v), places = f.ticks ? [...names.keys()] : evenTicks(a, b), wide = 12 + 6.4 * Math.max(...places.map(v => label(v).length)), every = Math.max(1, Math.ceil(places.length / Math.max(1, Math.floor((W - L - R - gap) / wide))));
  const fits = v => x(v) - wide / 2 > 0 && x(v) + wide / 2 - 8 < W - gap;
  places.filter((v, i) => i % every === 0 && fits(v)).forEach(v => svg.append(make("text", {class: "tick", x: x(v), y: H - B + 14, "text-anchor": "middle"}, label(v))));
  const line = (values, k) => f.grid.map((g, i) => `${x(g).toFixed(1)} ${y(values[i][k]).toFixed(1)}`);
  f.values[0].forEach((_, k, all) => {
    if (f.lower) svg.append(make("path", {class: "band", fill: shade(k, all.length), d: "M" + line(f.upper, k).concat(line(f.lower, k).reverse()).join("L") + "Z"}));
    svg.append(make("path", {class: "curve", fill: "none", "stroke-width": 1.8, stroke: shade(k, all.length), d: "M" + line(f.values, k).join("L")}));
  });
  if (f.missing) {
    const at = W - R - gap / 2 + 4;
    svg.append(make("text", {class: "tick", x: at, y: H - B + 14, "text-anchor": "middle"}, "missing"));
    f.missing.forEach(([v, lower, upper], k, all) => { const dx = at + 5 * (k - (all.length - 1) / 2), stroke = shade(k, all.length); svg.append(make("line", {class: "error", stroke, x1: dx, x2: dx, y1: y(lower), y2: y(upper)}), make("circle", {cx: dx, cy: y(v), r: 3.2, fill: stroke})); svg.lastChild.append(make("title", {}, `missing: ${signed(v)}, ${signed(lower)} to ${signed(upper)}`)); });
  }
  return svg;
}
