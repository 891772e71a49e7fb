"use strict";
// A click or Enter on a column header sorts a table of class "sortable".
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const order = header.getAttribute("aria-sort");
      const next = order === "descending" ? "ascending" : order === "ascending" ? null : "descending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      const value = (row) => row.cells[column].dataset.sort;
      const compare = (a, b) =>
        value(a) === undefined
          ? b.cells[column].textContent.localeCompare(a.cells[column].textContent)
          : (value(b) === "-inf" ? -Infinity : +value(b)) - (value(a) === "-inf" ? -Infinity : +value(a)) || 0;
      const sorted = next === null ? rows : [...rows].sort((a, b) => (next === "descending" ? 1 : -1) * compare(a, b));
      if (next !== null) header.setAttribute("aria-sort", next);
      body.append(...sorted);
    });
  });
}
