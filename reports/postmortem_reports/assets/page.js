"use strict";
// The page's tools: theme, copying, saving, and everything open for print.
(() => {
  const root = document.documentElement;
  const status = document.getElementById("status");
  const say = (button, words) => {
    const before = button.textContent;
    button.textContent = words;
    status.textContent = words;
    setTimeout(() => { button.textContent = before; }, 2000);
  };

  const theme = document.getElementById("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Use ${dark() ? "light" : "dark"} colours`); };
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    label();
    document.dispatchEvent(new Event("themechange"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();

  const copy = document.getElementById("copy-markdown");
  const text = document.getElementById("markdown-text");
  if (copy && text) copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.value);
      say(copy, "Copied");
    } catch {
      // Without leave to write to the clipboard: show the text, selected.
      document.getElementById("markdown").open = true;
      text.focus();
      text.select();
      say(copy, document.execCommand("copy") ? "Copied" : "Selected below: copy it");
    }
  });

  const save = document.getElementById("save-json");
  save.addEventListener("click", () => {
    const file = new Blob([document.getElementById("result-data").textContent], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = "postmortem-result.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });

  const opened = [];
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not([open])")) { details.open = true; opened.push(details); }
  });
  window.addEventListener("afterprint", () => { for (const details of opened.splice(0)) details.open = false; });
})();
