// Search in the documents of an index: passages with the words of the query marked.

async function showDocuments(params, isCurrent) {
  const text = params.get("q") ?? "", method = params.get("m") || "hybrid", form = $("documents-form").elements;
  document.title = text ? `${text} · documents` : "Documents";
  [form.text.value, form.method.value] = [text, method];
  $("hits").replaceChildren();
  $("about-documents").textContent = about.documents ? `${NUMBERS.format(about.documents)} documents.` : "There are no documents: start stillvec explore with --index DIR.";
  if (!text || !about.documents) return;
  const hits = await source.query("documents", { text, method });
  if (!isCurrent()) return;
  $("hits").replaceChildren(...hits.map(makeHit));
  if (!hits.length) $("about-documents").textContent = "Nothing found: no passage contains its words or similar ones.";
}

function makeHit({ score, id, position, snippet, highlights }) {
  const title = make("p", { class: "facts" }, make("b", {}, id), ` passage ${position + 1} · ${score.toFixed(3)}`);
  return make("li", {}, title, make("p", {}, ...markWords([...snippet], highlights)));
}

// offsets count characters, of which JavaScript stores some as two
function markWords(characters, highlights) {
  const parts = [];
  let end = 0;
  for (const [start, stop] of highlights) {
    parts.push(characters.slice(end, start).join(""), make("mark", {}, characters.slice(start, stop).join("")));
    end = stop;
  }
  return [...parts, characters.slice(end).join("")];
}
