// Active time: what is spent on a response while the page is in view and in use, pauses left out;
// and when a pause is due. The sum since the last pause outlives a reload.

const IDLE_MS = 60000;
const WORKED = "medjury-worked";
const SIGNS = ["keydown", "pointerdown", "pointermove", "wheel", "scroll"];

class Clock {
  constructor(tick) {
    this.touchedAt = Date.now();
    this.paused = false;
    this.onSign = () => { this.touchedAt = Date.now(); };
    for (const kind of SIGNS) window.addEventListener(kind, this.onSign, { capture: true, passive: true });
    this.timer = setInterval(() => tick(this.isActive()), 1000);
  }

  isActive() {
    return !this.paused && !document.hidden && Date.now() - this.touchedAt < IDLE_MS;
  }

  get worked() { return Number(sessionStorage.getItem(WORKED) ?? 0); }

  work() { sessionStorage.setItem(WORKED, this.worked + 1); }

  isDue(minutes) { return minutes > 0 && this.worked >= minutes * 60; }

  pause() { this.paused = true; }

  goOn() {
    this.paused = false;
    this.touchedAt = Date.now();
    sessionStorage.setItem(WORKED, 0);
  }

  end() {
    clearInterval(this.timer);
    for (const kind of SIGNS) window.removeEventListener(kind, this.onSign, { capture: true });
  }
}
