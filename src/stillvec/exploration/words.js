// A word and its card; lists side by side; analogies and the odd one.

const ANALOGIES = [["man", "woman", "king"], ["france", "paris", "japan"], ["walk", "walked", "go"], ["good", "better", "bad"]];
const ODDS = [["breakfast", "cereal", "dinner", "lunch"], ["red", "green", "heavy", "blue"], ["violin", "piano", "flute", "painter"]];

async function showWord(asked, current) {
  const word = asked.get("w"), k = Number(asked.get("k")) || 12;
  $("welcome").hidden = Boolean(word);
  $("found").hidden = true;
  document.title = word ? `${word} · word vectors` : "Word vectors";
  if (!word) return;
  $("typed").value = word;
  const [card, answers] = await Promise.all([source.ask("card", { word }), source.ask("neighbours", { word, k })]);
  if (!current()) return;
  $("found").hidden = false;
  const first = card.sets[0];
  const onMap = make("a", { href: address("map", { w: card.word }) }, "on the map");
  const meant = card.alike?.length ? make("p", { class: "chips" }, ...card.alike.map((each) => chip(each, () => go("word", { w: each })))) : "";
  $("head").replaceChildren(make("h1", {}, card.word), make("p", { class: "facts" }, factsOf(first, card.part), ...(first.rank ? [onMap] : [])), meant);
  drawColumns($("neighbours"), answers);
  $("more").hidden = k > 12;
  $("more").onclick = () => go("word", { w: word, k: 40 });
  $("agreement").textContent = `${agreement(answers, k)} ${rounding()}`.trim();
  drawCard(card);
  if (about.corpus) drawExamples(card.word, current);
}

const PART_NAMES = { noun: "noun", verb: "verb", adj: "adjective", adv: "adverb" };

function factsOf({ rank, count }, part) {
  if (!rank) return "not among the words: its vector is made of its n-grams";
  return [`rank ${ROMAN.format(rank)}`, count ? `seen ${ROMAN.format(count)} times` : "", PART_NAMES[part] ?? ""].filter(Boolean).join(" · ");
}

function agreement(answers, k) {
  const there = answers.filter((each) => each.found);
  if (there.length < 2) return "";
  const all = there[0].found.filter(([, , sets]) => sets.length === there.length).length;
  return `${all} of ${k} neighbours stand in ${there.length === 2 ? "both" : "all three"} lists; dots say in which others a word stands.`;
}

// what a page without a server does not have
function rounding() {
  if (!data) return "";
  const cut = about.sets.some((set) => set.whole > set.words), off = Math.max(...about.sets.map((set) => set.off));
  return `Found among the words of this page${cut ? ", the most frequent ones" : ""}; its vectors are rounded to bytes, and cosines are off by up to ${off.toFixed(3)}.`;
}

