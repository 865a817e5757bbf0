// The page Now: server-sent events replace its live part and extend its charts.
import uPlot from "uplot/dist/uPlot.esm.js";
import { LiveStream, replaceContent } from "./live_stream.js";

const KEPT_SECONDS = 300;

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const number = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function lastMinutes(end) {
  return [end - KEPT_SECONDS, end];
}

function chart(element, series) {
  const pixels = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const font = `${Math.round(pixels * 0.85)}px system-ui, sans-serif`;
  const axis = { font, stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, size: pixels * 3.2 };
  const options = {
    width: element.clientWidth,
    height: element.clientHeight,
    padding: [null, pixels * 2.4, null, null], // the last time below the axis would be cut
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { x: { range: (_, __, last) => lastMinutes(last || Date.now() / 1000) }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.15)] } },
    axes: [{ ...axis, size: pixels * 1.6, space: pixels * 6, incrs: [60, 120, 300], values: (_, splits) => splits.map((at) => clock.format(at * 1000)) }, axis],
    series: [{}, ...series.map(([name, variable]) => ({ label: name, stroke: color(variable), width: 1.5, points: { show: false } }))],
  };
  const plot = new uPlot(options, [[], ...series.map(() => [])], element);
  const sizes = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: element.clientHeight }));
  sizes.observe(element);
  return { setData: (data) => plot.setData(data), destroy: () => (sizes.disconnect(), plot.destroy()) };
}

export class LivePage {
  constructor(url, say, shown) {
    this.shown = shown;
    this.seconds = [];
    this.stream = new LiveStream(url, say, {
      html: (html) => this.replace(html),
      seconds: (seconds) => this.extend(JSON.parse(seconds)),
    });
  }

  start() {
    this.draw();
    // Colours and the size of the text are those of the time at which a chart is made.
    for (const query of ["(prefers-color-scheme: dark)", "(min-width: 1800px)", "(min-width: 2400px)", "(min-width: 3200px)"]) {
      matchMedia(query).addEventListener("change", () => this.draw());
    }
    this.stream.start();
  }

  draw() {
    this.rate?.destroy();
    this.latency?.destroy();
    this.rate = chart(document.getElementById("rate-chart"), [["calls", "--accent"], ["errors", "--bad"]]);
    this.latency = chart(document.getElementById("latency-chart"), [["p50", "--accent"], ["p99", "--warn"]]);
    this.setData();
  }

  replace(html) {
    const target = document.getElementById("live");
    replaceContent(target, html);
    this.shown(target);
  }

  extend(seconds) {
    const oldest = seconds.length > 1 ? -Infinity : (this.seconds.at(-1)?.[0] ?? -Infinity);
    if (seconds.length > 1) this.seconds = [];
    this.seconds.push(...seconds.filter((second) => second[0] > oldest));
    this.seconds.splice(0, this.seconds.length - KEPT_SECONDS);
    this.setData();
    const last = this.seconds.at(-1);
    if (last === undefined) return;
    document.getElementById("rate").textContent = `${number.format(last[1])}/s`;
    document.getElementById("latency").textContent = last[3] === null ? "" : `${number.format(last[3])} / ${number.format(last[4])}`;
  }

  setData() {
    const column = (index) => this.seconds.map((second) => second[index]);
    this.rate.setData([column(0), column(1), column(2)]);
    this.latency.setData([column(0), column(3), column(4)]);
  }
}
