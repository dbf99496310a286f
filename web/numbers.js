/* Figures as people read them, and small words for building the page. */

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0,
    value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  if (Number.isInteger(value) || unit === 0) return `${value} ${units[unit]}`;
  return `${value.toPrecision(value >= 1000 ? 4 : 3)} ${units[unit]}`;
}

function countText(count) {
  return count.toLocaleString("en-US");
}

const TIMES = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }; /* in ns */

/* A cost with its unit: times are shown in the unit that fits, other costs in powers of a thousand. */
function costText(cost, unit) {
  if (TIMES[unit]) {
    const time = cost * TIMES[unit];
    const [size, name] = [
      [1e9, "s"],
      [1e6, "ms"],
      [1e3, "µs"],
      [1, "ns"],
    ].find(([size]) => time >= size || size === 1);
    return `${size === 1 ? countText(time) : (time / size).toPrecision(3)} ${name}`;
  }
  const count = shortCount(cost);
  return unit ? count + unit : `${count.trim()} units`;
}

/* "26.32 M", with a space behind a number without a letter. */
function shortCount(count) {
  const scale = [
    [1e18, "E"],
    [1e15, "P"],
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
  ].find(([size]) => count >= size);
  return scale ? `${+(count / scale[0]).toPrecision(4)} ${scale[1]}` : `${countText(count)} `;
}

/* Costs from a model of the machine alone compare plans; as times they would look measured. */
function isModelled(file) {
  return file.cost_measured === false;
}

/* Whether costs can only be compared: they are modelled, or the unit is in a profile that is not here. */
function isRelative(file) {
  return isModelled(file) || file.cost_unit === undefined;
}

/* A cost of a file: in its unit or, where costs are relative, as a share of a step with everything kept. */
function priceText(file, cost) {
  if (!isRelative(file)) return costText(cost, file.cost_unit);
  const base = (file.figures || {}).base_cost;
  return base ? percentText(cost / base) : "–";
}

/* How much more a cost is than keeping everything: "+17.0 %". */
function moreText(file, cost) {
  const base = (file.figures || {}).base_cost;
  return base ? `${cost < base ? "−" : "+"}${percentText(Math.abs(cost - base) / base)}` : "–";
}

/* Small shares keep one digit: "0.003 %". */
function percentText(share) {
  const percent = share * 100;
  if (percent === 0 || Math.abs(percent) >= 0.05) return `${percent.toFixed(1)} %`;
  return `${(+percent.toPrecision(1)).toLocaleString("en-US", { maximumFractionDigits: 20 })} %`;
}

/* What a cost is above a lower bound, at most: with the digits that `remat plan` prints. */
function boundText(share) {
  const text = (share * 100).toFixed(2);
  return text === "0.00" ? percentText(share) : `${text} %`;
}

/* Round figures for a byte axis: multiples of a power of two. */
function byteTicks(min, max, wanted) {
  const rough = Math.max((max - min) / wanted, 1);
  const step = 2 ** Math.ceil(Math.log2(rough));
  const ticks = [];
  for (let at = Math.ceil(min / step) * step; at <= max; at += step) ticks.push({ value: at });
  return ticks;
}

/* A tick's bytes in the largest unit that says them shortly and exactly: "1.5 MiB", but "1,040 MiB", not "1.02 GiB". */
function byteTickText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  for (let unit = units.length - 1; unit > 0; unit--) {
    const value = bytes / 1024 ** unit;
    if (value >= 1 && (Number.isInteger(value) || +value.toPrecision(4) === value))
      return `${countText(value)} ${units[unit]}`;
  }
  return `${countText(bytes)} B`;
}

/* The round number at or above: 1, 2 or 5 times a power of ten. */
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((each) => each * power >= rough * (1 - 1e-9));
}

function roundTicks(min, max, wanted) {
  const step = roundStep((max - min) / wanted),
    ticks = [];
  for (let n = Math.ceil(min / step); n * step <= max; n++) ticks.push({ value: n * step });
  return ticks;
}

/* Without the digits that adding up in binary leaves behind. */
function roundText(value) {
  return String(+value.toPrecision(6));
}

/* el("p", { class: "quiet" }, "text", child): an element. Text is never read as HTML. */
function el(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/* Inline style attributes are not needed: colours are set through the CSSOM. */
function swatch(variable) {
  const made = el("i", { "aria-hidden": "true" });
  made.style.background = `var(--${variable})`;
  return made;
}

function legend(entries) {
  return el("ul", { class: "legend" }, ...entries.map(([variable, name]) => el("li", {}, swatch(variable), name)));
}

/* A table in a box that scrolls both ways. Heads are {name, number}; a cell is text or an element; the cells of a column
 * with `row` name their rows. */
function scrollTable(label, heads, rows) {
  const cell = (tag, head, content, scope) =>
    el(tag, { class: head.class || (head.number ? "number" : null), scope }, content);
  const line = (row) =>
    el(
      "tr",
      {},
      ...row.map((each, i) => cell(heads[i].row ? "th" : "td", heads[i], each, heads[i].row ? "row" : null)),
    );
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": label },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, ...heads.map((head) => cell("th", head, head.name, "col")))),
      el("tbody", {}, ...rows.map((row) => line(row.map((each) => (each instanceof Node ? each : String(each)))))),
    ),
  );
}

const ROWS_SHOWN = 2000;

/* The rows to show of `count`: all, or what `thin` leaves of them, and then a word about the rest. */
function shownRows(count, thin) {
  const every = Math.ceil(count / ROWS_SHOWN);
  const note = `Of ${countText(every)} steps each, the fullest is shown.`;
  return count <= ROWS_SHOWN ? { rows: [...Array(count).keys()], note: "" } : { rows: thin(ROWS_SHOWN), note };
}

/* A table behind a <details>, for those who would rather read than look. */
function tableDetails(title, heads, rows, note) {
  const details = el("details", {}, el("summary", {}, title));
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    if (note) details.append(el("p", { class: "quiet" }, note));
    details.append(scrollTable(title, heads, rows()));
  });
  return details;
}
