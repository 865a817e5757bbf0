// The page of a tool: lists and unions of its form, the call with its events, and the texts to copy.

const SNIPPETS_AFTER_MS = 350;

// --- the form --------------------------------------------------------------------------------------------------------

function renumber(root, from, to) {
  for (const element of root.querySelectorAll("[name], [id], [for], [data-list], [data-add], [data-content], [aria-describedby], template")) {
    for (const attribute of ["name", "id", "for", "data-list", "data-add", "data-content", "aria-describedby"]) {
      const value = element.getAttribute(attribute);
      if (value === null) continue;
      const prefix = value.startsWith("f") && ["id", "for", "data-content", "aria-describedby"].includes(attribute) ? "f" : "";
      const path = value.slice(prefix.length);
      if (path === from || path.startsWith(`${from}/`) || path.startsWith(`${from}|`) || path.startsWith(`${from}-`)) {
        element.setAttribute(attribute, prefix + to + path.slice(from.length));
      }
    }
    if (element instanceof HTMLTemplateElement) renumber(element.content, from, to);
  }
}

function addItem(list, focus) {
  const name = list.dataset.list;
  const number = Number(list.dataset.next ?? list.querySelectorAll(":scope > .items > .item").length);
  list.dataset.next = number + 1;
  const content = list.querySelector(":scope > template").content.cloneNode(true);
  renumber(content, `${name}/*`, `${name}/${number}`);
  const item = content.firstElementChild;
  list.querySelector(":scope > .items").append(content);
  for (const select of item.querySelectorAll("select[data-union]")) chooseOption(select);
  if (focus) item.querySelector("input, select, textarea")?.focus();
}

function chooseOption(select) {
  for (const option of select.parentElement.querySelectorAll(":scope > .option")) {
    option.hidden = option.disabled = option.dataset.option !== select.value;
  }
}

async function takeFile(input) {
  const [file] = input.files;
  if (file === undefined) return;
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const target = document.getElementById(input.dataset.content);
  target.value = url.slice(url.indexOf(",") + 1);
  target.dispatchEvent(new Event("input", { bubbles: true }));
}

// --- the call --------------------------------------------------------------------------------------------------------

// Yields [name, data] of each event of a response.
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
      if (name) yield [name, lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n")];
    }
  }
}

class Trial {
  constructor(form, csrf, say, shown) {
    this.form = form;
    this.csrf = csrf;
    this.say = say;
    this.shown = shown;
    this.button = form.querySelector(".buttons > button:not([type=button])");
    this.cancelButton = document.getElementById("cancel");
    this.status = document.getElementById("status");
    this.stream = document.getElementById("stream");
    this.outcome = document.getElementById("outcome");
    this.questions = document.getElementById("questions");
    this.callId = null;
  }

  async call() {
    this.set(true);
    this.stream.textContent = "";
    this.stream.hidden = true;
    this.outcome.replaceChildren();
    this.showProgress("Sent");
    try {
      const response = await fetch(this.form.action, {
        method: "POST",
        body: new URLSearchParams(new FormData(this.form)),
        headers: { "X-CSRF-Token": this.csrf, Accept: "text/event-stream", "HX-Request": "true" },
      });
      if (response.status === 401) return location.reload();
      if (!response.ok || !response.headers.get("content-type").startsWith("text/event-stream")) {
        return this.say(response.headers.get("Toold-Problem") ?? `The daemon refused this (${response.status}).`);
      }
      for await (const [name, data] of eventsOf(response)) this[name]?.(data);
    } catch {
      this.say("The connection to the daemon is lost; the call may have run.");
    } finally {
      this.set(false);
      this.status.replaceChildren();
      this.questions.replaceChildren();
    }
  }

  set(running) {
    this.say("");
    this.callId = null;
    this.button.disabled = running;
    this.cancelButton.hidden = !running;
    this.cancelButton.disabled = false;
  }

  started(id) {
    this.callId = id;
    this.showProgress("Running");
  }

  progress(data) {
    const { message, done, total } = JSON.parse(data);
    this.showProgress(message, done, total);
  }

  chunk(data) {
    this.stream.hidden = false;
    const atEnd = this.stream.scrollTop + this.stream.clientHeight >= this.stream.scrollHeight - 8;
    this.stream.append(JSON.parse(data).replaceAll(/[^\P{C}\n\t]/gu, " "));
    if (atEnd) this.stream.scrollTop = this.stream.scrollHeight;
  }

  result(html) {
    this.stream.hidden = true;
    this.outcome.innerHTML = html; // rendered by the daemon, which escapes all values
    this.shown(this.outcome);
  }

