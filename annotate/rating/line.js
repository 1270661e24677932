// The room's own line to the server. One message is under way at a time; where nobody answers, it is
// sent again until somebody does, and all that is entered stays in this browser meanwhile.

const ROOM = "/room";
const PATIENCE_MS = 8000;
const AGAIN_MS = [300, 700, 1500, 3000];
const MOST_AFTER_LEAVING = 20_000; // a browser sends little once its page is gone
const SIGNED_OUT = 401;
const HEARD = [200, 400, SIGNED_OUT]; // anything else is said by somebody in between
const PERSON = "Medjury-Person"; // whose page asks: another clinician may sign in in the same browser

// What the server says: {status, body}; null where nobody answers, or somebody who does not reach
// the study.
async function request(path, told) {
  const body = told === undefined ? undefined : JSON.stringify(told);
  const typed = body === undefined ? {} : { "Content-Type": "application/json", [PERSON]: kept.tag };
  try {
    const answer = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers: typed,
      body,
      redirect: "error",
      cache: "no-store",
      keepalive: (body ?? "").length < MOST_AFTER_LEAVING,
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (!HEARD.includes(answer.status)) return null;
    return { status: answer.status, body: answer.status === 200 ? await answer.json() : null };
  } catch {
    return null;
  }
}

class Line {
  constructor(life) {
    this.life = life;
    this.flying = false;
    this.again = false;
    this.waiting = null;
    this.missed = 0;
  }

  // Send what is entered now, or as soon as what is under way is answered.
  send() {
    clearTimeout(this.waiting);
    this.waiting = null;
    if (this.flying) this.again = true;
    else if (this.life.entry) this.flight = this.fly(message(this.life.entry));
  }

  // Wait until all that is entered is stored, or nobody answers.
  async settled() {
    this.send();
    while (this.flying) await this.flight;
  }

  async fly(told) {
    this.flying = true;
    const answer = await request(ROOM, told);
    await this.life.released();
    this.flying = false;
    if (!this.life.gone) this.heard(told, answer);
  }

  heard(told, answer) {
    const failed = answer === null || answer.status === SIGNED_OUT || answer.body?.busy;
    const again = this.again;
    this.again = false;
    if (failed) {
      this.missed += 1;
      this.life.unheard(answer?.status === SIGNED_OUT);
      this.wait(AGAIN_MS[Math.min(this.missed, AGAIN_MS.length) - 1]);
      return;
    }
    const back = this.missed > 0;
    this.missed = 0;
    this.life.heard(told, answer.body);
    const { entry } = this.life;
    if (again && entry && !isSaved(entry)) this.send();
    if (back) deliver(entry?.code);
  }

  wait(milliseconds) {
    this.waiting ??= setTimeout(() => this.send(), milliseconds);
  }

  // Somebody may answer again: do not wait for the turn.
  retry() {
    if (this.missed > 0 && !this.flying) this.send();
  }

  end() {
    clearTimeout(this.waiting);
  }
}

// What this browser kept of other responses, which the page is not at: delivered one by one.
async function deliver(code) {
  for (const { told } of kept.others(code)) {
    const answer = await request(ROOM, { ...told, attempt: told.attempt + 1, go: told.go === "recuse" ? "recuse" : "" });
    if (answer?.body && !answer.body.busy && !answer.body.stale && !answer.body.error) kept.settle(told);
  }
}
