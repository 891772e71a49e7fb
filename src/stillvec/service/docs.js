// The OpenAPI schema as a page to read and to try. Everything from the server is inserted as text, never as markup.

const MAX_SHOWN = 20000; // characters of a response
let api, models, token = "";

function request(path, settings = {}) {
  const headers = { ...settings.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  return fetch(path, { ...settings, headers });
}

const resolve = (schema) => (schema?.$ref ? api.components.schemas[schema.$ref.split("/").at(-1)] : (schema ?? {}));

function describeType(schema) {
  const full = resolve(schema);
  const choices = full.anyOf?.filter((choice) => choice.type !== "null");
  if (choices) return choices.map(describeType).join(" or ");
  if (full.const !== undefined) return JSON.stringify(full.const);
  if (full.enum) return full.enum.map((value) => JSON.stringify(value)).join(" or ");
  const range = (low, high, unit = "") => (low === undefined && high === undefined ? "" : low === high ? `, ${low}${unit}` : high === undefined ? `, at least ${low}${unit}` : `, ${low ?? 0} to ${high}${unit}`);
  if (full.type === "array") return `list of ${describeType(full.items)}${range(full.minItems, full.maxItems, " items")}`;
  if (full.properties) return `{ ${Object.keys(full.properties).join(", ")} }`;
  return `${full.type ?? "any"}${range(full.minimum, full.maximum)}`;
}

function exampleOf(schema) {
  const example = {};
  for (const [name, field] of Object.entries(resolve(schema).properties ?? {})) if (field.examples) [example[name]] = field.examples;
  return example;
}

function fieldTable(title, schema) {
  const full = resolve(schema), required = new Set(title === "Request" ? full.required : []);
  const rows = Object.entries(full.properties ?? {}).map(([name, field]) => make("tr", {},
    make("td", {}, make("code", {}, name)),
    make("td", {}, describeType(field)),
    make("td", {}, [field.description, required.has(name) && "Required.", field.default && `Default: ${field.default}.`].filter(Boolean).join(" "))));
  return rows.length ? [make("h3", {}, title), make("table", {}, make("tbody", {}, ...rows))] : [];
}

function endpoint(path, method, operation) {
  const body = operation.requestBody?.content["application/json"].schema;
  const response = operation.responses["200"]?.content?.["application/json"]?.schema;
  const inputs = body ? bodyInput(body) : (operation.parameters ?? []).flatMap((parameter) => parameterInput(path, method, parameter));
  const output = make("div", { "aria-live": "polite" });
  const form = make("form", { class: "request", onsubmit: (event) => { event.preventDefault(); send(path, method, event.target, output); } }, ...inputs, make("button", {}, "Send"));
  const errors = Object.entries(operation.responses).filter(([status]) => status !== "200").map(([status, { description }]) => make("tr", {}, make("td", {}, status), make("td", {}, description)));
  return make("details", { id: `${method}${path}` },
    make("summary", {}, make("span", { class: `method ${method}` }, method.toUpperCase()), make("code", {}, path), make("span", {}, operation.summary)),
    make("div", { class: "endpoint" }, form, output, ...(body ? fieldTable("Request", body) : []), ...(response ? fieldTable("Response", response) : []),
      make("h3", {}, "Errors"), make("table", {}, make("tbody", {}, ...errors))));
}

function bodyInput(schema) {
  const text = JSON.stringify(exampleOf(schema), null, 1);
  return [make("p", { class: "full" }, resolve(schema).description ?? ""), make("textarea", { class: "full", name: "body", rows: text.split("\n").length + 1, "aria-label": "Request body as JSON", spellcheck: "false" }, text)];
}

function parameterInput(path, method, { name, required, schema, description }) {
  const id = `${method}${path}?${name}`, [choice] = schema.anyOf ?? [schema];
  const settings = { id, name, ...(required ? { required: "" } : {}) };
  const none = required ? [] : [""];
  const options = choice.enum ?? (choice.type === "boolean" ? [...none, "true", "false"] : name === "model" ? [...none, ...models.map((model) => model.id)] : null);
  const field = options
    ? make("select", settings, ...options.map((option) => make("option", { value: option }, option || "default")))
    : make("input", { ...settings, value: schema.examples?.[0] ?? schema.default ?? "", autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  return [make("label", { for: id }, make("code", {}, name)), make("div", {}, field, make("div", { class: "note" }, [describeType(schema), description].filter(Boolean).join(". ")))];
}

async function send(path, method, form, output) {
  const values = new FormData(form), query = new URLSearchParams();
  const body = values.get("body");
  values.delete("body");
  let url = path;
  for (const [name, value] of values) {
    if (path.includes(`{${name}}`)) url = url.replace(`{${name}}`, () => encodeURIComponent(value));
    else if (value !== "") query.append(name, value);
  }
  url += query.size ? `?${query}` : "";
  const start = performance.now();
  let status, text;
  try {
    const response = await request(url.slice(1), body === null ? {} : { method: "POST", body, headers: { "Content-Type": "application/json" } });
    [status, text] = [response.status, await response.text()];
  } catch {
    [status, text] = ["", NO_RESPONSE];
  }
  const took = `${status} in ${(performance.now() - start).toFixed(0)} ms`;
  try {
    text = JSON.stringify(JSON.parse(text), null, 1);
  } catch { /* not JSON: shown unchanged */ }
  const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n… ${text.length - MAX_SHOWN} more characters` : text;
  output.replaceChildren(make("h3", {}, "Command line"), make("pre", {}, curl(url, body)), make("h3", {}, "Response ", make("span", { class: "note" }, took)), make("pre", { class: "answer" }, shown));
}

function curl(url, body) {
  const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const parts = ["curl", quote(new URL(url.slice(1), document.baseURI).href)];
  if (token) parts.push('-H "Authorization: Bearer $STILLVEC_TOKEN"');
  if (body !== null) parts.push("-H 'Content-Type: application/json'", "-d", quote(body));
  return parts.join(" ");
}

async function load() {
  const [response, health] = await Promise.all([request("openapi.json"), request("health")]);
  $("token").hidden = response.status !== 401;
  if (response.status === 401) return token ? showError("The token is wrong.") : $("bearer").focus();
  if (!response.ok) return showError((await response.json()).error.message);
  api = await response.json();
  ({ models } = await health.json());
  $("error").hidden = true;
  $("also").hidden = false;
  $("about").textContent = api.info.description.replaceAll("`", "");
  $("sets").replaceChildren(...models.map((model) => make("li", {}, make("b", {}, model.id), ` ${model.words.toLocaleString("en")} words, ${model.dim} dimensions, ${model.search} search${model.recall_at_10 === null ? "" : ` (recall@10 of approximate search: ${model.recall_at_10.toFixed(3)})`}`)));
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) for (const [method, operation] of Object.entries(methods)) {
    const [tag] = operation.tags;
    groups.set(tag, [...(groups.get(tag) ?? []), endpoint(path, method, operation)]);
  }
  $("endpoints").replaceChildren(...[...groups].flatMap(([tag, endpoints]) => [make("h2", {}, tag[0].toUpperCase() + tag.slice(1)), ...endpoints]));
  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", () => { if (details.open) history.replaceState(null, "", `#${details.id}`); });
  openLinked();
}

// the endpoint named in the address; without one, an example
function openLinked() {
  const linked = $(decodeURIComponent(location.hash.slice(1)));
  if (linked) {
    linked.open = true;
    linked.scrollIntoView();
  } else if (!location.hash) $("get/nearest").open = true;
}

function showError(message) {
  $("error").textContent = message;
  $("error").hidden = false;
}

const NO_RESPONSE = "No response from the server; is it still running?";

$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("bearer").value.trim();
  start();
});
window.addEventListener("hashchange", openLinked);
const start = () => load().then(() => { document.body.dataset.shown = ""; }, () => showError(NO_RESPONSE));
start();
