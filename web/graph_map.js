/* The graph itself: actions from top to bottom, what is kept and what is recomputed in colour, and the tensors between
 * them as links. The layout is dagre's. */

const GRAPH_DECISIONS = {
  keep: ["save", "kept"],
  recompute: ["again", "recomputed"],
  once: ["backward", "runs once"],
  "left out": ["waste", "not needed"],
};
const LONG_LINK = 3; /* ranks that a link spans to be a long one */
const NODE_HEIGHT = 24;

function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/* A page may have several graphs. */
function arrowId() {
  return `arrow-${report.graphs.length}`;
}

/* A name of at most `most` letters: its two ends, which tell layers apart. */
function shortName(name, most) {
  const half = Math.floor((most - 1) / 2);
  return name.length > most ? `${name.slice(0, most - 1 - half)}…${name.slice(-half)}` : name;
}

function nodeLabel(file, i) {
  const runs = file.layers.forwards ? file.layers.forwards[i] : 1;
  return shortName(file.layers.name[i], 28) + (runs > 1 ? ` ×${runs}` : "");
}

function graphLayout(file) {
  const layout = new dagre.graphlib.Graph({ multigraph: true });
  layout.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 22, edgesep: 10, marginx: 12, marginy: 12 });
  for (const i of file.graph.nodes)
    layout.setNode(String(i), { width: 18 + 7 * nodeLabel(file, i).length, height: NODE_HEIGHT });
  file.graph.links.forEach(([from, to], n) => layout.setEdge(String(from), String(to), {}, String(n)));
  dagre.layout(layout);
  return layout;
}

/* The picture's left, top, width and height: links may run outside of what dagre calls the width. */
function graphBounds(layout) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  const include = (x, y, dx, dy) => {
    box[0] = Math.min(box[0], x - dx);
    box[1] = Math.min(box[1], y - dy);
    box[2] = Math.max(box[2], x + dx);
    box[3] = Math.max(box[3], y + dy);
  };
  for (const id of layout.nodes()) {
    const { x, y, width, height } = layout.node(id);
    include(x, y, width / 2 + 8, height / 2 + 8);
  }
  for (const id of layout.edges()) for (const point of layout.edge(id).points) include(point.x, point.y, 8, 8);
  return [box[0], box[1], box[2] - box[0], box[3] - box[1]].map(Math.round);
}

function drawLink(layout, link, n, rankOf, widest) {
  const [from, to, bytes, name] = link;
  const points = layout.edge(String(from), String(to), String(n)).points,
    long = rankOf(to) - rankOf(from) >= LONG_LINK;
  let path = `M${points[0].x},${points[0].y}`;
  for (let k = 1; k + 1 < points.length; k++) {
    const middle = [(points[k].x + points[k + 1].x) / 2, (points[k].y + points[k + 1].y) / 2];
    path += ` Q${points[k].x},${points[k].y} ${middle[0]},${middle[1]}`;
  }
  const last = points[points.length - 1];
  path += ` L${last.x},${last.y}`;
  const width = (1 + 3 * Math.sqrt(bytes / Math.max(widest, 1))).toFixed(2);
  return svgElement(
    "path",
    { d: path, class: long ? "link long" : "link", "stroke-width": width, "marker-end": `url(#${arrowId()})` },
    svgElement("title", {}, `${name}: ${bytesText(bytes)}`),
  );
}

function drawNode(file, layout, i) {
  const { x, y, width, height } = layout.node(String(i)),
    layers = file.layers,
    decision = layers.decision ? layers.decision[i] : "once";
  const title =
    `${layers.name[i]}: writes ${bytesText(layers.activation_bytes[i])}, costs ` +
    `${costText(layers.forward_cost[i], file.cost_unit)}` +
    (layers.forwards ? `, runs ${countText(layers.forwards[i])} ${layers.forwards[i] === 1 ? "time" : "times"}` : "");
  const variable = (GRAPH_DECISIONS[decision] || GRAPH_DECISIONS.once)[0];
  return svgElement(
    "g",
    { class: `node ${decision === "recompute" ? "recomputed" : ""}`, style: `--node: var(--${variable})` },
    svgElement("title", {}, title),
    svgElement("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 5 }),
    svgElement("text", { x, y: y + 4, "text-anchor": "middle" }, nodeLabel(file, i)),
  );
}

function drawGraph(file) {
  const layout = graphLayout(file),
    bounds = graphBounds(layout),
    links = file.graph.links;
  const rows = [...new Set(file.graph.nodes.map((i) => Math.round(layout.node(String(i)).y)))].sort((a, b) => a - b);
  const ranks = new Map(rows.map((y, rank) => [y, rank]));
  const rankOf = (i) => ranks.get(Math.round(layout.node(String(i)).y));
  const widest = links.reduce((most, link) => Math.max(most, link[2]), 0),
    long = links.filter(([from, to]) => rankOf(to) - rankOf(from) >= LONG_LINK).length;
  const arrow = svgElement(
    "marker",
    {
      id: arrowId(),
      viewBox: "0 0 8 8",
      refX: 7,
      refY: 4,
      markerWidth: 8,
      markerHeight: 8,
      markerUnits: "userSpaceOnUse",
      orient: "auto",
    },
    svgElement("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }),
  );
  const picture = svgElement(
    "svg",
    {
      width: bounds[2],
      height: bounds[3],
      viewBox: bounds.join(" "),
      role: "img",
      "aria-label": `The graph: ${file.graph.nodes.length} actions and ${links.length} tensors between them`,
    },
    svgElement("defs", {}, arrow),
    ...links.map((link, n) => drawLink(layout, link, n, rankOf, widest)),
    ...file.graph.nodes.map((i) => drawNode(file, layout, i)),
  );
  return { picture, long };
}

function graphWords(file, long) {
  const graph = file.graph,
    again = graph.may_run_again;
  const drawn = again
    ? `The ${countText(again)} actions that may run again, from the first at the top.`
    : `All ${countText(graph.actions)} actions run once.`;
  const far = long
    ? ` ${countText(long)} ${long === 1 ? "link is" : "links are"} long: what they carry is needed much later.`
    : "";
  return `${drawn} A line is a tensor, as wide as it is large.${far} Point at anything to see its figures.`;
}

function graphSection(file) {
  const graph = file.graph;
  if (!graph) return null;
  const section = el("div", {}, el("h3", {}, "The graph"));
  if (!graph.nodes) {
    section.append(
      el("p", {}, `${countText(graph.actions)} actions and ${countText(graph.tensors)} tensors: too many to draw.`),
    );
    return { section, start: () => null };
  }
  const { picture, long } = drawGraph(file),
    decisions = new Set(graph.nodes.map((i) => (file.layers.decision ? file.layers.decision[i] : "once")));
  section.append(
    el("p", {}, graphWords(file, long)),
    el("div", { class: "scroll graph", tabindex: "0", role: "group", "aria-label": "Drawing of the graph" }, picture),
    legend([
      ...Object.entries(GRAPH_DECISIONS)
        .filter(([key]) => decisions.has(key))
        .map(([, entry]) => entry),
      ...(long ? [["link", "long link"]] : []),
    ]),
    tableDetails(
      "The links as a table",
      [{ name: "tensor" }, { name: "from" }, { name: "to" }, { name: "bytes", number: true }],
      () =>
        graph.links.map(([from, to, bytes, name]) => [
          name,
          file.layers.name[from],
          file.layers.name[to],
          countText(bytes),
        ]),
    ),
  );
  report.graphs.push({ nodes: graph.nodes.length, links: graph.links.length, long });
  return { section, start: () => null };
}
