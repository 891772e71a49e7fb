// The search field with its completions, the keyboard, and the start of the page.

let selected = -1, lastTyped = 0;

async function complete() {
  const typed = $("typed").value, request = (lastTyped += 1);
  const words = typed.trim() ? await source.query("complete", { typed }).catch(() => []) : [];
  if (request !== lastTyped) return;
  selected = -1;
  $("completions").replaceChildren(...words.map((word, index) => make("li", { role: "option", id: `completion-${index}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); openWord(word); } }, word)));
  toggleCompletions(words.length > 0 && document.activeElement === $("typed"));
}

function toggleCompletions(open) {
  $("completions").hidden = !open;
  $("typed").setAttribute("aria-expanded", open);
  if (!open) $("typed").removeAttribute("aria-activedescendant");
}

function moveSelection(step) {
  const options = [...$("completions").children];
  if (!options.length) return;
  selected = (selected + step + options.length + (selected < 0 && step < 0 ? 1 : 0)) % options.length;
  options.forEach((option, index) => option.setAttribute("aria-selected", index === selected));
  $("typed").setAttribute("aria-activedescendant", options[selected].id);
}

function openWord(word) {
  lastTyped += 1;
  toggleCompletions(false);
  $("typed").value = word;
  $("typed").blur();
  if (state()[0] === "map") updateMapState({ w: word, at: undefined }, true);
  else go("word", { w: word, g: grouping() });
}

function addListeners() {
  $("typed").addEventListener("input", complete);
  $("typed").addEventListener("focus", () => { $("typed").select(); });
  $("typed").addEventListener("blur", () => toggleCompletions(false));
  $("typed").addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); moveSelection(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Escape") { toggleCompletions(false); $("typed").blur(); }
  });
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const word = $("completions").children[selected]?.textContent ?? $("typed").value.trim();
    if (word) openWord(word);
  });
  $("analogy-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const [a, b, c] = ["a", "b", "c"].map((name) => event.target.elements[name].value.trim());
    go("analogy", { a, b, c, m: $("method").value === "3cosadd" ? "" : $("method").value });
  });
  $("method").addEventListener("change", () => $("analogy-form").requestSubmit());
  $("odd-form").addEventListener("submit", (event) => {
    event.preventDefault();
    go("odd", { w: splitList(event.target.elements.words.value) });
  });
  $("axes-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const { x, y, words, set } = event.target.elements;
    go("axes", { x: x.value.trim(), y: y.value.trim(), words: words.value.trim(), set: set.value === about.sets[0].name ? "" : set.value });
  });
  $("documents-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const { text, method } = event.target.elements;
    go("documents", { q: text.value.trim(), m: method.value === "hybrid" ? "" : method.value });
  });
  listenToControls();
  listenToSelection();
  darkScheme.addEventListener("change", show);
  document.addEventListener("keydown", (event) => {
    const inField = event.target.matches("input, select, textarea");
    const view = Object.keys(VIEWS)[Number(event.key) - 1];
    if (event.key === "/" && !inField) { event.preventDefault(); $("typed").focus(); }
    else if (event.altKey && view) { event.preventDefault(); go(view); }
    else if (state()[0] === "map" && !inField && !event.altKey && event.target !== $("canvas") && /^([+=\-0]|Arrow.*)$/.test(event.key) && !event.target.matches("#side *, .bar *")) map && handleMapKey(map, event);
  });
  window.addEventListener("hashchange", show);
}

async function start() {
  about = await source.query("about");
  $("sets").replaceChildren(...about.sets.map(({ name, words, dim, whole }) => make("li", {}, colourDot(name), make("b", {}, name), ` ${NUMBERS.format(words)}${whole > words ? ` of ${NUMBERS.format(whole)}` : ""} words, ${dim} dimensions`)));
  fillControls();
  $("axes-form").elements.set.append(...about.sets.map(({ name }) => make("option", { value: name }, name)));
  $("frequent").append(...about.frequent.slice(0, 24).map((word) => chip(word, () => go("word", { w: word }))));
  $("analogies").append(...ANALOGIES.map(([a, b, c]) => chip(`${a} : ${b} = ${c} : ?`, () => go("analogy", { a, b, c }))));
  $("odds").append(...ODD_EXAMPLES.map((words) => chip(words.join(", "), () => go("odd", { w: words }))));
  $("axis-examples").append(...AXES_EXAMPLES.map(([x, y, words]) => chip(y ? `${x} and ${y}` : x, () => go("axes", { x, y, words }))));
  document.querySelector("nav [data-view=documents]").hidden = !about.documents;
  $("kind").textContent = data ? "A single file that needs no server; vectors are rounded to 8 bits. It makes no network requests." : "Runs on this machine and makes no requests to other hosts.";
  addListeners();
  await show();
}

start().catch((error) => showError(error, "word", new URLSearchParams()));
