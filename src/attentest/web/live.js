// The live page: asks the server and shows what it says; weights.js lets the reader change weights. Classic
// scripts without a library; every text that comes from outside enters the page as text, never as markup.
"use strict";

const at = (id) => document.getElementById(id);
const MANY = 6; // answers that are shown; a question may have hundreds

let models = []; // what the server offers
let importances = []; // and what it measures: name, title, what that says, and whether it always does
let said = null; // its answer to the last reading
let asked = null; // and the question that was answered
let row = {}; // the layer and head that were chosen; none are the model's own
let further = new Set(); // importances that take longer and were asked for

// --- small things

function number(value) {
  if (value === null || value === undefined) return "–";
  const digits = value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : value.toFixed(3);
  return digits.replaceAll("-", "−");
}

// Signs that steer a terminal or the direction of writing are shown as what they are: not text.
const clean = (words) => words.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, "\ufffd") || "∅";

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function tell(words, wrong = false) {
  at("state").textContent = words;
  at("state").classList.toggle("wrong", wrong);
}

async function ask(path, question) {
  const options = question && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. Was it stopped?");
  }
  if (response.status === 503) throw new Error("The server is busy. Try again in a moment.");
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

// --- the question

const chosen = () => models.find((model) => model.key === at("model").value);

function nameOf(model) {
  if (model.name) return `${clean(model.name)} (${model.key.slice(0, 12)})`;
  const kind = model.kind === "trained" ? "" : `, ${model.kind}`;
  const projection = model.projection === "softmax" ? "" : `, ${model.projection}`;
  const place = ["", "cpu"].includes(model.trained_on) ? "" : `, trained on ${model.trained_on}`;
  return `${clean(model.corpus)}: ${model.encoder} + ${model.attention}${projection}, seed ${model.seed}${kind}${place} (${model.key.slice(0, 12)})`;
}

function offer(answer) {
  ({ models, importances } = answer);
  const buttons = importances
    .filter((each) => !each.always)
    .map(({ name, title }) => {
      const button = element("button", { type: "button", textContent: title });
      button.dataset.importance = name;
      return button;
    });
  at("further").append(...buttons);
  const groups = new Map();
  for (const model of models) {
    const group = model.name ? "given to this server" : clean(model.corpus);
    if (!groups.has(group)) groups.set(group, []);
    const title = model.unreadable;
    const about = { value: model.key, textContent: nameOf(model), disabled: title !== "", title };
    groups.get(group).push(about);
  }
  const options = () =>
    [...groups].map(([label, all]) =>
      element("optgroup", { label }, ...all.map((about) => element("option", about)))
    );
  at("model").replaceChildren(...options());
  at("other").replaceChildren(element("option", { value: "", textContent: "no other model" }), ...options());
  const given = models.filter((model) => model.name);
  if (given.length > 1) at("other").value = given[1].key;
  const nobody = models.length ? "" : "This store holds no model with its weights. Make one: attentest train CORPUS.";
  at("absent").textContent = answer.why || nobody;
  at("absent").hidden = !at("absent").textContent;
  for (const id of ["read", "example"]) at(id).disabled = !answer.live || !models.length;
}

function suit() {
  const model = chosen();
  at("query-field").hidden = !(model && (model.has_query || model.takes_query));
  at("example").hidden = Boolean(model && model.name);
  at("query-label").textContent = model && model.takes_query ? "Second text, if there is one" : "Question";
  at("query").required = Boolean(model && model.has_query);
}

function question() {
  const model = chosen();
  return { ...about(model, at("text").value), ...row };
}

// The text, and the second one where the model takes one.
function about(model, text) {
  const question = { model: model.key, text };
  if (model.has_query || (model.takes_query && at("query").value)) question.query = at("query").value;
  return question;
}

// The address holds the question, so that it can be passed on or come back to.
function remember(question) {
  const address = `#${new URLSearchParams(question)}`;
  history.replaceState(null, "", address.length < 8000 ? address : "#");
}

function recall() {
  const held = new URLSearchParams(location.hash.slice(1));
  const model = models.find((each) => each.key.startsWith(held.get("model") || "?") && !each.unreadable);
  if (model) at("model").value = model.key;
  at("text").value = held.get("text") || "";
  at("query").value = held.get("query") || "";
  row = {};
  for (const place of ["layer", "head"]) if (held.has(place)) row[place] = Number(held.get(place));
  suit();
  return Boolean(model && at("text").value);
}

