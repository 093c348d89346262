"use strict";
// The live timeline: one figure whose panes share the time axis, and the readout of a moment.
(() => {
  if (!Series) return;
  const box = document.getElementById("timeline-box");
  const plot = document.getElementById("timeline-live");
  const slider = document.getElementById("moment");
  const whole = Series.figure.layout.xaxis.range.map((text) => Date.parse(`${text}Z`));
  let row = Series.times.length - 1;
  let pinned = false;
  let view = null; // [from, to] in milliseconds while zoomed

  const css = () => getComputedStyle(document.documentElement);
  // Colours are written as CSS variables in the specification.
  const themed = (value, style) => {
    if (typeof value === "string") return value.startsWith("--") ? style.getPropertyValue(value).trim() : value;
    if (Array.isArray(value)) return value.map((inner) => themed(inner, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, themed(inner, style)]));
  };

  const cursor = (style) => ({
    type: "line", xref: "x", yref: "paper", x0: iso(Series.times[row]), x1: iso(Series.times[row]), y0: 0, y1: 0.93,
    line: { color: style.getPropertyValue("--ink").trim(), width: 1 },
  });
  const iso = (time) => new Date(time).toISOString().slice(0, -1);

  // Names of phases and attempts: each at its band's visible beginning, cut to the band's visible width.
  const LETTER = 6.6;
  const fitted = (annotations) => {
    const [from, to] = view || whole;
    const pixels = plot.clientWidth - Series.figure.layout.margin.l;
    return annotations.map((label, number) => {
      if (!label.name) return label;
      const original = Series.figure.layout.annotations[number];
      const left = Math.max(from, Date.parse(`${original.x}Z`));
      const right = Math.min(to, Date.parse(`${label.name}Z`));
      const letters = Math.floor(((right - left) / (to - from)) * pixels / LETTER) - 1;
      const text = letters >= original.text.length ? original.text : `${original.text.slice(0, Math.max(0, letters - 1))}\u2026`;
      // A hair inside the view: plotly hides a label that rounding puts before it.
      return { ...label, x: iso(left + (to - from) / 5000), text, visible: letters >= 4 };
    });
  };

  const draw = () => {
    if (!window.Plotly) return;
    const style = css();
    const layout = themed(Series.figure.layout, style);
    layout.font.family = getComputedStyle(document.body).fontFamily;
    layout.shapes = [...layout.shapes, cursor(style)];
    layout.annotations = fitted(layout.annotations);
    if (view) layout.xaxis.range = view.map(iso);
    const time = Series.times.map(iso);
    const traces = Series.figure.data.map((trace) => ({ ...themed(trace, style), x: time, y: Series.drawn(trace.y) }));
    window.Plotly.react(plot, traces, layout, { displayModeBar: false, responsive: true, doubleClick: false, showTips: false });
    box.classList.add("drawn");
  };

  const moveCursor = () => {
    if (!window.Plotly || !plot.layout) return;
    const last = plot.layout.shapes.length - 1;
    const time = iso(Series.times[row]);
    window.Plotly.relayout(plot, { [`shapes[${last}].x0`]: time, [`shapes[${last}].x1`]: time });
  };

  const shownTime = (time) => `${new Date(time).toISOString().slice(0, 19).replace("T", " ")}\u00a0UTC`;

  const fill = (chosen) => {
    for (const cell of document.querySelectorAll("#readout [data-key]")) {
      const value = Series.at(cell.dataset.key, chosen);
      const count = "count" in cell.dataset;
      const [text, exact] = count ? [Number.isNaN(value) ? "not known" : value.toLocaleString("en-US"), ""] : Series.size(value);
      cell.textContent = text;
      if (exact) cell.title = exact;
    }
    const time = Series.times[chosen];
    document.getElementById("moment-time").textContent = shownTime(time);
    document.getElementById("moment-link").href = `#t=${new Date(time).toISOString()}`;
  };

  const choose = (chosen, { announce = false } = {}) => {
    row = Math.max(0, Math.min(Series.times.length - 1, chosen));
    pinned = true;
    slider.value = row;
    slider.setAttribute("aria-valuetext", `${shownTime(Series.times[row])}, ${Series.size(Series.at("unreclaimable", row))[0]} in use`);
    fill(row);
    moveCursor();
    if (announce) document.getElementById("status").textContent = `The arithmetic at ${shownTime(Series.times[row])} is shown.`;
  };

  const zoom = (kind) => {
    const [from, to] = view || whole;
    const span = to - from;
    const at = Series.times[row];
    const middle = at >= from && at <= to ? at : (from + to) / 2;
    let [left, right] = { in: [middle - span / 4, middle + span / 4], out: [middle - span, middle + span], left: [from - span / 2, to - span / 2], right: [from + span / 2, to + span / 2], all: whole }[kind];
    const width = Math.min(right - left, whole[1] - whole[0]);
    left = Math.max(whole[0], Math.min(left, whole[1] - width));
    right = left + width;
    view = width >= whole[1] - whole[0] ? null : [left, right];
    if (window.Plotly && plot.layout) window.Plotly.relayout(plot, { "xaxis.range": (view || whole).map(iso) });
  };

  const fromFragment = () => {
    const found = /^#t=(.+)$/.exec(decodeURIComponent(location.hash));
    const time = found ? Date.parse(found[1]) : NaN;
    if (Number.isNaN(time)) return;
    choose(Series.rowAt(time + 1)); // the link cuts microseconds off
    document.getElementById("timeline").scrollIntoView();
  };

  slider.addEventListener("input", () => choose(Number(slider.value)));
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => zoom(button.dataset.zoom));
  window.addEventListener("hashchange", fromFragment);
  document.addEventListener("themechange", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  draw();
  if (window.Plotly) {
    const timeOf = (event) => (event.xvals ? event.xvals[0] : Date.parse(`${event.points[0].x}Z`.replace(" ", "T")));
    plot.on("plotly_click", (event) => choose(Series.rowAt(timeOf(event)), { announce: true }));
    plot.on("plotly_hover", (event) => { if (!pinned) fill(Series.rowAt(timeOf(event))); });
    plot.on("plotly_unhover", () => { if (!pinned) fill(row); });
    plot.on("plotly_relayout", (change) => {
      if ("xaxis.range[0]" in change) view = [change["xaxis.range[0]"], change["xaxis.range[1]"]].map((text) => Date.parse(`${String(text).replace(" ", "T")}Z`));
      if (change["xaxis.autorange"]) zoom("all");
      if (!("annotations" in change) && ("xaxis.range" in change || "xaxis.range[0]" in change || "autosize" in change)) {
        window.Plotly.relayout(plot, { annotations: fitted(plot.layout.annotations) });
      }
    });
    plot.addEventListener("dblclick", () => zoom("all"));
  }
  fromFragment();
})();
