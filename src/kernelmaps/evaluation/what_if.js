// ---- what if ------------------------------------------------------------------------------------
// Predictions from the tables of the model. A row is an array with a number for each column of the
// model: numbers as they are, a level by its position, -1 for another level, NaN where missing.
const F = D.form || {}, QUANTILE = 1.959963984540054;
const half = h => (h & 0x8000 ? -1 : 1) * (h & 0x7c00 ? (1 + (h & 0x3ff) / 1024) * 2 ** ((h >> 10 & 31) - 15) : (h & 0x3ff) * 2 ** -24);
function unpack(text) {  // f2, f4 or f8, and bytes
  const bytes = Uint8Array.from(atob(text.slice(2)), c => c.charCodeAt(0)).buffer;
  return text[1] === "2" ? Float32Array.from(new Uint16Array(bytes), half) : text[1] === "4" ? new Float32Array(bytes) : new Float64Array(bytes);
}
const sigmoid = z => 1 / (1 + Math.exp(-z));
const countUpTo = (sorted, x) => { let lo = 0, hi = sorted.length; while (lo < hi) { const m = (lo + hi) >> 1; if (sorted[m] <= x) lo = m + 1; else hi = m; } return lo; };
const levelCode = x => Number.isNaN(x) ? 0 : x < 0 ? 1 : x + 2;

// The two nodes that a number lies between, and their shares; beyond them the line of the end.
function between(nodes, codes, x, open) {
  const n = nodes.length, v = open ? x : Math.min(Math.max(x, nodes[0]), nodes[n - 1]);
  const left = Math.min(Math.max(countUpTo(nodes, v) - 1, 0), n - 2);
  const share = (v - nodes[left]) / (nodes[left + 1] - nodes[left]);
  return [[codes[left], 1 - share], [codes[left + 1], share]];
}
function curveCodes(term, x, open) {
  const book = F.books[term.columns[0]], n = book.nodes.length;
  if (book.category || Number.isNaN(x)) return [[levelCode(x), 1]];
  return n < 2 ? [[n, 1]] : between(term.nodes, term.codes, x, open);
}
function sideCodes(term, axis, x, open) {
  const side = term.sides[axis], n = side.nodes.length, book = F.books[term.columns[axis]];
  if (side.last) {
    const share = Number.isNaN(x) ? side.mean : (x - side.nodes[0]) / (side.nodes[n - 1] - side.nodes[0]);
    return [[1, 1 - share], [side.last, share]];
  }
  if (n > 1 && !Number.isNaN(x)) return between(side.nodes, side.codes, x, open);
  const code = book.category || Number.isNaN(x) ? levelCode(x) : book.nodes.length ? 1 + countUpTo(side.edges, x) : 0;
  return [[side.coarse[code], 1]];
}
// Codes of a term and their shares, which add up to one.
function codes(term, row, open) {
  if (!term.sides) return curveCodes(term, row[term.columns[0]], open);
  const [first, second] = [0, 1].map(axis => sideCodes(term, axis, row[term.columns[axis]], open));
  return first.flatMap(([i, p]) => second.map(([j, q]) => [i * term.across + j, p * q]));
}
const total = (found, table, width, k) => found.reduce((sum, [code, share]) => sum + share * table[code * width + k], 0);

