// What the pages do beyond HTML: times in the browser's zone, counting ages, live parts, charts, and forms without reload.
import "./app.css";
import "uplot/dist/uPlot.min.css";
import htmx from "htmx.org/dist/htmx.esm.js";
import { LivePage } from "./live_now.js";
import { startLiveCall, startLiveRun } from "./live_call.js";
import { startToolPage } from "./tool.js";

const csrf = document.querySelector("meta[name=csrf]")?.content;
const notice = document.getElementById("notice");
const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const timeOnly = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export function say(text) {
  if (notice === null) return;
  notice.textContent = text;
  notice.hidden = text === "";
}

function showTimes(root) {
  const today = new Date().toDateString();
  for (const element of root.querySelectorAll("time[datetime]:not([data-shown])")) {
    const at = new Date(element.dateTime);
    element.title = element.textContent;
    element.textContent = (at.toDateString() === today ? timeOnly : dateAndTime).format(at);
    element.dataset.shown = "";
  }
}

function age(seconds) {
  if (seconds < 60) return `${Math.max(0, seconds).toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function countAges() {
  const now = Date.now() / 1000;
  for (const element of document.querySelectorAll("[data-since]")) {
    element.textContent = age(now - Number(element.dataset.since));
  }
}

function showAll(root = document) {
  showTimes(root);
  countAges();
}

document.addEventListener("htmx:configRequest", (event) => {
  if (csrf) event.detail.headers["X-CSRF-Token"] = csrf;
});
document.addEventListener("htmx:afterSwap", () => showAll());
document.addEventListener("htmx:responseError", (event) => {
  const { xhr } = event.detail;
  if (xhr.status === 401) location.reload();
  else say(xhr.getResponseHeader("Toold-Problem") ?? `The daemon refused this (${xhr.status}); reload the page.`);
});
document.addEventListener("htmx:sendError", () => say("The daemon does not answer."));
window.htmxProcess = (element) => htmx.process(element);

document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-submit]")) target.form.requestSubmit();
});
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

showAll();
setInterval(countAges, 500);
const live = document.querySelector("[data-live]");
if (live !== null) new LivePage(live.dataset.live, say, showAll).start();
const liveCall = document.querySelector("[data-live-call]");
if (liveCall !== null) startLiveCall(liveCall, say, showAll);
const liveRun = document.querySelector("[data-live-run]");
if (liveRun !== null) startLiveRun(liveRun, say, showAll);
startToolPage(csrf, say, showAll);
