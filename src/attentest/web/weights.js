// The reader's own weights: bars to drag, and the decision under them. Belongs to live.js, which comes first.
"use strict";

let weights = []; // one a unit
let waiting = false; // whether a decision is under way, and whether another is wanted after it
let again = false;
let held = null; // the slider that is being moved

// --- the bars

function unit(words, place) {
  const slider = element("input", { type: "range", min: 0, max: 1, step: 0.01 });
  slider.dataset.place = place;
  slider.setAttribute("aria-label", `weight of ${clean(words).slice(0, 80)}`);
  const own = element("span", { className: "own" });
  own.style.height = `${100 * Math.sqrt(said.weights[place] ?? 0)}%`;
  const bar = element("span", { className: "bar" }, element("span", { className: "yours" }), own, slider);
  const word = element("bdi", { className: "word", textContent: clean(words).slice(0, 200) });
  word.classList.toggle("unknown", !said.known[place]);
  word.title = said.known[place] ? clean(words).slice(0, 200) : "unknown to the model";
  return element("div", { className: "unit" }, bar, word, element("output"));
}

function showWeights() {
  const units = at("weights").children;
  weights.forEach((weight, place) => {
    const height = Math.sqrt(Math.min(weight, 1));
    const slider = units[place].querySelector("input");
    // The one in hand is where the hand is; to set it again would only round it.
    if (slider !== held) slider.value = height;
    slider.setAttribute("aria-valuetext", number(weight));
    units[place].querySelector(".yours").style.height = `${100 * height}%`;
    units[place].querySelector("output").textContent = number(weight);
  });
}

// --- moving them

const renormalises = () => document.querySelector("[name=rest]:checked").value === "share";

// A list of numbers as weights that sum to 1; null where there are none or all are zero.
function shares(name) {
  const values = name === "uniform" ? said.units.map(() => 1) : numbersOf(name);
  const sum = (values || []).reduce((total, value) => total + (value ?? 0), 0);
  return sum > 0 ? values.map((value) => (value ?? 0) / sum) : null;
}

function move(place, weight) {
  const rest = weights.reduce((total, value) => total + value, 0) - weights[place];
  if (renormalises() && weights.length > 1) {
    // What is left goes to the others in proportion; evenly, where they have nothing to go by.
    const even = (1 - weight) / (weights.length - 1);
    weights = weights.map((value) => (rest > 1e-9 ? (value / rest) * (1 - weight) : even));
  }
  weights[place] = renormalises() && weights.length === 1 ? 1 : weight;
  showWeights();
  decide();
}

// Only one decision at a time, and after it only the latest: a hand is faster than any model.
async function decide() {
  if (waiting) {
    again = true;
    return;
  }
  waiting = true;
  try {
    do {
      again = false;
      const about = said;
      const clipped = weights.map((weight) => Math.min(1, Math.max(0, weight)));
      const answer = await ask("api/decide", { ...asked, weights: clipped, renormalise: renormalises() });
      if (about === said) showDecision(answer);
    } while (again);
  } catch (error) {
    at("moved").textContent = error.message;
  } finally {
    waiting = false;
  }
}

function showDecision(answer) {
  for (const row of at("answers").children) {
    const place = Number(row.dataset.place);
    fill(row.querySelector(".yours"), answer.probabilities[place], answer.labels[place] === answer.predicted);
  }
  at("moved").textContent = toldDecision(answer);
  if (at("numbers").open) showNumbers();
}

function toldDecision(answer) {
  if (answer.divergence !== null && answer.divergence < 1e-9) return "These are the model's own weights.";
  const place = said.labels.indexOf(said.predicted);
  const same = answer.predicted === said.predicted ? "It still says" : "Now it says";
  const chance = `${clean(said.predicted)} has ${number(answer.probabilities[place])}, and had ${number(said.probabilities[place])}`;
  const far =
    answer.divergence === null
      ? `the weights sum to ${number(answer.mass)}`
      : `JSD from its own attention ${number(answer.divergence)}`;
  return `${same} ${clean(answer.predicted)}: ${chance}. Output change ${number(answer.output_change)}; ${far}.`;
}

// --- what happens when

at("weights").addEventListener("input", (event) => {
  held = event.target;
  move(Number(held.dataset.place), Number(held.value) ** 2);
});
at("weights").addEventListener("change", () => {
  held = null;
  showWeights();
});
at("presets").addEventListener("click", (event) => {
  const name = event.target.dataset.weights;
  if (!name) return;
  weights = shares(name);
  showWeights();
  decide();
});
for (const choice of document.querySelectorAll("[name=rest]")) {
  choice.addEventListener("change", () => {
    const sum = weights.reduce((total, value) => total + value, 0);
    if (renormalises()) weights = sum > 0 ? weights.map((value) => value / sum) : shares("uniform");
    showWeights();
    decide();
  });
}
