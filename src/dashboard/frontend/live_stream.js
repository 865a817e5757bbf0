// A stream of server-sent events, and the changes that it makes to a page. A hidden page has no connection, because a
// browser allows only six to one server.
import { Idiomorph } from "idiomorph/dist/idiomorph.esm.js";

const RETRY_MS = 2000;

export class LiveStream {
  // `listeners`: what to do with the data of an event, by its name.
  constructor(url, say, listeners) {
    this.url = url;
    this.say = say;
    this.listeners = listeners;
    this.events = null;
    this.ended = false;
  }

  start() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    window.addEventListener("pagehide", () => this.close());
    window.addEventListener("pageshow", () => this.open());
    this.open();
  }

  open() {
    if (this.events !== null || this.ended || document.hidden) return;
    this.events = new EventSource(this.url);
    this.events.addEventListener("open", () => this.say(""));
    for (const [name, listener] of Object.entries(this.listeners)) {
      this.events.addEventListener(name, (event) => listener(event.data));
    }
    this.events.addEventListener("error", () => this.lost());
  }

  close() {
    this.events?.close();
    this.events = null;
  }

  // Closes the stream for good.
  end() {
    this.ended = true;
    this.close();
  }

  async lost() {
    this.close();
    this.say("The connection to the daemon is lost; connecting again …");
    try {
      const answer = await fetch("/ui/session", { cache: "no-store" });
      if (answer.status === 401) return location.reload();
    } catch {
      // The daemon does not answer; it may be restarting.
    }
    setTimeout(() => this.open(), RETRY_MS);
  }
}

// Changes the content of an element in place: elements that stay keep the focus, their scroll position, and what a person
// has opened or written in them.
export function replaceContent(target, html) {
  const callbacks = {
    // The charts draw into their own elements, which the daemon sends empty.
    beforeNodeMorphed: (old) => !old.dataset || !("kept" in old.dataset),
    beforeAttributeUpdated: (name, element) => name !== "open" || element.tagName !== "DETAILS",
  };
  const focused = document.activeElement;
  const wasInside = target.contains(focused);
  Idiomorph.morph(target, html, { morphStyle: "innerHTML", ignoreActiveValue: true, callbacks });
  // The focus must not fall back to the top of the page.
  if (wasInside && !focused.isConnected) document.getElementById("content").focus({ preventScroll: true });
  window.htmxProcess?.(target);
}
