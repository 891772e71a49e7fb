// The search, completed as a combobox; the keys; the beginning.

let picked = -1, typing = 0;

async function complete() {
  const typed = $("typed").value, turn = (typing += 1);
  const words = typed.trim() ? await source.ask("complete", { typed }).catch(() => []) : [];
  if (turn !== typing) return;
  picked = -1;
  $("completions").replaceChildren(...words.map((word, at) => make("li", { role: "option", id: `completion-${at}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); found(word); } }, word)));
  listing(words.length > 0 && document.activeElement === $("typed"));
}

function listing(open) {
  $("completions").hidden = !open;
  $("typed").setAttribute("aria-expanded", open);
  if (!open) $("typed").removeAttribute("aria-activedescendant");
}

function pick(step) {
  const options = [...$("completions").children];
  if (!options.length) return;
  picked = (picked + step + options.length + (picked < 0 && step < 0 ? 1 : 0)) % options.length;
  options.forEach((option, at) => option.setAttribute("aria-selected", at === picked));
  $("typed").setAttribute("aria-activedescendant", options[picked].id);
}

function found(word) {
  typing += 1;
  listing(false);
  $("typed").value = word;
  $("typed").blur();
  if (state()[0] === "map") keep({ w: word, at: undefined }, true);
  else go("word", { w: word });
}

function listen() {
  $("typed").addEventListener("input", complete);
  $("typed").addEventListener("focus", () => { $("typed").select(); });
  $("typed").addEventListener("blur", () => listing(false));
  $("typed").addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); pick(event.key === "ArrowDown" ? 1 : -1); }
    else if (event.key === "Escape") { listing(false); $("typed").blur(); }
  });
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const word = $("completions").children[picked]?.textContent ?? $("typed").value.trim();
    if (word) found(word);
  });
  $("ask-analogy").addEventListener("submit", (event) => {
    event.preventDefault();
    const [a, b, c] = ["a", "b", "c"].map((name) => event.target.elements[name].value.trim());
    go("analogy", { a, b, c, m: $("method").value === "3cosadd" ? "" : $("method").value });
  });
  $("method").addEventListener("change", () => $("ask-analogy").requestSubmit());
  $("ask-odd").addEventListener("submit", (event) => {
    event.preventDefault();
    go("odd", { w: listed(event.target.elements.words.value) });
  });
  $("ask-axes").addEventListener("submit", (event) => {
    event.preventDefault();
    const { x, y, words, set } = event.target.elements;
    go("axes", { x: x.value.trim(), y: y.value.trim(), words: words.value.trim(), set: set.value === about.sets[0].name ? "" : set.value });
  });
  $("map-set").addEventListener("change", (event) => keep({ set: event.target.value, only: undefined }, true));
  $("colour").addEventListener("change", (event) => keep({ colour: event.target.value, only: undefined }, true));
  $("closer").addEventListener("click", () => map?.look(map.view.x, map.view.y, map.view.zoom * 1.6));
  $("farther").addEventListener("click", () => map?.look(map.view.x, map.view.y, map.view.zoom / 1.6));
  $("whole").addEventListener("click", () => map?.look(0, 0, 1));
  dark.addEventListener("change", show);
  document.addEventListener("keydown", (event) => {
    const writing = event.target.matches("input, select, textarea");
    const view = Object.keys(VIEWS)[Number(event.key) - 1];
    if (event.key === "/" && !writing) { event.preventDefault(); $("typed").focus(); }
    else if (event.altKey && view) { event.preventDefault(); go(view); }
    else if (state()[0] === "map" && !writing && !event.altKey && event.target !== $("canvas") && /^([+=\-0]|Arrow.*)$/.test(event.key) && !event.target.matches("#panel *")) map?.key(event);
  });
  window.addEventListener("hashchange", show);
}

async function begin() {
  about = await source.ask("about");
  $("sets").replaceChildren(...about.sets.map(({ name, words, dim, whole }) => make("li", {}, dotOf(name), make("b", {}, name), ` ${ROMAN.format(words)}${whole > words ? ` of ${ROMAN.format(whole)}` : ""} words × ${dim}`)));
  for (const place of [$("map-set"), $("ask-axes").elements.set]) place.append(...about.sets.map(({ name }) => make("option", { value: name }, name)));
  $("frequent").append(...about.frequent.slice(0, 24).map((word) => chip(word, () => go("word", { w: word }))));
  $("analogies").append(...ANALOGIES.map(([a, b, c]) => chip(`${a} : ${b} = ${c} : ?`, () => go("analogy", { a, b, c }))));
  $("odds").append(...ODDS.map((words) => chip(words.join(", "), () => go("odd", { w: words }))));
  $("axis-examples").append(...AXES.map(([x, y, words]) => chip(y ? `${x} and ${y}` : x, () => go("axes", { x, y, words }))));
  $("kind").textContent = data ? "One file: it needs no server, and its vectors are rounded to bytes." : "It runs on this machine and asks nobody else.";
  listen();
  await show();
}

begin().catch((error) => complain(error, "word", new URLSearchParams()));
