"use strict";
// Charts, table sorting and links to operators. Everything else on the page works without a script.

const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// The figures name roles; the style sheet says which colour a role has on this page.
function coloured(trace) {
  const own = colour(trace.meta);
  const result = { ...trace };
  if (trace.marker) {
    result.marker = { ...trace.marker, color: own, line: { color: colour("card"), width: 1 } };
  }
  if (trace.line) result.line = { ...trace.line, color: own };
  return result;
}

function axis(given) {
  return {
    ...given,
    title: { ...given.title, font: { size: 13 } },
    gridcolor: colour("line"),
    linecolor: colour("line"),
    zeroline: false,
    ticks: "outside",
    tickcolor: colour("line"),
  };
}

function draw(id) {
  const { data, layout } = figures[id];
  const box = document.getElementById(id);
  const themed = {
    ...layout,
    xaxis: axis(layout.xaxis),
    yaxis: axis(layout.yaxis),
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, color: colour("quiet"), size: 13 },
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") }, align: "left" },
  };
  const options = { responsive: true, displaylogo: false, displayModeBar: false };
  Plotly.react(box, data.map(coloured), themed, options);
  if (!box.dataset.linked) {
    box.dataset.linked = "yes";
    box.on("plotly_click", (event) => {
      const anchor = event.points[0].customdata;
      if (anchor) window.location.hash = anchor;
    });
  }
}

function drawAll() {
  Object.keys(figures).forEach(draw);
}

function cellValue(row, column, numeric) {
  const cell = row.cells[column];
  if (!numeric) return cell.textContent;
  return cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
}

function compare(a, b, numeric) {
  if (!numeric) return a.localeCompare(b);
  return a - b;
}

// Rows without a value stay at the bottom whichever way the column is sorted.
function sortBy(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const head = heads[column];
  const numeric = head.classList.contains("number");
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  heads.forEach((other) => other.setAttribute("aria-sort", "none"));
  head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].map((row) => [cellValue(row, column, numeric), row]);
  rows.sort(([a], [b]) => {
    if (numeric && (Number.isNaN(a) || Number.isNaN(b))) return Number.isNaN(a) - Number.isNaN(b);
    return sign * compare(a, b, numeric);
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

document.querySelectorAll("table.sortable").forEach((table) => {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => sortBy(table, column));
  });
});

function openTarget() {
  const target = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView();
  }
}

window.addEventListener("hashchange", openTarget);
openTarget();
if (window.Plotly) {
  drawAll();
  dark.addEventListener("change", drawAll);
}
