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
  Math.abs(v) >= 1e4 || Math.abs(v) < 1e-3 ? v.toExponential(1).replace("e+", "e").replace("e", "·10^").replace(/\^(.*)/, (_, p) => sup(p)).replace(/^1\.0·/, "") :
  String(+v.toPrecision(3));
const sup = s => [...s].map(c => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || (c === "-" ? "⁻" : c)).join("");
function evenTicks(lo, hi) {
  const raw = (hi - lo) / 5, p = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * p).find(s => s >= raw), t = [];
  for (let v = Math.ceil(lo / step) * step; v <= hi + 1e-12; v += step) t.push(+v.toPrecision(12));
  return t;
}
