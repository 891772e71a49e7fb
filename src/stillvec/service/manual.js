// The description of the server as a page to read and to try it. What comes enters as text, never as markup.

const SHOWN = 20000; // characters of an answer
let told, models, token = "";

function ask(path, settings = {}) {
  const headers = { ...settings.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  return fetch(path, { ...settings, headers });
}

// a schema in words, and an example of it

const plain = (schema) => (schema?.$ref ? told.components.schemas[schema.$ref.split("/").at(-1)] : (schema ?? {}));

function kind(schema) {
  const whole = plain(schema);
  const choices = whole.anyOf?.filter((each) => each.type !== "null");
  if (choices) return choices.map(kind).join(" or ");
  if (whole.const !== undefined) return JSON.stringify(whole.const);
  if (whole.enum) return whole.enum.map((each) => JSON.stringify(each)).join(" or ");
  const bound = (low, high, what) => (low === undefined && high === undefined ? "" : low === high ? ` of ${low}${what}` : ` of ${low ?? 0}${high === undefined ? " or more" : ` to ${high}`}${what}`);
  if (whole.type === "array") return `list${bound(whole.minItems, whole.maxItems, "")}: ${kind(whole.items)}`;
  if (whole.properties) return `{ ${Object.keys(whole.properties).join(", ")} }`;
  return `${whole.type ?? "anything"}${bound(whole.minimum, whole.maximum, "")}`;
}

function example(schema) {
  const whole = plain(schema), shown = {};
  for (const [name, field] of Object.entries(whole.properties ?? {})) if (field.examples) [shown[name]] = field.examples;
  return shown;
}

function fields(title, schema) {
  const whole = plain(schema), required = new Set(whole.required);
  const rows = Object.entries(whole.properties ?? {}).map(([name, field]) => make("tr", {},
    make("td", {}, make("code", {}, name)),
    make("td", {}, kind(field)),
    make("td", {}, field.description ?? "", title === "Asked" && required.has(name) ? " Wanted." : "", field.default ? ` If not given: ${field.default}.` : "")));
  return rows.length ? [make("h3", {}, title), make("table", {}, make("tbody", {}, ...rows))] : [];
}

// one address

function address(path, method, operation) {
  const body = operation.requestBody?.content["application/json"].schema;
  const answer = operation.responses["200"]?.content?.["application/json"]?.schema;
  const inputs = body ? written(body) : (operation.parameters ?? []).flatMap((each) => input(path, method, each));
  const place = make("div", { "aria-live": "polite" });
  const form = make("form", { class: "asked", onsubmit: (event) => { event.preventDefault(); send(path, method, event.target, place); } }, ...inputs, make("button", {}, "Ask"));
  const refusals = Object.entries(operation.responses).filter(([status]) => status !== "200").map(([status, { description }]) => make("tr", {}, make("td", {}, status), make("td", {}, description)));
  return make("details", { id: `${method}${path}` },
    make("summary", {}, make("span", { class: `method ${method}` }, method.toUpperCase()), make("code", {}, path), make("span", {}, operation.summary)),
    make("div", { class: "inside" }, form, place, ...(body ? fields("Asked", body) : []), ...(answer ? fields("Answered", answer) : []),
      make("h3", {}, "Refused"), make("table", {}, make("tbody", {}, ...refusals))));
}

function written(schema) {
  const text = JSON.stringify(example(schema), null, 1);
  return [make("p", { class: "whole" }, plain(schema).description ?? ""), make("textarea", { class: "whole", name: "body", rows: text.split("\n").length + 1, "aria-label": "The question, as JSON", spellcheck: "false" }, text)];
}

function input(path, method, { name, required, schema, description }) {
  const id = `${method}${path}?${name}`, [choice] = schema.anyOf ?? [schema];
  const settings = { id, name, ...(required ? { required: "" } : {}) };
  const given = required ? [] : [""];
  const options = choice.enum ?? (choice.type === "boolean" ? [...given, "true", "false"] : name === "model" ? [...given, ...models.map((each) => each.id)] : null);
  const field = options
    ? make("select", settings, ...options.map((each) => make("option", { value: each }, each || "not given")))
    : make("input", { ...settings, value: schema.examples?.[0] ?? schema.default ?? "", autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  return [make("label", { for: id }, make("code", {}, name)), make("div", {}, field, make("div", { class: "note" }, [kind(schema), description].filter(Boolean).join(". ")))];
}

async function send(path, method, form, place) {
  const given = new FormData(form), query = new URLSearchParams();
  const body = given.get("body");
  given.delete("body");
  let asked = path;
  for (const [name, value] of given) {
    if (path.includes(`{${name}}`)) asked = asked.replace(`{${name}}`, () => encodeURIComponent(value));
    else if (value !== "") query.append(name, value);
  }
  asked += query.size ? `?${query}` : "";
  const begun = performance.now();
  let status, text;
  try {
    const answer = await ask(asked.slice(1), body === null ? {} : { method: "POST", body, headers: { "Content-Type": "application/json" } });
    [status, text] = [answer.status, await answer.text()];
  } catch {
    [status, text] = ["", "The server does not answer; is it still running?"];
  }
  const took = `${status} in ${(performance.now() - begun).toFixed(0)} ms`;
  try {
    text = JSON.stringify(JSON.parse(text), null, 1);
  } catch { /* no JSON: as it is */ }
  const cut = text.length > SHOWN ? `${text.slice(0, SHOWN)}\n… and ${text.length - SHOWN} characters more` : text;
  place.replaceChildren(make("h3", {}, "On a command line"), make("pre", {}, curl(asked, body)), make("h3", {}, "Answer ", make("span", { class: "note" }, took)), make("pre", { class: "answer" }, cut));
}

function curl(asked, body) {
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const parts = ["curl", quoted(new URL(asked.slice(1), document.baseURI).href)];
  if (token) parts.push('-H "Authorization: Bearer $STILLVEC_TOKEN"');
  if (body !== null) parts.push("-H 'Content-Type: application/json'", "-d", quoted(body));
  return parts.join(" ");
}

// all of them

async function begin() {
  const [answer, health] = await Promise.all([ask("openapi.json"), ask("health")]);
  $("token").hidden = answer.status !== 401;
  if (answer.status === 401) return token ? complain("This is not the token of this server.") : $("bearer").focus();
  if (!answer.ok) return complain((await answer.json()).error.message);
  told = await answer.json();
  ({ models } = await health.json());
  $("trouble").hidden = true;
  $("also").hidden = false;
  $("about").textContent = told.info.description.replaceAll("`", "");
  $("sets").replaceChildren(...models.map((each) => make("li", {}, make("b", {}, each.id), ` ${each.words.toLocaleString("en")} words × ${each.dim}, ${each.search} search${each.recall_at_10 === null ? "" : `, recall@10 of the approximate one ${each.recall_at_10.toFixed(3)}`}`)));
  const groups = new Map();
  for (const [path, methods] of Object.entries(told.paths)) for (const [method, operation] of Object.entries(methods)) {
    const [tag] = operation.tags;
    groups.set(tag, [...(groups.get(tag) ?? []), address(path, method, operation)]);
  }
  $("addresses").replaceChildren(...[...groups].flatMap(([tag, all]) => [make("h2", {}, tag[0].toUpperCase() + tag.slice(1)), ...all]));
  for (const each of document.querySelectorAll("details")) each.addEventListener("toggle", () => { if (each.open) history.replaceState(null, "", `#${each.id}`); });
  opened();
}

function opened() {
  const meant = $(decodeURIComponent(location.hash.slice(1)));
  if (!meant) return;
  meant.open = true;
  meant.scrollIntoView();
}

function complain(sentence) {
  $("trouble").textContent = sentence;
  $("trouble").hidden = false;
}

$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("bearer").value.trim();
  start();
});
window.addEventListener("hashchange", opened);
const start = () => begin().then(() => { document.body.dataset.shown = ""; }, () => complain("The server does not answer; is it still running?"));
start();