function standardErrors(row, missed) {
  const design = [1];
  F.terms.forEach((term, t) => { const found = codes(term, row, term.open[1]); for (let i = 0; i < F.widths[t]; i++) design.push(total(found, F.bases[t], F.widths[t], i)); });
  const n = design.length, code = F.levels ? levelCode(row[F.terms[F.levels.term].columns[0]]) : 0;
  return F.factors.map((factor, k) => {
    const deviations = new Float64Array(n);
    design.forEach((d, i) => { if (d) for (let j = 0; j <= i; j++) deviations[j] += d * factor[i * (i + 1) / 2 + j]; });
    let square = missed[k] ** 2;
    if (F.levels) {
      const directions = F.levels.directions[k], width = directions.length / n;
      for (let j = 0; j < n; j++) for (let i = 0; i < width; i++) deviations[j] += F.levels.loadings[k][code * width + i] * directions[j * width + i];
      square += F.levels.variances[k][code];
    }
    return Math.sqrt(deviations.reduce((sum, d) => sum + d * d, square));
  });
}
// Probabilities of the classes.
function probabilities(scores) {
  if (F.link === "cumulative logit") {
    const reached = [0, ...F.thresholds.map(t => sigmoid(t - scores[0])), 1];
    return reached.slice(1).map((p, k) => p - reached[k]);
  }
  const most = Math.max(...scores), parts = scores.map(F.link === "softmax" ? z => Math.exp(z - most) : sigmoid);
  if (scores.length === 1) return [1 - sigmoid(scores[0]), sigmoid(scores[0])];
  const sum = parts.reduce((a, b) => a + b, 0);
  return parts.map(p => sum > 0 ? p / sum : 1 / parts.length);
}
// Scores, contributions by term, standard errors of the scores, and what is predicted.
function whatIf(row) {
  const outputs = F.intercept.map((_, k) => k), K = outputs.length;
  const found = F.terms.map(term => codes(term, row, term.open[0]));
  const terms = F.terms.map((term, t) => outputs.map(k => total(found[t], term.values, K, k)));
  const scores = outputs.map(k => terms.reduce((sum, values) => sum + values[k], F.intercept[k]));
  const missed = outputs.map(k => F.terms.reduce((sum, term) => sum + total(codes(term, row, term.open[1]), term.values, K, k), F.intercept[k] - scores[k]));
  for (const [pair, single, values] of F.moved) for (const k of outputs) {
    const part = total(found[single], values, K, k);
    terms[pair][k] -= part;
    terms[single][k] += part;
  }
  const result = {scores, terms, errors: F.factors ? standardErrors(row, missed) : null};
  const mean = z => F.classes.length ? probabilities([z])[1] : F.link === "log" ? Math.exp(z) : F.link === "logit" ? sigmoid(z) : z;
  result.prediction = mean(scores[0]);
  if (result.errors && F.classes.length <= 2) result.interval = [-1, 1].map(sign => mean(scores[0] + sign * QUANTILE * result.errors[0]));
  if (F.classes.length) result.probabilities = probabilities(scores);
  else if (K > 1) result.deviation = Math.exp(scores[1]);  // of a loss of location and scale
  return result;
}

// ---- dates: years with a fraction, and parts, as data/dates.py computes them --------------------
const YEAR = y => Date.UTC(y, 0, 1);
const toYears = t => { const y = new Date(t).getUTCFullYear(); return y + (t - YEAR(y)) / (YEAR(y + 1) - YEAR(y)); };
const fromYears = v => { const y = Math.floor(v); return 1000 * Math.round((YEAR(y) + (v - y) * (YEAR(y + 1) - YEAR(y))) / 1000); };
function datePart(part, t) {
  const d = new Date(t), y = d.getUTCFullYear(), m = d.getUTCMonth();
  if (part === "month") return m + 1 + (d.getUTCDate() - 1) / ((Date.UTC(y, m + 1, 1) - Date.UTC(y, m, 1)) / 864e5);
  return part === "weekday" ? (d.getUTCDay() + 6) % 7 : (t % 864e5 + 864e5) % 864e5 / 36e5;
}
function setDate(row, input, years) {
  row[input.books[0]] = years;
  input.parts.forEach((part, i) => {
    const j = input.books[i + 1], value = Number.isNaN(years) ? NaN : datePart(part, fromYears(years));
    row[j] = F.books[j].category && !Number.isNaN(value) ? F.books[j].levels.indexOf(input.weekdays[value]) : value;
  });
}

