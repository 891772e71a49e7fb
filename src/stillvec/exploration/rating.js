"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const token = document.body.dataset.token;
  let pairs = [], ratings = [], at = 0, over = false;
  let saving = Promise.resolve(); // ratings are sent one after the other, while the next pair is shown

  async function ask(name, values) {
    const query = new URLSearchParams({ ...values, token });
    const reply = await fetch(`/api/${name}?${query}`);
    const answer = await reply.json();
    if (answer.error) throw new Error(answer.error);
    return answer;
  }

  function say(text, isError = false) {
    find("message").textContent = text;
    find("message").classList.toggle("error", isError);
  }

  function show() {
    const done = ratings.filter((rating) => rating !== "").length;
    find("done").style.width = `${(100 * done) / pairs.length}%`;
    find("bar").setAttribute("aria-valuemax", pairs.length);
    find("bar").setAttribute("aria-valuenow", done);
    find("place").textContent = `pair ${at + 1} of ${pairs.length} · ${done} done`;
    find("a").textContent = pairs[at][0];
    find("b").textContent = pairs[at][1];
    for (const button of find("scale").children) button.setAttribute("aria-pressed", String(ratings[at]) === button.dataset.score);
    find("back").disabled = at === 0;
    if (done === pairs.length) say("All pairs are rated. Finish, or go back to change a rating.");
  }

  function goOn() {
    const next = ratings.findIndex((rating, number) => rating === "" && number > at);
    const first = ratings.indexOf("");
    at = next >= 0 ? next : first >= 0 ? first : Math.min(at + 1, pairs.length - 1);
    show();
  }

  function rate(score) {
    if (over || !pairs.length) return;
    const number = at, before = ratings[at];
    ratings[number] = score;
    say("");
    goOn();
    saving = saving.then(() => ask("rate", { pair: number, score })).catch((error) => {
      ratings[number] = before;
      at = number;
      show();
      say(`Not saved: ${error.message}. Is the command still running?`, true);
    });
  }

  function back() {
    if (at > 0 && !over) { at -= 1; say(""); show(); }
  }

  async function finish() {
    try {
      await saving;
      const answer = await ask("finish", {});
      over = true;
      document.querySelector("main").replaceChildren(Object.assign(document.createElement("p"), { id: "end", textContent: `${answer.rated} pairs are rated. The scores are in the terminal; you can close this page.` }));
      find("finish").hidden = true;
    } catch (error) {
      say(`${error.message}`, true);
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (/^[0-4]$/.test(event.key)) rate(Number(event.key));
    else if (event.key.toLowerCase() === "s") rate("skip");
    else if (event.key === "ArrowLeft" || event.key === "Backspace") back();
    else if (event.key === "ArrowRight" && ratings[at] !== "") goOn();
    else return;
    event.preventDefault();
  });
  find("back").addEventListener("click", back);
  find("skip").addEventListener("click", () => rate("skip"));
  find("finish").addEventListener("click", finish);

  ask("pairs", {}).then((answer) => {
    ({ pairs, ratings } = answer);
    for (const [score, label] of Object.entries(answer.scale)) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.score = score;
      button.append(Object.assign(document.createElement("b"), { textContent: score }), Object.assign(document.createElement("span"), { textContent: label }));
      button.addEventListener("click", () => rate(Number(score)));
      find("scale").append(button);
    }
    at = Math.max(0, ratings.indexOf(""));
    show();
  }).catch((error) => say(error.message, true));
})();
