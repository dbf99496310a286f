/* Light and dark: as the system has it until the reader chooses. Canvases ask for colours when they draw. */

const themeListeners = [];
const systemDark = matchMedia("(prefers-color-scheme: dark)");
let themeChoice = "system";

function colour(variable) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${variable}`).trim();
}

function applyTheme() {
  const dark = themeChoice === "system" ? systemDark.matches : themeChoice === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").textContent = dark ? "Light colours" : "Dark colours";
  for (const listener of themeListeners) listener();
}

function startTheme() {
  document.getElementById("theme").addEventListener("click", () => {
    themeChoice = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    applyTheme();
  });
  systemDark.addEventListener("change", applyTheme);
  applyTheme();
}

/* What every chart of the library has in common. */
function chartOptions(more) {
  return Object.assign(
    {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      normalized: true,
      interaction: { mode: "nearest", intersect: false },
      plugins: { legend: { display: false } },
    },
    more,
  );
}

function axisOptions(title, more) {
  return Object.assign(
    {
      type: "linear",
      title: { display: true, text: title, color: colour("quiet") },
      grid: { color: colour("grid") },
      ticks: { color: colour("quiet"), maxRotation: 0 },
    },
    more,
  );
}

/* Gives a chart the colours of the theme of now. */
function restyle(chart) {
  for (const scale of Object.values(chart.options.scales)) {
    scale.title.color = scale.ticks.color = colour("quiet");
    scale.grid.color = colour("grid");
  }
  for (const set of chart.data.datasets) {
    if (set.fillVariable) set.backgroundColor = colour(set.fillVariable);
    if (set.lineVariable) set.borderColor = colour(set.lineVariable) + (set.faint ? "55" : "");
    if (!set.pointVariable || !set.pointRadius) continue;
    /* Functions: the library would keep the colours that points had first. */
    const ink = colour(set.pointVariable),
      edge = set.borderColor;
    set.pointBackgroundColor = () => ink;
    set.pointBorderColor = () => edge;
  }
  chart.update("none");
}

/* A canvas for a chart, as tall as said; `label` is what a screen reader hears. */
function plotBox(height, label) {
  const canvas = el("canvas", { role: "img", "aria-label": label });
  const box = el("div", { class: "plot" }, canvas);
  box.style.height = `${height}px`;
  return { box, canvas };
}