// ---- the form -----------------------------------------------------------------------------------
if (F.intercept) {
  F.books.forEach(book => { book.nodes = unpack(book.nodes); });
  F.terms.forEach(term => {
    term.values = unpack(term.values);
    const nodes = [...F.books[term.columns[0]].nodes], n = nodes.length, codes = nodes.map((_, i) => i + 1);
    if (n > 1 && nodes[0] + term.period > nodes[n - 1]) {
      nodes.push(nodes[0] + term.period); codes.push(1);
      nodes.unshift(nodes[n - 1] - term.period); codes.unshift(n);
    }
    const at = term.straight ? [0, n - 1] : [...nodes.keys()];
    term.nodes = at.map(i => nodes[i]);
    term.codes = at.map(i => codes[i]);
    for (const side of term.sides || []) { for (const key of ["nodes", "edges"]) side[key] = unpack(side[key]); side.codes = Array.from(side.nodes, (_, i) => i + 1); }
  });
  F.moved.forEach(item => { item[2] = unpack(item[2]); });
  if (F.factors) {
    for (const part of ["bases", "factors"]) F[part] = F[part].map(unpack);
    for (const part of F.levels ? ["loadings", "directions", "variances"] : []) F.levels[part] = F.levels[part].map(unpack);
  }
}
const SHOWN_INPUTS = 30, SHOWN_BARS = 15, digits = v => String(+v.toPrecision(5));
function buildForm() {
  let row = [];
  const refresh = [], more = make("div", {class: "inputs"});
  const show = () => {
    const result = whatIf(row), k = F.intercept.length > 1 ? +$("#what-output").value : 0, p = result.probabilities;
    const ends = result.interval ? `; 95 % interval${p || F.hazard ? "" : " of the mean"} ${result.interval.map(digits).join(" … ")}` : "";
    const best = p ? p.indexOf(Math.max(...p)) : 0, shown = p && p.length === 2 ? 1 : best;
    $("#what-words").textContent = p ? `Probability of ${F.classes[shown]}: ${digits(p[shown])}${ends}` : `${F.hazard ? "Log hazard" : "Prediction"} ${digits(result.prediction)}${ends}` + (result.deviation ? `; standard deviation of single rows ${digits(result.deviation)}` : "");
    if (p) bars($("#what-classes"), F.classes.map((name, i) => [name, p[i]]), false);
    const lines = F.terms.map((term, t) => [term.name, result.terms[t][k]]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const rest = lines.splice(SHOWN_BARS);
    if (rest.length) lines.push([`${rest.length} more terms`, rest.reduce((sum, line) => sum + line[1], 0)]);
    bars($("#what-terms"), lines, true);
    $("#what-sum").textContent = `With the intercept, ${digits(F.intercept[k])}, they add up to the score: ${digits(result.scores[k])}.`;
  };
  F.inputs.forEach((input, i) => {
    const j = input.books[0], id = `what-${i}`, box = make("div", {class: "input"});
    box.append(make("label", {for: id, class: "name"}, input.name + (input.unit ? ` (${input.unit})` : "")));
    if (input.kind === "category") {
      const list = make("select", {id});
      F.books[j].levels.forEach((name, k) => list.append(make("option", {value: k}, name)));
      list.append(make("option", {value: -1}, "(another level)"), make("option", {value: "NaN"}, "(missing)"));
      list.addEventListener("change", () => { row[j] = +list.value; show(); });
      refresh.push(() => { list.value = String(row[j]); });
      box.append(list);
    } else {
      const isDate = input.kind === "date", hours = isDate && input.parts.includes("hour");
      const text = make("input", isDate ? {id, type: hours ? "datetime-local" : "date"} : {id, type: "number", step: "any", placeholder: "missing"});
      const slider = make("input", {type: "range", "aria-label": input.name, min: 0, max: 1, step: "any"});
      if (!isDate) { slider.min = input.low; slider.max = input.high; slider.step = input.whole ? 1 : (input.high - input.low) / 1000 || "any"; }
      const iso = v => Number.isNaN(v) ? "" : new Date(fromYears(v)).toISOString().slice(0, hours ? 16 : 10);
      const set = value => { if (isDate) setDate(row, input, value); else row[j] = value; };
      const typed = () => {
        if (text.value === "") set(NaN);
        else if (isDate) set(toYears(Date.parse(text.value + (hours ? "Z" : ""))));
        else set(+(slider.value = text.value));
        show();
      };
      for (const event of ["input", "change"]) text.addEventListener(event, typed);
      slider.addEventListener("input", () => { text.value = String(+(+slider.value).toPrecision(8)); set(+text.value); show(); });
      refresh.push(() => { if (isDate) setDate(row, input, row[j]); const v = row[j]; text.value = isDate ? iso(v) : Number.isNaN(v) ? "" : String(v); slider.value = Number.isNaN(v) ? input.low : v; });
      box.append(text);
      if (input.high > input.low) box.append(slider);
    }
    (i < SHOWN_INPUTS ? $("#what-inputs") : more).append(box);
  });
  if (more.childElementCount) { const rest = make("details"); rest.append(make("summary", {}, `${more.childElementCount} more columns, which matter less`), more); $("#what-inputs").after(rest); }
  F.starts.forEach(([name], i) => $("#what-start").append(make("option", {value: i}, name)));
  F.outputs.forEach((name, i) => $("#what-output").append(make("option", {value: i}, `contributions to ${name}`)));
  $("#what-output").hidden = F.outputs.length === 1;
  const start = () => { row = F.starts[+$("#what-start").value][1].map(v => v === null ? NaN : v); refresh.forEach(f => f()); show(); };
  $("#what-start").addEventListener("change", start);
  $("#what-output").addEventListener("change", show);
  start();
}
$("#what-if").hidden = !D.form;
$("#what-note").textContent = F.sentence;
$("#what-note").hidden = !F.sentence;
if (F.intercept) buildForm(); else for (const e of document.querySelectorAll("#what-if .controls, #what-if .pair, #what-words")) e.hidden = true;
