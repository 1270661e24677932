// Drafts go by a request of their own: keeping one needs no new page. All else takes the page's own
// way, once the server has said that it reaches the study: a page drawn without it has no form. A
// refusal takes the page's way too, which knows whether the session has ended. Where nobody
// answers, all that is entered stays here, and is sent again.

const DRAFTS = "/draft";
const PATIENCE_MS = 8000;
const MOST_AFTER_LEAVING = 20_000; // a browser sends little once its page is gone
const NOTE = ".mj-note"; // a page that is only a message, in place of the form
const LEFT = new Map(); // code -> what was entered and not answered when its form was taken away

async function keepDraft(life, told) {
  const answer = await ask("POST", JSON.stringify(told));
  const { entry } = life;
  if (life.gone || entry.code !== told.code) return;
  if (answer === null) missed(life);
  else if (answer.ok) heed(life, answer.body);
  else if (isNow(life, told)) life.tell("message", told);
}

async function tellPage(life, told) {
  const answer = await ask("GET");
  if (life.gone || !isNow(life, told)) return;
  if (answer === null) missed(life);
  else life.tell("message", told);
}

function missed(life) {
  life.entry.away = !isSaved(life.entry); // a later message may have been answered before
  life.refresh();
}

function isNow({ entry }, told) {
  return entry.code === told.code && entry.seq === told.seq && (entry.stage === "submitting") === told.submit;
}

// Take in what the server keeps of this response after it was told a draft.
function heed(life, kept) {
  if ("seq" in kept && reconcile(life.entry, kept)) life.sendSoon();
  life.entry.away = kept.answer.again;
  life.hear(kept.answer);
  life.refresh();
}

// What the server says; null where nobody answers, or somebody who does not reach the study.
async function ask(method, body) {
  try {
    const answer = await fetch(DRAFTS, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body,
      redirect: "error",
      cache: "no-store",
      keepalive: (body ?? "").length < MOST_AFTER_LEAVING,
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (answer.status >= 500) return null;
    return { ok: answer.ok, body: answer.status === 200 ? await answer.json() : null };
  } catch {
    return null;
  }
}

// The form is gone, the page is not: what was entered waits for the form, in this page's memory only.
function leaveBehind(entry) {
  if (!isSaved(entry)) LEFT.set(entry.code, entry);
}

// What was left behind of a response, its form being back; or what the server knows of it.
function takenUp(data) {
  const left = LEFT.get(data.code);
  LEFT.clear();
  const same = left && left.mode === (data.mode ?? "rate") && left.rated === (data.rated ?? "");
  if (!same || (data.by === PAGE && data.seq >= left.seq)) return begin(data);
  if (left.stage === "leaving") Object.assign(left, { stage: "rating", go: "", reason: "" });
  reconcile(left, data);
  left.attempt += 1;
  return left;
}

window.addEventListener("beforeunload", (event) => {
  if (LEFT.size > 0 && document.querySelector(NOTE)) event.preventDefault();
});