function drawCard(card) {
  const rows = card.sets.map((set) => make("tr", {},
    make("th", { scope: "row" }, dotOf(set.name), ...named(set.name)),
    ...[set.rank ? ROMAN.format(set.rank) : "–", set.count ? ROMAN.format(set.count) : "–", set.norm.toPrecision(3)].map((text) => make("td", {}, text))));
  const head = make("tr", {}, make("th", {}, "vectors"), ...["rank", "count", "length"].map((text) => make("th", { class: "num" }, text)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  const layers = make("dl");
  for (const [name, near] of card.layers ?? []) layers.append(make("dt", {}, name), make("dd", {}, ...joinedWords(near.map(([word]) => word))));
  const list = make("dl");
  for (const [relation, words] of Object.entries(card.relations ?? {})) {
    list.append(make("dt", {}, relation), make("dd", {}, ...joinedWords(words)));
  }
  $("card").replaceChildren(table, ...(layers.children.length ? [make("h2", {}, "Layer by layer"), layers] : []), ...(list.children.length ? [make("h2", {}, "In the lexicon"), list] : []), make("div", { id: "sentences" }));
}

async function drawExamples(word, current) {
  const place = $("sentences");
  place.replaceChildren(make("h2", {}, "In the corpus"), make("p", { class: "note" }, "reading …"));
  const answer = await source.ask("examples", { word });
  if (!current()) return;
  const quotes = answer.found.map(([before, it, behind]) => make("blockquote", {}, before, make("mark", {}, it), behind));
  const read = `${ROMAN.format(answer.read)} sentences`;
  const note = quotes.length ? "" : answer.ended ? `Not in the ${read} of the corpus.` : `Not in the first ${read}; time was up.`;
  place.replaceChildren(make("h2", {}, "In the corpus"), ...quotes, ...(note ? [make("p", { class: "note" }, note)] : []));
}

function dotOf(name) {
  return make("span", { class: `dot s${about.sets.findIndex((set) => set.name === name)}` });
}

// lists side by side: a bar a score, and a dot for every other set that has the word

function drawColumns(place, answers, odd = false) {
  place.classList.toggle("several", answers.length > 1);
  place.style.setProperty("--sets", answers.length);
  const there = answers.filter((each) => each.found).length;
  place.replaceChildren(...answers.map((answer, number) => {
    const column = make("div", { class: `s${number}` }, make("h3", {}, dotOf(answer.name), make("span", {}, ...named(answer.name))));
    if (answer.error) {
      const alike = joinedWords(answer.alike);
      column.append(make("p", { class: "lacks" }, "lacks a word here", ...(alike.length ? ["; it has ", ...alike] : []), "."));
      return column;
    }
    const top = Math.max(...answer.found.map(([, score]) => score), 1e-9);
    const items = answer.found.map(([word, score, sets = []], rank) => {
      const others = sets.filter((each) => each !== number);
      const also = make("span", { class: "also" }, ...others.map((each) => make("span", { class: `dot s${each}`, title: `also in ${about.sets[each].name}` })));
      const item = make("li", {}, wordButton(word), also, make("span", { class: "value" }, score.toFixed(3)));
      item.style.setProperty("--share", `${100 * clamp(score / Math.max(top, odd ? top : 1), 0, 1)}%`);
      item.dataset.word = word;
      if (sets.length === there && there > 1) item.classList.add("all");
      if (odd && !rank) item.classList.add("out");
      for (const [name, on] of [["pointerenter", true], ["pointerleave", false]]) item.addEventListener(name, () => light(place, word, on));
      return item;
    });
    column.append(make("ol", {}, ...items));
    return column;
  }));
}

function light(place, word, on) {
  const same = [...place.querySelectorAll("li")].filter((item) => item.dataset.word === word);
  for (const item of same) item.classList.toggle("same", on && same.length > 1);
}

async function showAnalogy(asked, current) {
  const form = $("ask-analogy");
  const [a, b, c] = ["a", "b", "c"].map((name) => asked.get(name) ?? "");
  const method = asked.get("m") ?? "3cosadd";
  Object.entries({ a, b, c }).forEach(([name, value]) => { form.elements[name].value = value; });
  $("method").value = method;
  $("answer").textContent = "what?";
  $("analogous").replaceChildren();
  document.title = a ? `${a} : ${b} = ${c} : ? · word vectors` : "Analogy · word vectors";
  if (!(a && b && c)) return;
  const answers = await source.ask("analogy", { a, b, c, method });
  if (!current()) return;
  $("answer").textContent = answers.find((each) => each.found)?.found[0]?.[0] ?? "what?";
  drawColumns($("analogous"), answers);
}

function listed(text) {
  return text.split(/[,;\n]/).map((word) => word.trim()).filter(Boolean);
}

async function showOdd(asked, current) {
  const words = asked.getAll("w");
  $("ask-odd").elements.words.value = words.join(", ");
  $("odd-ones").replaceChildren();
  document.title = "Odd one out · word vectors";
  if (!words.length) return;
  const answers = await source.ask("odd", { word: words });
  if (current()) drawColumns($("odd-ones"), answers, true);
}
