// What stands in front of the page for a moment: the keys, a recusal, a pause. Native dialogs: the
// browser keeps the focus inside and gives it back.

const REASONS = ["I know this patient", "Outside my specialty", "I know who wrote it", "Another reason"];

function openDialog(root, title, ...children) {
  const heading = node("h2", {}, title);
  const dialog = node("dialog", { "aria-label": title }, heading, ...children);
  dialog.addEventListener("close", () => dialog.remove());
  root.append(dialog);
  dialog.showModal();
  return dialog;
}

function keyLine(does, ...keys) {
  return node("div", {}, node("dt", {}, ...keys.map((one) => key(one))), node("dd", {}, say(does)));
}

function ratingKeys(entry) {
  const points = entry.criteria.flatMap((one) => one.points);
  const answers = new Set(entry.criteria.flatMap((one) => one.answers));
  const rate = digitKeys(entry)
    ? [keyLine("rate, and go to the next criterion", ...(entry.pair ? ["1", "–", "5"] : [`${Math.min(...points)}`, "–", `${Math.max(...points)}`]))]
    : [keyLine("one point less or more", "←", "→"), keyLine("rate: type the number, such as −2 or 10"), keyLine("next criterion", "Enter")];
  const instead = Object.entries(ANSWER_KEYS).filter(([, answer]) => answers.has(answer));
  return [...rate, ...instead.map(([letter, answer]) => keyLine(ANSWER_WORDS[answer], letter.toUpperCase())),
    keyLine("undo the last entry, mark or flag", "U"), keyLine("write a comment; Esc leaves it", "C"),
    keyLine("submit, and go on", "Ctrl", "Enter"), keyLine("mark a stretch of the response", "S"),
    keyLine("while marking: sentence by sentence, word by word", "↑", "↓", "←", "→"),
    keyLine("while marking: longer or shorter", "Shift", "→"), keyLine("while marking: the other text; stop", "X", "Esc"),
    ...Object.entries(errorKeys(entry.errors)).map(([error, letter]) => keyLine(say("while marking: {error}", { error: say(titled(error)) }), letter.toUpperCase())),
    ...(entry.pair ? [keyLine("both responses are unsafe", "X"), keyLine("the other response in front", "O")] : []),
    keyLine("not enough context to rate", "N"), keyLine("the text names its author", "A"),
    keyLine("flag for the coordinator", "F"), keyLine("recuse yourself", "R"),
    keyLine("the response rated before", "P", "←"), keyLine("back to the next response", "B"),
    keyLine("what the study is about, and its guideline", "G"), keyLine("to the response whose flag was answered", "J"),
    keyLine("the texts laid out, or as they were typed", "V"), keyLine("find in the texts", "/"), keyLine("this list", "?")];
}

function openKeys(root, entry, off, switchKeys) {
  const list = node("dl", { class: "keys" }, ...ratingKeys(entry));
  const box = node("input", { type: "checkbox" });
  box.checked = !off;
  box.addEventListener("change", () => switchKeys(!box.checked));
  const close = button(say("Close"), { class: "main" });
  const dialog = openDialog(root, say("Keys"), list, node("label", { class: "switch" }, box, say("Single keys are on")), node("div", { class: "ends" }, close));
  close.addEventListener("click", () => dialog.close());
  close.focus();
}

function openRecusal(root, done) {
  const radios = REASONS.map((reason) => node("input", { type: "radio", name: "reason", value: reason }));
  const other = node("input", { type: "text", maxlength: 400, "aria-label": say("Which other reason"), placeholder: say("Which other reason") });
  const alert = node("p", { class: "alert", role: "alert" });
  const go = node("button", { type: "submit", class: "main" }, say("Give it back"));
  const cancel = button(say("Cancel"));
  const lines = radios.map((radio, n) => node("label", { class: "reason" }, radio, say(REASONS[n])));
  const form = node("form", { novalidate: "" }, node("p", {}, say("Another clinician will rate this response. What you entered for it does not count.")),
    node("div", { role: "radiogroup", "aria-label": say("Reason") }, ...lines), other, alert, node("div", { class: "ends" }, cancel, go));
  const dialog = openDialog(root, say("Recuse yourself from this response"), form);
  other.addEventListener("input", () => { radios.at(-1).checked = true; });
  cancel.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = radios.find((one) => one.checked)?.value;
    const reason = chosen === REASONS.at(-1) ? other.value.trim() : chosen;
    if (!reason) {
      alert.textContent = chosen ? say("Please write the reason") : say("Please choose a reason");
      (chosen ? other : radios[0]).focus();
      return;
    }
    dialog.close();
    done(reason);
  });
  radios[0].focus();
}

function openPause(root, minutes, done) {
  const go = button(say("Continue"), { class: "main" });
  const dialog = openDialog(root, say("You have worked {minutes} minutes", { minutes }), node("p", {}, say("Everything is saved. A short break keeps your judgement even.")), node("div", { class: "ends" }, go));
  dialog.classList.add("pause");
  go.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", done);
  go.focus();
}

// Some of what was entered is in this browser alone, and signing out would take it away.
function openLeaving(root, done) {
  const stay = button(say("Stay"), { class: "main" });
  const leave = button(say("Sign out and lose it"));
  const dialog = openDialog(root, say("Not everything is stored yet"), node("p", {}, say("Some of what you entered is in this browser alone, and signing out takes it away. Stay on this page until it says that all is stored.")),
    node("div", { class: "ends" }, leave, stay));
  stay.addEventListener("click", () => dialog.close());
  leave.addEventListener("click", () => { dialog.close(); done(); });
  stay.focus();
}
