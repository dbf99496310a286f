/* What it comes to, in words and in a few figures. */

function recomputedCount(file) {
  if (file.figures && file.figures.recomputed_layers !== undefined) return file.figures.recomputed_layers;
  return file.layers && file.layers.decision
    ? file.layers.decision.filter((each) => each === "recompute").length
    : null;
}

/* What is kept or recomputed. */
function thingsOf(file) {
  return file.kind === "graph" ? "actions" : "layers";
}

/* How many there are to decide about. */
function decidedCount(file) {
  return file.kind === "graph" ? file.graph.may_run_again : file.layers ? file.layers.name.length : 0;
}

function leadOf(file) {
  const figures = file.figures || {},
    unit = file.cost_unit,
    layers = decidedCount(file);
  if (file.lead) return file.lead;
  if (file.kind === "run" || file.kind === "model") return runLead(file);
  const peak = bytesText(figures.peak_bytes || 0);
  if (file.feasible === false) {
    const budget = bytesText(figures.budget_bytes || figures.kept_budget_bytes || 0);
    return `No plan: the budget of ${budget} is too small; the smallest that was found is ${bytesText(figures.min_budget_bytes || 0)}.`;
  }
  if (!figures.peak_bytes) return `${countText(layers)} ${thingsOf(file)}.`;
  if (file.kind === "profile") {
    const cost = costText(figures.total_cost, unit);
    return `Keeping the activations of all ${countText(layers)} layers takes ${peak} at the peak and costs ${cost} a pass.`;
  }
  const saved = figures.base_peak_bytes - figures.peak_bytes;
  if (!(saved > 0)) return `The peak is ${peak}: as much as keeping everything.`;
  const less = percentText(saved / figures.base_peak_bytes);
  const more = percentText((figures.total_cost - figures.base_cost) / figures.base_cost);
  const recomputed = recomputedCount(file);
  const how =
    recomputed === null
      ? "It"
      : `${countText(recomputed)} of ${countText(layers)} ${thingsOf(file)} are recomputed${file.kind === "graph" ? "" : " in the backward pass"}, which`;
  return `The peak is ${peak} instead of ${bytesText(figures.base_peak_bytes)} (${less} less). ${how} costs ${more} more.`;
}

/* Of a run or a model: how far it came, and what its memory comes to. */
function runLead(file) {
  const figures = file.figures,
    training = ((file.loss && file.loss.series) || []).find((line) => line.name === "training"),
    words = [];
  const known = training ? training.value.filter((value) => value !== null) : [];
  const figure = (value) => (+value).toPrecision(3);
  if (known.length > 0)
    words.push(
      `${countText(training.step.length)} steps, in which the loss went from ${figure(known[0])} ` +
        `to ${figure(known[known.length - 1])}.`,
    );
  const more = figures.base_cost
    ? `, for ${percentText((figures.total_cost - figures.base_cost) / figures.base_cost)} more time ` +
      (isModelled(file) ? "(modelled)" : "by the profile")
    : "";
  if (figures.keep_all_bytes > figures.total_bytes)
    words.push(
      `All tensors take ${bytesText(figures.total_bytes)} instead of ${bytesText(figures.keep_all_bytes)} ` +
        `with everything kept (${percentText(1 - figures.total_bytes / figures.keep_all_bytes)} less); ` +
        `${countText(figures.recomputed_layers)} of ${countText(figures.layers)} layers are recomputed${more}.`,
    );
  else if (figures.total_bytes)
    words.push(
      `All tensors take ${bytesText(figures.total_bytes)}` +
        (figures.recomputed_layers
          ? `, as much as with everything kept, though ${countText(figures.recomputed_layers)} of ` +
            `${countText(figures.layers)} layers are recomputed${more}.`
          : "; everything is kept."),
    );
  if (file.ended === false) words.push("The run is not over, or was stopped from outside.");
  return words.join(" ");
}

function runCards(file, add) {
  const figures = file.figures;
  if (figures.total_bytes !== undefined)
    add("memory for tensors", bytesText(figures.total_bytes), `${countText(figures.total_bytes)} bytes`);
  if (figures.budget_bytes !== undefined)
    add(
      "budget",
      bytesText(figures.budget_bytes),
      `${bytesText(Math.max(0, figures.budget_bytes - figures.total_bytes))} to spare`,
    );
  if (figures.keep_all_bytes !== undefined)
    add("with everything kept", bytesText(figures.keep_all_bytes), "for tensors");
  if (figures.layers)
    add("recomputed", `${countText(figures.recomputed_layers)} of ${countText(figures.layers)}`, "layers");
  if (figures.step_ns) add("time of a step", costText(figures.step_ns, "ns"), "measured, median");
  if (figures.total_cost && isModelled(file))
    add("time of a step", moreText(file, figures.total_cost), "modelled, over keeping everything");
  else if (figures.total_cost)
    add(
      "time of a step",
      costText(figures.total_cost, file.cost_unit),
      figures.base_cost ? `${costText(figures.base_cost, file.cost_unit)} with everything kept` : "",
    );
  if (figures.parameters) add("parameters", costText(figures.parameters, ""), "trained values");
}

