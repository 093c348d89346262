"use strict";
// The table of runs: sorted, filtered and shown a page at a time, from columns of JSON. Text goes in as text only.
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Use ${dark() ? "light" : "dark"} colours`); };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
  label();

  const data = JSON.parse(document.getElementById("runs-data").textContent);
  const count = data.kind.length;
  const paths = new Array(count), names = new Array(count);
  for (let i = 0, before = ""; i < count; i++) {
    before = paths[i] = before.slice(0, data.run[2 * i]) + data.run[2 * i + 1];
    names[i] = data.name[i] === 0 ? before.slice(before.lastIndexOf("/") + 1) : data.name[i];
  }
  const haystack = paths.map((path, i) => `${path} ${names[i]}`.toLowerCase());
  const PAGE = 100;
  const text = document.getElementById("filter-text"), kind = document.getElementById("filter-kind"), size = document.getElementById("filter-limit");
  const body = document.getElementById("runs-body"), shown = document.getElementById("shown");
  const earlier = document.getElementById("earlier"), later = document.getElementById("later");
  const option = (value, words) => { const made = document.createElement("option"); made.value = value; made.textContent = words; return made; };
  data.kinds.forEach(([, words], i) => kind.append(option(i, words)));
  [...new Set(data.limit.filter((v) => v !== null).map((v) => Math.round(v / 10)))].sort((a, b) => a - b).forEach((v) => size.append(option(v, `${v} GiB`)));

  let order = [...Array(count).keys()], rows = order, page = 0, sorted = null, down = false;
  const values = { name: names, kind: data.kind.map((k) => data.kinds[k][1]), limit: data.limit, budget: data.budget, margin_needed: data.margin_needed, overhead: data.overhead, uncovered: data.uncovered, start: data.start };
  const cell = (content, css) => { const made = document.createElement("td"); if (css) made.className = css; made.textContent = content; return made; };
  const tenths = (v) => (v === null ? "" : (v / 10).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 }));
  const when = (v) => (v === null ? "" : new Date(v * 60000).toISOString().slice(0, 16).replace("T", " "));

  const line = (i) => {
    const row = document.createElement("tr"), head = document.createElement("th"), where = document.createElement("span");
    head.scope = "row";
    const code = data.report[i];
    const title = document.createElement(code === 0 ? "bdi" : "a");
    title.textContent = names[i];
    if (code !== 0) title.href = `reports/${encodeURIComponent(/^[0-9a-f]{12}$/.test(code) ? `${names[i]}-${code}` : code)}.postmortem.html`;
    where.className = "where"; where.textContent = data.error[i] || paths[i]; where.title = data.error[i] || paths[i];
    head.append(title, where);
    const [, words, tone] = data.kinds[data.kind[i]];
    const ended = cell("", "ended"), mark = document.createElement("span");
    mark.className = `swatch kind ${tone}`; mark.setAttribute("aria-hidden", "true");
    ended.append(mark, words);
    row.append(head, ended, ...["limit", "budget", "margin_needed", "overhead", "uncovered"].map((k) => cell(tenths(data[k][i]), "n")), cell(when(data.start[i]), ""));
    return row;
  };
  const draw = () => {
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    page = Math.min(page, pages - 1);
    body.replaceChildren(...rows.slice(page * PAGE, (page + 1) * PAGE).map(line));
    const first = rows.length ? page * PAGE + 1 : 0;
    shown.textContent = `${first.toLocaleString("en")}–${Math.min(rows.length, (page + 1) * PAGE).toLocaleString("en")} of ${rows.length.toLocaleString("en")} runs`;
    earlier.disabled = page === 0;
    later.disabled = page >= pages - 1;
  };
  const filter = () => {
    const words = text.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    rows = order.filter((i) =>
      (kind.value === "" || data.kind[i] === Number(kind.value)) &&
      (size.value === "" || (data.limit[i] !== null && Math.round(data.limit[i] / 10) === Number(size.value))) &&
      words.every((word) => haystack[i].includes(word)));
    page = 0;
    draw();
  };
  const sort = (key, head) => {
    down = sorted === key ? !down : key !== "name" && key !== "kind";
    sorted = key;
    const column = values[key], sign = down ? -1 : 1;
    order = [...Array(count).keys()].sort((a, b) => {
      const one = column[a], other = column[b];
      if (one === null || other === null) return (one === null) - (other === null) || a - b;
      return (one < other ? -sign : one > other ? sign : a - b);
    });
    for (const other of document.querySelectorAll(".runs thead th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    filter();
  };
  let typing = 0;
  text.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(filter, 120); });
  kind.addEventListener("change", filter);
  size.addEventListener("change", filter);
  earlier.addEventListener("click", () => { page--; draw(); });
  later.addEventListener("click", () => { page++; draw(); });
  for (const button of document.querySelectorAll(".runs thead button")) button.addEventListener("click", () => sort(button.dataset.key, button.closest("th")));
  draw();
})();