async function read() {
  const begun = performance.now();
  tell("Reading …");
  asked = question();
  const wanted = at("other").value;
  const beside = wanted && wanted !== asked.model ? models.find((model) => model.key === wanted) : null;
  said = await ask("api/read", { ...asked, importances: [...further] });
  remember(asked);
  weights = said.weights.map((weight) => weight ?? 0);
  at("result").hidden = false;
  show();
  const all = (performance.now() - begun) / 1000;
  tell(`The model says ${clean(said.predicted)}.`);
  await readBeside(beside);
  at("timing").textContent = `Read, explained and attacked in ${number(said.seconds)} s; on this page after ${number(all)} s.`;
}

async function example() {
  const number = Math.floor(Math.random() * 1e6);
  const found = await ask(`api/example?model=${chosen().key}&number=${number}`);
  at("text").value = found.text;
  at("query").value = found.query || "";
  await read();
  const label = `Test text ${found.number + 1} of ${found.of}; its label is ${clean(found.label)}.`;
  tell(`The model says ${clean(said.predicted)}. ${label}`);
}

// --- the answer

function show() {
  at("notes").replaceChildren(...said.notes.map((note) => element("li", { textContent: clean(note) })));
  const order = said.labels.map((label, place) => place);
  if (order.length > 2) order.sort((a, b) => said.probabilities[b] - said.probabilities[a]);
  at("answers").replaceChildren(...order.slice(0, MANY).map(answerRow));
  at("weights").replaceChildren(...said.units.map(unit));
  for (const button of at("presets").querySelectorAll("button")) {
    button.disabled = shares(button.dataset.weights) === null;
  }
  showPanels(said, at("panels"));
  showFacts(said, at("facts"));
  showHeads();
  for (const button of at("further").querySelectorAll("button")) {
    button.disabled = button.dataset.importance in said.importances;
  }
  if (at("numbers").open) showNumbers();
  showWeights();
  decide();
}

function meter() {
  return element("span", { className: "meter" }, element("i", {}, element("b")), element("output"));
}

function answerRow(place) {
  const own = element("td", {}, meter());
  const yours = element("td", { className: "yours" }, meter());
  const row = element("tr", {}, element("th", { scope: "row", textContent: clean(said.labels[place]) }), own, yours);
  row.dataset.place = place;
  fill(own, said.probabilities[place], said.labels[place] === said.predicted);
  return row;
}

function fill(cell, chance, most) {
  cell.querySelector("b").style.width = `${100 * (chance ?? 0)}%`;
  cell.querySelector("output").textContent = number(chance);
  cell.classList.toggle("said", most);
}

function showNumbers() {
  const measured = importances.filter(({ name, always }) => always || said.importances[name]);
  const scores = ({ name, title }) => [title, said.importances[name] && said.importances[name].scores];
  const columns = [
    ["attention", said.weights],
    ...measured.map(scores),
    ["adversary", numbersOf("adversary")],
    ["yours", weights],
  ];
  at("columns").replaceChildren(
    element("th", { scope: "col", textContent: "unit" }),
    ...columns.map(([title]) => element("th", { scope: "col", className: "n", textContent: title }))
  );
  at("rows").replaceChildren(
    ...said.units.map((words, place) => {
      const cells = columns.map(([, column]) =>
        element("td", { className: "n", textContent: number(column && column[place]) })
      );
      return element("tr", {}, element("th", { scope: "row", textContent: clean(words) }), ...cells);
    })
  );
}

// --- what happens when

async function attempt(work) {
  for (const id of ["read", "example"]) at(id).disabled = true;
  try {
    await work();
  } catch (error) {
    tell(error.message, true);
  }
  for (const id of ["read", "example"]) at(id).disabled = false;
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (said && asked && JSON.stringify(question()) !== JSON.stringify(asked)) at("result").hidden = true;
  attempt(read);
});
at("example").addEventListener("click", () => attempt(example));
at("model").addEventListener("change", () => {
  row = {};
  suit();
});
at("further").addEventListener("click", (event) => {
  const name = event.target.dataset.importance;
  if (!name) return;
  further.add(name);
  attempt(read);
});
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("ask").requestSubmit();
});
at("numbers").addEventListener("toggle", () => {
  if (at("numbers").open && said) showNumbers();
});
// While somebody types, the text is read again whenever the hand rests.
let resting = 0;
at("ask").addEventListener("input", (event) => {
  clearTimeout(resting);
  if (!at("typing").checked || !["text", "query"].includes(event.target.id)) return;
  resting = setTimeout(() => at("text").value.trim() && !at("read").disabled && attempt(read), 400);
});
addEventListener("hashchange", () => {
  if (recall()) attempt(read);
});

// Not before the other script is here, too.
addEventListener("DOMContentLoaded", () => {
  ask("api/models")
    .then((answer) => {
      offer(answer);
      if (recall() && answer.live) return attempt(read);
    })
    .catch((error) => tell(error.message, true));
});
