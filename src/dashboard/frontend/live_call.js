// The page of a running call, and that of a run: changed in place while the call runs, and when it ends.
import { LiveStream, replaceContent } from "./live_stream.js";

const AGAIN_MS = 1000;
const ATTEMPTS = 10;

class LiveContent {
  constructor(url, say, shown, listeners) {
    this.say = say;
    this.shown = shown;
    this.attempts = 0;
    this.updated = Promise.resolve();
    this.stream = new LiveStream(url, say, { ...listeners, ended: () => this.ended() });
  }

  // Brings the page up to date from its own address, one update after the other. Returns whether the daemon knows the
  // call; nothing if another page is loaded.
  update() {
    this.updated = this.updated.then(() => this.load());
    return this.updated;
  }

  async load() {
    const answer = await fetch(location.href, { cache: "no-store", headers: { "HX-Request": "true" } }).catch(() => null);
    if (answer?.status === 401) return location.reload();
    if (answer?.redirected) return location.replace(answer.url); // the call has paused
    if (!answer?.ok) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const content = document.getElementById("content");
    replaceContent(content, page.getElementById("content").innerHTML);
    document.title = page.title;
    this.shown(content);
    return true;
  }

  // The call no longer runs. Its row may not be in the audit yet, or it runs again.
  async ended() {
    this.stream.close();
    const known = await this.update();
    if (known && document.querySelector("[data-live-call], [data-live-run]") === null) {
      this.stream.end();
      document.getElementById("announcement").textContent = document.querySelector("h1").innerText;
    } else if (known !== undefined && ++this.attempts < ATTEMPTS) {
      setTimeout(() => this.stream.open(), AGAIN_MS);
    } else if (known !== undefined) {
      this.stream.end();
      this.say("The call no longer runs, and the audit has no row of it. Reload the page to look again.");
    }
  }
}

export function startLiveCall(element, say, shown) {
  const replace = (html) => {
    page.attempts = 0;
    const target = document.getElementById("live");
    replaceContent(target, html);
    shown(target);
  };
  const page = new LiveContent(element.dataset.liveCall, say, shown, { html: replace });
  page.stream.start();
}

export function startLiveRun(element, say, shown) {
  let [busy, changed] = [false, false];
  // The daemon reads a run from the database: once per change, and at most once per second.
  const update = async () => {
    page.attempts = 0;
    changed = true;
    if (busy) return;
    busy = true;
    while (changed) {
      changed = false;
      await page.update();
      await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
    busy = false;
  };
  const page = new LiveContent(element.dataset.liveRun, say, shown, { calls: update });
  page.stream.start();
}
