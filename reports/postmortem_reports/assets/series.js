"use strict";
// The packed timeline: base64 columns back into numbers. Sizes are counted in pages; null is the smallest number.
const Series = (() => {
  const GIB = 2 ** 30;
  const source = document.getElementById("timeline-data");
  const data = source ? JSON.parse(source.textContent) : null;
  if (!data) return null;
  const packed = data.series;
  const counts = new Set(["buffers_alive", "free_remaining", "live_partitions", "jobs_done"]);

  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const times = Array.from(new Float64Array(bytes(packed.time)), (since) => since + packed.start_ms);
  const columns = {};
  for (const [name, column] of Object.entries(packed.columns)) {
    const raw = typeof column === "number" ? new Int32Array(packed.rows).fill(column) : new Int32Array(bytes(column));
    columns[name] = Float64Array.from(raw, (value) => (value === packed.null ? NaN : value));
  }

  // The value that holds at a row: the last known one, in bytes or as a count.
  const at = (name, row) => {
    if (name === "slack" || name === "headroom") {
      const [from, less] = name === "slack" ? ["budget", "reserved"] : ["limit", "unreclaimable"];
      return at(from, row) - at(less, row);
    }
    const column = columns[name];
    if (!column) return NaN;
    for (let back = row; back >= 0; back -= 1) {
      if (!Number.isNaN(column[back])) return counts.has(name) ? column[back] : column[back] * packed.page;
    }
    return NaN;
  };

  // A column as the figure draws it: GiB or counts, null where nothing is known.
  const drawn = (name) => {
    const scale = counts.has(name) ? 1 : packed.page / GIB;
    return Array.from(columns[name], (value) => (Number.isNaN(value) ? null : value * scale));
  };

  // The last row that is not later than a moment.
  const rowAt = (time) => {
    let low = 0;
    let high = times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  };

  const size = (value) => {
    if (Number.isNaN(value)) return ["not known", ""];
    const small = value !== 0 && Math.abs(value) < GIB / 10;
    const text = (small ? value / 2 ** 20 : value / GIB).toFixed(1).replace("-", "\u2212");
    return [`${text}\u00a0${small ? "MiB" : "GiB"}`, `${Math.round(value).toLocaleString("en-US")} bytes`];
  };

  return { figure: data.figure, times, at, drawn, rowAt, size };
})();
