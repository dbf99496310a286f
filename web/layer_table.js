/* The layers: what each costs, what was decided, and why that helps. Long tables come in pages. */

const ROWS_A_PAGE = 100;

/* Inputs and views of other layers run nothing; they are not counted as layers. */
function layerRuns(file, i) {
  return !file.layers.role || file.layers.role[i] === "layer";
}

function restText(file) {
  const roles = file.layers.role || [];
  const counted = (role, one, many) => {
    const count = roles.filter((each) => each === role).length;
    return count ? [`${countText(count)} ${count === 1 ? one : many}`] : [];
  };
  const rest = [
    ...counted("input", "input", "inputs"),
    ...counted("view", "view of another layer", "views of other layers"),
  ];
  const once = counted("once", "action runs", "actions run");
  if (once.length) return `Not in the table: ${once[0]} exactly once in every plan.`;
  return rest.length ? `Not in the table, for they run nothing: ${rest.join(" and ")}.` : "";
}

/* A mode's name says what is kept of a piece. */
function decisionTag(decision) {
  if (decision === "recompute" || decision === "keep") return el("span", { class: `tag ${decision}` }, decision);
  if (isRecomputed(decision)) return el("span", { class: "tag recompute" }, "recompute, keep input only");
  return el("span", { class: "tag mode" }, `keep ${decision}`);
}

/* For each layer, whether its saved state is live at the peak, and for how many steps any of it is held. */
function stateFacts(made) {
  const tensors = made && made.source.tensors,
    facts = {};
  if (!tensors) return facts;
  const order = [...tensors.born.keys()]
    .filter((i) => tensors.kind[i] === "s")
    .sort((a, b) => tensors.born[a] - tensors.born[b]);
  for (const i of order) {
    const fact = (facts[tensors.layer[i]] = facts[tensors.layer[i]] || { atPeak: false, held: 0, until: 0 });
    fact.held += Math.max(0, tensors.ends[i] - Math.max(tensors.born[i], fact.until));
    fact.until = Math.max(fact.until, tensors.ends[i]);
    fact.atPeak = fact.atPeak || (tensors.born[i] <= made.peak && made.peak < tensors.ends[i]);
  }
  return facts;
}

function reasonOf(file, made, facts, i) {
  const layers = file.layers,
    decision = layers.decision && layers.decision[i];
  if (layers.reason) return layers.reason[i];
  if (!decision || !layers.activation_bytes) return "";
  const again = layers.forward_cost[i],
    base = file.figures.base_cost,
    fact = facts[i];
  const priced = (cost) => (base ? `${percentText(cost / base)} of a pass` : priceText(file, cost));
  if (isRecomputed(decision)) {
    const times = Math.max(layers.forwards[i] - 1, 1),
      held = fact ? `held for ${countText(fact.held)} of ${countText(made.steps)} steps; ` : "";
    return `${held}running it ${times > 1 ? `${times} times more` : "again"} costs ${priced(again * times)}`;
  }
  if (!fact) return "";
  return fact.atPeak ? `live at the peak; recomputing would cost ${priced(again)}` : "not live at the peak";
}

function layerColumns(files, mades) {
  const file = files[0],
    layers = file.layers,
    columns = [];
  const add = (name, number, value, show) =>
    columns.push({ name, number, value, show: show || ((i) => String(value(i))) });
  add(rowsOf(file).slice(0, -1), true, (i) => i);
  add("name", false, (i) => layers.name[i]);
  if (layers.type) add("type", false, (i) => layers.type[i]);
  if (layers.block) add("block", false, (i) => layers.block[i]);
  if (layers.activation_bytes) {
    add(
      "activation",
      true,
      (i) => layers.activation_bytes[i],
      (i) => bytesText(layers.activation_bytes[i]),
    );
    if (layers.output_bytes)
      add(
        "output",
        true,
        (i) => layers.output_bytes[i],
        (i) => bytesText(layers.output_bytes[i]),
      );
    /* Without a unit of its own, the column has it in its head. */
    const unit = isRelative(file) ? "" : file.cost_unit ? " cost" : ", units of cost",
      price = (cost) => (file.cost_unit === "" ? shortCount(cost).trim() : priceText(file, cost));
    const addCost = (name, costs) =>
      add(
        name + unit,
        true,
        (i) => costs[i],
        (i) => price(costs[i]),
      );
    addCost(layers.backward_cost ? "forward" : "run", layers.forward_cost);
    if (layers.backward_cost) addCost("backward", layers.backward_cost);
  }
  files.forEach((each) => {
    if (!each.layers.decision) return;
    const name = files.length > 1 ? each.label : "decision";
    add(
      name,
      false,
      (i) => each.layers.decision[i],
      (i) => decisionTag(each.layers.decision[i]),
    );
    const runs = file.kind === "graph" ? "runs" : "forwards";
    add(files.length > 1 ? `${runs}, ${each.label}` : runs, true, (i) => each.layers.forwards[i]);
  });
  if (files.length === 1 && layers.decision && (layers.reason || layers.activation_bytes)) {
    const facts = stateFacts(mades[0]);
    add("why", false, (i) => reasonOf(file, mades[0], facts, i));
  }
  return columns;
}

