(function () {
  "use strict";
  const root = document.documentElement;
  const charts = JSON.parse(document.getElementById("charts").textContent);

  const own = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();

  // The colour of a method, mixed with some white where the ground is dark.
  function lifted(channels) {
    const lift = parseFloat(own("lift")) / 100;
    return channels.map((c) => Math.round(c + (255 - c) * lift)).join(",");
  }

  // Colours that start with "@" are the page's own: they follow its light, dark or printed form.
  function themed(value) {
    if (typeof value === "string") {
      if (value[0] === "@") return own(value.slice(1));
      if (/^#[0-9a-f]{6}$/i.test(value)) {
        return "rgb(" + lifted([1, 3, 5].map((i) => parseInt(value.slice(i, i + 2), 16))) + ")";
      }
      const parts = /^rgba\((\d+),(\d+),(\d+),([\d.]+)\)$/.exec(value);
      return parts ? "rgba(" + lifted(parts.slice(1, 4).map(Number)) + "," + parts[4] + ")" : value;
    }
    if (Array.isArray(value)) return value.map(themed);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, themed(part)]));
    }
    return value;
  }

  const config = { displayModeBar: false, responsive: true, showTips: false };

  function layout(given, box) {
    return Object.assign(
      {
        autosize: true,
        width: box.clientWidth,
        height: box.clientHeight,
        margin: { l: 48, r: 22, t: 8, b: 40 },
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "@soft" },
        legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", itemclick: false, itemdoubleclick: false },
        hoverlabel: { bgcolor: "@card", bordercolor: "@faint", font: { color: "@ink" } },
        hovermode: "closest",
        // A finger that scrolls the page must not zoom the chart under it.
        dragmode: matchMedia("(pointer: fine)").matches ? "zoom" : false,
      },
      given
    );
  }

  function draw() {
    Promise.all(
      Object.entries(charts).map(([id, chart]) => {
        const box = document.getElementById(id);
        return Plotly.react(box, themed(chart.data), themed(layout(chart.layout, box)), config);
      })
    ).then(() => { root.dataset.drawn = own("form"); }); // light, dark or print
  }

  draw();
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", draw);
  }
  addEventListener("beforeprint", () => {
    for (const box of document.querySelectorAll("details")) box.open = true;
  });
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(draw, 120);
  });

  function sortBy(table, column, header) {
    const ascending = header.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const asNumber = header.dataset.kind === "number";
    const compare = (a, b) => {
      if (!asNumber) return key(a).localeCompare(key(b), undefined, { numeric: true });
      const [x, y] = [parseFloat(key(a)), parseFloat(key(b))];
      // What is no number stays at the end, whichever way the rest is sorted.
      if (isNaN(x) || isNaN(y)) return (isNaN(x) - isNaN(y)) * (ascending ? 1 : -1);
      return x - y;
    };
    const rows = Array.from(table.tBodies[0].rows).sort(compare);
    if (!ascending) rows.reverse();
    table.tBodies[0].append(...rows);
  }

  for (const table of document.querySelectorAll(".sortable table")) {
    Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
      header.querySelector("button").addEventListener("click", () => sortBy(table, column, header));
    });
  }
})();
