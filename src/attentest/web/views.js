// Views of an answer: strips with signs, what was measured in words, the map of layers and heads, and another
// model's answer to the same text. Belongs to live.js, which comes first.
"use strict";

// --- strips

const numbersOf = (name, answer = said) =>
  name === "adversary" ? answer.adversary && answer.adversary.weights : answer[name];

// Each view: its title, what is said of it, its numbers, and the number that is as warm as can be.
function viewsOf(answer) {
  const largest = (values) => Math.max(0, ...(values || []).map((value) => Math.abs(value ?? 0)));
  const opposed = numbersOf("adversary", answer);
  const shared = Math.max(largest(answer.weights), largest(opposed));
  const views = [
    ["attention", "the model's own", answer.weights, shared],
    ["strongest adversary", toldAdversary(answer.adversary), opposed, shared],
  ];
  for (const { name, title, says, always } of importances) {
    if (!answer.importances[name]) {
      if (always) views.push([title, "see above", null, 0]);
      continue;
    }
    const { scores, convergence_delta: delta } = answer.importances[name];
    const missing = delta === null ? "" : `; convergence delta ${number(delta)}`;
    views.push([title, `${says}; for ${clean(answer.predicted)}${missing}`, scores, largest(scores)]);
  }
  const flip = answer.smallest_flip;
  if (flip) {
    const gone = answer.units.map((_, place) => (flip.indices.includes(place) ? 1 : 0));
    views.push(["smallest flip", toldFlip(answer), gone, 1]);
  }
  return views;
}

function toldAdversary(adversary) {
  if (!adversary) return "none; see above";
  if (!adversary.exact && adversary.divergence < 1e-9) {
    return `the search found no other attention that keeps the output; none is further than ${number(adversary.bound)}`;
  }
  const proof = adversary.exact ? "no attention is further" : `none is further than ${number(adversary.bound)}`;
  const null_ = adversary.null === null ? "" : `; for permuted attention ${number(adversary.null)}`;
  return `JSD ${number(adversary.divergence)} at an output change of ${number(adversary.output_change)}; ${proof}${null_}`;
}

function toldFlip(answer) {
  const flip = answer.smallest_flip;
  const how = flip.exact ? "no smaller set does" : "a smaller set may do";
  return `without the weight of ${flip.words.length} of ${answer.units.length} it says ${clean(flip.label)} (${number(flip.probability)}); ${how}`;
}

function showPanels(answer, panels) {
  panels.replaceChildren(
    ...viewsOf(answer).map(([title, told, values, top]) => {
      const strip = element("p", { className: "strip", tabIndex: 0 });
      strip.setAttribute("aria-label", title);
      if (values) answer.units.forEach((words, place) => strip.append(token(words, values[place], top), " "));
      else strip.append("not looked for");
      const scale = values ? `; largest ${number(top)}` : "";
      const caption = element("small", { textContent: told + scale });
      return element("figure", {}, element("figcaption", {}, element("strong", { textContent: title }), caption), strip);
    })
  );
}

function token(words, value, top) {
  const made = element("bdi", { className: "token", textContent: clean(words), title: number(value) });
  if (value === null) made.classList.add("undefined");
  const share = value === null || !(top > 0) ? 0 : Math.abs(value) / top;
  made.style.setProperty("--share", share.toFixed(3));
  made.classList.toggle("against", value < 0 && share > 0.02);
  made.classList.toggle("hot", share > 0.66);
  return made;
}

function showFacts(answer, facts) {
  const told = [`Attention: ${answer.attention_of}.`];
  const permuted = answer.permuted;
  if (permuted) {
    told.push(
      `Under 100 random orders of its weights the output changes by ${number(permuted.median_change)} (median; central 95 % ${number(permuted.low)} to ${number(permuted.high)}), and ${Math.round(100 * permuted.flips)} % of them change the prediction.`
    );
  }
  facts.replaceChildren(...told.map((sentence) => element("li", { textContent: clean(sentence) })));
}

// --- layers and heads

function showHeads() {
  at("map").hidden = said.heads === null;
  if (said.heads === null) return;
  const rows = said.heads.map((heads, layer) => {
    const mean = said.units.map((_, unit) => heads.reduce((sum, head) => sum + (head[unit] ?? 0), 0) / heads.length);
    const cells = [[null, mean], ...heads.entries()].map(([head, shares]) => cell(layer, head, shares));
    return element("div", { className: "layer" }, element("span", { textContent: layer }), ...cells);
  });
  at("heads").replaceChildren(...rows.reverse()); // the last layer on top, as models are drawn
}

function cell(layer, head, shares) {
  const most = shares.reduce((best, share, unit) => ((share ?? 0) > (shares[best] ?? 0) ? unit : best), 0);
  const name = `layer ${layer}, ${head === null ? "mean over heads" : `head ${head}`}`;
  const title = `${name}: most on ${clean(said.units[most])} (${number(shares[most])})`;
  const button = element("button", { type: "button", className: "head", title }, drawn(shares));
  button.setAttribute("aria-label", title);
  button.setAttribute("aria-pressed", said.layer === layer && said.head === head);
  button.classList.toggle("mean", head === null);
  button.addEventListener("click", () => {
    row = head === null ? { layer } : { layer, head };
    attempt(read);
  });
  return button;
}

// A line of pixels, one a unit: small enough for twelve times twelve of them.
function drawn(shares) {
  const canvas = element("canvas", { width: shares.length, height: 1 });
  const brush = canvas.getContext("2d");
  const warm = getComputedStyle(document.documentElement).getPropertyValue("--warm").trim().replaceAll(" ", ", ");
  shares.forEach((share, unit) => {
    brush.fillStyle = `rgba(${warm}, ${Math.sqrt(share ?? 0)})`;
    brush.fillRect(unit, 0, 1, 1);
  });
  return canvas;
}

// --- two models on one text

async function readBeside(model) {
  at("beside-it").hidden = !model;
  if (!model) return;
  at("other-name").textContent = nameOf(model);
  try {
    const answer = await ask("api/read", { ...about(model, asked.text), importances: [...further] });
    const place = answer.labels.indexOf(answer.predicted);
    const same = answer.predicted === said.predicted ? "says the same" : "says otherwise";
    at("other-says").textContent = `It ${same}: ${clean(answer.predicted)} ${number(answer.probabilities[place])}.`;
    showFacts(answer, at("other-facts"));
    showPanels(answer, at("other-panels"));
  } catch (error) {
    at("other-says").textContent = error.message;
  }
}