/* One file's table, or several files' decisions beside each other where their layers have the same names. */
function layerSection(files, mades) {
  const first = files[0];
  if (files.some((file) => !file.layers || file.layers.name.length === 0)) return null;
  if (files.some((file) => file.layers.name.length !== first.layers.name.length)) return null;
  const things = rowsOf(first),
    columns = layerColumns(files, mades),
    count = first.layers.name.length;
  const decided = files.filter((file) => file.layers.decision);
  const differs = (i) =>
    decided.length > 1 && decided.some((file) => file.layers.decision[i] !== decided[0].layers.decision[i]);
  const running = [...Array(count).keys()].filter((i) => layerRuns(first, i)),
    notes = [
      isModelled(first) ? "Forward and backward are modelled shares of a step with everything kept." : "",
      restText(first),
      things === "pieces"
        ? "The model was cut into pieces: a piece may keep some of its tensors and recompute the rest."
        : "",
    ]
      .join(" ")
      .trim();
  let order = running,
    sorted = { column: 0, down: false },
    page = 0,
    wanted = "",
    only = "all";
  const search = el("input", {
    type: "search",
    placeholder: `${things.slice(0, -1)} name`,
    "aria-label": `Show ${things} whose name contains`,
  });
  const choices = [["all", `all ${things}`]];
  if (decided.length) choices.push(["recompute", "recomputed"], ["kept", "kept"]);
  if (decided.length > 1) choices.push(["differs", "decided differently"]);
  const filter = el(
    "select",
    { "aria-label": `Which ${things} to show` },
    ...choices.map(([value, text]) => el("option", { value }, text)),
  );
  const back = el("button", { type: "button" }, "Back"),
    next = el("button", { type: "button" }, "Next"),
    where = el("span", { class: "quiet", "aria-live": "polite" });
  const heads = columns.map((column, c) =>
    el(
      "th",
      { scope: "col", class: column.number ? "number" : null },
      el(
        "button",
        {
          type: "button",
          onclick: () => {
            sorted = { column: c, down: sorted.column === c && !sorted.down };
            refresh();
          },
        },
        column.name,
      ),
    ),
  );
  const body = el("tbody", {});
  const refresh = () => {
    const matches = (i) =>
      first.layers.name[i].toLowerCase().includes(wanted) &&
      (only === "all" ||
        (only === "differs"
          ? differs(i)
          : decided.some((file) => isRecomputed(file.layers.decision[i]) === (only === "recompute"))));
    order = running.filter(matches);
    const value = columns[sorted.column].value,
      sign = sorted.down ? -1 : 1;
    if (sorted.column !== 0 || sorted.down)
      order.sort((a, b) => {
        const x = value(a),
          y = value(b);
        return x < y ? -sign : x > y ? sign : a - b;
      });
    page = Math.min(page, Math.max(0, Math.ceil(order.length / ROWS_A_PAGE) - 1));
    heads.forEach((head, c) => {
      if (c === sorted.column) head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const begin = page * ROWS_A_PAGE,
      shown = order.slice(begin, begin + ROWS_A_PAGE);
    body.replaceChildren(
      ...shown.map((i) =>
        el(
          "tr",
          { class: differs(i) ? "differs" : null },
          ...columns.map((column) =>
            el(
              column.name === "name" ? "th" : "td",
              {
                class: column.number ? "number" : column.name === "why" ? "why" : null,
                scope: column.name === "name" ? "row" : null,
              },
              column.show(i),
            ),
          ),
        ),
      ),
    );
    where.textContent =
      order.length === 0
        ? `no ${things.slice(0, -1)}`
        : `${countText(begin + 1)}–${countText(begin + shown.length)} of ${countText(order.length)}`;
    back.disabled = page === 0;
    next.disabled = begin + ROWS_A_PAGE >= order.length;
  };
  search.addEventListener("input", () => {
    wanted = search.value.toLowerCase();
    page = 0;
    refresh();
  });
  filter.addEventListener("change", () => {
    only = filter.value;
    page = 0;
    refresh();
  });
  back.addEventListener("click", () => {
    page--;
    refresh();
  });
  next.addEventListener("click", () => {
    page++;
    refresh();
  });
  refresh();
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body);
  const title = files.length > 1 ? `The ${things} side by side` : `The ${things}`;
  const section = el(
    "div",
    {},
    el("h3", {}, title),
    notes ? el("p", { class: "quiet" }, notes) : null,
    el("div", { class: "tools" }, search, filter, back, next, where),
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": title }, table),
  );
  return { section, start: () => null };
}
