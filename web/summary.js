/* What it comes to, in words and in a few figures. */

/* A piece that keeps its input only is recomputed in its backward pass. */
function isRecomputed(decision) {
  return decision === "recompute" || /^input only( #\d+)?$/.test(decision);
}

/* How many layers (of a graph: actions) are recomputed, and of how many. Of a model they are the model's layers, as in
 * the terminal, not the pieces that it was cut into. Null: not known. */
function recomputedOf(file) {
  const figures = file.figures || {},
    decisions = file.layers && file.layers.decision;
  const of =
    figures.model_layers ?? figures.layers ?? (file.graph ? file.graph.may_run_again : decisions && decisions.length);
  const count =
    figures.recomputed_model_layers ??
    figures.recomputed_layers ??
    (decisions ? decisions.filter(isRecomputed).length : undefined);
  return of === undefined || count === undefined || file.kind === "profile" ? null : { count, of };
}

function recomputedText(file) {
  const { count, of } = recomputedOf(file);
  return `${countText(count)} of ${countText(of)}`;
}

/* What is kept or recomputed, and what the table lists. */
function thingsOf(file) {
  return file.kind === "graph" ? "actions" : "layers";
}

function rowsOf(file) {
  return (file.figures || {}).model_layers ? "pieces" : thingsOf(file);
}

/* A plan file of a model has the model's figures beside those of the chain. They are what the terminal says. */
function takeModelFigures(file) {
  const figures = file.figures;
  if (!figures || figures.keep_all_total_bytes === undefined) return;
  file.whole = true;
  figures.keep_all_bytes = figures.keep_all_total_bytes;
  figures.budget_bytes = figures.total_budget_bytes;
  figures.min_budget_bytes = figures.min_total_budget_bytes;
}

/* Whether the figures are those of all memory of a training. */
function isWhole(file) {
  return file.kind === "run" || file.kind === "model" || file.whole;
}

/* The smallest budget: the curve's, where there is a curve. */
function leastBudget(file) {
  const stated = (file.figures || {}).min_budget_bytes,
    points = file.curve && file.curve.points;
  return points && points.length > 0 ? Math.min(points[0][0], stated ?? Infinity) : stated;
}

function moreWords(file) {
  const { total_cost: cost, base_cost: base } = file.figures;
  if (!base || !cost) return "";
  const from = isModelled(file) ? " (modelled)" : file.kind === "model" ? " by the profile" : "";
  return `${percentText((cost - base) / base)} more ${isWhole(file) ? "time" : "cost"}${from}`;
}

function leadOf(file) {
  const figures = file.figures || {},
    rows = file.layers ? file.layers.name.length : 0;
  if (file.lead) return file.lead;
  if (file.feasible === false) {
    const budget = bytesText(figures.budget_bytes || figures.kept_budget_bytes || 0),
      least = bytesText(leastBudget(file) || 0);
    return `No plan: the budget of ${budget} is too small; the smallest that was found is ${least}.`;
  }
  if (isWhole(file)) return runLead(file);
  const peak = bytesText(figures.peak_bytes || 0);
  if (!figures.peak_bytes) return `${countText(rows)} ${rowsOf(file)}.`;
  if (file.kind === "profile") {
    const cost = costText(figures.total_cost, file.cost_unit);
    return `Keeping all activations of ${countText(rows)} layers takes ${peak} at the peak and costs ${cost} a pass.`;
  }
  const saved = figures.base_peak_bytes - figures.peak_bytes;
  if (!(saved > 0)) return `The peak is ${peak}: as much as keeping everything.`;
  const less = percentText(saved / figures.base_peak_bytes),
    where = file.kind === "graph" ? "" : " in the backward pass";
  const how = recomputedOf(file) ? `${recomputedText(file)} ${thingsOf(file)} are recomputed${where}` : "Recomputation";
  return (
    `The peak is ${peak} instead of ${bytesText(figures.base_peak_bytes)} (${less} less). ` +
    `${how}${recomputedOf(file) ? ", for " : ": "}${moreWords(file) || "more cost"}.`
  );
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
      known.length === 1
        ? `One step, with a loss of ${figure(known[0])}.`
        : `${countText(training.step.length)} steps, in which the loss went from ${figure(known[0])} ` +
            `to ${figure(known[known.length - 1])}.`,
    );
  const more = moreWords(file),
    price = more ? `, for ${more}` : "",
    recomputed = recomputedOf(file);
  if (figures.keep_all_bytes > figures.total_bytes)
    words.push(
      `All tensors take ${bytesText(figures.total_bytes)} instead of ${bytesText(figures.keep_all_bytes)} ` +
        `with everything kept (${percentText(1 - figures.total_bytes / figures.keep_all_bytes)} less)` +
        (recomputed ? `; ${recomputedText(file)} layers are recomputed${price}.` : "."),
    );
  else if (figures.total_bytes)
    words.push(
      `All tensors take ${bytesText(figures.total_bytes)}` +
        (recomputed && recomputed.count
          ? `, as much as with everything kept, though ${recomputedText(file)} layers are recomputed${price}.`
          : "; everything is kept."),
    );
  if (file.ended === false) words.push("The run is not over, or was stopped from outside.");
  return words.join(" ");
}

