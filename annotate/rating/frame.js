// The room around the form: how far the clinician is, the texts, and pages that are only a message.
// Texts come from the server as HTML in which every character of theirs is escaped.

function fromHtml(html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  return made.content;
}

const RATED = ["response", "second"];

// How long so many minutes are, as roughly as they are known.
function timeText(minutes) {
  if (minutes < 1) return "";
  if (minutes < 60) return say("about {count} min", { count: Math.max(5, Math.round(minutes / 5) * 5) });
  return say("about {count} h", { count: Math.round(minutes / 30) / 2 });
}

class Frame {
  constructor(life) {
    this.life = life;
    this.reader = new Reader(() => life.switchTyped());
    this.count = node("span", { class: "mj-count" });
    this.fill = node("span", {});
    this.bar = node("span", { class: "mj-bar", role: "progressbar", "aria-valuemin": 0 }, this.fill);
    this.practice = node("span", { class: "mj-practice" });
    this.guide = button(say("About the study"), { class: "mj-guide", "aria-expanded": "false", "data-key": "g" });
    this.leave = node("a", { href: "/logout" }, say("Sign out"));
    this.top = node("header", { class: "mj-top" }, node("span", { class: "mj-brand" }, life.room.title || "medjury"),
      this.count, this.bar, this.practice, this.guide, node("span", { class: "mj-who" }, life.room.who), this.leave);
    this.left = node("section", { class: "mj-left", "aria-label": say("What the response was made from") });
    this.right = node("section", { class: "mj-right", "aria-label": say("Response and rating") });
    this.formPlace = node("div", { class: "mj-form" });
    this.body = node("main", { class: "mj-body" }, this.left, this.right);
    this.guide.hidden = !life.room.guide;
    this.guide.addEventListener("click", () => life.guide());
    this.leave.addEventListener("click", (event) => life.signOut(event));
    const small = node("p", { class: "mj-small" }, say("This screen is too small to read source and response together: please use a tablet or a computer."));
    this.top.append(small);
    life.root.append(this.top, this.body);
  }

  progress(shown) {
    const { done = 0, total = 0, number, round, as_share: asShare } = shown.progress ?? {};
    const left = timeText((total - done) * this.life.room.minutes);
    const lesson = shown.training === true && number !== undefined;
    const share = total ? Math.floor((100 * done) / total) : 0;
    const count = asShare ? say("{share} % rated", { share }) : say("{done} of {total} rated", { done, total });
    const training = { number, total, round };
    const lessons = round > 1 ? say("Training, round {round}: response {number} of {total}", training) : say("Training: response {number} of {total}", training);
    set(this.count, lesson ? lessons : [count, ...(left ? [say("{time} left", { time: left })] : [])].join(", "));
    this.bar.setAttribute("aria-label", lesson ? say("Training responses rated") : say("Responses rated"));
    this.bar.setAttribute("aria-valuemax", asShare ? 100 : total);
    this.bar.setAttribute("aria-valuenow", asShare ? share : done);
    this.fill.style.width = `${total ? Math.round((100 * done) / total) : 0}%`;
    set(this.practice, lesson ? say("Practice, not part of the study: an expert's scores follow") : "");
    this.count.hidden = this.bar.hidden = !shown.progress;
  }

  // What the coordinator answered to the clinician's flags; each goes once it was seen.
  answers(told) {
    const left = [...told];
    const one = (answer) => {
      const go = node("button", { type: "button" }, say("Go to that response "), key("J"));
      const seen = button(say("Seen"));
      const line = node("p", { class: "notice" }, node("span", { dir: "auto" }, answer.text ? say("The coordinator on your flag “{text}”: {answer}", answer) : say("The coordinator on your flag: {answer}", answer)), node("span", { class: "ways" }, go, " ", seen));
      go.addEventListener("click", () => { this.answered = answer.code; this.life.toFlagged(); });
      seen.addEventListener("click", async () => {
        const heard = await request(`${ROOM}/seen`, { answer: answer.id });
        if (heard?.status !== 200) return;
        line.remove();
        left.splice(left.indexOf(answer), 1);
        this.answered = left[0]?.code;
      });
      return line;
    };
    this.answered = left[0]?.code;
    this.top.after(node("div", { class: "mj-answers", role: "status" }, ...told.map(one)));
  }

  // The texts of a response, and where its form goes.
  rate(shown) {
    const texts = shown.texts.filter((one) => !RATED.includes(one.name)).map((one) => this.text(shown, one));
    this.reader.clear();
    this.left.replaceChildren(this.reader.bar, ...this.others(shown), ...texts, ...(this.aside ? [this.aside] : []));
    this.right.replaceChildren(this.rated(shown), this.formPlace);
    this.page("rate");
  }

