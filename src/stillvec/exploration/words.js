// A word and its details; lists side by side; analogies and the odd one out.

const ANALOGIES = [["man", "woman", "king"], ["france", "paris", "japan"], ["walk", "walked", "go"], ["good", "better", "bad"]];
const ODD_EXAMPLES = [["breakfast", "cereal", "dinner", "lunch"], ["red", "green", "heavy", "blue"], ["violin", "piano", "flute", "painter"]];

async function showWord(params, isCurrent) {
  const word = params.get("w"), k = Number(params.get("k")) || 12, group = params.get("g") === "1" ? "1" : "";
  $("welcome").hidden = Boolean(word);
  $("result").hidden = true;
  document.title = word ? `${word} · word vectors` : "Word vectors";
  if (!word) return drawLists(await source.query("lists", {}), isCurrent);
  $("typed").value = word;
  const [card, answers] = await Promise.all([source.query("card", { word }), source.query("neighbours", { word, k, ...(group ? { group } : {}) })]);
  if (!isCurrent()) return;
  $("result").hidden = false;
  const first = card.sets[0];
  const mapLink = make("a", { href: address("map", { w: card.word }) }, "Show on map");
  const suggestions = card.alike?.length ? make("p", { class: "chips" }, ...card.alike.map((other) => chip(other, () => go("word", { w: other })))) : "";
  $("head").replaceChildren(make("h1", {}, card.word), make("p", { class: "facts" }, describeFacts(first, card.part), ...(first.rank ? [mapLink] : [])), suggestions);
  drawColumns($("neighbours"), answers);
  $("more").hidden = k > 12;
  $("more").onclick = () => go("word", { w: word, k: 40, g: group });
  $("group").checked = Boolean(group);
  $("group").onchange = () => go("word", { w: word, k: params.get("k") ?? "", g: $("group").checked ? "1" : "" });
  $("agreement").textContent = `${describeAgreement(answers, k)} ${describeRounding()}`.trim();
  drawDetails(card);
  if (about.corpus) drawExamples(card.word, isCurrent);
}

const PART_NAMES = { noun: "noun", verb: "verb", adj: "adjective", adv: "adverb" };

function describeFacts({ rank, count }, part) {
  if (!rank) return "out of vocabulary: vector computed from character n-grams";
  return [`rank ${NUMBERS.format(rank)}`, count ? `${NUMBERS.format(count)} ${count === 1 ? "occurrence" : "occurrences"}` : "", PART_NAMES[part] ?? ""].filter(Boolean).join(" · ");
}

function describeAgreement(answers, k) {
  const lists = answers.filter((answer) => answer.found);
  if (lists.length < 2) return "";
  const nShared = lists[0].found.filter(([, , sets]) => sets.length === lists.length).length;
  return `${nShared} of ${k} neighbours are in ${lists.length === 2 ? "both" : "all three"} lists; dots mark the other lists that contain a word.`;
}

// an exported page has fewer words and rounded vectors
function describeRounding() {
  if (!data) return "";
  const cut = about.sets.some((set) => set.whole > set.words), error = Math.max(...about.sets.map((set) => set.off));
  return `Searched among ${cut ? "the most frequent words, which this page contains" : "all words"}. Vectors are rounded to 8 bits; cosines differ by up to ${error.toFixed(3)}.`;
}

function drawDetails(card) {
  const rows = card.sets.map((set) => make("tr", {},
    make("th", { scope: "row" }, colourDot(set.name), ...breakName(set.name)),
    ...[set.rank ? NUMBERS.format(set.rank) : "–", set.count ? NUMBERS.format(set.count) : "–", set.norm.toPrecision(3)].map((text) => make("td", {}, text))));
  const head = make("tr", {}, make("th", {}, "vectors"), ...["rank", "count", "norm"].map((text) => make("th", { class: "num" }, text)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  const wordLists = (title, lists) => (lists.length ? [make("h2", {}, title), make("dl", {}, ...lists.flatMap(([name, words]) => [make("dt", {}, name), make("dd", {}, ...joinWords(words))]))] : []);
  const layers = (card.layers ?? []).map(([name, near]) => [name, near.map(([word]) => word)]);
  $("card").replaceChildren(table, ...drawSenses(card.senses ?? []), ...wordLists("Neighbours by layer", layers), ...wordLists("Lexicon", Object.entries(card.relations ?? {})), make("div", { id: "sentences" }));
}

// a sense: its share of the contexts, its nearest words, sentences
function drawSenses(senses) {
  if (!senses.length) return [];
  const entries = senses.flatMap(({ set, share, near, examples }, number) => [
    make("dt", {}, colourDot(set), `${Math.round(100 * share)}% of contexts`),
    make("dd", { class: "sense", id: `sense-${number + 1}` }, make("p", {}, ...joinWords(near)), ...examples.map((text) => make("blockquote", {}, text))),
  ]);
  return [make("h2", {}, "Senses"), make("dl", {}, ...entries)];
}

// what is in the lists of nearest words, over a sample of frequent words
const LIST_METRICS = [["same-stem", "inflections"], ["same-start", "same four letters"], ["top-hub", "lists with the commonest word"], ["hubness", "hubness"]];

function drawLists(lists, isCurrent) {
  const metrics = LIST_METRICS.filter(([metric]) => lists.some((list) => metric in list));
  if (!isCurrent() || !metrics.length) return;
  const show = (list, metric) => (!(metric in list) ? "–" : metric === "hubness" ? list[metric].toFixed(1) : `${(100 * list[metric]).toFixed(1)}%`);
  const rows = lists.map((list) => make("tr", {}, make("th", { scope: "row" }, colourDot(list.name), ...breakName(list.name)), ...metrics.map(([metric]) => make("td", {}, show(list, metric)))));
  const head = make("tr", {}, make("th", {}, "vectors"), ...metrics.map(([, title]) => make("th", { class: "num" }, title)));
  const note = "Of the ten nearest words of 300 frequent ones. Hubness is 0 if no word is in more lists than others. Lower is better.";
  $("lists").replaceChildren(make("h2", {}, "Lists of nearest words"), make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)), make("p", { class: "note" }, note));
}

