"use strict";
// Sorts a table's bodies by a column, and shows one picture of a step at a time. Without it the page shows everything.

const key = (body, column) => body.rows[0].cells[column].dataset.key;

function sort(table, head) {
  const heads = [...table.tHead.rows[0].cells];
  const column = heads.indexOf(head);
  const numbers = head.classList.contains("number");
  const before = head.getAttribute("aria-sort");
  // Numbers begin with the largest, texts with the first.
  const upwards = before ? before === "descending" : !numbers;
  for (const each of heads) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", upwards ? "ascending" : "descending");
  const compare = (one, other) => {
    const [a, b] = [key(one, column), key(other, column)];
    const plain = Number(a) - Number(b);
    return Number.isNaN(plain) ? (a < b ? -1 : Number(a > b)) : plain;
  };
  const bodies = [...table.tBodies].sort((one, other) => (upwards ? compare(one, other) : compare(other, one)));
  table.append(...bodies);
}

for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sort(button.closest("table"), button.closest("th")));
}

const choice = document.querySelector(".choice");
if (choice) {
  const figures = document.querySelectorAll("figure.step");
  const show = (number) => {
    figures.forEach((figure, index) => { figure.hidden = index !== number; });
    choice.querySelectorAll("button").forEach((button, index) => { button.setAttribute("aria-pressed", String(index === number)); });
  };
  choice.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) show(Number(button.dataset.step));
  });
  choice.hidden = false;
  show(0);
}

// A link into a closed part of the page opens it.
function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let each = target; each; each = each.parentElement) {
    if (each instanceof HTMLDetailsElement) each.open = true;
  }
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