/* Of a strategy that takes no budget, the curve knows smaller budgets; where a bound is proven, it is said. */
function leastWords(file) {
  const { min_budget_bound_bytes: bound } = file.figures,
    least = leastBudget(file);
  if (bound === least) return "proven: no plan takes less";
  if (bound !== undefined) return `found; proven: no plan takes less than ${bytesText(bound)}`;
  return file.curve ? "the least that was found" : `the least of ${file.strategy || "this plan"}`;
}

function costCard(file, add) {
  const { total_cost: cost, base_cost: base, step_ns: measured } = file.figures,
    name = isWhole(file) ? "time of a step" : "cost";
  if (measured) add(name, costText(measured, "ns"), "measured, median");
  if (cost === undefined) return;
  const more = base ? (cost - base) / base : 0,
    than = more > 0 ? `${percentText(more)} more than keeping everything` : "as keeping everything";
  if (isRelative(file))
    add(name, moreText(file, cost), `${isModelled(file) ? "modelled, " : ""}over keeping everything`);
  else add(name, costText(cost, file.cost_unit), than);
}

/* What a plan costs above a proven bound. A model's own bound is not that of its chain. */
function boundCard(file, add) {
  const { total_cost: cost, lower_bound_cost: bound } = file.figures;
  if (cost === undefined || bound === undefined || file.kind === "profile" || isWhole(file)) return;
  const gap = cost - bound;
  add(
    "above the cheapest",
    gap ? boundText(gap / bound) : "0 %",
    gap ? "at most, by a lower bound" : "optimal: proven",
  );
}

function cardsOf(file) {
  const figures = file.figures || {},
    cards = [],
    whole = isWhole(file),
    taken = whole ? figures.total_bytes : figures.peak_bytes;
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
  if (taken !== undefined) add(whole ? "memory for tensors" : "peak", bytesText(taken), `${countText(taken)} bytes`);
  if (figures.budget_bytes !== undefined)
    add(
      "budget",
      bytesText(figures.budget_bytes),
      taken === undefined ? "" : `${bytesText(Math.max(0, figures.budget_bytes - taken))} to spare`,
    );
  if (whole && figures.keep_all_bytes !== undefined)
    add("with everything kept", bytesText(figures.keep_all_bytes), "for tensors");
  costCard(file, add);
  boundCard(file, add);
  if (recomputedOf(file) && file.feasible !== false)
    add(
      "recomputed",
      recomputedText(file),
      figures.kept_bytes === undefined ? thingsOf(file) : `${thingsOf(file)}; ${bytesText(figures.kept_bytes)} kept`,
    );
  if (leastBudget(file) !== undefined && file.kind !== "profile" && file.kind !== "run")
    add("smallest budget", bytesText(leastBudget(file)), leastWords(file));
  if (figures.parameters) add("parameters", countText(figures.parameters), "trained values");
  return el("div", { class: "cards" }, ...cards);
}

/* ---- several files side by side ---- */

/* The last known value of a curve of a run. */
function lastOf(file, key, name) {
  const line = ((file[key] && file[key].series) || []).find((each) => each.name === name);
  const known = line ? line.value.filter((value) => value !== null) : [];
  return known[known.length - 1];
}

function trainedSteps(file) {
  const line = ((file.loss && file.loss.series) || []).find((each) => each.name === "training");
  return line && line.step[line.step.length - 1];
}

