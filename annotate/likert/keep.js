// Drafts go by a request of their own: keeping one needs no new page. Where it is refused or nobody
// answers, the page's own way is taken, which knows whether the session has ended.

const PATIENCE_MS = 8000;
const MOST_AFTER_LEAVING = 20_000; // a browser sends little once its page is gone

async function keepDraft(life, told) {
  const kept = await askToKeep(told);
  const { entry } = life;
  if (life.gone || entry.code !== told.code) return;
  if (kept === null) {
    if (entry.stage === "rating" && entry.seq === told.seq) life.tell("message", told);
    return;
  }
  if ("seq" in kept && reconcile(entry, kept)) life.sendSoon();
  life.hear(kept.answer);
  life.refresh();
}

// What the server keeps of this response after it was told a draft; null if it did not answer.
async function askToKeep(told) {
  const body = JSON.stringify(told);
  try {
    const answer = await fetch("/draft", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
      redirect: "error",
      keepalive: body.length < MOST_AFTER_LEAVING,
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}