async function drawExamples(word, isCurrent) {
  const place = $("sentences"), title = () => make("h2", {}, "Sentences in the corpus");
  place.replaceChildren(title(), make("p", { class: "note" }, "searching …"));
  const answer = await source.query("examples", { word });
  if (!isCurrent()) return;
  const quotes = answer.found.map(([before, match, after]) => make("blockquote", {}, before, make("mark", {}, match), after));
  const nRead = `${NUMBERS.format(answer.read)} sentences`;
  const note = quotes.length ? "" : answer.ended ? `Not in the ${nRead} of the corpus.` : `Not in the first ${nRead}; the search stopped at its time limit.`;
  place.replaceChildren(title(), ...quotes, ...(note ? [make("p", { class: "note" }, note)] : []));
}

function colourDot(name) {
  return make("span", { class: `dot s${about.sets.findIndex((set) => set.name === name)}` });
}

// lists side by side: one bar per score, one dot for every other set that has the word
function drawColumns(place, answers, odd = false) {
  place.classList.toggle("several", answers.length > 1);
  place.style.setProperty("--sets", answers.length);
  const nLists = answers.filter((answer) => answer.found).length;
  place.replaceChildren(...answers.map((answer, number) => {
    const column = make("div", { class: `s${number}` }, make("h3", {}, colourDot(answer.name), make("span", {}, ...breakName(answer.name))));
    if (answer.error) {
      const alike = joinWords(answer.alike);
      column.append(make("p", { class: "lacks" }, "not in the vocabulary", ...(alike.length ? ["; did you mean ", ...alike, "?"] : ["."])));
      return column;
    }
    if (answer.forms?.length) column.append(make("p", { class: "own forms" }, ...joinWords(answer.forms)));
    const top = Math.max(...answer.found.map(([, score]) => score), odd ? 1e-9 : 1);
    const items = answer.found.map(([word, score, sets = [], forms = []], rank) => {
      const others = sets.filter((other) => other !== number);
      const also = make("span", { class: "also" }, ...others.map((other) => make("span", { class: `dot s${other}`, title: `also in ${about.sets[other].name}` })));
      const item = make("li", {}, make("span", { class: "words" }, wordButton(word), ...(forms.length ? [make("span", { class: "forms" }, ...joinWords(forms))] : [])), also, make("span", { class: "value" }, score.toFixed(3)));
      item.style.setProperty("--share", clamp(score / top, 0, 1));
      item.dataset.word = word;
      if (sets.length === nLists && nLists > 1) item.classList.add("all");
      if (odd && !rank) item.classList.add("out");
      for (const [name, on] of [["pointerenter", true], ["pointerleave", false]]) item.addEventListener(name, () => highlight(place, word, on));
      return item;
    });
    column.append(make("ol", {}, ...items));
    return column;
  }));
}

function highlight(place, word, on) {
  const items = [...place.querySelectorAll("li")].filter((item) => item.dataset.word === word);
  for (const item of items) item.classList.toggle("same", on && items.length > 1);
}

async function showAnalogy(params, isCurrent) {
  const form = $("analogy-form");
  const [a, b, c] = ["a", "b", "c"].map((name) => params.get(name) ?? "");
  const method = params.get("m") ?? "3cosadd";
  Object.entries({ a, b, c }).forEach(([name, value]) => { form.elements[name].value = value; });
  $("method").value = method;
  $("answer").textContent = "?";
  $("analogous").replaceChildren();
  document.title = a ? `${a} : ${b} = ${c} : ? · word vectors` : "Analogy · word vectors";
  if (!(a && b && c)) return;
  const answers = await source.query("analogy", { a, b, c, method });
  if (!isCurrent()) return;
  $("answer").textContent = answers.find((answer) => answer.found)?.found[0]?.[0] ?? "?";
  drawColumns($("analogous"), answers);
}

function splitList(text) {
  return text.split(/[,;\n]/).map((word) => word.trim()).filter(Boolean);
}

async function showOdd(params, isCurrent) {
  const words = params.getAll("w");
  $("odd-form").elements.words.value = words.join(", ");
  $("odd-ones").replaceChildren();
  document.title = "Odd one out · word vectors";
  if (!words.length) return;
  const answers = await source.query("odd", { word: words });
  if (isCurrent()) drawColumns($("odd-ones"), answers, true);
}