const COMPARED = [
  ["loss", "last training loss", "real", (file) => lastOf(file, "loss", "training")],
  ["validation_loss", "last validation loss", "real", (file) => lastOf(file, "loss", "validation")],
  ["accuracy", "last accuracy", "share", (file) => lastOf(file, "accuracy", "validation")],
  ["trained_steps", "steps of training", "count", trainedSteps],
  ["peak_bytes", "peak", "bytes"],
  ["arena_bytes", "arena", "bytes"],
  ["total_cost", "cost", "cost", (file) => (file.figures || {}).total_cost ?? (file.figures || {}).step_ns],
  ["kept_bytes", "kept", "bytes"],
  [
    "recomputed_layers",
    "layers recomputed",
    "count",
    (file) => (file.kind === "profile" ? 0 : (recomputedOf(file) || {}).count),
  ],
  ["recompute_flops", "recomputed flops", "count"],
  ["steps", "steps of the schedule", "count"],
  ["batch", "samples in a batch", "count"],
  ["total_bytes", "memory for tensors", "bytes"],
  ["keep_all_bytes", "with everything kept", "bytes"],
  ["budget_bytes", "budget", "bytes"],
  ["base_peak_bytes", "peak, everything kept", "bytes"],
].map(([key, name, kind, value]) => ({ name, kind, value: value || ((file) => (file.figures || {})[key]) }));

/* A cost says where it comes from: modelled, from a profile, or measured in the run. */
function comparedCost(file, cost) {
  if (isRelative(file)) return moreText(file, cost) + (isModelled(file) ? " (modelled)" : "");
  const source = file.kind === "run" ? " (measured)" : file.kind === "model" ? " (by the profile)" : "";
  return costText(cost, file.cost_unit) + source;
}

function comparedText(file, { kind, value }) {
  const found = value(file);
  if (found === undefined) return "–";
  if (kind === "cost") return comparedCost(file, found);
  return { bytes: bytesText, real: shortFigure, share: percentText, count: countText }[kind](found);
}

function differenceText([a, b], { kind, value }) {
  const x = value(a),
    y = value(b);
  if (x === undefined || y === undefined) return "–";
  if (kind === "cost" && isRelative(a) !== isRelative(b)) return "–";
  return x === y ? "same" : x === 0 ? "–" : (y > x ? "+" : "−") + percentText(Math.abs((y - x) / x));
}

function figureTable(files) {
  const rows = COMPARED.filter((row) => files.some((file) => row.value(file) !== undefined)),
    trained = files.every(isWhole),
    two = files.length === 2;
  const heads = [
    { name: "figure", row: true },
    ...files.map((file) => ({ name: file.label, number: true })),
    ...(two ? [{ name: "difference", number: true }] : []),
  ];
  return scrollTable(
    "Figures side by side",
    heads,
    rows.map((row) => [
      row.kind === "cost" && trained ? "time of a step" : row.name,
      ...files.map((file) => comparedText(file, row)),
      ...(two ? [differenceText(files, row)] : []),
    ]),
  );
}

/* "3.05 in a.log and 2.93 in b.log", of the files that have the figure; null where none has. */
function inEach(files, text, value) {
  const having = files.filter((file) => value(file) !== undefined),
    texts = having.map((file) => text(value(file), file));
  if (having.length === 0) return null;
  if (having.length === files.length && new Set(texts).size === 1)
    return `${texts[0]} in ${files.length === 2 ? "both" : "all"}`;
  const each = having.map((file, n) => `${texts[n]} in ${file.label}`),
    last = each.pop();
  return each.length > 0 ? `${each.join(", ")} and ${last}` : last;
}

/* The first sentences of a comparison: where the losses end, what memory it takes, and what it costs. */
function comparisonLead(files) {
  const loss = inEach(files, shortFigure, (file) => lastOf(file, "loss", "training")),
    held = inEach(files, shortFigure, (file) => lastOf(file, "loss", "validation")),
    whole = files.every((file) => (file.figures || {}).total_bytes !== undefined),
    memory = inEach(files, bytesText, (file) => (file.figures || {})[whole ? "total_bytes" : "peak_bytes"]),
    what = files.every(isWhole) ? "step takes" : "pass costs",
    comparable = new Set(files.map(isRelative)).size === 1,
    costOf = COMPARED.find((row) => row.kind === "cost").value,
    cost = comparable ? inEach(files, (value, file) => comparedCost(file, value), costOf) : null;
  return [
    loss && `The training loss ends at ${loss}.`,
    held && `The validation loss ends at ${held}.`,
    memory && `${whole ? "All tensors take" : "The peak is"} ${memory}.`,
    cost && `${files.every(isRelative) ? "Over keeping everything, a" : "A"} ${what} ${cost}.`,
  ]
    .filter((sentence) => sentence)
    .join(" ");
}
