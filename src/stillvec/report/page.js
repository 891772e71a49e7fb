"use strict";
// Tables of class "sortable" sort by a click, or Enter, on a heading; without this script they stand as they are.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const next = now === "descending" ? "ascending" : now === "ascending" ? null : "descending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      const value = (row) => row.cells[column].dataset.sort;
      const compare = (a, b) =>
        value(a) === undefined
          ? b.cells[column].textContent.localeCompare(a.cells[column].textContent)
          : (value(b) === "-inf" ? -Infinity : +value(b)) - (value(a) === "-inf" ? -Infinity : +value(a)) || 0;
      const sorted = next === null ? rows : [...rows].sort((a, b) => (next === "descending" ? 1 : -1) * compare(a, b));
      if (next !== null) head.setAttribute("aria-sort", next);
      body.append(...sorted);
    });
  });
}
