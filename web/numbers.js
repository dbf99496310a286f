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

function costText(cost, unit) {
  if (unit === "ns") {
    for (const [size, name] of [
      [1e9, "s"],
      [1e6, "ms"],
      [1e3, "µs"],
    ])
      if (cost >= size) return `${(cost / size).toPrecision(3)} ${name}`;
  }
  const scale = [
    [1e18, "E"],
    [1e15, "P"],
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
  ].find(([size]) => cost >= size);
  const text = scale
    ? `${+(cost / scale[0]).toPrecision(4)} ${scale[1]}${unit || ""}`
    : `${countText(cost)} ${unit || ""}`;
  return text.trim();
}

/* Costs from a model of the machine alone compare plans; as times they would look measured. */
function isModelled(file) {
  return file.cost_measured === false;
}

/* A cost of a file: in its unit or, where costs are modelled, as a share of a step with everything kept. */
function priceText(file, cost) {
  if (!isModelled(file)) return costText(cost, file.cost_unit);
  const base = (file.figures || {}).base_cost;
  return base ? percentText(cost / base) : "–";
}

/* How much more a cost is than keeping everything: "+17.0 %". */
function moreText(file, cost) {
  const base = (file.figures || {}).base_cost;
  return base ? `${cost < base ? "−" : "+"}${percentText(Math.abs(cost - base) / base)}` : "–";
}

function percentText(share) {
  const percent = share * 100;
  return percent > 0 && percent < 0.05 ? "under 0.1 %" : `${percent.toFixed(1)} %`;
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

/* A table behind a <details>, for those who would rather read than look. */
function tableDetails(title, heads, rows) {
  const cells = (row, tag) =>
    row.map((cell, i) =>
      el(tag, { class: heads[i].number ? "number" : null, scope: tag === "th" ? "col" : null }, String(cell)),
    );
  const details = el("details", {}, el("summary", {}, title));
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    details.append(
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": title },
        el(
          "table",
          {},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ...cells(
                heads.map((head) => head.name),
                "th",
              ),
            ),
          ),
          el("tbody", {}, ...rows().map((row) => el("tr", {}, ...cells(row, "td")))),
        ),
      ),
    );
  });
  return details;
}