  question(html) {
    this.questions.insertAdjacentHTML("beforeend", html); // rendered by the daemon, which escapes all values
    const asked = this.questions.lastElementChild;
    for (const select of asked.querySelectorAll("select[data-union]")) chooseOption(select);
    asked.querySelector("input:not([type=hidden]), select, textarea, button").focus();
    this.showProgress("Waiting for your answer");
  }

  closed(token) {
    for (const asked of [...this.questions.children]) if (asked.dataset.question === token) asked.remove();
  }

  async answer(form, button) {
    const problem = form.querySelector("[role=alert]");
    const response = await fetch(form.action, {
      method: "POST",
      body: new URLSearchParams(new FormData(form, button)),
      headers: { "X-CSRF-Token": this.csrf, "HX-Request": "true" },
    }).catch(() => null);
    if (response?.ok) {
      form.closest("[data-question]").remove();
      this.showProgress("Running");
      return;
    }
    problem.textContent = response?.headers.get("Toold-Problem") ?? "The daemon did not take the answer; try again.";
    problem.hidden = false;
  }

  showProgress(message, done, total) {
    const line = document.createElement("p");
    line.className = "running-line";
    const state = document.createElement("span");
    state.className = "state running";
    state.textContent = message.replaceAll(/\p{C}/gu, " ");
    line.append(state);
    if (typeof done === "number" && total > 0) {
      const bar = document.createElement("progress");
      bar.max = total;
      bar.value = done;
      bar.ariaLabel = "Progress";
      line.append(" ", bar);
    }
    this.status.replaceChildren(line);
  }

  async cancel() {
    if (this.callId === null) return;
    this.cancelButton.disabled = true;
    const path = `/ui/calls/${encodeURIComponent(this.callId)}/cancel`;
    const response = await fetch(path, { method: "POST", headers: { "X-CSRF-Token": this.csrf, "HX-Request": "true" } });
    if (!response.ok) this.say(response.headers.get("Toold-Problem") ?? "The call could not be cancelled.");
  }
}

// --- the texts to copy -----------------------------------------------------------------------------------------------

class Snippets {
  constructor(form, csrf) {
    this.form = form;
    this.csrf = csrf;
    this.timer = null;
    this.target = document.getElementById("snippets");
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), SNIPPETS_AFTER_MS);
  }

  async update() {
    const open = [...this.target.querySelectorAll("details")].map((details) => details.open);
    const response = await fetch(this.form.dataset.snippets, {
      method: "POST",
      body: new URLSearchParams(new FormData(this.form)),
      headers: { "X-CSRF-Token": this.csrf, "HX-Request": "true" },
    }).catch(() => null);
    if (!response?.ok) return;
    this.target.innerHTML = await response.text(); // rendered by the daemon, which escapes all values
    this.target.querySelectorAll("details").forEach((details, place) => (details.open = open[place] ?? false));
  }
}

async function copyText(button) {
  const text = button.parentElement.querySelector("pre").textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.parentElement.querySelector("pre"));
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

function showImage(button) {
  const bytes = Uint8Array.from(atob(button.dataset.image), (character) => character.charCodeAt(0));
  const image = document.createElement("img");
  image.src = URL.createObjectURL(new Blob([bytes], { type: button.dataset.type }));
  image.alt = "The image that the tool answered";
  image.onload = () => URL.revokeObjectURL(image.src);
  button.replaceWith(image);
}

export function startToolPage(csrf, say, shown) {
  document.addEventListener("click", ({ target }) => {
    if (target.matches("[data-copy]")) copyText(target);
    else if (target.matches("[data-image]")) showImage(target);
  });
  const form = document.getElementById("arguments");
  if (form === null) return;
  const trial = new Trial(form, csrf, say, shown);
  const snippets = new Snippets(form, csrf);
  for (const select of form.querySelectorAll("select[data-union]")) chooseOption(select);
  document.addEventListener("click", ({ target }) => {
    if (target.matches("[data-add]")) addItem(target.parentElement, true);
    else if (target.matches("[data-remove]")) target.closest(".item").remove();
    else return;
    snippets.later();
  });
  document.addEventListener("change", ({ target }) => {
    if (target.matches("select[data-union]")) chooseOption(target);
    if (target.matches("input[type=file]")) takeFile(target);
    snippets.later();
  });
  trial.questions.addEventListener("submit", (event) => {
    event.preventDefault();
    trial.answer(event.target, event.submitter);
  });
  form.addEventListener("input", () => snippets.later());
  const whole = document.getElementById("whole");
  whole.addEventListener("input", () => {
    const fields = document.getElementById("fields");
    if (fields !== null) form.noValidate = whole.value.trim() !== "";
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    trial.call();
  });
  document.getElementById("cancel")?.addEventListener("click", () => trial.cancel());
}