  // The response, or the two of a pair: beside each other, in a narrow window one behind the other.
  rated(shown) {
    const blocks = shown.texts.filter((one) => RATED.includes(one.name)).map((one) => this.text(shown, one));
    this.body.toggleAttribute("data-pair", blocks.length > 1);
    if (blocks.length === 1) return blocks[0];
    this.tabs = shown.texts.filter((one) => RATED.includes(one.name)).map((one, n) => {
      const tab = button(say(one.label), { class: "mj-tab", "aria-pressed": "false" });
      tab.addEventListener("click", () => this.inFront(n));
      return tab;
    });
    this.pair = node("div", { class: "mj-pair" }, node("div", { class: "mj-tabs" }, ...this.tabs), ...blocks);
    this.inFront(0);
    return this.pair;
  }

  // Which of the two is in front where there is room for one; each keeps its place.
  inFront(n) {
    this.pair.dataset.front = n;
    this.tabs.forEach((tab, at) => tab.setAttribute("aria-pressed", `${at === n}`));
  }

  otherInFront() {
    if (this.body.hasAttribute("data-pair")) this.inFront(1 - Number(this.pair.dataset.front));
  }

  text(shown, one) {
    if (one.html === undefined) return this.onRequest(shown, one);
    const pane = node("div", { class: `mj-pane mj-${one.name}`, tabindex: 0, role: "region", "aria-label": say(one.label) });
    if (shown.code && SIDES.includes(one.name)) pane.dataset.code = shown.code;
    pane.append(fromHtml(one.html));
    return node("div", { class: `mj-block mj-of-${one.name}` }, node("h2", { class: "mj-heading" }, say(one.label)), pane);
  }

  // A text that is sent only once it is opened.
  onRequest(shown, one) {
    const place = node("div", { class: "mj-block" });
    const ask = button(say(`Show ${one.name}`), { class: "mj-ask", "aria-expanded": "false" });
    place.append(ask);
    ask.addEventListener("click", async () => {
      const answer = await request(`${ROOM}/show`, { code: shown.code, name: one.name });
      if (answer?.body) place.replaceWith(this.text(shown, answer.body));
      else set(ask, say("{what} (cannot be reached just now)", { what: say(`Show ${one.name}`) }));
    });
    return place;
  }

  // A page that is only a message, with a button or two.
  note(html, ...buttons) {
    const place = node("div", { class: "mj-note", role: "region", "aria-label": say("Message"), tabindex: -1 }, html, node("div", { class: "ends" }, ...buttons));
    this.left.replaceChildren(...(this.aside ? [this.aside] : []));
    this.right.replaceChildren(place);
    this.page("note");
    place.focus();
  }

  // What the clinician is told of the study, and agrees to before they go on; or they sign out.
  consent({ html }, agree) {
    const signOut = button(say("Sign out"));
    signOut.addEventListener("click", (event) => this.life.signOut(event));
    this.note(node("div", { class: "mj-consent" }, node("h1", {}, say("Before you begin")), fromHtml(html)), signOut, agree);
  }

  // What the others said, without a name, for whoever settles a difference between them.
  others(shown) {
    if (!shown.others) return [];
    const one = (other, place) => node("article", { class: "mj-other" }, node("h3", {}, say("Reading {number}", { number: place + 1 })),
      node("p", {}, shown.criteria.map((one) => `${one.label} ${faceOf(one, other.scores[one.name]) ?? say("not rated")}`).join(", ")),
      ...shown.criteria.filter(({ name }) => other.comments[name]).map(({ name, label }) => node("p", {}, node("b", {}, `${label}: `), other.comments[name])),
      ...(other.comment ? [node("p", {}, node("b", {}, say("On the whole: ")), other.comment)] : []));
    return [node("section", { class: "mj-others", tabindex: 0, "aria-label": say("What others said") },
      node("h2", { class: "mj-heading" }, say("Others read this differently; your reading settles it")), ...shown.others.map(one))];
  }

  typed(on) {
    this.life.root.toggleAttribute("data-typed", on);
    this.reader.asTyped.setAttribute("aria-pressed", `${on}`);
  }

  // What an expert gave, beside what the clinician gave.
  feedback(shown, go) {
    this.rate(shown);
    this.typed(this.life.isTyped ?? shown.typed);
    this.right.replaceChildren(this.rated(shown),
      node("div", { class: "mj-lessons" }, fromHtml(shown.html), node("div", { class: "ends" }, go)));
    this.page("feedback");
    go.focus();
  }

  // What the study is about, in the place of the source: response and form go on beside it.
  showGuide(open) {
    this.guide.setAttribute("aria-expanded", `${open}`);
    this.aside?.remove();
    this.aside = null;
    if (!open) {
      (this.right.querySelector(".mj-response") ?? this.guide).focus({ preventScroll: true });
      return;
    }
    const close = button(say("Close"), { class: "mj-close" });
    close.addEventListener("click", () => this.life.guide());
    this.aside = node("aside", { class: "mj-aside", "aria-label": say("About the study"), tabindex: 0 }, close, fromHtml(this.life.room.guide));
    this.left.append(this.aside);
    this.aside.focus();
  }

  page(kind) {
    this.body.dataset.page = kind;
  }
}
