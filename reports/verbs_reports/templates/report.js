"use strict";
// Filters the rules by verdict and words. The page says everything without it.
const buttons = [...document.querySelectorAll("button[data-show]")];
const search = document.getElementById("search");
const rows = [...document.querySelectorAll("tr[data-verdict]")];

function apply() {
  const wanted = new Set(buttons.filter(b => b.ariaPressed === "true").map(b => b.dataset.show));
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = (wanted.size > 0 && !wanted.has(row.dataset.verdict)) || !words.every(w => text.includes(w));
  }
  for (const table of document.querySelectorAll("table.rules"))
    table.hidden = !table.querySelector("tbody tr:not([hidden])");
}

for (const button of buttons) {
  button.disabled = false;
  button.addEventListener("click", () => {
    button.ariaPressed = button.ariaPressed === "true" ? "false" : "true";
    apply();
  });
}
search.hidden = false;
search.addEventListener("input", apply);

// A link to a rule that is filtered away shows it.
addEventListener("hashchange", () => {
  const target = document.getElementById(location.hash.slice(1));
  if (!target || !target.hidden) return;
  for (const button of buttons) button.ariaPressed = "false";
  search.value = "";
  apply();
  target.scrollIntoView();
});