function cardsOf(file) {
  const figures = file.figures || {},
    cards = [];
  const add = (name, big, small) =>
    cards.push(
      el(
        "dl",
        { class: "card" },
        el("dt", {}, name),
        el("dd", { class: "big" }, big),
        el("dd", { class: "quiet" }, small || ""),
      ),
    );
  if (file.kind === "run" || file.kind === "model") {
    runCards(file, add);
    return el("div", { class: "cards" }, ...cards);
  }
  if (figures.peak_bytes !== undefined)
    add("peak", bytesText(figures.peak_bytes), `${countText(figures.peak_bytes)} bytes`);
  if (figures.budget_bytes !== undefined)
    add(
      "budget",
      bytesText(figures.budget_bytes),
      figures.peak_bytes !== undefined ? `${bytesText(figures.budget_bytes - figures.peak_bytes)} to spare` : "",
    );
  if (figures.total_cost !== undefined) {
    const more = figures.base_cost ? (figures.total_cost - figures.base_cost) / figures.base_cost : 0;
    add(
      "cost",
      costText(figures.total_cost, file.cost_unit),
      more > 0 ? `${percentText(more)} more than keeping everything` : "as keeping everything",
    );
  }
  if (figures.lower_bound_cost !== undefined && file.kind !== "profile" && figures.total_cost !== undefined) {
    const gap = figures.total_cost - figures.lower_bound_cost;
    add(
      "from the cheapest",
      gap === 0 ? "0 %" : `≤ ${percentText(gap / figures.lower_bound_cost)}`,
      gap === 0 ? "optimal: proven" : "by the lower bound",
    );
  }
  const recomputed = recomputedCount(file);
  if (recomputed !== null && file.kind !== "profile" && file.feasible !== false)
    add(
      "recomputed",
      `${countText(recomputed)} of ${countText(decidedCount(file))}`,
      figures.kept_bytes !== undefined ? `${bytesText(figures.kept_bytes)} kept` : "",
    );
  const least = figures.min_total_budget_bytes ?? figures.min_budget_bytes; /* of a model: for all memory */
  if (least !== undefined && file.kind !== "profile")
    add(
      "least budget",
      bytesText(least),
      figures.min_budget_bound_bytes !== undefined
        ? `no schedule needs less than ${bytesText(figures.min_budget_bound_bytes)}`
        : file.strategy
          ? `of ${file.strategy}`
          : "",
    );
  return el("div", { class: "cards" }, ...cards);
}

const COMPARED = [
  ["peak_bytes", "peak", "bytes"],
  ["arena_bytes", "arena", "bytes"],
  ["total_cost", "cost", "cost"],
  ["kept_bytes", "kept", "bytes"],
  ["recomputed_layers", "layers recomputed", "count"],
  ["recompute_flops", "recomputed flops", "count"],
  ["steps", "steps", "count"],
  ["total_bytes", "memory for tensors", "bytes"],
  ["keep_all_bytes", "with everything kept", "bytes"],
  ["budget_bytes", "budget", "bytes"],
  ["base_peak_bytes", "peak, everything kept", "bytes"],
];

/* What a file says of a row. Of a run the cost is the time that its steps took. */
function comparedValue(file, key) {
  const figures = file.figures || {};
  return key === "total_cost" && figures.total_cost === undefined ? figures.step_ns : figures[key];
}

/* A cost says where it comes from: modelled, from a profile, or measured in the run. */
function comparedCost(file, cost) {
  if (isModelled(file)) return `${moreText(file, cost)} (modelled)`;
  const source = file.kind === "run" ? " (measured)" : file.kind === "model" ? " (by the profile)" : "";
  return costText(cost, file.cost_unit) + source;
}

function figureTable(files) {
  const show = (file, key, kind) => {
    const value = comparedValue(file, key);
    if (value === undefined) return "–";
    return kind === "bytes" ? bytesText(value) : kind === "cost" ? comparedCost(file, value) : countText(value);
  };
  const change = (key, kind) => {
    const a = comparedValue(files[0], key),
      b = comparedValue(files[1], key);
    if (a === undefined || b === undefined) return "–";
    if (kind === "cost" && isModelled(files[0]) !== isModelled(files[1])) return "–";
    return a === b ? "same" : a === 0 ? "–" : (b > a ? "+" : "−") + percentText(Math.abs(b - a) / a);
  };
  const rows = COMPARED.filter(([key]) => files.some((file) => comparedValue(file, key) !== undefined));
  const trained = files.every((file) => file.kind === "run" || file.kind === "model");
  const titleOf = (name, kind) => (kind === "cost" && trained ? "time of a step" : name);
  const heads = ["figure", ...files.map((file) => file.label), ...(files.length === 2 ? ["difference"] : [])];
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": "Figures side by side" },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", class: i ? "number" : null }, head))),
      ),
      el(
        "tbody",
        {},
        ...rows.map(([key, name, kind]) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, titleOf(name, kind)),
            ...files.map((file) => el("td", { class: "number" }, show(file, key, kind))),
            files.length === 2 ? el("td", { class: "number" }, change(key, kind)) : null,
          ),
        ),
      ),
    ),
  );
}
